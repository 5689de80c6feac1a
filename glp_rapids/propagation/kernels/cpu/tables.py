"""The tables in which a thread counts the votes of a row, see `hash_votes` and `unit_votes`."""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.propagation.kernels.cpu import unit_votes
from glp_rapids.propagation.kernels.cpu.hash_votes import CHUNK
from glp_rapids.propagation.kernels.cpu.short_rows import MANY


def tables_for(
    number_of_vertices: int, largest_degree: int, threads: int, index_type: Any, stamped: bool
) -> tuple:
    """Allocate the threads' tables."""
    degree = max(largest_degree, 1)
    if stamped:
        return (
            np.zeros((threads, number_of_vertices), np.uint64), np.zeros((threads, 16), np.int64),
            np.empty((threads, unit_votes.BUFFER + degree + MANY + unit_votes.STEP), index_type),
            np.empty((threads, CHUNK), np.int64), np.empty((threads, CHUNK), np.int64),
        )  # fmt: skip
    slots = 1 << max(2 * min(degree, number_of_vertices) - 1, 15).bit_length()
    direct = number_of_vertices <= max(4 * slots, 1 << 20)  # a label is its own slot
    return (
        np.empty((threads, degree), index_type), np.empty((threads, degree), np.int64),
        np.empty((threads, degree), np.int32),
        np.zeros((threads, max(number_of_vertices, 1) if direct else slots), np.int32), direct,
    )  # fmt: skip
