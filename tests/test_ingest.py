"""What is read is the graph of its edges: against the twin, of every kind, untouched."""

import sys
from unittest import mock

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from built_graphs import built, check, karate, rows_of, same, twin
from graphs import GRAPHS, edge_frames, edges, random_pairs
from hypothesis import given, settings

from glp_rapids.common import segments
from glp_rapids.frames.facts import set_attributes
from glp_rapids.graph import build as adjacency_module
from glp_rapids.graph import sort_cpu, sort_gpu
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.rows import CSR
from glp_rapids.ingest import rank
from glp_rapids.ingest.read import as_graph


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


def test_weights_that_a_gpu_takes_for_0_are_refused(device):
    for places in ([0], [1, 3]):
        weights = np.ones(4, np.float32)
        weights[places] = 1.1e-38
        weights[2] = 0
        columns = ([0, 1, 2, 3], [1, 2, 3, 0])
        message = f"holds {len(places)} too small weight.* at row {places[0]}; .*float64"
        with pytest.raises(ValueError, match=message):
            as_graph((*columns, weights), device=device)
        matrix = sp.csr_array((weights, columns), shape=(4, 4))
        with pytest.raises(ValueError, match="too small weight"):
            as_graph(matrix, device=device)
        graph = as_graph((*columns, weights.astype(np.float64)), device=device)
        assert graph.weights.dtype == float
    least = np.full(4, np.finfo(np.float32).tiny)
    assert as_graph((*columns, least), device=device).weights.dtype == np.float32


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
        with mock.patch.object(sort_cpu, "FEW", 0):  # vertices for each pair
            few = getattr(sort_cpu, name)(*arguments)
        for found in (one, few):
            for left, right in zip(found, other, strict=True):
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


@pytest.mark.parametrize("kind", ["pandas", "csv"])
def test_no_edges_have_no_type_of_weights(kind, tmp_path):
    table = pd.DataFrame(columns=["src", "dst", "w"])
    if kind == "csv":
        (tmp_path / "edges.csv").write_text("src,dst,w\n")
        table = tmp_path / "edges.csv"
    graph = built(graph=table, weight="w", vertices=[3])
    assert (graph.number_of_vertices, graph.weights.dtype) == (1, np.float64)


def test_attributes_travel_on_the_frame():
    frame = built(**GRAPHS["path"]()).frame({})
    assert set_attributes(frame, {"sweeps": 2}) is frame
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
