"""What came of a class, as GPUs that share its evaluation tell one another: packed and unpacked.

A message has the outcome of one rank's positions, class after class: scores if there are some, what
wins, slack if somebody is skipped, ties. All ranks know whose positions are which. The others read
it where it lies, on the GPU that packed it, or from a copy.

Launch shape: any grid of any blocks, one dimension. No shared memory; 56 registers (for 9.0).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda

ALIGNED = 8  # bytes: a message is a multiple of so many


class Outcome(NamedTuple):
    """Of vertices, or the bytes of messages as each of these types."""

    score: Any  # of four or eight bytes, by position, as `tied` and `winner` are
    winner: Any
    slack: Any  # int32, by vertex
    tied: Any  # uint8


class Told(NamedTuple):
    """Of which classes the outcome is told, from ``first`` up to ``end``, and what is."""

    first: Any
    end: Any
    scores: Any
    slack: Any


def bytes_told(positions: Any, index_size: int, scores: bool, slack: bool) -> Any:
    """Count the bytes of the outcome of so many positions."""
    size = positions * ((8 if scores else 0) + index_size + (4 if slack else 0) + 1)
    return -(-size // ALIGNED) * ALIGNED


@cuda.jit(device=True)
def _places(bounds, rank, message, told):
    """Say where each array of a message begins, in its elements."""
    number = np.int64(0)
    for one in range(told.first, told.end):
        number += bounds[rank, one, 1] - bounds[rank, one, 0]
    of_winners = np.int64(0)
    if told.scores:
        of_winners += 8 * number  # as much room for those of four bytes: what follows is aligned
    of_slack = of_winners + np.int64(message.winner.itemsize) * number
    of_ties = of_slack
    if told.slack:
        of_ties += 4 * number
    return of_winners // np.int64(message.winner.itemsize), of_slack // 4, of_ties


def pack_outcome(vertices, bounds, found, message, rank, told):
    """Write the outcome of a rank's positions to a message."""
    winners, slacks, ties = _places(bounds, rank, message, told)
    done = np.int64(0)
    for one in range(told.first, told.end):
        begin, end = bounds[rank, one, 0], bounds[rank, one, 1]
        i = np.int64(cuda.grid(1))
        while i < end - begin:
            position, place = np.uint64(begin + i), done + i
            if told.scores:
                message.score[np.uint64(place)] = found.score[position]
            message.winner[np.uint64(winners + place)] = found.winner[position]
            if told.slack:
                v = np.uint64(vertices[position])
                message.slack[np.uint64(slacks + place)] = found.slack[v]
            message.tied[np.uint64(ties + place)] = found.tied[position]
            i += np.int64(cuda.gridsize(1))
        done += end - begin


def unpack_outcome(vertices, bounds, found, message, rank, told):
    """Take in the outcome of a rank's positions from its message."""
    winners, slacks, ties = _places(bounds, rank, message, told)
    done = np.int64(0)
    for one in range(told.first, told.end):
        begin, end = bounds[rank, one, 0], bounds[rank, one, 1]
        i = np.int64(cuda.grid(1))
        while i < end - begin:
            position, place = np.uint64(begin + i), done + i
            if told.scores:
                found.score[position] = message.score[np.uint64(place)]
            found.winner[position] = message.winner[np.uint64(winners + place)]
            if told.slack:
                v = np.uint64(vertices[position])
                found.slack[v] = message.slack[np.uint64(slacks + place)]
            found.tied[position] = message.tied[np.uint64(ties + place)]
            i += np.int64(cuda.gridsize(1))
        done += end - begin
