"""Readers: what a caller may bring as a graph, each turned into the same `Edges`,
but for a sparse matrix that is a CSR already.

A reader finds the columns and says what to call them in messages; it checks and converts nothing
else. Foreign graph libraries are recognized only if the caller has imported them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.common.checks import errors_named, shown
from glp_rapids.frames import foreign, kinds
from glp_rapids.frames.foreign import instance_of
from glp_rapids.ingest import cugraph, matrices
from glp_rapids.ingest.columns import are_hashable, column_names
from glp_rapids.ingest.edges import Edges, Options, refuse, refuse_direction, refuse_ends
from glp_rapids.ingest.matrices import Adjacency

ACCEPTED = (
    "a pandas, cuDF, polars, pyarrow or dask edge frame, a tuple of arrays (src, dst) or (src, "
    "dst, weight), a SciPy or CuPy sparse matrix, a networkx.Graph, a cugraph.Graph, a "
    "glp_rapids.Graph, a pyarrow dataset or a path"
)
_ABSENT = object()  # stands for an edge attribute that is not there
_RELABEL = (
    "relabel them with nx.relabel_nodes(G, str), or "
    "nx.convert_node_labels_to_integers(G, label_attribute='id')"
)


def read(graph: Any, options: Options) -> Edges | Adjacency:
    """Find the reader for ``graph`` and run it."""
    graph, proxy = kinds.cudf_inside(graph)
    for recognized, reader in _READERS:
        if recognized(graph):
            edges = reader(graph, options)
            if proxy:
                edges.kind = "cudf.pandas"
            return edges
    raise TypeError(f"graph must be {ACCEPTED}, not {_describe(graph)}")


def _describe(graph):
    name = f"{type(graph).__module__}.{type(graph).__name__}".removeprefix("builtins.")
    if isinstance(graph, str) or hasattr(graph, "__fspath__"):
        return f"the path {graph!r}; read it first, as with pandas.read_csv"
    if isinstance(graph, np.ndarray) and graph.dtype.names:
        return "an array of records; pass pandas.DataFrame(it)"
    if isinstance(graph, np.ndarray):
        matrix = graph.ndim == 2 and graph.shape[0] == graph.shape[1]
        mend = "of adjacency, pass scipy.sparse.csr_array(array); of pairs, " if matrix else ""
        return (
            f"an array of shape {graph.shape}; {mend}pass its columns as (array[:, 0], array[:, 1])"
        )
    if isinstance(graph, dict):
        return "a dict; of columns, pass pandas.DataFrame(it)"
    if hasattr(graph, "get_edge_dataframe"):  # igraph's
        return f"{name}; pass its get_edge_dataframe()"
    if isinstance(graph, list) and graph and isinstance(graph[0], str | os.PathLike):
        return "a list of paths; pass their folder, or pyarrow.dataset.dataset(paths)"
    if isinstance(graph, list):
        return "a list; for a list of pairs, pass tuple(zip(*pairs))"
    if _is_read_once(graph):
        return (
            f"{name}, which can be read only once, while a graph takes several passes; write it to "
            "Parquet files and pass their folder, or bring it into one frame"
        )
    if instance_of("pyarrow.parquet", "ParquetDataset")(graph):
        return f"{name}; pass its path, or pyarrow.dataset.dataset(path)"
    if instance_of("glp_rapids.fraud.window", "SlidingWindow")(graph):
        return f"{name}; pass its graph()"
    if "dask" in name:
        return f"{name}; bring it into one frame with .compute()"
    return name


def _is_read_once(graph):
    once = (
        instance_of("pyarrow", "RecordBatchReader"), instance_of("pyarrow.dataset", "Scanner"),
        lambda graph: isinstance(graph, Iterator),
    )  # fmt: skip
    return any(recognized(graph) for recognized in once)


def _read_frame(frame, options):
    return _edges_of(frame, column_names(list(frame.columns), options), options)


def _read_foreign(frame, options):
    library = foreign.library_of_frame(frame)
    wanted = column_names(library.names(frame), options)
    with errors_named("graph"):
        frame = library.native(library.select(frame, wanted.names))
    return _edges_of(frame, wanted, options)


def _edges_of(frame, names, options):
    arguments = ("source", "destination", "weight")
    labels = [
        tuple(f"{argument} column {name!r}" for name in of_argument)
        for argument, of_argument in zip(arguments, names, strict=True)
    ]
    sources, destinations, weights = (
        [kinds.as_column(frame[name], label) for name, label in zip(*both, strict=True)]
        for both in zip(names, labels, strict=True)
    )
    return Edges(
        sources,
        destinations,
        weights[0] if weights else None,
        options.directed,
        "cudf" if kinds.is_cudf(frame, "DataFrame") else "pandas",
        source_labels=labels[0],
        destination_labels=labels[1],
        weight_label=labels[2][0] if weights else "weight",
    )


def _read_arrays(arrays, options):
    if len(arrays) not in (2, 3):
        raise ValueError(
            f"graph: a tuple must be (src, dst) or (src, dst, weight), not {len(arrays)} items"
        )
    if options.weight is not None:
        raise ValueError(
            f"weight={options.weight!r} names a column, but the graph is a tuple of arrays; make "
            "the weights its third"
        )
    refuse_ends(options, "a tuple of arrays")
    labels = ("source (the first array)", "destination (the second)", "weight (the third)")
    columns = []
    for array, label in zip(arrays, labels, strict=False):
        columns.append(kinds.as_column(array, label))
    if len({len(column) for column in columns}) > 1:
        lengths = ", ".join(str(len(column)) for column in columns)
        raise ValueError(f"graph: the arrays must be of one length, not {lengths}")
    return Edges(
        columns[:1],
        columns[1:2],
        columns[2] if len(columns) == 3 else None,
        options.directed,
        kinds.kind_of(*columns),
        source_labels=labels[:1],
        destination_labels=labels[1:2],
        weight_label=labels[2],
    )


def _read_networkx(graph, options):
    refuse(options, "a networkx graph", "vertices", "its nodes are the vertices")
    refuse_ends(options, "a networkx graph")
    refuse_direction(graph.is_directed(), options)
    position = {node: i for i, node in enumerate(graph)}
    pairs = np.fromiter(
        (position[end] for edge in graph.edges() for end in edge), dtype=np.int64
    ).reshape(-1, 2)
    weight, nodes = None, "the nodes of the graph"
    label = f"weight (edge attribute {shown(options.weight)})"
    if not are_hashable([options.weight]):
        raise TypeError(f"weight must name an edge attribute, not {shown(options.weight)}")
    if options.weight is not None:
        edges = list(graph.edges(data=options.weight, default=_ABSENT))
        for none, mistake in ((_ABSENT, "no such attribute"), (None, "None as this attribute")):
            without = [ends for *ends, value in edges if value is none]
            if without:
                names = sorted({str(name) for *_, data in graph.edges(data=True) for name in data})
                mend = f"edge attributes here: {names}" if none is _ABSENT else "give them numbers"
                raise ValueError(
                    f"weight={shown(options.weight)}: {len(without)} edge(s) have {mistake}, the "
                    f"first {tuple(without[0])}; {mend}"
                )
        values = [value for *_, value in edges]
        weight = kinds.as_column(values if values else np.empty(0), label)
    return Edges(
        [pairs[:, 0]],
        [pairs[:, 1]],
        weight,
        graph.is_directed(),
        "pandas",
        [kinds.as_column(list(graph), nodes)],
        positional=True,
        weight_label=label,
        vertices_labels=(nodes,),
        mend=_RELABEL,
    )


_READERS: list[tuple[Callable[[Any], bool], Callable[[Any, Options], Edges | Adjacency]]] = [
    (lambda graph: isinstance(graph, tuple), _read_arrays),
    (lambda graph: isinstance(graph, pd.DataFrame), _read_frame),
    (instance_of("cudf", "DataFrame"), _read_frame),
    (lambda graph: foreign.library_of_frame(graph) is not None, _read_foreign),
    (instance_of("networkx", "Graph"), _read_networkx),
    (instance_of("scipy.sparse", "spmatrix", "sparray"), matrices.read),
    (instance_of("cupyx.scipy.sparse", "spmatrix"), matrices.read),
    (instance_of("cugraph", "Graph"), cugraph.read),
]
