"""Edge weights beside compressed lists: one for all entries, small codes, or as they are.

The matrix of a crawl weighs every edge one: then one number is all there is to keep. A graph of
transactions in whole euros, or of edges counted by ``multigraph="keep"``, has few distinct weights;
then some bits an entry, and a table of the values, say the same to the bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from glp_rapids.device import (
    DeviceName,
    all_true,
    array_module,
    device_of,
    is_mapped,
    module_on,
    to_device,
)

Array = Any

CHUNK = 1 << 22  # entries looked at together
MOST = 1 << 16  # values that 16 bits can number


class ByValue:
    """Weights in any form of which ``values`` are the distinct ones; ``size`` entries."""

    values: Array
    size: int

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the weights."""
        return self.values.dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        return self.values.nbytes

    @property
    def device(self) -> DeviceName:
        """Where the arrays live."""
        return device_of(self.values)

    def decoded(self) -> Array:
        """The weights of all entries."""
        return self.part(0, self.size)

    def part(self, first: int, last: int) -> Array:
        """The weights of some entries."""
        raise NotImplementedError

    def to(self, device: DeviceName) -> Self:
        """Copy to a device."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class EqualWeights(ByValue):
    """Weights that are all the same.

    Parameters
    ----------
    values : int64, float32 or float64 array of 1
        The weight of every entry.
    size : int
        The number of entries.
    """

    values: Array
    size: int

    def part(self, first: int, last: int) -> Array:
        return module_on(self.device).repeat(self.values, last - first)

    def to(self, device: DeviceName) -> EqualWeights:
        return EqualWeights(to_device(self.values, device), self.size)


@dataclass(frozen=True, eq=False)
class CodedWeights(ByValue):
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
    def size(self) -> int:
        return self.codes.size

    @property
    def nbytes(self) -> int:
        return self.codes.nbytes + self.values.nbytes

    def part(self, first: int, last: int) -> Array:
        return self.values[self.codes[first:last]]

    def to(self, device: DeviceName) -> CodedWeights:
        return CodedWeights(to_device(self.codes, device), to_device(self.values, device))


Weights = Array | ByValue


def coded(weights: Array) -> Weights:
    """Put weights in the form that takes the least room."""
    xp = array_module(weights)
    weights = weights.astype(weights.dtype.newbyteorder("="), copy=False)
    # not negative, so as numbers they ascend as their bits do; -0.0 and 0.0 stay two values
    bits = weights.view(f"u{weights.dtype.itemsize}")
    parts = [slice(first, first + CHUNK) for first in range(0, bits.size, CHUNK)]
    distinct = bits[:1]
    if parts and all(all_true(bits[part] == distinct) for part in parts):
        return EqualWeights(distinct.copy().view(weights.dtype), bits.size)
    for part in parts:
        distinct = xp.unique(xp.concatenate([distinct, xp.unique(bits[part])]))
        if distinct.size > MOST:
            return weights
    codes = xp.empty(bits.size, dtype=np.uint8 if distinct.size <= 256 else np.uint16)
    if codes.nbytes + distinct.nbytes >= bits.nbytes:
        return weights
    for part in parts:
        codes[part] = xp.searchsorted(distinct, bits[part])
    return CodedWeights(codes, distinct.view(weights.dtype))


def own(weights: Weights | None) -> Weights | None:
    """Copy weights that are a view of another's array; those in a mapped file stay there."""
    if weights is None or isinstance(weights, ByValue) or is_mapped(weights):
        return weights
    return weights if weights.flags.owndata else weights.copy()


def decoded(weights: Weights | None) -> Array | None:
    """Decode weights of any form."""
    return weights.decoded() if isinstance(weights, ByValue) else weights


def part_of(weights: Weights | None, first: int, last: int) -> Array | None:
    """Decode the weights of some entries, of any form."""
    if weights is None:
        return None
    return weights.part(first, last) if isinstance(weights, ByValue) else weights[first:last]


def moved(weights: Weights | None, device: DeviceName) -> Weights | None:
    """Copy weights of any form to a device."""
    if weights is None:
        return None
    return weights.to(device) if isinstance(weights, ByValue) else to_device(weights, device)
