"""The schedule: who is updated together, when sweeps end, and how many iterations there may be.

Eight classes when vertices move for the first time, four later and on levels of up to 2,048
vertices, where a GPU waits half as often and nine graphs ended between .0008 of modularity lower
and .0004 higher (medians of five seeds); with four from the first on email-Enron lost .002 and
wiki-Vote .001. At most five sweeps, ended by one that moves at most a vertex in a hundred: with
three graphalytics-p2p-31 ends .003 lower. Levels end where more than 95 parts are left of 100
vertices: a tenth of the steps are saved, for .0007 on ca-CondMat and less elsewhere.

The first iteration moves alone, as Louvain's method. The way down again is worth .0001 to .021 on
nine graphs (LFR at mu 0.3), and with it one iteration ends above NetworKit's PLM but on wiki-Vote.
The second, which refines, adds .0001 to .008; more of them are cheap on small graphs, so these may
have up to six: those after the second go through 2^20 vertices and entries at the most, less than
one does on com-dblp. None follows one whose way down left all but one vertex in a thousand of the
graph where they were: on 21 graphs that cost .0001 at the most, with one in two hundred
web-NotreDame lost .002; a web of 1.4 M vertices is done after the first.
"""

from __future__ import annotations

CLASSES = 8
FEWER_CLASSES, SMALL = 4, 2048  # so many but on the first way up of more vertices than these
MOST_SWEEPS = 5
FEW = 100  # a sweep ends a level if it moves at most one vertex in so many
REFINING_SWEEPS = 2
ITERATIONS, MOST_ITERATIONS = 2, 6
UNMOVED = 1000  # no iteration follows where fewer than one vertex in so many moved at last
MORE = 1 << 20  # vertices and entries that all iterations after the second go through
UP, DOWN = "up", "down"


def classes_for(vertices: int, level: int, way: str) -> int:
    """Return how many classes so many vertices fall in where they are moved."""
    return CLASSES if vertices > SMALL and level == 0 and way == UP else FEWER_CLASSES


def iterations_for(items: int) -> int:
    """Return how many iterations so many vertices and entries may have."""
    return min(ITERATIONS + MORE // items, MOST_ITERATIONS)


def converges(moved: list[int], vertices: int) -> bool:
    """Tell whether vertices that moved in the last sweeps of an iteration are too few for more."""
    return UNMOVED * (sum(moved) + 1) <= vertices


def ends_at(parts: int, vertices: int) -> bool:
    """Tell whether a level of so many parts is the last on the way up."""
    return parts == vertices or (vertices > FEW and 20 * parts > 19 * vertices)


def seed_of(seed: int, iteration: int, level: int, way: str) -> int:
    """Return the seed of a level: two that hinder each other do so only once."""
    return seed + (iteration << 48) + (level << 40) + ((way == DOWN) << 36)


def settles(moved: list[int], vertices: int) -> bool:
    """Tell whether sweeps that moved so many vertices each are enough."""
    return len(moved) >= MOST_SWEEPS or bool(moved and FEW * moved[-1] <= vertices)
