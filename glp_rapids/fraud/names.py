"""Names that clusters keep from tick to tick, and what has become of each since the last.

Clusters are found anew at every tick, in no order that means anything. A cluster of before goes on
in the one that holds most of its members; of several that go on in the same one, the one with most
members there gives it its name, and the others are its parents. A cluster that nobody goes on in
gets a new name: the tick and its smallest member. So names depend on the members alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pandas as pd

EVENTS = ("new", "grown", "shrunk", "merged", "split", "gone")


@dataclass(frozen=True)
class Register:
    """The clusters of a tick, the oldest name first, and their members, by ascending id.

    ``ids``: a row a member, in the columns that ids have; ``cluster``: where its cluster stands.
    """

    names: tuple[str, ...] = ()
    score: np.ndarray = field(default_factory=partial(np.empty, 0))
    ids: pd.DataFrame | None = None
    cluster: np.ndarray = field(default_factory=partial(np.empty, 0, np.int64))


@dataclass(frozen=True)
class Changes:
    """What became of clusters, as lists by column, and which members came and went.

    ``joined``: rows of the members of now; ``left``: rows of those of before.
    """

    alerts: dict[str, list]
    joined: np.ndarray
    left: np.ndarray


def carried(
    before: Register, ids: pd.DataFrame, found: np.ndarray, score: np.ndarray, tick: int
) -> tuple[Register, Changes]:
    """Name the clusters of a tick after those of the one before.

    Parameters
    ----------
    before
        The tick before.
    ids
        The members of all clusters, by ascending id.
    found
        The cluster of each, from 0 and without gaps, in any order.
    score
        Of each cluster.
    tick
        The number of this tick, which new names begin with.
    """
    count, count_before = score.size, before.score.size
    member_before, member = _same_members(before.ids, ids)
    overlaps = _overlaps(before.cluster[member_before], found[member], count)
    first = np.full(count, found.size)
    np.minimum.at(first, found, np.arange(found.size))

    heir = np.full(count_before, -1)
    for old, new, _ in sorted(overlaps, key=lambda row: (row[2], -first[row[1]])):
        heir[old] = new  # the last stays: the largest overlap, the smallest first member
    kept = np.full(count, -1)
    closest = np.full(count, -1)
    for old, new, _ in sorted(overlaps, key=lambda row: (row[2], -row[0])):
        closest[new] = old  # the largest overlap, the oldest name
        if heir[old] == new:
            kept[new] = old

    by_age = sorted(range(count), key=lambda new: (kept[new] < 0, kept[new], first[new]))
    place = np.empty(count, np.int64)
    place[by_age] = np.arange(count)
    names = tuple(
        before.names[kept[new]] if kept[new] >= 0 else _name(tick, ids, first[new])
        for new in by_age
    )
    register = Register(names, score[by_age], ids, place[found])
    parents: list[list[str]] = [[] for _ in range(count)]
    for old in range(count_before):
        if heir[old] >= 0 and kept[heir[old]] != old:
            parents[place[heir[old]]].append(before.names[old])
    stays = np.zeros(ids.shape[0], bool)
    stays[member] = kept[found[member]] == before.cluster[member_before]
    stayed = np.zeros(before.cluster.size, bool)
    stayed[member_before] = kept[found[member]] == before.cluster[member_before]
    joined, left = np.flatnonzero(~stays), np.flatnonzero(~stayed)

    came = np.bincount(register.cluster[joined], minlength=count)
    went = np.bincount(before.cluster[left], minlength=count_before)
    alerts = []
    for here, new in enumerate(by_age):
        old = kept[new]
        gone = went[old] if old >= 0 else 0
        delta = score[new] - (before.score[old] if old >= 0 else 0.0)
        origin = parents[here]
        if old < 0 and closest[new] >= 0:
            event, origin = "split", [before.names[closest[new]]]
        elif old < 0:
            event = "new"
        elif origin:
            event = "merged"
        elif came[here] or gone:
            event = "grown" if came[here] >= gone else "shrunk"
        else:
            continue
        alerts.append((names[here], event, origin, came[here], gone, score[new], delta))
    for old in np.flatnonzero(heir < 0):
        lost = before.names[old], "gone", [], 0, went[old], np.nan, -before.score[old]
        alerts.append(lost)
    columns = "cluster_id", "event", "parents", "joined", "left", "score", "delta"
    lists = [list(column) for column in zip(*alerts, strict=True)] or [[] for _ in columns]
    return register, Changes(dict(zip(columns, lists, strict=True)), joined, left)


def _name(tick: int, ids: pd.DataFrame, row: int) -> str:
    # column by column: a row of several would be of one type
    founder = [str(ids[column].iloc[row]) for column in ids.columns]
    return f"{tick}:{founder[0] if len(founder) == 1 else json.dumps(founder)}"


def _same_members(before: pd.DataFrame | None, now: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Find who is there before and now: the rows in either, in the same order."""
    if before is None or not len(before) or not len(now):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    one, other = (frame[frame.columns[0]].to_numpy() for frame in (before, now))
    if len(now.columns) == 1 and one.dtype == other.dtype and one.dtype.kind in "iu":
        # numbers that ascend, which pandas would hash
        place = np.minimum(np.searchsorted(one, other), one.size - 1)
        found = np.flatnonzero(one[place] == other)
        return place[found], found
    if not before.dtypes.equals(now.dtypes):  # integers of two types may have no common one
        before, now = before.astype(object), now.astype(object)
    together = pd.concat([before, now], ignore_index=True)
    code = together.groupby(list(together.columns), sort=False, observed=True).ngroup().to_numpy()
    row = np.full(code.max() + 1, -1)
    row[code[: len(before)]] = np.arange(len(before))
    earlier = row[code[len(before) :]]
    return earlier[earlier >= 0], np.flatnonzero(earlier >= 0)


def _overlaps(old: np.ndarray, new: np.ndarray, count: int) -> list[tuple[int, int, int]]:
    """List which clusters share members, and how many: old, new, number."""
    pairs, number = np.unique(old * np.int64(max(count, 1)) + new, return_counts=True)
    return list(zip((pairs // count).tolist(), (pairs % count).tolist(), number.tolist(),
                    strict=True)) if count else []  # fmt: skip
