"""Sizes of memory: "40GB" to bytes and back, and arrays that are planned before they are made."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.checks import is_integer, shown

UNITS = {
    "B": 1,
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)},
    **{f"{letter}IB": 1024**power for power, letter in enumerate("KMGT", 1)},
}
_TEXT = re.compile(r"(\d{1,30}(?:\.\d{1,30})?)\s*([A-Za-z]*)")
_HOW = "bytes as an integer, a text such as '40GB', '512 MiB' or '1.5TB', or None"


def as_bytes(name: str, value: Any) -> int | None:
    """Return the bytes that an argument names, at least one; None stays None.

    KB, MB, GB and TB are powers of 1000, KiB, MiB, GiB and TiB powers of 1024.
    """
    if value is None:
        return None
    if is_integer(value) or (isinstance(value, float) and value.is_integer()):
        size = int(value)
    elif not isinstance(value, str):
        raise TypeError(f"{name} must be {_HOW}, not {shown(value)}")
    else:
        found = _TEXT.fullmatch(value.strip())
        unit = None if found is None else found[2].upper() or "B"
        if unit not in UNITS:
            raise ValueError(f"{name} must be {_HOW}, not {shown(value)}")
        size = int(Decimal(found[1]) * UNITS[unit])
    if size < 1:
        raise ValueError(f"{name} must be at least 1 byte, not {shown(value)}")
    return size


def bytes_in_words(size: float) -> str:
    """Write a number of bytes for a message, in the unit that suits it."""
    for unit in ("GiB", "MiB", "KiB"):
        if size >= UNITS[unit.upper()]:
            return f"{size / UNITS[unit.upper()]:,.1f} {unit}"
    return f"{math.ceil(size):,} bytes"


class Planned(NamedTuple):
    """An array before it is made."""

    shape: Any
    dtype: Any
    first: int | None = None  # what all elements begin with; None: anything

    @property
    def nbytes(self) -> int:
        """The bytes it will take."""
        shape = self.shape if isinstance(self.shape, tuple) else (self.shape,)
        return math.prod(shape) * np.dtype(self.dtype).itemsize

    def made(self) -> np.ndarray:
        """Make the array in host memory."""
        if self.first is None:
            return np.empty(self.shape, self.dtype)
        if self.first == 0:
            return np.zeros(self.shape, self.dtype)
        return np.full(self.shape, self.first, self.dtype)


def planned_bytes(arrays: Iterable[Planned]) -> int:
    """Add up the bytes of planned arrays."""
    return sum(array.nbytes for array in arrays)


def bits_of_vertex(number_of_vertices: int, index_dtype: Any) -> int:
    """Return how many bits a vertex takes; an even number where an index has 64."""
    bits = max(int(number_of_vertices - 1).bit_length(), 1)
    return bits + bits % 2 if np.dtype(index_dtype).itemsize == 8 else bits
