"""A graph as `estimate_memory` looks at it: numbers, whether there is a graph or only those."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.common.checks import check_choice, check_integer, check_truth, shown
from glp_rapids.device import to_device, to_host
from glp_rapids.graph.graph import BaseGraph
from glp_rapids.propagation.making_memory import PACKED_BITS
from glp_rapids.propagation.options import Options
from glp_rapids.propagation.schedule import spans_of

LONG = 1024  # entries of a row; shorter ones are no hubs to a GPU
MOST = 1 << 62  # vertices, entries
ROOT_OF_ENTRIES = 16  # a longest row is taken for so many times that, where nobody says


@dataclass
class Subject:
    """What is known of a graph, named as a graph's own, with lists in one of the forms.

    ``packed_bytes``: of the graph if it were packed. ``words``: of what is hashed in the place of
    ids, by a plain and by a compressed graph. ``largest_class`` counts that of so many classes.
    ``longest_reader``: the entries of the longest row in the other direction, 0 where nobody
    counted. The rest is what `memory` asks a graph.
    """

    number_of_vertices: int
    number_of_edges: int
    longest_row: int
    index_dtype: np.dtype
    weights: Any
    directed: bool
    packed_bytes: int
    largest_class: Callable[[int], int]
    listed: int  # vertices with neighbours
    long_rows: tuple[np.ndarray, np.ndarray]  # what is hashed, and how many entries
    longest_reader: int = 0
    words: int = 0
    packed_words: int = 0
    scheme: str | None = None
    order: Any = None
    _derived: dict = field(default_factory=dict)
    lists: Any = field(default_factory=lambda: SimpleNamespace(_derived={}))


def of_sizes(
    sizes: tuple, bits_per_entry: float | None, directed: bool = False,
    weight: str | None = None, **edges: Any,
) -> Subject:  # fmt: skip
    """Describe a graph by ``(vertices, entries)``, or with the longest row as the third number."""
    if edges:
        raise TypeError(f"sizes have no {next(iter(edges))!r}: that is for a graph")
    check_truth(directed=directed)
    if len(sizes) not in (2, 3):
        raise ValueError(
            f"sizes must be (vertices, entries) or (vertices, entries, longest_row), not "
            f"{shown(sizes)}"
        )
    for name, size in zip(("vertices", "entries", "longest_row"), sizes, strict=False):
        check_integer(name, size, 0)
        if size > MOST:
            raise ValueError(f"{name} must be at most {MOST:,}, not {size:,}")
    vertices, entries = map(int, sizes[:2])
    if entries and not vertices:
        raise ValueError(f"entries must be 0 without vertices, not {entries:,}")
    longest = ROOT_OF_ENTRIES * math.isqrt(entries)
    if len(sizes) == 3:
        longest = int(sizes[2])
        if not -(-entries // max(vertices, 1)) <= longest <= entries:
            raise ValueError(
                f"longest_row must be at least the mean of {entries:,} entries over {vertices:,} "
                f"vertices, and no more than all of them, not {longest:,}"
            )
    dtype = None
    if weight is not None:
        check_choice("weight", weight, ("int64", "float32", "float64"))
        dtype = np.dtype(weight)
    bits = PACKED_BITS if bits_per_entry is None else bits_per_entry
    packed = math.ceil(bits * entries / 8) + entries * (0 if dtype is None else dtype.itemsize)
    longest = min(longest, vertices, entries)
    return Subject(
        vertices, entries, longest,
        np.dtype(np.int32 if vertices <= np.iinfo(np.int32).max else np.int64),
        None if dtype is None else SimpleNamespace(dtype=dtype), bool(directed), packed,
        partial(largest_expected, vertices), vertices, (np.zeros(1, np.int64), np.array([longest])),
    )  # fmt: skip


def of_graph(graph: BaseGraph, bits_per_entry: float | None, options: Options) -> Subject:
    """Describe a graph that is there."""
    id_words = graph.id_words()
    words = id_words.words
    held = any(words is getattr(column, "values", None) for column in graph.vertices.columns)
    entries, weights = graph.number_of_edges, graph.weights
    if bits_per_entry is not None:
        packed = math.ceil(bits_per_entry * entries / 8)
        packed += 0 if weights is None else entries * weights.dtype.itemsize
    elif graph.scheme:
        packed = graph.nbytes
    else:
        packed = _measured(graph)
    degrees = _degrees(graph, options)
    long = np.flatnonzero(degrees > LONG)
    long_words = id_words.of(to_device(long, graph.device)) if long.size else np.zeros(0, np.int64)
    return Subject(
        graph.number_of_vertices, entries, int(degrees.max(initial=0)), graph.index_dtype,
        weights, graph.directed, packed, partial(_counted, graph),
        int(np.count_nonzero(degrees)), (to_host(long_words), degrees[long]),
        longest_reader=_longest_reader(graph, options),
        words=0 if held else words.nbytes, packed_words=words.nbytes,
        order=getattr(graph, "order", None),
    )  # fmt: skip


def _measured(graph: BaseGraph) -> int:
    """Measure some lists; weights count as they are."""
    from glp_rapids.compressed.options import layout_of
    from glp_rapids.compressed.sample import bits_of_packed

    bits = bits_of_packed(graph.rows("out"), layout_of("auto", "speed", None, 0, None))
    weights = 0 if graph.weights is None else graph.weights.dtype.itemsize
    return math.ceil(bits / 8) + graph.number_of_edges * weights


def _degrees(graph: BaseGraph, options: Options) -> np.ndarray:
    """Count the entries of the rows that a run reads, without making them."""
    if not graph.directed or options.direction == "out":
        return to_host(graph.degree)
    degrees = np.zeros(graph.number_of_vertices, np.int64)
    for _, _, rows in graph.rows("out").chunks(1 << 22):
        indices = to_host(rows.indices)
        if getattr(graph, "order", None) is not None:
            indices = to_host(graph.order)[indices]
        degrees += np.bincount(indices, minlength=degrees.size)
    if options.direction == "both":
        degrees += to_host(graph.degree)
    return degrees


def _longest_reader(graph: BaseGraph, options: Options) -> int:
    """Count the entries of the longest row in the other direction, if it is there."""
    other = graph if options.direction == "in" else graph._derived.get("transpose")
    return 0 if other is None else int(to_host(other.degree).max(initial=0))


def _counted(graph: BaseGraph, classes: int) -> int:
    """Count the vertices of a graph in the largest of so many classes, the fewest that are left."""
    if graph.device == "gpu":
        return largest_expected(graph.number_of_vertices, classes)
    from glp_rapids.propagation.kernels.cpu.class_lists import class_offsets, largest_class

    offsets = class_offsets(graph.id_words(), graph.number_of_vertices, classes)
    return largest_class(offsets, max(spans_of(classes)))


def largest_expected(vertices: int, classes: int) -> int:
    """Bound the largest class of vertices that a hash divides: six standard deviations above."""
    mean = vertices * max(spans_of(classes)) / classes
    return min(vertices, math.ceil(mean + 6 * math.sqrt(mean)))
