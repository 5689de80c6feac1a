"""Sums, exclusive prefix sums and stream compaction, on any device; on a GPU in a launch or two.

CuPy's own are made of more operations, for which a host is what small graphs wait for: of 5,000
elements `places_where` takes it 43 us, ``flatnonzero`` 74, `exclusive_sums` 24, ``cumsum`` 34 (on
an H200, a script). What is not of integers or truth values is left to CuPy.

Nor has CUB to be compiled for these. CuPy has it with its sources, and uses it for sums of what is
not of 64 bits and for truth values: each kind takes 3.4 to 5.0 s at its first use on a machine, the
kernels here a tenth of a second (an H200, 16 cores; `device.any_true` is of the same reason).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.device import array_module

Array = Any
THREADS = 256
# Reduce, then scan: a block adds up its stretch of elements, and then what the blocks before it
# found, which are not many.
LEAST, MOST_BLOCKS = 16 * THREADS, 1024
TYPES = {
    "?": "bool", "b": "signed char", "B": "unsigned char", "h": "short", "H": "unsigned short",
    "i": "int", "I": "unsigned int", "l": "long long", "q": "long long",
    "L": "unsigned long long", "Q": "unsigned long long",
}  # fmt: skip

# Launch: blocks of 256 threads, each with a stretch of the values. Shared memory: 64 bytes.
# Registers (compute capability 9.0): 32 of `sum_blocks`, 38 of `scan_blocks`.
SOURCE = """
typedef unsigned long long word;  // sums may wrap, their differences are right

__device__ word sum_of_block(word value, word* shared) {
    for (int step = 16; step > 0; step >>= 1) value += __shfl_down_sync(~0u, value, step);
    if ((threadIdx.x & 31) == 0) shared[threadIdx.x >> 5] = value;
    __syncthreads();
    word sum = 0;
    for (int warp = 0; warp < blockDim.x >> 5; ++warp) sum += shared[warp];
    __syncthreads();
    return sum;
}

extern "C" __global__ void sum_blocks(
    const T* values, long long size, long long stretch, long long counts, word* sums
) {
    __shared__ word shared[8];
    long long begin = blockIdx.x * stretch, end = min(begin + stretch, size);
    word mine = 0;
    for (long long i = begin + threadIdx.x; i < end; i += blockDim.x)
        mine += counts ? values[i] != 0 : (word)values[i];
    word sum = sum_of_block(mine, shared);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

// Writes inclusive sums from out[1] on, or with `counts` the places of what is not zero.
extern "C" __global__ void scan_blocks(
    const T* values, long long size, long long stretch, long long counts,
    const word* sums, word* out
) {
    __shared__ word shared[8];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    word before = 0;
    for (int block = threadIdx.x; block < blockIdx.x; block += blockDim.x) before += sums[block];
    before = sum_of_block(before, shared);
    if (!counts && blockIdx.x == 0 && threadIdx.x == 0) out[0] = 0;
    long long begin = blockIdx.x * stretch, end = min(begin + stretch, size);
    for (long long first = begin; first < end; first += blockDim.x) {
        long long i = first + threadIdx.x;
        word own = i >= end ? 0 : counts ? values[i] != 0 : (word)values[i];
        word sum = own;
        for (int step = 1; step < 32; step <<= 1) {
            word other = __shfl_up_sync(~0u, sum, step);
            if (lane >= step) sum += other;
        }
        if (lane == 31) shared[warp] = sum;
        __syncthreads();
        word all = 0;
        for (int other = 0; other < blockDim.x >> 5; ++other) {
            if (other == warp) sum += before + all;
            all += shared[other];
        }
        __syncthreads();
        before += all;
        if (i < end && !counts) out[i + 1] = sum;
        if (i < end && counts && own) out[sum - 1] = i;
    }
}
"""


def integer_sum(values: Array) -> int:
    """Return what integers add up to; waits for it."""
    return _added(values, 0)


def number_where(condition: Array) -> int:
    """Return how many elements are true, or not zero; waits for it."""
    return _added(condition, 1)


def exclusive_sums(values: Array) -> Array:
    """Return what integers or truth values before each add up to, and all of them: int64."""
    xp, size = array_module(values), values.size
    if xp is np or not size or values.dtype.char not in TYPES:
        sums = xp.zeros(size + 1, np.int64)
        xp.cumsum(values, dtype=np.int64, out=sums[1:])
        return sums
    values = xp.ascontiguousarray(values)
    sum_blocks, scan_blocks = _built(values.dtype.char)
    blocks, stretch = _shape(size)
    sums = of_blocks = xp.empty(size + 1, np.int64)
    if blocks > 1:
        of_blocks = xp.empty(blocks, np.int64)
        sum_blocks((blocks,), (THREADS,), (values, size, stretch, 0, of_blocks))
    scan_blocks((blocks,), (THREADS,), (values, size, stretch, 0, of_blocks, sums))
    return sums


def places_where(condition: Array) -> Array:
    """Return where an array is true, or not zero, ascending: int64; waits for their number."""
    xp, size = array_module(condition), condition.size
    if xp is np or not size or condition.dtype.char not in TYPES:
        return xp.flatnonzero(condition)
    condition = xp.ascontiguousarray(condition)
    sum_blocks, scan_blocks = _built(condition.dtype.char)
    blocks, stretch = _shape(size)
    counts = xp.empty(blocks, np.int64)
    sum_blocks((blocks,), (THREADS,), (condition, size, stretch, 1, counts))
    places = xp.empty(int(counts.get().sum()), np.int64)
    if places.size:
        scan_blocks((blocks,), (THREADS,), (condition, size, stretch, 1, counts, places))
    return places


def _added(values: Array, counts: int) -> int:
    """Add up integers, or with ``counts`` those that are not zero."""
    xp, size = array_module(values), values.size
    if not size:
        return 0
    if xp is np or values.dtype.char not in TYPES:
        return int(xp.count_nonzero(values)) if counts else int(values.sum())
    values = xp.ascontiguousarray(values)
    blocks, stretch = _shape(size)
    sums = xp.empty(blocks, np.int64)
    _built(values.dtype.char)[0]((blocks,), (THREADS,), (values, size, stretch, counts, sums))
    return int(sums.get().sum())


def _shape(size: int) -> tuple[int, int]:
    """Return how many blocks there are, and how many elements each has."""
    stretch = max(LEAST, -(-size // (MOST_BLOCKS * THREADS)) * THREADS)
    return -(-size // stretch), stretch


@functools.cache
def _built(code: str) -> tuple[Any, Any]:
    """Return the kernels for values of a type; CuPy loads them on every GPU that asks."""
    import cupy

    module = cupy.RawModule(code=source_for(code))
    return module.get_function("sum_blocks"), module.get_function("scan_blocks")


def source_for(code: str) -> str:
    """Return the CUDA code of the kernels for values of a type, named by NumPy's character."""
    return f"typedef {TYPES[code]} T;\n{SOURCE}"
