"""Edge weights beside compressed lists: as they are, or as small codes where few values occur.

A graph of transactions in whole euros, or of edges counted by ``multigraph="keep"``, has few
distinct weights; then a byte or two an entry, and a table of the values, say the same to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from glp_rapids.device import DeviceName, array_module, device_of, to_device

Array = Any

CHUNK = 1 << 24  # entries looked at together
MOST = 1 << 16  # values that 16 bits can number


@dataclass(frozen=True, eq=False)
class CodedWeights:
    """Weights by way of a table: entry i weighs ``values[codes[i]]``.

    Parameters
    ----------
    codes : uint8 or uint16 array
        In the order of the entries.
    values : int64, float32 or float64 array
        The distinct weights, ascending.
    """

    codes: Array
    values: Array

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the weights."""
        return self.values.dtype

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.codes.size

    @property
    def nbytes(self) -> int:
        """Bytes of codes and table."""
        return self.codes.nbytes + self.values.nbytes

    @property
    def device(self) -> DeviceName:
        """Where the arrays live."""
        return device_of(self.codes)

    def decoded(self) -> Array:
        """Give the weights of all entries."""
        return self.values[self.codes]

    def to(self, device: DeviceName) -> CodedWeights:
        """Give them on a device."""
        return CodedWeights(to_device(self.codes, device), to_device(self.values, device))


def coded(weights: Array) -> Array | CodedWeights:
    """Give weights by way of a table where that takes less room, else as they are."""
    xp = array_module(weights)
    # not negative, so as numbers they ascend as their bits do; -0.0 and 0.0 stay two values
    bits = weights.view(f"u{weights.dtype.itemsize}")
    distinct = bits[:0]
    for first in range(0, bits.size, CHUNK):
        distinct = xp.unique(xp.concatenate([distinct, xp.unique(bits[first : first + CHUNK])]))
        if distinct.size > MOST:
            return weights
    codes = xp.empty(bits.size, dtype=np.uint8 if distinct.size <= 256 else np.uint16)
    if codes.nbytes + distinct.nbytes >= bits.nbytes:
        return weights
    for first in range(0, bits.size, CHUNK):
        part = slice(first, first + CHUNK)
        codes[part] = xp.searchsorted(distinct, bits[part])
    return CodedWeights(codes, distinct.view(weights.dtype))


def decoded(weights: Array | CodedWeights | None) -> Array | None:
    """Give plain weights."""
    return weights.decoded() if isinstance(weights, CodedWeights) else weights


def moved(weights: Array | CodedWeights | None, device: DeviceName) -> Array | CodedWeights | None:
    """Give weights of any form on a device."""
    if weights is None:
        return None
    return weights.to(device) if isinstance(weights, CodedWeights) else to_device(weights, device)
