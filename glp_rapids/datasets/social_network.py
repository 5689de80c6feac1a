"""A made-up social network: people in circles of friends that overlap, a few people popular.

Made as the graphs of `synthetic` are, by hashes alone, with the power laws of `web_crawl`. The
members of circles are a table of memberships in random order, cut into circles. Friendships inside
a circle need no table: the members stand around a ring, and each befriends some of the half that
comes next, so that a pair has one number and hardly any is drawn twice.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from glp_rapids.common.checks import check_integer
from glp_rapids.common.hashing import mix_array
from glp_rapids.datasets.synthetic import Edges, made, stream
from glp_rapids.datasets.web_crawl import below, power_law, steep_law
from glp_rapids.device import DeviceName, choose, module_on

__all__ = ["social"]

Array = Any

MOST_PEOPLE = 1 << 31  # what `below` can tell apart
FEWEST_CIRCLES, MOST_CIRCLES = 3, 250  # of a person; the fewest in halves, rounded down
SMALLEST, LARGEST = 2, 400  # members of a circle
# Everybody knows everybody in a small circle; in one of s members about 2 sqrt(s) others, or up to
# LUCK times as many, P(>= x times as many) = 1 / x.
LUCK = 4
# People are numbered by where they live: a neighbourhood is 2**6 of them, a town 2**12.
TOWN = 12
# Bits of the index that do not matter to a kind of circle, and how many in 16 are of this kind.
KINDS = ((6, 4), (TOWN, 6), (31, 6))
# Friends that share no circle, for 4 people; two of them by popularity, the others in one's town.
OUTSIDE, POPULAR = 5, 2


def social(people: int = 4_000_000, seed: int = 0, device: DeviceName | None = None) -> Edges:
    """Make the friendships of a social network, in circles that overlap.

    A person belongs to one or more circles, by a power law: of the neighbourhood, of the town, or
    of people from anywhere. Sizes of circles follow a power law, too. All members of a small
    circle are friends; the larger it is, the fewer. Besides, there are friends who share no
    circle, two of five by popularity, so that a few people have very many.

    Parameters
    ----------
    people
        Number of people, at most 2**31.
    seed, device
        As in `rmat`.

    Returns
    -------
    (source, destination)
        As of `rmat`; int32 where that can number the people, else int64.

    Raises
    ------
    ValueError
        If a number is out of range, or there is no such device.

    Notes
    -----
    Cost: O(edges * log people) time, 200 bytes a person beyond the result. With the defaults it
    has the shape of LiveJournal (com-LiveJournal of SNAP: 4.0 M people, 34.7 M edges, 178 M
    triangles, clustering 0.28, at most 14 815 friends): once duplicates and loops are dropped,
    35.1 M edges, 194 M triangles, clustering 0.28, at most 12 800 friends.
    Circles as the cause of triangles: M. Newman, S. Strogatz, D. Watts, Physical Review E 64,
    2001, section IV. Circles that get sparser as they grow: J. Yang, J. Leskovec, WSDM 2013.

    Examples
    --------
    >>> from glp_rapids.datasets import social
    >>> source, destination = social(1000)
    >>> len(source) > 5000, int(source.max()) < 1000
    (True, True)
    """
    check_integer("people", people, 1)
    check_integer("seed", seed, 0)
    if people > MOST_PEOPLE:
        raise ValueError(f"people must be at most 2**31, not {people}")
    device = choose(device)
    xp = module_on(device)
    member, start, size = _circles(xp, people, seed)
    place = xp.arange(member.size, dtype=np.int64) - start
    ends = xp.cumsum(_friends(xp, start, size, place, seed))
    inside = int(ends[-1])

    def edges(xp: ModuleType, edge: Array) -> Edges:
        word = mix_array(edge, stream(seed, 6))
        # those outside come last; what the first lines find for them is not used
        one = xp.minimum(xp.searchsorted(ends, edge, side="right"), member.size - 1)
        before = xp.where(one > 0, ends[one - 1], 0)
        # the next half of the ring in stretches, one for every friend, and a place in one of them
        friends, half = xp.maximum(ends[one] - before, 1), size[one] // 2
        low, high = (half * (edge - before + more) // friends for more in (0, 1))
        step = 1 + low + below(word, xp.maximum(high - low, 1))
        circle_mate = member[start[one] + (place[one] + step) % size[one]]

        outside = edge >= inside
        source = xp.where(outside, below(word, people), member[one])
        stranger = _stranger(xp, edge, source, people, seed)
        return source, xp.where(outside, stranger, circle_mate)

    return made(inside + people * OUTSIDE // 4, people, device, edges)


def _circles(xp: ModuleType, people: int, seed: int) -> tuple[Array, Array, Array]:
    """Put people in circles: of each membership, the person, its circle's start and size."""
    # capped, lest a graph of few people be one circle
    most, largest = (max(min(cap, people // 64), SMALLEST) for cap in (MOST_CIRCLES, LARGEST))
    word = mix_array(xp.arange(people, dtype=np.int64), stream(seed, 0))
    ends = xp.cumsum(steep_law(word, FEWEST_CIRCLES, 2 * most) // 2)
    number = int(ends[-1])
    membership = xp.arange(number, dtype=np.int64)
    person = xp.searchsorted(ends, membership, side="right")

    # kind by kind, area by area, the memberships of an area in random order
    throw = below(mix_array(membership, stream(seed, 1)), 16)
    area, shares = xp.zeros_like(person), 0
    for kind, (bits, share) in enumerate(KINDS):
        area = xp.where(throw >= shares, (kind << 32) + (person >> bits), area)
        shares += share
    order = xp.argsort(mix_array(membership, stream(seed, 2)), kind="stable")
    order = order[xp.argsort(area[order], kind="stable")]

    word = mix_array(xp.arange(-(-number // SMALLEST), dtype=np.int64), stream(seed, 3))
    bounds = xp.cumsum(steep_law(word, SMALLEST, largest))
    circle = xp.searchsorted(bounds, membership, side="right")
    start = xp.where(circle > 0, bounds[circle - 1], 0)
    return person[order], start, xp.minimum(bounds[circle], number) - start


def _friends(xp: ModuleType, start: Array, size: Array, place: Array, seed: int) -> Array:
    """Count the friends of each member in the next half of its circle: all, in a small one."""
    word = mix_array(start, stream(seed, 4))
    luck = power_law(word, 16, 16 * LUCK)
    # a square root is rounded correctly everywhere, so a GPU finds the same
    usual = xp.floor(16 * xp.sqrt(size.astype(np.float64))).astype(np.int64)
    some = below(mix_array(start + place, stream(seed, 5)), 256)
    # where the size is even, the one across belongs to the first half of the members
    return xp.minimum((usual * luck + some) // 256, (size - 1 + (2 * place < size)) // 2)


def _stranger(xp: ModuleType, edge: Array, person: Array, people: int, seed: int) -> Array:
    """Draw friends that share no circle: by popularity, rank r as r ** (-2 / 3), or in town."""
    half = np.uint64(32)
    word = mix_array(edge, stream(seed, 7))
    uniform = word >> half
    cube = (((uniform * uniform) >> half) * uniform) >> half
    rank = (cube * np.uint64(people)) >> half
    popular = below(mix_array(rank, stream(seed, 8)), people)
    town = person >> TOWN << TOWN
    neighbour = town + below(word, xp.minimum(people - town, 1 << TOWN))
    return xp.where(edge % OUTSIDE < POPULAR, popular, neighbour)
