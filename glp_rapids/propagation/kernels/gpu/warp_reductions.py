"""Reductions over the lanes of a warp: one instruction for 32 bits where the device has it.

A row's best label takes a maximum of scores and, in a tie, a minimum of keys. By shuffles that is
five rounds of two or three instructions each, one after the other; from capability 8.0 on a word is
reduced by one instruction, 64 bits by two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.jit import cuda as instructions
from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu.shared_memory import ALL, LANES

SIGN, LAST = np.uint64(1 << 63), np.int64((1 << 63) - 1)
LEAST, MOST, WORD = np.int32(-(1 << 31)), np.int32((1 << 31) - 1), np.uint32(0xFFFFFFFF)


@dataclass(frozen=True)
class WarpReductions:
    """Device functions that all lanes of a warp call together."""

    sum_of_warp: Any  # one vote a lane
    max_of_warp: Any
    most_of_subwarp: Any  # the highest score of the lanes that have one
    first_of_subwarp: Any  # the label with the smallest key of the lanes that have one


def build(index_type: Any, vote_type: Any, score_type: Any) -> WarpReductions:
    """Make the functions for the current device."""
    has = instructions.reduces_lanes()
    sum_of_warp, max_of_warp = sum_by_shuffles, max_by_shuffles
    if has and vote_type is np.int32:
        sum_of_warp, max_of_warp = sum_of_words, max_of_words
    most_of_subwarp = most_by_shuffles
    if has and score_type in (np.int32, np.int64):
        most_of_subwarp = most_of_words if score_type is np.int32 else most_of_long_words
    by_words = has and index_type is np.int32
    first_of_subwarp = first_of_words if by_words else first_by_shuffles
    return WarpReductions(sum_of_warp, max_of_warp, most_of_subwarp, first_of_subwarp)


@cuda.jit(device=True)
def sum_by_shuffles(value):
    """Return the sum of a warp's values to every lane."""
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_xor_sync(ALL, value, distance)
    return value


@cuda.jit(device=True)
def max_by_shuffles(value):
    """Return a warp's largest value to every lane."""
    for distance in (16, 8, 4, 2, 1):
        value = max(value, cuda.shfl_xor_sync(ALL, value, distance))
    return value


@cuda.jit(device=True)
def sum_of_words(value):
    """Return the sum of a warp's values to every lane."""
    return instructions.sum_of_lanes(ALL, np.int32(value))


@cuda.jit(device=True)
def max_of_words(value):
    """Return a warp's largest value to every lane."""
    return instructions.max_of_lanes(ALL, np.int32(value))


@cuda.jit(device=True)
def lanes_of_subwarp(width):
    """Return the mask of the lanes of the sub-warp of this lane."""
    if width == LANES:
        return ALL
    lanes = np.uint32((np.uint32(1) << np.uint32(width)) - np.uint32(1))
    return np.uint32(lanes << np.uint32(np.int32(cuda.laneid) & (LANES - width)))


@cuda.jit(device=True)
def most_by_shuffles(concerned, score, width):
    """Return the highest score among the lanes of a sub-warp that are concerned, if any is."""
    some = np.uint32(cuda.ballot_sync(ALL, concerned) & lanes_of_subwarp(width))
    leader = np.int32(max(cuda.ffs(some), 1) - 1)
    most = cuda.shfl_sync(ALL, score, leader)
    if concerned and score > most:
        most = score
    distance = width >> 1
    while distance > 0:
        other = cuda.shfl_xor_sync(ALL, most, distance)
        if other > most:
            most = other
        distance >>= 1
    return most


def _in_subwarp(reduction: Any, neutral: Any) -> Any:
    """Make a reduction over the lanes of a sub-warp of 16 or 32.

    Two instructions with all lanes, a half of them neutral, are quicker than one whose lanes have
    different masks: that would be done for one half after the other.
    """

    @cuda.jit(device=True)
    def reduce(value, width):
        if width == LANES:
            return reduction(ALL, value)
        lower = cuda.laneid < LANES // 2
        of_lower = reduction(ALL, value if lower else neutral)
        of_upper = reduction(ALL, neutral if lower else value)
        return of_lower if lower else of_upper

    return reduce


if not instructions.SIMULATED:
    max_of_subwarp = _in_subwarp(instructions.max_of_lanes, LEAST)
    min_of_subwarp = _in_subwarp(instructions.min_of_lanes, MOST)
    unsigned_max_of_subwarp = _in_subwarp(instructions.unsigned_max_of_lanes, np.uint32(0))
    unsigned_min_of_subwarp = _in_subwarp(instructions.unsigned_min_of_lanes, WORD)


@cuda.jit(device=True)
def most_of_words(concerned, score, width):
    """Return the highest score among the lanes of a sub-warp that are concerned, if any is."""
    return max_of_subwarp(np.int32(score) if concerned else LEAST, width)


@cuda.jit(device=True)
def most_of_long_words(concerned, score, width):
    """Return the highest score among the lanes of a sub-warp that are concerned, if any is."""
    high = np.int32(score >> 32) if concerned else LEAST
    most_high = max_of_subwarp(high, width)
    low = np.uint32(0)
    if concerned and high == most_high:
        low = np.uint32(score & np.int64(WORD))
    low = unsigned_max_of_subwarp(low, width)
    return np.int64((np.int64(most_high) << 32) | np.int64(low))


@cuda.jit(device=True)
def first_by_shuffles(concerned, key, label, otherwise, width):
    """Return the label of the smallest key of a sub-warp's concerned lanes; of equals the least.

    ``otherwise``: what comes back where no lane is concerned.
    """
    # Shuffles know signed numbers only: the sign is flipped, and the order stays.
    signed, first = LAST, otherwise
    if concerned:
        signed, first = np.int64(key ^ SIGN), label
    distance = width >> 1
    while distance > 0:
        other_key = cuda.shfl_xor_sync(ALL, signed, distance)
        other = cuda.shfl_xor_sync(ALL, first, distance)
        if other_key < signed or (other_key == signed and other < first):
            signed, first = other_key, other
        distance >>= 1
    return first


@cuda.jit(device=True)
def first_of_words(concerned, key, label, otherwise, width):
    """Return the label of the smallest key of a sub-warp's concerned lanes; of equals the least."""
    high, low = WORD, WORD
    if concerned:
        high = np.uint32(key >> np.uint64(32))
    least = unsigned_min_of_subwarp(high, width)
    if concerned and high == least:
        low = np.uint32(key)
    else:
        concerned = False
    least = unsigned_min_of_subwarp(low, width)
    return min_of_subwarp(label if concerned and low == least else MOST, width)
