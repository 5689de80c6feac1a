"""Read bit-packed entries in Numba's simulator; print how many are wrong.

Run by test_bit_packed.py in a process of its own, with NUMBA_ENABLE_CUDASIM=1.
"""

import numpy as np
import simulated_threads
from numba import cuda

from glp_rapids.outofcore import bit_packed
from glp_rapids.propagation.kernels.gpu.entries import PackedEntries, entry_at


@cuda.jit
def read(entries, plain, found):
    i = cuda.grid(1)
    if i < plain.size:
        found[i] = entry_at(entries, i) == entry_at(plain, i)


def main():
    """Pack entries of all widths as one row, and read them."""
    simulated_threads.let_threads_sleep()
    rng, wrong = np.random.default_rng(1), 0
    widths = [(np.int32, bits) for bits in range(1, 32)]
    widths += [(np.int64, bits) for bits in range(2, 63, 2)]
    for dtype, bits in widths:
        plain = rng.integers(0, 1 << bits, 70, dtype=np.uint64).astype(dtype)
        offsets, found = np.array([0, plain.size]), np.zeros(plain.size, bool)
        host = bit_packed.packed_rows(np.zeros(1, np.int32), offsets, offsets, plain, bits, "cpu")
        read[3, 32](PackedEntries(host.array, np.int64(bits)), plain, found)
        wrong += np.count_nonzero(~found)
    print(wrong)


main()
