"""The strategies of the GPU give what the CPU gives, whatever the memory they work in."""

import functools

import graphs
import numpy as np
import pandas as pd
import pytest
from programs import Counting

import glp_rapids
from glp_rapids import Program, as_graph, label_propagation, propagate
from glp_rapids.device import to_host
from glp_rapids.propagation.engines import ENGINES

PAIRS = graphs.power_law_pairs(3000, 60000, 6)
# Rows of every kernel of every strategy, hubs of several pieces among them.
LARGER = {
    "many hubs": lambda: graphs.edges([*PAIRS, *[(0, i) for i in range(2500)]]),
    "many hubs, weighted": lambda: graphs.edges(PAIRS, [0.1 * (1 + i % 9) for i in range(60000)]),
    "many hubs, directed": lambda: graphs.edges(PAIRS, directed=True, multigraph="keep"),
}
GRAPHS = {**graphs.GRAPHS, **LARGER}


class Doubtful(glp_rapids.Program):
    """Scores that go up and down, and some that are no number."""

    count_volumes = True

    @staticmethod
    def load_neighbor(v, u, weight, state):
        return state.labels[u], weight if u % 2 else -weight

    @staticmethod
    def label_score(v, label, freq, state):
        if label % 5 == 1:
            return np.nan
        return freq - 0.25 * state.volume[label]


def every_run(graph, seeds, **options):
    """Run all variants, the classic one with several options."""
    few = {"max_iter": 12, "classes": 4, **options}
    yield label_propagation(graph, tol=0.0, **{**few, "classes": 32})
    yield label_propagation(
        graph, explore=3, update="sync", tie_break="max", retain=False, direction="both", **few
    )
    yield label_propagation(graph, explore=2, skip_inactive=False, **few)
    yield glp_rapids.layered_label_propagation(graph, gammas=[0.5, 4], **few)
    yield glp_rapids.speaker_listener(graph, **few)
    yield glp_rapids.seeded_label_propagation(graph, seeds, **few)
    yield glp_rapids.propagate(graph, Counting(), explore=4, **few)
    yield glp_rapids.propagate(graph, Doubtful(), **few)


def prepared(name):
    """Give a graph's keywords, and every fifth id as a seed; weights are float64, if any.

    So every kernel is compiled for two types of weight, not for four.
    """
    edges = GRAPHS[name]()
    if "weight" in edges:
        weight = edges["graph"]["weight"].astype(np.float64)
        edges["graph"] = edges["graph"].assign(weight=weight)
    graph = as_graph(**edges, device="cpu")
    ids = graph.external(np.arange(0, graph.number_of_vertices, 5))
    several = isinstance(ids, pd.DataFrame)
    return edges, list(ids.itertuples(index=False, name=None)) if several else ids.tolist()


@functools.cache
def on_the_cpu(name):
    edges, seeds = prepared(name)
    return list(every_run(as_graph(**edges, device="cpu"), seeds, device="cpu"))


def assert_as_on_the_cpu(name, strategy):
    edges, seeds = prepared(name)
    graph = as_graph(**edges, device="gpu")
    runs = every_run(graph, seeds, strategy=strategy, device="gpu")
    for expected, found in zip(on_the_cpu(name), runs, strict=True):
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
        assert found.attrs["glp"].get("changed") == expected.attrs["glp"].get("changed")


@pytest.mark.gpu
@pytest.mark.parametrize("strategy", ENGINES["gpu", "plain"])
@pytest.mark.parametrize("name", GRAPHS)
def test_all_strategies_agree(name, strategy):
    assert_as_on_the_cpu(name, strategy)


@pytest.mark.gpu
@pytest.mark.parametrize("strategy", ["shared", "global", "sort"])
@pytest.mark.parametrize("name", LARGER)
def test_small_batches_change_nothing(name, strategy, monkeypatch):
    from glp_rapids.propagation.baselines import blocks_per_row, global_table, segmented_sort

    monkeypatch.setattr(global_table, "LARGEST_BATCH", 1000)
    monkeypatch.setattr(segmented_sort, "LARGEST_BATCH", 777)
    monkeypatch.setattr(blocks_per_row, "BATCH_SLOTS", 4096)
    assert_as_on_the_cpu(name, strategy)


@pytest.mark.parametrize("strategy", ENGINES["gpu", "plain"])
def test_a_cpu_takes_every_strategy(strategy):
    edges = graphs.GRAPHS["two cliques"]()
    result = label_propagation(**edges, device="cpu", strategy=strategy)
    assert result["partition"].tolist() == [0] * 5 + [1] * 5


# The largest degrees of the bins (rows of a warp with a table, of a warp, of 32 and 16 lanes, of a
# thread), the slots of a block's table, and from what degree on a row is cut into pieces.
PATHS = {
    "16 lanes": ((1024, 128, 32, 16, 0), 4096, 4096),
    "32 lanes": ((1024, 128, 32, 0, 0), 4096, 4096),
    "a warp": ((4096, 128, 0, 0, 0), 4096, 4096),
    "a warp with a table that is too small": ((4096, 0, 0, 0, 0), 2048, 4096),
    "a block": ((0, 0, 0, 0, 0), 4096, 4096),
    "many blocks": ((0, 0, 0, 0, 0), 4096, 16),
}


@pytest.mark.gpu
@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("name", ["random", "power law", "many hubs", "many hubs, weighted"])
def test_every_path_of_the_persistent_kernel_agrees(name, path, monkeypatch):
    from glp_rapids.propagation.kernels.gpu import hub_pieces, plan, shared_memory, update

    degrees, slots, hub = PATHS[path]
    bins = zip(degrees, plan.WARP_BINS, strict=True)
    bins = tuple(bin._replace(largest_degree=degree) for degree, bin in bins)
    monkeypatch.setattr(plan, "WARP_BINS", bins)
    monkeypatch.setattr(plan, "SHARE_OF_WARP", 1)
    monkeypatch.setattr(plan, "HUB", hub)
    monkeypatch.setattr(hub_pieces, "PIECE", 1 if hub < 4096 else hub_pieces.PIECE)
    monkeypatch.setattr(shared_memory, "TABLE_SLOTS", slots)
    monkeypatch.setattr(update, "OF_BLOCK", hub)
    assert_as_on_the_cpu(name, "auto")


class BeginsWith(Program):
    """The classic, from other first labels."""

    def __init__(self, labels):
        self.labels = labels

    def initial_state(self, graph):
        """Return the labels."""
        return {"labels": self.labels}


@pytest.mark.gpu
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ahead", [1, 0])
@pytest.mark.parametrize("settings", [{"retain": True}, {"retain": False, "tie_break": "hash"}])
def test_few_labels_that_may_win_are_counted_again(weighted, ahead, settings, monkeypatch):
    """Two pieces of a hub hold back what the other says most of, so no bound decides."""
    from glp_rapids.propagation.kernels.gpu import hub_pieces, plan

    monkeypatch.setattr(plan, "HUB", 16)
    monkeypatch.setattr(hub_pieces, "PIECE", 1)  # of 256 entries
    leaves = np.arange(1, 513)
    one, other, first_single = 600, 601, 602
    labels = np.arange(1000)
    labels[1:257] = np.r_[[one] * 200, [other] * 5, first_single : first_single + 51]
    labels[257:513] = np.r_[[other] * 200, [one] * (5 + ahead), 700 : 751 - ahead]
    edges = {"source": np.zeros_like(leaves), "destination": leaves}
    if weighted:
        edges["weight"] = np.full(leaves.size, 0.75)
    frame = pd.DataFrame(edges)
    found = []
    for device in ("gpu", "cpu"):
        graph = as_graph(frame, vertices=np.arange(1000), device=device,
                         source="source", destination="destination",
                         weight="weight" if weighted else None)  # fmt: skip
        found.append(propagate(graph, BeginsWith(labels), update="sync", explore=0, max_iter=1,
                               renumber=False, device=device, **settings))  # fmt: skip
    on_gpu, on_cpu = (to_host(frame["partition"].values) for frame in found)
    assert np.array_equal(on_gpu, on_cpu)
    if ahead:
        assert on_cpu[0] == one
    else:
        assert on_cpu[0] in (one, other)
