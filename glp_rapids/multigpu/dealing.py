"""Items that ranks deal to one another, so that all have as much to do.

Each rank has items of its own, knows what each of them costs, and deals them to all ranks. Nobody
steals here, so what no model foresees has to be even from the start: every rank gets as much of
every other one's items, in stripes of what follows one another. Only items that cost more than a
small part of what a rank should do are told to all, which then pack them as one process would.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.device import array_module, to_host
from glp_rapids.multigpu.exchange import Exchange
from glp_rapids.multigpu.work_stealing import STRIPES, packed

Array = Any
HEAVY = 128  # an item that costs as much as one of so many parts of a rank's work is packed


def dealt(exchange: Exchange, cost: Array, together: Array) -> list[Array]:
    """Return for each rank the places of this one's items that it gets, ascending.

    ``cost`` is above 0. Of those worked on ``together`` (a truth each) and of the others every rank
    gets as much, since the model may misjudge how they compare.
    """
    xp, ranks = array_module(cost), exchange.ranks
    if ranks == 1:
        return [xp.arange(cost.size)]
    wanted = sum(exchange.tell(float(cost.sum()))) / ranks
    heavy = cost >= wanted / HEAVY
    own = xp.flatnonzero(heavy)
    told = exchange.tell(to_host(cost[own]).tolist())
    costs = [one for of_rank in told for one in of_rank]
    shares = packed(costs, ranks)  # alike on all ranks, which were told the same
    getter = np.empty(len(costs), np.int16)
    for rank, share in enumerate(shares):
        getter[share] = rank
    before = sum(len(of_rank) for of_rank in told[: exchange.rank])
    of_item = xp.empty(cost.size, np.int16)
    of_item[own] = xp.asarray(getter[before : before + own.size])
    left = np.array([max(wanted - sum(costs[one] for one in share), 0.0) for share in shares])
    ends = xp.asarray(np.cumsum(left)[:-1] / (left.sum() or 1.0))
    for some in (~heavy & together, ~heavy & ~together):
        chosen = xp.flatnonzero(some)
        if chosen.size:
            running = xp.cumsum(cost[chosen])
            running -= cost[chosen] / 2  # an item belongs to the stripe in which its middle lies
            place = running * (STRIPES / cost[chosen].sum()) % 1
            of_item[chosen] = xp.searchsorted(ends, place, side="right")
    return [xp.flatnonzero(of_item == rank) for rank in range(ranks)]
