"""Windows of transactions: the graph from scratch, rows that leave, ids and times, bad batches."""

import numpy as np
import pandas as pd
import pytest
from cases import exhaustive
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from transfers import table

from glp_rapids.device import to_host
from glp_rapids.fraud import (
    Change,
    SlidingWindow,
    suspicious_clusters,
)
from glp_rapids.ingest.read import as_graph

COLUMNS = {"source": "source", "destination": "destination"}
HYPOTHESIS = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def assert_same_graph(graph, other):
    assert graph.directed == other.directed
    for name in ("indptr", "indices", "weights"):
        one, two = to_host(getattr(graph, name)), to_host(getattr(other, name))
        assert one.dtype == two.dtype
        assert np.array_equal(one, two)
    pd.testing.assert_series_equal(pd.Series(graph.external()), pd.Series(other.external()))


def rows_of_ids(ids):
    cents = st.integers(0, 10**7).map(lambda value: value / 100)
    return st.lists(st.tuples(ids, ids, cents, st.integers(0, 12)), max_size=12)


# Of a handful of rows some batches are alike by chance, and most come late.
CHANCE = pytest.mark.filterwarnings(
    "ignore:each of the .* in the window already", "ignore:.* rows have come too late",
    "ignore:.* rows are dated up to",
)

@CHANCE
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    "ids",
    [st.sampled_from("abcdefg"), *exhaustive(st.integers(-3, 5), st.integers(-(2**62), 2**62))],
)
def test_the_window_equals_the_graph_from_scratch(device, directed, ids):
    @HYPOTHESIS
    @given(batches=st.lists(rows_of_ids(ids), max_size=6), days=st.sampled_from([0.5, 1, 3, 20]))
    def check(batches, days):
        window = SlidingWindow(days, directed=directed, device=device)
        seen = table([])
        for batch in batches:
            frame = table(batch)
            before = frame.copy()
            try:
                change = window.append(frame)
            except ValueError as error:
                assert "append them on their own" in str(error)  # noqa: PT017
                return
            pd.testing.assert_frame_equal(frame, before)
            old = len(window) - change.added + change.expired
            seen = pd.concat([part for part in (seen, frame) if len(part)] or [frame])
            inside = seen[seen["time"] > seen["time"].max() - days]
            assert len(window) == len(inside) == old + change.added - change.expired
            assert change.added + change.late == len(frame)
            if not len(inside):
                continue
            for weight, factor in (("transfers", None), ("amount", 10_000)):
                exact = 1 if factor is None else (inside["amount"] * factor).round().astype("int64")
                other = as_graph(
                    inside.assign(w=exact), **COLUMNS, weight="w", directed=directed, device=device
                )
                graph = window.graph(weight)
                if factor is not None:
                    scaled = to_host(other.weights) / np.float64(factor)
                    assert np.array_equal(to_host(graph.weights), scaled)
                else:
                    assert_same_graph(graph, other)
            assert window.graph(None).weights is None

    check()


@CHANCE
@HYPOTHESIS
@given(rows=rows_of_ids(st.integers(0, 6)), shuffle=st.randoms(use_true_random=False))
def test_neither_the_order_of_rows_nor_the_batches_matter(rows, shuffle):
    window, other = (SlidingWindow(4, device="cpu") for _ in range(2))
    times = sorted(row[3] for row in rows)
    assume(len(rows) < 10 or times[-1] - times[0] < 4)  # else some may be taken for outliers
    window.append(table(rows))
    shuffled = list(rows)
    shuffle.shuffle(shuffled)
    for row in shuffled:
        other.append(table([row]))
    assert len(window) == len(other)
    if len(window):
        assert_same_graph(window.graph("amount"), other.graph("amount"))


def test_edges_add_up_transfers_and_amounts(device):
    window = SlidingWindow(10, device=device)
    change = window.append(table([(2, 1, 0.1, 0), (1, 2, 0.2, 1), (3, 3, 5, 2)]))
    assert change == Change(added=3, expired=0, late=0, duplicates=0)
    edges = window.edges()
    assert edges["source"].tolist() == [1, 3]
    assert edges["destination"].tolist() == [2, 3]
    assert edges["transfers"].tolist() == [2, 1]
    assert edges["amount"].tolist() == [0.3, 5.0]  # 0.1 + 0.2 is not 0.3 in floats
    assert SlidingWindow(10, directed=True, device=device).append(table([(2, 1, 1, 0)])).added == 1


def test_rows_leave_late_rows_stay_out_and_both_are_counted(device):
    window = SlidingWindow(2, device=device)
    window.append(table([("a", "b", 1, 0), ("b", "c", 1, 1)]))
    assert window.append(table([("c", "d", 1, 3), ("x", "y", 1, 1)])) == Change(1, 2, 1, 0)
    assert window.edges()["source"].tolist() == ["c"]
    assert (window.newest, window.oldest) == (3.0, 1.0)
    assert window.number_of_vertices == 2
    assert window.append(table([])) == Change(0, 0, 0, 0)
    assert len(window) == 1


def test_dates_are_windows_too_with_and_without_zone(device):
    stamps = pd.to_datetime(["2026-01-01 12:00:00", "2026-01-02 12:00:00", "2026-01-03 11:59:59"])
    frame = table([(0, 1, 1, 0), (1, 2, 1, 0), (2, 3, 1, 0)]).assign(time=stamps)
    for column in (frame["time"], frame["time"].dt.tz_localize("Europe/Berlin"),
                   frame["time"].astype("datetime64[ns]")):  # fmt: skip
        window = SlidingWindow(1, device=device)
        assert window.append(frame.assign(time=column)) == Change(2, 0, 1, 0)
    assert window.newest == np.datetime64("2026-01-03T11:59:59")


def test_numeric_times_count_their_unit(device):
    window = SlidingWindow(1, time_unit="h", amount=None, device=device)
    frame = table([(0, 1, 1, 0), (1, 2, 1, 1), (2, 3, 1, 24)]).drop(columns="amount")
    assert window.append(frame) == Change(2, 0, 1, 0)
    assert window.edges()["amount"].tolist() == [0.0, 0.0]


def test_ids_of_several_columns_and_categories_pass_through(device):
    frame = table([(0, 1, 1, 0), (1, 2, 1, 0)]).assign(bank=["x", "y"], other_bank=["y", "x"])
    window = SlidingWindow(
        1, source=["bank", "source"], destination=["other_bank", "destination"], device=device
    )
    window.append(frame)
    window.append(frame.assign(source=[5, 6]))
    edges = window.edges()
    names = ["0_source", "1_source", "0_destination", "1_destination", "transfers", "amount"]
    assert list(edges.columns) == names
    assert len(edges) == 4
    window = SlidingWindow(1, device=device)
    for letters in ("ab", "cd"):
        ids = pd.Categorical(list(letters))
        window.append(table([(0, 0, 1, 0)] * 2).assign(source=ids, destination=ids[::-1]))
    assert window.edges()["source"].astype(str).tolist() == ["a", "c"]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        (lambda f: f.drop(columns="amount"), ValueError, "amount='amount'.*no column"),
        (lambda f: f.drop(columns="time"), ValueError, "time='time'.*no column"),
        (lambda f: f.drop(columns="source"), ValueError, "source='source'.*no column"),
        (lambda f: f.assign(amount=[1.0, np.nan]), ValueError, "amount column.*null"),
        (lambda f: f.assign(amount=[1.0, -1.0]), ValueError, "negative.*-1.0 at row 1"),
        (lambda f: f.assign(amount=[1.0, np.inf]), ValueError, "inf at row 1"),
        (lambda f: f.assign(amount=["1", "2"]), TypeError, "amount column.*not numbers; cast"),
        (lambda f: f.assign(amount=["1", "2,5"]), TypeError, "not numbers, such as '2,5' at row 1"),
        (lambda f: f.assign(amount=[True, False]), TypeError, "amount column.*not numbers"),
        (lambda f: f.assign(time=["today", "now"]), TypeError, "time column.*datetime64"),
        (lambda f: f.assign(time=[1.0, np.nan]), ValueError, "time column.*null"),
        (lambda f: f.assign(time=[1.0, np.inf]), ValueError, "infinite times"),
        (lambda f: f.assign(time=pd.to_datetime(["2026", "2027"])), TypeError, "numbers so far"),
        (lambda f: f.assign(source=[1.5, 2.5]), TypeError, "floats are no ids"),
        (lambda f: f.assign(source=["a", None]), ValueError, "null"),
        (lambda f: f.assign(source=["a", "b"]), TypeError, "one type"),
        (lambda f: f.assign(source=["a", "b"], destination=["b", "a"]), TypeError, "one type"),
        (lambda f: f.to_numpy(), TypeError, "frame must be"),
        (lambda f: f.assign(amount=8e11), ValueError, None),
    ],
)
def test_a_bad_batch_is_refused_and_leaves_the_window_as_it_was(change, error, message):
    window = SlidingWindow(5, device="cpu")
    frame = table([(1, 2, 3, 4), (2, 3, 4, 5)])
    window.append(frame)
    if message is None:
        window.append(change(frame))  # large, but it fits
        frame = pd.concat([frame] * 4000)
        message = "add up to"
    before, length = window.graph("amount"), len(window)
    with pytest.raises(error, match=message):
        window.append(change(frame))
    assert len(window) == length
    assert window.graph("amount") is before


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"days": 0}, ValueError, "days must be positive"),
        ({"days": float("nan")}, ValueError, "days must be positive"),
        ({"days": "7"}, TypeError, "days must be a number"),
        ({"days": 10**400}, ValueError, "days must be positive and finite"),
        ({"days": 7, "directed": "no"}, TypeError, "directed must be True or False"),
        ({"days": 7, "amount": ["usd"]}, TypeError, "amount must be the name of a column or None"),
        ({"days": 7, "time_unit": "w"}, ValueError, "time_unit"),
        ({"days": 7, "decimals": 12}, ValueError, "decimals"),
        ({"days": 7, "time": None}, TypeError, "time"),
        ({"days": 7, "device": "tpu"}, ValueError, "device"),
        ({"days": 7, "source": "a", "destination": "a"}, ValueError, "both 'a'; name two columns"),
        ({"days": 7, "amount": "time"}, ValueError, "amount and time are both 'time'"),
        ({"days": 7, "id": "source"}, ValueError, "id='source' is the column of an account"),
    ],
)
def test_bad_options_of_a_window_are_refused(options, error, message):
    with pytest.raises(error, match=message):
        SlidingWindow(**options)


def test_an_empty_window_says_so():
    window = SlidingWindow(7, device="cpu")
    window.append(table([]))
    for ask in (window.graph, window.edges, lambda: suspicious_clusters(window, [1])):
        with pytest.raises(ValueError, match="window is empty"):
            ask()
    assert (window.newest, window.oldest, len(window)) == (None, None, 0)
    with pytest.raises(ValueError, match="weight must be"):
        window.graph("value")
