"""How results of searches come out, paths as rows of them, and what is refused."""

import io

import numpy as np
import pandas as pd
import pytest
import reference
from graphs import GRAPHS, edges, path
from hypothesis import given
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from glp_rapids import (
    as_graph,
    betweenness_centrality,
    bfs,
    compress,
    multi_source_bfs,
    shortest_paths,
    sssp,
)
from glp_rapids.device import LackOfMemory
from glp_rapids.graph.graph import Graph
from glp_rapids.traversal import engines, paths
from glp_rapids.traversal.engines import largest
from glp_rapids.traversal.kernels import cpu_paths

ROADS = pd.DataFrame(
    {"src": [1, 1, 2, 3, 7], "dst": [2, 3, 3, 4, 8], "km": [7, 2, 4, 1, 1], "w": [7, 2, 4, 1, 1.0]}
)
FAR = 2**31 - 1


# ---------------------------------------------------------------- how results come out


def test_unreached_vertices_in_three_ways():
    most = bfs(ROADS, 1)
    assert most["distance"].tolist() == [0, 1, 1, 2, FAR, FAR]
    assert most["predecessor"].tolist() == [-1, 1, 1, 3, -1, -1]
    null = bfs(ROADS, 1, unreachable="null")
    assert null["distance"].isna().tolist() == [False] * 4 + [True] * 2
    assert null["predecessor"].isna().tolist() == [True] + [False] * 3 + [True] * 2
    assert null["distance"].dtype == "Int32"
    some = bfs(ROADS, 1, unreachable="drop")
    assert_frame_equal(some, most[:4])
    lengths = sssp(ROADS, 1, weight="w", unreachable="null")["distance"]
    assert lengths.dtype == np.float64
    assert lengths.isna().tolist() == [False] * 4 + [True] * 2
    for weight in ("km", "w"):
        assert sssp(ROADS, 1, weight=weight)["distance"][5] == largest(ROADS[weight].dtype)


@pytest.mark.parametrize(
    ("ids", "null"),
    [
        (np.array([3, -1, 5]), True),  # -1 is a vertex
        (np.array([3, -2, 5]), False),
        (np.array([3, 2, 5], np.uint32), True),
        (np.array([3, 2, 5], np.int8), False),
        (pd.array([3, 2, 5], "Int32"), False),
        (["a", "b", "c"], True),
        (pd.to_datetime(["2024-01-01", "2024-01-02", "2024-01-03"]), True),
        (pd.Categorical([3, 2, 5]), True),
    ],
)
def test_what_stands_for_no_predecessor(ids, null):
    frame = pd.DataFrame({"src": ids[:2], "dst": ids[1:]})
    found = bfs(frame, list(ids)[1], device="cpu")
    start = found["distance"] == 0
    assert found["predecessor"][start].isna().all() == null
    if not null:
        assert (found["predecessor"][start] == -1).all()
        assert found["predecessor"].dtype == found["vertex"].dtype
    assert (found["predecessor"][~start] == list(ids)[1]).all()


def test_several_starts_and_one_named_twice():
    frame = edges(path(10))["graph"]
    found = bfs(frame, [9, 0, 0])
    assert found["distance"].tolist() == [0, 1, 2, 3, 4, 4, 3, 2, 1, 0]
    assert found["predecessor"].tolist() == [-1, 0, 1, 2, 3, 6, 7, 8, 9, -1]
    assert_frame_equal(found, bfs(frame, pd.Series([0, 9])))
    assert_frame_equal(sssp(frame, [0, 9]), found)


def test_ids_of_several_columns_and_of_tuples():
    given = GRAPHS["several columns"]()
    found = bfs(**given, start=(0, "acc0"))
    assert_frame_equal(found, bfs(**given, start=[(0, "acc0")]))
    frame = found[["0_vertex", "1_vertex"]]
    assert_frame_equal(found, bfs(**given, start=frame[found["distance"] == 0]))
    assert found["1_predecessor"].isna().sum() == 1
    several = bfs(**given, start=((0, "acc0"), (0, "acc9")))
    assert (several["distance"] == 0).sum() == 2
    tuples = pd.DataFrame({"src": [("a", 1), ("b", 2)], "dst": [("b", 2), ("c", 3)]})
    assert bfs(tuples, ("a", 1))["distance"].tolist() == [0, 1, 2]


def test_targets_end_a_search():
    frame = edges(path(50), np.ones(49))["graph"]
    for weight in ("weight", None):
        found = sssp(frame, 0, weight=weight, targets=[7, 3])
        distance = found["distance"]
        assert distance[:8].tolist() == list(range(8))
        assert (distance[8:] == largest(distance.dtype)).all()
        assert (found["predecessor"][8:] == -1).all()
        cut = sssp(frame, 0, weight=weight, cutoff=7)
        assert_frame_equal(found, cut)
    apart = sssp(ROADS, 1, weight="km", targets=[2, 8])
    assert_frame_equal(apart, sssp(ROADS, 1, weight="km"))


def test_a_cutoff_is_inclusive_and_of_the_type_of_the_weights():
    frame = edges(path(4), np.array([0.1, 0.1, 0.1], np.float32))["graph"]
    assert sssp(frame, 0, weight="weight", cutoff=0.1)["distance"].lt(1).sum() == 2
    whole = edges(path(4), np.array([2, 2, 2]))["graph"]
    assert sssp(whole, 0, weight="weight", cutoff=4.9, unreachable="drop").shape[0] == 3
    assert sssp(whole, 0, weight="weight", cutoff=2**70).attrs["glp"]["reached"] == 4
    assert sssp(whole, 0, weight="weight", cutoff=0).attrs["glp"]["reached"] == 1


def test_duplicates_of_data_count_by_the_shortest():
    twice = pd.DataFrame({"src": [1, 2, 1], "dst": [2, 1, 2], "km": [7, 5, 9]})
    assert sssp(twice, 1, weight="km")["distance"].tolist() == [0, 5]
    added = as_graph(twice, weight="km")
    assert sssp(added, 1)["distance"].tolist() == [0, 21]
    least = as_graph(twice, weight="km", multigraph="min")
    assert sssp(least, 1)["distance"].tolist() == [0, 5]
    directed = as_graph(twice, weight="km", multigraph="min", directed=True)
    assert directed.weights.tolist() == [7, 5]


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
@given(st.data())
def test_the_least_weight_of_duplicates(dtype, data):
    pairs = data.draw(st.lists(st.tuples(*[st.integers(0, 4)] * 2), min_size=1, max_size=40))
    drawn = st.lists(st.integers(0, 9), min_size=len(pairs), max_size=len(pairs))
    weights = (np.array(data.draw(drawn)) / (1 if dtype == np.int64 else 8)).astype(dtype)
    options = {"directed": data.draw(st.booleans()), "multigraph": "min"}
    graph = as_graph(**edges(pairs, weights, **options), device="cpu")
    _, rows = reference.adjacency(pairs, weights.tolist(), **options)
    assert graph.indices.tolist() == [v for row in rows for v in row]
    assert graph.weights.tolist() == [weight for row in rows for weight in row.values()]
    assert graph.weights.dtype == dtype
    order = data.draw(st.permutations(range(len(pairs))))
    shuffled = edges([pairs[i] for i in order], -weights[list(order)] * 0 + weights[list(order)])
    again = as_graph(shuffled["graph"], weight="weight", device="cpu", **options)
    assert again.weights.tobytes() == graph.weights.tobytes()


def test_zero_and_minus_zero_are_one_weight():
    for weights in ([0.0, -0.0], [-0.0, 0.0]):
        graph = as_graph(([1, 1], [2, 2], weights), multigraph="min", device="cpu")
        assert not np.signbit(graph.weights).any()


@pytest.mark.parametrize("scheme", ["packed", "cgr"])
def test_compressed_graphs_are_searched_as_plain_ones(scheme):
    graph = as_graph(**GRAPHS["power law"](), device="cpu")
    assert_frame_equal(bfs(compress(graph, scheme), 0), bfs(graph, 0))


class SomeEngine:
    """An engine of a device that can search, but not along weights."""

    @staticmethod
    def serves(graph):
        return True

    def bfs(self, starts, depth, predecessors):
        raise AssertionError("not called here")


class SmallEngine(SomeEngine):
    """One that cannot take this graph."""

    @staticmethod
    def serves(graph):
        return graph.number_of_vertices < 2


@pytest.mark.parametrize(
    ("engine", "methods", "moves"),
    [
        (SomeEngine, ("bfs",), False),
        (SomeEngine, ("bfs", "sssp"), True),
        (SmallEngine, ("bfs",), True),
    ],
)
def test_what_a_device_has_no_engine_for_is_done_on_the_host(engine, methods, moves, monkeypatch):
    graph = as_graph(ROADS, device="cpu")
    host = as_graph(ROADS, device="cpu")
    with monkeypatch.context() as patch:
        patch.setattr(Graph, "device", "gpu")
        patch.setattr(Graph, "to", lambda self, device: host if device == "cpu" else None)
        patch.setattr(engines, "ENGINES", {**engines.ENGINES, "gpu": lambda: engine})
        found = engines.where_searched(graph, *methods)
    assert found is (host if moves else graph)


def test_an_array_without_dimensions_is_one_start():
    for start in (1, "1"):
        roads = ROADS.astype({"src": type(start), "dst": type(start)})
        pd.testing.assert_frame_equal(bfs(roads, np.array(start)), bfs(roads, start))
    with pytest.raises(ValueError, match=r"start must have one dimension, .* are lists"):
        bfs(ROADS, [[1]])


# ---------------------------------------------------------------- what is refused


ZERO = {"graph": ROADS, "start": 1}
BAD = {
    "unknown start": (bfs, {**ZERO, "start": 99}, ValueError, "start holds 1 id.* 99"),
    "no start": (bfs, {**ZERO, "start": []}, ValueError, "start is empty"),
    "null start": (bfs, {**ZERO, "start": [None]}, (ValueError, TypeError), "start holds"),
    "text start": (bfs, {**ZERO, "start": "ann"}, TypeError, "start holds string ids"),
    "float start": (bfs, {**ZERO, "start": 1.5}, TypeError, "start holds float64 ids"),
    "empty graph": (bfs, {"graph": edges([])["graph"], "start": 0}, ValueError, "start holds"),
    "negative depth": (bfs, {**ZERO, "depth_limit": -1}, ValueError, "depth_limit must be at"),
    "half a depth": (bfs, {**ZERO, "depth_limit": 1.5}, TypeError, "depth_limit must be an int"),
    "unreachable": (bfs, {**ZERO, "unreachable": "nan"}, ValueError, "unreachable must be 'max'"),
    "direction": (bfs, {**ZERO, "direction": "up"}, ValueError, "direction must be 'out'"),
    "predecessors": (bfs, {**ZERO, "return_predecessors": 1}, TypeError, "return_predecessors"),
    "negative cutoff": (
        sssp, {"graph": ROADS, "source": 1, "cutoff": -0.5}, ValueError, "cutoff must be at least",
    ),
    "cutoff nan": (
        sssp, {"graph": ROADS, "source": 1, "cutoff": np.nan}, ValueError, "cutoff must be at",
    ),
    "no target": (sssp, {"graph": ROADS, "source": 1, "targets": []}, ValueError, "targets is em"),
    "unknown target": (
        sssp, {"graph": ROADS, "source": 1, "targets": 9}, ValueError, "targets holds 1 id",
    ),
    "negative weight": (
        sssp, {"graph": ROADS.assign(km=-1), "source": 1, "weight": "km"}, ValueError,
        "holds 5 negative weight.*Dijkstra's need non-negative lengths",
    ),
    "nan weight": (
        sssp, {"graph": ROADS.assign(w=np.nan), "source": 1, "weight": "w"}, ValueError, "NaN",
    ),
    "strategy": (
        sssp, {"graph": ROADS, "source": 1, "strategy": "wolf"}, ValueError, "strategy must be",
    ),
    "memory limit": (
        bfs, {**ZERO, "memory_limit": 10}, LackOfMemory, "is .* too little to sea",
    ),
    "long integers": (
        sssp, {"graph": ROADS.assign(km=2**62), "source": 1, "weight": "km"}, ValueError,
        "weight: .*add up to more than int64",
    ),
    "long floats": (
        sssp, {"graph": ROADS.assign(w=1e308), "source": 1, "weight": "w"}, ValueError,
        "weight: .*add up to more than float64",
    ),
    "no sources": (multi_source_bfs, {"graph": ROADS, "sources": []}, ValueError, "sources is em"),
    "k": (betweenness_centrality, {"graph": ROADS, "k": 7}, ValueError, "k must be at most.*6"),
    "k 0": (betweenness_centrality, {"graph": ROADS, "k": 0}, ValueError, "k must be at least 1"),
    "k and sources": (
        betweenness_centrality, {"graph": ROADS, "k": 1, "sources": [1]}, ValueError, "leave one",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_clear_error(name):
    call, options, error, words = BAD[name]
    with pytest.raises(error, match=words):
        call(**options, device="cpu")


def test_integers_up_to_the_largest_sum_are_exact():
    large = 2**61 - 1
    frame = edges(path(4), np.array([large, large, large]), directed=True)["graph"]
    found = sssp(frame, 0, weight="weight", directed=True)
    assert found["distance"].tolist() == [0, large, 2 * large, 3 * large]


# ---------------------------------------------------------------- paths as rows


def walk(found, target):
    """The path to a target, by the columns of a result."""
    before = dict(zip(found["vertex"], found["predecessor"], strict=True))
    vertices = [target]
    while before.get(vertices[-1]) in before:
        vertices.append(before[vertices[-1]])
    return vertices[::-1]


@pytest.mark.parametrize("unreachable", ["max", "null", "drop"])
@pytest.mark.parametrize("name", ["strings", "negative", "random", "beyond int63", "disconnected"])
def test_paths_are_those_of_the_predecessors(name, unreachable):
    graph = as_graph(**GRAPHS[name](), device="cpu")
    ids = graph.external().tolist()
    found = bfs(graph, ids[0], unreachable=unreachable)
    reached = bfs(graph, ids[0], unreachable="drop")
    there = found["vertex"].tolist()
    targets = there[::3]
    rows = shortest_paths(found.sample(frac=1, random_state=1), targets[::-1])
    ends = [target for target in targets if target in set(reached["vertex"])]
    assert rows.attrs["glp"]["unreached"] == len(targets) - len(ends)
    assert rows["target"].drop_duplicates().tolist() == ends
    for target, path_ in rows.groupby("target"):
        assert path_["vertex"].tolist() == walk(reached, target)
        assert path_["distance"].tolist() == list(range(len(path_)))
        assert path_["step"].tolist() == list(range(len(path_)))


def test_paths_of_ids_of_several_columns():
    found = bfs(**GRAPHS["several columns"](), start=(0, "acc0"))
    rows = shortest_paths(found, (0, "acc9"))
    assert rows["1_vertex"].tolist() == ["acc0", "acc4", "acc5", "acc9"]
    assert rows["1_target"].unique().tolist() == ["acc9"]


@given(st.lists(st.integers(-1, 11), min_size=12, max_size=12), st.permutations(range(12)))
def test_sizes_of_paths_and_circles(before, ends):
    expected = []
    for place in ends:
        size = 0
        while place >= 0 and size <= len(before):
            place, size = before[place], size + 1
        expected.append(size if place < 0 else -1)
    assert cpu_paths.path_sizes(np.array(before), np.array(ends)).tolist() == expected


def test_paths_that_do_not_fit_are_refused_before_they_are_made(monkeypatch):
    found = bfs(edges(path(300))["graph"], 0)
    monkeypatch.setattr(paths, "memory_free", lambda device: 300 * 301 // 2 * 40 - 1)
    with pytest.raises(LackOfMemory, match=r"300 targets have 45,150 vertices.*fewer targets"):
        shortest_paths(found, range(300))
    assert len(shortest_paths(found, range(299))) == 299 * 300 // 2


@pytest.mark.parametrize("unreachable", ["max", "drop", "null"])  # nulls turn ids into floats
@pytest.mark.parametrize("weight", [None, "km", "w"])
def test_paths_of_a_result_that_was_a_file(weight, unreachable):
    found = sssp(ROADS, 1, weight=weight, unreachable=unreachable)
    read = pd.read_csv(io.StringIO(found.to_csv(index=False)))
    targets = found["vertex"].tolist()
    rows = shortest_paths(read, targets)
    expected = shortest_paths(found, targets)
    assert_frame_equal(rows, expected, check_dtype=False)
    assert rows["vertex"].tolist() == [1, 1, 3, 2, 1, 3, 1, 3, 4] or weight is None
    assert rows.attrs["glp"]["unreached"] == (0 if unreachable == "drop" else 2)


def test_results_that_are_none_are_refused():
    found = bfs(ROADS, 1)
    for wrong, words in (
        (found.drop(columns="predecessor"), "return_predecessors=True"),
        (found.drop(columns="distance"), "vertex, distance and predecessor"),
        (found[found["vertex"] != 3], "the predecessor .*3.* is none of its vertices"),
        (found.assign(predecessor=[2, 1, 1, 3, 1, 1]), "in a circle"),
        (pd.concat([found, found]), "twice"),
    ):
        with pytest.raises(ValueError, match=words):
            shortest_paths(wrong, 2)
    with pytest.raises(TypeError, match="result must be a frame"):
        shortest_paths([1, 2], 2)
    with pytest.raises(ValueError, match="targets is empty"):
        shortest_paths(found, [])
    with pytest.raises(ValueError, match="targets holds 1 id"):
        shortest_paths(found, 77)


def test_a_target_that_was_dropped_is_told_from_one_that_is_no_vertex():
    found = bfs(ROADS, 1, depth_limit=0, unreachable="drop")
    words = r"targets holds 1 id\(s\) that are not in result: 2; .* unreachable='null'"
    with pytest.raises(ValueError, match=words):
        shortest_paths(found, 2)
    kept = bfs(ROADS, 1, depth_limit=0, unreachable="null")
    assert shortest_paths(kept, 2).attrs["glp"]["unreached"] == 1
