"""Short rows: a thread a row of up to eight entries, everything in registers.

A warp's rows lie side by side, so what its threads read one after the other was fetched together.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu.votes import DISTINCT, RETAIN, TIE_BREAK, TIE_SEED


def build_few(shared: SimpleNamespace, size: int) -> Any:
    """Make the path of a thread a row, for degrees up to ``size``; everything is in registers."""
    index_type, vote_type, score_type = shared.index_type, shared.vote_type, shared.score_type
    heard_from, scored, order_key = shared.heard_from, shared.scored, shared.order_key
    unit, online, harmless = shared.unit, shared.online, shared.default_load

    @cuda.jit(device=True)
    def few(v, start, degree, current, rows, state, here, numbers):
        labels = cuda.local.array(size, index_type)
        votes = cuda.local.array(size, vote_type)
        scores = cuda.local.array(size, score_type)
        first = cuda.local.array(size, np.bool_)
        distinct = here.now[DISTINCT] != 0
        last = max(degree - 1, 0)
        for i in range(size):
            labels[i] = rows.indices[np.uint64(start + min(i, last))]
        for i in range(size):
            # What is read once too often is dropped below; a user's function sees real entries.
            if harmless or i < degree:
                labels[i], votes[i] = heard_from(
                    v, labels[i], start + min(i, last), rows, state, distinct, numbers
                )
        for i in range(size):
            if i >= degree:
                labels[i] = index_type(-1)
        best, most = index_type(-1), score_type(0)
        for i in range(size):
            total = vote_type(0)
            first[i] = labels[i] >= 0
            for j in range(size):
                if online and j < i:
                    continue  # the first of its kind has them all; fewer cannot be the best
                same = labels[j] == labels[i]
                if unit:
                    total = vote_type(total + vote_type(same))
                elif same:
                    total = vote_type(total + votes[j])
                if j < i and same:
                    first[i] = False
            if online:
                scores[i] = score_type(total)
            elif first[i]:
                scores[i] = scored(v, labels[i], total, state, numbers)
                first[i] = scores[i] == scores[i]
            if first[i] and (best < 0 or scores[i] > most):
                best, most = labels[i], scores[i]
        tied, held = False, False
        for i in range(size):
            if first[i] and scores[i] == most:
                tied = tied or labels[i] != best
                held = held or labels[i] == current
        if tied:
            if held and here.now[RETAIN] != 0:
                best = current
            else:
                key = ~np.uint64(0)
                best = index_type(-1)
                for i in range(size):
                    if first[i] and scores[i] == most:
                        this = order_key(
                            labels[i], here.now[TIE_BREAK], np.uint64(here.now[TIE_SEED])
                        )
                        if best < 0 or this < key or (this == key and labels[i] < best):
                            best, key = labels[i], this
        return best, most, tied

    return few
