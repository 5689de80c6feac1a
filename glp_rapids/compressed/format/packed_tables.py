"""The tables of the scheme "packed": the widths that suit the numbers of a graph, and their check.

How many numbers of a kind there are is known by the bits of x + 1; classes are ranges of these, and
the cheapest eight are found by trying all ends of each. What is counted may be a sample, so the
last class holds whatever a graph of this size can have.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from glp_rapids.compressed.format.layout import Layout
from glp_rapids.compressed.format.packed import CLASS_BITS, CLASSES, KINDS, MOST_BITS, WIDTH_BITS

NEVER = np.int64(1 << 60)


def tables_of(counts: dict[str, np.ndarray], layout: Layout, number_of_vertices: int) -> np.ndarray:
    """Make the tables for so many numbers of each kind, by the bits of x + 1 less one; uint32."""
    n, segment = number_of_vertices, min(layout.segment, number_of_vertices)
    most = {"count": segment, "length": segment, "first": 2 * n, "rest": segment}
    none = np.zeros(1, np.int64)
    widths = [_best_widths(counts.get(kind, none), most.get(kind, n)) for kind in KINDS]
    return _tables(widths)


def check(tables: np.ndarray) -> None:
    """Raise ValueError for tables that a decoder must not be given, wherever they come from."""
    if tables.size != 2 * len(KINDS) * CLASSES:
        raise ValueError(f"{tables.size} words are not those of {len(KINDS)} kinds of numbers")
    widths = (tables[1::2] & np.uint32((1 << WIDTH_BITS) - 1)).reshape(-1, CLASSES)
    if widths.max() > MOST_BITS or not np.array_equal(tables, _tables(widths.tolist())):
        raise ValueError("the classes of a kind of number do not follow one another")


def _tables(widths: list[list[int]]) -> np.ndarray:
    words = []
    for of_kind in widths:
        base = 0
        for width in of_kind:
            high = base >> 32
            words += [base & 0xFFFF_FFFF, (high << WIDTH_BITS | width) & 0xFFFF_FFFF]
            base += 1 << width
        if base - (1 << of_kind[-1]) >> MOST_BITS:
            raise ValueError(f"a number has more than {MOST_BITS} bits")
    return np.array(words, np.uint32)


def _best_widths(counts: np.ndarray, most: int) -> list[int]:
    """Find the widths of the classes for which these numbers, ``most`` at most, take least."""
    end = (most + 1).bit_length()  # numbers are of ranges 0 to end - 1
    below = np.zeros(end + 1, np.int64)
    below[1:] = np.cumsum(np.concatenate([counts, np.zeros(end, np.int64)])[:end])
    first, last = np.triu_indices(end + 1, 1)
    costs = np.full((end + 1, end + 1), NEVER)  # of a class of ranges from one on up to another
    widths = np.array([_width(*ends) for ends in zip(first.tolist(), last.tolist(), strict=True)])
    costs[first, last] = (CLASS_BITS + widths) * (below[last] - below[first])
    np.fill_diagonal(costs, 0)  # a class that is not needed
    best, begins = costs[0], []
    for _ in range(CLASSES - 1):
        choices = best[:, None] + costs
        begins.append(choices.argmin(axis=0))
        best = choices.min(axis=0)
    ends = [end]
    for begin in reversed(begins):
        ends.append(int(begin[ends[-1]]))
    ends = sorted({0, *ends})
    found = [_width(*pair) for pair in pairwise(ends)]
    # Classes of one number each in front move the others up, which makes no number longer.
    return [0] * (CLASSES - len(found)) + found


def _width(first: int, last: int) -> int:
    """Count the bits that tell apart all x with ``2**first <= x + 1 < 2**last``."""
    return ((1 << last) - (1 << first) - 1).bit_length()
