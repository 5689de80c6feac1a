"""Monitors of a small world, and what two of them are compared by."""

import numpy as np
import pandas as pd

from glp_rapids.datasets import drifting_transactions
from glp_rapids.device import to_host
from glp_rapids.fraud import Monitor, SlidingWindow

DAYS, ACCOUNTS = 24, 500
LIMITS = {"minimum_size": 5, "minimum_partners": 3}
TABLES = ("alerts", "changes", "clusters", "members")


def world(seed=0):
    return drifting_transactions(
        6_000, accounts=ACCOUNTS, merchants=130, days=DAYS, rings=6, ring_accounts=(8, 12),
        sleep_days=(3, 6), merging=0.5, towns=5, seed=seed,
    )  # fmt: skip


IDS = {
    "integers": lambda ids: ids,
    "strings": lambda ids: "v" + ids.astype(str).str.zfill(4),
    "dates": lambda ids: pd.Timestamp("2020-01-01") + pd.to_timedelta(ids, unit="h"),
}


def batches(seed=0, kind="integers", every="12h"):
    frame, truth = world(seed)
    for name in ("source", "destination"):
        frame[name] = IDS[kind](frame[name])
    seeds = IDS[kind](truth["vertex"].drop_duplicates().sort_values()[::4])
    parts = [part for _, part in frame.groupby(frame["time"].dt.floor(every))]
    return parts, seeds


def monitor(seeds, device="cpu", **options):
    window = SlidingWindow(days=6, id="transaction", device=device)
    return Monitor(window, seeds, **{**LIMITS, **options})


def assert_same_tick(one, other):
    assert one.number == other.number
    assert one.change == other.change
    for name in TABLES:
        left, right = (to_pandas(getattr(tick, name)) for tick in (one, other))
        pd.testing.assert_frame_equal(left, right, check_exact=True)


def to_pandas(frame):
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame


def assert_same_state(one, other):
    pd.testing.assert_frame_equal(to_pandas(one.scores), to_pandas(other.scores), check_exact=True)
    for left, right in zip(one.window.graph().arrays(), other.window.graph().arrays(), strict=True):
        np.testing.assert_array_equal(to_host(left), to_host(right))
    assert one._state.tick == other._state.tick
    assert one._state.register.names == other._state.register.names
    assert len(one.window) == len(other.window)
    assert one.window.newest == other.window.newest
