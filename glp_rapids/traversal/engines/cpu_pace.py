"""How far the limit of near vertices goes up in a search for shortest paths on a CPU.

Too far, and vertices are worked on again; too little, and the far pile is sorted again and again.
Which it is a search finds out on its way; where it begins is chosen here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from glp_rapids.traversal.engines import largest
from glp_rapids.traversal.kernels import cpu_sssp

if TYPE_CHECKING:
    from glp_rapids.graph.rows import Rows

# Median weights, by the mean degree to the power of 1.5: how far the limit of near vertices goes up
# at first. On a road grid, two crawl-like and two random graphs, and Kronecker graphs (degrees from
# 3.6 to 49) that was within a fifth of the best step.
STEP = 20.0
FINEST = 128  # of the first step, the least, unless that of integers is one already
SAMPLE = 1 << 12  # weights


class Pace(NamedTuple):
    """How far the limit of near vertices goes up, and how vertices are kept while it does.

    ``words``: distance and predecessor in one; ``plateaus``: edges may add nothing to a distance.
    """

    step: int | float
    least_step: int | float
    words: bool
    plateaus: bool


def pace_of(rows: Rows) -> Pace:
    """Choose the steps for a graph, and in which form vertices are kept."""
    weights = rows.weights
    sample = weights[:: max(1, weights.size // SAMPLE)]
    positive = sample[sample > 0].astype(np.float64)
    # no mean: one weight that is far above all others would make the step reach everything
    median = float(np.median(positive)) if positive.size else 0.0
    with_entries = np.count_nonzero(rows.indptr[1:] != rows.indptr[:-1])
    step = median * STEP * (with_entries / max(weights.size, 1)) ** 1.5
    longest = largest(weights.dtype)
    if weights.dtype.kind == "f":
        least = float(np.finfo(weights.dtype).tiny)
        step = min(max(step, least), float(longest))
        return Pace(step, max(step / FINEST, least), False, True)
    most = rows.largest_weight() * rows.number_of_vertices
    words = most <= cpu_sssp.MOST and rows.index_dtype.itemsize == 4
    plateaus = bool(weights.size) and int(weights.min()) == 0
    step = min(max(int(step), 1), int(longest))
    return Pace(step, max(step // FINEST, 1), words, plateaus)
