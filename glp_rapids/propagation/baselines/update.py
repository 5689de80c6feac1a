"""After the evaluation of a class: write the winners down, and activate those who read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.propagation.baselines.votes import THREADS
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.kernels.gpu.failures import build_say

READERS_OF_THREAD = 32  # a vertex read by more is left to a block of its own


@dataclass(frozen=True)
class UpdateKernels:
    """The kernels that update a class."""

    update: Any
    activate: Any
    start: Any  # for the first labels


def build(compiled: Compiled, index_type: Any) -> UpdateKernels:
    """Make the kernels.

    Launch: ``update`` blocks of 128, a thread a vertex; ``activate`` blocks of 128, a block for
    each vertex read by more than 32; ``start`` a thread a vertex. No shared memory.
    """
    State, plain = compiled.state_type, compiled.traits.plain
    default_score, counted = compiled.traits.default_score, compiled.traits.count_volumes
    volume_field = compiled.state_type._fields.index("volume") if counted else 0
    update_vertex, say = compiled.update_vertex, build_say(compiled)
    from_fixed = compiled.from_fixed

    def update(
        first, last, vertices, readers_indptr, readers, fields, skip, scale, active, winner,
        winner_score, differing, changed, errors,
    ):  # fmt: skip
        state = State(*fields)
        position = first + cuda.grid(1)
        differs = 0
        if position < last:
            v = vertices[position]
            label = winner[v]
            if label >= 0:
                winner[v] = -1
                before = state.labels[v]
                if plain:
                    state.labels[v] = label
                else:
                    if default_score:
                        update_vertex(v, label, from_fixed(winner_score[v], scale), state)
                    else:
                        update_vertex(v, label, winner_score[v], state)
                    say(v, state, errors)
                after = state.labels[v]
                if after != before:
                    differs = 1
                    if counted:
                        if before >= 0:
                            cuda.atomic.add(fields[volume_field], before, -1)
                        if after >= 0:
                            cuda.atomic.add(fields[volume_field], after, 1)
                    if skip:
                        start, end = readers_indptr[v], readers_indptr[v + 1]
                        if end - start > READERS_OF_THREAD:
                            differing[v] = 1
                        else:
                            for j in range(start, end):
                                active[readers[j]] = 1
        total = cuda.syncthreads_count(differs)
        if cuda.threadIdx.x == 0 and total > 0:
            cuda.atomic.add(changed, 0, total)

    def activate(first, much_read, readers_indptr, readers, differing, active):
        v = much_read[first + cuda.blockIdx.x]
        if differing[v] != 0:  # the same for all threads: it is put back only after the barrier
            for j in range(readers_indptr[v] + cuda.threadIdx.x, readers_indptr[v + 1], THREADS):
                active[readers[j]] = 1
            cuda.syncthreads()
            if cuda.threadIdx.x == 0:
                differing[v] = 0

    def start(fields, errors):
        state = State(*fields)
        v = cuda.grid(1)
        if v < state.labels.size:
            say(v, state, errors)

    digest = f"{compiled.digest} {index_type.__name__}"
    return UpdateKernels(
        kernel(update, digest, compiled),
        kernel(activate, digest, compiled),
        kernel(start, digest, compiled),
    )
