"""The shortest paths themselves, as rows, out of the predecessors that a search found."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import errors_named, shown
from glp_rapids.common.segments import segment_ids, segment_offsets
from glp_rapids.common.types import Column, Frame
from glp_rapids.device import LackOfMemory, memory_free, to_device, to_host
from glp_rapids.frames import kinds
from glp_rapids.frames.facts import set_attributes
from glp_rapids.graph.id_types import split_columns
from glp_rapids.graph.vertex_ids import refuse_missing
from glp_rapids.ingest.rank import rank_ids
from glp_rapids.traversal.search import as_ids

BYTES_A_ROW = 40  # of the result and what it is made of, with ids of a few bytes


@guarded
def shortest_paths(result: Frame, targets: Any) -> Frame:
    """List the vertices on a shortest path to each of some targets.

    Parameters
    ----------
    result : frame
        What `bfs` or `sssp` returned, with predecessors; in whatever way it shows unreached
        vertices.
    targets : id, or list, array, Series or frame of ids
        The ends of the paths. One that is named twice counts once.

    Returns
    -------
    frame
        ``target, step, vertex, distance``: the paths one after the other, in the order of the
        targets' ids, each from its start (step 0) to its target. A target that was not reached has
        no row (``0_target, ...`` and ``0_vertex, ...`` for ids of several columns).
        ``.attrs["glp"]`` holds ``unreached``: how many targets have none.

    Raises
    ------
    ValueError
        If ``result`` lacks a column, or vertices that lie on the paths; if ``targets`` is empty or
        has an id that is not in ``result``.
    TypeError
        If ``result`` is no frame.
    LackOfMemory
        If there is no room for paths as long as these; before they are made.

    Notes
    -----
    O(n) time and memory to find the rows of ids, and as much as the paths are long; on the host.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import shortest_paths, sssp
    >>> roads = pd.DataFrame({"src": list("aabc"), "dst": list("bccd"), "km": [7, 2, 4, 1]})
    >>> shortest_paths(sssp(roads, "a", weight="km"), "b")
      target  step vertex  distance
    0      b     0      a         0
    1      b     1      c         2
    2      b     2      b         6
    """
    table = _Table(result)
    ids = table.ids
    targets = as_ids(ids, targets)
    index = ids.lookup(targets, "targets", absent=True)
    refuse_missing(
        index, split_columns(targets, len(ids.columns), "targets"), "targets", "are not in result",
        "they were not reached, and dropped, or are no vertex of the graph; leave them out, or "
        "search with unreachable='null'",
    )  # fmt: skip
    wanted = np.unique(to_host(index))
    if not wanted.size:
        raise ValueError("targets is empty; name at least one vertex")
    ends = table.row_of[wanted]
    ends = ends[table.reached[ends]]
    # Numba takes longer to import than a small frame takes to read
    from glp_rapids.traversal.kernels import cpu_paths

    sizes = cpu_paths.path_sizes(table.before, ends)
    if (sizes < 0).any():
        raise ValueError(
            "result: its predecessors lead in a circle; pass what bfs or sssp returned"
        )
    needed = int(sizes.sum()) * BYTES_A_ROW
    if needed > (free := memory_free("cpu")):
        raise LackOfMemory(
            f"the paths to {ends.size} targets have {int(sizes.sum()):,} vertices, which need "
            f"about {needed:,} bytes, and {free:,} are free on the host; ask for fewer targets at "
            "a time"
        )
    offsets = segment_offsets(sizes)
    places = np.empty(int(offsets[-1]), np.int64)
    cpu_paths.walk_back(table.before, ends, offsets, places)
    path = segment_ids(offsets, np.int64)
    columns = {
        **ids.take(table.rank[ends][path], "target"),
        "step": np.arange(places.size) - offsets[:-1][path],
        **ids.take(table.rank[places], "vertex"),
        "distance": kinds.taken(table.distance, to_device(places, table.device)),
    }
    frame = kinds.to_frame(columns, ids.kind)
    return set_attributes(frame, {"unreached": int(wanted.size - ends.size)})


class _Table:
    """A result as arrays on the host: which row is whose, which were reached, the row before each.

    ``rank`` is that of every row's id, ``row_of`` its inverse, ``before`` -1 where nothing is.
    """

    def __init__(self, result: Frame) -> None:
        with errors_named("result"):
            frame, proxy = kinds.without_proxy(result)
        if not hasattr(frame, "columns") or not hasattr(frame, "iloc"):
            raise TypeError(
                f"result must be a frame that bfs or sssp returned, not {shown(result)}"
            )
        self._names = [str(name) for name in frame.columns]
        vertices, predecessors = self._columns("vertex"), self._columns("predecessor")
        if "distance" not in self._names or len(vertices) != len(predecessors):
            raise ValueError(
                f"result has the columns {self._names}, but vertex, distance and predecessor are "
                "needed; search with return_predecessors=True"
            )
        kind = "pandas"
        if kinds.is_cudf(frame, "DataFrame"):
            kind = "cudf.pandas" if proxy else "cudf"
        columns = [kinds.as_column(frame[name], f"result: {name}") for name in vertices]
        labels = [f"result: {name}" for name in vertices]
        (self.rank,), self.ids = rank_ids([columns], [labels], kind, "cpu")
        if len(self.ids) != len(frame):
            raise ValueError("result holds some vertices twice; pass what bfs or sssp returned")
        self.row_of = np.empty(self.rank.size, np.int64)
        self.row_of[self.rank] = np.arange(self.rank.size)
        self.distance = kinds.as_column(frame["distance"], "result: distance")
        self.device = "cpu" if kind == "pandas" else "gpu"
        self.before = self._rows_before(frame[predecessors])
        self.reached = (self.before >= 0) | _is_start(self.distance)

    def _columns(self, name: str) -> list[str]:
        """Name the columns of an id: one, or ``0_name``, ``1_name``, ..."""
        if name in self._names:
            return [name]
        number = sum(one.endswith(f"_{name}") for one in self._names)
        return [one for i in range(number) if (one := f"{i}_{name}") in self._names]

    def _rows_before(self, predecessors: Frame) -> np.ndarray:
        before = np.full(self.rank.size, -1, np.int64)
        there = predecessors.iloc[:, 0].notna()
        rows = np.flatnonzero(to_host(kinds.to_array(there)))
        named = predecessors[there]
        if len(named.columns) == 1 and self.ids.columns[0].family == "integer":
            named = _as_integers(named)
        rank = to_host(self.ids.lookup(named, "result: predecessor", absent=True))
        known = rank >= 0
        before[rows[known]] = self.row_of[rank[known]]
        lost = (named if self.device == "cpu" else named.to_pandas())[~known]
        if len(lost.columns) == 1 and self.ids.columns[0].family == "integer":
            lost = lost[lost.iloc[:, 0] != -1]  # which stands for none
        if len(lost):
            raise ValueError(
                f"result: the predecessor {lost.iloc[0].tolist()} is none of its vertices; pass "
                "all rows that bfs or sssp returned"
            )
        return before


def _as_integers(named: Frame) -> Frame:
    """Turn floats of a column into the integers that they were before a file with nulls."""
    values = to_host(kinds.to_array(named.iloc[:, 0]))
    if values.dtype.kind != "f" or not ((np.rint(values) == values) & (abs(values) < 2**53)).all():
        return named
    return named.astype("int64")


def _is_start(distance: Column) -> np.ndarray:
    """Tell which distances are 0.

    The one that stands for unreached cannot be told: a file may have changed its type.
    """
    there = to_host(kinds.to_array(distance.notna()))
    return there & (to_host(kinds.to_array(distance.fillna(0))) == 0)
