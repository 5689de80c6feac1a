"""Integers looked up among the sorted ids of a graph on a GPU, a thread each.

In one launch, where CuPy alone takes a dozen: what lies between the ends, the search, whether what
was found is what was asked for. Nothing is read back.
"""

from __future__ import annotations

import functools
from typing import Any

Array = Any

# The two types may differ: what that of the ids cannot hold is none of them.
_FIND = """
template <class K, class T>
__device__ long long glp_find(const K* known, long long size, T asked) {
    K wanted = (K)asked;
    if ((T)wanted != asked || (wanted < 0) != (asked < 0)) return -1;
    K least = known[0], last = known[size - 1];
    if (wanted < least || wanted > last) return -1;
    // distinct and from 0 to one less than there are: each is its index
    if (least == 0 && (long long)last == size - 1) return (long long)wanted;
    long long first = 0, end = size - 1;
    while (first < end) {
        long long middle = (first + end) / 2;
        if (known[middle] < wanted) first = middle + 1; else end = middle;
    }
    return known[first] == wanted ? first : -1;
}
"""


def find_ids(known: Array, asked: Array) -> Array:
    """Return where integers are among others, which ascend and are some; -1: nowhere."""
    return _kernel()(asked, known, known.size)


@functools.cache
def _kernel() -> Any:
    import cupy

    return cupy.ElementwiseKernel(
        "T asked, raw K known, int64 size", "int64 place",
        "place = glp_find(&known[0], size, asked)",
        "glp_find_ids", preamble=_FIND,
    )  # fmt: skip
