"""Sweeps over few active vertices: a list of them for each class, and nothing that looks at all.

The other kernels look through all vertices for the active ones, and have copied all rows class by
class before: worth it where labels spread, but a hundred times the work where one edge in a
thousand has changed. Here the rows of the active vertices of a class are copied, chunk by chunk, to
where the same functions as elsewhere evaluate them; who is woken is put in the list of its class.
One thread does it: two hundred microseconds are not worth waking another for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cache import keep_on_disk, kept
from glp_rapids.jit.cpu import compiled as compiled_for_cpu
from glp_rapids.jit.target import DigestCache
from glp_rapids.propagation.compile_program import Compiled, built_once
from glp_rapids.propagation.kernels.cpu.class_lists import class_of
from glp_rapids.propagation.kernels.cpu.hash_votes import CHUNK, chunks_of


class Lists(NamedTuple):
    """The active vertices: a linked list for each class, in no order that would matter."""

    head: Any  # the first vertex of each class, or -1
    following: Any  # by vertex: the next one in its list, or -1
    listed: Any  # by vertex: whether it is in a list
    count: Any  # how many are, one element


def lists_of(classes: int, number_of_vertices: int, index_dtype: Any) -> Lists:
    """Make empty lists."""
    return Lists(
        np.full(classes, -1, index_dtype), np.empty(number_of_vertices, index_dtype),
        np.zeros(number_of_vertices, np.uint8), np.zeros(1, np.int64),
    )  # fmt: skip


jit = compiled_for_cpu(error_model="numpy")


@jit
def _put(v, id_words, lists):
    """Put an active vertex in the list of its class, unless it is there."""
    head, following, listed, count = lists
    first, words = id_words
    if listed[v] == 0:
        listed[v] = 1
        number = class_of(v, first, words, head.size)
        following[v] = head[number]
        head[number] = v
        count[0] += 1


@kept(error_model="numpy")
def put_all(vertices, id_words, lists):
    """Put active vertices in the lists of their classes."""
    for v in vertices:
        _put(v, id_words, lists)


@built_once
def sweep_kernel(compiled: Compiled, stamped: bool) -> Callable:
    """Compile the sweep for one program that is plain; see `hash_votes.chunks_of`."""
    State, weighted = compiled.state_type, compiled.traits.weighted
    evaluate_chunk, update_chunk, scratch_of = chunks_of(compiled, stamped)

    @jit
    def take(first, beyond, lists, chosen):
        """Move the vertices of some classes from their lists to ``chosen``; return how many."""
        head, following, listed, count = lists
        size = 0
        for number in range(first, beyond):
            v = head[number]
            while v >= 0:
                chosen[size] = v
                listed[v] = 0
                v = following[v]
                size += 1
            head[number] = -1
        count[0] -= size
        return size

    @jit
    def read(chosen, low, size, indptr, indices, weights, starts, neighbours, amounts):
        """Copy the rows of a chunk of ``chosen[:size]``, from ``low`` on; return where it ends."""
        high, entry = low, 0
        while high < size and high - low < CHUNK:
            v = np.uint64(chosen[high])
            begin, end = indptr[v], indptr[v + np.uint64(1)]
            if high > low and entry + end - begin > neighbours.size:
                break
            for j in range(begin, end):
                neighbours[np.uint64(entry)] = indices[np.uint64(j)]
                if weighted:
                    amounts[np.uint64(entry)] = weights[np.uint64(j)]
                entry += 1
            high += 1
            starts[high - low] = entry
        return high

    @jit
    def sweep_lists(
        span, rows, readers, buffer, fields, rule, tables, slack, tied, id_words, lists, chosen,
        winners, old, errors,
    ):  # fmt: skip
        indptr, indices, weights = rows
        readers_indptr, readers_indices = readers
        starts, neighbours, amounts = buffer
        winner_vertex, winner_label, winner_score = winners
        state, scratch = State(*fields), scratch_of(tables, 0)
        changed = 0
        for first in range(0, lists.head.size, span):
            size = take(first, min(first + span, lists.head.size), lists, chosen)
            low, won = 0, 0
            while low < size:
                high = read(
                    chosen, low, size, indptr, indices, weights, starts, neighbours, amounts
                )
                won += evaluate_chunk(
                    0, high - low, chosen[low:high], starts[: high - low + 1], neighbours,
                    amounts, state, (True, False), rule, scratch, slack, tied,
                    (winner_vertex[won:], winner_label[won:], winner_score[won:]), errors,
                )  # fmt: skip
                low = high
            changed += update_chunk(
                0, won, readers_indptr, readers_indices, state, rule.scale, True, slack, winners,
                old, errors,
            )  # fmt: skip
            for position in range(won):
                v = winner_vertex[position]
                if state.labels[v] != old[position]:
                    for j in range(readers_indptr[v], readers_indptr[v + 1]):
                        reader = readers_indices[j]
                        if slack[reader] < 0:
                            _put(reader, id_words, lists)
        return changed

    def sweep(
        span, rows, readers, buffer, fields, rule, tables, slack, tied, id_words, lists, chosen,
        winners, old, errors,
    ):  # fmt: skip
        return sweep_lists(
            span, rows, readers, buffer, fields, rule, tables, slack, tied, id_words, lists,
            chosen, winners, old, errors,
        )  # fmt: skip

    kernel = compiled_for_cpu(error_model="numpy")(sweep)
    return keep_on_disk(kernel, DigestCache.of, sweep, compiled)
