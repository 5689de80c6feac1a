"""Transactions that come again, and ids of every type."""

import numpy as np
import pandas as pd
import pytest
import window_twin
from cases import exhaustive, some
from transfers import batch

from glp_rapids.fraud import Change, SlidingWindow, engines, window_state

place = window_twin.place  # a fixture

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
    assert window.newest == 2.5  # nor does what is twice in a batch
    assert window.advance(6.5) == Change(0, 1, 0, 0)
    assert window.append(frame) == Change(1, 0, 1, 2)  # its first row has left
    assert window.advance(9) == Change(0, 3, 0, 0)
    assert window.append(frame.assign(time=6.0)) == Change(3, 0, 0, 1)


def test_the_time_of_a_duplicate_moves_no_window(place):
    for frames in (
        [batch([2.0, 4.5], first=3, tx=[2, 2])], [batch([2.0], first=3, tx=[2]),
                                                  batch([4.5], first=4, tx=[2])],
    ):  # fmt: skip
        window = SlidingWindow(3, id="tx", device=place)
        window.append(batch([1.0], tx=[1]))
        changes = [window.append(frame) for frame in frames]
        assert sum(change.duplicates for change in changes) == 1
        assert (window.newest, len(window)) == (2.0, 2)
    window = SlidingWindow(3, id="tx", device=place)
    window.append(batch([9.0], tx=[1]))
    late = batch([4.0, 5.0, 5.0], first=5, tx=[2, 3, 2])
    assert window.append(late) == Change(0, 0, 3, 0)
    # a row that another of its batch makes late is not the first of its id that is taken
    moving = batch([6.5, 11.0, 12.0], first=5, tx=[4, 5, 4])
    assert window.append(moving) == Change(2, 1, 1, 0)
    assert window.newest == 12.0
    for frame in (moving, moving[::-1]):
        assert window.append(frame) == Change(0, 0, 0, 3)


def test_a_history_that_is_longer_than_the_window(place):
    rows = batch([100.5, 104.5, 104.6, 101.0], tx=[7, 7, 8, 8])
    window, parts = (SlidingWindow(1, id="tx", device=place) for _ in range(2))
    assert window.append(rows) == Change(2, 0, 2, 0)
    assert parts.append(rows[2:3]) == Change(1, 0, 0, 0)
    assert parts.append(rows[:2]) == Change(1, 0, 1, 0)
    assert window.edges().to_numpy().tolist() == parts.edges().to_numpy().tolist()


def test_a_leap_is_told_by_its_row_in_the_frame(place):
    window = SlidingWindow(2, id="tx", device=place)
    frame = batch([1.0] * 60, tx=range(60))
    window.append(frame[:30])
    frame.loc[58, "time"] = 400.0
    with pytest.raises(ValueError, match=r"1 of 30 rows are dated up to 400.* \(row 58\)"):
        window.append(frame)


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
        ({"id": "nr"}, {"nr": ["a", "b"]}, TypeError,
         r"the window \(id\) holds integer ids and the batch \(id\) string ids"),
        ({"max_lead": "soon"}, None, TypeError, "max_lead must be a length of time.*'soon'"),
        ({"max_lead": -1}, None, ValueError, "max_lead must be a number from 0 up"),
        ({"max_lead": "-1h"}, None, ValueError, "max_lead must not be negative"),
        ({"max_lead": pd.NaT}, None, ValueError, "max_lead must not be negative"),
        ({"max_lead": True}, None, TypeError, "max_lead must be a length"),
    ],
)  # fmt: skip
def test_bad_ids_and_leads_are_refused(options, columns, error, words):
    def call():
        window = SlidingWindow(5, device="cpu", **options)
        if columns and columns["nr"] == ["a", "b"]:
            window.append(batch([0.5], nr=[1]))
        window.append(batch([1.0, 2.0], **columns))

    with pytest.raises(error, match=words):
        call()


def test_ids_of_another_type_than_those_of_the_window_are_refused(place):
    frame = batch([1.0, 2.0])
    for ids, words in (
        (["a", "b"], r"holds integer ids and the batch \(source and destination\) string ids"),
        (np.array([1, 2**63], np.uint64), r"and the batch \(source and destination\) mix uint64"),
    ):
        window = SlidingWindow(5, device=place)
        window.append(frame.assign(source=[-1, -2]))
        other = frame.assign(source=ids, destination=ids)
        with pytest.raises(TypeError, match=r"^the window \(source and destination\) " + words):
            window.append(other)


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


@pytest.mark.parametrize("places", [1, 2, 5])
def test_rows_that_make_one_another_late_without_end(places):
    """As many rounds as rows, were it not for one pass over all."""
    rows = 30 * window_state.ROUNDS
    frame = batch([5.0 * one for one in range(rows)], tx=[one % places for one in range(rows)])
    window, twin = SlidingWindow(4, id="tx", device="cpu"), window_twin.Twin(4, False, True)
    frame.loc[frame.index[0], "time"] = 0.5
    expected = twin.append(list(frame.itertuples(index=False, name=None)))
    assert window.append(frame) == expected
    assert window.newest == twin.newest
