"""Ego-networks are the subgraphs that neighbours induce, as a frame and as arrays."""

import tracemalloc

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import reference_diversity as reference
from graphs import GRAPHS, clique, edge_frames, edges, power_law_pairs
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from glp_rapids import as_graph, ego_networks
from glp_rapids.device import array_module, device_of, to_host
from glp_rapids.graph.graph import Graph

POWER_LAW = edges(power_law_pairs(400, 2500, 2))


def egos_of(graph):
    graph = graph.to("cpu")
    neighbours = reference.neighbour_sets(graph.indptr, graph.indices)
    return [reference.ego_network(neighbours, v) for v in range(len(neighbours))]


def rows_of(egos, vertices):
    """(ego, src, dst) of vertex indices."""
    return [(v, a, b) for v in vertices for a, row in egos[v].items() for b in sorted(row) if a < b]


def expected_frame(graph, egos, vertices):
    ego, source, end = np.array(rows_of(egos, vertices), dtype=np.int64).reshape(-1, 3).T
    columns = graph.external_columns(source, "src") | graph.external_columns(end, "dst")
    names = graph.external_columns(ego, "ego")
    kind = graph.frame(names | columns, ego)
    return kind[[*names, *columns]]


def assert_arrays(found, egos, vertices):
    """The batched CSR, row by row."""
    host = {name: to_host(getattr(found, name)) for name in ARRAYS}
    assert host["vertices"].tolist() == list(vertices)
    assert host["offsets"].dtype == np.int64
    assert host["indptr"].dtype == np.int64
    offsets, indptr = host["offsets"].tolist(), host["indptr"].tolist()
    assert offsets == [0, *np.cumsum([len(egos[v]) for v in vertices], dtype=int).tolist()]
    assert host["members"].tolist() == [u for v in vertices for u in egos[v]]
    expected = []
    for start, v in zip(offsets, vertices, strict=False):
        node = {u: start + i for i, u in enumerate(egos[v])}
        expected += [[node[u] for u in sorted(row)] for row in egos[v].values()]
    assert indptr == [0, *np.cumsum([len(row) for row in expected], dtype=int).tolist()]
    assert host["indices"].tolist() == [node for row in expected for node in row]


ARRAYS = ("vertices", "offsets", "members", "indptr", "indices")


def check(graph, device, subset=None):
    egos = egos_of(graph)
    vertices = range(len(egos)) if subset is None else subset
    options = {"symmetrize": graph.directed, "device": device}
    if subset is not None:
        options["vertices"] = graph.external(np.array(subset, dtype=np.int64))
    found = ego_networks(graph, **options)
    assert_frame_equal(found, expected_frame(graph, egos, vertices), check_dtype=False)
    arrays = ego_networks(graph, arrays=True, **options)
    assert {device_of(getattr(arrays, name)) for name in ARRAYS} == {device}
    assert_arrays(arrays, egos, vertices)


@pytest.mark.parametrize("name", GRAPHS)
def test_they_are_induced_subgraphs(name, device):
    graph = as_graph(**GRAPHS[name](), device=device)
    check(graph, device)
    n = graph.number_of_vertices
    for subset in (
        [],
        range(n),
        range(n)[::-1],
        range(n)[::2],
        np.random.default_rng(0).permutation(n)[:9],
    ):
        check(graph, device, [int(v) for v in subset])


@given(edge_frames() | edge_frames(8, 90), st.randoms(use_true_random=False))
def test_they_are_induced_subgraphs_of_any_graph(device, given, random):
    graph = as_graph(**given, device=device)
    check(graph, device)
    n = graph.number_of_vertices
    check(graph, device, random.sample(range(n), random.randint(0, n)))


def test_they_are_those_of_networkx(device):
    frame = POWER_LAW["graph"]
    graph = nx.from_pandas_edgelist(frame, "src", "dst")
    graph.remove_edges_from(nx.selfloop_edges(graph))
    found = ego_networks(frame, device=device)
    assert found.columns.tolist() == ["ego", "src", "dst"]
    groups = {ego: rows for ego, rows in found.groupby("ego")}
    for v in graph:
        ego = {(min(edge), max(edge)) for edge in nx.ego_graph(graph, v, center=False).edges}
        rows = groups.get(v, found[:0])
        assert set(zip(rows["src"], rows["dst"], strict=True)) == ego
        assert len(rows) == len(ego)


@pytest.mark.parametrize(
    "name", ["strings", "unicode", "beyond int63", "negative", "several columns"]
)
def test_ids_come_back_as_they_went_in(name, device):
    given = GRAPHS[name]()
    given.pop("vertices", None)
    frame = given["graph"]
    found = ego_networks(**given, device=device)
    ends = [given.get("source", "src"), given.get("destination", "dst")]
    pairs = {
        frozenset(map(tuple, ([one], [other]) if isinstance(ends[0], str) else (one, other)))
        for one, other in zip(*(frame[end].to_numpy().tolist() for end in ends), strict=True)
    }
    width = len(found.columns) // 3
    for row in found.itertuples(index=False):
        ego, source, end = row[:width], row[width : 2 * width], row[2 * width :]
        assert {frozenset([ego, source]), frozenset([ego, end]), frozenset([source, end])} <= pairs
    # a clique of five has 5 ego-networks of 6 edges
    assert len(found) == 60


def test_frames_do_not_depend_on_the_order_of_rows(device):
    frame = POWER_LAW["graph"]
    expected = ego_networks(frame, device=device)
    shuffled = pd.concat([frame, frame[::3]]).sample(frac=1, random_state=1)
    assert_frame_equal(ego_networks(shuffled, device=device), expected)


def test_batches_keep_to_the_limit():
    random = np.random.default_rng(0)
    graph = as_graph(tuple(random.integers(0, 30_000, (2, 1_000_000))), device="cpu")
    ego_networks(graph, range(9), device="cpu")  # what is kept with the graph, and compiled
    tracemalloc.start()
    found = ego_networks(graph, range(20_000), memory_limit="12MB", device="cpu")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.attrs["glp"]["batches"] > 9
    assert peak < 12e6 + 3 * found.memory_usage().sum() + 120 * graph.number_of_vertices


def test_batches_change_nothing(device):
    graph = as_graph(**POWER_LAW, device=device)
    expected = ego_networks(graph, device=device)
    arrays = ego_networks(graph, arrays=True, device=device)
    batches = []
    for limit in [2**i for i in range(12, 31)]:
        try:
            found = ego_networks(graph, memory_limit=limit, device=device)
            found_arrays = ego_networks(graph, memory_limit=limit, arrays=True, device=device)
        except MemoryError as error:
            assert "memory_limit" in str(error)  # noqa: PT017
            continue
        assert_frame_equal(found, expected)
        for name in ARRAYS:
            one, other = getattr(found_arrays, name), getattr(arrays, name)
            assert array_module(one).array_equal(one, other)
        batches.append(found.attrs["glp"]["batches"])
    assert batches[0] > 2
    with pytest.raises(MemoryError, match="memory_limit"):
        ego_networks(graph, memory_limit=1, device=device)


def test_the_result_says_how_it_came(device):
    facts = ego_networks(**POWER_LAW, device=device).attrs["glp"]
    assert facts["device"] == device
    assert facts["seconds"] >= 0
    assert facts["peak_memory"] > 0
    assert facts["batches"] >= 1


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        ({"vertices": [0, 77]}, ValueError, "vertices.*77"),
        ({"vertices": ["a"]}, TypeError, "vertices"),
        ({"vertices": [None]}, (ValueError, TypeError), "vertices"),
        ({"vertices": [0, 1, 0]}, ValueError, "vertices.*0"),
        ({"memory_limit": 0}, ValueError, "memory_limit must.*not 0"),
        ({"memory_limit": "big"}, ValueError, "memory_limit must.*'big'"),
        ({"directed": True}, ValueError, "directed.*symmetrize=True"),
        ({"device": "tpu"}, ValueError, "device must.*'tpu'"),
        ({"graph": None}, TypeError, "graph"),
    ],
    ids=str,
)
def test_bad_input_is_refused(wrong, error, words):
    with pytest.raises(error, match=words):
        ego_networks(**{**edges(clique(range(4))), "device": "cpu", **wrong})


@pytest.mark.gpu
def test_cudf_in_cudf_out():
    cudf = pytest.importorskip("cudf")
    for name in ("several columns", "strings", "beyond int32", "self-loops"):
        given = GRAPHS[name]()
        expected = ego_networks(**given, device="cpu")
        given["graph"] = cudf.from_pandas(given["graph"])
        found = ego_networks(**given)
        assert isinstance(found, cudf.DataFrame)
        assert_frame_equal(found.to_pandas(), expected, check_dtype=False)


def test_the_graph_is_left_alone(device):
    graph = as_graph(**POWER_LAW, device=device)
    assert isinstance(graph, Graph)
    before = [to_host(array).copy() for array in (graph.indptr, graph.indices)]
    arrays = ego_networks(graph, arrays=True, device=device)
    for name in ARRAYS:
        getattr(arrays, name)[:] = 0
    for array, kept in zip((graph.indptr, graph.indices), before, strict=True):
        assert np.array_equal(to_host(array), kept)
