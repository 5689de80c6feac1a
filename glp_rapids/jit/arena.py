"""Arrays of a GPU cut from one allocation, as kernels take them.

A host needs some microseconds to make an array of CuPy's and to wrap it, and what a level of a
graph takes are forty. These know where they begin, and are arrays of CuPy's only once asked for.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from glp_rapids.jit.cuda import DeviceArray, packed_row, type_of

Array = Any
ALIGNMENT = 256  # bytes, as CuPy's allocations have


class Piece(DeviceArray):
    """A part of an array of bytes, as a kernel's argument."""

    __slots__ = ("_dtype", "_offset", "_size", "_whole")

    def __init__(self, whole: Array, offset: int, dtype: np.dtype, size: int) -> None:
        self._whole, self._offset, self._dtype, self._size = whole, offset, dtype, size
        self._numba_type_, self.kind = _type_of_pieces(dtype)
        self.packed = packed_row(whole.data.ptr + offset, size, dtype.itemsize)

    @property
    def array(self) -> Array:
        """An array of CuPy's."""
        import cupy

        return cupy.ndarray((self._size,), self._dtype, memptr=self._whole.data + self._offset)


@functools.cache
def _type_of_pieces(dtype: np.dtype) -> tuple[Any, str]:
    import cupy

    return type_of(cupy.empty(1, dtype))


def carve(xp: Any, sizes: Mapping[str, tuple[Any, int]], *, zeros: bool = False) -> dict[str, Any]:
    """Make one-dimensional arrays, of a dtype and size each, in one allocation.

    Those of a host are NumPy's, all others a `Piece` each. What is left of them keeps them all.
    """
    room = sum(_bytes(*each, ALIGNMENT) for each in sizes.values())
    return cut((xp.zeros if zeros else xp.empty)(room, np.uint8), sizes)


def cut(
    whole: Array, sizes: Mapping[str, tuple[Any, int]], alignment: int = ALIGNMENT
) -> dict[str, Any]:
    """Cut an array into others, which begin at multiples of so many bytes."""
    offset, pieces = 0, {}
    for name, (dtype, size) in sizes.items():
        dtype = np.dtype(dtype)
        if isinstance(whole, np.ndarray):
            end = offset + size * dtype.itemsize
            pieces[name] = whole.view(np.uint8)[offset:end].view(dtype)
        else:
            pieces[name] = Piece(whole, offset, dtype, size)
        offset += _bytes(dtype, size, alignment)
    return pieces


def as_array(piece: Any) -> Array:
    """Return a piece as an array of its device."""
    return piece.array if isinstance(piece, DeviceArray) else piece


def _bytes(dtype: Any, size: int, alignment: int) -> int:
    return -(-size * np.dtype(dtype).itemsize // alignment) * alignment
