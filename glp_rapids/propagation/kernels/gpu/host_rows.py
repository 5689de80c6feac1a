"""Rows of arrays by vertex, taken out for the host in the order of a plan, and put back.

Launch shape: any grid of any blocks, one dimension. No shared memory; 42 and 32 registers.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cuda import cuda


def take_rows(vertices, first, last, width, values, taken):
    """Copy the ``width`` values of the vertices of some positions, side by side."""
    i = np.int64(cuda.grid(1))
    number = (last - first) * width
    while i < number:
        v = np.int64(vertices[np.uint64(first + i // width)])
        taken[np.uint64(i)] = values[np.uint64(v * width + i % width)]
        i += np.int64(cuda.gridsize(1))


def put_rows(vertices, first, last, given, values):
    """Write a value to each of the vertices of some positions."""
    i = np.int64(cuda.grid(1))
    while i < last - first:
        v = vertices[np.uint64(first + i)]
        values[np.uint64(v)] = given[np.uint64(i)]
        i += np.int64(cuda.gridsize(1))
