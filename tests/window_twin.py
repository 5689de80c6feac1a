"""A window that keeps all rows in a list and builds everything anew: slow and obvious."""

import math
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from glp_rapids.fraud import Change, engines
from glp_rapids.ingest.read import as_graph

NAMES = ["source", "destination", "amount", "time", "tx"]
MAKERS = {
    "integers": lambda number: number - 3,
    "large integers": lambda number: (number * 0x9E3779B97F4A7C15) % 2**63 - 2**62,
    "strings": lambda number: f"account {number * 7919 % 101}",
    "dates": lambda number: pd.Timestamp("2026-01-01") + pd.Timedelta(hours=number * 37 % 50),
}


@pytest.fixture(params=["cpu", "arrays", pytest.param("gpu", marks=pytest.mark.gpu)])
def place(request, monkeypatch):
    """The device of a window; its engine is that of this device, or the GPU's on host arrays."""
    if request.param == "arrays":
        monkeypatch.setitem(engines.ENGINES, "cpu", engines.ENGINES["gpu"])
        return "cpu"
    return request.param


def table(rows):
    return pd.DataFrame(rows, columns=NAMES)


class Twin:
    """Rows are tuples (source, destination, amount, time, id), in a list."""

    def __init__(self, days, directed, ids):
        self.days, self.directed, self.ids = days, directed, ids
        self.rows, self.newest = [], None
        self.log = []  # of every step, the ends of the rows that joined and left

    def append(self, batch):
        known = {row[4] for row in self.rows} if self.ids else set()
        new = [row for row in batch if row[4] not in known]
        if not new:
            return Change(0, 0, 0, len(batch))
        start = -math.inf if self.newest is None else self.newest - self.days
        while True:
            counted = []  # of an id the first row that is not late already
            for row in new:
                known = {other[4] for other in counted}
                if not self.ids or (row[3] > start and row[4] not in known):
                    counted.append(row)
            times = [row[3] for row in counted] + [self.newest] * (self.newest is not None)
            self.newest = max(times)
            if not self.ids or all(row[3] > self.newest - self.days for row in counted):
                break
            start = self.newest - self.days  # who is late by then was not the first of its id
        late = sum(not row[3] > self.newest - self.days for row in new)
        taken = [row for row in counted if row[3] > self.newest - self.days]
        gone = self._leave(taken)
        self.rows += taken
        return Change(len(taken), gone, late, len(batch) - late - len(taken))

    def advance(self, to):
        self.newest = to
        return Change(0, self._leave([]), 0, 0)

    def _leave(self, taken):
        gone = [row for row in self.rows if not row[3] > self.newest - self.days]
        self.rows = [row for row in self.rows if row[3] > self.newest - self.days]
        if taken or gone:
            self.log.append({end for row in taken + gone for end in row[:2]})
        return len(gone)

    def changed_since(self, mark):
        changed = set().union(*self.log[mark:])
        return sorted(changed & {end for row in self.rows for end in row[:2]})

    def graph(self):
        ends = [[row[place] for row in self.rows] for place in (0, 1)]
        frame = pd.DataFrame({"src": ends[0], "dst": ends[1], "w": 1})
        return as_graph(frame, weight="w", directed=self.directed, device="cpu")

    def amounts(self, graph):
        """What the entries of the graph are worth, rounded once."""
        return self.summed(graph, lambda amount, _: round(amount * 10_000)) / 10_000

    def faded(self, graph, half_life, amounts):
        """What they count by age: a power of two of 1024ths of half-lives since the origin."""
        origin = self.newest // (8 * half_life) * 8 * half_life

        def count(amount, time):
            since = (time - origin) / half_life
            factor = 2 ** (math.floor(since % 1 * 1024) / 1024)
            units = round(amount * 10_000)
            if amounts:
                found = round(math.ldexp(units * factor, math.floor(since)))
                return max(found, min(units, 1))
            return max(round(math.ldexp(factor, math.floor(since) + 20)), 1)

        return self.summed(graph, count)

    def summed(self, graph, count):
        sums = Counter()
        for source, destination, amount, time, _ in self.rows:
            sums[source, destination] += count(amount, time)
            if not self.directed and source != destination:
                sums[destination, source] += count(amount, time)
        ids = graph.external().tolist()
        entries = zip(graph.row_indices().tolist(), graph.indices.tolist(), strict=True)
        return np.array([sums[ids[row], ids[column]] for row, column in entries])
