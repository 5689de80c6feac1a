"""What came of a class, as GPUs that share its evaluation tell one another: packed and unpacked.

A message has the outcome of one rank's positions, class after class: scores if there are some, what
wins, slack if somebody is skipped, ties; those of all ranks follow one another, each from a
multiple of 8 bytes on. All ranks know whose positions are which.

Launch shape: any grid of any blocks, one dimension. No shared memory; 48 registers (for 9.0).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import cuda

ALIGNED = 8  # bytes: what the outcome of a rank begins at


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
def _positions(bounds, rank, told):
    """Count a rank's positions of the classes."""
    number = np.int64(0)
    for one in range(told.first, told.end):
        number += bounds[rank, one, 1] - bounds[rank, one, 0]
    return number


@cuda.jit(device=True)
def _places(begin, number, message, told):
    """Say where each array of a message begins, in its elements, and where the next one does."""
    index_size = np.int64(message.winner.itemsize)
    of_scores, at = begin // np.int64(message.score.itemsize), begin
    if told.scores:
        at += 8 * number  # as much room for those of four bytes: what follows is aligned
    of_winners = at // index_size
    at += index_size * number
    of_slack = at // 4
    if told.slack:
        at += 4 * number
    of_ties = at
    at += number
    return of_scores, of_winners, of_slack, of_ties, (at + ALIGNED - 1) // ALIGNED * ALIGNED


def pack_outcome(vertices, bounds, found, message, rank, told):
    """Write the outcome of a rank's positions to the begin of a message."""
    number = _positions(bounds, rank, told)
    scores, winners, slacks, ties, _ = _places(np.int64(0), number, message, told)
    done = np.int64(0)
    for one in range(told.first, told.end):
        begin, end = bounds[rank, one, 0], bounds[rank, one, 1]
        i = np.int64(cuda.grid(1))
        while i < end - begin:
            position, place = np.uint64(begin + i), done + i
            if told.scores:
                message.score[np.uint64(scores + place)] = found.score[position]
            message.winner[np.uint64(winners + place)] = found.winner[position]
            if told.slack:
                v = np.uint64(vertices[position])
                message.slack[np.uint64(slacks + place)] = found.slack[v]
            message.tied[np.uint64(ties + place)] = found.tied[position]
            i += np.int64(cuda.gridsize(1))
        done += end - begin


def unpack_outcomes(vertices, bounds, found, message, rank, told):
    """Take in the outcome of the positions of all ranks but one from their messages."""
    at = np.int64(0)
    for other in range(bounds.shape[0]):
        number = _positions(bounds, other, told)
        scores, winners, slacks, ties, at = _places(at, number, message, told)
        done = np.int64(0)
        for one in range(told.first, told.end):
            begin, end = bounds[other, one, 0], bounds[other, one, 1]
            i = np.int64(cuda.grid(1))
            while i < end - begin and other != rank:
                position, place = np.uint64(begin + i), done + i
                if told.scores:
                    found.score[position] = message.score[np.uint64(scores + place)]
                found.winner[position] = message.winner[np.uint64(winners + place)]
                if told.slack:
                    v = np.uint64(vertices[position])
                    found.slack[v] = message.slack[np.uint64(slacks + place)]
                found.tied[position] = message.tied[np.uint64(ties + place)]
                i += np.int64(cuda.gridsize(1))
            done += end - begin
