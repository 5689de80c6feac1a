"""Strategy "sort": gather labels, sort them by row, sum runs of equal labels, best run of a row.

Kozawa et al., CIKM 2017. One sort of (row, label) in 64 bits stands for their segmented sort. Only
rows that are to be evaluated take part; batches of rows keep the memory bounded: about 64 bytes an
edge of a batch where all votes are one, 128 elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.propagation.baselines.launches import RunArrays, SweepArguments, batches
from glp_rapids.propagation.baselines.votes import THREADS, VoteFunctions
from glp_rapids.propagation.compile_program import Compiled

LARGEST_BATCH = 1 << 27  # edges
BYTES_AN_EDGE = {True: 64, False: 128}  # by whether all votes are one


@dataclass(frozen=True)
class SortKernels:
    """The kernels, and what their launches depend on."""

    gather: Any
    best_of_rows: Any
    lanes: int  # threads a row of ``best_of_rows``
    unit: bool  # every vote is one


def build(compiled: Compiled, functions: VoteFunctions, lanes: int) -> SortKernels:
    """Make the two kernels; ``lanes`` threads, one or a block, look for a row's best run.

    Launch: ``gather`` blocks of 128, any number of them, a thread an edge; ``best_of_rows``
    likewise, ``lanes`` threads a row. Any degree; ``best_of_rows`` has 2 KB of shared memory.
    """
    State = compiled.state_type
    unit = compiled.traits.unit_votes
    index_type, score_type = functions.index_type, functions.score_type
    heard_from, score_of, combine = functions.heard_from, functions.score_of, functions.combine
    best_of_block, conclude = functions.best_of_block, functions.conclude
    whole_block = lanes > 1

    def gather(
        number_of_edges, silent, bits, rows, edges_before, keys, amounts, indptr, indices,
        weights, fields, scale, limit, errors,
    ):  # fmt: skip
        state = State(*fields)
        edge = np.int64(cuda.grid(1))
        while edge < number_of_edges:
            row = keys[edge]
            v = rows[row]
            label, amount = heard_from(
                v, indptr[v] + edge - edges_before[row], indices, weights, state, scale, limit,
                errors,
            )  # fmt: skip
            said = np.int64(label)
            if said < 0 or said > silent:  # more bits than it has would spoil the row
                said = silent
            keys[edge] = (row << bits) | said
            if not unit:
                amounts[edge] = amount
            edge += cuda.gridsize(1)

    def best_of_rows(
        number_of_rows, silent, bits, rows, runs_before, run_keys, run_votes, fields, retain,
        tie_break, tie_order, scale, active, tied, winner, winner_score,
    ):  # fmt: skip
        labels = cuda.shared.array(THREADS, index_type)
        scores = cuda.shared.array(THREADS, score_type)
        ties = cuda.shared.array(THREADS, np.int32)
        state = State(*fields)
        thread = np.int64(cuda.grid(1))
        lane = thread % lanes
        row = thread // lanes
        mask = (np.int64(1) << bits) - 1
        while row < number_of_rows:  # with a block a row, the same for all threads of a block
            v = rows[row]
            current = index_type(state.labels[v])
            best = index_type(-1)
            score = score_type(0)
            was_tied = False
            for run in range(runs_before[row] + lane, runs_before[row + 1], lanes):
                said = run_keys[run] & mask
                if said != silent:
                    label = index_type(said)
                    best, score, was_tied = combine(
                        best, score, was_tied, label,
                        score_of(v, label, run_votes[run], state, scale), False, current, retain,
                        tie_break, tie_order,
                    )  # fmt: skip
            if whole_block:
                best, score, was_tied = best_of_block(
                    best, score, was_tied, labels, scores, ties, current, retain, tie_break,
                    tie_order,
                )  # fmt: skip
            if lane == 0:
                conclude(v, best, score, was_tied, current, active, tied, winner, winner_score)
            row += cuda.gridsize(1) // lanes

    best_of_rows.__name__ = f"best_of_rows{lanes}"
    return SortKernels(
        kernel(gather, compiled.digest, compiled),
        kernel(best_of_rows, f"{compiled.digest} {lanes}", compiled),
        lanes,
        unit,
    )


def runs(keys: Any, amounts: Any | None, xp: Any) -> tuple[Any, Any, Any]:
    """Sort keys; return where the runs of equal ones start, their keys, and what they add up to.

    Without amounts every key counts one.
    """
    if amounts is None:
        keys.sort()
    else:
        order = xp.argsort(keys)
        keys, amounts = keys[order], amounts[order]
        del order  # 8 bytes an edge
    starting = xp.ones(keys.size, bool)
    starting[1:] = keys[1:] != keys[:-1]
    starts = xp.flatnonzero(starting)
    upto = xp.concatenate([starts[1:], xp.full(1, keys.size, starts.dtype)])
    if amounts is not None:
        # Sums over many rows may wrap around; the difference of two is right nevertheless.
        upto = xp.cumsum(amounts.view(np.uint64))[upto - 1]
    votes = upto.copy()
    votes[1:] -= upto[:-1]
    return starts, keys[starts], votes.view(np.int64)


class Sorted:
    """Evaluate the vertices of a degree class by sorting what they hear, batch after batch."""

    def __init__(self, kernels: SortKernels, run: RunArrays, ranges: list[tuple[int, int]]):
        self._kernels, self._run, self._ranges = kernels, run, ranges
        number_of_vertices = run.workload.rows.indptr.size - 1
        self._silent = number_of_vertices  # in the place of a label: none
        self._bits = number_of_vertices.bit_length()
        most = min(LARGEST_BATCH, 1 << (63 - self._bits))  # rows, at least one edge each
        self._most = run.batch_size(most, BYTES_AN_EDGE[kernels.unit])

    def __call__(self, group: int, sweep: SweepArguments) -> None:
        """Evaluate one class."""
        run, xp = self._run, self._run.xp
        skip, revisit_tied = sweep.flags
        rows = run.vertices[slice(*self._ranges[group])]
        if skip and rows.size:
            needed = run.active[rows] != 0
            if revisit_tied:
                needed |= run.tied[rows] != 0
            rows = rows[needed]
        if not rows.size:
            return
        before = xp.concatenate([xp.zeros(1, np.int64), xp.cumsum(run.degrees(rows))])
        for first, last in batches(before, np.array([0, rows.size]), self._most, xp)[0]:
            self._evaluate(rows[first:last], before[first : last + 1] - before[first], sweep)

    def _evaluate(self, rows: Any, before: Any, sweep: SweepArguments) -> None:
        """Evaluate a batch; its row r has the entries from ``before[r]``."""
        run, kernels, xp = self._run, self._kernels, self._run.xp
        wrap, most_blocks = run.wrap, run.most_blocks
        number_of_edges = int(before[-1])
        keys = xp.zeros(number_of_edges, np.int64)
        keys[before[1:-1]] = 1
        keys = xp.cumsum(keys)  # the row of every edge
        amounts = xp.zeros(1 if kernels.unit else number_of_edges, np.int64)
        code = self._silent, self._bits, wrap(rows)
        run.launch(
            kernels.gather, min(-(-number_of_edges // THREADS), most_blocks), THREADS,
            number_of_edges, *code, wrap(before), wrap(keys), wrap(amounts), *run.wrapped_csr,
            sweep.fields, sweep.scale, sweep.limit, run.wrapped_errors,
        )  # fmt: skip
        starts, run_keys, votes = runs(keys, None if kernels.unit else amounts, xp)
        runs_before = xp.searchsorted(starts, before)
        run.launch(
            kernels.best_of_rows, min(-(-rows.size * kernels.lanes // THREADS), most_blocks),
            THREADS, rows.size, *code, wrap(runs_before), wrap(run_keys), wrap(votes),
            sweep.fields, *sweep.ties, sweep.scale, *run.wrapped_marks, *run.wrapped_winners,
        )  # fmt: skip
