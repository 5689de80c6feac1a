"""Run the kernels of compressed rows in Numba's simulator; print how many results differ.

Run by test_compressed_cuda.py in a process of its own, with NUMBA_ENABLE_CUDASIM=1.
"""

import warnings

import numpy as np
import reference_compressed as reference
from numba.core import config

from glp_rapids.compressed import decode, encode
from glp_rapids.compressed.format.layout import CODES, Codes, Layout
from glp_rapids.graph.rows import CSR
from glp_rapids.jit import parallel_for

parallel_for.THREADS = 4  # every simulated thread is a thread of the host

LAYOUTS = [
    Layout("cgr", segment=8),
    Layout("cgr", 2, 3, 16, Codes(*["delta", "gamma", "zeta5"] * 2)),
    Layout("packed", segment=8),
    Layout("packed", 2, 5, 16),
]


def lists():
    neighbours = [[] for _ in range(34)]
    neighbours[2] = [*range(11), *range(12, 34, 3)]
    neighbours[3], neighbours[31], neighbours[33] = [3], [0, 1, 2, 3, 30], [0, 2, 4, 5]
    return neighbours


def main():
    assert config.ENABLE_CUDASIM, "run this with NUMBA_ENABLE_CUDASIM=1"
    warnings.simplefilter("ignore")  # NumPy warns where 32-bit words wrap around
    each = parallel_for.each
    encode.each = decode.each = lambda *arguments: each(*arguments[:-1], "gpu")
    neighbours = lists()
    indptr = np.cumsum([0, *map(len, neighbours)])
    indices = np.array([entry for entries in neighbours for entry in entries], np.int32)
    differing, compared = [], 0
    for layout in LAYOUTS:
        rows = encode.encode(CSR(indptr, indices, None), layout)
        form = reference.form_of(layout, CODES, rows.tables)
        stream, block_bytes = reference.encode(neighbours, form)
        found = decode.decode(rows)
        pairs = {
            "words": (rows.words, np.frombuffer(stream, np.uint32)),
            "block bytes": (rows.block_bytes, block_bytes),
            "indptr": (found[0], indptr),
            "indices": (found[1], indices),
        }
        for name, (one, other) in pairs.items():
            compared += 1
            if not np.array_equal(one, other):
                differing.append(f"{layout} {name};")
    print(*differing, f"{len(differing)} of {compared} differ")


if __name__ == "__main__":
    main()
