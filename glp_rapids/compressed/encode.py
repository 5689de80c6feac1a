"""From a CSR to compressed rows: sizes, then where everything goes, then the writing.

A thread measures and writes a list; of a list that is cut, a part. What is written does not depend
on the order in which it is, so it is the same on both devices, byte for byte.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.segments import segment_offsets
from glp_rapids.compressed.choose_codes import histograms
from glp_rapids.compressed.format import bits, code_tables, neighbour_list, packed_tables
from glp_rapids.compressed.format.layout import (
    BLOCK,
    PADDING,
    WIDTH_BITS,
    CompressedRows,
    Layout,
    Settings,
    settings,
    starts_of,
)
from glp_rapids.compressed.format.scheme import Function
from glp_rapids.device import array_module
from glp_rapids.graph.rows import CSR
from glp_rapids.jit.parallel_for import each
from glp_rapids.jit.target import Target

Array = Any

ZERO, ONE = np.int64(0), np.int64(1)
UNSORTED, TOO_LARGE = 0, 1  # places in `problems`


class Encoding(NamedTuple):
    """What the functions work on."""

    settings: Settings
    tables: Array  # for writing
    indptr: Array
    indices: Array
    bits: Array  # of every list; later where it begins
    cut: Array  # the vertices whose lists are cut into parts
    first_part: Array  # of each of these, and the number of parts
    part_ends: Array  # bits of all parts up to and with one; a zero before those
    block_bytes: Array
    block_starts: Array
    words: Array
    problems: Array


def encode(csr: CSR, layout: Layout, widths: np.ndarray | None = None) -> CompressedRows:
    """Compress the rows of a CSR where it lives.

    Parameters
    ----------
    csr : CSR
        Rows ascend without duplicates; weights are not looked at.
    layout : Layout
        How.
    widths : uint32 array, optional
        The tables of "packed", if they are not to be made for these rows.

    Returns
    -------
    CompressedRows
        On the same device.

    Raises
    ------
    ValueError
        A row does not ascend or has an entry twice, an entry is no vertex, or 32 lists together
        take 4 GiB or more.

    Notes
    -----
    Beside the CSR and the result: 16 bytes a vertex, and 16 bytes for each part of a list that is
    longer than ``layout.segment``.
    """
    xp, device = array_module(csr.indptr), csr.device
    n, m = csr.number_of_vertices, csr.number_of_edges
    scalars = settings(layout, n)
    cut, first_part = cut_lists(csr.degree, scalars)
    tables = codes = xp.zeros(1, np.uint32)
    if layout.scheme == "packed":
        if widths is None:
            widths = packed_tables.tables_of(histograms(csr, layout), layout, n)
        tables = codes = xp.asarray(widths)
    elif layout.scheme == "entropy":
        own = code_tables.tables_of(code_tables.count(csr, scalars, cut, first_part))
        tables, codes = xp.asarray(own), xp.asarray(code_tables.codes_of(own))
    work = Encoding(
        settings=scalars, tables=codes, indptr=csr.indptr, indices=csr.indices,
        bits=xp.empty(n, np.int64), cut=cut, first_part=first_part,
        part_ends=xp.zeros(int(first_part[-1]) + 1, np.int64),
        block_bytes=xp.empty(-(-n // BLOCK), np.uint32), block_starts=xp.empty(0, np.int64),
        words=xp.empty(0, np.uint32), problems=xp.zeros(2, np.int64),
    )  # fmt: skip

    def run(name: str, items: int) -> None:
        each(functions, layout.scheme, name, items, work, device)

    parts = work.part_ends.size - 1
    run("measure_list", n)
    run("measure_part", parts)
    unsorted = int(work.problems[UNSORTED])
    if unsorted:
        raise ValueError(
            f"row {unsorted - 1} does not ascend, has an entry twice or one that is no vertex"
        )
    xp.cumsum(work.part_ends, out=work.part_ends)
    run("measure_cut_list", cut.size)
    run("measure_block", work.block_bytes.size)
    if int(work.problems[TOO_LARGE]):
        raise ValueError("32 lists that follow one another take 4 GiB or more")
    starts = starts_of(work.block_bytes)
    words = xp.zeros((int(starts[-1]) + 31) // 32 + PADDING, np.uint32)
    work = work._replace(block_starts=starts, words=words)
    run("place_lists", work.block_bytes.size)
    run("write_list", n)
    run("write_part_end", parts)
    run("write_part", parts)
    rows = CompressedRows(layout, n, m, words, work.block_bytes, tables)
    rows.keep("block_starts", lambda: starts)
    return rows


def cut_lists(degrees: Array, settings: Settings) -> tuple[Array, Array]:
    """Find which lists are cut, by number, and count the parts of all those before each."""
    xp = array_module(degrees)
    cut = xp.flatnonzero(degrees > max(settings.segment, settings.raw_below))
    cut = cut.astype(np.int64, copy=False)
    parts = (degrees[cut].astype(np.int64) + settings.segment - 1) >> settings.segment_shift
    return cut, segment_offsets(parts)


def row_of_part(first_part, part):
    """Find, among the lists that are cut, the one that a part belongs to."""
    low, high = np.int64(0), np.int64(first_part.size)
    while low < high:
        middle = (low + high) >> np.int64(1)
        if first_part[middle] <= part:
            low = middle + np.int64(1)
        else:
            high = middle
    return low - np.int64(1)


@functools.cache
def functions(scheme: str, target: Target) -> dict[str, Function]:
    """Compile the functions that take an item and an `Encoding`."""
    on_lists = neighbour_list.build(scheme, target)
    device = target.device_function
    of_scheme, code = on_lists.scheme, bits.build(target)
    number_size, part_size = of_scheme.number_size, of_scheme.part_size
    write_number, write_part_of = of_scheme.write_number, of_scheme.write_part
    write_bits, write_raw, bit_length = code.write_bits, on_lists.write_raw, code.bit_length
    width_bits = np.int64(WIDTH_BITS)
    find_row = device(row_of_part)

    @device
    def ascends(work, row, first, last):
        """Tell whether entries ascend and are vertices, beginning with the one before them."""
        before = np.int64(-1)
        if first > work.indptr[row]:
            before = np.int64(work.indices[first - ONE])
        for i in range(first, last):
            this = np.int64(work.indices[i])
            if this <= before:
                return False
            before = this
        return before < work.bits.size

    @device
    def measure_list(v, work):
        settings = work.settings
        first, last = work.indptr[v], work.indptr[v + 1]
        degree = last - first
        size = number_size(work.tables, degree, settings.degree)
        if 0 < degree <= max(settings.raw_below, settings.segment):
            if not ascends(work, v, first, last):
                work.problems[UNSORTED] = v + 1
            elif degree <= settings.raw_below:
                size += degree * settings.id_bits
            else:
                size += part_size(work.tables, work.indices, first, last, v, settings)
        work.bits[v] = size

    @device
    def span_of_part(part, work):
        """Find whose part it is, by place in ``cut`` and by vertex, and where its entries are."""
        settings = work.settings
        row = find_row(work.first_part, part)
        v = work.cut[row]
        first = work.indptr[v] + ((part - work.first_part[row]) << settings.segment_shift)
        return row, v, first, min(first + settings.segment, work.indptr[v + 1])

    @device
    def measure_part(part, work):
        _row, v, first, last = span_of_part(part, work)
        size = ZERO
        if ascends(work, v, first, last):
            size = part_size(work.tables, work.indices, first, last, v, work.settings)
        else:
            work.problems[UNSORTED] = v + 1
        work.part_ends[part + 1] = size

    @device
    def measure_cut_list(row, work):
        first, last = work.first_part[row], work.first_part[row + 1]
        size = work.part_ends[last] - work.part_ends[first]
        width = bit_length(np.uint64(size))
        work.bits[work.cut[row]] += width_bits + width * (last - first) + size

    @device
    def measure_block(block, work):
        size = ZERO
        for v in range(block * BLOCK, min((block + 1) * BLOCK, work.bits.size)):
            size += work.bits[v]
        size = (size + np.int64(7)) >> np.int64(3)
        if size >> np.int64(32) > 0:
            work.problems[TOO_LARGE] = 1
        work.block_bytes[block] = size

    @device
    def place_lists(block, work):
        bit = work.block_starts[block]
        for v in range(block * BLOCK, min((block + 1) * BLOCK, work.bits.size)):
            size = work.bits[v]
            work.bits[v] = bit
            bit += size

    @device
    def write_list(v, work):
        settings = work.settings
        first, last = work.indptr[v], work.indptr[v + 1]
        degree = last - first
        bit = write_number(work.words, work.tables, work.bits[v], degree, settings.degree)
        if degree > max(settings.raw_below, settings.segment) or degree == 0:
            return
        if degree <= settings.raw_below:
            write_raw(work.words, bit, work.indices, first, last, settings)
        else:
            write_part_of(work.words, work.tables, bit, work.indices, first, last, v, settings)

    @device
    def directory_of_part(work, row, v):
        """Find the bit where a list's directory begins, and the width of a part's end in it."""
        degree = work.indptr[v + 1] - work.indptr[v]
        size = work.part_ends[work.first_part[row + 1]] - work.part_ends[work.first_part[row]]
        bit = work.bits[v] + number_size(work.tables, degree, work.settings.degree)
        return bit, bit_length(np.uint64(size))

    # The last ends of a long list and its first part may share a word, though many parts lie
    # between them: so all ends are written before any part is.
    @device
    def write_part_end(part, work):
        row, v, _first, _last = span_of_part(part, work)
        bit, width = directory_of_part(work, row, v)
        first_part = work.first_part[row]
        if part == first_part:
            write_bits(work.words, bit, np.uint64(width), width_bits)
        end = np.uint64(work.part_ends[part + 1] - work.part_ends[first_part])
        write_bits(work.words, bit + width_bits + (part - first_part) * width, end, width)

    @device
    def write_part(part, work):
        row, v, first, last = span_of_part(part, work)
        bit, width = directory_of_part(work, row, v)
        first_part = work.first_part[row]
        bit += width_bits + (work.first_part[row + 1] - first_part) * width
        bit += work.part_ends[part] - work.part_ends[first_part]
        settings, tables = work.settings, work.tables
        write_part_of(work.words, tables, bit, work.indices, first, last, v, settings)

    return {
        "measure_list": measure_list,
        "measure_part": measure_part,
        "measure_cut_list": measure_cut_list,
        "measure_block": measure_block,
        "place_lists": place_lists,
        "write_list": write_list,
        "write_part_end": write_part_end,
        "write_part": write_part,
    }
