"""The schedule: who is updated together, when sweeps end, and how many iterations there may be.

Eight classes, at most five sweeps, ended by one that moves at most a vertex in a hundred: chosen by
a table over 21 of the named graphs. With 16 or 32 classes wiki-Vote ended .003 of modularity lower
as often as not; with more sweeps LFR at mu 0.5 gained .003, which a third iteration gives, too. On
levels of up to 2,048 vertices there are four classes, so that a GPU waits half as often: modularity
changed by -.0002 to +.0009 (medians on 14 graphs). Up to 8,192 wiki-Vote ended .006 lower with one
seed of three.

TABLE
"""

from __future__ import annotations

CLASSES = 8
FEWER_CLASSES, SMALL = 4, 2048  # so many but on the first way up of more vertices than these
MOST_SWEEPS = 5
FEW = 100  # a sweep ends a level if it moves at most one vertex in so many
REFINING_SWEEPS = 2
ITERATIONS, MOST_ITERATIONS = 2, 6
MORE = 1 << 20  # vertices and entries that all iterations after the second go through
LARGE = 1 << 24  # vertices and entries that one iteration alone goes through
UP, DOWN = "up", "down"


def classes_for(vertices: int, level: int, way: str) -> int:
    """Return how many classes so many vertices fall in where they are moved."""
    return CLASSES if vertices > SMALL and level == 0 and way == UP else FEWER_CLASSES


def iterations_for(items: int, refine: bool) -> int:
    """Return how many iterations so many vertices and entries may have."""
    if not refine or items > LARGE:
        return 1
    return min(ITERATIONS + MORE // items, MOST_ITERATIONS)


def ends_at(parts: int, vertices: int) -> bool:
    """Tell whether a level of so many parts is the last on the way up."""
    return parts == vertices or (vertices > FEW and 20 * parts > 19 * vertices)


def seed_of(seed: int, iteration: int, level: int, way: str) -> int:
    """Return the seed of a level: two that hinder each other do so only once."""
    return seed + (iteration << 48) + (level << 40) + ((way == DOWN) << 36)


def settles(moved: list[int], vertices: int) -> bool:
    """Tell whether sweeps that moved so many vertices each are enough."""
    return len(moved) >= MOST_SWEEPS or bool(moved and FEW * moved[-1] <= vertices)
