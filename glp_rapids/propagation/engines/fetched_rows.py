"""Of which strips a kernel reads rows over the bus, instead of all being copied before.

Single rows take less where few are active. And a copy wants a launch of its own, for what has come
by then: where strips are short, launches take longer than the bus, and one kernel that reads all
there is does several sweeps in one launch.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.outofcore.double_buffer import BUS
from glp_rapids.propagation.engines.strips import Strips
from glp_rapids.propagation.kernels.gpu.fetch import A_READ

# A strip is fetched row by row if that takes less than this share of a whole copy by the census
# before the sweep: more become active during it.
SPARSE = 0.5
# Seconds, of a strip that is copied: launches, and what waits at their ends. To fetch all took less
# where strips had 0.9 MB (web), and more where 3.9 (kron-22-16): between 16 and 72 microseconds.
A_LAUNCH = 4e-5


def a_read(bits: int) -> np.int64:
    """Return as how many entries of so many bits each row counts besides its own."""
    return np.int64(A_READ // bits)


def always(coming: list[int], sizes: np.ndarray, an_entry: float, a_launch: float) -> bool:
    """Tell whether launches for strips take longer than the bus does, whoever is active."""
    return bool(sizes[coming].sum() * an_entry / BUS < a_launch * len(coming))


def chosen(
    coming: list[int], costs: np.ndarray, sizes: np.ndarray, an_entry: float, a_launch: float
) -> set[int]:
    """Choose strips, by the entries that each costs or has; all, if launches take longer."""
    strips = np.array(coming)
    dense = strips[costs[strips] >= SPARSE * sizes[strips]]
    if costs[dense].sum() * an_entry / BUS < a_launch * strips.size:
        return set(coming)
    return set(coming).difference(dense.tolist())


def loads_at_once(found: Strips, an_entry: float, a_launch: float) -> bool:
    """Tell whether what stays has come before launches for as many strips would be done."""
    sizes = np.diff(found.entries)
    resident = int(sizes[found.place >= 0].sum())
    return resident * an_entry / BUS < a_launch * np.count_nonzero(sizes)
