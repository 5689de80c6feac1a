"""One run, as every engine gets it: the rows, the readers, the unit of votes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.common.calls import warn_caller
from glp_rapids.common.checks import as_float, is_number, shown
from glp_rapids.common.fixed_point import LARGEST_SCALE, all_whole, fixed_point_scale
from glp_rapids.device import array_module, is_mapped
from glp_rapids.propagation.options import Options
from glp_rapids.propagation.program import Program, Traits

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.graph.id_words import IdWords
    from glp_rapids.graph.rows import Rows


TIMES_HEAVIEST = 1024  # that amounts of a program may be, unless it says how large they are
SMALL_SUM = 1 << 30  # sums below it fit int32, and so do upper bounds, twice as large at the most
# Weights that are looked at in one go: on a CPU few, since a limit of memory has no room for them.
WEIGHTS_AT_ONCE = {"cpu": 1 << 13, "gpu": 1 << 22}


class TooLittleMemory(Exception):
    """An engine would take ``lacking`` bytes more than it may; ``parts``: bytes, by what for."""

    def __init__(self, lacking: int, parts: dict[str, int]):
        super().__init__(lacking)
        self.lacking, self.parts = lacking, parts


@dataclass(frozen=True)
class Workload:
    """One run, as every engine gets it: whose labels a row reads, who reads a row, the votes.

    ``rows`` and ``readers`` are both a `CSR` or both a `CompressedCSR`, as the engine was chosen.
    ``once``: a row ascends and holds a neighbour once, whose vote is for its label. ``distinct``:
    in the first class of the first sweep no label occurs twice around a vertex. ``id_words``: what
    is hashed in the place of a vertex. In ``kept``, which
    stays on the graph, an engine may leave what the next run on the same rows can use. ``memory``:
    the bytes that an engine which streams may take for arrays of its own; None: as it likes.
    ``caches``: it takes all of that, for lists that stay.
    ``marks``: few labels will change, so readers of changes are marked from the first sweep on;
    ``active``: then only these are evaluated in it, and who is woken; None: all.
    ``active_entries``: in their rows, if these are plain. ``program``: for engines that compile
    it for another device, too. ``small_sums``: those of votes are below `SMALL_SUM` at every
    vertex, and all votes are whole: a GPU's engines may add them in 32 bits.
    """

    graph: BaseGraph
    program: Program
    rows: Rows
    readers: Rows
    classes: int
    skip: bool
    scale: float
    largest_amount: float
    largest_vote: int  # of one neighbour
    longest_row: Callable[[], int]
    once: bool
    distinct: bool
    id_words: IdWords
    kept: dict[tuple, Any]
    memory: int | None = None
    caches: bool = True
    marks: bool = False
    active: Any = None
    active_entries: int | None = None
    small_sums: bool = False
    usual_scale: float = 1.0  # whether or not somebody looked if all weights are whole

    @property
    def largest_degree(self) -> int:
        """The entries of the longest row, which are counted if somebody asks."""
        return self.longest_row()


def _largest_vote(
    traits: Traits, largest_amount: float, scale: float, small_sums: bool
) -> int:  # fmt: skip
    if not traits.bears_changes:  # nobody asks
        return 1
    if traits.real_amounts and not small_sums:
        # python's floats overflow in silence; what is too large leaves no slack
        largest_amount = largest_amount * scale + 1.0
    elif largest_amount >= 2.0**53:  # an integer that a float may have made smaller
        largest_amount = np.nextafter(largest_amount, np.inf)
    return max(int(min(largest_amount, 2.0**62)), 1)


def hashes(options: Options) -> bool:
    """Tell whether ids are hashed in a run, for classes or to settle ties."""
    many = options.update == "semi" and options.classes > 1
    return many or options.explore > 0 or options.tie_break == "hash"


def workload_of(
    graph: BaseGraph,
    rows: Rows,
    program: Program,
    traits: Traits,
    options: Options,
    singletons: bool,
) -> Workload:
    """Gather what the engines need for one run of a program."""
    which = options.direction if graph.directed else None
    heaviest = graph.keep(("largest weight", which), lambda: float(rows.largest_weight()))
    longest_row = partial(graph.keep, ("longest row", which), rows.largest_degree)
    largest_amount, scale = heaviest, 1.0
    own_limit = not traits.default_load and program.largest_amount is not None
    if not traits.default_load and not own_limit:
        # weights may all be 0, and amounts need not be
        largest_amount = min(TIMES_HEAVIEST * (heaviest or 1.0), sys.float_info.max)
    elif own_limit:
        largest_amount = program.largest_amount
        if not is_number(largest_amount) or not 0 < as_float(largest_amount) < np.inf:
            raise ValueError(
                f"largest_amount must be positive and finite, not {shown(largest_amount)}"
            )
        largest_amount = float(largest_amount)
    if traits.checks_heard and not traits.real_amounts:
        largest_amount = 2.0**62 / max(longest_row(), 1)
    if traits.real_amounts and program._largest_sum is not None:
        scale = fixed_point_scale(program._largest_sum, 1)
    elif traits.real_amounts:
        scale = fixed_point_scale(largest_amount, longest_row())
        if scale == LARGEST_SCALE and 0 < largest_amount * scale < 2.0**31:
            what = f"weight: the largest weight, {heaviest:g}"
            if own_limit:
                what = f"largest_amount, {largest_amount:g}"
            raise ValueError(
                f"{what}, is so small that amounts would lose digits in fixed "
                "point; multiply all by the same power of ten"
            )
    elif traits.default_load and traits.weighted and heaviest * longest_row() > 2.0**62:
        raise ValueError(
            f"weight: the sum of weights at a vertex may exceed 2**62 (largest weight "
            f"{heaviest:g}, largest degree {longest_row()}); divide the weights or use floats"
        )
    usual_scale = scale
    small_sums = traits.default_load and traits.weighted and heaviest * longest_row() < SMALL_SUM
    if small_sums and traits.real_amounts:
        weights = getattr(rows.weights, "values", rows.weights)  # of coded ones the distinct ones
        small_sums = graph.keep(("whole weights", which), lambda: all_whole(weights))
        scale = 1.0 if small_sums else scale  # exact as any other is, of whole numbers
    skip, readers = traits.skip_inactive and options.skip_inactive, rows
    if skip:
        # Without readers all vertices are evaluated, which shows only in programs of the user's.
        readers = graph.readers(options.direction, make=not traits.plain)
        skip = readers is not None
    distinct = traits.default_load and (not graph.directed or options.direction != "both")
    return Workload(
        graph=graph, program=program, rows=rows, readers=readers if skip else rows,
        classes=options.classes if options.update == "semi" else 1, skip=skip, scale=scale,
        largest_amount=largest_amount,
        largest_vote=_largest_vote(traits, largest_amount, scale, small_sums),
        longest_row=longest_row,
        once=distinct and rows.ascends,
        distinct=distinct and singletons and traits.default_pick and traits.growing_scores,
        id_words=graph.id_words(hashes(options)),
        kept=graph.keep(("kept", which), dict), small_sums=small_sums, usual_scale=usual_scale,
    )  # fmt: skip


def warn_of_small_weights(workload: Workload, traits: Traits, options: Options) -> None:
    """Warn if the smallest weights count as 0 in fixed point: the largest is too far above them."""
    if not (traits.default_load and traits.real_amounts):
        return
    graph, scale = workload.graph, workload.scale
    which = options.direction if graph.directed else None
    smallest = graph.keep(("smallest weight", which), partial(_smallest_weight, workload.rows))
    if smallest * scale <= 0.5:  # which is rounded to even
        warn_caller(
            f"weight: the smallest weight, {smallest:g}, counts as 0 beside the largest, "
            f"{workload.largest_amount:g}: votes are added in units of {1 / scale:g}, so that 64 "
            f"bits hold the sum of a longest row, of {workload.largest_degree:,} entries; drop "
            "such small weights, or clip the largest if they count"
        )


def _smallest_weight(rows: Rows) -> float:
    """Return the smallest positive weight, infinite where there is none, or a file is mapped."""
    values = getattr(rows.weights, "values", rows.weights)  # of coded weights the distinct ones
    if not values.size or is_mapped(values):  # all of which would have to be read once more
        return np.inf
    if (smallest := float(values.min())) > 0:
        return smallest
    xp, at_once = array_module(values), WEIGHTS_AT_ONCE[rows.device]
    least = none = values.dtype.type(np.inf)
    for first in range(0, values.size, at_once):
        some = values[first : first + at_once]
        least = xp.minimum(least, xp.where(some > 0, some, none).min())
    return float(least)
