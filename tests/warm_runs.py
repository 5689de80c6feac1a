"""What a warm run is compared by."""

import pandas as pd


def assert_same_run(one, other):
    pd.testing.assert_frame_equal(one, other)
    assert one.attrs["glp"]["changed"] == other.attrs["glp"]["changed"]


def on_host(frame):
    """The frame of pandas with the same values and attributes."""
    host = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
    host.attrs = frame.attrs
    return host


def assert_same_report(found, expected):
    found = on_host(found)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    for name in ("changed", "pending", "evaluated", "warm", "explored", "converged"):
        assert found.attrs["glp"].get(name) == expected.attrs["glp"].get(name), name
