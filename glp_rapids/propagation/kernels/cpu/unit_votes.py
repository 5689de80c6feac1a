"""Plain votes on CPU cores: gather many rows first, then count them, almost without branches.

The loop that reads rows and labels does nothing else, so the processor runs far ahead of its cache
misses; a loop full of branches could not, and took three times as long on com-dblp in 16 classes.
The rows are copied into the order in which they are read, class after class: 32 classes would
otherwise touch 32 times as many cache lines of offsets, and sweeps took twice as long.
What is counted then is in the first cache. Short rows are counted in vector registers, see
`short_rows`, others on a table with an entry of ``stamp << 32 | votes`` a label: an older stamp
means no votes yet, so nothing is ever cleared. In rows of more than 16 the current label is tried
first: if more than half of the neighbours hold it, it has won.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from glp_rapids.jit.cpu import compiled as compiled_for_cpu
from glp_rapids.jit.parallel import ParallelKernel, together
from glp_rapids.jit.target import cpu_target
from glp_rapids.propagation import slack as slack_rule
from glp_rapids.propagation import ties as tie_rules
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.kernels.cpu.short_rows import (
    FEW,
    MANY,
    SOME,
    STEP,
    leaders_of_few,
    leaders_of_many,
    leaders_of_some,
    move,
)
from glp_rapids.propagation.ties import TIE_HASH, TIE_MAX

BUFFER = 4096  # labels gathered before they are counted: 16 KB, half of a first cache
WORTH_COMPILING = 1 << 16  # entries to copy
LARGEST_TABLE = 1 << 25  # vertices: 256 MB a thread; larger graphs take the table of slots

# A call of a function that takes arrays, dozens of arguments, costs more than most rows do.
inlined = compiled_for_cpu(error_model="numpy", forceinline=True)
slack_of = compiled_for_cpu(error_model="numpy")(slack_rule.slack_of)
order_key = cpu_target().compile(tie_rules.order_key)

LOW = np.uint64(0xFFFFFFFF)
WORD = np.uint64(32)
ONE = np.uint64(1)
NEVER, NOBODY = np.uint64(0xFFFFFFFFFFFFFFFF), np.int64(0x7FFFFFFFFFFFFFFF)  # after all others


@compiled_for_cpu(error_model="numpy")
def _copy_some_rows(thread, threads, vertices, indptr, entries, starts, copy):
    first = vertices.size * thread // threads
    last = vertices.size * (thread + 1) // threads
    beyond = starts[np.uint64(last)]  # where the next thread writes
    for position in range(first, last):
        k = starts[np.uint64(position)]
        j = indptr[np.uint64(vertices[np.uint64(position)])]
        end = starts[np.uint64(position + 1)]
        while k < end and k + STEP <= beyond and j + STEP <= entries.size:
            move(entries, np.uint64(j), copy, np.uint64(k))  # the next row writes over the rest
            k += STEP
            j += STEP
        while k < end:
            copy[np.uint64(k)] = entries[np.uint64(j)]
            k += 1
            j += 1


@ParallelKernel
def copy_rows(team, vertices, indptr, entries, starts, copy):
    """Copy the rows of ``vertices``, row i to ``copy[starts[i]:starts[i + 1]]``, one after another.

    ``entries`` and ``copy`` are arrays without gaps.
    """
    together(team, _copy_some_rows, (team.threads, vertices, indptr, entries, starts, copy))


def starts_in_order(vertices: np.ndarray, indptr: np.ndarray, starts: np.ndarray) -> None:
    """Write where rows start when they follow one another in the order of ``vertices``."""
    starts[0], degrees = 0, starts[1:]
    np.take(indptr[1:], vertices, out=degrees, mode="clip")
    degrees -= indptr[vertices]
    np.cumsum(degrees, out=degrees)


def rows_in_order(
    vertices: np.ndarray, indptr: np.ndarray, starts: np.ndarray, entries: np.ndarray,
    copy: np.ndarray, threads: int,
) -> None:  # fmt: skip
    """Copy the rows of ``vertices``, which start at ``starts`` then."""
    if starts[-1] < WORTH_COMPILING:
        moved = np.repeat(indptr[vertices] - starts[:-1], np.diff(starts))
        moved += np.arange(moved.size)
        np.take(entries, moved, out=copy, mode="clip")
        return
    copy_rows(threads, vertices, indptr, np.ascontiguousarray(entries), starts, copy)


@inlined
def gather(active, row, rows, adjacent, indptr, indices, labels, buffer, ends):
    """Gather the labels of neighbours for many rows, from one on; return the row after them.

    Returns, too, whether any neighbour is silent. Rows that are ``adjacent`` are read as if they
    were one. Of others ``STEP`` labels are gathered at once, beyond the end of a row, where the
    next one is written: most rows end within a step or two, so the processor knows when.
    """
    known = indptr[np.uint64(indptr.size - 1)]  # beyond, a buffer of decoded rows holds anything
    filled = 0
    signs = np.int64(0)
    while row < rows and filled < BUFFER:
        place = active[np.uint64(row)]
        j, end, offset = indptr[np.uint64(place)], indptr[np.uint64(place + 1)], filled
        while True:
            filled = offset + end - j
            ends[np.uint64(row)] = filled
            row += 1
            place += 1
            if not adjacent or row == rows or filled >= BUFFER:
                break
            end = indptr[np.uint64(place + 1)]
        while j < end and j + STEP <= known:
            for k in range(STEP):
                label = labels[np.uint64(indices[np.uint64(j + k)])]
                buffer[np.uint64(offset + k)] = label
                signs |= label
            j += STEP
            offset += STEP
        while j < end:
            label = labels[np.uint64(indices[np.uint64(j)])]
            buffer[np.uint64(offset)] = label
            signs |= label
            j += 1
            offset += 1
    return row, signs < 0


@inlined
def leave_out_silent(first, beyond, buffer, ends):
    """Close the gaps that silent neighbours make in the gathered rows."""
    begin = filled = 0
    for row in range(first, beyond):
        end = ends[np.uint64(row)]
        for j in range(begin, end):
            label = buffer[np.uint64(j)]
            buffer[np.uint64(filled)] = label
            filled += np.int64(label >= 0)
        begin = end
        ends[np.uint64(row)] = filled


def build(compiled: Compiled, chunk: int) -> Callable:
    """Make ``evaluate_chunk`` for programs whose votes all count one and whose score is the sum."""
    plain, bears = compiled.traits.plain, compiled.traits.bears_changes

    @inlined
    def first_of(buffer, begin, end, leaders, table, best, ties):
        """Return which label comes first of those that lead: that is what settles a tie.

        ``leaders`` has a bit for the place of each; if it is 0 they have ``best`` in the table.
        """
        _, tie_break, seed, first, words = ties
        winner = NOBODY
        earliest = NEVER
        for j in range(begin, end):
            label = np.int64(buffer[np.uint64(j)])
            if leaders == 0:
                leads = table[np.uint64(label)] == best
            else:
                leads = (leaders >> np.uint64(j - begin)) & ONE != 0
            key = order_key(label, tie_break, seed, first, words)
            if leads & ((key < earliest) | ((key == earliest) & (label < winner))):
                winner = label
                earliest = key
        return winner

    @inlined
    def count_in_table(buffer, begin, end, table, stamp, current, own, rule):
        """Return (winner, votes, tied) of a long row, of whose labels ``own`` are the current."""
        retain, tie_break, _, _, _ = rule.ties
        # The higher key has more votes, or as many for a label that comes first.
        flip = np.uint64(0) if tie_break == TIE_MAX else LOW
        none = np.uint64(stamp) << WORD
        key = np.uint64(0)
        j = begin
        while j < end:
            label = np.uint64(buffer[np.uint64(j)])
            entry = table[label]
            if entry < none:
                entry = none
            entry += ONE
            table[label] = entry
            this = ((entry - none) << WORD) | (label ^ flip)
            if this > key:
                key = this
            j += 1
        votes = np.int64(key >> WORD)
        winner = np.int64((key & LOW) ^ flip)
        if retain and current >= 0 and own == votes:
            return np.int64(current), votes, False
        if tie_break == TIE_HASH:
            best = none + np.uint64(votes)
            holders = np.int64(0)
            for j in range(begin, end):
                holders += np.int64(table[np.uint64(buffer[np.uint64(j)])] == best)
            if holders != votes:
                winner = first_of(buffer, begin, end, np.uint64(0), table, best, rule.ties)
                return winner, votes, True
        return winner, votes, False

    @inlined
    def count(buffer, begin, end, table, stamps, current, rule):
        """Return (winner, votes, tied) of the labels in ``buffer[begin:end]``, not empty."""
        retain, tie_break, _, _, _ = rule.ties
        place, size, largest = np.uint64(begin), end - begin, tie_break == TIE_MAX
        if size > SOME:
            own = np.int64(0)
            j = begin
            while j < end:
                own += np.int64(buffer[np.uint64(j)] == current)
                j += 1
            if 2 * own > size:
                return np.int64(current), own, False
            if size > MANY:
                stamps[0] += 1
                return count_in_table(buffer, begin, end, table, stamps[0], current, own, rule)
            found = leaders_of_many(buffer, place, size, current, largest)
        elif size > FEW:
            found = leaders_of_some(buffer, place, size, current, largest)
        else:
            found = leaders_of_few(buffer, place, size, current, largest)
        votes, winner, leaders, holders, own_leads = found
        if retain and current >= 0 and own_leads != 0:
            return np.int64(current), votes, False
        if tie_break == TIE_HASH and holders != votes:
            places, none = np.uint64(leaders), np.uint64(0)
            return first_of(buffer, begin, end, places, table, none, rule.ties), votes, True
        return winner, votes, False

    @compiled_for_cpu(error_model="numpy")
    def evaluate_chunk(
        low, high, vertices, indptr, indices, weights, state, flags, rule, scratch,
        slack, tied, winners, errors,
    ):  # fmt: skip
        """Evaluate the active vertices of ``vertices[low:high]``; list those to update from low.

        ``indptr`` and ``indices`` are in the order of ``vertices``.
        """
        skip, revisit_tied = flags
        _, tie_break, _, _, _ = rule.ties
        exploring = tie_break == TIE_HASH
        winner_vertex, winner_label, winner_score = winners
        table, stamps, buffer, ends, active = scratch
        labels = state.labels
        if stamps[0] + chunk >= 1 << 32:
            table[:] = 0
            stamps[0] = 0
        rows = 0
        for place in range(low, high):
            v = np.uint64(vertices[np.uint64(place)])
            active[np.uint64(rows)] = place
            wanted = (slack[v] < 0) | (revisit_tied & (tied[v] != 0))
            rows += np.int64(wanted | (not skip))
        listed = low
        row = 0
        while row < rows:
            first = row
            row, silent = gather(
                active, row, rows, rows == high - low, indptr, indices, labels, buffer, ends
            )
            if silent:
                leave_out_silent(first, row, buffer, ends)
            begin = 0
            for place in range(first, row):
                end = ends[np.uint64(place)]
                v = np.uint64(vertices[np.uint64(active[np.uint64(place)])])
                if end == begin:
                    if skip:
                        slack[v] = 0
                    continue
                current = labels[v]
                label, votes, was_tied = count(buffer, begin, end, table, stamps, current, rule)
                if skip:
                    left = np.int32(0)
                    if bears:
                        left = slack_of(votes, end - begin, np.int64(1))
                    slack[v] = left
                begin = end
                if exploring:
                    tied[v] = was_tied
                winner_vertex[np.uint64(listed)] = v
                winner_label[np.uint64(listed)] = label
                winner_score[np.uint64(listed)] = votes
                listed += np.int64(not plain or label != current)
        return listed - low

    return evaluate_chunk
