"""Whole weights of which no vertex has many: a GPU adds votes in 32 bits, and nothing changes."""

import graphs
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glp_rapids
from glp_rapids import Program, as_graph, propagate
from glp_rapids.common import fixed_point
from glp_rapids.common.fixed_point import LOOKED_AT, all_whole
from glp_rapids.propagation import run
from glp_rapids.propagation.workload import SMALL_SUM

SHAPES = ("star", "hub", "multi-edges", "self-loops", "random", "power law", "two cliques")
# Of the heaviest edge: small sums, the least that are large, and what 32 bits would wrap around.
HEAVIEST = {"small": 9, "large": SMALL_SUM, "beyond 32 bits": 2**33 + 7}


def weighted(shape, heaviest, dtype, seed=0):
    frame = graphs.GRAPHS[shape]()["graph"]
    draws = np.random.default_rng(seed).integers(1, 9, len(frame))
    draws[seed % len(draws)] = heaviest
    return frame.assign(weight=draws.astype(dtype))


class Scored(Program):
    """Labels with even numbers count twice."""

    skip_inactive = True

    def label_score(v, label, freq, state):
        return freq * (2 - label % 2)


class Noted(Program):
    """The sum that won is written down."""

    result_columns = ("sum",)

    def update_vertex(v, label, score, state):
        state.labels[v] = label
        state.sum[v] = score

    def initial_state(self, graph):
        return {"sum": np.zeros(graph.number_of_vertices)}


CALLS = {
    "defaults": {},
    "synchronous": {"update": "sync", "max_iter": 5, "explore": 0},
    "one class": {"classes": 1, "max_iter": 4, "skip_inactive": False},
}


@pytest.fixture
def workloads(monkeypatch):
    """The workloads of the runs of a test."""
    made, workload_of = [], run.workload_of
    monkeypatch.setattr(
        run, "workload_of", lambda *given: made.append(workload_of(*given)) or made[-1]
    )
    return made


@pytest.mark.parametrize(("weights", "small"), [
    ([1, 2, 3], True), ([1.0, 2.0, 3.0], True), ([1.0, 2.5, 3.0], False),
    ([1.0, 2.0, SMALL_SUM / 2 - 1], True), ([1.0, 2.0, SMALL_SUM / 2], False),
    ([1, 2, SMALL_SUM // 2 - 1], True), ([1, 2, SMALL_SUM // 2], False), ([0.0, 0.0, 2.0], True),
])  # fmt: skip
def test_sums_are_small_if_the_longest_row_could_not_have_more(weights, small, workloads):
    found = glp_rapids.label_propagation((np.arange(3), np.arange(1, 4), np.array(weights)),
                                         device="cpu")  # fmt: skip
    assert workloads[0].small_sums is small
    assert (workloads[0].scale == 1.0) is (small or weights[0].__class__ is int)
    assert len(found) == 4


def test_without_weights_or_with_amounts_of_its_own_a_program_is_not_asked(workloads):
    class Loud(Program):
        def load_neighbor(v, u, weight, state):
            return state.labels[u], 1000 * weight

    ends = np.arange(3), np.arange(1, 4)
    propagate((*ends, np.ones(3, np.int64)), Loud(), device="cpu", max_iter=1)
    glp_rapids.label_propagation(ends, device="cpu")
    assert [one.small_sums for one in workloads] == [False, False]


def test_a_vote_of_whole_numbers_is_no_larger_than_the_largest(workloads):
    """Else there would be less slack than there is, and more would be evaluated."""
    ends = np.arange(3), np.arange(1, 4)
    for weights in (np.array([1, 3, 2]), np.array([1.0, 3.0, 2.0])):
        glp_rapids.label_propagation((*ends, weights), device="cpu")
    assert [one.largest_vote for one in workloads] == [3, 3]


@pytest.mark.parametrize("dtype", [np.int32, np.float32, np.float64])
def test_all_numbers_are_looked_at(dtype, monkeypatch):
    assert all_whole(np.array([], dtype))
    assert all_whole(np.array([0, 1, 2**24], dtype))
    if np.dtype(dtype).kind == "f":
        assert not all_whole(np.array([0, 1, 0.5], dtype))
        assert not all_whole(np.array([0, np.inf, np.nan], dtype))
        assert not all_whole(np.zeros(LOOKED_AT + 1, dtype))  # so many take time
    else:
        assert all_whole(np.zeros(LOOKED_AT + 1, dtype))


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
def test_all_numbers_of_a_gpu_are_looked_at(dtype, cupy, monkeypatch):
    monkeypatch.setattr(fixed_point, "LOOKED_AT", 10)
    values = cupy.arange(100).astype(dtype)
    assert all_whole(values)
    assert all_whole(values[:0])
    if np.dtype(dtype).kind == "f":
        for place in (0, 9, 10, 99):
            values[place] += 0.5
            assert not all_whole(values)
            values[place] -= 0.5


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
@pytest.mark.parametrize("heaviest", HEAVIEST)
@pytest.mark.parametrize("call", CALLS)
def test_votes_of_32_bits_find_the_same(call, heaviest, dtype, workloads):
    for seed, shape in enumerate(SHAPES):
        frame = weighted(shape, HEAVIEST[heaviest], dtype, seed)
        for program in (None, Scored(), Noted()):
            found = [
                propagate(frame, program, weight="weight", device=device, **CALLS[call])
                if program is not None
                else glp_rapids.label_propagation(
                    frame, weight="weight", device=device, **CALLS[call]
                )
                for device in ("cpu", "gpu")
            ]
            assert found[1].attrs["glp"]["changed"] == found[0].attrs["glp"]["changed"]
            pd.testing.assert_frame_equal(*found)
    assert {one.small_sums for one in workloads} == {heaviest == "small"}


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.int64, np.float32])
def test_hubs_that_several_blocks_share(dtype, workloads):
    """Rows of thousands of labels: pieces, sketches, bounds, and labels that are counted anew."""
    random = np.random.default_rng(3)
    many = 60_000
    for hubs, most in ((1, 5_000), (7, many)):
        ends = random.integers(0, hubs, 4 * many), random.integers(hubs, most + hubs, 4 * many)
        others = random.integers(0, many, (2, 2 * many))
        source, destination = (np.concatenate(pair) for pair in zip(ends, others, strict=True))
        weights = random.integers(1, 9, source.size).astype(dtype)
        graph = as_graph((source, destination, weights), device="cpu")
        for options in CALLS.values():
            expected = glp_rapids.label_propagation(graph, device="cpu", **options)
            found = glp_rapids.label_propagation(graph.to("gpu"), **options)
            assert found.attrs["glp"]["changed"] == expected.attrs["glp"]["changed"]
            assert np.array_equal(found["partition"].to_numpy(), expected["partition"].to_numpy())
    assert {one.small_sums for one in workloads if one.graph.device == "gpu"} == {True}


@pytest.mark.gpu
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30), st.integers(0, 5)), min_size=1,
             max_size=300),
    st.integers(0, 3),
)  # fmt: skip
def test_drawn_graphs(edges, seed):
    source, destination, weights = (np.array(column) for column in zip(*edges, strict=True))
    expected, found = (
        glp_rapids.label_propagation((source, destination, weights), device=device, seed=seed)
        for device in ("cpu", "gpu")
    )
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.gpu
@pytest.mark.parametrize("how", ["warm", "packed", "streamed plain"])
def test_other_engines(how, workloads):
    frame = pd.concat(
        [weighted("power law", 9, np.int64), weighted("hub", 9, np.int64)], ignore_index=True
    )
    graph = as_graph(frame, weight="weight", device="cpu")
    options, gpu = {}, graph.to("gpu")
    if how == "warm":
        earlier = glp_rapids.label_propagation(graph, tol=0)
        graph = as_graph(frame.iloc[3:], weight="weight", vertices=earlier["vertex"], device="cpu")
        touched = frame.iloc[:3][["src", "dst"]].to_numpy().ravel()
        options, gpu = {"initial": earlier, "touched": touched}, graph.to("gpu")
    elif how == "packed":
        gpu = glp_rapids.compress(graph).to("gpu")
    expected = glp_rapids.label_propagation(graph, device="cpu", **options)
    if how == "streamed plain":
        found = glp_rapids.label_propagation(graph, device="gpu", way=how)
    else:
        found = glp_rapids.label_propagation(gpu, **options)
    assert np.array_equal(found["partition"].to_numpy(), expected["partition"].to_numpy())
    assert workloads[-1].small_sums


def test_a_warm_run_does_not_mind_whether_somebody_looked_if_weights_are_whole(monkeypatch):
    """As of many in host memory nobody does, or of a rank's."""
    frame = weighted("power law", 9, np.float32)
    earlier = glp_rapids.label_propagation(frame, weight="weight", tol=0, device="cpu")
    changed = {"initial": earlier, "touched": [1, 2], "weight": "weight", "device": "cpu"}
    found = glp_rapids.label_propagation(frame, **changed)
    monkeypatch.setattr(fixed_point, "LOOKED_AT", 0)
    again = glp_rapids.label_propagation(frame, **changed)
    assert found.attrs["glp"]["evaluated"] == again.attrs["glp"]["evaluated"] < len(earlier)
    assert found.equals(again)
