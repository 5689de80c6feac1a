"""When exploring and settling end, against the same said with lists and fractions."""

from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from glp_rapids.propagation.engines.stepped import SweptEngine
from glp_rapids.propagation.options import Options
from glp_rapids.propagation.schedule import (
    EXPLORING,
    PATIENCE,
    UNKNOWN,
    Schedule,
    floods,
    settles,
    span_of,
    spans_of,
)
from glp_rapids.propagation.ties import TIE_BREAKS, TIE_HASH

CHANGES = st.lists(st.integers(0, 30) | st.integers(0, 1000), min_size=1, max_size=30)


def plainly_floods(changed):
    return len(changed) > 1 and changed[-1] > Fraction(24, 25) * changed[-2]


def plainly_settles(settling, few, patience):
    if settling[-1] <= few:
        return True
    before, since = settling[:-patience], settling[-patience:]
    return bool(patience and before) and min(since) >= min(before)


def plain_schedule(changes, number_of_vertices, options):
    """Give how many sweeps are done, how many of them explored, and whether the rest settled."""
    few = int(options.tol * number_of_vertices)
    patience = PATIENCE if options.tol > 0 else 0
    explored, settled = (0 if options.explore == 0 else None), False
    for sweeps in range(1, min(len(changes), options.max_iter) + 1):
        done = changes[:sweeps]
        if explored is None:
            ends = changes[sweeps - 1] <= few or plainly_floods(done)
            if sweeps == options.explore or (options.stops and ends):
                explored = sweeps
            continue
        settled = plainly_settles(done[explored:], few, patience)
        if settled and options.stops:
            return sweeps, explored, settled
    return min(len(changes), options.max_iter), explored, settled


def plain_span(options, before, number_of_vertices, exploring):
    """How many classes are one: after few changes at most 8 of them are left, after fewer 4.

    Of few vertices 4 are left in the first sweep, too, if it explores.
    """
    few, fewer = (8, 32) if exploring else (4, 8)
    classes = 1 if options.update == "sync" else options.classes
    most = classes
    if not before and exploring and number_of_vertices <= 8192:
        most = 4
    if before and before[-1] <= Fraction(number_of_vertices, few):
        most = 8
    if before and before[-1] <= Fraction(number_of_vertices, fewer):
        most = 4
    return next(1 << i for i in range(17) if -(-classes // (1 << i)) <= most)


@pytest.mark.parametrize("classes", [1, 2, 3, 4, 5, 7, 8, 9, 20, 31, 32, 33, 1000, 65535, 65536])
def test_spans_are_nested(classes):
    """Every merged class is made of whole ones of the next finer kind."""
    spans = spans_of(classes)
    found = {
        span_of(classes, 2, changed, 100, exploring)
        for changed in range(101)
        for exploring in (True, False)
    }
    assert spans == sorted(found | {1})
    assert all(coarse % fine == 0 for fine, coarse in pairwise(spans))
    assert span_of(classes, 1, UNKNOWN, 100, False) == 1


def test_the_first_sweep_that_explores_has_four_classes_where_vertices_are_few():
    assert span_of(32, 1, UNKNOWN, 8192, True) == 8
    assert span_of(32, 1, UNKNOWN, 8193, True) == 1
    assert span_of(32, 1, UNKNOWN, 8192, False) == 1
    assert span_of(32, 1, UNKNOWN, -1, True) == 1  # of a run whose classes never merge
    assert span_of(3, 1, UNKNOWN, 100, True) == 1


def test_classes_merge_at_once_where_a_run_goes_on():
    assert span_of(32, 1, 0, 100, False) == span_of(32, 1, 12, 100, False) == 8
    assert span_of(32, 1, 25, 100, False) == 4
    assert span_of(32, 1, 26, 100, False) == 1
    assert span_of(32, 1, 0, -1, False) == 1


@given(CHANGES, st.lists(st.integers(0, 9), max_size=3))
def test_floods(changed, later):
    assert floods(changed + later, len(changed)) == plainly_floods(changed)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [(100, 96, False), (100, 97, True), (25, 24, False), (0, 0, False), (0, 1, True), (7, 7, True)],
)
def test_floods_from_less_than_one_in_25_on(before, after, expected):
    assert floods([before, after], 2) == expected


def test_one_sweep_does_not_flood():
    assert not floods([1000], 1)


@given(CHANGES, st.data(), st.integers(0, 20), st.integers(0, 5))
def test_settles(changed, data, few, patience):
    explored = data.draw(st.integers(0, len(changed) - 1))
    later = data.draw(st.lists(st.integers(0, 9), max_size=3))
    assert settles(changed + later, explored, len(changed), few, patience) == plainly_settles(
        changed[explored:], few, patience
    )


@given(CHANGES, st.data(), st.integers(0, 20), st.integers(0, 5))
def test_the_least_change_may_stand_for_the_sweeps_that_are_forgotten(changed, data, few, patience):
    """An engine that keeps the last changes only decides as one that keeps all."""
    assume(len(changed) > patience)
    forgotten = data.draw(st.integers(0, len(changed) - 1 - patience))
    explored = data.draw(st.integers(0, forgotten))
    kept = [min(changed[explored : forgotten + 1]), *changed[forgotten + 1 :]]
    if forgotten + 1 < len(changed):
        assert settles(kept, 0, len(kept), few, patience) == settles(
            changed, explored, len(changed), few, patience
        )


OPTIONS = st.builds(
    Options,
    update=st.sampled_from(["semi", "sync"]),
    classes=st.integers(1, 70),
    explore=st.integers(0, 6),
    max_iter=st.integers(0, 30),
    tol=st.sampled_from([0, 0.01, 0.2, 1]),
    stops=st.booleans(),
    retain=st.booleans(),
    tie_break=st.sampled_from(list(TIE_BREAKS)),
    seed=st.integers(0, (1 << 32) - 1),
)


@given(CHANGES, st.integers(1, 100), OPTIONS)
def test_a_schedule_is_what_the_lists_say(changes, number_of_vertices, options):
    schedule = Schedule(options, number_of_vertices)
    given_rules = []
    for changed in changes:
        if schedule.over:
            break
        given_rules.append(schedule.rule())
        schedule.record(changed)
    sweeps, explored, settled = plain_schedule(changes, number_of_vertices, options)
    assert schedule.changed == changes[:sweeps]
    assert schedule.explored == (EXPLORING if explored is None else explored)
    assert schedule.settled == settled
    assert schedule.over == (sweeps == options.max_iter or (settled and options.stops))
    for sweep, rule in enumerate(given_rules, 1):
        assert rule.sweep == sweep
        exploring = explored is None or sweep <= explored
        assert rule.span == plain_span(
            options, changes[: sweep - 1], number_of_vertices, exploring
        )
        if exploring:
            assert (rule.retain, rule.tie_break, rule.revisit_tied) == (False, TIE_HASH, True)
            assert rule.tie_seed == options.seed + sweep * 2**32
        else:
            assert rule.retain == options.retain
            assert rule.tie_break == TIE_BREAKS[options.tie_break]
            assert rule.tie_seed == options.seed
            first = sweep == explored + 1
            assert rule.revisit_tied == (first and not options.retain)
        assert rule.activates_all == (sweep == 1 or changes[sweep - 2] > number_of_vertices)


def test_nothing_to_do_without_vertices():
    schedule = Schedule(Options(stops=False), 0)
    assert schedule.over
    assert schedule.settled


class Counting(SweptEngine):
    """Changes one label less in every sweep; may fail from some sweep on."""

    def __init__(self, first, bad=None):
        self.left, self.bad, self.rules = first, bad, []

    def start(self):
        raise AssertionError

    def sweep(self, rule):
        self.rules.append(rule.sweep)
        self.left -= 1
        return self.left

    def failure(self):
        return -1 if self.bad is not None and len(self.rules) >= self.bad else 0


@pytest.mark.parametrize(
    ("wanted", "bad", "max_iter", "expected"),
    [(3, None, 100, 3), (50, None, 7, 7), (50, 4, 100, 4), (50, None, 100, 10), (0, None, 9, 0)],
)
def test_swept_engine_ends_where_it_should(wanted, bad, max_iter, expected):
    # 9 labels change, then 8 and so on: none in the tenth sweep.
    engine = Counting(10, bad)
    schedule = Schedule(Options(explore=1, max_iter=max_iter, tol=0), 10)
    engine.advance(schedule, wanted)
    assert engine.rules == list(range(1, expected + 1))
    assert schedule.changed == list(range(9, 9 - expected, -1))


def test_few_and_patience_follow_the_tolerance():
    def guards(tol):
        schedule = Schedule(SimpleNamespace(tol=tol, explore=1), 1999)
        return schedule.few, schedule.patience

    assert guards(1e-3) == (1, PATIENCE)
    assert guards(0) == (0, 0)
