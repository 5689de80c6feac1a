"""The rules of a multilevel run: plain scalar functions, to be compiled for the CPU and the GPU.

What joining a community gains is compared without any rounding. With w the weight between a vertex
and a community, k the vertex's volume, V the volume of the others in there and C a constant of
the graph (`objective`), it is w C - k V: both products have up to 124 bits, so the difference is
held in two words.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.common.hashing import mix

# How much of the weight to a part is taken off at random while refining: h of 64 steps, 2^-11 each.
# Vertices that gain about the same anywhere go anywhere; else whatever hangs on a hub joins it, and
# web-NotreDame stayed at .940 of modularity, not .943.
STEP, STEPS = 11, 58  # shifts: of the constant, and of a hash down to 6 bits


def product(one, other):
    """Multiply two numbers below 2^63: the high and the low 64 bits."""
    half, low_half = np.uint64(32), np.uint64(0xFFFFFFFF)
    one_low, one_high = np.uint64(one) & low_half, np.uint64(one) >> half
    other_low, other_high = np.uint64(other) & low_half, np.uint64(other) >> half
    lowest = one_low * other_low
    first, second = one_high * other_low, one_low * other_high
    middle = (lowest >> half) + (first & low_half) + (second & low_half)
    high = one_high * other_high + (first >> half) + (second >> half) + (middle >> half)
    return high, (lowest & low_half) | (middle << half)


def gain(weight, constant, volume, others):
    """Return ``weight * constant - volume * others``: the high word, signed, and the low one."""
    high, low = product(weight, constant)
    less_high, less_low = product(volume, others)
    borrow = np.int64(less_low > low)
    return np.int64(high) - np.int64(less_high) - borrow, low - less_low


def exceeds(high, low, other_high, other_low):
    """Tell whether one number of two words is greater than another."""
    return high > other_high or (high == other_high and low > other_low)


def first_of_equals(label, other, seed, words):
    """Tell whether a label comes before another in the order that settles ties."""
    key, other_key = mix(words[np.uint64(label)], seed), mix(words[np.uint64(other)], seed)
    return key < other_key or (key == other_key and label < other)


def waits(own, best, own_size, best_size):
    """Tell whether a lone vertex waits for another to come: else two could swap for ever."""
    return own_size == 1 and best_size == 1 and best > own


def draw(word, other_word, seed):
    """Hash a pair of words, in this order."""
    return mix(other_word, mix(word, seed))


def noisy(constant, drawn):
    """Return the constant less up to a thirty-second, by a draw."""
    return np.int64(constant) - (np.int64(constant) >> np.int64(STEP)) * np.int64(
        np.uint64(drawn) >> np.uint64(STEPS)
    )
