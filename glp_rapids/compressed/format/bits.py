"""Numbers in a bit stream: read, measured and written by one text on both kinds of processor.

Codes of a natural number x, by number: k = 1 to 8 is zeta_k of Boldi and Vigna (The WebGraph
framework II: codes for the World-Wide Web, DCC 2004), of which zeta_1 is Elias's gamma; 0 is
Elias's delta. With N = x + 1:

zeta_k
    h zeros and a one, where 2**(hk) <= N < 2**(hk + k). Then, in hk + k - 1 bits, N - 2**(hk) if
    that is below 2**(hk); otherwise N >> 1, and one more bit, N & 1.
delta
    with 2**b <= N < 2**(b + 1): b in gamma, then N - 2**b in b bits.

Nearly all codes end within 32 bits and are decoded from one word in 32-bit arithmetic; the others
take a way of their own. Whatever is shifted or masked is unsigned: Numba makes a float of a uint64
and an int64, and a shift by the width of its type or more means nothing.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.compressed.format.scheme import Function
from glp_rapids.jit.target import Target

ZERO, ONE = np.uint32(0), np.uint32(1)
WIDE_ONE = np.uint64(1)
ALL, LOW = np.uint64(0xFFFF_FFFF_FFFF_FFFF), np.uint64(0xFFFF_FFFF)


def _own(target: Target) -> tuple[Any, Any, Any]:
    """Choose what a kind of processor has of its own.

    That is: the zeros below the lowest one of a uint32 or uint64, how many bits a uint64 has, and
    how bits are put into a word of zeros that other threads may be putting theirs into.
    """
    if target.name == "cpu":
        from numba.cpython.unsafe import numbers

        zeros_below, zeros_above = numbers.trailing_zeros, numbers.leading_zeros

        def trailing_zeros(value):
            return np.uint32(zeros_below(value))

        def bit_length(value):
            return np.int64(64) - np.int64(zeros_above(value))

        def put(words, place, value):
            # A word that gets nothing may be somebody else's, who is at it.
            if value != 0:
                words[place] |= value

    else:
        from glp_rapids.compressed.format.bits_gpu import bit_length, put, trailing_zeros

    return tuple(target.device_function(one) for one in (trailing_zeros, bit_length, put))


@dataclass(frozen=True)
class BitFunctions:
    """Functions on bits and codes, for compiled code alone to call.

    Bits are int64, as are natural numbers and widths unless said otherwise; ``words`` is the
    bit stream.

    ``read_bits(words, bit, width)``
        The number in 0 to 64 bits, uint64.
    ``read_code(words, bit, code)``
        A natural number and the bit behind it.
    ``code_size(x, code)``
        The bits of a number.
    ``write_bits(words, bit, value, width)``
        Put ``width`` bits, 0 to 64, of a uint64 that has no others; give the bit behind them. The
        words must have been zeros.
    ``write_code(words, bit, x, code)``
        Put a number; give the bit behind it.
    ``open_window(words, bit)``
        A window for reading on and on from a bit: its bits (uint64), how many those are (uint32)
        and the next word's place (uint64), which are given to and come back from:
    ``fill(words, window, have, place)``
        The window with 32 bits or more.
    ``code_in(low, code)``
        A number at the lowest end of a uint32 and the bits that it takes, uint32 both; no bits if
        it goes on beyond the 32.
    ``read_far(words, bit, code)``
        As read_code, for what code_in does not read.
    ``take(words, window, have, place, width)``
        A number in 0 to 64 bits, uint64, and the window behind it.
    ``bit_length(value)``
        The bits of a uint64.
    ``fold(distance)``, ``unfold(x)``
        From a signed number to a natural one, and back.
    """

    read_bits: Function
    read_code: Function
    code_size: Function
    write_bits: Function
    write_code: Function
    open_window: Function
    fill: Function
    code_in: Function
    read_far: Function
    take: Function
    bit_length: Function
    fold: Function
    unfold: Function


@functools.cache
def build(target: Target) -> BitFunctions:
    """Compile the functions on bits and codes."""
    device = target.device_function
    trailing_zeros, bit_length, put = _own(target)

    @device
    def fold(distance):
        return (distance << np.int64(1)) ^ (distance >> np.int64(63))

    @device
    def unfold(x):
        return (x >> np.int64(1)) ^ -(x & np.int64(1))

    @device
    def mask(width):
        """Set the lowest 0 to 64 bits."""
        if width >= 64:
            return ALL
        return (WIDE_ONE << np.uint64(width)) - WIDE_ONE

    @device
    def window_32(words, bit):
        """Read the 32 bits at a bit."""
        place = np.uint64(bit) >> np.uint64(5)
        both = np.uint64(words[place]) | (np.uint64(words[place + WIDE_ONE]) << np.uint64(32))
        return np.uint32((both >> np.uint64(bit & np.int64(31))) & LOW)

    @device
    def window_64(words, bit):
        """Read the 64 bits at a bit."""
        place, offset = np.uint64(bit) >> np.uint64(5), np.uint64(bit & np.int64(31))
        window = np.uint64(words[place]) | (np.uint64(words[place + WIDE_ONE]) << np.uint64(32))
        window >>= offset
        if offset > 0:
            last = np.uint64(words[place + np.uint64(2)])
            window |= last << (np.uint64(64) - offset)
        return window

    @device
    def read_bits(words, bit, width):
        if width <= 32:
            return np.uint64(window_32(words, bit)) & mask(width)
        return window_64(words, bit) & mask(width)

    @device
    def delta_in(low):
        zeros = trailing_zeros(low)
        used = np.uint32(zeros + zeros + ONE)
        if used >= 32:
            return ZERO, ZERO
        length = np.uint32(low >> np.uint32(zeros + ONE)) & np.uint32(np.uint32(ONE << zeros) - ONE)
        length = np.uint32(length + np.uint32(ONE << zeros) - ONE)
        if used + length > 31:
            return ZERO, ZERO
        power = np.uint32(ONE << length)
        value = np.uint32(low >> used) & np.uint32(power - ONE)
        return np.uint32(value + power - ONE), np.uint32(used + length)

    @device
    def zeta_in(low, k):
        zeros = trailing_zeros(low)
        spread = np.uint32(zeros * k)
        used = np.uint32(zeros + spread + k)
        if used >= 32:  # also where there are zeros only
            return ZERO, ZERO
        power = np.uint32(ONE << spread)
        value = np.uint32(low >> np.uint32(zeros + ONE)) & np.uint32(
            np.uint32(power << np.uint32(k - ONE)) - ONE
        )
        if value < power:
            return np.uint32(value + power - ONE), used
        last = np.uint32(low >> used) & ONE
        return np.uint32(value + value + last - ONE), np.uint32(used + ONE)

    @device
    def code_in(low, code):
        if code == 0:
            return delta_in(low)
        return zeta_in(low, np.uint32(code))

    @device
    def read_far(words, bit, code):
        window = window_64(words, bit)
        zeros = np.uint64(trailing_zeros(window)) & np.uint64(63)
        bit += np.int64(zeros) + np.int64(1)
        if code == 0:
            one = WIDE_ONE << (zeros & np.uint64(7))  # of a length, which is 64 at most
            length = (window >> (zeros + WIDE_ONE)) & (one - WIDE_ONE)
            length = (length + one - WIDE_ONE) & np.uint64(63)
            bit += np.int64(zeros)
            value = window_64(words, bit) & mask(length)
            return np.int64(value + (WIDE_ONE << length) - WIDE_ONE), bit + np.int64(length)
        spread = zeros * np.uint64(code)
        width = spread + np.uint64(code) - WIDE_ONE
        power = WIDE_ONE << (spread & np.uint64(63))
        # What a number of 63 bits leaves of a width beyond 64 is zeros.
        value = window_64(words, bit) & mask(width)
        bit += np.int64(width)
        if value < power:
            return np.int64(value + power - WIDE_ONE), bit
        last = np.uint64(window_32(words, bit)) & WIDE_ONE
        return np.int64(value + value + last - WIDE_ONE), bit + np.int64(1)

    @device
    def read_code(words, bit, code):
        x, used = code_in(window_32(words, bit), code)
        if used == 0:
            return read_far(words, bit, code)
        return np.int64(x), bit + np.int64(used)

    @device
    def open_window(words, bit):
        place, offset = np.uint64(bit) >> np.uint64(5), np.uint32(bit & np.int64(31))
        window = np.uint64(words[place]) >> np.uint64(offset)
        return window, np.uint32(np.uint32(32) - offset), place + WIDE_ONE

    @device
    def fill(words, window, have, place):
        if have < 32:
            window |= np.uint64(words[place]) << np.uint64(have)
            place += WIDE_ONE
            have = np.uint32(have + np.uint32(32))
        return window, have, place

    @device
    def take_32(words, window, have, place, width):
        window, have, place = fill(words, window, have, place)
        value = window & ((WIDE_ONE << np.uint64(width)) - WIDE_ONE)
        return value, window >> np.uint64(width), np.uint32(have - width), place

    @device
    def take(words, window, have, place, width):
        if width <= 32:
            return take_32(words, window, have, place, np.uint32(width))
        low, window, have, place = take_32(words, window, have, place, np.uint32(32))
        rest = np.uint32(width - 32)
        high, window, have, place = take_32(words, window, have, place, rest)
        return low | (high << np.uint64(32)), window, have, place

    @device
    def zeros_of(length, k):
        """Find h of zeta_k, of a number of some bits."""
        zeros = np.int64(0)
        while length > k:
            length -= k
            zeros += np.int64(1)
        return zeros

    @device
    def code_size(x, code):
        value = np.uint64(x) + WIDE_ONE
        length = bit_length(value)
        if code == 0:
            return np.int64(2) * bit_length(np.uint64(length)) - np.int64(2) + length
        zeros = zeros_of(length, code)
        # with N below 2 ** (hk + 1), N - 2 ** (hk) is below 2 ** (hk)
        short = np.int64(length == zeros * code + 1)
        return zeros + np.int64(1) + zeros * code + code - short

    @device
    def write_bits(words, bit, value, width):
        place, offset = np.uint64(bit) >> np.uint64(5), np.uint64(bit & np.int64(31))
        shifted = value << offset
        put(words, place, np.uint32(shifted & LOW))
        after = np.int64(offset) + width
        if after > 32:
            put(words, place + WIDE_ONE, np.uint32(shifted >> np.uint64(32)))
        if after > 64:
            put(words, place + np.uint64(2), np.uint32(value >> (np.uint64(64) - offset)))
        return bit + width

    @device
    def write_delta(words, bit, value):
        length = bit_length(value)
        zeros = bit_length(np.uint64(length)) - np.int64(1)
        one = WIDE_ONE << np.uint64(zeros)
        # `length` has its highest bit at `zeros`, and the one stands for it
        prefix = one | ((np.uint64(length) ^ one) << np.uint64(zeros + np.int64(1)))
        bit = write_bits(words, bit, prefix, np.int64(2) * zeros + np.int64(1))
        below = length - np.int64(1)
        return write_bits(words, bit, value ^ (WIDE_ONE << np.uint64(below)), below)

    @device
    def write_code(words, bit, x, code):
        value = np.uint64(x) + WIDE_ONE
        if code == 0:
            return write_delta(words, bit, value)
        length = bit_length(value)
        zeros = zeros_of(length, code)
        spread = zeros * code
        bit = write_bits(words, bit, WIDE_ONE << np.uint64(zeros), zeros + np.int64(1))
        width = spread + code - np.int64(1)
        if length == spread + 1:
            return write_bits(words, bit, value ^ (WIDE_ONE << np.uint64(spread)), width)
        # Widths beyond 64 are of zeros, which are there already.
        write_bits(words, bit, value >> WIDE_ONE, min(width, np.int64(64)))
        return write_bits(words, bit + width, value & WIDE_ONE, np.int64(1))

    return BitFunctions(
        read_bits=read_bits, read_code=read_code, code_size=code_size, write_bits=write_bits,
        write_code=write_code, open_window=open_window, fill=fill, code_in=code_in,
        read_far=read_far, take=take, bit_length=bit_length, fold=fold, unfold=unfold,
    )  # fmt: skip
