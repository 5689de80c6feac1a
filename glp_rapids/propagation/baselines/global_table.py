"""Strategy "global": labels and votes in a hash table a vertex, all in global memory.

What GLP (SIGMOD'21) calls G-Hash and compares with in its Table 3. A class is taken in batches
whose tables fit a scratch; who fills a table also scores and clears it, so that the next batch
finds it empty. Hubs go to several blocks each (`blocks_per_row`), with tables in global memory too.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from glp_rapids.device import to_host
from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.propagation.baselines.launches import RunArrays, SweepArguments, batches
from glp_rapids.propagation.baselines.votes import THREADS, VoteFunctions
from glp_rapids.propagation.compile_program import Compiled

WARP = 32
FULL = np.uint32(0xFFFFFFFF)
BLOCK = 256  # threads of a block of warps
LARGEST_BATCH = 1 << 28  # slots


def build_warp(compiled: Compiled, functions: VoteFunctions) -> Any:
    """Make the kernel that gives a warp to a vertex.

    Launch: blocks of 256, any number of them; any degree, meant for 1..128; no shared memory.
    """
    State = compiled.state_type
    index_type = functions.index_type
    needed, heard_from, combine = functions.needed, functions.heard_from, functions.combine
    add_votes, best_of_slots = functions.add_votes, functions.best_of_slots
    conclude = functions.conclude

    def table_warp(
        first, last, slots_before, keys, votes, vertices, indptr, indices, weights, fields,
        skip, revisit_tied, retain, tie_break, tie_order, scale, limit, active, tied, winner,
        winner_score, errors,
    ):  # fmt: skip
        state = State(*fields)
        thread = cuda.grid(1)
        lane = cuda.threadIdx.x % WARP
        position = first + thread // WARP
        step = cuda.gridsize(1) // WARP
        while position < last:  # the same for all lanes of a warp, as is what they read of v
            v = vertices[position]
            if needed(v, skip, revisit_tied, active, tied):
                base = slots_before[position] - slots_before[first]
                slots = slots_before[position + 1] - slots_before[position]
                current = index_type(state.labels[v])
                for j in range(indptr[v] + lane, indptr[v + 1], WARP):
                    label, amount = heard_from(v, j, indices, weights, state, scale, limit, errors)
                    if label >= 0:
                        add_votes(keys, votes, base, slots, label, amount)
                cuda.syncwarp()
                best, score, was_tied = best_of_slots(
                    v, lane, WARP, base, base + slots, keys, votes, state, scale, current, retain,
                    tie_break, tie_order,
                )  # fmt: skip
                distance = WARP // 2
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
                if lane == 0:
                    conclude(v, best, score, was_tied, current, active, tied, winner, winner_score)
            position += step

    return kernel(table_warp, compiled.digest, compiled)


def build_block(compiled: Compiled, functions: VoteFunctions) -> Any:
    """Make the kernel that gives a block to a vertex.

    Launch: blocks of 128, any number of them; any degree, meant for 129..1024; 2 KB of shared
    memory for the candidates of the threads.
    """
    State = compiled.state_type
    index_type, score_type = functions.index_type, functions.score_type
    needed, heard_from, conclude = functions.needed, functions.heard_from, functions.conclude
    add_votes, best_of_slots = functions.add_votes, functions.best_of_slots
    best_of_block = functions.best_of_block

    def table_block(
        first, last, slots_before, keys, votes, vertices, indptr, indices, weights, fields,
        skip, revisit_tied, retain, tie_break, tie_order, scale, limit, active, tied, winner,
        winner_score, errors,
    ):  # fmt: skip
        labels = cuda.shared.array(THREADS, index_type)
        scores = cuda.shared.array(THREADS, score_type)
        ties = cuda.shared.array(THREADS, np.int32)
        state = State(*fields)
        thread = cuda.threadIdx.x
        position = first + cuda.blockIdx.x
        while position < last:  # the same for all threads of a block, as is what they read of v
            v = vertices[position]
            if needed(v, skip, revisit_tied, active, tied):
                base = slots_before[position] - slots_before[first]
                slots = slots_before[position + 1] - slots_before[position]
                current = index_type(state.labels[v])
                for j in range(indptr[v] + thread, indptr[v + 1], THREADS):
                    label, amount = heard_from(v, j, indices, weights, state, scale, limit, errors)
                    if label >= 0:
                        add_votes(keys, votes, base, slots, label, amount)
                cuda.syncthreads()
                best, score, was_tied = best_of_slots(
                    v, thread, THREADS, base, base + slots, keys, votes, state, scale, current,
                    retain, tie_break, tie_order,
                )  # fmt: skip
                best, score, was_tied = best_of_block(
                    best, score, was_tied, labels, scores, ties, current, retain, tie_break,
                    tie_order,
                )  # fmt: skip
                if thread == 0:
                    conclude(v, best, score, was_tied, current, active, tied, winner, winner_score)
            position += cuda.gridDim.x

    return kernel(table_block, compiled.digest, compiled)


def table_sizes(degrees: Any, xp: Any) -> Any:
    """Return a table's slots by degree: the smallest power of two of at least twice as many."""
    powers = xp.asarray(1 << np.arange(62, dtype=np.int64))
    return 2 * powers[xp.searchsorted(powers, degrees)]


class _Tables:
    """Launch a kernel batch after batch, all with one scratch."""

    threads: ClassVar[int]
    vertices_per_block: ClassVar[int]

    def __init__(self, kernel: Any, run: RunArrays, ranges: list[tuple[int, int]]):
        xp = run.xp
        self._kernel, self._run = kernel, run
        vertices, begins = run.listed(ranges)
        if not vertices.size:
            self._batches = [[] for _ in ranges]
            return
        index_type = vertices.dtype
        sizes = table_sizes(run.degrees(vertices), xp)
        before = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(sizes)])
        most = run.batch_size(LARGEST_BATCH, index_type.itemsize + 8)
        self._batches = batches(before, begins, most, xp)
        ends = np.array([batch for of_class in self._batches for batch in of_class], np.int64)
        slots = to_host(before[xp.asarray(ends)])
        scratch = int((slots[:, 1] - slots[:, 0]).max())
        self._arrays = (
            run.wrap(before),
            run.filled(scratch, -1, index_type),
            run.filled(scratch, 0, np.int64),
            run.wrap(vertices),
        )

    def __call__(self, group: int, sweep: SweepArguments) -> None:
        """Evaluate one class."""
        run = self._run
        for first, last in self._batches[group]:
            blocks = min(-(-(last - first) // self.vertices_per_block), run.most_blocks)
            run.launch(
                self._kernel, blocks, self.threads, first, last, *self._arrays, *run.wrapped_csr,
                sweep.fields, *sweep.flags, *sweep.ties, sweep.scale, sweep.limit,
                *run.wrapped_marks, *run.wrapped_winners, run.wrapped_errors,
            )  # fmt: skip


class WarpTables(_Tables):
    """Serve vertices by a warp each."""

    threads, vertices_per_block = BLOCK, BLOCK // WARP


class BlockTables(_Tables):
    """Serve vertices by a block each."""

    threads, vertices_per_block = THREADS, 1
