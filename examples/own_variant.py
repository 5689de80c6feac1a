"""A variant of your own: votes weighed by amount and recency, beside the classic.

    python examples/own_variant.py [rows] [picture.png]

A month of made-up transactions holds rings of collusion, each busy for five days. Which groups are
busy *now*? Classic label propagation counts transactions and has no idea of time; popular merchants
shout everybody down, too. A program of four lines mends both. Runs with or without a GPU.
"""

import sys
from importlib.util import find_spec

import numpy as np
import pandas as pd

import glp_rapids
from glp_rapids.datasets import transactions
from glp_rapids.device import gpu_available

HALF_LIFE = 7  # days after which a transaction counts half
ENDS = {"source": "source", "destination": "destination"}


class Quieter(glp_rapids.Program):
    """What a vertex says counts less the more it trades, so that hubs do not drown the others."""

    skip_inactive = True  # the outcome depends on the neighbours' labels alone

    def __init__(self, trade):
        self.trade = trade  # one value a vertex, in the order of the sorted ids

    def initial_state(self, graph):
        return {"root": np.sqrt(np.maximum(self.trade, 1))}

    def load_neighbor(v, u, weight, state):
        return state.labels[u], weight / state.root[u]


def votes_of(payments, age, half_life):
    """Give the frame with a column of votes, in whole numbers: their sums know no order."""
    vote = 1000 * np.log1p(payments["amount"]) * 0.5 ** (age / half_life)
    return payments.assign(vote=vote.round().astype("int64"))


def on_host(frame):
    """Give a pandas frame or series."""
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame


def traded(payments, weight):
    """Give what every vertex trades, in the order of the ids."""
    sums = [on_host(payments.groupby(end)[weight].sum()) for end in ENDS]
    return sums[0].add(sums[1], fill_value=0).sort_index().to_numpy()


def classic(payments, weight):
    return glp_rapids.label_propagation(payments, weight=weight, **ENDS)


def quieter(payments, weight):
    return glp_rapids.propagate(payments, Quieter(traded(payments, weight)), weight=weight, **ENDS)


def found_of_rings(partition, rings):
    """Give, for each ring, how well the community that fits it best matches it (F1)."""
    community = on_host(partition).set_index("vertex")["partition"]
    size = community.value_counts()
    best = {}
    for ring, member in rings.groupby("ring")["vertex"]:
        shared = community.reindex(member).value_counts()
        best[ring] = (2 * shared / (size[shared.index] + len(member))).max()
    return pd.Series(best)


rows = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
payments, rings = transactions(
    rows, accounts=rows // 10, merchants=rows // 100, rings=max(rows // 10_000, 1),
    towns=max(rows // 3_000, 1),
)  # fmt: skip
ring_of = rings.set_index("vertex")["ring"]
ring = payments["source"].map(ring_of)
inside = ring == payments["destination"].map(ring_of)
if gpu_available() and find_spec("cudf"):
    import cudf

    payments = cudf.from_pandas(payments)
seconds = payments["time"].astype("int64")
age = (seconds.max() - seconds) / 86_400
payments["count"] = 1
recent = votes_of(payments, age, HALF_LIFE)
results = {
    "classic": classic(payments, "count"),
    "amount and recency": classic(recent, "vote"),
    "quieter hubs": quieter(payments, "count"),
    "both": quieter(recent, "vote"),
}

days_ago = on_host(age)[inside].groupby(ring[inside].astype(int)).median()
days_ago = days_ago.rename("busy (days ago)")
for name, partition in results.items():
    report = partition.attrs["glp"]
    print(
        f"{name}: {partition['partition'].nunique():,} communities, "
        f"{report['sweeps']} sweeps on the {report['device']}"
    )
table = pd.DataFrame({name: found_of_rings(found, rings) for name, found in results.items()})
print("\nHow well a community fits each ring (1 = exactly), by when the ring was busy")
week = pd.cut(days_ago, [0, 7, 14, 21, 30])
print(table.groupby(week, observed=True).mean().round(2).to_string())


def draw(table, days_ago, axes):
    """Draw the table: one point a ring and method."""
    for name, colour in {"classic": "#7f8fa0", "both": "#ff4d6d"}.items():
        axes.scatter(days_ago, table[name], s=60, color=colour, label=name, zorder=3)
    axes.vlines(days_ago, table["classic"], table["both"], color="#5b6673", linewidth=1)
    axes.set_title("The variant sees the rings of these days and forgets the old ones")
    axes.set(xlabel="days since the ring was busy", ylabel="F1 of its best community")
    axes.set_ylim(0, 1.03)
    axes.invert_xaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="lower right")


if len(sys.argv) > 2:
    from matplotlib import pyplot

    pyplot.style.use("dark_background")
    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    draw(table, days_ago, axes)
    figure.savefig(sys.argv[2], dpi=110)
