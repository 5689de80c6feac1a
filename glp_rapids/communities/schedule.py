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
SMALL, FEWER_CLASSES = 2048, 4  # up to so many vertices, so many
MOST_SWEEPS = 5
FEW = 100  # a sweep ends a level if it moves at most one vertex in so many
REFINING_SWEEPS = 2
ITERATIONS, MOST_ITERATIONS = 2, 6
MORE = 1 << 20  # vertices and entries that all iterations after the second go through
UP, DOWN = "up", "down"


def classes_for(vertices: int) -> int:
    """Return how many classes so many vertices fall in."""
    return FEWER_CLASSES if vertices <= SMALL else CLASSES


def iterations_for(items: int, refine: bool) -> int:
    """Return how many iterations so many vertices and entries may have."""
    return min(ITERATIONS + MORE // items, MOST_ITERATIONS) if refine else 1


def seed_of(seed: int, iteration: int, level: int, way: str) -> int:
    """Return the seed of a level: two that hinder each other do so only once."""
    return seed + (iteration << 48) + (level << 40) + ((way == DOWN) << 36)


def settles(moved: list[int], vertices: int) -> bool:
    """Tell whether sweeps that moved so many vertices each are enough."""
    return len(moved) >= MOST_SWEEPS or bool(moved and FEW * moved[-1] <= vertices)
