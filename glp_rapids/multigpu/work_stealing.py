"""Who works on which items: GPUs, or threads in their place, that take over from one another.

As in the search of Huang et al. on several GPUs: a model says what each item costs; the items are
cut into units of about equal cost; the units are packed greedily, the largest first, each to the
worker that has the least so far. What no model foresees, stealing evens out: a worker that has done
its own takes the last unit of the one with the most left.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from queue import SimpleQueue
from typing import Any

import numpy as np

from glp_rapids.device import array_module, to_host
from glp_rapids.jit.interrupts import stopped_by

Array = Any
Call = Callable[[Any, Array], Any]  # of an engine and items


@dataclass
class Worker:
    """A device, or a thread in its place, with an engine of its own; and what it has done.

    ``scope`` makes its device the current one; ``settle`` waits until the device is done.
    """

    name: str
    engine: Any
    scope: Callable[[], contextlib.AbstractContextManager] = contextlib.nullcontext
    settle: Callable[[], None] = lambda: None
    seconds: float = 0.0
    units: int = 0
    stolen: int = 0

    def do(self, call: Call, items: Array) -> Any:
        """Make a call for items that lie here, inside ``scope``; note how long it took."""
        begin = time.perf_counter()
        found = call(self.engine, items)
        self.settle()
        self.seconds += time.perf_counter() - begin
        self.units += 1
        return found


# ---------------------------------------------------------------- cutting, packing, stealing


def units_of(cost: Array, number: int) -> tuple[list[Array], list[float]]:
    """Cut items, given by their positive cost, into about so many units of about equal cost.

    Returns units, each the places of its items, and what each costs. An item that costs as much as
    a unit should is one of its own. The others stay in order: what neighbours read is often the
    same, and then in the cache, and a mixture evens out what the model misjudges.
    """
    xp = array_module(cost)
    step = float(cost.sum()) / number
    heavy = xp.flatnonzero(cost >= step)
    light = xp.flatnonzero(cost < step)
    units = [heavy[i : i + 1] for i in range(heavy.size)]
    totals = to_host(cost[heavy]).tolist()
    if light.size:
        running = xp.cumsum(cost[light])
        # An item belongs to the unit in which its middle lies.
        unit = xp.floor((running - cost[light] / 2) / step)
        last = xp.ones(unit.size, dtype=bool)
        xp.not_equal(unit[1:], unit[:-1], out=last[:-1])
        ends = xp.flatnonzero(last)
        totals += np.diff(to_host(running[ends]), prepend=0.0).tolist()
        ends = (to_host(ends) + 1).tolist()
        bounds = zip([0, *ends[:-1]], ends, strict=True)
        units += [light[first:last] for first, last in bounds]
    return units, totals


# A worker's last unit, which can be stolen till then, is one of so many parts of its work; and how
# many runs of items a unit is made of.
PARTS, STRIPES = 8, 48


def mixed_units(
    cost: Array, together: Array, workers: int, call: float = 0.0, times: float = 1.0
) -> tuple[list[Array], list[float], int]:
    """Cut items, given by their positive cost, into few units that fit the workers; as `units_of`.

    For GPUs, which should not be asked often: threads take turns at launching, and a hundred small
    launches then take longer than what they start. Those that are worked on ``together`` are one
    unit, which costs ``call`` and ``times`` as much; if that is more than a worker should do, one
    for each of them, dealt by falling cost. Of the others each worker gets a large unit, with which
    all have as much, and a small one. Stripes of these are dealt, so that all are samples of the
    same mixture, whatever the model misjudges.

    Also returns how many units are of those worked on together. They are the first, and should be
    begun first: what they cost is the least certain.
    """
    xp = array_module(cost)
    dealt, others = xp.flatnonzero(together), xp.flatnonzero(~together)
    share = cost[others]
    rest = float(share.sum())
    before_small, loads = 1 - 1 / PARTS, [0.0] * workers
    units: list[Array] = []
    if dealt.size:
        units = [dealt]
        by_cost = times * float(cost[dealt].sum())
        loads[0] = call + by_cost
        if by_cost > before_small * (rest + by_cost) / workers:
            dealt = dealt[xp.argsort(-cost[dealt])]
            turn = xp.arange(dealt.size) % (2 * workers)  # there and back: 0, 1, 1, 0, ...
            turn = xp.minimum(turn, 2 * workers - 1 - turn)
            number = min(workers, dealt.size)
            units = [xp.sort(dealt[turn == worker]) for worker in range(number)]
            loads[:number] = [call + times * float(cost[unit].sum()) for unit in units]
    early, totals = len(units), loads[: len(units)]
    if others.size:
        most = before_small * (rest + sum(loads)) / workers
        large = np.array([max(most - load, 0.0) for load in loads])
        if large.any():
            large *= min(1.0, before_small * rest / large.sum())
        small = np.full(workers, (rest - large.sum()) / workers)
        ends = np.cumsum([*large, *small]) / rest
        ends[-1] = 1.0
        running = xp.cumsum(share)
        running -= share / 2  # an item belongs to the stripe in which its middle lies
        place = running * (STRIPES / rest) % 1
        stripes = pairwise([0.0, *ends.tolist()])
        cut = [others[(place >= first) & (place < end)] for first, end in stripes]
        cut = [unit for unit in cut if unit.size]
        totals += to_host(xp.stack([cost[unit].sum() for unit in cut])).tolist()
        units += cut
    return units, totals, early


def packed(costs: Sequence[float], workers: int, early: int = 0) -> list[list[int]]:
    """Pack units, the largest first, each to the worker with the least so far; a list a worker.

    Of its units a worker has those first that are among the first, ``early`` ones.
    """
    shares: list[list[int]] = [[] for _ in range(workers)]
    loads = [0.0] * workers
    for unit in sorted(range(len(costs)), key=lambda unit: -costs[unit]):
        least = min(range(workers), key=loads.__getitem__)
        shares[least].append(unit)
        loads[least] += costs[unit]
    for share in shares:
        share.sort(key=lambda unit: unit >= early)
    return shares


@dataclass
class Shares:
    """The units that each worker has yet to begin; taken and stolen by any thread."""

    costs: Sequence[float]
    shares: list[list[int]]
    steal: bool = True
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def take(self, worker: int) -> tuple[int, bool] | None:
        """Hand out the next unit of a worker, and whether it was stolen; None: there is no more."""
        with self._lock:
            if own := self.shares[worker]:
                return own.pop(0), False
            loads = [sum(self.costs[unit] for unit in share) for share in self.shares]
            # of those who have any left, since a unit may cost nothing
            busiest = max(range(len(loads)), key=lambda i: (bool(self.shares[i]), loads[i]))
            if not self.steal or not self.shares[busiest]:
                return None
            return self.shares[busiest].pop(), True

    def drop(self) -> None:
        """Let every worker end after the unit at hand."""
        with self._lock:
            for share in self.shares:
                share.clear()


def work(
    workers: Sequence[Worker],
    call: Call,
    units: Sequence[Sequence[Array]],
    costs: Sequence[float],
    *,
    early: int = 0,
    steal: bool = True,
    tell: Callable[[int], None] = lambda items: None,
) -> list[Any]:
    """Make ``call(engine, unit)`` once for every unit and return what it returned, by unit.

    ``units`` holds, for every worker, all units where that worker is, since any may be stolen.

    Workers have a thread each. ``tell`` is called in this one with the size of each unit done. If
    a call raises, the others end after the unit at hand and the error is raised here.
    """
    shares = Shares(costs, packed(costs, len(workers), early), steal)
    messages: SimpleQueue = SimpleQueue()
    stop = np.zeros(1, np.uint8)

    def serve(place: int, worker: Worker) -> None:
        try:
            with worker.scope(), stopped_by(stop):
                while taken := shares.take(place):
                    unit, stolen = taken
                    worker.stolen += stolen
                    messages.put((unit, worker.do(call, units[place][unit])))
        except BaseException as error:  # raised where all are waited for
            messages.put((None, error))
        else:
            messages.put((None, None))

    threads = [
        threading.Thread(target=serve, args=pair, daemon=True) for pair in enumerate(workers)
    ]
    found: list[Any] = [None] * len(costs)
    errors = []
    try:
        for thread in threads:
            thread.start()
        at_work = len(threads)
        while at_work:
            unit, result = messages.get()
            if unit is not None:
                found[unit] = result
                tell(len(units[0][unit]))
                continue
            at_work -= 1
            if result is not None:
                errors.append(result)
                shares.drop()
    except BaseException:  # a Ctrl-C: whatever is at hand may end now
        stop[0] = 1
        raise
    finally:
        shares.drop()
        for thread in threads:
            if thread.ident is not None:  # else it never started
                thread.join()
    if errors:
        raise errors[0]
    return found
