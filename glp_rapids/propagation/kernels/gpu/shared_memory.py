"""The launch shape of the persistent kernel, and what lies in the shared memory of a block.

43 KB with 32-bit indices and votes of one, 48 KB for packed lists: three blocks a multiprocessor.
Numba wants shared memory allocated in the kernel itself: `persistent` does, field by field.

What is rarely needed lies here too, since it would cost registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda

LANES = 32  # threads of a warp
ALL = np.uint32(0xFFFFFFFF)  # of them
THREADS = 256  # of a block
WARPS = THREADS // LANES
BLOCKS_A_MULTIPROCESSOR = 3  # at once; it decides how many registers a thread gets
TABLE_SLOTS = 4096  # of a block's table; half with 64-bit votes or labels
SKETCH_COUNTERS = 1024
PROBES = 16  # in a table that may be too small; then the row is deferred, or read in more parts
# In a block's table that may be too small, when a row is read first: then the vote goes to the
# sketch. A full table makes every such label take all of them: with 16, a row of 16,597 entries and
# 6,500 labels took 242 microseconds, where one with 800 labels takes 43.
BLOCK_PROBES = 4
CLAIMS = 128  # words of 32 slots of a block's table
CLOCKED = 0  # steps whose times every block writes down, for `glp-rapids bench steps`
# Of a block: rows of warps with more labels than a slice of the table holds. Beside packed lists
# there is no room for more in 48 KB.
DEFERRED_ROWS = 448


class SweepSlots(NamedTuple):
    """Where in ``SharedMemory.sweep`` lies what holds for one sweep; one thread writes it."""

    all_distinct: int  # whether every label is held by one vertex: in the first group of all
    retain: int  # whether in a tie the current label stays
    tie_break: int  # by which rule else, see `ties`
    tie_seed: int
    everybody: int  # whether everybody is evaluated, active or not
    revisit_tied: int  # whether who was tied before is evaluated, too
    exploring: int
    activates: int  # whether vertices that change make their readers active
    sweeps: int  # done so far
    explored: int  # how many of them explored; negative while they do
    layout: int  # offset of the tickets in a row of the plan: 0, or `plan.SPARSE`
    over: int  # whether the run is
    leaves_out: int  # whether votes of vertices for their own names stay out of tables; rows ascend
    buffer_start: int  # where the decoded rows of the group begin
    ticket_pair: int  # 0 or 2: the two counters of `Run.drawn` in use
    first_row: int  # of `Plan.groups` in this sweep
    end_row: int  # and the one behind the last
    rows_a_class: int  # that are evaluated before any is updated
    long_list: int  # all blocks share the lists of more readers than that; 0: there are none
    goal: int  # of arrivals at the grid barrier, so far


SWEEP = SweepSlots(*range(len(SweepSlots._fields)))


class Table(NamedTuple):
    """A hash table of votes by label; each warp has a slice of it, or the block has all.

    Clean before and after each use: who took a slot clears it.
    """

    labels: Any  # index type; -1: a free slot
    votes: Any  # int32, or the lower words of 64-bit sums
    high_votes: Any  # int32: the upper words; one slot where there are none


class WorkQueue(NamedTuple):
    """Rows that the warps of a block leave to the block as a whole."""

    deferred: Any  # int32: positions behind the first row of warps
    number: Any  # int32 [1]: how many there are
    # int64 [1]: the row or piece that the block evaluates next, or what `streamed_packed` counts
    drawn: Any


class Reduction(NamedTuple):
    """What warps of a block tell one another; one slot a warp, but for ``arrived``."""

    sums: Any  # of votes
    maxima: Any
    arrived: Any  # int32 [1]: how many pieces of a hub were handed over before
    labels: Any  # the candidates of the warps
    scores: Any
    ties: Any


class ReaderQueue(NamedTuple):
    """Lists of readers that a block goes through together."""

    first: Any  # int64, one slot a thread: where a list begins, or its vertex if it is compressed
    last: Any  # int64: where it ends
    number: Any  # int32 [1]: how many there are


class PackedLists(NamedTuple):
    """What decoding lists under "packed" takes; one slot each where there are none."""

    entries: Any  # index type, one segment a warp: what it has decoded
    classes: Any  # uint64: base and width of every class of numbers


class SharedMemory(NamedTuple):
    """All of it, as every path of the kernel takes it."""

    sweep: Any  # int64, one word for each of `SWEEP`
    groups: Any  # int64: the plan's rows of this group and of the next, see `plan`
    table: Table
    claims: Any  # int32 [CLAIMS]: bits of the slots in use; see `build_claims`
    sketch: Any  # counters of votes for labels that found no room in the table
    queue: WorkQueue
    changes: Any  # int32 [1]: labels changed by the block in this class
    reduction: Reduction
    readers: ReaderQueue
    packed: PackedLists


@dataclass(frozen=True)
class TableFunctions:
    """Device functions of `Table` for one type of label and of vote, and its sizes."""

    slots: int  # of a block
    warp_slots: int  # of a warp's slice
    high_slots: int  # of ``high_votes``
    word_type: Any  # of ``votes``
    add: Any  # votes for a label
    add_to_present: Any  # votes for a label, if it is in the table
    votes_in: Any  # a slot
    clear: Any  # a slot


@dataclass(frozen=True)
class ClaimFunctions:
    """Device functions of ``SharedMemory.claims``, so that a block need not look at every slot."""

    claim: Any  # a slot
    claimed: Any  # the bits of the slots that a thread looks at
    slot_of: Any  # the lowest of these bits
    release: Any  # these slots


def build_claims() -> ClaimFunctions:
    """Make the functions; bit b of word w stands for slot 128 b + w, and a thread has 16 bits."""

    @cuda.jit(device=True)
    def claim(claims, slot):
        bit = np.int32(1) << np.int32(slot // CLAIMS)
        cuda.atomic.or_(claims, np.uint32(slot % CLAIMS), np.int32(bit))

    @cuda.jit(device=True)
    def half():
        return np.uint32(16 * (cuda.threadIdx.x // CLAIMS))

    @cuda.jit(device=True)
    def claimed(claims):
        word = np.uint32(claims[np.uint32(cuda.threadIdx.x % CLAIMS)])
        return np.uint32((word >> half()) & np.uint32(0xFFFF))

    @cuda.jit(device=True)
    def slot_of(bits):
        bit = np.uint32(cuda.ffs(np.int32(bits)) - 1) + half()
        return np.uint32(bit * np.uint32(CLAIMS) + np.uint32(cuda.threadIdx.x % CLAIMS))

    @cuda.jit(device=True)
    def release(claims, bits):
        word = np.uint32(cuda.threadIdx.x % CLAIMS)
        cuda.atomic.xor(claims, word, np.int32(np.uint32(bits) << half()))

    return ClaimFunctions(claim, claimed, slot_of, release)


def build_table(index_type: Any, vote_type: Any) -> TableFunctions:
    """Make the functions of the table.

    Shared memory adds 32 bits in one step and 64 bits in a loop of compare-and-swaps, so sums of
    64 bits are kept as two words: the lower one's carry goes to the upper one. The table of a
    block has 32 KB at the most, whatever a label takes.
    """
    narrow = vote_type is np.int32
    slots = TABLE_SLOTS if narrow and index_type is np.int32 else TABLE_SLOTS // 2
    word_type = np.int32 if narrow else np.uint32

    @cuda.jit(device=True)
    def votes_in(table, place):
        """Return the votes in a slot."""
        if narrow:
            return table.votes[place]
        return vote_type((np.int64(table.high_votes[place]) << 32) | np.int64(table.votes[place]))

    @cuda.jit(device=True)
    def clear(table, place):
        """Make a slot free again."""
        table.labels[place] = index_type(-1)
        table.votes[place] = word_type(0)
        if not narrow:
            table.high_votes[place] = np.int32(0)

    @cuda.jit(device=True)
    def first_slot(label, mask):
        word = np.uint32(np.uint32(label) * np.uint32(0x9E3779B1))
        return np.uint32((word >> np.uint32(12)) & np.uint32(mask))

    @cuda.jit(device=True)
    def add_at(table, place, amount):
        """Add votes in a slot; return at least how many it has, with 64 bits no more than these."""
        if narrow:
            return vote_type(cuda.atomic.add(table.votes, place, amount) + amount)
        low = np.uint32(amount)
        before = np.uint32(cuda.atomic.add(table.votes, place, low))
        high = np.int32(amount >> 32)
        if np.uint32(before + low) < low:
            high = np.int32(high + 1)
        if high != 0:
            cuda.atomic.add(table.high_votes, place, high)
        return amount

    @cuda.jit(device=True)
    def add(table, base, mask, probes, label, amount):
        """Add votes for a label in the slots from ``base`` on.

        Returns the slot (negative: no room), whether it was taken for this label just now, and at
        least how many votes the label has; with votes of 64 bits that is no more than these.
        """
        slot = np.int32(first_slot(label, mask))
        for _ in range(probes):
            place = np.uint32(base + slot)
            found = table.labels[place]
            claimed = False
            if found == -1:
                found = cuda.atomic.cas(table.labels, place, index_type(-1), label)
                if found == -1:
                    found, claimed = label, True
            if found == label:
                return np.int32(place), claimed, add_at(table, place, amount)
            slot = np.int32((slot + 1) & mask)
        return np.int32(-1), False, vote_type(0)

    @cuda.jit(device=True)
    def add_to_present(table, mask, label, amount):
        """Add votes for a label that is in the table already, which has free slots; or nothing."""
        slot = first_slot(label, mask)
        while True:
            found = table.labels[slot]
            if found == label:
                add_at(table, slot, amount)
                return
            if found == -1:
                return
            slot = np.uint32((slot + np.uint32(1)) & np.uint32(mask))

    return TableFunctions(
        slots=slots, warp_slots=slots // WARPS, high_slots=1 if narrow else slots,
        word_type=word_type, add=add, add_to_present=add_to_present, votes_in=votes_in,
        clear=clear,
    )  # fmt: skip
