"""Arrays that lie in files and are mapped into memory: read when looked at, never written back."""

from __future__ import annotations

import mmap
import platform
import sys
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from glp_rapids.device import is_mapped

# Compiled code takes every array for aligned; these processors read numbers at any address.
READS_UNALIGNED = platform.machine().lower() in ("x86_64", "amd64", "arm64", "aarch64")
PART = 1 << 20  # bytes that are compared at once
# A private map can be written to, as arrays of graphs are declared to compiled code. Linux refuses
# one of more than it has memory, as if all were to be written, unless told that it need not be had.
PRIVATE: dict[str, int] = {"access": mmap.ACCESS_COPY}
if sys.platform == "linux" and READS_UNALIGNED:
    NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # of these processors, before Python 3.13
    PRIVATE = {
        "flags": mmap.MAP_PRIVATE | NO_RESERVE, "prot": mmap.PROT_READ | mmap.PROT_WRITE
    }  # fmt: skip


def mapped_bytes(file: BinaryIO) -> np.ndarray:
    """Map all of a file that is not empty.

    What is written to the array goes to memory of this process, never to the file. Where the
    system refuses that, it is read-only.
    """
    try:
        pages = mmap.mmap(file.fileno(), 0, **PRIVATE)
    except OSError:
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return np.frombuffer(pages, dtype=np.uint8)


def for_kernels(array: np.ndarray) -> np.ndarray:
    """Return an array of the same values that compiled code takes as it takes any other.

    It would be compiled anew for arrays that are read-only or have gaps. A file that is mapped
    read-only is mapped again, privately; where that cannot be, compiling anew takes less than a
    copy of the file would. All else is copied.
    """
    native = array.dtype.isnative and (array.flags.aligned or READS_UNALIGNED)
    if native and array.flags.c_contiguous:
        if array.flags.writeable:
            return np.asarray(array)
        again = _mapped_again(array)
        if again is not None:
            return again
        if is_mapped(array):
            return np.asarray(array)
    return np.array(array, dtype=array.dtype.newbyteorder("="), order="C", subok=False)


def _mapped_again(array: np.ndarray) -> np.ndarray | None:
    """Map what a memmap shows privately; None if it cannot be, or its file is another by now."""
    root: Any = array
    while root is not None and not (
        isinstance(root, np.memmap) and isinstance(root.base, mmap.mmap)
    ):
        root = getattr(root, "base", None)
    if root is None or root.filename is None or not array.size:
        return None
    # views of a memmap keep the offset of the whole
    begin = root.offset + array.ctypes.data - root.ctypes.data
    try:
        with Path(root.filename).open("rb") as file:
            content = mapped_bytes(file)[begin : begin + array.nbytes]
    except (OSError, ValueError):
        return None
    if content.size < array.nbytes or not content.flags.writeable:
        return None
    before = array.reshape(-1).view(np.uint8)
    for first in range(0, content.size, PART):
        part = slice(first, first + PART)
        if not np.array_equal(content[part], before[part]):
            return None
    return content.view(array.dtype).reshape(array.shape)
