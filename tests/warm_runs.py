"""What a warm run is compared by."""

import pandas as pd


def assert_same_run(one, other):
    pd.testing.assert_frame_equal(one, other)
    assert one.attrs["glp"]["changed"] == other.attrs["glp"]["changed"]
