"""What levels that are done together take: see `gpu_small_levels`."""

from __future__ import annotations

from typing import Any, NamedTuple

Array = Any


class Level(NamedTuple):
    """A level, with weights, and its communities: each a vertex that has that name.

    The first one as it is given, or a view of a `Store`, as large as it is.
    """

    indptr: Array
    indices: Array
    weights: Array
    volume: Array
    words: Array
    labels: Array


class Store(NamedTuple):
    """What the levels take, for a vertex of the first one each where nothing else is said.

    Arrays of their own, whose addresses a kernel has among its constants, not in registers. Those
    of ``STACKED`` have all levels, one after the other.
    """

    indptr: Array  # stacked, one more a level
    indices: Array  # stacked
    weights: Array  # stacked
    volume: Array  # stacked
    words: Array  # stacked
    labels: Array  # stacked, of communities
    names: Array  # stacked, the numbers of parts
    first_of_parts: Array  # stacked
    following: Array
    sizes: Array
    volumes: Array
    active: Array
    parts: Array
    turns: Array
    part_volumes: Array
    outward: Array
    joined: Array
    parts_following: Array
    members: Array
    goals: Array
    first: Array
    number_of: Array
    of_communities: Array  # the numbers of communities
    first_of_communities: Array
    totals: Array  # entries of parts
    offsets: Array  # one more
    counts: Array  # one a block
    bases: Array  # of hubs
    pieces: Array  # likewise
    owners: Array  # of pieces
    found: Array  # likewise, zeros
    own: Array  # likewise, zeros
    hub_table: Array  # zeros
    used: Array  # slots of that
    piece_labels: Array
    gains_high: Array
    gains_low: Array
    table: Array  # of the parts, zeros
    control: Array  # zeros


STACKED = ("indptr", "volume", "words", "labels", "names", "first_of_parts")  # and of entries:
STACKED_ENTRIES = ("indices", "weights")


class Parameters(NamedTuple):
    """How to go up, or down."""

    unit: Any  # of weights, on all levels
    constant: Any
    seed: Any  # uint64: of the first level, on the way up
    first: Any  # the number of the first level
    most: Any  # levels in all
    refining: Any
    lengths: Any
    above: Any  # 0: up and down; else down alone, to the levels below this one, whose labels stand
