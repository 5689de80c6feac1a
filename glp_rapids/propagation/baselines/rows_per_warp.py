"""Low degrees: one warp for many vertices (GLP, SIGMOD'21, section 4.2).

``width`` lanes serve a vertex, a neighbour a lane; every lane learns the votes of its own label by
listening to the others, so there is no table and no memory beyond registers.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.propagation.baselines.votes import VoteFunctions
from glp_rapids.propagation.compile_program import Compiled

WARP = 32
FULL = np.uint32(0xFFFFFFFF)
BLOCK = 256  # threads a block


def build(compiled: Compiled, functions: VoteFunctions, width: int) -> Any:
    """Make the kernel that gives ``width`` lanes to a vertex.

    Launch: blocks of 256, any number of them; degrees 1..width; no shared memory.
    """
    State = compiled.state_type
    index_type, score_type = functions.index_type, functions.score_type
    needed, heard_from = functions.needed, functions.heard_from
    score_of, combine, conclude = functions.score_of, functions.combine, functions.conclude
    groups = WARP // width

    def subwarp(
        first, last, vertices, indptr, indices, weights, fields, skip, revisit_tied, retain,
        tie_break, tie_order, scale, limit, active, tied, winner, winner_score, errors,
    ):  # fmt: skip
        state = State(*fields)
        thread = cuda.grid(1)
        lane = cuda.threadIdx.x % WARP
        own = lane % width
        lead = lane - own
        position = first + (thread // WARP) * groups + lane // width
        warp_position = first + (thread // WARP) * groups
        step = (cuda.gridsize(1) // WARP) * groups
        while warp_position < last:  # the same for all lanes of a warp
            v = index_type(0)
            wanted = False
            if position < last:
                v = vertices[position]
                wanted = needed(v, skip, revisit_tied, active, tied)
            if cuda.any_sync(FULL, wanted):
                label = index_type(-1)
                votes = np.int64(0)
                current = index_type(-1)
                if wanted:
                    start = indptr[v]
                    current = index_type(state.labels[v])
                    if own < indptr[v + 1] - start:
                        label, votes = heard_from(
                            v, start + own, indices, weights, state, scale, limit, errors
                        )
                total = np.int64(0)
                for i in range(width):
                    other = cuda.shfl_sync(FULL, label, lead + i)
                    amount = cuda.shfl_sync(FULL, votes, lead + i)
                    if other == label:
                        total += amount
                best = label
                score = score_type(0)
                if label >= 0:
                    score = score_of(v, label, total, state, scale)
                    if score != score:
                        best = index_type(-1)
                was_tied = False
                distance = width // 2
                while distance > 0:
                    other = cuda.shfl_xor_sync(FULL, best, distance)
                    other_score = cuda.shfl_xor_sync(FULL, score, distance)
                    other_tied = cuda.shfl_xor_sync(FULL, np.int32(was_tied), distance)
                    best, score, was_tied = combine(
                        best, score, was_tied, other, other_score, other_tied != 0, current,
                        retain, tie_break, tie_order,
                    )  # fmt: skip
                    distance //= 2
                cuda.syncwarp()
                if wanted and own == 0:
                    conclude(v, best, score, was_tied, current, active, tied, winner, winner_score)
            position += step
            warp_position += step

    subwarp.__name__ = f"subwarp{width}"
    return kernel(subwarp, f"{compiled.digest} {width}", compiled)
