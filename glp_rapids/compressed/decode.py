"""From compressed rows back to a CSR, or to some of its rows.

A thread reads a list; of a list that is cut, a part.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.segments import segment_offsets
from glp_rapids.compressed.encode import cut_lists, row_of_part
from glp_rapids.compressed.format import neighbour_list, unordered
from glp_rapids.compressed.format.layout import BLOCK, CompressedRows, Settings
from glp_rapids.compressed.format.neighbour_list import ListFunctions
from glp_rapids.compressed.format.scheme import Function
from glp_rapids.device import array_module
from glp_rapids.jit.parallel_for import each
from glp_rapids.jit.target import Target

Array = Any


class Skimming(NamedTuple):
    """What `skim` works on."""

    settings: Settings
    tables: Array
    words: Array
    block_starts: Array
    offsets: Array
    degrees: Array


class Decoding(NamedTuple):
    """What `decode_rows` works on."""

    settings: Settings
    tables: Array
    words: Array
    offsets: Array
    vertices: Array  # whose lists; none: all
    cut: Array  # the places in ``vertices`` of those whose lists are cut into parts
    first_part: Array  # of each of these, and the number of parts
    starts: Array
    out: Array


def skim(rows: CompressedRows) -> tuple[Array, Array]:
    """Find the bit where each list begins (int64) and its degree; a thread reads 32 lists."""
    xp, n = array_module(rows.words), rows.number_of_vertices
    offsets, degrees = xp.empty(n, np.int64), xp.empty(n, rows.index_dtype)
    work = Skimming(rows.settings, rows.tables, rows.words, rows.block_starts, offsets, degrees)
    each(functions, rows.layout.scheme, "skim_block", rows.block_bytes.size, work, rows.device)
    return offsets, degrees


def decode(rows: CompressedRows) -> tuple[Array, Array]:
    """Decompress all lists.

    Parameters
    ----------
    rows : CompressedRows
        On either device.

    Returns
    -------
    indptr : int64 array of n + 1
        Where the rows start.
    indices : int32 or int64 array of m
        The entries.
    """
    indptr = segment_offsets(rows.degrees)
    indices = array_module(indptr).empty(rows.number_of_edges, rows.index_dtype)
    decode_rows(rows, None, indices, indptr)
    return indptr, indices


def decode_rows(
    rows: CompressedRows,
    vertices: Array | None,
    out: Array,
    starts: Array,
    *,
    in_order: bool = True,
) -> None:
    """Write some lists out, each where it is wanted.

    Parameters
    ----------
    rows : CompressedRows
        On either device.
    vertices : int array or None
        Whose lists; None: all of them.
    out : int32 or int64 array
        Where to.
    starts : int64 array
        ``out[starts[i]]`` becomes the first entry of the list of ``vertices[i]``. There may be
        more than there are vertices, as in an ``indptr``.
    in_order : bool
        False: the entries of a list may come in any order, which takes a GPU a tenth less time.
    """
    xp = array_module(rows.words)
    degrees = rows.degrees if vertices is None else rows.degrees[vertices]
    if degrees.size == 0:
        return
    cut, first_part = cut_lists(degrees, rows.settings)
    every = xp.empty(0, rows.index_dtype)
    work = Decoding(
        settings=rows.settings, tables=rows.tables, words=rows.words, offsets=rows.offsets,
        vertices=every if vertices is None else vertices, cut=cut, first_part=first_part,
        starts=starts, out=out,
    )  # fmt: skip
    how = functions if in_order else functions_in_no_order
    each(how, rows.layout.scheme, "read_list", degrees.size, work, rows.device)
    each(how, rows.layout.scheme, "read_part", int(first_part[-1]), work, rows.device)


@functools.cache
def functions(scheme: str, target: Target) -> dict[str, Function]:
    """Compile the functions that take an item and a `Skimming` or `Decoding`."""
    return _functions(neighbour_list.build(scheme, target), target)


@functools.cache
def functions_in_no_order(scheme: str, target: Target) -> dict[str, Function]:
    """Compile `functions` that leave the entries of a list in no order."""
    return _functions(unordered.in_no_order(scheme, target), target)


def _functions(on_lists: ListFunctions, target: Target) -> dict[str, Function]:
    device = target.device_function
    read_degree, skip_list = on_lists.read_degree, on_lists.skip_list
    read_list_of, read_part_of = on_lists.read_list, on_lists.read_part
    part_bit = on_lists.part_bit
    find_row = device(row_of_part)

    @device
    def skim_block(block, work):
        settings = work.settings
        bit = work.block_starts[block]
        for v in range(block * BLOCK, min((block + 1) * BLOCK, work.offsets.size)):
            work.offsets[v] = bit
            degree, bit = read_degree(work.words, work.tables, bit, settings)
            work.degrees[v] = degree
            bit = skip_list(work.words, work.tables, bit, degree, settings)

    @device
    def vertex_of(work, i):
        return np.int64(work.vertices[i]) if work.vertices.size > 0 else i

    @device
    def read_list(i, work):
        settings = work.settings
        v = vertex_of(work, i)
        degree, bit = read_degree(work.words, work.tables, work.offsets[v], settings)
        if degree <= max(settings.raw_below, settings.segment):
            read_list_of(
                work.words, work.tables, bit, v, degree, settings, work.out, work.starts[i]
            )

    @device
    def read_part(part, work):
        settings = work.settings
        row = find_row(work.first_part, part)
        i = work.cut[row]
        v = vertex_of(work, i)
        degree, bit = read_degree(work.words, work.tables, work.offsets[v], settings)
        number = part - work.first_part[row]
        before = number << settings.segment_shift
        count = min(settings.segment, degree - before)
        bit = part_bit(work.words, bit, degree, number, settings)
        place = work.starts[i] + before
        read_part_of(work.words, work.tables, bit, v, count, settings, work.out, place)

    return {"skim_block": skim_block, "read_list": read_list, "read_part": read_part}
