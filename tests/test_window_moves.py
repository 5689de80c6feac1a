"""A window that moves by the clock, with no rows or with rows dated too far ahead."""

import numpy as np
import pandas as pd
import pytest
import window_twin
from transfers import batch

from glp_rapids.fraud import Change, SlidingWindow

place = window_twin.place  # a fixture


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
