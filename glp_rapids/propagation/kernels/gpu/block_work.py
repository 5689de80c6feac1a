"""What a block evaluates as a whole: a row, or a piece of a hub."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu import block_per_row, hub_merge
from glp_rapids.propagation.kernels.gpu.active_set import needed
from glp_rapids.propagation.kernels.gpu.hub_pieces import (
    END_PIECE,
    FIRST_PIECE,
    HUB_BASE,
    HUB_NUMBER,
    HUB_POSITION,
    HUB_SLOTS,
)
from glp_rapids.propagation.kernels.gpu.shared_memory import SWEEP
from glp_rapids.propagation.kernels.gpu.votes import VoteFunctions


@dataclass(frozen=True)
class BlockWork:
    """Device functions that all threads of a block call together."""

    evaluate: Any  # a row or a piece
    collect: Any  # one part of the table of a hub whose pieces are all in it


def build(
    functions: VoteFunctions, read_entries: Any, note: Any, prunes: bool, buffered: bool
) -> BlockWork:
    """Make the functions.

    ``prunes``: pieces hand over upper bounds. ``buffered``: rows are in the decode buffer.
    """
    index_type = functions.index_type
    hub_functions = hub_merge.build(functions, prunes)
    hand_in = hub_functions.hand_in
    block_row = block_per_row.build(functions, hub_functions, read_entries, prunes)
    decide = hub_merge.build_decide(functions, hub_functions, read_entries) if prunes else None
    collect = None if prunes else hub_merge.build_collect(functions, hub_functions)

    @cuda.jit(device=True)
    def block_item(
        position, piece, plan, tables, hubs, pieces, run, rows, lists, state, shared, numbers
    ):
        """Evaluate a row, or a piece of a hub (piece >= 0), with all threads of a block."""
        hub, base, slots = np.int64(-1), np.int64(0), np.int64(0)
        first, last = np.int64(0), np.int64(1)
        if piece >= 0:
            of_piece = hubs.of_piece[np.uint64(piece)]
            hub, position = of_piece[HUB_NUMBER], of_piece[HUB_POSITION]
            base, slots = of_piece[HUB_BASE], of_piece[HUB_SLOTS]
            first, last = of_piece[FIRST_PIECE], of_piece[END_PIECE]
        v = plan.vertices[np.uint64(position)]
        start = plan.starts[np.uint64(position)]
        if buffered:
            start += shared.sweep[SWEEP.buffer_start]
        length = np.int64(plan.degrees[np.uint64(position)])
        if not needed(position, v, shared.sweep, run):
            return
        share, shares = max(piece - first, np.int64(0)), last - first
        current = index_type(state.labels[np.uint64(v)])
        decides = True
        while True:
            label, score, tied = block_row(
                v, start, length, hub, piece, share, shares, base, slots, current, tables, pieces,
                rows, lists, state, shared, numbers,
            )  # fmt: skip
            if hub < 0:
                break
            if not prunes:
                if shared.sweep[SWEEP.all_distinct] != 0:
                    hand_in(piece, label, score, tied, pieces)
                cuda.syncthreads()  # the table is cleared before the next piece is counted
                return  # `collect_piece` goes on
            decides, known, label, score, tied = decide(
                v, start, length, hub, base, first, last, piece, label, score, tied, current,
                tables, pieces, rows, lists, state, shared, numbers,
            )  # fmt: skip
            if known:
                break
            hub, share, shares = np.int64(-1), np.int64(0), np.int64(1)
        # All the pieces of a hub have asked whether v is active: it need not be any more.
        if decides and cuda.threadIdx.x == 0:
            note(position, v, length, label, score, tied, current, shared.sweep, run, numbers)

    @cuda.jit(device=True)
    def collect_piece(piece, plan, tables, hubs, pieces, run, state, shared, numbers):
        """Evaluate one part of the table of a hub whose pieces are all in it."""
        of_piece = hubs.of_piece[np.uint64(piece)]
        position = of_piece[HUB_POSITION]
        v = plan.vertices[np.uint64(position)]
        if needed(position, v, shared.sweep, run):
            current = index_type(state.labels[np.uint64(v)])
            last, label, score, tied = collect(
                v, of_piece, piece, current, tables, pieces, state, shared, numbers
            )
            if last and cuda.threadIdx.x == 0:
                length = plan.degrees[np.uint64(position)]
                note(position, v, length, label, score, tied, current, shared.sweep, run, numbers)

    return BlockWork(block_item, collect_piece)
