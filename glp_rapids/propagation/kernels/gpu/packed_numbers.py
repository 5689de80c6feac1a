"""The numbers of lists under "packed": what their classes mean, and how a part begins.

A number is the base of its class and some bits; the tables of classes lie in shared memory.
A part begins with how many intervals and residuals it has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.compressed.format.packed import (
    CLASS_BITS,
    CLASSES,
    COUNT,
    DEGREE,
    FIRST,
    KINDS,
    LENGTH,
    REST,
    WIDTH_BITS,
)
from glp_rapids.device import to_host
from glp_rapids.jit.cuda import cuda
from glp_rapids.propagation.kernels.gpu.shared_memory import THREADS

ENTRIES = len(KINDS) * CLASSES  # of the tables
HEAD_WIDTH = 13  # of what says how many intervals and residuals there are: both are in 32 bits
CLASS_MASK = np.uint32(CLASSES - 1)


@dataclass(frozen=True)
class NumberFunctions:
    """Device functions on the numbers of packed lists of one type of vertex index."""

    number: Any  # a type: a graph of 32-bit indices has numbers, and in the end sums, of 32 bits
    natural: Any  # the same without a sign
    class_at: Any  # the base and the width of a class
    open_part: Any  # how many numbers of intervals and residuals a part has
    step_of: Any  # what a number stands for


@cuda.jit(device=True)
def load_classes(lists, packed):
    """Put the tables into shared memory; all threads of a block call this."""
    i = cuda.threadIdx.x
    while i < ENTRIES:
        low, high = lists.tables[2 * i], lists.tables[2 * i + 1]
        packed.classes[i] = np.uint64(low) | (np.uint64(high) << np.uint64(32))
        i += THREADS


def build(index_type: Any) -> NumberFunctions:
    """Make the functions."""
    is_64 = index_type is np.int64
    number, natural = (np.int64, np.uint64) if is_64 else (np.int32, np.uint32)
    one, width_mask = natural(1), np.uint32((1 << WIDTH_BITS) - 1)

    @cuda.jit(device=True)
    def class_at(packed, kind, name):
        """Return the base and the width of a class."""
        entry = packed.classes[np.uint32(kind * np.int32(CLASSES) + np.int32(name))]
        high = np.uint32(entry >> np.uint64(32))
        base = natural(entry & np.uint64(0xFFFFFFFF))
        if is_64:
            base = natural(base | (np.uint64(high >> np.uint32(WIDTH_BITS)) << np.uint64(32)))
        return base, np.int32(high & width_mask)

    @cuda.jit(device=True)
    def in_head(packed, window, kind):
        """Read a number at the beginning of a window, and the bits it takes."""
        base, width = class_at(packed, kind, window & CLASS_MASK)
        found = np.uint32(window >> np.uint32(CLASS_BITS))
        found &= np.uint32((np.uint32(1) << np.uint32(width)) - np.uint32(1))
        return np.int32(np.uint32(base) + found), np.int32(width + CLASS_BITS)

    @cuda.jit(device=True)
    def open_part(settings, packed, first_bits, count):
        """Return the numbers of intervals and of residuals that follow, and the bits read."""
        if settings.min_interval == 0 or np.int64(count) < settings.min_interval:
            return np.int32(0), np.int32(count), np.int32(0)
        window = np.uint32(first_bits)
        intervals, used = in_head(packed, window, np.int32(COUNT))
        if intervals == 0:
            return np.int32(0), np.int32(count), used
        rest, further = in_head(packed, np.uint32(window >> np.uint32(used)), np.int32(REST))
        return np.int32(2 * intervals - 1), rest, np.int32(used + further)

    @cuda.jit(device=True)
    def step_of(x, kind, v, least):
        """Return the step on the line of ids that a number stands for."""
        if kind == np.int32(FIRST):
            return number(number(v) + number(number(x >> one) ^ number(-number(x & one))))
        if kind == np.int32(LENGTH):
            return number(number(x) + least)
        return number(number(x) + number(1))

    return NumberFunctions(number, natural, class_at, open_part, step_of)


def fits(tables: Any, index_dtype: np.dtype) -> bool:
    """Tell whether the kernel can read these numbers; `compress` makes no others for its parts."""
    widths = (to_host(tables)[1::2] & ((1 << WIDTH_BITS) - 1)).reshape(-1, CLASSES)
    of_heads = max(widths[int(kind)].max() for kind in (COUNT, REST))
    return of_heads <= HEAD_WIDTH and widths.max() <= (32 if index_dtype.itemsize == 4 else 64)


def behind_degrees(tables: Any, degrees: Any, xp: Any) -> Any:
    """Count the bits that the degrees of lists take."""
    least, bits = classes_of_degrees(tables, xp)
    return bits[xp.searchsorted(least, degrees, side="right") - 1]


def classes_of_degrees(tables: Any, xp: Any) -> tuple[Any, Any]:
    """Return the least degree of each class, ascending, and the bits that its degrees take."""
    own = tables[2 * CLASSES * int(DEGREE) : 2 * CLASSES * (int(DEGREE) + 1)].astype(xp.int64)
    low, high = own[::2], own[1::2]
    widths = high & ((1 << WIDTH_BITS) - 1)
    return low | (high >> WIDTH_BITS) << 32, CLASS_BITS + widths
