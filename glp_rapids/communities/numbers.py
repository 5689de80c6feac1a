"""What engines tell of partitions: numbers, 0 .. k - 1 by first vertices; how levels went."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from glp_rapids.jit.cache import kept
from glp_rapids.jit.interrupts import parts

Array = Any


class Numbered(NamedTuple):
    """Of every vertex the number of its community, and of each community the first vertex."""

    numbers: Array
    first: Array


class PendingLevels(Protocol):
    """A level and all above it, done together, on their way."""

    labels: Array  # the communities, once that is done
    volumes: Array  # likewise, by name

    def wait(self) -> tuple[list[dict], bool]:
        """Return how levels went, and whether this was all that was to be waited for.

        Else some were done by further launches, and what was made of labels before is wrong.
        """


class Terms(NamedTuple):
    """The terms of objectives: weight between communities, from both ends, squared volumes."""

    crossing: int
    squares: int
    communities: Numbered


def facts_of(
    level: int, way: str, vertices: int, moved: list[int], parts: int | None = None,
    seconds: float = 0.0,
) -> dict:  # fmt: skip
    """Return what is told of a level; ``parts`` there are on the way up."""
    facts = {"level": level, "way": way, "vertices": vertices, "moved": moved, "seconds": seconds}
    return facts if parts is None else {**facts, "communities": parts}


def numbered(labels: np.ndarray) -> Numbered:
    """Number communities on the host."""
    number_of = np.full(labels.size, -1, labels.dtype)
    numbers, first = np.empty_like(labels), np.empty(labels.size, np.int64)
    given = 0
    for begin, end in parts(labels.size):
        given = _number(begin, end, labels, number_of, numbers, first, given)
    return Numbered(numbers, first[:given].copy())


@kept(error_model="numpy")
def _number(begin, end, labels, number_of, numbers, first, given):
    """Number some more vertices, when so many communities have a number already."""
    for v in range(begin, end):
        label = np.uint64(labels[v])
        if number_of[label] < 0:
            number_of[label] = given
            first[given] = v
            given += 1
        numbers[v] = number_of[label]
    return given
