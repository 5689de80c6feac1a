"""The arrays of a run on a GPU, as the persistent kernel takes them: one piece of memory for all.

To ask for memory waits for the device where nobody keeps a pool (RMM, as it begins), and to fill an
array is a launch; on a small graph the sweeps take no longer than dozens of these. So everything of
a run is cut from one allocation, the words that begin with zeros before those that begin with ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.propagation.failures import WORDS
from glp_rapids.propagation.kernels.gpu.arguments import HubTables, Pieces, Run
from glp_rapids.propagation.kernels.gpu.plan import Plan
from glp_rapids.propagation.kernels.gpu.votes import VoteFunctions

LARGEST_LAUNCH = 1 << 10  # sweeps
ALIGNMENT = 256  # bytes

# The words that every launch sets: tickets drawn (two pairs), the barrier, what is kept from one
# launch to the next, then the changes sweep by sweep.
DRAWN, BARRIER, CONTROL, CHANGED = 0, 4, 5, 8


class Kept(NamedTuple):
    """An array to be cut out: how many elements, of which type."""

    size: int
    dtype: Any
    absent: bool = False  # it begins with -1, not with 0


@dataclass
class Workspace:
    """The arrays of a run, as the kernel takes them; clean, but for ``slack`` and ``tied``."""

    plan: Plan
    plan_arrays: Any
    tables: Any
    hubs: Any
    pieces: Any
    run: Any
    rows: Any
    readers: Any
    lists: Any
    words: Any
    slack: Any
    errors: Any
    bound_errors: Any


class PlanSizes(NamedTuple):
    """What of a plan decides about the size of a workspace."""

    slots: int  # of the hubs' tables
    hubs: int
    pieces: int
    listed: int  # vertices

    @classmethod
    def of(cls, plan: Plan) -> PlanSizes:
        """Return those of a plan."""
        pieces = plan.hubs["of_piece"].shape[0]
        return cls(plan.table_slots, plan.number_of_hubs, pieces, plan.vertices.size)


def bytes_of(*how: Any) -> int:
    """Return how many bytes `arrays_of` takes for the same arguments but the last."""
    kinds = _wanted(*how)
    return sum(_size(kept) for kind in kinds for kept in (kind.values() if isinstance(kind, dict)
                                                          else kind))  # fmt: skip


def arrays_of(
    sizes: PlanSizes, functions: VoteFunctions, prunes: bool, keeps_score: bool, slack: int,
    long_lists: int, clock: int, xp: Any,
) -> dict[str, Any]:  # fmt: skip
    """Make ``tables``, ``pieces`` and ``run`` of a workspace, and the arrays the host writes.

    ``slack``: for how many vertices there is one; ``long_lists``: so many lists of readers all
    blocks share; ``clock``: so many times are written down.
    """
    tables, of_pieces, of_run, host = _wanted(
        sizes, functions, prunes, keeps_score, slack, long_lists, clock
    )
    made = cut([*tables, *of_pieces, *of_run.values(), *host.values()], xp)
    tables = HubTables(*(next(made) for _ in tables))
    of_pieces = Pieces(*(next(made) for _ in of_pieces))
    of_run = {name: next(made) for name in of_run}
    host = {name: next(made) for name in host}
    words = host["words"]
    run = Run(
        **of_run,
        changed=words[CHANGED:],
        drawn=words[DRAWN:BARRIER],
        barrier=words[BARRIER:CONTROL],
        control=words[CONTROL:CHANGED],
    )
    return {"tables": tables, "pieces": of_pieces, "run": run, "slack": run.slack, **host}


def _wanted(
    sizes: PlanSizes, functions: VoteFunctions, prunes: bool, keeps_score: bool, slack: int,
    long_lists: int, clock: int,
) -> tuple[HubTables, Pieces, dict[str, Kept], dict[str, Kept]]:  # fmt: skip
    index_type, vote_type, score_type = functions.types
    slots, hubs, pieces, listed = sizes
    pruning = slots if prunes else 1
    tables = HubTables(
        labels=Kept(slots, index_type, absent=True),
        votes=Kept(slots, vote_type),
        excess=Kept(pruning, vote_type),
        taken=Kept(pruning, np.int32),
        number=Kept(hubs, np.int32),
    )
    of_pieces = Pieces(
        label=Kept(pieces, index_type, absent=True),
        score=Kept(pieces, score_type),
        tied=Kept(pieces, np.uint8),
        upper_bound=Kept(pieces, vote_type),
        arrived=Kept(hubs, np.int32),
    )
    of_run = {
        "slack": Kept(slack, np.int32),
        "tied": Kept(listed, np.uint8),
        "winner": Kept(listed, index_type, absent=True),
        "clock": Kept(clock, np.int64),
        "long_lists": Kept(1 + 2 * long_lists, np.int64),
        "winner_score": Kept(listed if keeps_score else 1, score_type),
    }
    host = {
        "words": Kept(CHANGED + LARGEST_LAUNCH, np.int64),
        "errors": Kept(WORDS, np.int64),
    }
    return tables, of_pieces, of_run, host


def _size(kept: Kept) -> int:
    """Return the bytes of an array, with what there is to the next one."""
    return -(-max(kept.size, 1) * np.dtype(kept.dtype).itemsize // ALIGNMENT) * ALIGNMENT


def cut(wanted: list[Kept], xp: Any) -> Any:
    """Give the arrays in their order, cut from one piece of memory; none is empty."""
    sizes = [max(kept.size, 1) * np.dtype(kept.dtype).itemsize for kept in wanted]
    place, first = [0] * len(wanted), 0
    for absent in (False, True):
        if absent:
            zeros = first
        for number, kept in enumerate(wanted):
            if kept.absent is absent:
                place[number] = first
                first += -(-sizes[number] // ALIGNMENT) * ALIGNMENT
    memory = xp.empty(first, np.uint8)
    memory[:zeros] = 0
    memory[zeros:] = 0xFF
    for number, kept in enumerate(wanted):
        yield memory[place[number] : place[number] + sizes[number]].view(kept.dtype)
