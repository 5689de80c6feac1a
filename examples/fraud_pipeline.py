"""From raw transactions to suspicious clusters, day by day, and to features of every account.

    python examples/fraud_pipeline.py [rows]

A month of made-up transactions with planted rings comes in day by day, as logs have them: ids and
amounts are text, some rows were delivered twice, some lack an end. They are cleaned, and a window
holds the last three weeks. Every week the accounts that are known as fraudulent seed the search,
and what it finds is compared with the truth. At the end, what the graph knows of every account
becomes columns for a model of your own. Runs with or without a GPU. With your own data: read a
frame, name its columns to SlidingWindow.
"""

import sys
import time

import numpy as np
import pandas as pd

import glp_rapids
from glp_rapids.datasets import blacklist, transactions
from glp_rapids.device import gpu_available
from glp_rapids.fraud import features

if gpu_available():
    import cudf as frames
else:
    import pandas as frames


def as_logged(payments, seed=0):
    """Turn clean transactions into what a log might hold."""
    rng = np.random.default_rng(seed)
    raw = pd.DataFrame({
        "id": np.arange(len(payments)),
        "payer": named(payments["source"]),
        "payee": named(payments["destination"]),
        "amount": payments["amount"].map("{:.2f}".format),
        "booked": payments["time"].astype(str),
    })  # fmt: skip
    at = np.sort(rng.choice(len(raw), len(raw) // 50, replace=False))
    refund, broken, nobody, twice = np.array_split(at, 4)
    raw.loc[refund, "amount"] = "-" + raw.loc[refund, "amount"]
    raw.loc[broken, "amount"] = "n/a"
    raw.loc[nobody, "payee"] = None
    return pd.concat([raw, raw.loc[twice]], ignore_index=True)


def named(number):
    """Turn a number into an id as banks have them."""
    return "A" + number.astype(str).str.zfill(7)


def cleaned(raw):
    """Keep rows once, with two ends and a positive amount; the same lines for pandas and cuDF."""
    clean = raw.drop_duplicates("id").dropna(subset=["payer", "payee"])
    clean["amount"] = frames.to_numeric(clean["amount"], errors="coerce").fillna(0)
    clean = clean[clean["amount"] > 0]
    clean["time"] = frames.to_datetime(clean["booked"])
    return clean


def account_features(window, known):
    """Give one row an account: what it trades, and how fraud in other folds reaches it.

    A score that begins at an account's own label tells a model the answer: they are cross-fitted.
    """
    found = features(window, known, absent="drop")
    community = glp_rapids.label_propagation(window.graph())
    community["community_size"] = 1
    sizes = community.groupby("partition")[["community_size"]].sum().reset_index()
    community = community[["vertex", "partition"]].merge(sizes, on="partition")
    found["hop"] = found["hop"].fillna(99).astype("int32")  # never reached
    found = found.merge(community.drop(columns="partition"), on="vertex")
    return found.sort_values("vertex", ignore_index=True)


def on_host(frame):
    """Give a pandas frame, for what is shown."""
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame


rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
size = {"accounts": rows // 10, "merchants": rows // 100, "rings": max(rows // 25_000, 1)}
payments, truth = transactions(rows, **size, towns=max(rows // 3_000, 1))
truth["vertex"] = named(truth["vertex"])
known = blacklist(truth, fraction=0.2)
print(f"{rows:,} transactions, {size['rings']} rings planted, {len(known)} accounts known")

raw = as_logged(payments)
if frames is not pd:
    raw = frames.from_pandas(raw)
started = time.perf_counter()
clean = cleaned(raw)
print(f"{len(raw):,} raw rows, {len(clean):,} clean: {time.perf_counter() - started:.2f} s "
      f"with {frames.__name__}")  # fmt: skip

window = glp_rapids.SlidingWindow(days=21, source="payer", destination="payee")
first_day = pd.Timestamp("2026-01-01")
for day in range(30):
    begin = first_day + pd.Timedelta(days=day)
    batch = clean[(clean["time"] >= begin) & (clean["time"] < begin + pd.Timedelta(days=1))]
    started = time.perf_counter()
    window.append(batch)
    merged = time.perf_counter() - started
    if day % 7 or day < 21:
        continue
    # a blacklist names accounts that have not traded lately: those are no error here
    started = time.perf_counter()
    found = glp_rapids.find_clusters(window, known, absent="drop")
    searched = time.perf_counter() - started
    print(f"\nday {day}: {window}; append {merged:.2f} s, search {searched:.2f} s")
    clusters, members = on_host(found.clusters), on_host(found.members)
    print(clusters.head(5).to_string(index=False))

    new = members.loc[~members["is_seed"], "vertex"]
    unknown = truth.loc[~truth["vertex"].isin(known), "vertex"]
    print(
        f"{len(clusters)} clusters; of {len(new)} accounts that nobody knew of, "
        f"{new.isin(truth['vertex']).mean():.0%} are in a ring: {unknown.isin(new).mean():.0%} "
        "of all there are, those whose ring traded outside the window included"
    )

started = time.perf_counter()
table = account_features(window, known)
seconds = time.perf_counter() - started
print(f"\nfeatures of {len(table):,} accounts for a model downstream: {seconds:.2f} s")
print(on_host(table.head(5)).round(3).to_string(index=False))
