"""The engines of a window: what it holds, on each device, and what becomes of it batch by batch.

An engine is never changed: `advanced` returns another one, which shares what both have, so a batch
that is refused half-way leaves nothing behind. An append costs the batch, on a GPU also a look at
the times of all rows, and the sums are merged when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from glp_rapids.common.scans import places_where
from glp_rapids.common.segments import segment_ids
from glp_rapids.frames import kinds
from glp_rapids.graph.graph import Graph

if TYPE_CHECKING:
    from glp_rapids.device import DeviceName
    from glp_rapids.frames.kinds import Frame, Kind
    from glp_rapids.fraud.decay import Decay
    from glp_rapids.fraud.pairs import Rows
    from glp_rapids.graph.vertex_ids import VertexIds

Array = Any
ID = "id"  # what messages call the ids of transactions


@dataclass(frozen=True)
class Batch:
    """Transactions that index their vertices and, if they have ids, these."""

    rows: Rows
    vertices: VertexIds
    ids: VertexIds | None = None
    index: Array | None = None

    def __len__(self) -> int:
        return self.rows.time.size

    def chosen(self, which: Array) -> Batch:
        """Return some of the rows, beside all vertices and ids."""
        index = None if self.index is None else self.index[which]
        return Batch(self.rows[which], self.vertices, self.ids, index)


class Window(NamedTuple):
    """What the transactions of every pair add up to: a CSR and the ids of its vertices."""

    vertices: VertexIds
    indptr: Array
    indices: Array
    transfers: Array
    units: Array
    faded: Array | None = None  # what pairs count by age; see `decay`


def graph_of(window: Window, weight: str | None, directed: bool, scale: int) -> Graph:
    """Make a graph of the sums, with one of them, or none, as its weights."""
    kept = {"transfers": window.transfers, "faded": window.faded, None: None}
    weights = kept.get(weight, window.units)
    if weight == "amount":
        weights = weights / np.float64(scale)
    return Graph(window.indptr, window.indices, weights, directed, window.vertices)


def edges_of(window: Window, directed: bool, scale: int, kind: Kind) -> Frame:
    """Make a frame of the sums; undirected: each pair once, the smaller id first."""
    column, transfers, units = window.indices, window.transfers, window.units
    row = segment_ids(window.indptr, column.dtype, column.size)
    if not directed:
        once = places_where(row <= column)
        row, column, transfers, units = (values[once] for values in (row, column, transfers, units))
    return kinds.to_frame(
        {
            **window.vertices.take(row, "source"),
            **window.vertices.take(column, "destination"),
            "transfers": transfers,
            "amount": units / np.float64(scale),
        },
        kind,
    )


class Engine(Protocol):
    """The transactions of a window; ``version`` counts the changes that it has seen."""

    version: int
    decay: Decay | None

    def __len__(self) -> int:
        """Return the number of transactions."""

    def total(self) -> int | float:
        """Add up the units of all transactions."""

    def known(self, batch: Batch, start: int | float) -> Array:
        """Tell which ids of a batch are those of transactions later than ``start``, its own."""

    def holds(self, batch: Batch) -> bool:
        """Tell whether each transaction of a batch is among those held."""

    def advanced(
        self, batch: Batch | None, start: int | float, length: int | float
    ) -> tuple[Engine, int, int | float]:
        """Let the rows of a batch join, all later than ``start``, and those leave that are not.

        ``length``: that of the window. Returns what becomes of this, how many rows left, and how
        many units they had. The first time there is a batch.
        """

    def window(self) -> Window:
        """Return the sums by pair; kept."""

    def fading(self, decay: Decay, newest: int | float) -> Engine:
        """Return the same that also adds up what transactions count by age."""

    def runs(self) -> Iterator[Rows]:
        """Yield all transactions, part by part, with the vertices of `window` that they index."""

    def ids(self) -> tuple[VertexIds, Array] | None:
        """Return the ids that transactions have, and their times."""

    def knowing(self, ids: VertexIds, times: Array) -> Engine:
        """Return the same with such ids."""

    def places(self) -> Array | None:
        """Return a number of each vertex that it keeps while it is here; None: they have none.

        Later others may have it.
        """

    def changed_since(self, version: int) -> Array:
        """Find the vertices here, by index, of which transactions joined or left since then."""


def _cpu() -> Callable[..., Engine]:
    # Numba takes longer to import than a small window takes to fill
    from glp_rapids.fraud.engines.buckets import BucketEngine

    return BucketEngine


def _gpu() -> Callable[..., Engine]:
    from glp_rapids.fraud.engines.arrays import ArrayEngine

    return ArrayEngine


ENGINES: dict[DeviceName, Callable[[], Callable[..., Engine]]] = {"cpu": _cpu, "gpu": _gpu}
