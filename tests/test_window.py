"""The window against a twin that keeps all rows in a list, step after step, on both engines."""

import itertools
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
from cases import exhaustive, some
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from window_twin import Twin

from glp_rapids.device import to_host
from glp_rapids.fraud import Change, SlidingWindow, engines
from glp_rapids.fraud.engines import arrays, buckets

NAMES = ["source", "destination", "amount", "time", "tx"]
MAKERS = {
    "integers": lambda number: number - 3,
    "large integers": lambda number: (number * 0x9E3779B97F4A7C15) % 2**63 - 2**62,
    "strings": lambda number: f"account {number * 7919 % 101}",
    "dates": lambda number: pd.Timestamp("2026-01-01") + pd.Timedelta(hours=number * 37 % 50),
}


@pytest.fixture(params=["cpu", "arrays", pytest.param("gpu", marks=pytest.mark.gpu)])
def place(request, monkeypatch):
    """The device of a window; its engine is that of this device, or the GPU's on host arrays."""
    if request.param == "arrays":
        monkeypatch.setitem(engines.ENGINES, "cpu", engines.ENGINES["gpu"])
        return "cpu"
    return request.param


def table(rows, columns=NAMES):
    return pd.DataFrame(rows, columns=columns)


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


def batch(times, first=0, **columns):
    ids = np.arange(len(times)) + first
    frame = {"source": ids, "destination": ids + 1, "amount": 1.0, "time": times}
    return pd.DataFrame({**frame, **columns})


IDS = {
    "integers": ("tx", {"tx": [5, 6, 5, 7]}),
    "strings": ("tx", {"tx": list("abac")}),
    "two columns": (["bank", "tx"], {"bank": list("xxxy"), "tx": [1, 2, 1, 1]}),
    "dates": ("tx", {"tx": pd.to_datetime(["2026", "2027", "2026", "2028"])}),
}


@pytest.mark.parametrize("kind", IDS)
def test_a_transaction_that_comes_again_is_not_taken(kind, place):
    name, columns = IDS[kind]
    window = SlidingWindow(5, id=name, device=place)
    frame = batch([1.0, 2.0, 3.0, 2.5], **columns)
    assert window.append(frame) == Change(3, 0, 0, 1)
    assert window.edges()["source"].tolist() == [0, 1, 3]  # the first of equals
    assert window.append(frame) == Change(0, 0, 0, 4)
    assert window.append(frame[::-1]) == Change(0, 0, 0, 4)
    # what is in the window already moves it no further
    assert window.append(frame.assign(time=9.0)) == Change(0, 0, 0, 4)
    assert window.newest == 3.0
    assert window.advance(6.5) == Change(0, 1, 0, 0)
    assert window.append(frame) == Change(1, 0, 1, 2)  # its first row has left
    assert window.advance(9) == Change(0, 3, 0, 0)
    assert window.append(frame.assign(time=6.0)) == Change(3, 0, 0, 1)


def test_rows_that_came_too_late_are_forgotten(place):
    window = SlidingWindow(2, id="tx", device=place)
    window.append(batch([10.0], tx=[1]))
    assert window.append(batch([5.0, 9.5], first=3, tx=[2, 2])) == Change(1, 0, 1, 0)
    assert window.append(batch([9.6], first=5, tx=[2])) == Change(0, 0, 0, 1)


@pytest.mark.parametrize(
    ("options", "columns", "error", "words"),
    [
        ({"id": 3.5}, None, TypeError, "id must be a column name"),
        ({"id": []}, None, ValueError, "id must name at least one"),
        ({"id": "nr"}, {}, ValueError, "id='nr': the frame has no column 'nr'"),
        ({"id": "nr"}, {"nr": ["a", None]}, ValueError, "id column 'nr' holds 1 null"),
        ({"id": "nr"}, {"nr": [1.0, 2.0]}, TypeError, "id column 'nr'.*floats are no ids"),
        ({"id": "nr"}, {"nr": ["a", "b"]}, TypeError, "id holds integer ids and id string"),
        ({"max_lead": "soon"}, None, TypeError, "max_lead must be a length of time.*'soon'"),
        ({"max_lead": -1}, None, ValueError, "max_lead must be a number from 0 up"),
        ({"max_lead": "-1h"}, None, ValueError, "max_lead must not be negative"),
        ({"max_lead": pd.NaT}, None, ValueError, "max_lead must not be negative"),
        ({"max_lead": True}, None, TypeError, "max_lead must be a length"),
    ],
)
def test_bad_ids_and_leads_are_refused(options, columns, error, words):
    def call():
        window = SlidingWindow(5, device="cpu", **options)
        if columns and columns["nr"] == ["a", "b"]:
            window.append(batch([0.5], nr=[1]))
        window.append(batch([1.0, 2.0], **columns))

    with pytest.raises(error, match=words):
        call()


NOW = pd.Timestamp("2026-03-01 12:00")


@pytest.mark.parametrize("lead", ["1h", pd.Timedelta(hours=1), np.timedelta64(60, "m"), 1])
@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
def test_a_row_dated_after_now_is_refused(lead, zone):
    window = SlidingWindow(5, max_lead=lead, time_unit="h" if lead == 1 else "D", device="cpu")
    times = pd.Series([NOW, NOW + pd.Timedelta(hours=1)]).dt.tz_localize("UTC")
    wrong = times + pd.Timedelta(seconds=1)
    now = NOW.tz_localize("UTC")
    times, wrong = (column.dt.tz_convert(zone) for column in (times, wrong))
    if zone is None:
        times, wrong = (column.dt.tz_localize(None) for column in (times, wrong))
        with pytest.raises(TypeError, match=r"now=.* has a time zone, but .* none"):
            window.append(batch(times), now=now)
        now = NOW
    words = r"1 row\(s\) are dated more than max_lead=.*12:00.*at row 1; mend the clock"
    with pytest.raises(ValueError, match=words):
        window.append(batch(wrong), now=now)
    assert (len(window), window.newest) == (0, None)
    assert window.append(batch(times), now=now) == Change(2, 0, 0, 0)
    with pytest.raises(ValueError, match="max_lead"):
        window.append(batch(wrong), now=str(NOW))
    assert len(window) == 2


def test_now_is_the_clock_of_the_system_in_utc():
    window = SlidingWindow(5, max_lead="1h", device="cpu")
    now = pd.Timestamp.now("UTC").tz_localize(None)
    assert window.append(batch([now])).added == 1
    with pytest.raises(ValueError, match="max_lead"):
        window.append(batch([now + pd.Timedelta(hours=2)]))
    window = SlidingWindow(5, max_lead=2, device="cpu")
    with pytest.raises(ValueError, match=r"now: times are numbers.*pass now="):
        window.append(batch([1.0]))
    with pytest.raises(TypeError, match="is a date, but the times of the window are numbers"):
        window.append(batch([1.0]), now=NOW)
    assert window.append(batch([3.0]), now=1).added == 1
    with pytest.raises(ValueError, match=r"max_lead=2.0 after 1.0.*first 3.5 at row 0"):
        window.append(batch([3.5]), now=1)


def test_a_window_moves_forward_without_rows(place):
    window = SlidingWindow(5, device=place)
    assert window.advance(3) == Change(0, 0, 0, 0)
    assert (window.newest, window.oldest, len(window)) == (3.0, -2.0, 0)
    assert window.append(batch([-2.0, 1.0])) == Change(1, 0, 1, 0)
    graph, mark = window.graph(), window.mark()
    assert window.advance(5.5) == window.advance(5.5) == Change(0, 0, 0, 0)
    assert window.mark() == mark
    assert window.graph() is graph
    with pytest.raises(ValueError, match=r"to=5 is before 5.5"):
        window.advance(5)
    for bad in (NOW, None, "x", [1]):
        with pytest.raises((TypeError, ValueError), match="to="):
            window.advance(bad)
    assert window.advance(6) == Change(0, 1, 0, 0)
    assert window.changed_since(mark)["vertex"].tolist() == []
    for ask in (window.graph, window.edges):
        with pytest.raises(ValueError, match="window is empty"):
            ask()
    # ids of another type may follow where none is left
    names = batch([7.0]).astype({"source": "str", "destination": "str"})
    assert window.append(names) == Change(1, 0, 0, 0)
    assert window.graph().external().tolist() == ["0", "1"]


def test_dates_move_forward_in_their_zone(place):
    for zone in (None, "Europe/Berlin"):
        times = pd.Series([NOW]).dt.tz_localize("UTC").dt.tz_convert(zone)
        window = SlidingWindow(1, device=place)
        window.append(batch(times if zone else times.dt.tz_localize(None)))
        window.advance(window.newest + np.timedelta64(1, "h"))
        assert window.newest == np.datetime64("2026-03-01T13:00")
        with pytest.raises(TypeError, match="is a number, but"):
            window.advance(1e9)
        to = NOW.tz_localize("UTC").tz_convert("Asia/Tokyo") + pd.Timedelta(days=1)
        assert window.advance(to if zone else str(NOW + pd.Timedelta(days=1))).expired == 1


def test_marks_that_are_none_are_refused(place):
    window = SlidingWindow(5, source=["a", "b"], destination=["c", "d"], device=place)
    assert list(window.changed_since(window.mark()).columns) == ["0_vertex", "1_vertex"]
    with pytest.raises(ValueError, match="marks are from 0 to 0"):
        window.changed_since(1)
    for bad in (None, True, 0.0):
        with pytest.raises(TypeError, match="mark must be"):
            window.changed_since(bad)
    ends = {"a": [1, 2], "b": ["x", "y"], "c": [1, 2], "d": ["y", "y"]}
    frame = pd.DataFrame({**ends, "amount": 1, "time": 1.0})
    window.append(frame)
    mark = window.mark()
    window.append(frame.assign(a=5)[:1])
    changed = window.changed_since(mark)
    assert changed.to_numpy().tolist() == [[1, "y"], [5, "x"]]


DTYPES = ["int8", "int32", "int64", "uint64", "Int64", "str", "object", "category",
          "datetime64[s]", "datetime64[ns]", "string"]  # fmt: skip


@pytest.mark.parametrize("first", some(DTYPES, "int32", "uint64", "str", "category"))
@pytest.mark.parametrize("columns", [1, *exhaustive(2)])
def test_ids_of_other_types_are_as_arrays_have_them(first, columns, monkeypatch):
    own = engines.ENGINES["cpu"]
    number = np.arange(4)
    for second in DTYPES:
        windows = []
        for make in (own, engines.ENGINES["gpu"]):
            monkeypatch.setitem(engines.ENGINES, "cpu", make)
            names = ["source", "destination"]
            both = [[name, name + "_2"] if columns == 2 else name for name in names]
            window = SlidingWindow(5, source=both[0], destination=both[1], device="cpu")
            told = []
            for shift, dtype in ((-3, first), (1, second), (2, first), (6, second)):
                frame = batch(number / 4 + shift, shift)
                for name in names:
                    frame[name + "_2"] = frame[name] % 2
                    values = frame[name].abs() if dtype == "uint64" else frame[name]
                    values = values.astype("str") if dtype in ("object", "category") else values
                    frame[name] = values.astype(dtype)
                try:
                    told.append(window.append(frame))
                except TypeError as error:
                    told.append(str(error))
                if shift != 1:
                    told.append(window.graph().external())
            windows.append(told)
        for mine, other in zip(*windows, strict=True):
            if isinstance(mine, pd.Series):
                pd.testing.assert_series_equal(mine, other)
            elif isinstance(mine, pd.DataFrame):
                pd.testing.assert_frame_equal(mine, other)
            else:
                assert mine == other


class Stop(BaseException):
    """As a Ctrl-C is: no exception that a library would catch."""


@pytest.mark.parametrize("kind", some(("strings", "integers"), "strings"))
def test_an_append_that_is_stopped_anywhere_leaves_the_window_as_it_was(kind, place, monkeypatch):
    """The line at which it stops is later and later, up to the end.

    When nothing is left to do but to give the lock back, the append has happened.
    """
    monkeypatch.setattr(buckets, "SPARE", 0)
    make, random = MAKERS[kind], np.random.default_rng(0)

    def rows(begin):
        ends = [[make(int(end)) for end in random.integers(0, 20, 30)] for _ in range(2)]
        return table(list(zip(*ends, random.integers(1, 9, 30), begin + random.random(30) * 2,
                              random.integers(0, 99, 30), strict=True)))  # fmt: skip

    window, twin = (SlidingWindow(5, id="tx", device=place) for _ in range(2))
    for begin in (0, 2, 4):
        frame = rows(begin)
        assert window.append(frame) == twin.append(frame)
    more, mark = rows(6), window.mark()
    before = window.edges(), window.newest, len(window), window.graph()
    for line in itertools.count(0, 23):
        left = [line]

        def stop(frame, event, _, left=left):
            if "glp_rapids/fraud" not in frame.f_code.co_filename:
                return None
            left[0] -= event == "line"
            if left[0] < 0:
                raise Stop
            return stop

        sys.settrace(stop)
        try:
            change = window.append(more)
        except Stop:
            sys.settrace(None)
            found = window.edges(), window.newest, len(window), window.graph()
            if window.newest != before[1]:
                change = None
                break
            assert found[0].equals(before[0])
            assert found[1:] == before[1:]
            assert window.changed_since(mark).empty
        else:
            break
        finally:
            sys.settrace(None)
    assert line > 100
    appended = twin.append(more)
    assert change in (appended, None)
    assert window.edges().equals(twin.edges())


def test_graphs_that_are_kept_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(buckets, "SPARE", 0)
    window, random = SlidingWindow(5, device="cpu"), np.random.default_rng(0)
    kept = []
    for step in range(30):
        ends = random.integers(0, 30, (2, 40))
        window.append(pd.DataFrame({"source": ends[0], "destination": ends[1], "amount": 1.0,
                                    "time": step / 2 + random.random(40)}))  # fmt: skip
        graph = window.graph()
        if step % 3:
            array = graph.indices[3:9] if step % 2 else graph.weights
            kept.append((array, array.copy()))
        del graph
        kept = kept[-4:]
        assert all(np.array_equal(array, copy) for array, copy in kept)
    # and memory that nobody has is used again
    window._graphs = (None, {})
    kept.clear()
    arrays = set()
    for step in range(30, 40):
        window.append(batch([step / 10 + 12.0], first=step % 2))
        arrays.add(window.graph().weights.base.ctypes.data)
    assert len(arrays) < 10


def test_memory_that_a_pickle_brings_is_not_written_to(monkeypatch):
    monkeypatch.setattr(buckets, "SPARE", 0)
    window = SlidingWindow(5, device="cpu")
    for step in range(6):
        window.append(batch([step / 2], first=step % 2))
        window.graph()
    buffers = []
    text = pickle.dumps(window, protocol=5, buffer_callback=buffers.append)
    lent = [bytearray(buffer.raw()) for buffer in buffers]
    copies = [bytes(buffer) for buffer in lent]
    one, other = (pickle.loads(text, buffers=lent) for _ in range(2))
    for step in range(6, 12):
        one.append(batch([step / 2], first=step % 2))
        one.graph()
    assert [bytes(buffer) for buffer in lent] == copies
    pd.testing.assert_frame_equal(other.edges(), window.edges())
