"""How many neighbours may change before a winner can: never more than brute force allows."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import glp_rapids
from glp_rapids import Program
from glp_rapids.common.fixed_point import fixed_point_scale
from glp_rapids.fraud import clusters
from glp_rapids.graph import call_memory
from glp_rapids.propagation import run, workload
from glp_rapids.propagation.slack import slack_of

STAR = np.zeros(7, np.int64), np.arange(1, 8)
VOTES = st.lists(st.integers(0, 12), min_size=1, max_size=8)


def stays_ahead(votes, winner, changes, largest):
    """Whether so many neighbours, each with the largest vote, can leave the winner ahead alone."""
    worst = [
        votes[winner] - changes * largest > other + changes * largest
        for label, other in enumerate(votes)
        if label != winner
    ]
    return all(worst) and votes[winner] - changes * largest > changes * largest


@given(VOTES, st.integers(0, 9), st.integers(1, 5))
def test_a_winner_stays_ahead_while_there_is_slack(votes, silent, largest):
    """``silent`` neighbours may begin to speak; each has at most the largest vote."""
    votes = [largest * vote for vote in votes]
    degree = sum(votes) // largest + silent
    winner = int(np.argmax(votes))
    slack = int(slack_of(np.int64(votes[winner]), np.int64(degree), np.int64(largest)))
    assert slack >= 0
    assert slack == 0 or stays_ahead(votes, winner, slack, largest)


@pytest.mark.parametrize(("votes", "degree", "slack"), [
    (4, 4, 1), (5, 5, 2), (3, 4, 0), (4, 5, 1), (2, 4, 0), (1, 1, 0), (0, 0, 0), (101, 101, 50),
])  # fmt: skip
def test_slack_of_plain_votes(votes, degree, slack):
    assert slack_of(np.int64(votes), np.int64(degree), np.int64(1)) == slack


@pytest.mark.parametrize("weight", [1, 2**53 + 1, 2**58 + 1, 2**59 + 3, 0.1, 1e308, 1e-290])
def test_no_vote_is_larger_than_the_largest(weight, monkeypatch):
    """Not even of integers that no float holds: slack would be too large."""
    caught = []

    def catching(*arguments):
        caught.append(workload_of(*arguments))
        return caught[-1]

    workload_of = run.workload_of
    monkeypatch.setattr(run, "workload_of", catching)
    edges = np.array([0, 0]), np.array([1, 2]), np.array([weight, weight])
    glp_rapids.label_propagation(edges, device="cpu")
    exact = Fraction(weight) * Fraction(caught[0].scale)
    assert caught[0].largest_vote >= min(round(exact), 2**62)


def test_weights_of_any_size_give_the_same_or_are_refused():
    ends = np.random.default_rng(2).integers(0, 300, (2, 900))
    weights = np.random.default_rng(3).random(900)
    found = glp_rapids.label_propagation((*ends, weights), device="cpu")
    for power in (-960, -300, 300, 900):
        scaled = glp_rapids.label_propagation((*ends, np.ldexp(weights, power)), device="cpu")
        assert scaled.equals(found)
    for power in (-980, -1060):
        with pytest.raises(ValueError, match=r"weight: the largest weight, .* is so small"):
            glp_rapids.label_propagation((*ends, np.ldexp(weights, power)), device="cpu")


def counts_as_nothing(weights, longest):
    """Whether the smallest weight is 0 in fixed point, by Python's own fractions."""
    scale = Fraction(fixed_point_scale(float(max(weights)), longest))
    return any(weight > 0 and round(Fraction(float(weight)) * scale) == 0 for weight in weights)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("others", [[1.0, 2.0, 3.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
def test_weights_that_count_as_nothing_are_warned_of(dtype, others, device, monkeypatch):
    monkeypatch.setattr(workload, "WEIGHTS_AT_ONCE", {"cpu": 3, "gpu": 3})
    half_a_unit = dtype(0.5 / fixed_point_scale(4e9, 7))
    for least, expected in (
        (half_a_unit, True), (half_a_unit / 2, True), (dtype(1e-30), True),
        (np.nextafter(half_a_unit, dtype(1)), False), (dtype(3e9), False),
    ):  # fmt: skip
        weights = np.array([*others, least, 4e9, *others], dtype)[:7]
        assert counts_as_nothing(weights, 7) == expected
        graph = glp_rapids.as_graph((*STAR, weights), device=device)
        for known in (False, True):  # the second time nobody looks
            assert graph.has(("smallest weight", None)) == known
            if expected:
                words = f"smallest weight, {least:g}, counts as 0 beside the largest, 4e\\+09"
                with pytest.warns(UserWarning, match=words) as told:
                    glp_rapids.label_propagation(graph)
                assert [one.filename for one in told] == [__file__]
            else:
                glp_rapids.label_propagation(graph)


class Own(Program):
    largest_amount = 1e30

    def load_neighbor(v, u, weight, state):
        return state.labels[u], 0.5 * weight


class OfWeights(Program):
    def label_score(v, label, freq, state):
        return -freq


CALLS = {
    "layers": lambda graph: glp_rapids.layered_label_propagation(graph, gammas=[0, 1, 2]),
    "order": lambda graph: glp_rapids.layered_label_propagation(graph, order=True),
    "speakers": glp_rapids.speaker_listener,
    "program": lambda graph: glp_rapids.propagate(graph, OfWeights()),
    "streamed": lambda graph: glp_rapids.label_propagation(graph, way="streamed plain"),
    "two ranks": lambda graph: glp_rapids.label_propagation(graph, devices=["cpu", "cpu"]),
    "packed": lambda graph: glp_rapids.label_propagation(glp_rapids.compress(graph)),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("directed", [False, True])
def test_a_call_warns_once_of_weights(name, directed):
    weights = np.array([1e-30, 1, 2, 1e-30, 0, 3, 1e30])
    graph = glp_rapids.as_graph((*STAR, weights), directed=directed, device="cpu")
    with pytest.warns(UserWarning, match="the smallest weight, 1e-30, counts as 0") as told:
        CALLS[name](graph)
    assert len(told) == 1


def test_a_call_that_runs_several_times_warns_once(monkeypatch):
    monkeypatch.setattr(call_memory, "ENTRIES", 1)  # so runs are not put together
    ends = [0, 0, 1, 0, 1, 2], [1, 2, 2, 3, 3, 3]
    weights = np.array([1e-30, 1, 2, 1, 2, 3])
    with pytest.warns(UserWarning, match="the smallest weight, 1e-30, counts as 0") as told:
        clusters.find_clusters(
            (*ends, weights), [0], minimum_size=1, minimum_partners=1, device="cpu"
        )
    assert len(told) == 1


def test_nobody_is_warned_where_weights_are_not_what_is_added_in_fixed_point():
    weights = np.array([1e-30, 1, 2, 3, 4, 5, 1e30])
    glp_rapids.propagate((*STAR, weights), Own(), device="cpu")
    glp_rapids.label_propagation((*STAR, np.array([1, 2, 3, 4, 5, 6, 2**55])), device="cpu")
    glp_rapids.label_propagation((*STAR, np.zeros(7)), device="cpu")
