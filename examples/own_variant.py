"""A variant of your own: votes weighed by amount and recency, beside the classic.

    python examples/own_variant.py [rows] [picture.png]

A month of made-up transactions holds rings of collusion, each busy for five days. Which groups are
busy *now*? Classic label propagation counts transactions and has no idea of time; popular merchants
shout everybody down, too. A program of four lines mends both. Runs with or without a GPU.
"""

import sys

import numpy as np
import pandas as pd

import glp_rapids
from glp_rapids.datasets import transactions

HALF_LIFE = 7  # days after which a transaction counts half


class Recent(glp_rapids.Program):
    """What a vertex says counts less the more it trades, so that hubs do not drown the others."""

    skip_inactive = True  # the outcome depends on the neighbours' labels alone

    def __init__(self, trade):
        self.trade = trade  # one value a vertex, in the order of the sorted ids

    def initial_state(self, graph):
        return {"root": np.sqrt(self.trade)}

    def load_neighbor(v, u, weight, state):
        return state.labels[u], weight / state.root[u]


def found_of_rings(partition, rings):
    """Give, for each ring, how well the community that fits it best matches it (F1)."""
    community = partition.set_index("vertex")["partition"]
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
age = (payments["time"].max() - payments["time"]) / pd.Timedelta(days=1)
payments["count"] = 1
payments["vote"] = np.log1p(payments["amount"]) * 0.5 ** (age / HALF_LIFE)

columns = {"source": "source", "destination": "destination"}
counted = glp_rapids.as_graph(payments, weight="count", **columns)
recent = glp_rapids.as_graph(payments, weight="vote", **columns)
votes = [payments.set_index(end)["vote"] for end in columns]
trade = pd.concat(votes).groupby(level=0).sum().to_numpy()
results = {
    "classic": glp_rapids.label_propagation(counted),
    "amount and recency": glp_rapids.propagate(recent, Recent(trade)),
}

ring_of = rings.set_index("vertex")["ring"]
ring = payments["source"].map(ring_of)
inside = ring == payments["destination"].map(ring_of)
days_ago = age[inside].groupby(ring[inside].astype(int)).median().rename("busy (days ago)")
table = pd.DataFrame(index=days_ago.index)
for name, partition in results.items():
    table[name] = found_of_rings(partition, rings)
    report = partition.attrs["glp"]
    print(
        f"{name}: {partition['partition'].nunique():,} communities, "
        f"{report['sweeps']} sweeps on the {report['device']}"
    )
print("\nHow well a community fits each ring (1 = exactly), by when the ring was busy")
week = pd.cut(days_ago, [0, 7, 14, 21, 30])
print(table.groupby(week, observed=True).mean().round(2).to_string())


def draw(table, days_ago, axes):
    """Draw the table: one point a ring and method."""
    for name, colour in {"classic": "#8fa3b3", "amount and recency": "#d7263d"}.items():
        axes.scatter(days_ago, table[name], s=60, color=colour, label=name)
    axes.set_title("The variant sees the rings of these days and forgets the old ones")
    axes.set(xlabel="days since the ring was busy", ylabel="F1 of its best community")
    axes.set_ylim(0, 1.03)
    axes.invert_xaxis()
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="center left")


if len(sys.argv) > 2:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    draw(table, days_ago, axes)
    figure.savefig(sys.argv[2], dpi=110)
