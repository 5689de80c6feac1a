"""Slow, obvious twins of searches."""

from itertools import pairwise


def distances(indptr, indices, weights, starts, cutoff=None):
    """The least sum over all paths from the starts, None where there is none (Bellman and Ford).

    Sums are of the weights' own type, rounded at every edge; without weights edges count.
    """
    found = [None] * (len(indptr) - 1)
    zero = 0 if weights is None else weights.dtype.type(0)
    for start in starts:
        found[start] = zero
    changed = True
    while changed:
        changed = False
        for u, (begin, end) in enumerate(pairwise(map(int, indptr))):
            for p in range(begin, end) if found[u] is not None else ():
                v, through = int(indices[p]), found[u] + (1 if weights is None else weights[p])
                better = found[v] is None or through < found[v]
                if better and (cutoff is None or through <= cutoff):
                    found[v], changed = through, True
    return found


def predecessors(indptr, indices, weights, starts, found):
    """The vertex before each on a shortest path, -1 for none.

    The smallest of those that are nearer; where none is, round by round, the smallest that has a
    predecessor already (or is a start).
    """
    tight = [[] for _ in found]
    for u, (begin, end) in enumerate(pairwise(map(int, indptr))):
        for p in range(begin, end) if found[u] is not None else ():
            v = int(indices[p])
            if (
                found[v] is not None
                and found[u] + (1 if weights is None else weights[p]) == found[v]
            ):
                tight[v].append(u)
    before = [
        -1 if v in starts else min((u for u in near if found[u] < found[v]), default=-1)
        for v, near in enumerate(tight)
    ]
    settled = {v for v in range(len(found)) if found[v] is not None and before[v] >= 0}
    settled |= set(starts)
    while True:
        news = {
            v: min(near)
            for v in range(len(found))
            if v not in settled and (near := [u for u in tight[v] if u in settled])
        }
        if not news:
            return before
        for v, u in news.items():
            before[v] = u
        settled |= set(news)
