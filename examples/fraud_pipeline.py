"""Suspicious clusters in a stream of transactions, day by day. Runs with or without a GPU.

    python examples/fraud_pipeline.py [rows]

A month of made-up transactions with planted rings comes in day by day; a window holds the last
three weeks. Every week the accounts that are known as fraudulent seed the search, and what it finds
is compared with the truth. With your own data: read a frame, name its columns to SlidingWindow.
"""

import sys
import time

import pandas as pd

from glp_rapids.datasets import blacklist, transactions
from glp_rapids.device import gpu_available
from glp_rapids.fraud import SlidingWindow, find_clusters

rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
size = {"accounts": rows // 10, "merchants": rows // 100, "rings": max(rows // 25_000, 1)}
frame, truth = transactions(rows, **size, towns=max(rows // 3_000, 1))
known = blacklist(truth, fraction=0.2)
print(f"{rows:,} transactions, {size['rings']} rings planted, {len(known)} accounts known")

if gpu_available():
    import cudf

    frame = cudf.from_pandas(frame)

window = SlidingWindow(days=21)
first_day = pd.Timestamp("2026-01-01")
for day in range(30):
    begin = first_day + pd.Timedelta(days=day)
    batch = frame[(frame["time"] >= begin) & (frame["time"] < begin + pd.Timedelta(days=1))]
    started = time.perf_counter()
    window.append(batch)
    merged = time.perf_counter() - started
    if day % 7 or day < 21:
        continue
    # a blacklist names accounts that have not traded lately: those are no error here
    started = time.perf_counter()
    found = find_clusters(window, known, absent="drop")
    searched = time.perf_counter() - started
    print(f"\nday {day}: {window}; append {merged:.2f} s, search {searched:.2f} s")
    clusters, members = found.clusters, found.members
    if hasattr(members, "to_pandas"):
        clusters, members = clusters.to_pandas(), members.to_pandas()
    print(clusters.head(5).to_string(index=False))

    new = members.loc[~members["is_seed"], "vertex"]
    unknown = truth.loc[~truth["vertex"].isin(known), "vertex"]
    print(
        f"{len(clusters)} clusters; of {len(new)} accounts that nobody knew of, "
        f"{new.isin(truth['vertex']).mean():.0%} are in a ring: {unknown.isin(new).mean():.0%} "
        "of all there are, those whose ring traded outside the window included"
    )
