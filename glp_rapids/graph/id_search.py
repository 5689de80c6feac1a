"""Where integers are among ascending ids on a GPU: one launch, where whole arrays take ten."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

# Finds ``place``, -1 where it is not there, of ``sought`` among the ids ``known``, which ascend;
# each is its index if they are a ``range``.
FIND = """
        long long place = -1;
        if (range) {
            if (sought >= 0 && sought < number) place = sought;
        } else {
            long long low = 0, high = number;
            while (low < high) {
                long long middle = (low + high) / 2;
                if (known[middle] < sought) low = middle + 1; else high = middle;
            }
            if (low < number && known[low] == sought) place = low;
        }
"""


def can_compare(asked: np.dtype, known: np.dtype) -> bool:
    """Tell whether a 64-bit type of C++ holds all integers of both types."""
    return asked == known or all(np.can_cast(one, np.int64) for one in (asked, known))


def places_of(asked: Any, known: Any, is_range: bool) -> Any:
    """Return int64 places of ids, -1 where not there, of types that `can_compare`."""
    import cupy

    places = cupy.empty(asked.size, np.int64)
    return _find(known.dtype == np.uint64)(asked, known, known.size, is_range, places)


@functools.cache
def _find(unsigned: bool) -> Any:
    import cupy

    integer = "unsigned long long" if unsigned else "long long"
    return cupy.ElementwiseKernel(
        "A asked, raw V known, int64 number, bool range", "int64 found",
        f"{integer} sought = asked; {FIND} found = place;",
        f"glp_find_ids_{'unsigned' if unsigned else 'signed'}",
    )  # fmt: skip
