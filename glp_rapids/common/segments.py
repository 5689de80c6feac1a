"""Segments of an array, given by the offsets where they begin and where the last one ends.

Sums over them are exact and rounded once, hence the same in any order on any device: numbers are
cut into limbs of so few bits that a segment's worth of them adds up in 64-bit integers. The limbs'
sums are put together again in integers of 61 bits, of which the last says whether anything is left
below it, so that the one rounding to float64 goes the right way.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from glp_rapids.common.scans import exclusive_sums
from glp_rapids.device import array_module, to_host

Array = Any
WORD, LOW = 32, (1 << 32) - 1
SEARCHED = 1 << 23  # elements; of more it takes longer than to count
HEAD = 61  # bits: more than float64 keeps, and a sign and a carry to spare


def segment_offsets(sizes: Array) -> Array:
    """Return where segments of these sizes begin, one after the other, and the end: int64."""
    return exclusive_sums(sizes)


def segment_ids(offsets: Array, dtype: Any, size: int | None = None) -> Array:
    """Return the segment of every element; ``size``, their number, spares a look at a GPU."""
    if array_module(offsets) is np:
        return np.repeat(np.arange(offsets.size - 1, dtype=dtype), np.diff(offsets))
    size = int(offsets[-1]) if size is None else size
    if size > SEARCHED:
        return _ids_by_counting(offsets, dtype, size)
    return _search_of_ids()(offsets, offsets.size - 1, array_module(offsets).empty(size, dtype))


@functools.cache
def _search_of_ids() -> Any:
    """Make the kernel in which each element looks for its segment: one launch in place of four."""
    import cupy

    return cupy.ElementwiseKernel(
        "raw I offsets, int64 segments", "T of",
        """
        long long first = 0, end = segments;
        while (first < end) {
            long long middle = (first + end) / 2;
            if (offsets[middle + 1] <= i) first = middle + 1; else end = middle;
        }
        of = first;
        """,
        "glp_segment_of",
    )  # fmt: skip


def _ids_by_counting(offsets: Array, dtype: Any, size: int) -> Array:
    """Count how many segments end before each element: CuPy's repeat takes no array of counts."""
    xp = array_module(offsets)
    if not size:
        return xp.empty(0, dtype)
    return xp.cumsum(occurrences(offsets[1:], size + 1)[:size]).astype(dtype)


def occurrences(values: Array, size: int) -> Array:
    """Count how often each of 0..size - 1 is among integers, which are no others: int64.

    CuPy's own `bincount` looks for negative ones first, with what it has to compile CUB for.
    """
    if array_module(values) is np:
        return np.bincount(values, minlength=size)
    counts = array_module(values).zeros(size, np.int64)
    if values.size:
        _count_of_each()(values, counts.view(np.uint64))
    return counts


@functools.cache
def _count_of_each() -> Any:
    import cupy

    return cupy.ElementwiseKernel(
        "T value", "raw uint64 counts", "atomicAdd(&counts[value], 1ULL)", "glp_occurrences"
    )


def segment_ranges(offsets: Array, elements: int) -> Iterator[tuple[int, int, int, int]]:
    """Cut what is in segments into runs of about so many elements, a longer segment alone.

    Yields the first segment of each and the one behind its last, and the same of its elements.
    """
    xp = array_module(offsets)
    cuts = xp.searchsorted(offsets, xp.arange(elements, int(offsets[-1]), elements))
    for first, last in pairwise([0, *to_host(cuts).tolist(), offsets.size - 1]):
        begin, end = int(offsets[first]), int(offsets[last])
        if begin < end:
            yield first, last, begin, end


def segment_sums(values: Array, offsets: Array) -> Array:
    """Add ``values[offsets[i]:offsets[i + 1]]`` for every i: numbers that are not negative.

    float64, correctly rounded; infinite where the sum is beyond it.
    """
    xp = array_module(values)
    longest = int((offsets[1:] - offsets[:-1]).max()) if offsets.size > 1 else 0
    if not values.size or not longest:
        return xp.zeros(offsets.size - 1, dtype=np.float64)
    if values.dtype.kind == "f":
        return _rounded(_limbs_of_floats(values.astype(np.float64), offsets, longest))
    # CuPy would compile CUB for the largest of truth values
    if values.dtype.kind == "b" or int(values.max()) * longest < 2**63:
        return integer_sums(values, offsets).astype(np.float64)
    high, low = values >> WORD, values & LOW
    return _rounded([(integer_sums(high, offsets), -WORD), (integer_sums(low, offsets), 0)])


def exact_sum(values: Array) -> Fraction:
    """Add up numbers that are not negative, whatever their sizes: nothing is rounded."""
    if not values.size:
        return Fraction(0)
    ends = array_module(values).asarray([0, values.size])
    if values.dtype.kind == "f":
        limbs = _limbs_of_floats(values.astype(np.float64), ends, values.size)
    else:
        limbs = [(integer_sums(values >> WORD, ends), -WORD), (integer_sums(values & LOW, ends), 0)]
    return sum((int(sums[0]) / Fraction(2) ** shift for sums, shift in limbs), Fraction(0))


def integer_sums(values: Array, offsets: Array) -> Array:
    """Add up integers or truth values; the running sum may wrap, its differences are exact."""
    running = segment_offsets(values)
    return running[offsets[1:]] - running[offsets[:-1]]


def _limbs_of_floats(rest: Array, offsets: Array, longest: int) -> list[tuple[Array, int]]:
    """Add up integers, and return by which powers of two their values were multiplied."""
    xp = array_module(rest)
    bits, limbs = 62 - longest.bit_length(), []
    scaled = xp.empty_like(rest)
    while (largest := float(rest.max())) > 0:
        shift = bits - math.frexp(largest)[1]
        times_power(rest, shift, scaled)
        xp.trunc(scaled, out=scaled)
        limbs.append((integer_sums(scaled.astype(np.int64), offsets), shift))
        times_power(scaled, -shift, scaled)
        rest -= scaled
    return limbs or [(xp.zeros(offsets.size - 1, np.int64), 0)]


def times_power(values: Array, exponent: int, out: Array) -> None:
    """Multiply by a power of two, as `ldexp` does, which takes four times as long."""
    xp = array_module(values)
    if abs(exponent) <= 1000:
        xp.multiply(values, math.ldexp(1.0, exponent), out=out)
    else:  # the power itself may be beyond float64
        xp.ldexp(values, np.int32(exponent), out=out)


def _rounded(limbs: list[tuple[Array, int]]) -> Array:
    """Put sums together, the one with the largest unit first: their total as float64."""
    xp = array_module(limbs[0][0])
    carry, parts = 0, []
    for i, (sums, shift) in reversed(list(enumerate(limbs))):
        sums = sums + carry
        width = shift - limbs[i - 1][1] if i else 0
        if 0 < width < 63:
            carry, sums = sums >> width, sums & ((1 << width) - 1)
        else:
            carry = 0
        parts.append((sums, shift, width))
    head, shift, _ = parts.pop()
    exponent = xp.full(head.size, -shift, dtype=np.int32)
    more = xp.zeros(head.size, dtype=bool)
    while parts:
        sums, shift, width = parts.pop()
        # as many of its bits as there is room for; all of them where nothing came before
        room = HEAD - xp.frexp(head.astype(np.float64))[1].astype(np.int64)
        taken = xp.where(head == 0, width, xp.maximum(xp.minimum(room, width), 0))
        left = xp.minimum(width - taken, 63)
        head = xp.where(head == 0, sums, (head << xp.minimum(taken, 62)) | (sums >> left))
        more |= (sums & ((xp.ones_like(left) << xp.minimum(left, 62)) - 1)) != 0
        exponent -= taken.astype(np.int32)
    with np.errstate(over="ignore"):
        return xp.ldexp((head | more.astype(np.int64)).astype(np.float64), exponent)
