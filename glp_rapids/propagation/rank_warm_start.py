"""Where a run begins that goes on from an earlier result; each rank has some of its rows."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from glp_rapids.device import to_host
from glp_rapids.propagation.warm_start import (
    Start,
    columns_of_layer,
    hold,
    keys_of,
    labels_of,
    numbered_communities,
    refuse_layer,
)

if TYPE_CHECKING:
    from glp_rapids.propagation.rank_graph import RankGraph

A_ROUND = 1 << 19  # rows of a rank that the others look up at once


def start_on_rank(
    graph: RankGraph, parts: list[pd.DataFrame], gamma: float | None = None,
    may_be_silent: bool = False,
) -> Start:  # fmt: skip
    """Read an earlier result; what it says of all vertices is the same on every rank.

    ``parts``: rows that this rank has, in frames with the columns of the result; those of one rank
    at least, maybe without a row. ``gamma``, ``may_be_silent``: see `warm_start.start_of`.
    """
    exchange = graph.exchange
    given = [part for part in exchange.tell(parts[0].iloc[:0] if parts else None)
             if part is not None]  # fmt: skip
    columns, layer = columns_of_layer(pd.concat([given[0], *parts], ignore_index=True), gamma)
    rows = pd.DataFrame(columns).reset_index(drop=True)
    layers = exchange.tell([] if layer is None else layer.unique().tolist())
    if not exchange.sum(len(rows)) and any(layers):
        refuse_layer(gamma, sorted(set(chain.from_iterable(layers))))
    keys = keys_of(graph, columns)
    rows["code"] = _codes(graph, rows.drop(columns=keys), may_be_silent)
    held = np.full(graph.part.last - graph.part.first, -2)
    own = graph.part.vertices
    for asked in _in_rounds(graph, rows[[*keys, "code"]]):
        if len(own) and len(asked):
            ids = asked[keys[0]] if len(keys) == 1 else asked[keys]
            index = to_host(own.lookup(ids, "initial", absent=True))
            there = index >= 0
            hold(own, index[there], asked["code"].to_numpy()[there], held)
    (held,) = exchange.allgather([held])
    beyond = max(int(held.max(initial=-1)) + 1, 2)
    return Start(*labels_of(held, beyond, graph.index_dtype))


def _codes(graph: RankGraph, communities: pd.DataFrame, may_be_silent: bool) -> np.ndarray:
    """Number the communities as all ranks do; -1 is silence."""
    own = communities.drop_duplicates()
    told = [one for one in graph.exchange.tell(own) if len(one)]
    distinct = pd.concat(told or [own]).drop_duplicates()
    named = dict(distinct.items())
    known = numbered_communities(graph, named, may_be_silent, "cpu").astype(np.int64)
    together = pd.concat([distinct, communities], ignore_index=True)
    group = together.groupby(list(together), sort=False, dropna=False).ngroup().to_numpy()
    of_group = np.empty(len(distinct), np.int64)
    of_group[group[: len(distinct)]] = known
    return of_group[group[len(distinct) :]]


def _in_rounds(graph: RankGraph, rows: pd.DataFrame):
    """Yield some rows of all ranks, until all have been yielded on each."""
    exchange = graph.exchange
    for number in range(max(exchange.tell(-(-len(rows) // A_ROUND)))):
        some = rows.iloc[number * A_ROUND : (number + 1) * A_ROUND]
        yield from exchange.alltoall([some] * exchange.ranks)
