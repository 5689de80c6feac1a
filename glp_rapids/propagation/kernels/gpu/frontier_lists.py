"""The lists of active vertices that `frontier` keeps: this sweep's and the next one's.

A member is a word, its class above its vertex. Who is woken goes into this sweep's list if its
class is still to come, else into the next one's; since only the change that takes the last of its
slack wakes a vertex, nobody is in a list twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.hashing import CLASS_SEED, mix
from glp_rapids.jit.cuda import cuda, load_fresh
from glp_rapids.jit.target import Target
from glp_rapids.propagation import ties
from glp_rapids.propagation.kernels.gpu.shared_memory import ALL, LANES

OF_WARP = 128  # entries in the longest row that a warp reads; others are long, and of a block
LONG_ROW = np.int64(1) << 40  # in a count of members, one whose row is long
MOST_LONG_ROWS = (1 << 23) - 1  # that such a count has room for
BITS_OF_VERTEX = 52  # of a member, below its class
MOST_CLASSES = 32  # that a warp looks at together; more were not tried on a GPU

# The words of ``Listed.counts``: members of both lists, whether another engine has to go on, and
# long rows of a step.
SPREADS, LONG_ROWS, COUNTS = 2, 3, 4


class StepSlots(NamedTuple):
    """Where in the shared array ``step`` lies what holds for one step; one thread writes it."""

    list: int  # that is this sweep's
    count: int  # members of that list when the step began
    found: int  # the first class with members; negative: there is none
    beyond: int  # the classes of this step end before this one
    long: int  # whether one of these may have a member whose row is long


STEP = StepSlots(*range(len(StepSlots._fields)))


class Listed(NamedTuple):
    """The lists of active vertices."""

    members: Any  # int64 [2, vertices]
    # int64 [2 * classes]: how many members each class has in each list, and with LONG_ROW for each
    # whose row is long
    of_class: Any
    counts: Any  # int64 [COUNTS]
    long_places: Any  # int64: of this step's members whose rows are long


class FrontierRun(NamedTuple):
    """The arrays of a run, as `arguments.Run` has them, and what it takes to list a vertex."""

    slack: Any
    winner: Any  # by place in this sweep's list, where its thread does not have it
    long_lists: Any  # never touched: no blocks share a list of readers
    changed: Any
    barrier: Any
    control: Any  # int64 [3]: `SWEEP`'s sweeps and explored, and this sweep's list
    listed: Listed
    first_id: Any
    id_words: Any
    classes: Any
    indptr: Any  # of the rows
    most_listed: Any  # vertices after a sweep; with more, another engine goes on
    step: Any  # in shared memory, see `StepSlots`; before the kernel has it: any int64


@dataclass(frozen=True)
class ListFunctions:
    """Device functions of the lists."""

    take_one: Any  # from the slack of a vertex, which is listed if that was all
    list_first: Any  # who is active at first; the whole grid calls it
    find_class: Any  # the next one with members; a block calls it


@cuda.jit(device=True)
def class_of(member):
    """Return the class of a member."""
    return member >> BITS_OF_VERTEX


def vertices_of(members):
    """Return the vertices of members, or of one."""
    return members & ((np.int64(1) << BITS_OF_VERTEX) - 1)


vertex_of = cuda.jit(device=True)(vertices_of)


@cuda.jit(device=True)
def spreads_over(which, run, thread):
    """Tell, as one thread of a block does, whether the list of the next sweep is too long."""
    return thread == 0 and load_fresh(run.listed.counts, 1 - which) > run.most_listed


def build(grid_barrier: Any, target: Target) -> ListFunctions:
    """Make the functions."""
    hashed, word_of = target.compile(mix), target.compile(ties.word_of)

    @cuda.jit(device=True)
    def put(run, v):
        """Put a vertex in a list."""
        word = word_of(v, run.first_id, run.id_words)
        number = np.int64(hashed(word, CLASS_SEED) % np.uint64(run.classes))
        which = run.step[STEP.list]
        if number < run.step[STEP.beyond]:
            which = 1 - which
        degree = run.indptr[np.uint64(v + 1)] - run.indptr[np.uint64(v)]
        place = cuda.atomic.add(run.listed.counts, which, np.int64(1))
        run.listed.members[which, place] = (number << BITS_OF_VERTEX) | np.int64(v)
        one = np.int64(1) if degree <= OF_WARP else LONG_ROW + 1
        cuda.atomic.add(run.listed.of_class, which * run.classes + number, one)

    @cuda.jit(device=True)
    def take_one(run, readers, u):
        """Take one from the slack of a vertex, and list it if that was all."""
        if cuda.atomic.add(run.slack, np.uint64(u), np.int32(-1)) == 0:
            put(run, u)

    @cuda.jit(device=True)
    def list_first(active, run, sweep):
        """List who is active at first."""
        i = np.int64(cuda.grid(1))
        while i < active.size:
            v = active[i]
            run.slack[np.uint64(v)] = -1
            put(run, v)
            i += np.int64(cuda.gridsize(1))
        grid_barrier(run, sweep)

    @cuda.jit(device=True)
    def find_class(first, span, run):
        """Find the next class with members, and how many vertices the list has.

        ``first`` is a multiple of ``span``, which says how many classes make a step.
        """
        thread, step = np.int64(cuda.threadIdx.x), run.step
        which, last = step[STEP.list], np.int64(run.classes) - 1
        cuda.syncthreads()
        if thread < LANES:
            if thread == 0:
                step[STEP.count] = load_fresh(run.listed.counts, which)
            found, long = np.int64(-1), False
            while first <= last and found < 0:
                one = min(first + thread, last)
                members = load_fresh(run.listed.of_class, which * run.classes + one)
                bits = cuda.ballot_sync(ALL, members > 0)
                if bits != 0:
                    found = min(first + np.int64(cuda.ffs(bits) - 1), last)
                    # A step of more classes than are looked at together may well have a long row.
                    mine = one // span == found // span
                    long = cuda.any_sync(ALL, mine and (members >= LONG_ROW or span > LANES))
                first += LANES
            if thread == 0:
                step[STEP.found] = found
                step[STEP.long] = long
        cuda.syncthreads()

    return ListFunctions(take_one, list_first, find_class)
