"""The schedule: who is updated together, when sweeps end, and how many iterations there may be.

Eight classes on the first level, four on higher ones and where vertices are refined, and two on
levels of up to 2,048 vertices and on every way down. A GPU waits for its blocks twice a class: with
two classes there, not four, a third to a half less often above level 0, while 19 graphs ended
between .0007 of modularity lower and .0006 higher (medians of five seeds). With two on levels of up
to 8,192 vertices LFR at mu 0.5 lost .002, with one on the way down .003 to .009; with four from the
first on email-Enron lost .002 and wiki-Vote .001. At most five sweeps, ended by one that moves at
most a vertex in a hundred: with three graphalytics-p2p-31 ends .003 lower. Levels end where more
than 95 parts are left of 100 vertices: a tenth of the steps are saved, for .0007 on ca-CondMat and
less elsewhere.

The constant Potts model has eight classes on every level. At a high resolution a community has room
for few, and of all that want in together each counts without the others: with two on the way down
email-Enron at .7 and .9 ended below its lone vertices. With eight it reaches 8,901 and 2,683,
without refining 2,852 (igraph's Leiden 8,906 and 2,827; ``bench multilevel --cpm .7 .9 .99 --graphs
email-Enron``); sixteen are better, but GPU kernels have no room for them yet. By any objective, as
long as lone vertices are better iterations go on from what there is: refined, it may be better in
the end, and at .99 is (271; igraph 283).

The first iteration moves alone, as Louvain's method. The way down again is worth .0001 to .021 on
nine graphs (LFR at mu 0.3), and with it one iteration ends above NetworKit's PLM but on wiki-Vote.
The second, which refines, adds .0001 to .008; more of them are cheap on small graphs, so these may
have up to six: those after the second go through 2^20 vertices and entries at the most, less than
one does on com-dblp. None follows one whose way down left all but one vertex in a thousand of the
graph where they were: on 19 graphs that cost .0001 at the most, with one in two hundred
web-NotreDame lost .002; a web of 1.4 M vertices is done after the first. Iterations go on for
gains of 1e-5: with 1e-4 wiki-Vote ended .0002 lower, and 15 other graphs where they do now.

Where refining leaves more than three quarters of the entries, as on Kronecker graphs, there is
little to be found between parts and communities: such a level, if it is large, is moved, and its
communities are contracted: the first three levels of parts of kron-22-16 took an H100 21, 15 and 9
ms. kron-18-16 and kron-20-16, of which nine tenths are left, end where they did; with three
tenths as the limit social-1000000 lost .0008, a grid of a million vertices .0001. And it is the
last unless one vertex in eight moved, counted over all sweeps: on these two a tenth do, and to
contract what they found gained .000003 to .00004 of modularity.
"""

from __future__ import annotations

CLASSES, FEWER_CLASSES, FEWEST_CLASSES = 8, 4, 2
SMALL = 2048  # vertices
MOST_SWEEPS = 5
FEW = 100  # a sweep ends a level if it moves at most one vertex in so many
REFINING_SWEEPS = 2
ITERATIONS, MOST_ITERATIONS = 2, 6
UNMOVED = 1000  # no iteration follows where fewer than one vertex in so many moved at last
MORE = 1 << 20  # vertices and entries that all iterations after the second go through
LARGE = 1 << 20  # vertices and entries of levels that are refined, however many entries are left
MOST_LEFT = 0.75  # of the entries of the level below, where a larger one is refined
UNSETTLED = 8  # a level that is moved instead is contracted if one vertex in so many moved
UP, DOWN = "up", "down"


def classes_for(vertices: int, level: int, going_up: bool) -> int:
    """Return how many classes so many vertices fall in where they are moved."""
    if not going_up or vertices <= SMALL:
        return FEWEST_CLASSES
    return CLASSES if level == 0 else FEWER_CLASSES


def iterations_for(items: int) -> int:
    """Return how many iterations so many vertices and entries may have."""
    return min(ITERATIONS + MORE // items, MOST_ITERATIONS)


def is_refined(vertices: int, entries: int, entries_below: int) -> bool:
    """Tell whether a level above another is refined, too, where the one below was."""
    return vertices + entries <= LARGE or entries <= MOST_LEFT * entries_below


def least_moves(vertices: int, instead: bool) -> int:
    """Return how many moves it takes for a level to be contracted; ``instead``: of refining it."""
    return vertices // UNSETTLED if instead else 0


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
