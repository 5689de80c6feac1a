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
    old, new, number = _overlaps(before.cluster[member_before], found[member], count)
    first = np.full(count, found.size)
    np.minimum.at(first, found, np.arange(found.size))

    # of values for one place the last stays
    heir, kept, closest = np.full(count_before, -1), np.full(count, -1), np.full(count, -1)
    rising = np.lexsort((-first[new], number))
    heir[old[rising]] = new[rising]  # by the largest overlap, the smallest first member
    rising = np.lexsort((-old, number))
    old, new = old[rising], new[rising]
    closest[new] = old  # by the largest overlap, the oldest name
    goes_on = heir[old] == new
    kept[new[goes_on]] = old[goes_on]

    by_age = np.lexsort((first, kept, kept < 0))
    place = np.empty(count, np.int64)
    place[by_age] = np.arange(count)
    names = tuple(
        before.names[former] if former >= 0 else _name(tick, ids, founder)
        for former, founder in zip(kept[by_age].tolist(), first[by_age].tolist(), strict=True)
    )
    register = Register(names, score[by_age], ids, place[found])
    parents: dict[int, list[str]] = {}
    inherited = np.flatnonzero(heir >= 0)
    for one in inherited[kept[heir[inherited]] != inherited].tolist():
        parents.setdefault(int(place[heir[one]]), []).append(before.names[one])
    same = kept[found[member]] == before.cluster[member_before]
    stays, stayed = np.zeros(found.size, bool), np.zeros(before.cluster.size, bool)
    stays[member], stayed[member_before] = same, same
    joined, left = np.flatnonzero(~stays), np.flatnonzero(~stayed)

    came = np.bincount(register.cluster[joined], minlength=count)
    went = np.bincount(before.cluster[left], minlength=count_before)
    alerts = []
    changed = (kept[by_age] < 0) | (came > 0) | (went[kept[by_age]] > 0 if count_before else False)
    changed[list(parents)] = True
    for here in np.flatnonzero(changed).tolist():
        one = by_age[here]
        former = kept[one]
        gone = went[former] if former >= 0 else 0
        delta = score[one] - (before.score[former] if former >= 0 else 0.0)
        origin = parents.get(here, [])
        if former < 0 and closest[one] >= 0:
            event, origin = "split", [before.names[closest[one]]]
        elif former < 0:
            event = "new"
        elif origin:
            event = "merged"
        else:
            event = "grown" if came[here] >= gone else "shrunk"
        alerts.append((names[here], event, origin, came[here], gone, score[one], delta))
    for one in np.flatnonzero(heir < 0):
        lost = before.names[one], "gone", [], 0, went[one], np.nan, -before.score[one]
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


def _overlaps(
    old: np.ndarray, new: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """List which clusters share members, and how many: old, new, number."""
    pairs, number = np.unique(old * np.int64(max(count, 1)) + new, return_counts=True)
    return pairs // max(count, 1), pairs % max(count, 1), number
