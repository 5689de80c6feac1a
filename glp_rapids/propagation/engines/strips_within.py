"""Strips within a limit of memory: how long they are, and how much of the classes stays.

What a run takes follows from how its lists are cut, and how they are cut from what is left; so it
is tried, some times, and kept with the layout for the next run under the same limit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from glp_rapids.outofcore.bit_packed import LINE
from glp_rapids.outofcore.double_buffer import BUS, SLOTS
from glp_rapids.propagation.engines import strips
from glp_rapids.propagation.engines.fetched_rows import A_LAUNCH
from glp_rapids.propagation.engines.strips import A_ROW

ROUNDS, LITTLE = 6, 256  # what is left of the memory is filled in so many, to such a share of it
KEPT = 8  # of the cuts of a layout
FRONT_AND_REST = 2  # strips of a class of which a part stays, and the rest is one strip


def cut_within(
    layout: strips.Layout, memory: int | None, caches: bool, share: strips.Share,
    sizes: Callable[[int], tuple[int, int]], beside: Callable[[strips.Strips | None], int],
    follows_from: tuple,
) -> tuple[strips.Strips, int]:  # fmt: skip
    """Cut the lists into strips so that a run fits; return them, and the bytes that it takes.

    ``sizes``: given the bytes of all else, how many entries stay and how many a strip has;
    ``beside``: the bytes of all else, which is for each of these known by ``follows_from``. If
    nothing fits, the bytes are the fewest there can be.
    """
    key = memory, caches, share, *follows_from

    def taken_by(found: strips.Strips) -> int:
        return beside(found) + bytes_of(layout, found.room)

    kept = layout.cuts.get(key)
    if kept is None:
        found = _cut(layout, memory, caches, share, sizes, beside, taken_by)
        if len(layout.cuts) >= KEPT:
            layout.cuts.clear()
        kept = layout.cuts[key] = found, taken_by(found)
    return kept


def bytes_of(layout: strips.Layout, entries: int) -> int:
    """Return the bytes of entries, in whole lines, on the device."""
    return int(entries * layout.bytes_an_entry)


def _cut(
    layout: strips.Layout, memory: int | None, caches: bool, share: strips.Share,
    sizes: Callable[[int], tuple[int, int]], beside: Callable[[strips.Strips | None], int],
    taken_by: Callable[[strips.Strips], int],
) -> strips.Strips:  # fmt: skip
    # Hubs of a class take the larger tables: what strips are then may be larger for that.
    found = None
    for _ in range(2):
        cut = fitted(layout, *sizes(beside(found)), taken_by, memory if caches else None, share)
        if found is None or memory is None or taken_by(cut) <= memory:
            found = cut
    if memory is not None and taken_by(found) > memory:
        classes = layout.begins.shape[0]
        given = layout.largest_class, layout.longest_row, classes, layout.bytes_an_entry
        least = sizes_by_halves(*given)
        found = min((strips.cut(layout, 0, size, share) for size in least), key=taken_by)
    elif memory is not None and caches and found.a_class == FRONT_AND_REST and share.ranks == 1:
        either = [found, *_by_class(layout, found, memory, taken_by)]
        found = min(either, key=partial(seconds_a_sweep, layout))
    return found


def _by_class(
    layout: strips.Layout, fronts: strips.Strips, memory: int,
    taken_by: Callable[[strips.Strips], int],
) -> Iterator[strips.Strips]:  # fmt: skip
    """Give strips of whole classes, of which as many stay as fit, if any do."""
    largest = layout.largest_class
    free = memory - taken_by(fronts) + bytes_of(layout, fronts.room)
    stays = int(free / layout.bytes_an_entry) - SLOTS * largest
    while stays > 0:
        found = strips.cut(layout, stays, largest, by_class=True)
        if found.a_class > 1:
            return
        if taken_by(found) <= memory:
            yield found
            return
        stays -= max(largest // 2, 1)


def seconds_a_sweep(layout: strips.Layout, found: strips.Strips) -> float:
    """Estimate what a sweep over everything waits for: the bus, and launches or steps for strips.

    With a strip a class instead of two, com-dblp went from 16.4 to 11.6 ms and kron-22-16 from 21.0
    to 18.4 to 21.6 (H200), though slots for whole classes take room from what stays.
    """
    sizes = np.diff(found.entries)
    streamed = int(sizes[found.place < 0].sum())
    return streamed * layout.bytes_an_entry / BUS + A_LAUNCH * np.count_nonzero(sizes)


def sizes_by_halves(largest: int, longest: int, classes: int, an_entry: float) -> list[int]:
    """List how many entries strips may have that take the least: whole classes, halves and so on.

    The shorter they are, the more there are of whom something is known.
    """
    sizes = [max(largest, longest, 1)]
    while sizes[-1] > max(longest, 1):
        size = max(-(-sizes[-1] // 2), longest, 1)
        sizes.append(size)
        if classes * A_ROW * (largest // size) > SLOTS * size * an_entry:
            break
    return sizes


def fitted(
    layout: strips.Layout, stays: int, longest: int, taken_by: Callable[[strips.Strips], int],
    memory: int | None, share: strips.Share = strips.ALONE,
) -> strips.Strips:  # fmt: skip
    """Cut so that ``stays`` entries stay, or as many as fit ``memory``; None: that asks nobody.

    Rows are not cut: strips may be longer than they should by one each. And the more stays, the
    less room the slots take.
    """
    found = strips.cut(layout, stays, longest, share)
    if memory is None:
        return found
    while stays and taken_by(found) > memory:
        stays //= 2
        found = strips.cut(layout, stays, longest, share)
    an_entry = layout.bytes_an_entry
    too_much = int(layout.starts[-1])
    for _ in range(ROUNDS):
        left = int((memory - taken_by(found)) / an_entry) - 2 * layout.begins.shape[0] * LINE
        after = min(stays + left, (stays + too_much) // 2)
        if (after - stays) * an_entry <= memory // LITTLE or not (found.place[found.own] < 0).any():
            break
        more = strips.cut(layout, after, longest, share)
        if taken_by(more) > memory:
            too_much = after
        else:
            stays, found = after, more
    return found
