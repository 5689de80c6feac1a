"""Who is not settled when a run ends, listed where the slack lies: they are few, or nobody asks."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.device import array_module, to_host

FEW = 4096  # that come with their number: another copy would take as long


class Unsettled:
    """The vertices whose slack is used up; all that is looked at of ``slack`` is at once."""

    def __init__(self, slack: Any, most: int):
        self._most = most
        if array_module(slack) is np:
            found = np.flatnonzero(slack < 0)
            self._number, self._found = found.size, found[:most]
            return
        import cupy

        words = cupy.zeros(1 + most, np.uint64)  # their number, then they themselves
        _list_unsettled()(slack, most, words)
        first = to_host(words[: 1 + FEW])  # which waits for all of it
        self._number = int(first[0])
        few = self._number <= FEW or self._number > most
        self._found = (first if few else words)[1:].view(np.int64)

    def vertices(self) -> np.ndarray | None:
        """Return them, ascending, in host memory; None if they are more than ``most``."""
        return None if self._number > self._most else np.sort(to_host(self._found[: self._number]))


@functools.cache
def _list_unsettled() -> Any:
    import cupy

    # Once they are too many, hardly a thread adds to the one word that all would wait for.
    return cupy.ElementwiseKernel(
        "int32 slack, uint64 most", "raw uint64 found",
        """
        if (slack < 0 && found[0] <= most) {
            unsigned long long place = atomicAdd(&found[0], 1ULL);
            if (place < most) found[place + 1] = i;
        }
        """,
        "glp_list_unsettled",
    )  # fmt: skip
