import datetime
import sys

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from graphs import GRAPHS, edge_frames, edges, random_pairs
from hypothesis import given, settings
from reference import adjacency

from glp_rapids.common import segments
from glp_rapids.frames import kinds
from glp_rapids.graph import build as adjacency_module
from glp_rapids.graph import sort_cpu, sort_gpu
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.rows import CSR
from glp_rapids.ingest import rank
from glp_rapids.ingest.read import as_graph


def built(**options):
    return as_graph(**options, device="cpu")


def rows_of(csr):
    """Give per row the list of (neighbour, weight)."""
    weights = [None] * csr.indices.size if csr.weights is None else csr.weights.tolist()
    entries = list(zip(csr.indices.tolist(), weights, strict=True))
    return [
        entries[a:b] for a, b in zip(csr.indptr[:-1].tolist(), csr.indptr[1:].tolist(), strict=True)
    ]


def twin(options):
    """Build the same keywords with plain Python."""
    options = dict(options)
    frame, weight = options.pop("graph"), options.pop("weight", None)
    source, destination = options.pop("source", "src"), options.pop("destination", "dst")

    def ids(names):
        if isinstance(names, str):
            return frame[names].tolist()
        return list(zip(*(frame[name].tolist() for name in names), strict=True))

    pairs = list(zip(ids(source), ids(destination), strict=True))
    return adjacency(pairs, None if weight is None else frame[weight].tolist(), **options)


def same(one, other):
    assert one.indptr.tolist() == other.indptr.tolist()
    assert one.indices.tolist() == other.indices.tolist()
    assert (one.weights is None) == (other.weights is None)
    if one.weights is not None:
        assert one.weights.dtype == other.weights.dtype
        assert one.weights.tobytes() == other.weights.tobytes()


def check(options):
    graph = built(**options)
    ids, rows = twin(options)
    got = graph.external()
    columns = got.columns if isinstance(got, pd.DataFrame) else None
    shown = got.tolist() if columns is None else list(got.itertuples(index=False, name=None))
    assert shown == ids
    assert [[u for u, _ in row] for row in rows_of(graph)] == [list(row) for row in rows]
    for row, expected in zip(rows_of(graph), rows, strict=True):
        for (_, got_weight), weight in zip(row, expected.values(), strict=True):
            if weight is None:
                assert got_weight is None
            else:
                assert got_weight == pytest.approx(weight, rel=1e-6)
    return graph


@pytest.mark.parametrize("name", GRAPHS)
def test_awkward_graphs_as_the_twin_builds_them(name):
    options = GRAPHS[name]()
    graph = check(options)
    assert isinstance(graph.indptr, np.ndarray)
    assert graph.indptr.dtype == np.int64
    assert graph.indices.dtype == np.int32
    assert graph.directed == options.get("directed", False)
    assert graph.degree.tolist() == np.diff(graph.indptr).tolist()
    assert graph.number_of_vertices == len(graph.vertices)
    frame = graph.frame({"degree": graph.degree})
    assert len(frame) == graph.number_of_vertices
    if len(frame):
        names = [name for name in frame.columns if name != "degree"]
        ids = frame[names[0]] if len(names) == 1 else frame[names]
        assert graph.vertex_index(ids).tolist() == list(range(len(frame)))
        assert graph.vertex_index(ids).dtype == graph.indices.dtype


@given(edge_frames())
@settings(max_examples=200, deadline=None)
def test_random_graphs_as_the_twin_builds_them(options):
    graph = check(options)
    exact = [list(row.values()) for row in twin(options)[1]]
    assert [[weight for _, weight in row] for row in rows_of(graph)] == exact


@pytest.mark.parametrize("name", GRAPHS)
def test_row_order_and_repetition_change_nothing(name):
    options = GRAPHS[name]()
    frame = options["graph"]
    graph = built(**options)
    shuffled = frame.sample(frac=1, random_state=3)
    same(graph, built(**{**options, "graph": shuffled}))
    if not graph.directed:
        source, destination = options.get("source", "src"), options.get("destination", "dst")
        same(graph, built(**{**options, "source": destination, "destination": source}))


def test_float_sums_do_not_depend_on_the_order():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"src": 0, "dst": 1, "w": 10.0 ** rng.uniform(-12, 12, 1000)})
    weights = {
        built(graph=frame.sample(frac=1, random_state=i), weight="w").weights.tobytes()
        for i in range(5)
    }
    assert len(weights) == 1
    graph = built(graph=frame, weight="w")
    assert graph.weights[0] == pytest.approx(frame["w"].sum(), rel=1e-14)


def test_a_single_edge_keeps_its_weight_to_the_bit():
    weights = [5e-324, 1e-300, 0.1, 1e300, 1.7e308, 0.1, 0.1]
    graph = built(graph=(range(7), [7, 7, 7, 7, 7, 8, 8], weights))
    assert graph.weights[:7].tolist() == weights
    frame = pd.DataFrame({"src": [0, 0, 2], "dst": [1, 1, 3], "w": [1e308, 1.0, 5e-324]})
    assert built(graph=frame, weight="w").weights.tolist() == [1e308, 1e308, 5e-324, 5e-324]


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_weight_dtypes_stay(dtype):
    pairs = [(0, 1), (1, 0), (1, 2)]
    graph = built(**edges(pairs, np.array([1, 2, 3], dtype=dtype)))
    assert graph.weights.dtype == dtype
    assert graph.weights.tolist() == [3, 3, 3, 3]


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.uint64])
def test_integer_weights_add_up_as_int64(dtype):
    graph = built(**edges([(0, 1)] * 3, np.array([100, 100, 100], dtype=dtype)))
    assert graph.weights.dtype == np.int64
    assert graph.weights.tolist() == [300, 300]


def test_weights_that_overflow_are_refused():
    with pytest.raises(ValueError, match=r"more than 2\*\*63 - 1"):
        built(**edges([(0, 1), (1, 0)], [2**62, 2**62]))
    exact = built(**edges([(0, 1), (1, 0)], [2**62, 2**62 - 1]))
    assert exact.weights.tolist() == [2**63 - 1] * 2
    with pytest.raises(ValueError, match=r"float64 weights .* more than float64"):
        built(**edges([(0, 1), (1, 0)], [1.7e308, 1.7e308]))
    with pytest.raises(ValueError, match=r"float32 weights .* or pass them as float64"):
        built(**edges([(0, 1), (1, 0)], np.array([3e38, 3e38], dtype=np.float32)))


# ---------------------------------------------------------------- directions


@pytest.mark.parametrize("name", GRAPHS)
def test_directions(name):
    graph = built(**GRAPHS[name]())
    rows = rows_of(graph)
    incoming = [[] for _ in rows]
    for v, row in enumerate(rows):
        for u, weight in row:
            incoming[u].append((v, weight))
    assert rows_of(graph.transpose()) == incoming
    assert rows_of(graph.rows("in")) == incoming
    assert rows_of(graph.rows("out")) == rows
    assert rows_of(graph.readers("in")) == rows
    assert rows_of(graph.readers("out")) == incoming
    both = rows
    if graph.directed:
        both = [
            sorted(out + [entry for entry in into if entry[0] != v], key=lambda entry: entry[0])
            for v, (out, into) in enumerate(zip(rows, incoming, strict=True))
        ]
    got = rows_of(graph.rows("both"))
    assert [sorted(row, key=str) for row in got] == [sorted(row, key=str) for row in both]
    assert [[u for u, _ in row] for row in got] == [[u for u, _ in row] for row in both]
    assert isinstance(graph.rows("both"), CSR)


def test_directions_are_made_once():
    graph = built(**GRAPHS["directed weighted"]())
    assert graph.transpose() is graph.transpose()
    assert graph.transpose().transpose() is graph
    assert graph.rows("both") is graph.readers("both")
    assert graph.to("cpu") is graph
    undirected = built(**GRAPHS["star"]())
    assert undirected.rows("in") is undirected.rows("both") is undirected.transpose() is undirected
    with pytest.raises(ValueError, match="direction must be 'in', 'out' or 'both', not 'up'"):
        graph.rows("up")


@given(edge_frames())
@settings(max_examples=50, deadline=None)
def test_sorting_and_counting_give_the_same(options):
    graph = built(**{**options, "directed": True})
    n = graph.number_of_vertices
    rows = graph.row_indices()
    counted = segments._ids_by_counting(graph.indptr, rows.dtype, rows.size)
    assert counted.dtype == rows.dtype
    assert counted.tolist() == rows.tolist()
    shuffle = np.random.default_rng(0).permutation(rows.size)
    source = np.concatenate([rows, rows])[shuffle]
    destination = np.concatenate([graph.indices, graph.indices])[shuffle]
    cases = [("transposed", (graph.indptr, graph.indices))]
    for symmetric in (False, True):
        pairs = source, destination, n, symmetric
        cases += [("merged_entries", pairs), ("sorted_entries", pairs)]
    for name, arguments in cases:
        one, other = getattr(sort_gpu, name)(*arguments), getattr(sort_cpu, name)(*arguments)
        for left, right in zip(one, other, strict=True):
            assert left.dtype == right.dtype
            assert left.tolist() == right.tolist()


def test_factorize_by_sorting_and_by_hashing_give_the_same():
    values = np.random.default_rng(0).integers(-(2**62), 2**62, 50)
    arrays = [values[:30], values[20:], values[:0]]
    ranks, distinct = sort_gpu.factorize(arrays)
    other_ranks, other_distinct = sort_cpu.factorize(arrays)
    assert distinct.tolist() == other_distinct.tolist() == sorted(values.tolist())
    assert [r.tolist() for r in ranks] == [r.tolist() for r in other_ranks]


# ---------------------------------------------------------------- kinds of input


def karate():
    return nx.karate_club_graph()


def test_the_same_graph_from_everywhere():
    graph = karate()
    frame = nx.to_pandas_edgelist(graph, "src", "dst")
    expected = built(graph=frame, weight="weight")
    source, destination, weight = (frame[name].to_numpy() for name in ("src", "dst", "weight"))
    matrix = nx.to_scipy_sparse_array(graph)
    for other in (
        built(graph=graph, weight="weight"),
        built(graph=pa.Table.from_pandas(frame), weight="weight"),
        built(graph=(source, destination, weight)),
        built(graph=(source.tolist(), pd.Series(destination), pd.Index(weight))),
        built(graph=matrix),
        built(graph=sp.csc_matrix(matrix)),
        built(graph=sp.triu(matrix)),
        built(graph=built(graph=frame, weight="weight")),
        built(graph=frame.astype({"src": "Int32", "weight": "Int64"}), weight="weight"),
        built(graph=frame.convert_dtypes(dtype_backend="pyarrow"), weight="weight"),
    ):
        same(expected, other)
        assert other.external().tolist() == list(range(34))
    same(built(graph=frame), built(graph=matrix.astype(bool)))


def test_networkx_directed_multigraphs_and_node_types():
    graph = nx.MultiDiGraph([("b", "a"), ("b", "a"), ("c", "c")])
    graph.add_node("z")
    got = built(graph=graph, multigraph="keep")
    assert got.directed
    assert got.external().tolist() == ["a", "b", "c", "z"]
    assert rows_of(got) == [[], [(0, 2)], [(2, 1)], []]
    grid = built(graph=nx.grid_2d_graph(2, 3))
    assert grid.external().tolist() == [(i, j) for i in range(2) for j in range(3)]
    assert grid.vertex_index([(1, 2), (0, 0)]).tolist() == [5, 0]


def test_sparse_matrices():
    matrix = sp.coo_array(([1.0, 2.0, 4.0, 8.0], ([0, 0, 1, 3], [1, 1, 0, 3])), shape=(5, 5))
    directed = built(graph=matrix, directed=True)
    assert rows_of(directed) == [[(1, 3.0)], [(0, 4.0)], [], [(3, 8.0)], []]
    undirected = built(graph=matrix)
    assert rows_of(undirected) == [[(1, 7.0)], [(0, 7.0)], [], [(3, 8.0)], []]
    assert not undirected.directed
    with pytest.raises(ValueError, match=r"must be square, not \(2, 3\)"):
        built(graph=sp.csr_array((2, 3)))


def test_nothing_of_the_callers_is_modified():
    for name, make in GRAPHS.items():
        options = make()
        before = options["graph"].copy(deep=True)
        graph = built(**options)
        graph.transpose(), graph.rows("both"), graph.frame({"d": graph.degree})
        pd.testing.assert_frame_equal(options["graph"], before, obj=name)
    arrays = tuple(np.array(column) for column in zip(*random_pairs(9, 30, 1), strict=True))
    for array in arrays:
        array.flags.writeable = False
    built(graph=(*arrays, np.ones(30)))


def test_results_can_be_written_to():
    graph = built(**GRAPHS["two cliques"]())
    frame = graph.frame({"indices": graph.indices[:10]})
    frame.loc[0, "vertex"] = 99
    frame.loc[0, "indices"] = 99
    frame["vertex"].to_numpy(copy=True)[1] = 99
    assert graph.external().tolist() == list(range(10))
    assert graph.indices.max() == 9
    mine = pd.Series(np.arange(10))
    frame = graph.frame({"mine": mine, "again": mine})
    frame.loc[3, "mine"] = 99
    assert mine.tolist() == frame["again"].tolist() == list(range(10))
    external = graph.external()
    external[0] = 99
    assert graph.frame({})["vertex"].tolist() == list(range(10))


# ---------------------------------------------------------------- ids


DAY = pd.Timestamp("2024-03-01")
IDS = {
    "int8": pd.Series([3, -100, 127, 0], dtype="int8"),
    "uint8": pd.Series([3, 0, 255, 9], dtype="uint8"),
    "int32": pd.Series([3, -(2**31), 2**31 - 1, 0], dtype="int32"),
    "int64": pd.Series([3, -(2**63), 2**63 - 1, 0]),
    "uint64": pd.Series([3, 2**63, 2**64 - 1, 0], dtype="uint64"),
    "Int64": pd.Series([3, 2, 9, 0], dtype="Int64"),
    "arrow": pd.Series([3, 2, 9, 0], dtype="int32[pyarrow]"),
    "python ints": pd.Series([3, 2, 2**63, 0], dtype=object),
    "str": pd.Series(["b", "a", "Z", "é"]),
    "object strings": pd.Series(["b", "a", "Z", "é"], dtype=object),
    "arrow strings": pd.Series(["b", "a", "Z", "é"], dtype="string[pyarrow]"),
    "bytes": pd.Series([b"b", b"a", b"Z", b"0"]),
    "datetime": pd.Series(
        [DAY, DAY - pd.Timedelta("3D"), DAY + pd.Timedelta("1s"), pd.Timestamp(0)]
    ),
    "zoned": pd.Series(pd.date_range("2024-01-01", periods=4, tz="Europe/Paris")[::-1]),
    "timedelta": pd.Series(pd.to_timedelta([3, 1, 7, 0], unit="s")),
    "dates": pd.Series([datetime.date(2024, 1, day) for day in (9, 3, 7, 1)]),
    "period": pd.Series(pd.period_range("2024-01", periods=4, freq="M")[::-1]),
    "category": pd.Series(["b", "a", "Z", "é"], dtype="category"),
    "integer category": pd.Series([5, 3, 9, 0], dtype="category"),
    "tuples": pd.Series([(1, "b"), (0, "z"), (1, "a"), (0, "")]),
}


@pytest.mark.parametrize("name", IDS)
def test_ids_come_back_as_they_went_in(name):
    ids = IDS[name]
    frame = pd.DataFrame({"src": ids, "dst": ids.iloc[[1, 2, 3, 0]].reset_index(drop=True)})
    graph = built(graph=frame, directed=True)
    got = graph.frame({})["vertex"]
    assert got.dtype == ids.dtype
    assert got.tolist() == sorted(ids.tolist())
    index = graph.vertex_index(ids)
    assert [got[i] for i in index.tolist()] == ids.tolist()
    assert graph.indices.tolist() == [
        index.tolist()[(index.tolist().index(v) + 1) % 4] for v in range(4)
    ]
    some = graph.frame({"x": np.arange(2)}, vertex=np.array([2, 0]))
    assert some["vertex"].dtype == ids.dtype
    assert some["vertex"].tolist() == [got[2], got[0]]
    with_more = built(graph=frame.iloc[:2], vertices=ids.iloc[3:])
    assert with_more.number_of_vertices == 4
    assert with_more.frame({})["vertex"].dtype == ids.dtype
    empty = built(graph=frame.iloc[:0])
    assert empty.number_of_vertices == 0
    assert empty.frame({"partition": empty.indices})["vertex"].dtype == ids.dtype


def test_integer_dtypes_unify():
    small, wide = pd.Series([1, 2], dtype="int32"), pd.Series([2, 2**40])
    graph = built(graph=pd.DataFrame({"src": small, "dst": wide}))
    assert graph.external().dtype == np.int64
    assert graph.external().tolist() == [1, 2, 2**40]
    unsigned = pd.Series([2**63, 5], dtype="uint64")
    graph = built(graph=pd.DataFrame({"src": small, "dst": unsigned}))
    assert graph.external().tolist() == [1, 2, 5, 2**63]
    signed = built(graph=(np.array([-1, 2]), np.array([3, 4], dtype="uint64")))
    assert signed.external().dtype == np.int64
    with pytest.raises(TypeError, match="no integer dtype holds both"):
        built(graph=(np.array([-1, 2]), unsigned))


def test_categories_of_two_columns_unite():
    frame = pd.DataFrame(
        {"src": pd.Categorical(["b", "a"]), "dst": pd.Categorical(["c", "b"], ["c", "b", "unused"])}
    )
    got = built(graph=frame).external()
    assert isinstance(got.dtype, pd.CategoricalDtype)
    assert got.tolist() == ["a", "b", "c"]


def test_several_columns():
    graph = built(**GRAPHS["several columns"]())
    frame = graph.frame({"degree": graph.degree})
    assert list(frame.columns) == ["0_vertex", "1_vertex", "degree"]
    assert graph.vertex_index([(1, "acc4")]).tolist() == [
        frame.index[(frame["0_vertex"] == 1) & (frame["1_vertex"] == "acc4")][0]
    ]
    columns = graph.external_columns(np.array([1, 0]), "partition")
    assert list(columns) == ["0_partition", "1_partition"]
    further = pd.DataFrame({"bank": [9], "name": ["new"]})
    more = built(**GRAPHS["several columns"](), vertices=further)
    assert more.number_of_vertices == 11
    with pytest.raises(ValueError, match=r"no vertex of the graph: \(9, 'x'\)"):
        graph.vertex_index([(9, "x")])
    with pytest.raises(ValueError, match="an id of this graph has 2"):
        graph.vertex_index([3])


def test_ids_that_are_no_vertex():
    graph = built(**GRAPHS["two cliques"]())
    with pytest.raises(ValueError, match=r"seeds holds 2 id\(s\) that are no vertex .*: 77, -1;"):
        graph.vertex_index([1, 77, -1], "seeds")
    with pytest.raises(TypeError, match="seeds holds string ids but the vertices are int64"):
        graph.vertex_index(["a"], "seeds")
    with pytest.raises(ValueError, match=r"seeds holds 1 null\(s\)"):
        graph.vertex_index([1, None], "seeds")
    with pytest.raises(TypeError, match="seeds must be a list, array or Series of ids, not 3"):
        graph.vertex_index(3, "seeds")
    assert graph.vertex_index([], "seeds").tolist() == []
    big = built(**GRAPHS["beyond int63"]())
    for missing in (-1, 0, 2**63 - 1, 2**64 - 1):
        with pytest.raises(ValueError, match="no vertex"):
            big.vertex_index([missing])


# ---------------------------------------------------------------- bad input


def frame_of(**columns):
    return {"graph": pd.DataFrame({"src": [1, 2], "dst": [2, 3], **columns})}


BAD = {
    "missing column": (
        {**frame_of(), "source": "payer"},
        ValueError,
        r"source='payer': the frame has no column 'payer'; .*\['src', 'dst'\]",
    ),
    "missing weight": ({**frame_of(), "weight": "w"}, ValueError, "no column 'w'"),
    "null id": (
        frame_of(src=pd.Series([1, None], dtype="Int64")),
        ValueError,
        r"source column 'src' holds 1 null\(s\), the first at row 1",
    ),
    "NaN id": (frame_of(dst=[np.nan, 1.0]), ValueError, "nulls turn integers into floats"),
    "null string": (frame_of(src=["a", None], dst=["a", "b"]), ValueError, "an id cannot be null"),
    "NaT": (
        {"graph": (np.array(["2024-01-01", "NaT"], dtype="M8[D]"),) * 2},
        ValueError,
        r"source \(the first array\) holds 1 null",
    ),
    "arrow null": (
        {"graph": pa.table({"src": [1, None], "dst": [1, 2]})},
        ValueError,
        r"column 'src' holds 1 null\(s\), the first at row 1",
    ),
    "float ids": (frame_of(src=[1.0, 2.5]), TypeError, r"float64 ids.*1\.0.*astype\('int64'\)"),
    "bool ids": (frame_of(src=[True, False]), TypeError, "'src' holds booleans"),
    "complex ids": (frame_of(src=[1j, 2j], dst=[1j, 2j]), TypeError, "complex128"),
    "mixed ids": (frame_of(src=[1, "a"]), TypeError, r"mixes types: int \(1\), str \('a'\)"),
    "mixed columns": (
        frame_of(dst=["a", "b"]),
        TypeError,
        "'src' holds integer ids and destination column 'dst' string ids",
    ),
    "mixed nodes": ({"graph": nx.Graph([(1, "a")])}, TypeError, "the nodes of the graph mixes"),
    "huge ids": (frame_of(src=[2**70, 1]), ValueError, "1180591620717411303424.*64-bit"),
    "unsortable ids": (frame_of(src=[1j, 2j], dst=[1j, 2j]), TypeError, "sorted"),
    "unsortable objects": (
        {"graph": nx.Graph([(object(), object())])},
        TypeError,
        "the nodes of the graph",
    ),
    "zones": (
        frame_of(
            src=pd.to_datetime(["2024"] * 2).tz_localize("UTC"), dst=pd.to_datetime(["2024"] * 2)
        ),
        TypeError,
        "one type",
    ),
    "null weight": (
        {**frame_of(w=[1, None]), "weight": "w"},
        ValueError,
        r"weight column 'w' holds 1 null\(s\) or NaN",
    ),
    "infinite weight": (
        {**frame_of(w=[1, np.inf]), "weight": "w"},
        ValueError,
        r"1 infinite weight\(s\), the first inf at row 1",
    ),
    "negative weight": (
        {**frame_of(w=[-2, -3]), "weight": "w"},
        ValueError,
        r"2 negative weight\(s\), the first -2 at row 0",
    ),
    "string weight": ({**frame_of(w=["a", "b"]), "weight": "w"}, TypeError, "not numbers"),
    "bool weight": ({**frame_of(w=[True, False]), "weight": "w"}, TypeError, "holds bool"),
    "complex weight": ({**frame_of(w=[1j, 1j]), "weight": "w"}, TypeError, "real numbers"),
    "uint64 weight": (
        {**frame_of(w=np.array([1, 2**63], dtype="uint64")), "weight": "w"},
        ValueError,
        "1 too large",
    ),
    "matrix NaN": (
        {"graph": sp.csr_array(np.array([[0, np.nan], [1, 0]]))},
        ValueError,
        "the values of the matrix holds 1 null",
    ),
    "sets": (
        {"graph": nx.Graph([(frozenset([1]), frozenset([2]))])},
        TypeError,
        "nodes of the graph holds sets",
    ),
    "lengths": ({"graph": ([1, 2], [1])}, ValueError, "of one length, not 2, 1"),
    "tuple of one": ({"graph": ([1, 2],)}, ValueError, "not 1 items"),
    "two dimensions": ({"graph": (np.ones((2, 2), int), [1, 2])}, ValueError, "one dimension"),
    "column counts": ({**frame_of(), "source": ["src", "dst"]}, ValueError, "names 2 column"),
    "array as column": ({**frame_of(), "source": np.arange(3)}, TypeError, "must be a column name"),
    "tuple weight": (
        {"graph": ([1], [2]), "weight": "w"},
        ValueError,
        "make the weights its third",
    ),
    "path": (
        {"graph": "no edges.csv"},
        FileNotFoundError,
        "graph: 'no edges.csv': there is no such file or folder",
    ),
    "generator": ({"graph": iter([(1, 2)])}, TypeError, "can be read only once, while a graph"),
    "edge array": ({"graph": np.ones((3, 2))}, TypeError, "pass its columns"),
    "list": ({"graph": [(1, 2)]}, TypeError, r"tuple\(zip\(\*pairs\)\)"),
    "None": (
        {"graph": None},
        TypeError,
        "graph must be a pandas, cuDF, polars, pyarrow or dask edge frame",
    ),
    "nx attribute": (
        {"graph": karate(), "weight": "km"},
        ValueError,
        r"78 edge\(s\) have no such attribute.*\['weight'\]",
    ),
    "nx direction": ({"graph": karate(), "directed": True}, ValueError, "is undirected"),
    "nx vertices": ({"graph": karate(), "vertices": [1]}, ValueError, "does not apply"),
    "multigraph": (
        {**frame_of(), "multigraph": "sum"},
        ValueError,
        "'merge', 'keep' or 'min', not 'sum'",
    ),
    "directed": ({**frame_of(), "directed": "yes"}, TypeError, "True or False, not 'yes'"),
    "device": ({**frame_of(), "device": "tpu"}, ValueError, "device must be"),
    "null vertices": ({**frame_of(), "vertices": [None]}, ValueError, "vertices holds 1 null"),
    "vertices type": ({**frame_of(), "vertices": ["a"]}, TypeError, "vertices string ids"),
    "vertices scalar": ({**frame_of(), "vertices": 3}, TypeError, "vertices must be a list"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_clear_error(name):
    options, error, message = BAD[name]
    with pytest.raises(error, match=message) as caught:
        as_graph(**{"device": "cpu", **options})
    assert len(str(caught.value)) < 400


def test_a_graph_passes_through_with_its_own_options():
    graph = built(**GRAPHS["weighted"]())
    assert built(graph=graph) is graph
    for options in ({"weight": "w"}, {"vertices": [1]}, {"directed": True}):
        with pytest.raises(ValueError, match=r"does not apply|undirected"):
            built(graph=graph, **options)


@pytest.mark.parametrize(
    "empty",
    [
        pd.DataFrame({"src": [], "dst": []}),
        pd.DataFrame(columns=["src", "dst"]),
        pd.DataFrame({"src": pd.Series(dtype="int32"), "dst": pd.Series(dtype="int32")}),
        ([], []),
        (np.empty(0), np.empty(0)),
        pa.table({"src": pa.array([], pa.string()), "dst": pa.array([], pa.string())}),
        nx.Graph(),
        nx.DiGraph(),
        sp.csr_array((0, 0)),
    ],
)
def test_empty_graphs(empty):
    graph = built(graph=empty)
    assert (graph.number_of_vertices, graph.number_of_edges) == (0, 0)
    for csr in (graph.transpose(), graph.rows("both")):
        assert csr.indptr.tolist() == [0]
    frame = graph.frame({"partition": graph.indices})
    assert list(frame.columns) == ["vertex", "partition"]
    assert frame["partition"].dtype == np.int32
    assert len(frame) == 0


def test_attributes_travel_on_the_frame():
    frame = built(**GRAPHS["path"]()).frame({})
    assert kinds.set_attributes(frame, {"sweeps": 2}) is frame
    assert frame.attrs == {"glp": {"sweeps": 2}}


def test_foreign_libraries_are_not_imported():
    assert "cudf" not in sys.modules
    assert isinstance(built(**GRAPHS["path"]()), Graph)
    assert "cudf" not in sys.modules


@pytest.mark.parametrize("name", GRAPHS)
def test_the_sorting_of_a_gpu_builds_the_same_graphs(name, monkeypatch):
    options = GRAPHS[name]()
    expected = built(**options)
    by_counting = expected.rows("both"), expected.transpose()
    monkeypatch.setattr(adjacency_module, "ordering", lambda _: sort_gpu)
    monkeypatch.setattr(rank, "ordering", lambda _: sort_gpu)
    got = built(**options)
    same(got, expected)
    for one, other in zip((got.rows("both"), got.transpose()), by_counting, strict=True):
        same(one, other)
