"""High degrees: many blocks a vertex, a hash table in global memory.

Three kernels: ``insert`` (blocks over pieces of the neighbour lists) fills the tables, ``search``
(blocks over pieces of the tables) finds each piece's best label and clears the piece for the next
use, ``decide`` combines a hub's pieces. Hubs are taken in batches whose tables fit the scratch.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.device import to_device, to_host
from glp_rapids.jit.cuda import cuda, kernel
from glp_rapids.propagation.baselines.launches import RunArrays, SweepArguments
from glp_rapids.propagation.baselines.votes import THREADS, VoteFunctions
from glp_rapids.propagation.compile_program import Compiled

PIECE = 2048  # edges or slots a block
BATCH_SLOTS = 1 << 22  # of scratch, unless one hub needs more: 48 MB with 32-bit indices


@dataclass(frozen=True)
class Batch:
    """Hubs whose tables share the scratch at one time: ranges into the arrays of `HubPlan`."""

    hubs: tuple[int, int]
    edge_pieces: tuple[int, int]
    slot_pieces: tuple[int, int]


@dataclass(frozen=True)
class HubPlan:
    """Which block does what for the hubs, class by class; host arrays."""

    hub_vertex: np.ndarray
    table_base: np.ndarray
    table_slots: np.ndarray
    slot_piece_indptr: np.ndarray
    edge_piece_hub: np.ndarray
    edge_piece_start: np.ndarray
    slot_piece_hub: np.ndarray
    slot_piece_start: np.ndarray
    batches: list[list[Batch]]
    scratch_slots: int


@dataclass(frozen=True)
class HubKernels:
    """The kernels for hubs, in the order of their launches."""

    insert: Any
    search: Any
    decide: Any


def plan(hubs_of_class: list[np.ndarray], degrees_of_class: list[np.ndarray]) -> HubPlan:
    """Cut hubs into pieces, and pack them into batches, never across classes."""
    degrees = np.concatenate([*degrees_of_class, np.empty(0, np.int64)]).astype(np.int64)
    slots = 1 << np.ceil(np.log2(np.maximum(2 * degrees, PIECE))).astype(np.int64)
    edge_pieces = -(-degrees // PIECE)
    slot_pieces = slots // PIECE
    edge_indptr = np.concatenate([[0], np.cumsum(edge_pieces)]).astype(np.int64)
    slot_indptr = np.concatenate([[0], np.cumsum(slot_pieces)]).astype(np.int64)
    base = np.zeros(degrees.size, np.int64)
    scratch, hub, batches = 1, 0, []
    for hubs in hubs_of_class:
        batches.append([])
        begin, used, end = hub, 0, hub + hubs.size
        while hub < end:
            if used and used + slots[hub] > BATCH_SLOTS:
                batches[-1].append(_batch(begin, hub, edge_indptr, slot_indptr))
                begin, used = hub, 0
            base[hub] = used
            used += int(slots[hub])
            scratch = max(scratch, used)
            hub += 1
        if begin < hub:
            batches[-1].append(_batch(begin, hub, edge_indptr, slot_indptr))
    every = np.arange(degrees.size, dtype=np.int64)
    edge_hub, slot_hub = np.repeat(every, edge_pieces), np.repeat(every, slot_pieces)
    return HubPlan(
        hub_vertex=np.concatenate([*hubs_of_class, np.empty(0, np.int64)]).astype(np.int64),
        table_base=base, table_slots=slots, slot_piece_indptr=slot_indptr,
        edge_piece_hub=edge_hub,
        edge_piece_start=(np.arange(edge_hub.size) - edge_indptr[edge_hub]) * PIECE,
        slot_piece_hub=slot_hub,
        slot_piece_start=(np.arange(slot_hub.size) - slot_indptr[slot_hub]) * PIECE,
        batches=batches, scratch_slots=scratch,
    )  # fmt: skip


def _batch(begin: int, end: int, edge_indptr: np.ndarray, slot_indptr: np.ndarray) -> Batch:
    return Batch(
        (begin, end),
        (int(edge_indptr[begin]), int(edge_indptr[end])),
        (int(slot_indptr[begin]), int(slot_indptr[end])),
    )


def build(compiled: Compiled, functions: VoteFunctions) -> HubKernels:
    """Make the three kernels for hubs.

    Launch: ``insert`` and ``search`` blocks of 128, one a piece, ``search`` with 2 KB of shared
    memory; ``decide`` a thread a hub. Any degree.
    """
    State = compiled.state_type
    index_type, score_type = functions.index_type, functions.score_type
    needed, heard_from, combine = functions.needed, functions.heard_from, functions.combine
    add_votes, best_of_slots = functions.add_votes, functions.best_of_slots
    best_of_block, conclude = functions.best_of_block, functions.conclude

    def insert(
        first, piece_hub, piece_start, hub_vertex, table_base, table_slots, keys, votes,
        indptr, indices, weights, fields, skip, revisit_tied, scale, limit, active, tied,
        errors,
    ):  # fmt: skip
        state = State(*fields)
        piece = first + cuda.blockIdx.x
        hub = piece_hub[piece]
        v = index_type(hub_vertex[hub])
        if needed(v, skip, revisit_tied, active, tied):
            start = indptr[v] + piece_start[piece]
            end = min(start + PIECE, indptr[v + 1])
            for j in range(start + cuda.threadIdx.x, end, THREADS):
                label, amount = heard_from(v, j, indices, weights, state, scale, limit, errors)
                if label >= 0:
                    add_votes(keys, votes, table_base[hub], table_slots[hub], label, amount)

    def search(
        first, piece_hub, piece_start, hub_vertex, table_base, keys, votes, fields, skip,
        revisit_tied, retain, tie_break, tie_order, scale, active, tied, piece_label,
        piece_score, piece_tied,
    ):  # fmt: skip
        labels = cuda.shared.array(THREADS, index_type)
        scores = cuda.shared.array(THREADS, score_type)
        ties = cuda.shared.array(THREADS, np.int32)
        state = State(*fields)
        piece = first + cuda.blockIdx.x
        hub = piece_hub[piece]
        v = index_type(hub_vertex[hub])
        if needed(v, skip, revisit_tied, active, tied):  # the same for all threads of a block
            start = table_base[hub] + piece_start[piece]
            current = index_type(state.labels[v])
            best, score, was_tied = best_of_slots(
                v, cuda.threadIdx.x, THREADS, start, start + PIECE, keys, votes, state, scale,
                current, retain, tie_break, tie_order,
            )  # fmt: skip
            best, score, was_tied = best_of_block(
                best, score, was_tied, labels, scores, ties, current, retain, tie_break, tie_order
            )
            if cuda.threadIdx.x == 0:
                piece_label[piece] = best
                piece_score[piece] = score
                piece_tied[piece] = was_tied

    def decide(
        first, last, hub_vertex, slot_piece_indptr, fields, skip, revisit_tied, retain,
        tie_break, tie_order, active, tied, piece_label, piece_score, piece_tied, winner,
        winner_score,
    ):  # fmt: skip
        state = State(*fields)
        hub = first + cuda.grid(1)
        if hub < last:
            v = index_type(hub_vertex[hub])
            if needed(v, skip, revisit_tied, active, tied):
                current = index_type(state.labels[v])
                best = index_type(-1)
                score = score_type(0)
                was_tied = False
                for piece in range(slot_piece_indptr[hub], slot_piece_indptr[hub + 1]):
                    best, score, was_tied = combine(
                        best, score, was_tied, piece_label[piece], piece_score[piece],
                        piece_tied[piece] != 0, current, retain, tie_break, tie_order,
                    )  # fmt: skip
                conclude(v, best, score, was_tied, current, active, tied, winner, winner_score)

    digest = compiled.digest
    return HubKernels(
        kernel(insert, digest, compiled),
        kernel(search, digest, compiled),
        kernel(decide, digest, compiled),
    )


class Hubs:
    """Launch the three kernels for the hubs of a class, batch after batch."""

    def __init__(self, kernels: HubKernels, run: RunArrays, ranges: list[tuple[int, int]]):
        self._kernels, self._run = kernels, run
        hubs, begins = run.listed(ranges)
        by_class = [np.split(to_host(array), begins[1:-1]) for array in (hubs, run.degrees(hubs))]
        self._plan = cuts = plan(*by_class)
        index_type = hubs.dtype
        score_type = run.wrapped_winners[1].dtype

        def piece_arrays(*names: str) -> list[Any]:
            arrays = [getattr(cuts, name) for name in names]
            arrays = [array if array.size else np.zeros(1, np.int64) for array in arrays]
            return [run.wrap(to_device(a, run.workload.graph.device)) for a in arrays]

        self._edge_pieces = piece_arrays("edge_piece_hub", "edge_piece_start")
        self._slot_pieces = piece_arrays("slot_piece_hub", "slot_piece_start")
        self._vertex, self._base, self._slots, self._pieces_before = piece_arrays(
            "hub_vertex", "table_base", "table_slots", "slot_piece_indptr"
        )
        self._tables = (
            run.filled(cuts.scratch_slots, -1, index_type),
            run.filled(cuts.scratch_slots, 0, np.int64),
        )
        pieces = cuts.slot_piece_hub.size
        self._best = (
            run.filled(pieces, -1, index_type),
            run.filled(pieces, 0, score_type),
            run.filled(pieces, 0, np.int32),
        )

    def __call__(self, group: int, sweep: SweepArguments) -> None:
        """Evaluate one class."""
        run, kernels = self._run, self._kernels
        for batch in self._plan.batches[group]:
            first, last = batch.edge_pieces
            run.launch(
                kernels.insert, last - first, THREADS, first, *self._edge_pieces, self._vertex,
                self._base, self._slots, *self._tables, *run.wrapped_csr, sweep.fields,
                *sweep.flags, sweep.scale, sweep.limit, *run.wrapped_marks, run.wrapped_errors,
            )  # fmt: skip
            first, last = batch.slot_pieces
            run.launch(
                kernels.search, last - first, THREADS, first, *self._slot_pieces, self._vertex,
                self._base, *self._tables, sweep.fields, *sweep.flags, *sweep.ties, sweep.scale,
                *run.wrapped_marks, *self._best,
            )  # fmt: skip
            first, last = batch.hubs
            run.launch(
                kernels.decide, -(-(last - first) // THREADS), THREADS, first, last, self._vertex,
                self._pieces_before, sweep.fields, *sweep.flags, *sweep.ties, *run.wrapped_marks,
                *self._best, *run.wrapped_winners,
            )  # fmt: skip
