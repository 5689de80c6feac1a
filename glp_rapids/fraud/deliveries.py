"""Warnings about the batches of a window: one that comes twice, rows that all come too late.

Rows have no names, so neither can be told for sure, and neither is an error.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from glp_rapids.common.calls import warn_caller
from glp_rapids.common.scans import number_where
from glp_rapids.device import any_true, array_module, to_host
from glp_rapids.fraud.pairs import Rows

SUMS = 6  # of a batch, by which it is known again


@dataclass(frozen=True)
class Deliveries:
    """The batches that a window still has rows of, and what came late since it last moved."""

    # by the sums of `_summary`: its newest time
    batches: dict[tuple[int, ...], int | float] = field(default_factory=dict)
    late: int = 0  # rows that have come far too late since then

    def after(
        self, rows: Rows, number_of_vertices: int, joining: int, held: int,
        known: Callable[[], bool], start: int | float, length: int | float, moved: bool,
        newest: str,
    ) -> Deliveries:  # fmt: skip
        """Note a batch of which ``joining`` rows join; warn of what looks wrong.

        ``held``: how many rows there are then; ``known`` tells whether each that joins was there.
        """
        late = 0 if moved else self.late
        if not moved and joining < rows.time.size:
            late += number_where(start - rows.time[rows.time <= start] > length)
        if self.late <= held < late:
            warn_caller(
                f"{late} rows have come too late by more than the window's length since it saw "
                f"{newest}, and it holds {held}; if a wrong clock said so, start a new window"
            )
        batch = _summary(rows, number_of_vertices)
        # a row alone may well come twice
        if batch in self.batches and rows.time.size > 1 and joining and known():
            warn_caller(
                f"each of the {joining} transactions of this batch is in the window already, and "
                "counts twice from now on; if it was delivered again, start a new window without it"
            )
        batches = {**self.batches, batch: rows.time.max().item()}
        return Deliveries(_later(batches, start), late)

    def moved(self, start: int | float) -> Deliveries:
        """Forget the batches that a window which now begins after ``start`` has no rows of."""
        return Deliveries(_later(self.batches, start))


def _later(batches: dict[tuple[int, ...], int | float], start: int | float) -> dict:
    return {one: time for one, time in batches.items() if time > start}


def _summary(rows: Rows, number_of_vertices: int) -> tuple[int, ...]:
    """Return a few sums that are the same for the same rows in any order."""
    xp = array_module(rows.time)
    sums = [rows.units, rows.time.view(np.int64), rows.source.astype(np.int64) * rows.destination]
    sums = to_host(xp.stack([one.sum() for one in [*sums, rows.source.astype(np.int64)]]))
    return rows.time.size, number_of_vertices, *sums.tolist()


def contained(rows: Rows, held: Rows) -> bool:
    """Tell whether each of the rows is among those held, by the same vertices."""
    xp = array_module(rows.time)
    both = held.joined(rows)
    new = xp.arange(both.time.size) >= held.time.size
    columns = [new, both.time.view(np.int64), both.units, both.destination, both.source]
    columns = xp.stack([column.astype(np.int64) for column in columns])
    columns = columns[:, xp.lexsort(columns)]
    # of equal rows those held come first
    first = xp.ones(new.size, dtype=bool)
    first[1:] = (columns[1:, 1:] != columns[1:, :-1]).any(axis=0)
    return not any_true(first & (columns[0] == 1))
