"""How many bytes it takes to make rows of a graph on the CPU, in another form or direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from glp_rapids.compressed.choose_codes import SAMPLE
from glp_rapids.compressed.format.layout import BLOCK
from glp_rapids.compressed.weights import EqualWeights
from glp_rapids.propagation.gpu_memory import bytes_an_entry

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.propagation.options import Options

A_NUMBER = 80  # bytes an entry whose numbers are counted: 51 to 80 on eight graphs
PACKED_BITS = 10  # an entry, where no lists can be looked at: between a crawl and a random graph


def bytes_to_make(graph: BaseGraph, options: Options, form: str, readers: bool) -> int:
    """Bound the bytes that are taken while a run's rows are made of a graph on the CPU."""
    made = 0
    compressed, direction = bool(graph.scheme), options.direction
    if compressed:
        made += bytes_of_places(graph)
    if compressed and form == "plain" and "plain" not in graph._derived:
        made += bytes_of_csr(graph)
    if form == "compressed" and not compressed and "packed" not in graph._derived:
        made += bytes_to_encode(graph) + bytes_of_places(graph)
    if not graph.directed or (direction == "out" and not readers):
        return made
    if direction == "both":
        return made + (0 if "both" in graph._derived else _bytes_to_join(graph))
    if "transpose" in graph._derived and compressed == (form == "compressed"):
        return made
    if form == "compressed":  # by way of the plain graph, of which the first is let go
        most = max(_bytes_to_transpose(graph), bytes_to_encode(graph))
        return made + bytes_of_csr(graph) + most
    return made + _bytes_to_transpose(graph)


def bytes_of_csr(graph: BaseGraph) -> int:
    """Return the bytes of plain lists."""
    entries = graph.number_of_edges * bytes_an_entry(graph)
    return 8 * (graph.number_of_vertices + 1) + entries


def bytes_of_places(graph: BaseGraph, anew: bool = False) -> int:
    """Count what tells where each list and its weights begin, and how long it is, if not there.

    ``anew``: of other lists of the same sizes, of which nothing is there.
    """
    kept: set[str] = set()
    if graph.scheme and not anew:
        rows = graph._derived.get("rows")
        kept = {*graph.lists._derived, *(rows._derived if rows is not None else ())}
    vertices, item = graph.number_of_vertices, graph.index_dtype.itemsize
    size = 0
    if "skimmed" not in kept:
        size += vertices * (8 + item)
    if "block_starts" not in kept:
        size += 8 * (-(-vertices // BLOCK) + 1)
    if getattr(graph, "order", None) is not None and "place" not in kept:
        size += item * vertices
    if not isinstance(graph.weights, EqualWeights | None) and "entry_starts" not in kept:
        size += 8 * (vertices + 1)
    return size


def _bytes_of_an_edge_number(entries: int) -> int:
    return 4 if entries <= np.iinfo(np.int32).max else 8


def _bytes_to_transpose(graph: BaseGraph) -> int:
    """Count the transpose, a cursor a row, and where each entry was."""
    entries = graph.number_of_edges
    number = entries * _bytes_of_an_edge_number(entries)
    return bytes_of_csr(graph) + 8 * graph.number_of_vertices + number


def _bytes_to_join(graph: BaseGraph) -> int:
    """Count what sorting both directions into rows takes, see `sort_cpu.sorted_entries`."""
    entries, item = graph.number_of_edges, graph.index_dtype.itemsize
    number = _bytes_of_an_edge_number(2 * entries)
    weights = 0 if graph.weights is None else graph.weights.dtype.itemsize
    while_sorting = entries * (5 * item + 4 * number) + 24 * (graph.number_of_vertices + 1)
    sorted_already = entries * 2 * (item + number + weights) + 16 * (graph.number_of_vertices + 1)
    return max(while_sorting, sorted_already)


def bytes_to_encode(graph: BaseGraph) -> int:
    """Bound what `compressed.encode` takes: counting the numbers of a sample is the most of it."""
    entries, vertices = graph.number_of_edges, graph.number_of_vertices
    sampled = entries // max(1, entries // SAMPLE)
    return max(entries * PACKED_BITS // 8, A_NUMBER * sampled) + 24 * vertices
