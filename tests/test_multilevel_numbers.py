"""Multilevel label propagation: gains and values to the last bit; the classes of the twin."""

import pickle
from itertools import pairwise

import graphs
import numpy as np
import reference_multilevel as twin
from hypothesis import given
from hypothesis import strategies as st

from glp_rapids import as_graph, multilevel_label_propagation
from glp_rapids.communities import objective
from glp_rapids.communities.kernels.classes import draws_of_classes
from glp_rapids.communities.kernels.moving import exceeds, gain
from glp_rapids.communities.objective import Objective, cpm, loops_of, squares_of
from glp_rapids.communities.schedule import iterations_for
from glp_rapids.graph import connected
from glp_rapids.jit.cpu import compiled


@given(
    st.lists(st.integers(0, 2**61) | st.sampled_from([2**31 - 1, 2**31]), max_size=9),
    st.integers(0, 2**62),
)
def test_values_of_partitions_are_exact(volumes, inside):
    volumes = np.array([volume // 9 for volume in volumes] + [2**31 - 1] * 50, np.int64)
    objective = Objective(None, 2**62 - 1, 0, 0, None)
    squares = sum(volume**2 for volume in volumes.tolist())
    assert squares_of(volumes) == squares
    assert objective.value(inside, squares) == (2**62 - 1) * inside - squares


def test_values_where_nothing_is_compiled(monkeypatch):
    # as it is with NUMBA_DISABLE_JIT=1: what is added up are numbers of NumPy
    plain = getattr(objective._add_squares, "py_func", objective._add_squares)
    monkeypatch.setattr(objective, "_add_squares", plain)
    assert squares_of(np.array([2**60, 2**60 - 1], np.int64)) == 2**120 + (2**60 - 1) ** 2


@compiled(error_model="numpy")
def _gain(weight, constant, volume, others):
    return gain(weight, constant, volume, others)


@compiled(error_model="numpy")
def _exceeds(high, low, other_high, other_low):
    return exceeds(high, low, other_high, other_low)


numbers = st.integers(0, 2**62) | st.sampled_from([0, 1, 2**32 - 1, 2**32, 2**62])


@given(numbers, numbers, numbers, numbers, numbers)
def test_gains_are_exact(weight, constant, volume, others, another):
    high, low = _gain(*map(np.int64, (weight, constant, volume, others)))
    value = weight * constant - volume * others
    assert (int(high) << 64) + int(low) == value
    other_value = another * constant - volume * others
    other = _gain(*map(np.int64, (another, constant, volume, others)))
    words = (np.int64(high), np.uint64(low), np.int64(other[0]), np.uint64(other[1]))
    assert bool(_exceeds(*words)) == (value > other_value)


def test_small_graphs_have_more_iterations():
    sizes = (1, 2**18, 2**18 + 1, 2**19, 2**19 + 1, 2**20, 2**20 + 1, 2**40)
    assert [iterations_for(size) for size in sizes] == [6, 6, 5, 4, 3, 3, 2, 2]


def test_classes_are_the_twins():
    words = np.arange(50, dtype=np.uint64) * np.uint64(2**57 + 1)
    for seed, draw, number in ((0, 0, 4), (2**32 - 1 + (3 << 48) + (2 << 40), 2, 8)):
        class_of, offsets, members = draws_of_classes(words, seed, draw, number)
        expected = twin.classes_of(words.tolist(), seed, draw, number)
        found = [members[a:b].tolist() for a, b in pairwise(offsets)]
        assert found == expected
        assert all(class_of[v] == turn for turn, part in enumerate(expected) for v in part)


@given(graphs.edge_frames(20, 25), st.lists(st.integers(0, 2), min_size=30, max_size=30))
def test_pieces_are_the_twins(edges, labels):
    graph = as_graph(**{**edges, "directed": False}, device="cpu")
    labels = np.array(labels[: graph.number_of_vertices])
    neighbours = [{} for _ in labels]
    for u, v, weight in twin.edges_of(graph.indptr, graph.indices, graph.weights):
        neighbours[u][v] = neighbours[v][u] = weight
    assert connected.connected_parts(graph, labels).tolist() == twin.pieces(
        neighbours, labels.tolist()
    )


TRIANGLES = ([0, 1, 2, 3, 4, 5, 2], [1, 2, 0, 4, 5, 3, 3])


def test_no_community_is_worth_a_resolution_that_floats_just_hold():
    found = multilevel_label_propagation(TRIANGLES, objective="cpm", resolution=1e308)
    assert found["partition"].tolist() == [0, 1, 2, 3, 4, 5]
    assert found.attrs["glp"]["cpm"] == 0


def test_a_graph_keeps_where_its_self_loops_are():
    graph = as_graph(([0, 1, 2, 2], [1, 2, 0, 2]), device="cpu")
    loops = loops_of(graph)
    assert graph.indices[loops].tolist() == [2]
    assert loops_of(graph) is loops
    assert not pickle.loads(pickle.dumps(graph)).has("self-loops")


def test_the_bound_for_lone_vertices_counts_nothing_but_loops():
    rows = as_graph(([0, 1, 2, 2], [1, 2, 0, 2]), device="cpu").rows("out")
    objective = cpm(rows, np.arange(3, dtype=np.uint64), 0.5)
    assert objective.quality(objective.in_loops, 0) == 1.0
    assert objective.quality(objective.total, squares_of(3 * objective.network.volume[:1])) == 2.5
