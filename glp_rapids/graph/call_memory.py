"""How much memory a call on the plain lists of a graph takes: estimated, and held against a limit.

Figures are bytes beside the graph's own, from above. Those of a CPU are peaks that `tracemalloc`
counted, of nine graphs of 0.03 to 24 million vertices with and without weights: scores took 114 a
vertex whatever the graph, features 176 or up to 24 and 18 an entry. Levels take what their graph
leaves of them, and figures are of those that leave most (roads, graphs drawn at random), up to 2.4
times what others took, on the average 1.5 times; those of clusters are so, too. On a GPU levels,
scores and contraction were measured on an H200 (62 an entry of three graphs, and 85 with weights
that are no integers, at the most), the rest was counted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from glp_rapids.device import LITTLE, LackOfMemory, free_on_gpu, memory_free, memory_taken

if TYPE_CHECKING:
    from glp_rapids.device import DeviceName
    from glp_rapids.graph.graph import BaseGraph


# How many times what levels, or clusters, took their figure was at the most.
TIMES_TAKEN = 2.4


class Moment(NamedTuple):
    """What there is at a moment at which there may be most: bytes of each vertex and entry."""

    a_vertex: int
    an_entry: int = 0
    a_weight: int = 0  # of an entry that has a weight
    a_real_weight: int = 0  # of an entry whose weight is no integer, besides

    def bytes_of(self, graph: Any) -> int:
        """Add up; entries whose neighbours have 64 bits count as twice those of 32."""
        an_entry = self.an_entry * graph.index_dtype.itemsize // 4
        if graph.weights is not None:
            an_entry += self.a_weight
            an_entry += self.a_real_weight * (graph.weights.dtype.kind == "f")
        return self.a_vertex * graph.number_of_vertices + an_entry * graph.number_of_edges


# Of a GPU, levels take so much at the least, a vertex, and an entry of a graph of up to so many.
AT_LEAST, OF_LEVELS, AN_ENTRY = 1 << 23, 160, ((1 << 20, 80), (1 << 22, 40), (float("inf"), 20))
# The first level that is small is gone on with in one launch: bytes of its vertices and entries,
# and of one that is as large as they can be.
OF_SMALL, LARGEST_SMALL = Moment(220, 120), 160 << 20
OF_LEVELS_ON_CPU = Moment(150, 34, a_weight=8)
# Of each thread, for every entry of the longest row; and of all, for a vertex.
A_CANDIDATE, OF_THREADS = 68, 32


def levels_on_gpu(graph: Any) -> int:
    """Return about how many bytes of a GPU the levels of a graph take, of most graphs."""
    entries = graph.number_of_edges
    an_entry = next(size for most, size in AN_ENTRY if entries <= most)
    return AT_LEAST + OF_LEVELS * graph.number_of_vertices + an_entry * entries


def _most_of_levels_on_gpu(graph: Any) -> int:
    return levels_on_gpu(graph) + min(OF_SMALL.bytes_of(graph), LARGEST_SMALL)


def _levels_on_cpu(graph: Any) -> int:
    # Numba waits for the first run
    from glp_rapids.jit.parallel import threads_available

    threads = threads_available()
    tables = threads * A_CANDIDATE * _longest_row(graph)
    if threads > 2:
        tables += OF_THREADS * graph.number_of_vertices
    return OF_LEVELS_ON_CPU.bytes_of(graph) + tables


def _longest_row(graph: Any) -> int:
    if hasattr(graph, "longest_row"):
        return graph.longest_row
    return graph.rows("out").largest_degree()


def _largest(*moments: Moment) -> Callable[[Any], int]:
    return lambda graph: max(moment.bytes_of(graph) for moment in moments)


# Labels are propagated so often among the accounts that clusters are looked for in, on several
# copies of their graph side by side, of so many vertices or entries in all.
RUNS, ENTRIES = 9, 1 << 21  # odd, so that a majority is one


class OfClusters(NamedTuple):
    """What clusters take among some accounts: beside copies of their graph, of each, and later."""

    beside: Moment
    a_copy: Moment
    later: Moment

    def bytes_of(self, part: Any) -> int:
        """Return the bytes among the accounts of a part of a graph."""
        copies = copies_at_once(part.number_of_vertices, part.number_of_edges)
        beside, a_copy, later = (moment.bytes_of(part) for moment in self)
        return max(beside + copies * a_copy, later)


def copies_at_once(vertices: int, entries: int) -> int:
    """Return how many copies of a graph labels are propagated on in one run."""
    return min(max(ENTRIES // max(entries, vertices, 1), 1), RUNS)


CLUSTERS = {
    "cpu": OfClusters(Moment(0, 25, 8), Moment(70, 16, 11, 3), Moment(135, 22, 12, 36)),
    "gpu": OfClusters(Moment(0, 34, 11), Moment(94, 22, 15, 4), Moment(180, 30, 16, 48)),
}
A_SCORE = 60  # bytes of every account that there are meanwhile
SCORES = {"cpu": _largest(Moment(116)), "gpu": _largest(Moment(140, a_real_weight=44))}
# By the name of a function and the device: what it takes beside the lists of a graph, or of what is
# known of one (`propagation.subject`).
TAKEN: dict[str, dict[str, Callable[[Any], int]]] = {
    "multilevel_label_propagation": {"cpu": _levels_on_cpu, "gpu": _most_of_levels_on_gpu},
    "account_scores": SCORES,
    "find_clusters": SCORES,
    "features": {
        "cpu": _largest(Moment(178), Moment(30, 18)),
        "gpu": _largest(Moment(220, a_real_weight=44), Moment(60, 26)),
    },
    "contract": {
        "cpu": _largest(Moment(15, 42, 26, 24)), "gpu": _largest(Moment(20, 64, 0, 24)),
    },
}  # fmt: skip


def clusters_among(part: Any, graph: Any, device: DeviceName) -> int:
    """Return the bytes that clusters take among some accounts, beside the lists of all."""
    return CLUSTERS[device].bytes_of(part) + A_SCORE * graph.number_of_vertices


def _everybody(device: DeviceName) -> Callable[[Any], int]:
    def most(graph: Any) -> int:
        return max(SCORES[device](graph), clusters_among(graph, graph, device))

    return most


# What `estimate_memory` knows: all that a call may come to, where that shows only in its midst.
MOST = {
    **{name: TAKEN[name] for name in ("multilevel_label_propagation", "account_scores")},
    "features": TAKEN["features"],
    "find_clusters": {"cpu": _everybody("cpu"), "gpu": _everybody("gpu")},
}


def bytes_of_lists(graph: Any) -> int:
    """Return the bytes of offsets, neighbours and weights of a graph, with plain lists."""
    weights = 0 if graph.weights is None else graph.weights.dtype.itemsize
    a_neighbour = graph.index_dtype.itemsize
    return 8 * (graph.number_of_vertices + 1) + graph.number_of_edges * (a_neighbour + weights)


def taken_by(function: str, graph: BaseGraph, device: DeviceName, more: int = 0) -> int:
    """Return the bytes that a call takes on a device, the graph included.

    ``more``: bytes of each vertex that this call takes besides.
    """
    beside = TAKEN[function][device](graph) + more * graph.number_of_vertices
    return beside + lists_there(graph, device)


def lists_there(graph: BaseGraph, device: DeviceName) -> int:
    """Return the bytes of a graph in the memory of a device while a call works on it there.

    One that has to be brought there, or to be decoded, counts as it will be; of one that is there
    what is in memory.
    """
    there = graph.device == device
    taken = memory_taken(*graph.rows("out").arrays(made=False)) if there else 0
    return taken + (bytes_of_lists(graph) if graph.scheme or not there else 0)


class Part(NamedTuple):
    """A part of a graph, by its size, for `Moment.bytes_of`."""

    number_of_vertices: int
    number_of_edges: int
    index_dtype: Any
    weights: Any


def check_clusters(graph: BaseGraph, part: Part, limit: int | None) -> None:
    """Raise if clusters among some accounts of a graph take more than a limit, or than is free."""
    needed = clusters_among(part, graph, graph.device)
    if limit is not None:
        needed += lists_there(graph, graph.device)
    elif needed < LITTLE:
        return
    check_room("find_clusters", graph, graph.device, needed, limit, TIMES_TAKEN)


def check_room(
    function: str, graph: BaseGraph, device: DeviceName, needed: int, limit: int | None,
    times: float = 1.0,
) -> None:  # fmt: skip
    """Raise if a call takes more than a limit, or surely more than is free where it is None.

    ``needed``: its bytes; under a limit with those of the graph, which are there already.
    ``times``: how many times what is taken they may be.

    Raises
    ------
    LackOfMemory
        The message says by how much.
    """
    room = limit
    if limit is None:
        room = free_on_gpu() if device == "gpu" else memory_free("cpu")
        needed = int(needed / times)
        if room is None:
            return
    if needed <= room:
        return
    which, takes = f"the {room:,} bytes that are free are", "about"
    mend = "free some, or pass a memory_limit that is higher"
    if limit is not None:
        which, takes, mend = f"memory_limit={limit:,} bytes is", "up to", "raise it"
    elif times > 1:
        takes = "at least about"
    elsewhere = "; or use host memory: pass graph.to('cpu')" if device == "gpu" else ""
    raise LackOfMemory(
        f"graph: {which} {needed - room:,} too little for {function} of its "
        f"{graph.number_of_vertices:,} vertices and {graph.number_of_edges:,} entries on the "
        f"{device}, which takes {takes} {needed:,}{', the graph included' if limit else ''}; "
        f"{mend}{elsewhere}"
    )


def check_call(function: str, graph: BaseGraph, limit: int | None, more: int = 0) -> None:
    """Raise if a call on a graph takes more where that is than a limit, or than is free there."""
    if limit is not None:
        needed = taken_by(function, graph, graph.device, more)
    else:
        needed = TAKEN[function][graph.device](graph) + more * graph.number_of_vertices
        if needed < LITTLE:
            return
    times = TIMES_TAKEN if function == "multilevel_label_propagation" else 1.0
    check_room(function, graph, graph.device, needed, limit, times)
