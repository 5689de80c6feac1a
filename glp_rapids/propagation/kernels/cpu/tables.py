"""The tables in which a thread counts the votes of a row, see `hash_votes` and `unit_votes`.

There are three kinds, the fastest first: ``stamped`` has an entry of 8 bytes for every vertex,
``direct`` one of 4, and ``hashed`` some for every entry of the longest row.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.common.sizes import Planned
from glp_rapids.propagation.kernels.cpu import unit_votes
from glp_rapids.propagation.kernels.cpu.hash_votes import CHUNK
from glp_rapids.propagation.kernels.cpu.short_rows import MANY
from glp_rapids.propagation.kernels.cpu.unit_votes import LARGEST_TABLE

STAMPED, DIRECT, HASHED = "stamped", "direct", "hashed"


def _slots(number_of_vertices: int, longest_row: int) -> int:
    return 1 << max(2 * min(max(longest_row, 1), number_of_vertices) - 1, 15).bit_length()


def kinds_for(number_of_vertices: int, longest_row: int, unit_votes: bool) -> list[str]:
    """List the kinds that a run may have; the first one is for where memory does not matter.

    ``unit_votes``: all votes count one, and the score of a label is their sum.
    """
    kinds = [HASHED]
    if number_of_vertices <= max(4 * _slots(number_of_vertices, longest_row), 1 << 20):
        kinds.insert(0, DIRECT)
    if unit_votes and number_of_vertices <= LARGEST_TABLE:
        kinds.insert(0, STAMPED)
    return kinds


def tables_for(
    kind: str, number_of_vertices: int, longest_row: int, threads: int, index_type: Any
) -> dict[str, Planned]:
    """Plan the tables of so many threads."""
    degree = max(longest_row, 1)
    if kind == STAMPED:
        gathered = unit_votes.BUFFER + degree + MANY + unit_votes.STEP
        return {
            "stamped votes": Planned((threads, number_of_vertices), np.uint64, 0),
            "stamps": Planned((threads, 16), np.int64, 0),
            "gathered labels": Planned((threads, gathered), index_type),
            "ends of gathered rows": Planned((threads, CHUNK), np.int64),
            "active places": Planned((threads, CHUNK), np.int64),
        }
    slots = max(number_of_vertices, 1)
    if kind == HASHED:
        slots = _slots(number_of_vertices, longest_row)
    return {
        "labels of a row": Planned((threads, degree), index_type),
        "votes of a row": Planned((threads, degree), np.int64),
        "slots of a row": Planned((threads, degree), np.int32),
        "slots": Planned((threads, slots), np.int32, 0),
    }
