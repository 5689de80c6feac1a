"""Frames for runs on Dask clusters, and what two results of runs have in common."""

import numpy as np
import pandas as pd


def large_frame(rows=20_000):
    draws = np.random.default_rng(0).random((rows, 2))
    return pd.DataFrame((rows / 7 * draws**2).astype(np.int64), columns=["src", "dst"])


def assert_same(found, expected):
    parts = [part.compute() for part in found.to_delayed()]
    together = pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(together, expected, check_dtype=False)
    reports = found.attrs["glp"]["ranks"]
    assert [part.attrs["glp"] for part in parts] == reports
    for part in parts:
        assert part.attrs["glp"]["changed"] == expected.attrs["glp"]["changed"]
