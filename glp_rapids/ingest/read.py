"""Anything that is a graph -> `Graph`.

The steps: one of `readers` finds the columns; here they are checked; `rank` ranks the external
ids; `graph.build` builds the CSR from the ranks. A sparse matrix that is a CSR already needs none
of this (`matrices`). The caller's data is only ever read.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
from dataclasses import replace
from typing import Any, Literal, Unpack

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_choice, check_progress, check_truth
from glp_rapids.common.progress import Progress, reporting
from glp_rapids.device import (
    DeviceName,
    LackOfMemory,
    choose,
    memory_free,
    refuse_elsewhere,
    settle_with_default_stream,
    to_device,
)
from glp_rapids.frames import chunks, files, foreign
from glp_rapids.graph import build
from glp_rapids.graph.graph import BaseGraph, Graph, is_symmetric, lasting_graph
from glp_rapids.graph.rows import CSR
from glp_rapids.ingest import paths, rank, readers
from glp_rapids.ingest.columns import column_names
from glp_rapids.ingest.edges import refuse_to_merge
from glp_rapids.ingest.further import further_columns
from glp_rapids.ingest.matrices import Adjacency, graph_of
from glp_rapids.ingest.options import ByDefault, ColumnNames, EdgeOptions
from glp_rapids.ingest.weights import checked_weights

Array = Any


@guarded
def as_graph(
    graph: Any,
    *,
    source: ColumnNames | None = None,
    destination: ColumnNames | None = None,
    weight: str | None = None,
    directed: bool = False,
    vertices: Any = None,
    multigraph: Literal["merge", "keep", "min"] = "merge",
    device: DeviceName | None = None,
    progress: Progress = False,
) -> Graph:
    """Turn edges in any of the usual forms into a `Graph`.

    Parameters
    ----------
    graph : frame, path, tuple of arrays, sparse matrix, networkx, cugraph or glp_rapids graph
        Edges as a pandas, cuDF (also as cudf.pandas), polars (also lazy), pyarrow, dask or
        dask-cuDF frame, of which only the columns named are computed and converted; as arrays
        ``(src, dst)`` or ``(src, dst, weight)`` of one length; as a square SciPy or CuPy sparse
        matrix, whose rows are the vertices 0..n-1 and whose stored values, unless boolean, are the
        weights (a CSR of SciPy is shared and may lie in files: see the notes); or a graph of
        networkx, cuGraph (with its weights, if it has any; a MultiGraph with its duplicates) or
        this library, where a `CompressedGraph` is decoded. A dask-cuDF frame and a cugraph.Graph
        over several GPUs are gathered on the caller's one GPU.
        A path is that of a Parquet file or of a folder of them (also with columns in the names of
        its folders, ``year=2024``), of a CSV, TSV or text file, compressed or not, of a ``.graph``
        of WebGraph, of a ``.npz`` of ``scipy.sparse.save_npz`` (mapped if it is not compressed), or
        of what `CompressedGraph.save` wrote. Ids in text are integers if all are written as such,
        else text as it stands; only of CSV blanks before a field are no part of it, unless they are
        in quotes. Parquet files, a ``pyarrow.dataset.Dataset``, a ``pyarrow.parquet.ParquetFile``
        and a dask frame of pandas are read in chunks, several times: they need not fit in memory
        beside the graph, and must not change meanwhile.
    source, destination : str or list of str, optional
        The columns of a frame with the ids; lists for ids of several columns. Ids are integers,
        strings, dates, categories, or any one type that can be sorted. Categories sort by their
        values, not by the order of an ordered categorical. Where columns are called by tuples, a
        tuple that is the name of one names that one. None: ``src`` and ``dst``; of a frame that has
        neither, and where both are None, ``source`` and ``destination``, ``source`` and ``target``,
        or ``from`` and ``to``, if it has one of these pairs only. Where other functions take ids of
        several columns, a frame of columns ``0_x``, ``1_x``, ... is read in the order of these
        numbers, any other by position.
    weight : str, optional
        The column, or the networkx edge attribute, with the weights: numbers, finite and not
        negative. None: every edge weighs one. An edge of weight 0 stays one: labels pass along it
        where no other says more.
    directed : bool
        Whether an edge goes one way only. networkx, cuGraph and this library's graphs know that
        themselves. Undirected, (a, b) and (b, a) are the same edge; a symmetric sparse matrix is
        taken as it is, any other is added to its transpose.
    vertices : list, array, Series or frame, optional
        Ids of vertices that may have no edge, beside those that have one. Of several columns: a
        frame, whose columns are called like those of either end, or ``0_vertex``, ``1_vertex``,
        ... (else they are in that order), or a list of tuples.
    multigraph : {"merge", "keep", "min"}
        What becomes of the duplicates of an edge. "merge": one edge, whose weight is the sum of
        theirs. "keep": the same, but without weights it is weighted by their number. "min": one
        edge, whose weight is the least of theirs. Of an undirected graph (a, b) and (b, a) are
        duplicates. Votes are added, lengths are not: a graph for `sssp` wants "min", or a road
        that is in the data twice is twice as long. What a sparse matrix stores of one entry is
        added first, as SciPy has it. A graph of this library has no duplicates.
    device : {"cpu", "gpu"}, optional
        Where the graph shall live; None: on the GPU if there is one. What is read in chunks is
        built in host memory first.
    progress : bool or callable
        Of what is read in chunks: show a bar, or call the function after every chunk with a dict:
        the ``step`` ("ids", "degrees", "rows"), the number of the ``pass`` over the table, the
        ``rows`` that were read in it and how many it has (``of``; None if that is not known yet).

    Returns
    -------
    Graph
        Vertex indices are the ranks of the ids in sorted order, so the graph does not depend on
        the order of the edges. Integer weights are int64, float weights keep their dtype. What is
        made of a graph that came from cuDF, dask-cuDF or cuGraph is a cuDF frame, and so it is of
        one from CuPy where cuDF imports; all else gives pandas.

    Raises
    ------
    ValueError
        A column is missing or is that of both ends, or there are two pairs of usual names; lengths
        differ, there are nulls, infinite or negative weights or float32 below 1.2e-38, which GPUs
        take for 0; columns are named of what has none, a cugraph.Graph was never filled, or the
        data lies on another GPU than the current one. A file is truncated, has not the columns
        that others have, or changed while it was read. What is wrong in a file is named with the
        file and the row.
    TypeError
        ``graph`` is none of the above, or ids are floats, booleans or of mixed types.
    FileNotFoundError
        There is nothing at a path.
    MemoryError
        The graph does not fit; the caller's data is as it was.

    Notes
    -----
    O(m + n) on a CPU (counting), one 64-bit radix sort on a GPU; ids that do not fill a range of
    integers cost a hash table more. Weights are added in 64-bit fixed point, scaled by a power of
    two taken from the largest weight and the largest multiplicity, so a sum depends neither on the
    order nor on the device; the weight of an edge without duplicates is kept to the bit.

    A SciPy matrix in CSR format (CSC too, if undirected) whose rows ascend without duplicates, and
    which is symmetric or ``directed=True``, is a graph already. On the CPU the graph then shares
    its arrays, which must stay as they are: ``indices`` of int32 (int64 where there are more than
    2**31 - 1 rows) and values of int64, uint64, float32 or float64; boolean values are not read.
    Other dtypes are cast. It is looked through for 12 to 28 bytes a row. One that is not symmetric
    is added to its transpose in the memory of the result; one whose rows do not ascend takes
    several times that: call its ``sum_duplicates()`` before.

    The arrays may be memory maps, as of ``numpy.load(file, mmap_mode="r")``, which are never copied
    whole nor written to; the files must stay as they are. Put them into a matrix by its attributes,
    ``matrix = scipy.sparse.csr_array((n, n)); matrix.indptr, matrix.indices, matrix.data = ...``,
    since its constructor copies int32 ``indices`` under an int64 ``indptr`` to int64. Without
    weights, ``data`` may be ``numpy.broadcast_to(True, m)``. Symmetry is checked by reads all over
    the file, so it is slow where the file exceeds the memory. Read-only arrays that are no maps of
    files are copied.

    In chunks of 2^20 rows there are three passes over a table: ids, degrees, entries. Ids of
    several columns take one more, and edges that repeat often up to 15 more, four if every edge is
    there in both directions. At its peak that takes, beside ids and a chunk, at most 1.3 times the
    bytes of the graph, if ids are integers and there are two entries a vertex or more.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import as_graph
    >>> edges = pd.DataFrame({"payer": ["ann", "bob"], "payee": ["bob", "cy"], "eur": [9.5, 2.0]})
    >>> graph = as_graph(edges, source="payer", destination="payee", weight="eur",
    ...                  vertices=["dan"], device="cpu")
    >>> graph
    Graph(4 vertices, 4 entries, undirected, float64 weights, cpu)
    >>> graph.frame({"degree": graph.degree})
      vertex  degree
    0    ann       1
    1    bob       2
    2     cy       1
    3    dan       0

    From a folder of Parquet files, which together may be larger than memory:

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     for day in ("monday", "tuesday"):
    ...         edges.to_parquet(Path(folder, f"{day}.parquet"))
    ...     as_graph(folder, source="payer", destination="payee", weight="eur", device="cpu")
    Graph(3 vertices, 4 entries, undirected, float64 weights, cpu)
    """
    options = source, destination, weight, directed, vertices, multigraph, device, progress
    made = _converted(graph, *options).to_graph()
    return made if isinstance(graph, BaseGraph) else lasting_graph(made)


def as_any_graph(
    graph: Any, *, progress: Progress = False, **edges: Unpack[EdgeOptions]
) -> BaseGraph:
    """Do what `as_graph` does, but leave a `CompressedGraph` compressed."""
    if edges.keys() - _defaults().keys():
        inspect.signature(as_graph).bind(graph, **edges)  # which says what is too much
    return _converted(graph, **{**_defaults(), "progress": progress, **edges})


@functools.cache
def _defaults() -> dict[str, Any]:
    """Return the keywords of `as_graph`; to look them up takes as long as a dozen launches."""
    parameters = list(inspect.signature(as_graph).parameters.values())[1:]
    return {parameter.name: parameter.default for parameter in parameters}


def _converted(
    graph, source, destination, weight, directed, vertices, multigraph, device, progress
):
    check_choice("multigraph", multigraph, build.MULTIGRAPH, "'merge', 'keep' or 'min'")
    check_truth(directed=directed)
    check_progress(progress)
    device = choose(device)
    options = readers.Options(source, destination, weight, bool(directed), vertices)
    if isinstance(graph, str | os.PathLike):
        path = paths.checked(graph)
        asked = paths.Asked(source, destination, bool(directed), device, weight=weight)
        graph = paths.opened(path, asked)
        with files.naming(path):
            return _of_data(graph, options, multigraph, device, progress)
    with foreign.advising(graph):
        return _of_data(graph, options, multigraph, device, progress)


def _of_data(graph, options, multigraph, device, progress):
    if isinstance(graph, BaseGraph):
        name = f"a glp_rapids.{type(graph).__name__}"
        readers.refuse(options, name, "vertices", "it has its own")
        readers.refuse(options, name, "weight", "it has its own")
        readers.refuse_ends(options, name)
        readers.refuse_direction(graph.directed, options)
        # "merge" cannot be told from nothing given
        if multigraph != "merge" and not isinstance(multigraph, ByDefault):
            refuse_to_merge(graph)
        graph.refuse_elsewhere("graph")
        return graph.to(device)
    edges = None
    try:
        table = graph if isinstance(graph, chunks.Table) else chunks.table_of(graph)
        if table is not None:
            with files.naming(table.place):
                return _of_table(table, options, multigraph, device, progress)
        settle_with_default_stream()
        edges = readers.read(graph, options)
        settle_with_default_stream()  # where cuDF and cuGraph made what was read
        if isinstance(edges, Adjacency):
            taken = graph_of(edges, multigraph, device)
            if taken is not None:
                return taken
            edges = edges.edges()
            edges.maybe_symmetric = False  # as was found out
        return _build(edges, options, multigraph, device)
    except MemoryError as error:
        raise LackOfMemory(_lack_of_memory(edges, device, error)) from error


def _of_table(table, options, multigraph, device, progress):
    columns = column_names(table.names, options)
    frame = table.small(columns.names)
    if frame is None:
        # Numba comes with it, which a small frame need not wait for
        from glp_rapids.ingest import chunked

        bar = {"desc": "as_graph", "bar_format": "{desc}{postfix} {elapsed}"}
        with reporting(progress, _show, **bar) as report:
            graph = chunked.graph_of(table, columns, options, multigraph, report)
        if graph is not None:
            # not with its own `to`, which would keep it in host memory as well
            arrays = graph.indptr, graph.indices, graph.weights
            arrays = (None if array is None else to_device(array, device) for array in arrays)
            return Graph(*arrays, graph.directed, graph.vertices)
        frame = table.empty(columns.names)
    return _build(readers.read(frame, options), options, multigraph, device)


def _show(bar, facts):
    of = f" of {facts['of']:,}" if facts["of"] else ""
    bar.set_postfix_str(f"pass {facts['pass']}, {facts['step']}: {facts['rows']:,}{of} rows")


def _lack_of_memory(edges, device, error):
    what = f"its {edges.size:,} edges" if edges else "its edges"
    place, mend = {
        "gpu": ("GPU", "free some, or build the graph in host memory with device='cpu'"),
        "cpu": ("host", "free some, or use ids of a narrower dtype"),
    }[device]
    return (
        f"graph: there is too little memory to turn {what} into a graph on the {place} "
        f"({memory_free(device) / 2**30:.1f} GiB are free there): {error}; {mend}"
    )


def _build(edges, options, multigraph, device):
    for columns, labels in (
        (edges.source, edges.source_labels),
        (edges.destination, edges.destination_labels),
    ):
        for column, label in zip(columns, labels, strict=False):
            refuse_elsewhere(column, label)
    weights = None
    if edges.weight is not None:
        weights = checked_weights(edges.weight, edges.weight_label, place_of=edges.weight_place)
        weights = to_device(weights, device)
    source, destination, vertices = _ranked(edges, options, device)
    if edges.adds_up and multigraph == "min" and weights is not None:
        pairs = source, destination, weights, len(vertices)
        rows = CSR(*build.csr_of_pairs(*pairs, symmetric=False))
        source, destination, weights = rows.row_indices(), rows.indices, rows.weights
    arrays = build.csr_of_pairs(
        source,
        destination,
        weights,
        len(vertices),
        symmetric=not (edges.directed or edges.symmetric or edges.maybe_symmetric),
        multigraph=multigraph,
    )
    graph = Graph(*arrays, edges.directed, vertices)
    if edges.maybe_symmetric:
        as_directed = replace(graph, directed=True, _derived={})
        if not is_symmetric(as_directed):
            edges.maybe_symmetric = False
            return _build(edges, options, multigraph, device)
    return graph


@contextlib.contextmanager
def _mending(mend):
    """Say, of ids that can be none, what to do with them where it is not what messages say."""
    try:
        yield
    except (TypeError, ValueError) as error:
        what, _, why = str(error).rpartition("; ")
        if mend is None or not what:
            raise
        why, colon, _ = why.rpartition(": ")
        raise type(error)(f"{what}; {why}{colon}{mend}") from None


def _ranked(edges, options, device):
    """Number both ends of every edge by vertex; the ids come last."""
    ends = [edges.source, edges.destination]
    labels = [edges.source_labels, edges.destination_labels]
    if edges.positional:
        with _mending(edges.mend):
            (ranks,), vertices = rank.rank_ids(
                [edges.vertices], [edges.vertices_labels], edges.kind, device
            )
        return *(ranks[to_device(end, device)] for (end,) in ends), vertices
    if edges.vertices is not None:
        ends.append(edges.vertices)
        labels.append(edges.vertices_labels)
    if options.vertices is not None:
        further = further_columns(options.vertices, ends[:2], options.ends)
        ends.append(further)
        labels.append(("vertices",) * len(further))
    complete = edges.complete and options.vertices is None
    codes, vertices = rank.rank_ids(ends, labels, edges.kind, device, complete)
    return codes[0], codes[1], vertices
