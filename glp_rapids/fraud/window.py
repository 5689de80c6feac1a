"""A sliding window over a stream of transactions, whose graph is kept up to date by merging.

The window holds its rows and, sorted by (vertex, neighbour), what every pair adds up to. A batch is
sorted on its own and merged into that; rows that leave are sorted on their own and subtracted.
Both are exact because amounts are integers: multiples of 10**-decimals. Who does so, and when, are
the engines: see `glp_rapids.fraud.engines`. Here is what all windows have in common.
After section 2 of C. Ye et al., GPU-Accelerated Graph Label Propagation for Real-Time Fraud
Detection, SIGMOD 2021 (the sliding window over Taobao's transactions).
"""

from __future__ import annotations

import sys
from typing import Any, Literal

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import (
    as_float,
    check_choice,
    check_integer,
    check_truth,
    is_number,
    shown,
)
from glp_rapids.common.locks import Lock
from glp_rapids.device import DeviceName, choose
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Frame, Kind
from glp_rapids.fraud import clock
from glp_rapids.fraud.batches import Reader, check_names
from glp_rapids.fraud.clock import PER_DAY, start_of
from glp_rapids.fraud.decay import GROWTH, Decay
from glp_rapids.fraud.engines import Batch, Engine, Window, edges_of, graph_of
from glp_rapids.fraud.pairs import refuse_total
from glp_rapids.fraud.window_state import Change, State, after_batch
from glp_rapids.graph.graph import Graph
from glp_rapids.ingest.options import ColumnNames


class SlidingWindow:
    """The transactions of the last ``days`` days as a graph, batch after batch.

    Parameters
    ----------
    days
        Length of the window: the rows later than newest time - ``days`` are inside, where newest
        is the latest time seen so far (those of duplicates do not count).
    source, destination
        Columns with the ids of payer and payee; lists for ids of several columns.
    amount
        Column with the amounts, not negative; None: there are none, and every value is 0.
    time
        Column with the times: datetime64 (kept to the microsecond; with time zone: as UTC; all
        with one or all without) or numbers below 2**53, which count ``time_unit``.
    id
        Column with the id of a transaction, or a list of columns. A row is a duplicate, and is not
        taken, if one with its id was in the window before the batch, also one that leaves by it,
        or, among those that are taken, stands above it in the batch. Ids of rows that came too late
        or have left the window before are forgotten.
    time_unit : {"D", "h", "m", "s", "ms", "us"}
        What numeric times count; days by default.
    max_lead
        How much later than its batch came a row may be dated: "1h", a pandas.Timedelta, or a
        number of ``time_unit``. A batch with a row beyond that is refused. None: any time will do.
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
    The window never moves back, so a wrong clock may empty it for good. ``max_lead`` is the sure
    guard. Without it a batch is refused if a minority of its rows, and at most a tenth of these and
    those in the window, is dated more than ``days`` after all others, and than twice any pause
    among them; a larger minority is taken, with a warning. Another is given when more rows than the
    window holds have come ``days`` too late since ``newest`` moved.
    A whole batch that is far ahead is taken, as after a pause; with a warning if most of the window
    leaves, of a thousand rows and ten times as many as came. Without ``id`` a batch that comes
    twice counts twice, with a warning if all of it is there already.
    On a CPU an `append` costs O(b log w) for a batch of b rows, of which b' leave, and a window of
    w rows: what changes is noted, and the next `graph` or `edges` merges it into the sums, in one
    pass over the pairs. Now and then an append does that, so that what is noted stays below twice
    the window. On a GPU an append also looks at the times of all rows, and, if
    they have an ``id``, merges at once. Memory is about 100 bytes a row; ``id``
    takes 16 more, or the text of the ids. The result equals, to
    the bit, the graph built at once from the rows inside the window.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import SlidingWindow
    >>> window = SlidingWindow(days=2, id="tx", device="cpu")
    >>> day = pd.DataFrame({"source": ["a", "a"], "destination": ["b", "c"], "amount": [5, 7],
    ...                     "time": pd.to_datetime(["2026-01-01", "2026-01-02"]), "tx": [1, 2]})
    >>> window.append(day)
    Change(added=2, expired=0, late=0, duplicates=0)
    >>> window.append(day.assign(time=day["time"] + pd.Timedelta(days=1), tx=[2, 3]))
    Change(added=1, expired=1, late=0, duplicates=1)
    >>> window.edges()
      source destination  transfers  amount
    0      a           c          2    14.0
    """

    def __init__(
        self,
        days: float,
        *,
        source: ColumnNames = "source",
        destination: ColumnNames = "destination",
        amount: str | None = "amount",
        time: str = "time",
        id: ColumnNames | None = None,
        time_unit: Literal["D", "h", "m", "s", "ms", "us"] = "D",
        max_lead: Any = None,
        directed: bool = False,
        decimals: int = 4,
        device: DeviceName | None = None,
    ) -> None:
        if not is_number(days):
            raise TypeError(f"days must be a number, not {days!r}")
        if not 0 < as_float(days) <= sys.float_info.max:
            raise ValueError(f"days must be positive and finite, not {shown(days)}")
        check_choice("time_unit", time_unit, PER_DAY, f"one of {', '.join(PER_DAY)}")
        check_integer("decimals", decimals, 0, most=9)
        check_names(source, destination, amount, time, id)
        check_truth(directed=directed)
        self.days = days
        self.directed = bool(directed)
        self.device: DeviceName = choose(device)
        self._scale, self._time_unit = 10 ** int(decimals), time_unit
        lead = None if max_lead is None else clock.span(max_lead, "max_lead")
        self._reader = Reader(
            source, destination, amount, time, id, time_unit, lead, self._scale, self.device
        )
        self._state = State()
        self._graphs: tuple[Engine | None, dict[str | None, Graph]] = (None, {})
        self._lock = Lock()  # of whoever changes the state
        self._fading: tuple[Any, bool] | None = None  # half-life, whether amounts fade

    def __len__(self) -> int:
        return 0 if self._state.engine is None else len(self._state.engine)

    def __repr__(self) -> str:
        return (
            f"SlidingWindow({self.days} days, {len(self)} transactions, "
            f"{self.number_of_vertices} vertices, {self.device})"
        )

    @property
    def number_of_vertices(self) -> int:
        """The number of ids that take part in a transaction inside the window."""
        return len(self._state.engine.window().vertices) if len(self) else 0

    @property
    def newest(self) -> Any:
        """The latest time seen: a datetime64, or a float for numeric times; None at the start."""
        return clock.shown(self._state.newest, self._state.times)

    @property
    def oldest(self) -> Any:
        """The time the window starts after: newest - days; None at the start."""
        state = self._state
        return None if state.newest is None else clock.shown(self._start(state), state.times)

    @guarded
    def append(self, frame: Frame, now: Any = None) -> Change:
        """Add a batch of transactions and drop those that are older than the window.

        Parameters
        ----------
        frame : pandas or cuDF frame
            Transactions in any order, with the columns named at the start. It is not modified.
        now
            When the batch came, which ``max_lead`` counts from: a date, or a number where times are
            numbers. None: now, as the system's clock has it, in UTC. A replay must say.

        Returns
        -------
        Change
            ``added, expired, late, duplicates``: rows that joined, rows that left, rows that were
            not taken because they are older than the window, and rows that were not because one
            with the same ``id`` was.

        Raises
        ------
        ValueError
            A column is missing, or holds nulls, negative or infinite amounts; numeric times look
            like another unit than ``time_unit``, or like dates (20260131), or cannot be told apart;
            a few rows are dated far
            ahead of all others, or one more than ``max_lead`` after ``now``. The window stays as
            it was.
        TypeError
            ``frame`` is no frame, or a column holds another type than is needed or than before.
        """
        with self._lock.once("append"):
            read = self._read(frame, now)
            return Change(0, 0, 0, 0) if read is None else self._take(*read)

    def _read(self, frame: Frame, now: Any) -> tuple[Batch, Kind, str] | None:
        frame, kind = self._reader.checked(frame, self._state.kind)
        if not len(frame):
            return None
        batch, time_kind = self._reader.read(frame, kind, self._state.times)
        self._reader.refuse_lead(batch, now, time_kind)
        return batch, kind, time_kind

    def _take(self, batch: Batch, kind: Kind, time_kind: str) -> Change:
        """Take in a batch that is read."""
        self._state, change = after_batch(self, batch, kind, time_kind)
        return change

    @guarded
    def advance(self, to: Any) -> Change:
        """Move the end of the window forward, without rows: to the time up to which all have come.

        Parameters
        ----------
        to
            The new end: a date (one without zone stands for UTC where times have a zone), or a
            number where times are numbers. What `newest` says afterwards.

        Returns
        -------
        Change
            Of which only ``expired`` may be other than 0: the rows that left.

        Raises
        ------
        ValueError
            ``to`` is before ``newest``: a window does not move back.
        TypeError
            ``to`` is another kind of time than those of the window.
        """
        with self._lock.once("advance"):
            return self._advance(to)

    def _advance(self, to: Any) -> Change:
        state = self._state
        newest, time_kind = clock.moment(to, "to", self._time_unit, state.times)
        if state.newest is not None and newest < state.newest:
            raise ValueError(
                f"to={to!r:.80} is before {self.newest}, up to which the window has seen; it does "
                "not move back: for times before that start a new one"
            )
        if newest == state.newest:
            return Change(0, 0, 0, 0)
        state = state._replace(newest=newest, times=time_kind)
        start, expired = self._start(state), 0
        if state.engine is not None:
            engine, expired, _ = state.engine.advanced(None, start, newest - start)
            deliveries = state.deliveries.moved(start)
            state = state._replace(engine=engine, deliveries=deliveries)
        self._state = state
        return Change(0, expired, 0, 0)

    def mark(self) -> int:
        """Return a number that stands for the window as it is now: see `changed_since`."""
        return 0 if self._state.engine is None else self._state.engine.version

    @guarded
    def changed_since(self, mark: int) -> Frame:
        """List the vertices whose transactions changed: where one joined or left since then.

        Parameters
        ----------
        mark : int
            What `mark` returned, at any time before.

        Returns
        -------
        frame
            Of the caller's kind: ``vertex`` (``0_vertex``, ... if ids have several columns), in
            the order of the vertices of `graph`. Vertices that are no longer inside are left out.

        Raises
        ------
        ValueError, TypeError
            ``mark`` is none of this window's.

        Notes
        -----
        The graph of a mark and that of now differ only at these vertices and at those that are
        gone. Asking costs a pass over the vertices, beside the merge that `graph` then saves.
        """
        if isinstance(mark, bool) or not isinstance(mark, int | np.integer):
            raise TypeError(f"mark must be what mark() returned, not {mark!r:.80}")
        if not 0 <= mark <= self.mark():
            raise ValueError(
                f"mark={mark} is none of this window, whose marks are from 0 to {self.mark()}"
            )
        engine = self._state.engine
        if engine is None:
            return kinds.to_frame(self._reader.no_vertices.take(None), "pandas")
        index = engine.changed_since(mark)
        return kinds.to_frame(engine.window().vertices.take(index), self._state.kind)

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
        return self._graph(weight)

    def _graph(self, weight: str | None) -> Graph:
        """Return a graph, also of "units", whole numbers, or "faded": see `fades`."""
        engine, window = self._filled()
        kept = self._graphs  # another thread may append meanwhile
        if kept[0] is not engine:
            self._graphs = kept = engine, {}
        graphs = kept[1]
        if weight not in graphs:
            graphs[weight] = graph_of(window, weight, self.directed, self._scale)
        return graphs[weight]

    @guarded
    def edges(self) -> Frame:
        """List every pair with what its transactions add up to.

        Returns
        -------
        frame
            Of the caller's kind: ``source``, ``destination`` (``0_source``, ... if the ids have
            several columns), ``transfers`` (int64), ``amount`` (float64). Undirected
            windows name the smaller id first.

        Raises
        ------
        ValueError
            The window is empty.
        """
        _, window = self._filled()
        return edges_of(window, self.directed, self._scale, self._state.kind)

    def _filled(self) -> tuple[Engine, Window]:
        engine = self._state.engine
        if engine is None or not len(engine):
            if self._state.newest is not None:
                raise ValueError(
                    f"the window is empty: all transactions have left it, which ends with "
                    f"{self.newest}; append later ones first, or look at len(window)"
                )
            raise ValueError("the window is empty: append transactions first")
        return engine, engine.window()

    def fades(self, half_life: Any, amounts: bool) -> None:
        """Add up, too, what transactions or amounts count by their age: for monitors."""
        fading = half_life, amounts
        with self._lock:
            if self._fading not in (None, fading):
                raise ValueError(
                    "half_life: another monitor, now or before, was given this window with another "
                    "half_life or weight, and the window keeps to that; give each its own window"
                )
            state = self._state
            if state.engine is not None and amounts:
                refuse_total(state.engine.total(), self._scale, GROWTH)
            self._fading = fading
            if state.engine is not None and state.engine.decay is None:
                engine = state.engine.fading(self._decay_of(state.times), state.newest)
                self._state = state._replace(engine=engine)

    def _decay_of(self, times: str) -> Decay | None:
        if self._fading is None:
            return None
        span, amounts = self._fading
        return Decay(clock.length_of(span, times, self._time_unit), amounts)

    def _start(self, state):
        return start_of(state.newest, self.days, state.times, self._time_unit)
