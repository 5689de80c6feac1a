"""Who is not settled when a run ends, listed where the slack lies: they are few, or nobody asks."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.device import array_module, to_host

AT_ONCE = 1 << 12  # of them are read with their number; a further look takes as long as these


class Unsettled:
    """The vertices whose slack is used up; all that is looked at of ``slack`` is at once."""

    def __init__(self, slack: Any, most: int):
        self._most = most
        if array_module(slack) is np:
            found = np.flatnonzero(slack < 0)
            self._number, self._found = found.size, found[:most]
            return
        import cupy

        words = cupy.zeros(1 + most, np.int64)  # their number, then they themselves
        _list_unsettled()(slack, most, words)
        read = to_host(words[: 1 + AT_ONCE])  # which waits for all of it
        self._number = int(read[0])
        self._found = read[1:] if self._number <= AT_ONCE else words[1:]

    def vertices(self) -> np.ndarray | None:
        """Return them, ascending, in host memory; None if they are more than ``most``."""
        return None if self._number > self._most else np.sort(to_host(self._found[: self._number]))


@functools.cache
def _list_unsettled() -> Any:
    import cupy

    # Once they are too many, hardly a thread adds to the one word that all would wait for.
    return cupy.ElementwiseKernel(
        "int32 slack, int64 most", "raw int64 found",
        """
        if (slack < 0 && found[0] <= most) {
            long long place = (long long)atomicAdd((unsigned long long*)&found[0], 1ULL);
            if (place < most) found[place + 1] = i;
        }
        """,
        "glp_list_unsettled",
    )  # fmt: skip
