"""How hubs are cut into pieces, a block each, and which of their tables lie side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.device import device_of, to_device, to_host
from glp_rapids.propagation.kernels.gpu.shared_memory import THREADS

PIECE = 8  # stretches of a block's threads, one entry a thread, in a piece of a hub
SMALL_PIECE = 5  # where all labels are handed over, which takes longer
# Slots of the hubs' tables at one time, unless one hub needs more: they stay in the second level.
BATCH_SLOTS = 1 << 22

# The columns of the table of pieces: the number of the hub, its position in the list, where its
# table begins and how many slots that has, its first piece and the one behind its last.
HUB_NUMBER, HUB_POSITION, HUB_BASE, HUB_SLOTS, FIRST_PIECE, END_PIECE = range(6)


class HubPieces(NamedTuple):
    """The hubs of a plan."""

    arrays: dict[str, np.ndarray]  # int64, the fields of `arguments.Hubs`
    batches: np.ndarray  # of each group: the first batch of its hubs, and the one behind the last
    hubs: int
    table_slots: int  # of a batch at the most


def cut(
    degree: Any,
    begins: list[np.ndarray],
    ends: list[np.ndarray],
    slots_of_block: int,
    handed_over: int | None,
) -> HubPieces:
    """Cut the hubs of every group, by level, into pieces, and pack their tables into batches.

    ``degree``: by position in the list, on the device. No batch goes across groups. Tables are
    packed for the groups of the last level, where most classes are one; a batch of a finer level is
    what of it lies in one of its groups.
    """
    spans = [np.arange(first, last) for first, last in zip(begins[-1], ends[-1], strict=True)]
    position = np.concatenate(spans).astype(np.int64)
    if position.size == 0:
        none, groups = np.zeros((0, 6), np.int64), sum(map(len, begins))
        arrays = {"of_piece": none, "batch_pieces": none[:, 0]}
        return HubPieces(arrays, np.zeros((groups, 2), np.int64), 0, 1)
    degrees = to_host(degree[to_device(position, device_of(degree))]).astype(np.int64)
    stretches = -(-degrees // THREADS)
    if handed_over is None:
        # All labels of a piece must fit the block's table.
        pieces = -(-stretches // min(slots_of_block * 3 // 4 // THREADS - 1, SMALL_PIECE))
        labels = degrees + degrees // 2  # a full table is a slow one
    else:
        pieces = -(-stretches // PIECE)
        labels = 2 * pieces * (handed_over + 1)
    slots = np.int64(1) << np.ceil(np.log2(np.maximum(labels, 2))).astype(np.int64)
    before = np.concatenate([[0], np.cumsum(slots)])
    cuts, first = [], 0  # the hubs with which a batch begins
    for span in spans:
        last = first + span.size
        while first < last:
            cuts.append(first)
            fitting = np.searchsorted(before, before[first] + BATCH_SLOTS, side="right") - 1
            first = min(max(int(fitting), first + 1), last)
    cuts = np.array(cuts, np.int64)
    base = before[:-1] - before[cuts[np.searchsorted(cuts, np.arange(position.size), "right") - 1]]
    first_piece = np.concatenate([[0], np.cumsum(pieces)])
    batch_pieces, group_batches, numbered = [], [], 0
    for of_level in zip(begins, ends, strict=True):
        first, last = (np.searchsorted(position, bound) for bound in of_level)
        of_level = np.unique(np.concatenate([cuts, first[first < last]]))
        group_batches.append(numbered + np.searchsorted(of_level, np.column_stack([first, last])))
        batch_pieces.append(first_piece[np.append(of_level, position.size)])
        numbered += of_level.size + 1
    hubs = np.column_stack(
        [np.arange(position.size), position, base, slots, first_piece[:-1], first_piece[1:]]
    )
    arrays = {
        # a row a piece: what else would be looked up one after the other
        "of_piece": np.repeat(hubs, pieces, axis=0),
        "batch_pieces": np.concatenate(batch_pieces),
    }
    table_slots = int((base + slots).max())
    return HubPieces(arrays, np.concatenate(group_batches), position.size, table_slots)
