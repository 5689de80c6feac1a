"""Batches of transactions: what a caller brings, checked and read."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.device import DeviceName, array_module, to_device
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Frame, Kind
from glp_rapids.fraud import clock
from glp_rapids.fraud.engines import Array, Batch
from glp_rapids.fraud.pairs import Rows, units
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.ingest import rank, readers
from glp_rapids.ingest.columns import names_of
from glp_rapids.ingest.options import ColumnNames


@dataclass(frozen=True)
class Reader:
    """The columns of a window's batches, and where its arrays are."""

    source: ColumnNames
    destination: ColumnNames
    amount: str | None
    time: str
    id: ColumnNames | None
    time_unit: str
    lead: Any  # how far ahead of its batch a row may be dated: a `clock.span`, or None
    scale: int  # units of an amount of 1
    device: DeviceName

    @property
    def time_label(self) -> str:
        """What messages call the times."""
        return f"time column {self.time!r}"

    @property
    def number_of_id_columns(self) -> int:
        """How many columns an account's id has."""
        return len(names_of(self.source, "source"))

    @property
    def no_vertices(self) -> VertexIds:
        """No ids of accounts, in as many columns."""
        return VertexIds(VertexIds.numbers(0, "cpu").columns * self.number_of_id_columns, "pandas")

    def checked(self, frame: Frame, kind: Kind | None) -> tuple[Frame, Kind]:
        """Return the frame, out of its proxy, and its kind; refuse one without the columns.

        ``kind``: of the frames before, if there were some.
        """
        frame, proxy = kinds.without_proxy(frame)
        if not (isinstance(frame, pd.DataFrame) or kinds.is_cudf(frame, "DataFrame")):
            raise TypeError(
                f"frame must be a pandas or cuDF frame of transactions, not {type(frame).__name__}"
            )
        known = kind
        kind = "pandas" if isinstance(frame, pd.DataFrame) else "cudf.pandas" if proxy else "cudf"
        if known is not None and kind != known:
            raise TypeError(f"frame is of {kind}, but the window holds {known} so far")
        ids = [("id", name) for name in self.names_of_ids]
        for argument, name in (("amount", self.amount), ("time", self.time), *ids):
            there = 1 if name is None else list(frame.columns).count(name)
            if not there:
                raise ValueError(
                    f"{argument}={name!r}: the frame has no column {name!r}; its columns are "
                    f"{list(frame.columns)}"
                )
            if there > 1:
                raise ValueError(f"{argument}: the frame has several columns named {name!r}")
        return frame, kind

    @property
    def names_of_ids(self) -> list:
        """The columns with the ids of transactions."""
        return [] if self.id is None else names_of(self.id, "id")

    def read(self, frame: Frame, kind: Kind, time_kind: str | None) -> tuple[Batch, str]:
        """Return a batch, and what kind of times it has; ``time_kind``: of those before."""
        edges = readers.read(
            frame, readers.Options(self.source, self.destination, None, False, None)
        )
        moments, time_kind = clock.times(
            frame[self.time], self.time_label, self.time_unit, time_kind
        )
        if self.amount is None:
            amounts = np.zeros(len(frame), np.int64)
        else:
            amounts = units(frame[self.amount], self.scale, f"amount column {self.amount!r}")
        codes, vertices = rank.rank_ids(
            [edges.source, edges.destination],
            [list(edges.source_labels), list(edges.destination_labels)],
            kind,
            self.device,
        )
        if len(vertices) >= 2**31:
            raise ValueError("a batch holds at most 2**31 - 1 vertices; append smaller batches")
        rows = Rows(*codes, to_device(amounts, self.device), to_device(moments, self.device))
        if self.id is None:
            return Batch(rows, vertices), time_kind
        labels = [f"id column {name!r}" for name in self.names_of_ids]
        columns = [
            kinds.as_column(frame[name], label)
            for name, label in zip(self.names_of_ids, labels, strict=True)
        ]
        [index], ids = rank.rank_ids([columns], [labels], kind, self.device)
        return Batch(rows, vertices, ids, index), time_kind

    def refuse_lead(self, batch: Batch, now: Any, time_kind: str) -> None:
        """Raise if a row is dated too long after its batch came."""
        if now is None and self.lead is None:
            return
        now = clock.now_of(now, time_kind, self.time_unit)
        if self.lead is not None:
            lead = clock.length_of(self.lead, time_kind, self.time_unit)
            shown = partial(clock.shown, kind=time_kind)
            clock.refuse_lead(batch.rows.time, now, lead, self.time_label, shown, str(self.lead))


def check_names(source: Any, destination: Any, amount: Any, time: Any, id: Any) -> None:
    """Raise unless columns are named that may be what they are named for."""
    if not isinstance(time, str | int):
        raise TypeError(f"time must be the name of a column, not {time!r:.80}")
    if not isinstance(amount, str | int | None):
        raise TypeError(f"amount must be the name of a column or None, not {amount!r:.80}")
    ends = names_of(source, "source"), names_of(destination, "destination")
    if ends[0] == ends[1]:
        raise ValueError(f"source and destination are both {source!r}; name two columns")
    if amount is not None and amount == time:
        raise ValueError(f"amount and time are both {amount!r}; name two columns")
    if id is not None and names_of(id, "id") in ends:
        raise ValueError(
            f"id={id!r} is the column of an account, of whose payments only the first would be "
            "taken; name the column with the id of a transaction"
        )


def first_of_each(batch: Batch) -> Array:
    """Find the rows whose ids are those of no row before, in their order."""
    xp = array_module(batch.index)
    order = xp.argsort(batch.index, kind="stable")
    ranks = batch.index[order]
    fresh = xp.ones(order.size, dtype=bool)
    fresh[1:] = ranks[1:] != ranks[:-1]
    return xp.sort(order[fresh])
