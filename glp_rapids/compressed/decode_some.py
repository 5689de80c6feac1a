"""Some lists of a compressed graph, decoded on the CPU: those a sweep asks for."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from glp_rapids.compressed.format import neighbour_list
from glp_rapids.compressed.rows import CompressedCSR
from glp_rapids.compressed.weights import CodedWeights, EqualWeights
from glp_rapids.jit.cpu import compiled as compiled_for_cpu
from glp_rapids.jit.parallel import ParallelKernel, threads_available, together
from glp_rapids.jit.target import DigestCache, cpu_target

Array = Any
PARALLEL_FROM = 1 << 12  # entries: fewer are decoded before other threads have begun
CHUNK = 64  # lists that a thread takes at a time
LONG = 1 << 15  # entries: the parts of a longer list are read by all threads


def read_lists(
    rows: CompressedCSR, vertices: Array, starts: Array, indices: Array, weights: Array | None
) -> None:
    """Write the neighbours of ``vertices[i]`` to ``indices[starts[i]:starts[i + 1]]``, on the CPU.

    And their weights to the same places of ``weights``, unless that is None. A call costs little:
    `decode.decode_rows` is for many lists at a time.
    """
    threads = threads_available() if starts[-1] >= PARALLEL_FROM else 1
    places = vertices if rows.place is None else rows.place[vertices]
    order = np.empty(0, rows.index_dtype) if rows.order is None else rows.order
    held = rows.lists
    _reader(held.layout.scheme)(
        threads, held.settings, held.words, held.tables, held.offsets, places, order, starts,
        indices, np.zeros(threads, np.int64),
    )  # fmt: skip
    if weights is None:
        return
    if isinstance(rows.weights, EqualWeights):
        weights[: starts[-1]] = rows.weights.values
        return
    word = f"u{weights.itemsize}"  # weights of one size are copied by the same code
    given, copy = rows.weights, weights.view(word)
    if isinstance(given, CodedWeights):
        entries, values = given.codes, given.values.view(word)
    else:
        entries, values = given.view(word), None
    copy_entries(threads, places, rows.entry_starts, entries, values, starts, copy)


@functools.cache
def _reader(scheme: str) -> Callable:
    """Compile what decodes lists of a scheme, and puts the vertex for every place."""
    scalar = neighbour_list.build(scheme, cpu_target())
    read_degree, read_list = scalar.read_degree, scalar.read_list
    read_part, part_bit = scalar.read_part, scalar.part_bit

    @compiled_for_cpu(error_model="numpy")
    def read_parts(words, tables, bit, v, degree, first, last, settings, order, start, out):
        for part in range(first, last):
            before = part << settings.segment_shift
            count = min(settings.segment, degree - before)
            here = part_bit(words, bit, degree, part, settings)
            read_part(words, tables, here, v, count, settings, out, start + before)
            name(order, out, start + before, start + before + count)

    @compiled_for_cpu(error_model="numpy")
    def name(order, out, first, last):
        if order.size > 0:
            for j in range(first, last):
                out[np.uint64(j)] = order[np.uint64(out[np.uint64(j)])]

    @compiled_for_cpu(error_model="numpy")
    def read_some(
        thread, threads, undivided, settings, words, tables, offsets, places, order, starts, out,
        left,
    ):  # fmt: skip
        """Read the lists of one thread, but for the longest; count those."""
        chunks = (places.size + CHUNK - 1) // CHUNK
        for chunk in range(thread, chunks, threads):
            for i in range(chunk * CHUNK, min((chunk + 1) * CHUNK, places.size)):
                v, start = np.int64(places[i]), starts[i]
                degree, bit = read_degree(words, tables, offsets[v], settings)
                if degree <= undivided:
                    read_list(words, tables, bit, v, degree, settings, out, start)
                    name(order, out, start, start + degree)
                elif degree <= LONG:
                    parts = (degree + settings.segment - 1) >> settings.segment_shift
                    read_parts(words, tables, bit, v, degree, 0, parts, settings, order, start, out)
                else:
                    left[thread] += 1

    @compiled_for_cpu(error_model="numpy")
    def share_parts(
        thread, threads, words, tables, bit, v, degree, parts, settings, order, start, out
    ):
        """Read one thread's parts of a long list."""
        first, last = parts * thread // threads, parts * (thread + 1) // threads
        read_parts(words, tables, bit, v, degree, first, last, settings, order, start, out)

    def read(team, settings, words, tables, offsets, places, order, starts, out, left):
        undivided = max(settings.raw_below, settings.segment)
        threads = team.threads
        together(team, read_some, (
            threads, undivided, settings, words, tables, offsets, places, order, starts, out, left,
        ))  # fmt: skip
        long_lists = 0
        for thread in range(threads):
            long_lists += left[thread]
        if long_lists > 0:
            for i in range(places.size):
                if starts[i + 1] - starts[i] > max(undivided, LONG):
                    v, start = np.int64(places[i]), starts[i]
                    degree, bit = read_degree(words, tables, offsets[v], settings)
                    parts = (degree + settings.segment - 1) >> settings.segment_shift
                    together(team, share_parts, (
                        threads, words, tables, bit, v, degree, parts, settings, order, start, out,
                    ))  # fmt: skip

    return ParallelKernel(read, partial(DigestCache.of, beside=scheme))


@compiled_for_cpu(error_model="numpy")
def _copy_some(thread, threads, places, from_starts, entries, values, starts, copy):
    first = places.size * thread // threads
    last = places.size * (thread + 1) // threads
    for position in range(first, last):
        k = starts[np.uint64(position)]
        end = starts[np.uint64(position + 1)]
        j = from_starts[np.uint64(places[np.uint64(position)])]
        while k < end:
            entry = entries[np.uint64(j)]
            if values is None:
                copy[np.uint64(k)] = entry
            else:
                copy[np.uint64(k)] = values[np.uint64(entry)]
            k += 1
            j += 1


@ParallelKernel
def copy_entries(team, places, from_starts, entries, values, starts, copy):
    """Copy the entries of some places; with ``values`` they are codes of those."""
    arguments = team.threads, places, from_starts, entries, values, starts, copy
    together(team, _copy_some, arguments)
