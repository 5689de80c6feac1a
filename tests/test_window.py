"""The window against a twin that keeps all rows in a list, step after step, on both engines."""

import numpy as np
import pytest
import window_twin
from cases import some
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from window_twin import MAKERS, Twin, table

from glp_rapids.device import to_host
from glp_rapids.fraud import Change, SlidingWindow
from glp_rapids.fraud.engines import arrays, buckets

place = window_twin.place  # a fixture


def same(window, twin):
    """Everything that a window tells is what the twin finds out."""
    assert len(window) == len(twin.rows)
    if not twin.rows:
        assert window.number_of_vertices == 0
        for ask in (window.graph, window.edges):
            with pytest.raises(ValueError, match="window is empty"):
                ask()
        return
    other = twin.graph()
    rows, ids = other.row_indices(), other.external()
    assert window.number_of_vertices == len(ids)
    assert window.graph().external().equals(ids)
    for weight, exact in (("transfers", other.weights), ("amount", twin.amounts(other))):
        one = window.graph(weight)
        assert one.directed == other.directed
        pairs = [(one.indptr, other.indptr), (one.indices, other.indices), (one.weights, exact)]
        for mine, obvious in pairs:
            assert mine.dtype == obvious.dtype
            assert np.array_equal(to_host(mine), obvious)
    if window._fading is not None:
        faded = window._graph("faded").weights
        assert faded.dtype == np.int64
        assert np.array_equal(to_host(faded), twin.faded(other, *window._fading))
    edges = window.edges()
    once = slice(None) if twin.directed else rows <= other.indices
    assert edges["source"].tolist() == ids[rows[once]].tolist()
    assert edges["destination"].tolist() == ids[other.indices[once]].tolist()
    assert np.array_equal(edges["transfers"], other.weights[once])
    assert np.array_equal(edges["amount"], exact[once])


def machine(make, directed, ids, place, length=5.0, fading=None):
    """Make random steps of a window and its twin, and look at both, or at nothing, after each."""
    numbers = st.integers(0, 9)
    # less apart than the window is long, so that none is taken for a wrong clock
    rows = st.lists(st.tuples(numbers, numbers, st.integers(0, 500), st.integers(0, 9), numbers),
                    min_size=1, max_size=8)  # fmt: skip
    seldom = st.sampled_from([False, False, True])
    bad = st.sampled_from([None] * 5 + ["amount", "source", "time"])
    begins = st.sampled_from([-8.0, -4.5, -4.0, -3.0, -3.0, -2.0])

    class Machine(RuleBasedStateMachine):
        @initialize()
        def begin(self):
            self.window = SlidingWindow(
                length, directed=directed, id="tx" if ids else None, device=place
            )
            if fading is not None:
                self.window.fades(*fading)
            self.twin, self.marks, self.fresh = Twin(length, directed, ids), [0], 100

        @rule(rows=rows, begin=begins, again=seldom, bad=bad, look=st.booleans())
        def append(self, rows, begin, again, bad, look):
            now, batch = self.twin.newest or 0, []
            for source, destination, cents, time, name in rows:
                self.fresh += 1
                batch.append((make(source), make(destination), cents / 100, now + begin + time / 2,
                              name if again else self.fresh))  # fmt: skip
            if bad is not None:
                value = {"amount": -1.0, "source": None, "time": np.nan}[bad]
                with pytest.raises((ValueError, TypeError)):
                    self.window.append(table(batch).assign(**{bad: value}))
            assert self.window.append(table(batch)) == self.twin.append(batch)
            self.after(look)

        @precondition(lambda self: self.twin.newest is not None)
        @rule(by=st.sampled_from([0.5, 1, 2, 7]), look=st.booleans())
        def advance(self, by, look):
            to = self.twin.newest + by
            assert self.window.advance(to) == self.twin.advance(to)
            self.after(look)

        @precondition(lambda self: ids and self.twin.rows)
        @rule(begin=numbers, look=st.booleans())
        def redeliver(self, begin, look):
            batch = self.twin.rows[begin : begin + 4] or self.twin.rows
            found = self.window.append(table(batch))
            assert found == Change(0, 0, 0, len(batch)) == self.twin.append(batch)
            self.after(look)

        @rule(which=st.integers(0, 10**6))
        def changed(self, which):
            mark = self.marks[which % len(self.marks)]
            found = self.window.changed_since(mark)
            assert found["vertex"].tolist() == self.twin.changed_since(mark)

        def after(self, look):
            assert len(self.window) == len(self.twin.rows)
            assert self.window.newest == self.twin.newest
            assert self.window.mark() == len(self.twin.log)
            self.marks.append(self.window.mark())
            if look:
                same(self.window, self.twin)

        def teardown(self):
            if hasattr(self, "twin"):
                same(self.window, self.twin)

    return Machine


def run(machine, examples, steps):
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples, stateful_step_count=steps, deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )  # fmt: skip


CHANCE = pytest.mark.filterwarnings(
    "ignore:each of the .* in the window already", "ignore:.* rows have come too late"
)
KINDS = [(make, directed, ids) for make in MAKERS for directed in (False, True)
         for ids in (False, True)]  # fmt: skip


@CHANCE
@pytest.mark.parametrize(
    ("make", "directed", "ids"),
    some(KINDS, ("integers", False, True), ("strings", True, False), ("strings", False, True)),
)
def test_a_window_is_what_its_rows_make_it(make, directed, ids, place, monkeypatch):
    monkeypatch.setattr(buckets, "SPARE", 8)  # what else only large windows do
    monkeypatch.setattr(arrays, "WAITING", 3)
    fading = (0.75, directed) if ids else None
    run(machine(MAKERS[make], directed, ids, place, fading=fading), 8, 25)


@CHANCE
@pytest.mark.exhaustive
def test_ten_thousand_steps(monkeypatch):
    monkeypatch.setattr(buckets, "SPARE", 8)
    run(machine(MAKERS["integers"], False, True, "cpu"), 100, 100)


@pytest.mark.parametrize(("options", "error", "words"), [
    ({"days": np.timedelta64(3, "D")}, TypeError, "days must be a number"),
    ({"days": np.complex64(1)}, TypeError, "days must be a number"),
    ({"days": -1}, ValueError, "days must be positive"),
    ({"days": 2, "decimals": 2.0}, TypeError, "decimals must be an integer"),
    ({"days": 2, "decimals": np.arange(2)}, TypeError, "decimals must be an integer"),
    ({"days": 2, "decimals": 10}, ValueError, "decimals must be in 0..9"),
    ({"days": 2, "time_unit": ["D"]}, ValueError, "time_unit must be one of D, h"),
])  # fmt: skip
def test_a_window_says_what_its_options_must_be(options, error, words):
    with pytest.raises(error, match=words):
        SlidingWindow(**options, device="cpu")
    assert SlidingWindow(np.float32(2.1), decimals=np.int8(9), device="cpu").days == np.float32(2.1)
