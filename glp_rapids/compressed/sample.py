"""How many bits an entry lists would take, by measuring some of them."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.compressed.choose_codes import histograms
from glp_rapids.compressed.format import bits, neighbour_list, packed_tables
from glp_rapids.compressed.format.layout import BLOCK, WIDTH_BITS, Layout, Settings, settings
from glp_rapids.compressed.format.scheme import Function
from glp_rapids.device import array_module
from glp_rapids.graph.rows import CSR
from glp_rapids.jit.parallel_for import each
from glp_rapids.jit.target import Target

Array = Any

SAMPLE = 1 << 19  # entries by which the classes of numbers are chosen
MEASURED = 1 << 24  # entries of lists that are measured, or up to twice as many
ONE = np.int64(1)


class Measuring(NamedTuple):
    """What `measure_list` works on."""

    settings: Settings
    tables: Array
    vertices: Array  # whose lists
    indptr: Array
    indices: Array
    bits: Array


def bits_of_packed(
    rows: CSR, layout: Layout, sample: int = SAMPLE, entries: int = MEASURED
) -> float:
    """Estimate the bits of all lists under "packed", from those of every so many blocks.

    Exact, but for what fills up the last bytes of blocks, if the rows have no more than ``sample``
    and no more than ``entries``.
    """
    xp, n, every = array_module(rows.indptr), rows.number_of_vertices, rows.number_of_edges
    blocks = xp.arange(0, -(-n // BLOCK), max(1, every // entries))
    vertices = (BLOCK * blocks[:, None] + xp.arange(BLOCK)).ravel()
    vertices = vertices[vertices < n]
    measured = int((rows.indptr[vertices + 1] - rows.indptr[vertices]).sum())
    if not measured:
        return 8.0 * 4 * -(-n // BLOCK)
    tables = xp.asarray(packed_tables.tables_of(histograms(rows, layout, sample), layout, n))
    found = xp.empty(vertices.size, np.int64)
    work = Measuring(settings(layout, n), tables, vertices, rows.indptr, rows.indices, found)
    each(_functions, layout.scheme, "measure_list", vertices.size, work, rows.device)
    return float(found.sum()) * every / measured + 8.0 * (4 * -(-n // BLOCK) + tables.nbytes)


@functools.cache
def _functions(scheme: str, target: Target) -> dict[str, Function]:
    on_lists, code = neighbour_list.build(scheme, target), bits.build(target)
    number_size, part_size = on_lists.scheme.number_size, on_lists.scheme.part_size
    bit_length, width_bits = code.bit_length, np.int64(WIDTH_BITS)

    @target.device_function
    def measure_list(i, work):
        settings, tables = work.settings, work.tables
        v = np.int64(work.vertices[i])
        first, last = work.indptr[v], work.indptr[v + ONE]
        size = number_size(tables, last - first, settings.degree)
        if last - first <= settings.segment:
            if last > first:
                size += part_size(tables, work.indices, first, last, v, settings)
        else:
            parts, of_parts = np.int64(0), np.int64(0)
            for begin in range(first, last, settings.segment):
                end = min(begin + settings.segment, last)
                of_parts += part_size(tables, work.indices, begin, end, v, settings)
                parts += ONE
            size += of_parts + width_bits + parts * bit_length(np.uint64(of_parts))
        work.bits[i] = size

    return {"measure_list": measure_list}
