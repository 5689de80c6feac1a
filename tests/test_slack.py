"""How many neighbours may change before a winner can: never more than brute force allows."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import glp_rapids
from glp_rapids.propagation import run
from glp_rapids.propagation.slack import slack_of

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
