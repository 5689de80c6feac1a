"""Numbers of communities or parts: 0 .. k - 1, in the order of their first vertices."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.propagation.results import renumbered

Array = Any


class Numbered(NamedTuple):
    """Of every vertex the number of its community, and of each community the first vertex."""

    numbers: Array
    first: Array


class Rest(NamedTuple):
    """What came of a level and those after it, done together.

    Either ``communities`` of the vertices of the last level, with ``volumes`` and the weight that
    is ``crossing`` from one to another, from both ends; or the next level, and its communities.
    """

    levels: list[dict]
    parts: list[Array]  # numbers, of every level but the last
    communities: Array | None
    volumes: Array | None
    crossing: int
    network: Any
    labels: Array | None


def numbered(labels: np.ndarray) -> Numbered:
    """Number communities on the host."""
    numbers = renumbered(labels)
    first = np.empty(int(numbers.max(initial=-1)) + 1, np.int64)
    first[numbers[::-1]] = np.arange(numbers.size - 1, -1, -1)  # the last that is written stays
    return Numbered(numbers, first)
