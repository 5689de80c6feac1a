"""What levels that go down together take: see `gpu_descent`."""

from __future__ import annotations

from typing import Any, NamedTuple

Array = Any


class Level(NamedTuple):
    """A level, with weights, and its communities: each a vertex that has that name.

    The first one as it is given, later ones views of a `Store`, as large as they are.
    """

    indptr: Array
    indices: Array
    weights: Array
    volume: Array
    words: Array
    labels: Array


class Store(NamedTuple):
    """What the levels take, for a vertex each where nothing else is said.

    Arrays of their own, whose addresses a kernel has among its constants, not in registers; only
    of what two levels have at a time there are two in one, ``stride`` and ``entries`` apart.
    """

    indptr: Array  # two
    indices: Array  # two
    weights: Array  # two
    volume: Array  # two
    words: Array  # two
    labels: Array  # two, of communities
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
    parent: Array
    members: Array
    goals: Array
    first: Array
    number_of: Array
    of_communities: Array  # the numbers of communities
    first_of_communities: Array
    first_of_parts: Array
    names: Array  # the numbers of parts, level after level
    totals: Array  # of parts entries, and in the end of communities volumes
    offsets: Array  # one more
    counts: Array  # one a block
    bases: Array  # of hubs
    pieces: Array  # likewise
    found: Array  # likewise, zeros
    own: Array  # likewise, zeros
    hub_table: Array  # zeros
    used: Array  # slots of that
    piece_labels: Array
    gains_high: Array
    gains_low: Array
    table: Array  # of the parts, zeros
    long: Array  # rows
    control: Array  # zeros
    stride: Any
    entries: Any


class Parameters(NamedTuple):
    """How to go down."""

    unit: Any  # of weights, on all levels
    constant: Any
    seed: Any  # uint64: of the first level
    first: Any  # the number of the first level
    most: Any  # levels in all
    refine: Any
    lengths: Any
