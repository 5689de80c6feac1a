"""Generators of the NetworkX backend: as NetworkX's, and no slower where only a little is taken."""

from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from networkx_graphs import (
    CLASSES,
    FROM_A_NODE,
    agree,
    agree_on_structure,
    awkward,
    convert,
    plain,
)

from glp_rapids.networkx import searches, structure
from glp_rapids.networkx.backend import BackendInterface


@pytest.mark.parametrize("at_once", [1, 3, 1 << 16])
@pytest.mark.parametrize("at_first", [1, 2, 5])
@pytest.mark.parametrize("create_using", CLASSES)
def test_generators_are_as_in_networkx_however_little_they_find_at_a_time(
    create_using, at_first, at_once, monkeypatch
):
    monkeypatch.setattr(searches, "AT_FIRST", at_first)
    monkeypatch.setattr(searches, "AT_ONCE", at_once)
    monkeypatch.setattr(structure, "AT_FIRST", at_first)
    for seed, edges in ((0, 60), (1, 25)):
        graph = awkward(create_using, seed, nodes=30, edges=edges)
        there = convert(graph)
        for node in graph:
            for name, *others in FROM_A_NODE:
                if name.startswith(("bfs", "desc")):
                    agree(graph, there, name, node, *others)
        agree(graph, there, "bfs_layers", list(graph)[4:8])
        agree_on_structure(graph, there)
        for array in there._spare["seen", np.dtype(np.uint8)]:
            assert not array.any()


def _counted(monkeypatch):
    """How many nodes were found after each call of a kernel."""
    counts, run = [], searches._run

    def counted(of, kernel, *arguments):
        run(of, kernel, *arguments)
        state = arguments[-1]
        counts.append(int(state[2] if state.size == 5 else state[1]))

    monkeypatch.setattr(searches, "_run", counted)
    return counts


@pytest.mark.parametrize("make", [nx.star_graph, nx.path_graph, nx.complete_graph])
def test_who_takes_a_few_does_not_wait_for_all(make, monkeypatch):
    graph = make(1200)
    there = convert(graph)
    counts = _counted(monkeypatch)
    for name in ("bfs_edges", "bfs_predecessors", "bfs_successors"):
        counts.clear()
        found = getattr(BackendInterface, name)(there, 0)
        assert not counts
        first = next(found)
        theirs = getattr(nx, name).orig_func(graph, 0)
        assert first == next(theirs)
        assert name == "bfs_successors" or counts == [searches.AT_FIRST]
        assert plain(found) == plain(theirs)
        assert counts[-1] == len(graph)
        assert all(after <= 2 * before for before, after in pairwise(counts))


def test_who_takes_a_layer_does_not_wait_for_those_behind(monkeypatch):
    graph = nx.full_rary_tree(10, 11_111)
    there = convert(graph)
    counts = _counted(monkeypatch)
    found = BackendInterface.bfs_layers(there, 0)
    assert [len(next(found)) for _ in range(3)] == [1, 10, 100]
    assert counts == [111]
    assert BackendInterface.descendants_at_distance(there, 0, 1) == set(range(1, 11))
    assert counts == [111, 11]
    star = convert(nx.star_graph(1200))
    assert next(BackendInterface.bfs_layers(star, 0)) == [0]
    assert counts == [111, 11]  # its 1200 others are not asked for
    BackendInterface.descendants_at_distance(star, 0, 1)
    assert len(star._spare["seen", np.dtype(np.uint8)]) == 1  # which comes back
    assert BackendInterface.is_connected(star)
    assert len(star._spare["seen", np.dtype(np.uint8)]) == 1


def test_who_takes_a_component_does_not_wait_for_the_others(monkeypatch):
    graph = nx.disjoint_union_all([nx.path_graph(20)] * 50)
    for kind, one in (("connected", graph), ("weakly_connected", graph.to_directed())):
        there = convert(one)
        counts = _counted(monkeypatch)
        found = getattr(BackendInterface, f"{kind}_components")(there)
        assert next(found) == set(range(20))
        assert counts == [80]  # as many as make up 64 nodes
        assert not getattr(BackendInterface, f"is_{kind}")(there)
        assert counts == [80, 20]
        assert getattr(BackendInterface, f"number_{kind}_components")(there) == 50
        assert len(list(found)) == 49


def test_searches_that_are_left_in_the_middle_disturb_no_other():
    graph = nx.gnm_random_graph(500, 1500, seed=3)
    there = convert(graph)
    begun = []
    for node in list(graph)[:6]:
        for name in ("bfs_edges", "bfs_layers", "bfs_successors"):
            ours, theirs = getattr(BackendInterface, name), getattr(nx, name).orig_func
            begun.append((ours(there, node), theirs(graph, node)))
            assert next(begun[-1][0]) == next(begun[-1][1])
    del begun[::2]
    for ours, theirs in begun:
        assert plain(ours) == plain(theirs)
    agree(graph, there, "bfs_edges", 7)
    assert not any(array.any() for array in there._spare["seen", np.dtype(np.uint8)])
