"""The arrays of a run on a CPU: planned here from sizes alone, made of the plan by the engines.

So what `estimate_memory` says, by what a way is chosen, and what a run takes are one thing. Rows
that a run streams come into a buffer as large as the memory allows; where that is little, threads
count on smaller and slower tables first.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from glp_rapids.common.sizes import Planned, planned_bytes
from glp_rapids.propagation.kernels.cpu import hash_votes, tables
from glp_rapids.propagation.kernels.cpu.class_lists import class_offsets, largest_class
from glp_rapids.propagation.kernels.cpu.hash_votes import CHANGED, CHUNK, PARALLEL_FROM
from glp_rapids.propagation.kernels.cpu.unit_votes import WORTH_COMPILING
from glp_rapids.propagation.schedule import spans_of

if TYPE_CHECKING:
    from glp_rapids.propagation.program import Traits
    from glp_rapids.propagation.workload import Workload

Arrays = dict[str, Planned]

BUFFER, BUFFER_A_VERTEX = 1 << 22, 2  # entries read at a time, at the most: the larger one
ENOUGH = 1 << 16  # entries: with a smaller buffer, slower tables that leave more for it are better
SMALL = PARALLEL_FROM  # entries: compressed rows that have fewer are decoded once and for all


@dataclass(frozen=True)
class Sizes:
    """All that decides how much memory an engine takes.

    ``longest_row`` is also that of the readers. ``unit_votes``: all votes count one, and the score
    of a label is their sum. ``ordered``: rows are stored in another order than the vertices'.
    ``readers_apart``: they are rows of their own.
    """

    number_of_vertices: int
    number_of_edges: int
    longest_row: int
    index_dtype: Any
    weight_dtype: Any | None
    classes: int
    threads: int
    unit_votes: bool
    ordered: bool = False
    readers_apart: bool = False

    @property
    def bytes_an_entry(self) -> int:
        """Bytes of a neighbour and its weight."""
        return sum(np.dtype(dtype).itemsize for dtype in self._entry_types().values())

    def _entry_types(self) -> dict[str, Any]:
        weights = {} if self.weight_dtype is None else {"weights": self.weight_dtype}
        return {"neighbours": self.index_dtype, **weights}

    def entries(self, size: int) -> Arrays:
        """Plan room for so many neighbours and their weights."""
        return {name: Planned(size, dtype) for name, dtype in self._entry_types().items()}


def sizes_of(workload: Workload, traits: Traits) -> Sizes:
    """Take the sizes from a run that is about to begin."""
    rows, readers = workload.rows, workload.readers
    longest, apart = workload.largest_degree, readers is not rows
    if apart and rows.form == "compressed":  # lists of readers come into the buffer, too
        longest = max(longest, readers.largest_degree())
    return Sizes(
        rows.number_of_vertices, rows.number_of_edges, longest, rows.index_dtype,
        None if rows.weights is None else rows.weights.dtype, workload.classes,
        hash_votes.threads_for(rows.number_of_edges), traits.unit_votes and traits.default_score,
        ordered=getattr(rows, "order", None) is not None, readers_apart=apart,
    )  # fmt: skip


def class_offsets_of(workload: Workload) -> np.ndarray:
    """Return where each class of a run starts in the list of all vertices; kept."""
    graph, classes = workload.graph, workload.classes
    make = partial(class_offsets, workload.id_words, graph.number_of_vertices, classes)
    return graph.keep(("class offsets", classes), make)


def largest_class_of(workload: Workload) -> int:
    """Count the vertices of the largest class that a sweep may have: where the fewest are left."""
    return largest_class(class_offsets_of(workload), max(spans_of(workload.classes)))


class Layout(NamedTuple):
    """What an engine chose where it had a choice: by how much memory there is."""

    tables: str  # their kind
    threads: int
    room: int = 0  # entries of the buffer


def state_arrays(sizes: Sizes, layout: Layout) -> Arrays:
    """Plan what both engines keep of all vertices and threads."""
    n = sizes.number_of_vertices
    return {
        "vertices": Planned(n, sizes.index_dtype),
        "slack": Planned(n, np.int32, -1),
        "tied": Planned(n, np.uint8, 0),
        # of each thread: what went wrong, and how many labels it changed
        "errors": Planned((layout.threads, CHANGED + 1), np.int64, 0),
    }


def tables_of(sizes: Sizes, layout: Layout) -> Arrays:
    """Plan the tables in which threads count."""
    return tables.tables_for(
        layout.tables, sizes.number_of_vertices, sizes.longest_row, layout.threads,
        sizes.index_dtype,
    )  # fmt: skip


def winner_arrays(size: int, index_dtype: Any, score_type: Any = np.int64) -> Arrays:
    """Plan what is noted of the winners among so many vertices."""
    return {
        "winning vertices": Planned(size, index_dtype),
        "winning labels": Planned(size, index_dtype),
        "winning scores": Planned(size, score_type),
        "labels before": Planned(size, index_dtype),
        "winners of each chunk": Planned(size // CHUNK + 1, np.int64),
    }


# ---------------------------------------------------------------- rows in memory


def resident_layout(sizes: Sizes) -> Layout:
    """Choose the fastest."""
    kinds = tables.kinds_for(sizes.number_of_vertices, sizes.longest_row, sizes.unit_votes)
    return Layout(kinds[0], sizes.threads)


def rows_by_class(sizes: Sizes) -> Arrays:
    """Plan the copy of all rows, class after class; of one class there is none."""
    if sizes.classes == 1:
        return {}
    return {
        "row starts": Planned(sizes.number_of_vertices + 1, np.int64),
        **sizes.entries(sizes.number_of_edges),
    }


def resident_arrays(sizes: Sizes) -> Arrays:
    """Plan all arrays of the engine that copies the rows class by class."""
    layout, entries = resident_layout(sizes), sizes.number_of_edges
    winners = winner_arrays(sizes.number_of_vertices, sizes.index_dtype)
    places = 16 * entries if sizes.classes > 1 and entries < WORTH_COMPILING else 0
    # of entries that are copied: they are gone before there is a list of winners
    places = max(places - planned_bytes(winners.values()), 0)
    return {
        **state_arrays(sizes, layout),
        **tables_of(sizes, layout),
        **rows_by_class(sizes),
        **winners,
        "places while rows are copied": Planned(places, np.uint8),
    }


# ---------------------------------------------------------------- rows that come strip by strip


def strip_arrays(sizes: Sizes, largest_class: int) -> Arrays:
    """Plan what is noted of the rows of a class, and where they lie in the buffer."""
    return {
        "active vertices": Planned(largest_class, sizes.index_dtype),
        "starts of active rows": Planned(largest_class + 1, np.int64),
        "starts in a strip": Planned(largest_class + 1, np.int64),
        **winner_arrays(largest_class, sizes.index_dtype),
        **(_places(sizes, largest_class) if sizes.ordered else {}),
    }


def _places(sizes: Sizes, largest_class: int) -> Arrays:
    """Plan what it takes to find lists that lie in another order than the vertices."""
    lists = 1 + sizes.readers_apart
    return {
        "degrees by vertex": Planned((lists, sizes.number_of_vertices), sizes.index_dtype),
        "places in a strip": Planned(largest_class, sizes.index_dtype),
        "vertices as NumPy's indices": Planned(largest_class, np.intp),
    }


def streamed_arrays(sizes: Sizes, layout: Layout, largest_class: int) -> Arrays:
    """Plan all arrays of the engine that reads rows strip by strip."""
    return {
        **state_arrays(sizes, layout),
        **tables_of(sizes, layout),
        **strip_arrays(sizes, largest_class),
        **sizes.entries(layout.room),
    }


def longest_buffer(sizes: Sizes) -> int:
    """Return the entries of a buffer that nothing is gained by making larger."""
    most = max(BUFFER, BUFFER_A_VERTEX * sizes.number_of_vertices)
    return max(min(sizes.number_of_edges, most), sizes.longest_row)


def streamed_layout(sizes: Sizes, largest_class: int, memory: int | None) -> Layout:
    """Choose tables, threads and buffer for so much memory; the buffer may come out too small.

    None: as much as is useful. It is too small if its ``room`` is less than the longest row.
    """
    most, wide = longest_buffer(sizes), max(sizes.bytes_an_entry, 1)
    kinds = tables.kinds_for(sizes.number_of_vertices, sizes.longest_row, sizes.unit_votes)
    best = None
    for threads in dict.fromkeys((sizes.threads, 1)):
        for kind in kinds:
            layout = Layout(kind, threads)
            if memory is None:
                return layout._replace(room=most)
            taken = planned_bytes(streamed_arrays(sizes, layout, largest_class).values())
            layout = layout._replace(room=min((memory - taken) // wide, most))
            if layout.room >= min(most, max(ENOUGH, sizes.longest_row)):
                return layout
            if best is None or layout.room > best.room:
                best = layout
    return best


# ---------------------------------------------------------------- what each way takes


class Need(NamedTuple):
    """Bytes that an engine takes of the memory there is, and the fewest it can do with."""

    taken: int
    least: int


def _resident(sizes: Sizes, largest_class: Callable[[], int], memory: int | None) -> Need:
    taken = planned_bytes(resident_arrays(sizes).values())
    return Need(taken, taken)


def _packed(sizes: Sizes, largest_class: Callable[[], int], memory: int | None) -> Need:
    if sizes.number_of_edges < SMALL:
        taken, copies = _resident(sizes, largest_class, memory).taken, 1 + sizes.readers_apart
        decoded = {**sizes.entries(sizes.number_of_edges),
                   "row starts": Planned(sizes.number_of_vertices + 1, np.int64)}  # fmt: skip
        taken += copies * planned_bytes(decoded.values())
    else:
        taken = _streamed(sizes, largest_class, None).taken
    return Need(taken, taken)


def _streamed(sizes: Sizes, largest_class: Callable[[], int], memory: int | None) -> Need:
    of_class, smallest = largest_class(), None
    layout = streamed_layout(sizes, of_class, memory)
    taken = planned_bytes(streamed_arrays(sizes, layout, of_class).values())
    if memory is not None:
        smallest = taken + (sizes.longest_row - layout.room) * sizes.bytes_an_entry
    return Need(taken, taken if smallest is None else smallest)


NEEDS = {
    "plain": _resident,
    "packed": _packed,
    "streamed packed": _streamed,
    "streamed plain": _streamed,
}


def need_of(way: str, sizes: Sizes, largest_class: Callable[[], int], memory: int | None) -> Need:
    """Return what the engine of a way takes; ``memory``: of so many bytes, None: of any number.

    ``largest_class`` counts the vertices of the largest class there will be.
    """
    return NEEDS[way](sizes, largest_class, memory)
