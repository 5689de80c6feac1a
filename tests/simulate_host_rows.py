"""Run the kernels between host and GPU in Numba's simulator; print how many results are wrong.

Run by test_hybrid.py in a process of its own, with NUMBA_ENABLE_CUDASIM=1.
"""

import numpy as np
from numba import cuda

from glp_rapids.propagation.kernels.gpu import host_rows, volumes


def main():
    """Compare with NumPy's indexing and counting."""
    rng, wrong = np.random.default_rng(1), 0
    take, put = cuda.jit(host_rows.take_rows), cuda.jit(host_rows.put_rows)
    count = cuda.jit(volumes.count_labels)
    vertices = rng.permutation(30).astype(np.int32)
    for first, last in ((0, 30), (7, 19), (5, 5)):
        some = vertices[first:last]
        for width in (1, 3):
            values = rng.random((30, width))
            taken = np.full((30, width), -1.0)
            take[2, 4](vertices, first, last, width, values.reshape(-1), taken.reshape(-1))
            wrong += not np.array_equal(taken[: some.size], values[some])
            wrong += not (taken[some.size :] == -1).all()
        into = np.zeros(30, np.int64)
        expected, given = into.copy(), np.arange(1, 31)
        expected[some] = given[: some.size]
        put[2, 4](vertices, first, last, given, into)
        wrong += not np.array_equal(into, expected)
    labels = rng.integers(-2, 30, 50).astype(np.int32)
    volume = np.zeros(30, np.int64)
    count[13, 4](labels, volume)
    wrong += not np.array_equal(volume, np.bincount(labels[labels >= 0], minlength=30))
    print(wrong)


main()
