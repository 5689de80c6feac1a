"""The schedule: who is updated together, when sweeps end, and how many iterations there may be.

Eight classes when vertices move for the first time, four later and on levels of up to 2,048
vertices, where a GPU waits half as often and nine graphs ended between .0008 of modularity lower
and .0005 higher (medians of five seeds); with four from the first on email-Enron and wiki-Vote lose
.001 to .004. At most five sweeps, ended by one that moves at most a vertex in a hundred: with three
graphalytics-p2p-31 ends .003 lower. Levels end where 95 parts or more are left of 100 vertices: a
tenth of the steps are saved, and nothing is lost.

The first iteration moves alone, as Louvain's method. Going down again is worth .000 to .021 (.8213
without, .8292 with it on com-dblp), and leaves it at PLM's at the least. The second, which refines,
adds .0001 to .008; more of them are cheap on small graphs, so these may have up to six: those after
the second go through 2^20 vertices and entries at the most, less than one does on com-dblp. Where a
graph has more than 2^24 a second one takes two thirds of the time again for .0004 (web-like, 27 M
entries) or .0005 (kron-22).
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
