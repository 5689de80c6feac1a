"""A sliding window over a stream of transactions, whose graph is kept up to date by merging.

The window holds its rows and, sorted by (vertex, neighbour), what every pair adds up to. A batch is
sorted on its own and merged into that; rows that leave are added up on their own and subtracted.
Both are exact because amounts are integers: multiples of 10**-decimals. New ids move the indices
of the old ones up but keep their order, so nothing that is sorted is ever sorted again.
After section 2 of C. Ye et al., GPU-Accelerated Graph Label Propagation for Real-Time Fraud
Detection, SIGMOD 2021 (the sliding window over Taobao's transactions).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd

from glp_rapids.common.calls import guarded
from glp_rapids.device import DeviceName, array_module, choose, to_device
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Frame, Kind
from glp_rapids.fraud.clock import NUMBERS, PER_DAY, refuse_leap, start_of, times
from glp_rapids.fraud.deliveries import Deliveries
from glp_rapids.fraud.ids import joined, taken
from glp_rapids.fraud.pairs import Pairs, Rows, added_up, merged, subtracted, units
from glp_rapids.graph import vertex_ids
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.sort_gpu import index_dtype
from glp_rapids.ingest import rank, readers
from glp_rapids.ingest.options import ColumnNames

Array = Any


class Change(NamedTuple):
    """What an `append` did, in rows: joined the window, left it, came too late to join."""

    added: int
    expired: int
    late: int


class SlidingWindow:
    """The transactions of the last ``days`` days as a graph, batch after batch.

    Parameters
    ----------
    days
        Length of the window: the rows later than newest time - ``days`` are inside, where newest
        is the latest time seen so far.
    source, destination
        Columns with the ids of payer and payee; lists for ids of several columns.
    amount
        Column with the amounts, not negative; None: there are none, and every value is 0.
    time
        Column with the times: datetime64 (kept to the microsecond; with time zone: as UTC; all
        with one or all without) or numbers below 2**53, which count ``time_unit``.
    time_unit : {"D", "h", "m", "s", "ms", "us"}
        What numeric times count; days by default.
    directed
        Whether the graph tells payer from payee. By default a pair is one edge, whoever pays.
    decimals
        Digits after the point that are kept of an amount, 0 to 9. Amounts are rounded to multiples
        of 10**-decimals and added as 64-bit integers, hence the same sums in any order.
    device : {"cpu", "gpu"}, optional
        Where the window lives; None: on the GPU if there is one.

    Raises
    ------
    ValueError, TypeError
        An option is out of range.

    Notes
    -----
    The window never moves back, so a wrong clock may empty it for good. Two guards: a batch is
    refused if a minority of its rows, and at most a tenth of these and those in the window, is
    dated more than ``days`` after all others, and than twice any pause among them; and a warning is
    given when more rows than the window holds have come ``days`` too late since ``newest`` moved.
    A whole batch that is far ahead is taken, as after a pause. Batches have no names: one that
    comes twice counts twice, with a warning if all of it is there already.
    An `append` costs O(b log b + w) for a batch of b rows and a window of w rows, a sort of the
    batch and a few passes over the window; memory is about 100 bytes a row. The result equals, to
    the bit, the graph built at once from the rows inside the window.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import SlidingWindow
    >>> window = SlidingWindow(days=2, device="cpu")
    >>> day = pd.DataFrame({"source": ["a", "a"], "destination": ["b", "c"], "amount": [5, 7],
    ...                     "time": pd.to_datetime(["2026-01-01", "2026-01-02"])})
    >>> window.append(day)
    Change(added=2, expired=0, late=0)
    >>> window.append(day.assign(time=day["time"] + pd.Timedelta(days=2)))
    Change(added=2, expired=2, late=0)
    >>> window.edges()
      source destination  transfers  amount
    0      a           b          1     5.0
    1      a           c          1     7.0
    """

    def __init__(
        self,
        days: float,
        *,
        source: ColumnNames = "source",
        destination: ColumnNames = "destination",
        amount: str | None = "amount",
        time: str = "time",
        time_unit: Literal["D", "h", "m", "s", "ms", "us"] = "D",
        directed: bool = False,
        decimals: int = 4,
        device: DeviceName | None = None,
    ) -> None:
        if isinstance(days, bool) or not isinstance(days, int | float | np.number):
            raise TypeError(f"days must be a number, not {days!r}")
        if not 0 < days < math.inf:
            raise ValueError(f"days must be positive and finite, not {days}")
        if time_unit not in PER_DAY:
            raise ValueError(f"time_unit must be one of {', '.join(PER_DAY)}, not {time_unit!r}")
        if isinstance(decimals, bool) or decimals not in range(10):
            raise ValueError(f"decimals must be an integer from 0 to 9, not {decimals!r}")
        if not isinstance(time, str | int):
            raise TypeError(f"time must be the name of a column, not {time!r:.80}")
        self.days = days
        self.directed = bool(directed)
        self.device: DeviceName = choose(device)
        self._scale = 10**decimals
        self._time_unit = time_unit
        self._source, self._destination = source, destination
        self._amount, self._time = amount, time
        self._times: str | None = None
        self._newest: int | float | None = None
        self._kind: Kind = "pandas"
        self._vertices: vertex_ids.VertexIds | None = None
        self._rows: Rows | None = None
        self._pairs: Pairs | None = None
        self._graphs: dict[str | None, Graph] = {}
        self._deliveries = Deliveries()

    def __len__(self) -> int:
        return 0 if self._rows is None else self._rows.time.size

    def __repr__(self) -> str:
        return (
            f"SlidingWindow({self.days} days, {len(self)} transactions, "
            f"{self.number_of_vertices} vertices, {self.device})"
        )

    @property
    def number_of_vertices(self) -> int:
        """The number of ids that take part in a transaction inside the window."""
        return 0 if self._vertices is None else len(self._vertices)

    @property
    def newest(self) -> Any:
        """The latest time seen: a datetime64, or a float for numeric times; None at the start."""
        return self._shown(self._newest, self._times)

    @property
    def oldest(self) -> Any:
        """The time the window starts after: newest - days; None at the start."""
        if self._newest is None:
            return None
        start = start_of(self._newest, self.days, self._times, self._time_unit)
        return self._shown(start, self._times)

    @guarded
    def append(self, frame: Frame) -> Change:
        """Add a batch of transactions and drop those that are older than the window.

        Parameters
        ----------
        frame : pandas or cuDF frame
            Transactions in any order, with the columns named at the start. It is not modified.

        Returns
        -------
        Change
            ``added, expired, late``: rows that joined, rows that left, and rows that were
            not taken because they are older than the window.

        Raises
        ------
        ValueError
            A column is missing, or holds nulls, negative or infinite amounts; numeric times look
            like another unit than ``time_unit``, or cannot be told apart; a few rows are dated far
            ahead of all others. The window stays as it was.
        TypeError
            ``frame`` is no frame, or a column holds another type than is needed or than before.
        """
        frame, kind = self._checked(frame)
        if not len(frame):
            return Change(0, 0, 0)
        rows, vertices, time_kind = self._read(frame, kind)
        newest = rows.time.max().item()
        newest = newest if self._newest is None else max(self._newest, newest)
        start = start_of(newest, self.days, time_kind, self._time_unit)
        shown = partial(self._shown, kind=time_kind)
        label = f"time column {self._time!r}"
        refuse_leap(rows.time, start, newest, self._newest, len(self), label, shown)
        xp = array_module(rows.time)
        fresh = rows[xp.flatnonzero(rows.time > start)]
        if self._vertices is None:
            none = xp.arange(0)
            old, pairs = taken(vertices, none), added_up(rows[none], 0, self.directed)
            staying = leaving = rows[none]
        else:
            old, pairs = self._vertices, self._pairs
            staying, leaving = self._split(start)
        self._check_total(staying, fresh)

        together, old_index, new_index = joined(old, vertices, self.device)
        if leaving.time.size:
            pairs = subtracted(pairs, added_up(leaving, len(old), self.directed))
        fresh, staying = fresh.renamed(new_index), staying.renamed(old_index)
        moved, told = newest != self._newest, f"{shown(newest)} in {label}"
        deliveries = self._deliveries.after(
            rows, len(vertices), fresh, staying, start, newest - start, moved, told
        )
        pairs = merged(pairs.renamed(old_index), added_up(fresh, len(together), self.directed))
        kept = staying.joined(fresh)
        present = xp.zeros(len(together), dtype=bool)
        present[pairs.row] = True
        present[pairs.column] = True
        if not bool(present.all()):
            index = (xp.cumsum(present) - 1).astype(np.int32)
            pairs, kept = pairs.renamed(index), kept.renamed(index)
            together = taken(together, xp.flatnonzero(present))
        self._rows, self._pairs, self._vertices = kept, pairs, together
        self._newest, self._graphs = newest, {}
        self._kind, self._times = kind, time_kind
        self._deliveries = deliveries
        return Change(fresh.time.size, leaving.time.size, rows.time.size - fresh.time.size)

    @guarded
    def graph(self, weight: Literal["transfers", "amount"] | None = "transfers") -> Graph:
        """Return the graph of the window.

        Parameters
        ----------
        weight : {"transfers", "amount"}, optional
            What an edge weighs: the number of its transactions (int64), what they are worth
            together (float64), or None.

        Returns
        -------
        Graph
            Directed as the window is; its vertices are the ids inside the window. Kept until the
            next `append`.

        Raises
        ------
        ValueError
            The window is empty, or ``weight`` is none of the above.
        """
        if weight not in ("transfers", "amount", None):
            raise ValueError(f"weight must be 'transfers', 'amount' or None, not {weight!r}")
        if self._pairs is None or not len(self):
            raise ValueError("the window is empty: append transactions first")
        if weight not in self._graphs:
            pairs, number = self._pairs, len(self._vertices)
            xp = array_module(pairs.key)
            indptr = xp.zeros(number + 1, dtype=np.int64)
            indptr[1:] = xp.cumsum(xp.bincount(pairs.row, minlength=number))
            indices = pairs.column.astype(index_dtype(number))
            weights = {"transfers": pairs.transfers, None: None}.get(weight, pairs.units)
            if weight == "amount":
                weights = weights / np.float64(self._scale)
            self._graphs[weight] = Graph(indptr, indices, weights, self.directed, self._vertices)
        return self._graphs[weight]

    @guarded
    def edges(self) -> Frame:
        """List every pair with what its transactions add up to.

        Returns
        -------
        frame
            Of the caller's kind: ``source``, ``destination`` (``0_source``, ... if the ids have
            several columns), ``transfers`` (int64), ``amount`` (float64). Undirected
            windows name the smaller id first.
        """
        if self._pairs is None:
            raise ValueError("the window is empty: append transactions first")
        pairs = self._pairs
        if not self.directed:
            once = array_module(pairs.key).flatnonzero(pairs.row <= pairs.column)
            pairs = Pairs(pairs.key[once], pairs.transfers[once], pairs.units[once])
        return kinds.to_frame(
            {
                **self._vertices.take(pairs.row, "source"),
                **self._vertices.take(pairs.column, "destination"),
                "transfers": pairs.transfers,
                "amount": pairs.units / np.float64(self._scale),
            },
            self._kind,
        )

    @staticmethod
    def _shown(time, kind):
        return time if time is None or kind == NUMBERS else np.datetime64(time, "us")

    def _split(self, start):
        inside = self._rows.time > start
        if bool(inside.all()):
            return self._rows, self._rows[:0]
        xp = array_module(inside)
        return self._rows[xp.flatnonzero(inside)], self._rows[xp.flatnonzero(~inside)]

    def _check_total(self, *parts):
        total = sum(float(rows.units.sum(dtype=np.float64)) for rows in parts)
        if total >= 2**62:
            raise ValueError(
                f"amount: the amounts in the window add up to {total / self._scale:.3g}, too much "
                f"for 64 bits at {self._scale:.0e} units; lower decimals"
            )

    def _checked(self, frame):
        """Return the frame, out of its proxy, and its kind; refuse one without the columns."""
        frame, proxy = kinds.without_proxy(frame)
        if not (isinstance(frame, pd.DataFrame) or kinds.is_cudf(frame, "DataFrame")):
            raise TypeError(
                f"frame must be a pandas or cuDF frame of transactions, not {type(frame).__name__}"
            )
        kind = "pandas" if isinstance(frame, pd.DataFrame) else "cudf.pandas" if proxy else "cudf"
        if self._vertices is not None and kind != self._kind:
            raise TypeError(f"frame is of {kind}, but the window holds {self._kind} so far")
        for argument, name in (("amount", self._amount), ("time", self._time)):
            if name is not None and name not in frame.columns:
                raise ValueError(
                    f"{argument}={name!r}: the frame has no column {name!r}; its columns are "
                    f"{list(frame.columns)}"
                )
        return frame, kind

    def _read(self, frame, kind):
        """Return a batch's rows, the ids that they index, and what kind of times they have."""
        edges = readers.read(
            frame, readers.Options(self._source, self._destination, None, False, None)
        )
        label = f"time column {self._time!r}"
        moments, time_kind = times(frame[self._time], label, self._time_unit, self._times)
        if self._amount is None:
            amounts = np.zeros(len(frame), np.int64)
        else:
            label = f"amount column {self._amount!r}"
            amounts = units(frame[self._amount], self._scale, label)
        codes, vertices = rank.rank_ids(
            [edges.source, edges.destination],
            [list(edges.source_labels), list(edges.destination_labels)],
            kind,
            self.device,
        )
        if len(vertices) >= 2**31:
            raise ValueError("a batch holds at most 2**31 - 1 vertices; append smaller batches")
        rows = Rows(*codes, to_device(amounts, self.device), to_device(moments, self.device))
        return rows, vertices, time_kind
