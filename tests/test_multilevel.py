"""Multilevel label propagation: partitions are the twin's, on either device, with any threads."""

import random
from contextlib import nullcontext

import graphs
import networkx
import numpy as np
import pandas as pd
import pytest
import reference
import reference_multilevel as twin
from cases import some
from hypothesis import given
from hypothesis import strategies as st

from glp_rapids import as_graph, cpm, multilevel_label_propagation
from glp_rapids.communities import levels, multilevel, schedule
from glp_rapids.communities.engines import cpu
from glp_rapids.communities.kernels import merging
from glp_rapids.datasets import load, social
from glp_rapids.device import to_host
from glp_rapids.jit import parallel

UNDIRECTED = [name for name in graphs.GRAPHS if not name.startswith("directed")]
OPTIONS = [
    {},
    {"refine": False, "seed": 3},
    {"objective": "cpm", "resolution": 0.3},
    {"resolution": 2.5, "seed": 2**32 - 1, "tol": 0.0, "iterations": 5},
    {"resolution": 0.01, "max_level": 1, "refine": False},
    {"objective": "cpm", "resolution": 0.02, "max_level": 2, "iterations": 1, "seed": 1},
]


def host_graph(edges):
    return as_graph(**edges, device="cpu")


def words_of(graph):
    ids = graph.external()
    ids = list(ids.itertuples(index=False)) if isinstance(ids, pd.DataFrame) else ids.tolist()
    return [reference.id_word(identity) for identity in ids]


def assert_equals_twin(edges, options):
    graph = host_graph(edges)
    known = {("refined" if name == "refine" else name): value for name, value in options.items()}
    hierarchy, quality = twin.multilevel(
        twin.edges_of(graph.indptr, graph.indices, graph.weights),
        graph.number_of_vertices, words=words_of(graph), **known,
    )  # fmt: skip
    found = multilevel_label_propagation(**edges, device="cpu", **options)
    assert found["partition"].tolist() == hierarchy[-1], options
    np.testing.assert_equal(found.attrs["glp"][options.get("objective", "modularity")], quality)
    levels = multilevel_label_propagation(graph, levels=True, **options)
    assert [part["partition"].tolist() for _, part in levels.groupby("level")] == (
        hierarchy if graph.number_of_vertices else []
    )


@pytest.mark.parametrize("options", some(OPTIONS, *OPTIONS[:3]), ids=str)
@pytest.mark.parametrize("name", UNDIRECTED)
def test_partitions_are_the_twins(name, options):
    if name == "hub" and options:
        pytest.skip("the twin takes seconds")
    assert_equals_twin(graphs.GRAPHS[name](), options)


@pytest.mark.parametrize("name", ["power law", "hub", "integer weights"])
def test_more_classes_when_many_move_first(name, monkeypatch):
    for module in (schedule, twin):
        monkeypatch.setattr(module, "SMALL", 10)
    assert_equals_twin(graphs.GRAPHS[name](), {})


@pytest.mark.parametrize("unsettled", [1, 1000])
@pytest.mark.parametrize("name", ["power law", "random"])
def test_large_levels_with_most_of_the_entries_are_moved(name, unsettled, device, monkeypatch):
    """And contracted, unless too few moved, as ever do where it would have to be all vertices."""
    edges, options = graphs.GRAPHS[name](), {"iterations": 3, "tol": 0.0}

    def moved():
        found = multilevel_label_propagation(**edges, **options, device=device)
        found = found.attrs["glp"]["levels"]
        return [one["level"] for one in found if one["iteration"] > 1 and one["way"] == "up"
                and one["moved"]]  # fmt: skip

    as_it_is = moved()
    if device == "gpu":
        from glp_rapids.communities.engines import small_levels

        monkeypatch.setattr(small_levels, "LARGEST", 0)
    for module in (schedule, twin):
        monkeypatch.setattr(module, "LARGE", 5)
        monkeypatch.setattr(module, "MOST_LEFT", 0.1)
        monkeypatch.setattr(module, "UNSETTLED", unsettled)
    assert_equals_twin(edges, options)
    assert as_it_is == []
    assert set(moved()) == {1} if unsettled == 1 else set(moved()) > {1}
    if device == "gpu":
        assert_gpu_equals_cpu(edges, options)


def preferential(vertices):
    """A graph in which communities as dense as the resolutions below have few vertices."""
    graph = networkx.barabasi_albert_graph(vertices, 5, seed=1)
    return as_graph(pd.DataFrame(graph.edges, columns=["src", "dst"]), device="cpu")


@pytest.mark.parametrize("resolution", [0.5, 0.9, 0.99])
def test_many_that_want_in_together_do_not_spoil_dense_communities(resolution):
    igraph = pytest.importorskip("igraph", reason="igraph is not installed")
    random.seed(0)  # igraph draws from it
    graph = preferential(1000)
    rows = np.repeat(np.arange(1000), np.diff(graph.indptr))
    peer = igraph.Graph(n=1000, edges=np.c_[rows, graph.indices][rows < graph.indices])
    membership = peer.community_leiden("CPM", resolution=resolution, n_iterations=2).membership
    theirs = pd.DataFrame({"vertex": range(1000), "partition": membership})
    wanted = 0.95 * cpm(graph, theirs, resolution=resolution)
    for seed in range(5):
        found = multilevel_label_propagation(
            graph, objective="cpm", resolution=resolution, seed=seed
        )
        assert found.attrs["glp"]["cpm"] >= wanted > 0


@pytest.mark.parametrize(("seed", "better"), [(0, True), (1, False), (2, True)])
def test_iterations_go_on_from_what_is_worse_than_lone_vertices(seed, better, monkeypatch):
    for module in (schedule, twin):
        monkeypatch.setattr(module, "CLASSES", 1)
    graph = preferential(60)
    options = {"objective": "cpm", "resolution": 0.9, "seed": seed}
    once = multilevel_label_propagation(graph, **options, iterations=1)
    assert once["partition"].is_unique
    assert not once.attrs["glp"]["converged"]
    assert once.attrs["glp"]["levels"][-1]["moved"][-1] > 0
    found = multilevel_label_propagation(graph, **options)
    assert iterations_of(found) > 1
    assert (found.attrs["glp"]["cpm"] > 0, found.attrs["glp"]["converged"]) == (better, better)
    for more in ({"iterations": 1}, {}):
        frame = pd.DataFrame(twin.edges_of(graph.indptr, graph.indices, None))
        edges = {"graph": frame, "source": 0, "destination": 1}
        assert_equals_twin(edges, options | more)


@pytest.mark.parametrize("name", ["power law", "random"])
def test_no_more_iterations_when_few_move_last(name, monkeypatch):
    edges = graphs.GRAPHS[name]()
    found = multilevel_label_propagation(**edges, iterations=9, tol=0.0)
    for module in (schedule, twin):
        monkeypatch.setattr(module, "UNMOVED", 2)
    assert_equals_twin(edges, {"iterations": 9, "tol": 0.0})
    fewer = multilevel_label_propagation(**edges, iterations=9, tol=0.0)
    assert fewer.attrs["glp"]["converged"]
    assert iterations_of(fewer) == 1 < iterations_of(found)


def iterations_of(found):
    return found.attrs["glp"]["levels"][-1]["iteration"]


def assert_gpu_equals_cpu(edges, options):
    found = multilevel_label_propagation(**edges, device="gpu", **options)
    expected = multilevel_label_propagation(**edges, device="cpu", **options)
    assert found.attrs["glp"]["device"] == "gpu"
    assert to_host(found["partition"].values).tolist() == expected["partition"].tolist()
    for name in ("modularity", "cpm", "converged", "sweeps"):
        one, other = (frame.attrs["glp"].get(name) for frame in (found, expected))
        np.testing.assert_equal(one, other, err_msg=name)
    ours, theirs = (
        [{name: value for name, value in level.items() if name != "seconds"}
         for level in frame.attrs["glp"]["levels"]]
        for frame in (found, expected)
    )  # fmt: skip
    assert ours == theirs


@pytest.mark.gpu
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", UNDIRECTED)
def test_a_gpu_finds_the_same(name, options):
    assert_gpu_equals_cpu(graphs.GRAPHS[name](), options)


@pytest.mark.gpu
@given(graphs.edge_frames(), st.integers(0, 2**32 - 1), st.booleans())
def test_a_gpu_finds_the_same_on_any_graph(edges, seed, refine):
    edges = {**edges, "directed": False}
    assert_gpu_equals_cpu(edges, {"seed": seed, "refine": refine})
    assert_gpu_equals_cpu(edges, {"seed": seed, "objective": "cpm", "resolution": 0.25})


@pytest.mark.gpu
@pytest.mark.parametrize(
    "name", ["football", "email-Enron", "ca-CondMat", "com-dblp", "cnr-2000", "wiki-Vote",
             "web-NotreDame", "lfr-10000-mu0.3"],
)  # fmt: skip
def test_a_gpu_finds_the_same_on_real_graphs(name, data):
    frame = load(name)
    rng = np.random.default_rng(1)
    graph = as_graph(frame, device="cpu")
    weighted = as_graph(
        frame.assign(weight=rng.integers(0, 2**40, len(frame))), weight="weight", device="cpu"
    )
    for one in (graph, weighted):
        assert_gpu_equals_cpu({"graph": one}, {})
        assert_gpu_equals_cpu({"graph": one}, {"refine": False, "seed": 5, "resolution": 0.5})


@pytest.mark.gpu
def test_levels_that_find_no_room_have_another_launch(monkeypatch):
    """Of a random graph a level has most of the entries of that below."""
    from glp_rapids.communities.engines import small_levels

    begun, fused = [], small_levels.FusedLevels

    def counted(network, labels, parameters, shared):
        begun.append(int(parameters.first))
        return fused(network, labels, parameters, shared)

    monkeypatch.setattr(small_levels, "ROOM", 2)
    monkeypatch.setattr(small_levels, "FusedLevels", counted)
    pairs = graphs.random_pairs(3000, 40_000, 2)
    assert_gpu_equals_cpu(graphs.edges(pairs), {})
    assert max(begun) > 0


@pytest.mark.gpu
@pytest.mark.parametrize("stage", ["up", "refined", "connected_parts"])
@pytest.mark.parametrize("hierarchy", [False, True])
def test_what_a_gpu_has_no_memory_for_runs_on_the_cpu(stage, hierarchy, monkeypatch, cupy):
    from glp_rapids.communities.engines import gpu, small_levels

    def lacks(*arguments, **options):
        raise cupy.cuda.memory.OutOfMemoryError(1, 1)

    edges, options = graphs.GRAPHS["power law"](), {"iterations": 2, "levels": hierarchy}
    expected = multilevel_label_propagation(host_graph(edges), **options)
    monkeypatch.setattr(small_levels, "LARGEST", 0)
    monkeypatch.setattr(gpu.GpuEngine, stage, lacks)
    found = multilevel_label_propagation(as_graph(**edges, device="gpu"), **options)
    assert found.attrs["glp"]["device"] == "cpu"
    assert to_host(found["partition"].values).tolist() == expected["partition"].tolist()


class SaidElsewhere:
    """A graph of the host that says it is on a GPU."""

    device = "gpu"

    def __init__(self, graph):
        self._graph = graph

    def __getattr__(self, name):
        return getattr(self._graph, name)

    def to_graph(self):
        return self

    def to(self, device):
        assert device == "cpu"
        return self._graph


def test_only_a_gpu_may_lack_memory(monkeypatch):
    def lacks(objective, device, options, tell):
        ran.append(device)
        if len(ran) == 1:
            raise MemoryError
        return run(objective, device, options, tell)

    ran, run, graph = [], levels.run, host_graph(graphs.GRAPHS["power law"]())
    expected = multilevel_label_propagation(graph)["partition"].tolist()
    options = {"refine": True, "max_level": 9, "iterations": None, "tol": 1e-5, "seed": 0}
    monkeypatch.setattr(levels, "run", lacks)
    monkeypatch.setattr(multilevel, "reused_memory", lambda *_: nullcontext())
    monkeypatch.setattr(multilevel, "to_device", lambda array, device: array)
    found, report = multilevel._run(SaidElsewhere(graph), "modularity", 1.0, False, **options)
    assert (ran, report["device"]) == (["gpu", "cpu"], "cpu")
    assert found.labels.tolist() == expected
    ran.clear()
    with pytest.raises(MemoryError):
        multilevel_label_propagation(graph)
    assert ran == ["cpu"]


@given(
    graphs.edge_frames(),
    st.fixed_dictionaries(
        {},
        optional={
            "refine": st.booleans(),
            "objective": st.sampled_from(["modularity", "cpm"]),
            "resolution": st.sampled_from([1e-6, 0.1, 0.7, 1.0, 3.0, 1e9]),
            "max_level": st.integers(1, 3),
            "iterations": st.integers(1, 4),
            "tol": st.sampled_from([0.0, 0.01]),
            "seed": st.integers(0, 2**32 - 1),
        },
    ),
)
def test_partitions_of_any_graph_are_the_twins(edges, options):
    assert_equals_twin({**edges, "directed": False}, options)


def test_a_larger_graph_in_threads_and_rows_in_any_order(monkeypatch):
    source, destination = social(300, seed=1, device="cpu")
    frame = pd.DataFrame({"src": source, "dst": destination})
    graph = as_graph(frame, device="cpu")
    hierarchy, _ = twin.multilevel(
        twin.edges_of(graph.indptr, graph.indices, graph.weights),
        graph.number_of_vertices, words=words_of(graph),
    )  # fmt: skip
    monkeypatch.setattr(cpu, "PARALLEL_FROM", 0)
    monkeypatch.setattr(cpu, "A_CALL", 0)  # one class a call
    monkeypatch.setattr(cpu, "ENOUGH", 0)
    shuffled = frame.sample(frac=1, random_state=0).rename(columns={"src": "dst", "dst": "src"})
    for edges in (frame, shuffled):
        found = multilevel_label_propagation(edges, device="cpu")
        assert found["partition"].tolist() == hierarchy[-1]


def test_memory_does_not_grow_with_threads_without_end(monkeypatch):
    graph = host_graph(graphs.GRAPHS["power law"]())
    found = multilevel_label_propagation(graph)
    gather, totals = merging.gather_rows, []

    def gather_rows(threads, offsets, *arguments):
        totals.append((threads, arguments[-1].size, arguments[1].indptr.size - 1))
        gather(threads, offsets, *arguments)

    monkeypatch.setattr(cpu, "PARALLEL_FROM", 0)
    monkeypatch.setattr(cpu, "threads_available", lambda: 40)
    monkeypatch.setattr(parallel, "threads_available", lambda: 1)  # one does the work of 40
    monkeypatch.setattr(merging, "gather_rows", gather_rows)
    assert multilevel_label_propagation(graph).equals(found)
    assert totals[0][0] > 1
    assert all(size <= cpu.TOTALS * vertices for _, size, vertices in totals)


def test_heavy_weights_do_not_overflow():
    light = graphs.two_cliques()
    for factor in (1, 2**40, 2**57):
        edges = graphs.edges(light, [factor * (1 + i % 3) for i in range(len(light))])
        found = multilevel_label_propagation(**edges, device="cpu")
        assert found["partition"].tolist() == [0] * 5 + [1] * 5
        assert_equals_twin(edges, {"resolution": 0.01})
    many = graphs.edges(graphs.random_pairs(60, 2000, 5), [2**40 + i for i in range(2000)])
    assert_equals_twin(many, {})


def test_gains_too_small_for_a_float_count():
    pairs = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5), (2, 3), (9, 9)]
    edges = graphs.edges(pairs, [1] * 7 + [2**57])
    options = {"objective": "cpm", "resolution": 0.5}
    found = multilevel_label_propagation(**edges, **options, device="cpu")
    assert found["partition"].tolist() == [0, 0, 0, 1, 1, 1, 2]
    assert found.attrs["glp"]["cpm"] == float(2**57)
    assert_equals_twin(edges, options)


@pytest.mark.parametrize("name", ["power law", "integer weights", "two cliques"])
def test_isolated_vertices_change_no_community(name):
    edges = graphs.GRAPHS[name]()
    alone = multilevel_label_propagation(**edges, device="cpu", levels=True)
    graph = host_graph(edges)
    more = np.setdiff1d(np.arange(-500, 1500), graph.external())
    beside = as_graph(**{**edges, "vertices": more}, device="cpu")
    found = multilevel_label_propagation(beside, levels=True)
    both = alone.merge(found, on=["vertex", "level"])
    assert len(both) == len(alone)
    assert both.groupby(["level", "partition_x"])["partition_y"].nunique().eq(1).all()
    about = found.attrs["glp"], alone.attrs["glp"]
    assert len({report["modularity"] for report in about}) == 1
    for _, level in found.groupby("level"):
        named = level.sort_values("vertex")["partition"]
        assert named.drop_duplicates().tolist() == list(range(named.nunique()))
        assert named[level["vertex"].isin(more)].is_unique
