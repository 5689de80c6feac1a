"""Plain votes on CPU cores: gather many rows first, then count them, almost without branches.

The loop that reads rows and labels does nothing else, so the processor runs far ahead of its cache
misses; a loop full of branches could not, and took three times as long on com-dblp in 16 classes.
The rows are copied into the order in which they are read, class after class: 32 classes would
otherwise touch 32 times as many cache lines of offsets, and sweeps took twice as long.
The counting loop then works on what is in the first cache, and on a table with an entry of
``stamp << 32 | votes`` a label: an older stamp means no votes yet, so nothing is ever cleared. A
label that more than half of the neighbours hold has won, and the current label is tried first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from glp_rapids.jit.cpu import compiled as compiled_for_cpu
from glp_rapids.jit.parallel import ParallelKernel, together
from glp_rapids.propagation import slack as slack_rule
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.ties import TIE_HASH, TIE_MAX

BUFFER = 4096  # labels gathered before they are counted: 16 KB, half of a first cache
LARGEST_TABLE = 1 << 25  # vertices: 256 MB a thread; larger graphs take the table of slots

slack_of = compiled_for_cpu(error_model="numpy")(slack_rule.slack_of)

LOW = np.uint64(0xFFFFFFFF)
WORD = np.uint64(32)
ONE = np.uint64(1)


@compiled_for_cpu(error_model="numpy")
def _copy_some_rows(thread, threads, vertices, indptr, entries, starts, copy):
    first = vertices.size * thread // threads
    last = vertices.size * (thread + 1) // threads
    for position in range(first, last):
        k = starts[np.uint64(position)]
        j = indptr[np.uint64(vertices[np.uint64(position)])]
        end = starts[np.uint64(position + 1)]
        while k < end:
            copy[np.uint64(k)] = entries[np.uint64(j)]
            k += 1
            j += 1


@ParallelKernel
def _copy_rows(team, vertices, indptr, entries, starts, copy):
    together(team, _copy_some_rows, (team.threads, vertices, indptr, entries, starts, copy))


def rows_in_order(
    vertices: np.ndarray, indptr: np.ndarray, entries: tuple[np.ndarray, ...], threads: int
) -> tuple[np.ndarray, ...]:
    """Copy the rows of ``vertices``, in their order: where they start, then each of ``entries``."""
    degrees = np.diff(indptr)[vertices]
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(degrees)])
    if threads == 1:  # a small graph is not worth compiled code
        moved = np.repeat(indptr[vertices] - starts[:-1], degrees)
        moved += np.arange(moved.size)
        return starts, *(array[moved] for array in entries)
    copies = tuple(np.empty_like(array) for array in entries)
    for array, copy in zip(entries, copies, strict=True):
        _copy_rows(threads, vertices, indptr, array, starts, copy)
    return starts, *copies


def build(compiled: Compiled, chunk: int) -> Callable:
    """Make ``evaluate_chunk`` for programs whose votes all count one and whose score is the sum."""
    plain, bears = compiled.traits.plain, compiled.traits.bears_changes
    preferred = compiled.preferred

    @compiled_for_cpu(error_model="numpy")
    def chosen_of(buffer, begin, end, table, best, current, ties):
        """Return the label that settles a tie between those with ``best`` in the table."""
        winner = np.int64(-1)
        for j in range(begin, end):
            label = np.int64(buffer[np.uint64(j)])
            if (
                table[np.uint64(label)] == best
                and label != winner
                and (winner < 0 or preferred(label, winner, current, *ties))
            ):
                winner = label
        return winner

    @compiled_for_cpu(error_model="numpy")
    def count(buffer, begin, end, table, stamp, current, rule):
        """Return (winner, votes, tied) of the labels in ``buffer[begin:end]``, not empty."""
        retain, tie_break, _, _, _ = rule.ties
        own = np.int64(0)
        j = begin
        while j < end:
            own += np.int64(buffer[np.uint64(j)] == current)
            j += 1
        if 2 * own > end - begin:
            return np.int64(current), own, False
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
        votes = key >> WORD
        winner = np.int64((key & LOW) ^ flip)
        tied = False
        if retain and current >= 0 and table[np.uint64(current)] == none + votes:
            return np.int64(current), np.int64(votes), False
        if tie_break == TIE_HASH:
            holders = np.uint64(0)
            for j in range(begin, end):
                holders += np.uint64(table[np.uint64(buffer[np.uint64(j)])] == none + votes)
            if holders != votes:
                tied = True
                winner = chosen_of(buffer, begin, end, table, none + votes, current, rule.ties)
        return winner, np.int64(votes), tied

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
        table, stamps, buffer, ends, gathered = scratch
        labels = state.labels
        if stamps[0] + chunk >= 1 << 32:
            table[:] = 0
            stamps[0] = 0
        listed = low
        position = low
        while position < high:
            filled = 0
            rows = 0
            while position < high and (rows == 0 or filled < BUFFER):
                v = np.uint64(vertices[np.uint64(position)])
                j = indptr[np.uint64(position)]
                position += 1
                end = indptr[np.uint64(position)]
                if skip:
                    if slack[v] >= 0 and not (revisit_tied and tied[v] != 0):
                        continue
                    slack[v] = 0
                while j < end:
                    label = labels[np.uint64(indices[np.uint64(j)])]
                    buffer[np.uint64(filled)] = label
                    filled += np.int64(label >= 0)  # the next one overwrites a silent one
                    j += 1
                gathered[rows] = v
                ends[rows] = filled
                rows += 1
            begin = 0
            for row in range(rows):
                end = ends[row]
                if end == begin:
                    continue
                v = np.uint64(gathered[row])
                current = labels[v]
                stamps[0] += 1
                label, votes, was_tied = count(buffer, begin, end, table, stamps[0], current, rule)
                if skip and bears:
                    slack[v] = slack_of(votes, end - begin, np.int64(1))
                begin = end
                if exploring:
                    tied[v] = was_tied
                if plain and label == current:
                    continue
                winner_vertex[listed] = v
                winner_label[listed] = label
                winner_score[listed] = votes
                listed += 1
        return listed - low

    return evaluate_chunk
