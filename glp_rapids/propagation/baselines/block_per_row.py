"""Middle degrees: a block a vertex, labels and votes in a hash table in shared memory.

GLP, SIGMOD'21, section 4.1, without the sketch: a table that holds every label needs no pruning.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.propagation.baselines.votes import THREADS, VoteFunctions
from glp_rapids.propagation.compile_program import Compiled

SLOTS = 2048
LARGEST_DEGREE = SLOTS // 2


def build(compiled: Compiled, functions: VoteFunctions) -> Any:
    """Make the kernel that gives a block to a vertex.

    Launch: blocks of 128, any number of them; degrees 1..1024; 26 KB of shared memory with 32-bit
    indices (34 KB with 64-bit ones), so eight blocks fit a multiprocessor of 227 KB.
    """
    State = compiled.state_type
    index_type, score_type = functions.index_type, functions.score_type
    needed, heard_from, conclude = functions.needed, functions.heard_from, functions.conclude
    add_votes, best_of_slots = functions.add_votes, functions.best_of_slots
    best_of_block = functions.best_of_block

    def block(
        first, last, vertices, indptr, indices, weights, fields, skip, revisit_tied, retain,
        tie_break, tie_order, scale, limit, active, tied, winner, winner_score, errors,
    ):  # fmt: skip
        keys = cuda.shared.array(SLOTS, index_type)
        votes = cuda.shared.array(SLOTS, np.int64)
        labels = cuda.shared.array(THREADS, index_type)
        scores = cuda.shared.array(THREADS, score_type)
        ties = cuda.shared.array(THREADS, np.int32)
        state = State(*fields)
        thread = cuda.threadIdx.x
        for slot in range(thread, SLOTS, THREADS):
            keys[slot] = -1
            votes[slot] = 0
        cuda.syncthreads()
        position = first + cuda.blockIdx.x
        while position < last:  # the same for all threads of a block, as is what they read of v
            v = vertices[position]
            if needed(v, skip, revisit_tied, active, tied):
                start = indptr[v]
                degree = indptr[v + 1] - start
                slots = 64
                while slots < 2 * degree:
                    slots *= 2
                for j in range(thread, degree, THREADS):
                    label, amount = heard_from(
                        v, start + j, indices, weights, state, scale, limit, errors
                    )
                    if label >= 0:
                        add_votes(keys, votes, 0, slots, label, amount)
                cuda.syncthreads()
                current = index_type(state.labels[v])
                best, score, was_tied = best_of_slots(
                    v, thread, THREADS, 0, slots, keys, votes, state, scale, current, retain,
                    tie_break, tie_order,
                )  # fmt: skip
                best, score, was_tied = best_of_block(
                    best, score, was_tied, labels, scores, ties, current, retain, tie_break,
                    tie_order,
                )  # fmt: skip
                if thread == 0:
                    conclude(v, best, score, was_tied, current, active, tied, winner, winner_score)
            position += cuda.gridDim.x

    return kernel(block, compiled.digest, compiled)
