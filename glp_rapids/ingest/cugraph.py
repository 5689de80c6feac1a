"""The reader of cugraph.Graph: the edges as cuGraph holds them, isolated vertices included.

pylibcugraph gives the edges of a graph on one GPU, symmetrized and without duplicates, where they
are. `cugraph.Graph` itself would not do: its ``view_adj_list`` narrows int64 ids to int32 and loses
isolated vertices, its ``edgelist`` is the raw input. A graph on several GPUs is gathered on one.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from glp_rapids import device
from glp_rapids.device import all_true, any_true, array_module, to_host
from glp_rapids.frames.kinds import to_array
from glp_rapids.ingest.edges import Edges, Options, refuse, refuse_direction, refuse_ends

LEAST = "26.10"
PROBED = 8  # edges looked for one by one before all are


def read(graph: Any, options: Options) -> Edges:
    """Read a cugraph.Graph or cugraph.MultiGraph, on one GPU or on several."""
    refuse(options, "a cugraph.Graph", "vertices", "it has its own")
    refuse(options, "a cugraph.Graph", "weight", "it has its own, if it is weighted")
    refuse_ends(options, "a cugraph.Graph")
    if getattr(graph, "_plc_graph", None) is None:
        raise ValueError(
            "graph: the cugraph.Graph was never filled, or was cleared; fill it, as with "
            f"from_cudf_edgelist (of cuGraph {LEAST} or newer)"
        )
    refuse_direction(graph.is_directed(), options)
    with _known_version(), _memory_errors():
        # over several GPUs, it holds one part for each
        if isinstance(graph._plc_graph, dict):
            return _read_distributed(graph)
        return _read_single(graph)


def _read_single(graph):
    import pylibcugraph

    for array in _own_arrays(graph):
        device.refuse_elsewhere(array, "graph: the cugraph.Graph")
    handle = pylibcugraph.ResourceHandle()
    source, destination, weight, *_ = pylibcugraph.decompress_to_edgelist(
        resource_handle=handle, graph=graph._plc_graph, do_expensive_check=False
    )
    if graph.is_directed() and (graph.edgelist is not None or graph.adjlist is not None):
        source, destination = as_put_in(source, destination, partial(_raw_edges, graph))
    if graph.renumbered:
        names = graph.renumber_map.implementation.df
        vertices = [names[name] for name in names.columns if name != "id"]
    else:
        vertices = [
            pylibcugraph.extract_vertex_list(
                resource_handle=handle, graph=graph._plc_graph, do_expensive_check=False
            )
        ]
    # graph.is_weighted() forgets the weights of what to_directed() and to_undirected() made
    return Edges(
        [source],
        [destination],
        weight,
        graph.is_directed(),
        "cudf",
        vertices,
        positional=bool(graph.renumbered),
        complete=not graph.renumbered,
        symmetric=not graph.is_directed(),
        vertices_labels=("the vertices of the graph",) * len(vertices),
        weight_label="the weights of the graph",
    )


def _raw_edges(graph, number):
    """Read the first edges (None: all) as cuGraph was given them, by its own ids, in arrays."""
    if graph.edgelist is not None:
        frame = graph.edgelist.edgelist_df
        return tuple(to_array(frame[end][:number]) for end in ("src", "dst"))
    offsets, indices = (to_array(part) for part in (graph.adjlist.offsets, graph.adjlist.indices))
    indices = indices[:number]
    place = array_module(indices).arange(indices.size)
    return offsets.searchsorted(place, side="right") - 1, indices


def as_put_in(source: Any, destination: Any, raw_edges: Callable[[int | None], tuple]) -> tuple:
    """Turn the ends of directed edges the way round in which the graph was given them.

    A directed graph that cuGraph 26.10 holds transposed, as with ``store_transposed=True``, comes
    reversed out of its first ``decompress_to_edgelist``, which transposes the graph and then reads
    it as if it had not. An edge whose reverse is no edge tells.
    """
    xp = array_module(source)
    for u, v in zip(*(to_host(ends).tolist() for ends in raw_edges(PROBED)), strict=True):
        there = any_true((source == u) & (destination == v))
        back = any_true((source == v) & (destination == u))
        if there != back:
            return (source, destination) if there else (destination, source)
    # most edges go both ways: look at all
    every = (source, destination, *raw_edges(None))
    distinct, rank = xp.unique(xp.concatenate(every), return_inverse=True)
    ends = np.cumsum([array.size for array in every])[:-1].tolist()
    rows, columns, raw_rows, raw_columns = xp.split(rank.ravel().astype(np.int64), ends)
    size = distinct.size
    if all_true(xp.isin(raw_rows * size + raw_columns, rows * size + columns)):
        return source, destination
    return destination, source


def _own_arrays(graph):
    """List arrays that lie where the graph lies, if it still has some."""
    if graph.edgelist is not None:
        return [graph.edgelist.edgelist_df["src"]]
    return [] if graph.adjlist is None else [graph.adjlist.indices]


def _read_distributed(graph):
    frame = graph.decompress_to_edgelist().compute()
    ends = [
        # several id columns are called 0_src, 1_src, ...
        sorted(
            (name for name in frame.columns if re.fullmatch(rf"(\d+_)?{end}", name)),
            key=lambda name: (len(name), name),
        )
        for end in ("src", "dst")
    ]
    return Edges(
        *([frame[name] for name in names] for names in ends),
        frame["weight"] if "weight" in frame.columns else None,
        graph.is_directed(),
        "cudf",
        symmetric=not graph.is_directed(),
        source_labels=tuple(ends[0]),
        destination_labels=tuple(ends[1]),
        weight_label="the weights of the graph",
    )


@contextlib.contextmanager
def _known_version() -> Iterator[None]:
    try:
        yield
    except AttributeError as error:
        version = getattr(sys.modules["cugraph"], "__version__", "of an unknown version")
        raise TypeError(
            f"graph: cuGraph {version} is built differently ({error}); the graphs of cuGraph "
            f"{LEAST} and newer are read: update it, or pass the edges as a frame"
        ) from error


@contextlib.contextmanager
def _memory_errors() -> Iterator[None]:
    """Raise MemoryError where libcugraph reports a lack of memory as a RuntimeError."""
    try:
        yield
    except RuntimeError as error:
        if re.search(r"bad_alloc|out.of.memory", str(error)):
            raise MemoryError(str(error)) from error
        raise
