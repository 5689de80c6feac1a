"""Arrays that lie in files without a name: room for what does not fit memory."""

from __future__ import annotations

import os
import tempfile
from typing import Any

import numpy as np


def empty(size: int, dtype: Any, folder: str) -> np.ndarray:
    """Make an array in a file in a folder, mapped; the file goes with the last view of it.

    Raises
    ------
    OSError
        The folder cannot be written to, or the disk is full.
    """
    dtype = np.dtype(dtype)
    if not size:
        return np.empty(0, dtype)
    with tempfile.TemporaryFile(dir=folder) as file:
        # A full disk is an error here; when a page of a map is written it would end the process.
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file.fileno(), 0, size * dtype.itemsize)
        else:
            file.truncate(size * dtype.itemsize)
        return np.asarray(np.memmap(file, dtype, "r+", shape=(size,)))
