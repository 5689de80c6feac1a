"""Windows and times that are not what they seem: units, zones, wrong clocks, batches sent twice."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from transfers import batch, table

from glp_rapids.fraud import Change, SlidingWindow, clock, find_clusters

NIGHT = pd.Timestamp("2026-01-31 22:00")


def hours(count, begin=NIGHT, every="6min"):
    return pd.Series(pd.date_range(begin, periods=count, freq=every))


def test_a_window_longer_than_all_dates_keeps_everything(device):
    for days in (1e9, 1e300):
        window = SlidingWindow(days, device=device)
        assert window.append(batch(hours(3))) == Change(3, 0, 0, 0)
        assert window.oldest < np.datetime64("-290000", "us")
        assert SlidingWindow(days, device=device).append(batch([1.0, 2.0])).added == 2


@pytest.mark.parametrize(
    ("times", "options", "words"),
    [
        ([1.0, 2.0**53 + 2], {}, r"9007199254740994; numbers from 2\*\*53.*unit='ns'"),
        (np.array([2**60, 2**60 + 1]), {"time_unit": "us"}, "not told apart"),
        ([-(2.0**60)], {"time_unit": "us"}, "not told apart"),
        ([2e9, 2e9], {"days": 1e-12, "time_unit": "s"}, "days=1e-12 is less than"),
        ([1_700_000_000], {}, "looks like a time since 1970 in 's', not in 'D'"),
        ([1_700_000_000_000], {"time_unit": "s"}, "pass time_unit='ms'"),
        ([1_700_000_000_000_000], {"time_unit": "ms"}, "pass time_unit='us'"),
        ([1_700_000_000], {"time_unit": "h"}, "pass time_unit='s'"),
    ],
)
def test_numbers_of_another_unit_or_beyond_floats_are_refused(times, options, words, device):
    window = SlidingWindow(**{"days": 30, "device": device, **options})
    with pytest.raises(ValueError, match=words):
        window.append(batch(times))
    assert (len(window), window.newest) == (0, None)


@pytest.mark.parametrize(
    ("newest", "options"),
    [(1_700_000_000, {"time_unit": "s"}), (1_700_000_000_000, {"time_unit": "ms"}), (20_500, {}),
     (1_700_000_000_000_000, {"time_unit": "us"}), (10**8, {}), (2_461_000, {})],
)  # fmt: skip
def test_numbers_in_their_unit_are_taken(newest, options, device):
    window = SlidingWindow(30, device=device, **options)
    assert window.append(batch([newest - 1, newest])) == Change(2, 0, 0, 0)
    assert window.newest == newest


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_are_cut_down_to_microseconds_as_far_as_they_reach(unit):
    ends = {"s": 9223372036854, "ms": 9223372036854775, "us": 2**63 - 2, "ns": 2**63 - 1}
    numbers = [-ends[unit], 1 - ends[unit], -1001, -1, 0, 999, 1999, ends[unit] - 1, ends[unit]]
    times, parts = {"s": (10**6, 1), "ms": (1000, 1), "us": (1, 1), "ns": (1, 1000)}[unit]
    found, _ = clock.times(pd.Series(np.array(numbers).astype(f"datetime64[{unit}]")), "t", "D")
    assert found.tolist() == [number * times // parts for number in numbers]
    if unit in ("s", "ms"):
        beyond = pd.Series(np.array([ends[unit] + 1]).astype(f"datetime64[{unit}]"))
        with pytest.raises(ValueError, match="Out of bounds"):
            clock.times(beyond, "t", "D")


ZONES = {
    "none": lambda times: times,
    "UTC": lambda times: times.dt.tz_localize("UTC"),
    "Berlin": lambda times: times.dt.tz_localize("Europe/Berlin"),
    "arrow": lambda times: times.dt.tz_localize("UTC").astype(
        pd.ArrowDtype(pa.timestamp("us", tz="UTC"))
    ),
}


@pytest.mark.gpu
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_times_of_cudf_are_those_of_pandas(unit):
    cudf = pytest.importorskip("cudf", reason="cuDF is not installed")
    numbers = np.array([-1_500_001, -1001, -1000, -1, 0, 1, 1999, 1_700_000_000])
    series = pd.Series(numbers.astype(f"datetime64[{unit}]"))
    expected, kind = clock.times(series, "time column 'time'", "D")
    found, same = clock.times(cudf.from_pandas(series), "time column 'time'", "D")
    assert (found.get() == expected).all()
    assert kind == same


@pytest.mark.parametrize("first", ZONES)
@pytest.mark.parametrize("second", ZONES)
def test_times_have_a_zone_always_or_never(first, second):
    window = SlidingWindow(30, device="cpu")
    window.append(batch(ZONES[first](hours(2))))
    more = batch(ZONES[second](hours(3)), 7)
    if (first == "none") == (second == "none"):
        assert window.append(more).added == 3
        return
    with pytest.raises(TypeError, match=r"held datetime64.*so far, and now .*dt.tz_localize"):
        window.append(more)
    assert len(window) == 2


@pytest.mark.parametrize("rows", [10, 1000])
def test_a_row_of_a_wrong_clock_is_refused_and_the_window_stays(rows, device):
    window = SlidingWindow(30, device=device)
    window.append(batch(hours(100)))
    times = hours(rows, NIGHT + pd.Timedelta(days=1))
    for wrong in ("2099-01-01", "2026-05-01"):
        times[3] = pd.Timestamp(wrong)
        with pytest.raises(ValueError, match=rf"1 of {rows} rows.*{wrong}.*\(row 3\).*their own"):
            window.append(batch(times))
        assert len(window) == 100
    assert window.append(batch(times.drop(3))) == Change(rows - 1, 0, 0, 0)


def test_a_row_of_a_wrong_clock_is_refused_in_a_first_batch_too(device):
    window = SlidingWindow(30, device=device)
    with pytest.raises(ValueError, match=r"1 of 51 rows are dated up to 3000\.0"):
        window.append(batch([*np.linspace(0, 90, 50), 3000.0]))
    assert window.append(batch(np.linspace(0, 90, 50))).late > 0


def test_of_more_rows_far_ahead_a_warning_tells(device):
    window = SlidingWindow(30, device=device)
    times = hours(100)
    times[::5] = pd.Timestamp("2099-01-01")
    with pytest.warns(UserWarning, match=r"20 of 100 rows are dated up to 2099.*left it for good"):
        assert window.append(batch(times)) == Change(20, 0, 80, 0)


@pytest.mark.parametrize("unit", ["D", "h", "s", "ms"])
@pytest.mark.parametrize(
    ("written", "form"),
    [(20260131, "%Y%m%d"), (202601312359, "%Y%m%d%H%M"), (20260131235959, "%Y%m%d%H%M%S")],
)
def test_dates_written_as_numbers_are_refused(unit, written, form, device):
    window = SlidingWindow(10, time_unit=unit, device=device)
    # 234 days of seconds, six years of thousandths
    if form == {"s": "%Y%m%d", "ms": form if written < 10**13 else None}.get(unit):
        assert window.append(batch([written - 1.0, written])).added == 2
        return
    with pytest.raises(ValueError, match=rf"holds {written}, which looks like a date .*{form}"):
        window.append(batch([written - 1.0, written]))
    more = written - written % 100 + 77  # no day, no second
    assert window.append(batch([more - 1.0, more])).added > 0


def test_pauses_longer_than_the_window_are_none_of_its_business(device):
    window = SlidingWindow(1 / 24, device=device)
    window.append(batch(hours(50)))
    morning = NIGHT + pd.Timedelta(hours=12)
    assert window.append(batch(hours(1, morning))).added == 1
    evening = hours(20, morning + pd.Timedelta(hours=12))
    both = pd.concat([hours(30, morning, "1min"), evening], ignore_index=True)
    assert window.append(batch(both)).expired == 1
    weeks = pd.Series(pd.date_range("2026-01-05", "2026-02-02", freq="B").repeat(20))
    assert SlidingWindow(1, device=device).append(batch(weeks)).added == 20


def test_a_window_that_turns_everything_away_says_so(device):
    window = SlidingWindow(30, device=device)
    window.append(batch(hours(100)))
    assert window.append(batch(pd.Series(pd.to_datetime(["2099-01-01"])))).expired == 100
    with pytest.warns(UserWarning, match=r"100 rows have come too late .*2099-01-01.*wrong"):
        change = window.append(batch(hours(100)))
    assert change == Change(0, 0, 100, 0)
    assert window.append(batch(hours(100), 7)).late == 100  # once is enough
    ordinary = SlidingWindow(1, device=device)
    ordinary.append(batch(hours(500)))
    assert ordinary.append(batch(hours(400))).late > 0


def test_a_batch_that_comes_twice_warns(device):
    window = SlidingWindow(30, device=device)
    first, second = batch(hours(50)), batch(hours(50, NIGHT + pd.Timedelta(days=2)))
    window.append(first)
    window.append(second)
    for again in (first, second.sample(frac=1, random_state=0)):
        words = "each of the 50 transactions of this batch is in the"
        with pytest.warns(UserWarning, match=words) as told:
            window.append(again)
        assert told[0].filename == __file__
    assert len(window) == 200  # as before: rows have no names
    window.append(batch(hours(50), first=7))  # alike but for the ids
    window.append(first.assign(amount=2.0))
    window.append(first.assign(source=first["source"].to_numpy()[::-1]))


def test_a_batch_of_other_ids_comes_once(device):
    window = SlidingWindow(30, id="number", device=device)
    rows = batch(hours(50))
    window.append(rows.assign(number=range(50)))
    assert window.append(rows.assign(number=range(50, 100))).added == 50


def test_warnings_that_are_errors_leave_the_window_as_it_was(device):
    window = SlidingWindow(30, device=device)
    first = batch([1.0, 2.0])
    window.append(first)
    with pytest.raises(UserWarning, match="in the window already"):
        window.append(first)
    assert (len(window), window.newest) == (2, 2.0)


def test_one_row_may_come_twice_and_what_has_left_may_come_again(device):
    window = SlidingWindow(2, device=device)
    for _ in range(2):
        assert window.append(batch([1.0])).added == 1
    window.append(batch([1.0, 1.5]))
    window.append(batch([4.2]))
    assert window.append(batch([1.0, 1.5])).late == 2


def test_few_rows_that_empty_a_window_are_told():
    rows = table([(0, 1, 1.0, hour / 24) for hour in range(1200)])
    ahead = table([(0, 1, 1.0, 4000.0)])
    window = SlidingWindow(days=50, device="cpu")
    window.append(rows)
    said = r"1,200 of the 1,200 rows .* one of 1 that came is dated 4000\.0"
    with pytest.raises(UserWarning, match=said):  # warnings are errors in these tests
        window.append(ahead)
    assert len(window) == 1200
    with pytest.warns(UserWarning, match=said):
        assert window.append(ahead).expired == 1200
    guarded = SlidingWindow(days=50, max_lead=5000, device="cpu")
    guarded.append(rows, now=50.0)
    assert guarded.append(ahead, now=4000.0).expired == 1200  # who sets a limit knows
    window.advance(9000.0)
    with pytest.raises(ValueError, match=r"all transactions have left it, which ends with 9000\.0"):
        window.edges()


def test_an_option_that_is_none_is_called_so():
    window = SlidingWindow(days=50, device="cpu")
    window.append(table([(0, 1, 1.0, 1.0)]))
    with pytest.raises(TypeError, match="'min_size' of find_clusters; did you mean minimum_"):
        find_clusters(window, [0], min_size=3)
    with pytest.raises(TypeError, match="a SlidingWindow takes no weight=: it has its own"):
        find_clusters(window, [0], weight="amount")


def test_columns_that_are_there_twice():
    rows = table([(0, 1, 1.0, 1.0)])
    twice = pd.concat([rows, rows[["amount"]]], axis=1)
    with pytest.raises(ValueError, match="amount: the frame has several columns named 'amount'"):
        SlidingWindow(days=50, device="cpu").append(twice)


def test_times_that_are_no_points_in_time_are_named():
    window = SlidingWindow(days=1, device="cpu")
    row = {"source": [1], "destination": [2], "amount": 1.0}
    window.append(pd.DataFrame({**row, "time": [1.0]}))
    with pytest.raises(ValueError, match="to=nan is no point in time"):
        window.advance(float("nan"))
    far = np.array(["2026-01-01"], "datetime64[s]") + np.timedelta64(10**13, "s")
    with pytest.raises(ValueError, match=r"time column 'time'.*OutOfBounds"):
        SlidingWindow(days=1, device="cpu").append(pd.DataFrame({**row, "time": far}))
