"""How much memory a run may take, how much it will, and which way it goes by that.

All that a run holds counts: the graph and what is made of it, labels and state, the engine's
arrays. What lies in mapped files does not: the system can drop it at any time. On a CPU the
engine's share is that of the very plan its arrays are made of (`engines.cpu_arrays`); on a GPU it
is a figure from above, measured by `glp-rapids bench gpu` and `bench compressed`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, partial
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from glp_rapids.common.sizes import UNITS
from glp_rapids.device import LITTLE, LackOfMemory, free_on_gpu, memory_free, memory_taken
from glp_rapids.multigpu.devices import kind_of
from glp_rapids.propagation.gpu_memory import (
    GPU_PLANNING,
    bytes_an_entry,
    bytes_streamed,
    gpu_bytes_of,
)
from glp_rapids.propagation.making_memory import bytes_to_make
from glp_rapids.propagation.program import traits_of
from glp_rapids.propagation.ways import (
    STREAMED_TO_GPU,
    WAYS,
    decoded_for_good,
    in_form,
    ways_of,
)
from glp_rapids.propagation.workload import TooLittleMemory, hashes

if TYPE_CHECKING:
    from collections.abc import Callable

    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.graph.id_words import IdWords
    from glp_rapids.graph.rows import Rows
    from glp_rapids.propagation.engines.cpu_arrays import Sizes
    from glp_rapids.propagation.options import Options
    from glp_rapids.propagation.part_memory import Parts
    from glp_rapids.propagation.program import Program, Traits
    from glp_rapids.propagation.workload import Workload

# For Python's own objects, such as views of strips: the least (twice, for strips) and a share of
# the limit, at most so much. Measured: 20 to 130 KB, and 530 in runs of some ten thousand strips.
LEAST_OBJECTS, OF_LIMIT, MOST_OBJECTS = 64 * UNITS["KIB"], 64, 512 * UNITS["KIB"]
# Bytes beside the graph, rounded up: a look at what is free is all that depends on them.
AN_ENTRY, A_VERTEX = 48, 256
OF_FREE = 16  # of what is free on a GPU, one part in so many is left to others, and to the driver
REVERSE = {"in": "out", "out": "in", "both": "both"}


@cache
def _plans() -> ModuleType:
    # Numba waits for the first run: `import glp_rapids` stays light.
    from glp_rapids.propagation.engines import cpu_arrays

    return cpu_arrays


class Chosen(NamedTuple):
    """What was decided about a run."""

    way: str
    workload: Workload
    predicted: int  # bytes, the graph included


class Total(NamedTuple):
    """What a run takes in all, or where it does not fit the least; and what its engine may take."""

    size: int
    fits: bool
    memory: int | None


def total_of(
    way: str, sizes: Sizes, largest_class: Callable[[], int], lists: int, state: int,
    limit: int | None,
) -> Total:  # fmt: skip
    """Add up a run on the CPU: ``lists``, ``state`` and what the engine of a way takes besides."""
    need_of = _plans().need_of
    if limit is None:
        taken = need_of(way, sizes, largest_class, None).taken
        return Total(lists + state + taken, True, None)
    objects = LEAST_OBJECTS * (1 + WAYS[way].streamed)
    memory = limit - lists - state - min(MOST_OBJECTS, objects + limit // OF_LIMIT)
    need = need_of(way, sizes, largest_class, memory)
    size = lists + state + need.taken
    if need.least <= memory:
        return Total(min(_with_objects(size, objects), limit), True, memory)
    return Total(_with_objects(lists + state + need.least, objects) + 1, False, memory)


def _with_objects(size: int, least: int) -> int:
    """Add to arrays what Python's own objects may take; under such a limit the arrays do fit."""
    with_least = size + least
    return min(size + MOST_OBJECTS, with_least + with_least // (OF_LIMIT - 1))


@dataclass
class Budget:
    """The memory of one run: `limit` bytes, the graph included; None: more than it will take."""

    graph: BaseGraph
    options: Options
    ways: tuple[str, ...]
    limit: int | None
    held: int = 0  # bytes that the caller holds
    making: int = 0  # bytes while rows are made of the graph, and before there is an engine
    parts: Parts | None = None  # of the GPUs that share the graph

    @property
    def form(self) -> str:
        """The form of the rows that the run reads: all ways that are tried have it."""
        return WAYS[self.ways[0]].form

    def source(self) -> BaseGraph:
        """Return the graph in the form that the run reads."""
        return in_form(self.graph, self.form, self.options)

    def choose(self, workload: Workload, traits: Traits, fields: dict[str, Any]) -> Chosen:
        """Choose the first way that fits; raise if none does."""
        arrays = (value for value in fields.values() if getattr(value, "ndim", 0))
        state = sum(array.nbytes for array in arrays)
        if self.parts is not None:
            return Chosen(self.ways[0], workload, self.parts.check(state))
        if self.options.streams_to == "gpu":
            memory = None if self.limit is None else self.limit - state
            caches = self.options.memory_limit is not None or self.options.way == "auto"
            workload = replace(workload, memory=memory, caches=caches)
            return Chosen(self.ways[0], workload, state)
        if self.graph.device == "gpu":
            return Chosen(self.ways[0], workload, gpu_bytes_of(self.graph))
        state += self.held
        if self.limit is None:
            taken = state + self._unlimited(workload, traits)
            return Chosen(self.ways[0], workload, max(taken, self.making))
        plans = _plans()
        sizes, lists = plans.sizes_of(workload, traits), _taken(self.graph, workload)
        totals, largest = [], partial(plans.largest_class_of, workload)
        for way in self.ways:
            total = total_of(way, sizes, largest, lists, state, self.limit)
            if total.fits:
                predicted = max(total.size, self.making)
                return Chosen(way, replace(workload, memory=total.memory), predicted)
            totals.append((total, way))
        total, way = min(totals, key=lambda one: one[0].size)
        longest = sizes.longest_row * sizes.bytes_an_entry if WAYS[way].streamed else 0
        arrays = plans.need_of(way, sizes, largest, total.memory).least
        parts = {
            "the graph, what is made of it included": lists,
            "labels, state and tables" if longest else "labels, state, tables and a copy of lists":
                state + arrays - longest,
            f"the longest row, {sizes.longest_row:,} entries": longest,
            "Python's own objects": total.size - lists - state - arrays,
        }  # fmt: skip
        parts = {name: size for name, size in parts.items() if size}
        raise self.lack(total.size, f"takes {total.size:,} at the least", way, parts)

    def _unlimited(self, workload: Workload, traits: Traits) -> int:
        """Return what a run of the first way takes beside its state; kept, for the next is soon."""
        unit = traits.unit_votes and traits.default_score
        key = "taken", self.ways[0], workload.classes, unit, workload.skip
        taken = workload.kept.get(key)
        if taken is None:  # another thread may clear what is kept
            plans, way = _plans(), self.ways[0]
            sizes, lists = plans.sizes_of(workload, traits), _taken(self.graph, workload)
            largest = partial(plans.largest_class_of, workload)
            taken = workload.kept[key] = total_of(way, sizes, largest, lists, 0, None).size
        return taken

    def lack_of_streams(self, error: TooLittleMemory, state: int) -> LackOfMemory:
        """Return the error that says by how much the limit is too low for streams to a GPU."""
        needed = self.limit + error.lacking
        parts = {"labels and state": state, **error.parts}
        return self.lack(needed, f"takes {needed:,} at the least", self.ways[0], parts)

    def lack(
        self, needed: int, takes: str, way: str, parts: dict[str, int], first: str = ""
    ) -> LackOfMemory:  # fmt: skip
        """Return the error that says by how much, or ``first`` by what, the limit is too low."""
        graph, given = self.graph, self.options.memory_limit == self.limit
        device = self.options.streams_to or graph.device
        limit = f"memory_limit={self.limit:,} bytes is" if given else (
            f"the {self.limit:,} bytes that are free, or held by the graph, are"
        )  # fmt: skip
        taken = "; ".join(f"{name}: {size:,}" for name, size in parts.items())
        mend = "raise memory_limit" if given else "free some"
        if device == "gpu":
            mend += ", compress the graph (glp_rapids.compress), or use host memory (device='cpu')"
            if graph.device == "gpu" and not graph.scheme:
                mend += ", or let its lists be streamed from there (pass graph.to('cpu'))"
        elif (
            graph.scheme and graph.directed and self.options.direction == "in"
            and self.making > self.limit
        ):  # fmt: skip
            mend += ", give way='plain' or direction='out' (lists in the other direction are "
            mend += "compressed anew)"
        elif memory_taken(*graph.rows("out").arrays()):
            mend += ", let the graph lie in a mapped file (CompressedGraph.open), which takes none"
        if self.options.way != "auto":
            mend += ", leave way='auto'"
        if self.options.update == "sync":
            mend += ", update='semi' (less is held of a class)"
        return LackOfMemory(
            f"graph: {limit} {first}{needed - self.limit:,} too little to propagate labels over "
            f"its {graph.number_of_vertices:,} vertices and {graph.number_of_edges:,} entries on "
            f"the {device}: {way!r} {takes} ({taken}); {mend}"
        )


def budget_of(graph: BaseGraph, program: Program, options: Options, held: int = 0) -> Budget:
    """Say how much memory a run may take; raise if it is clear that it is too little.

    Raises
    ------
    ValueError
        The way asked for is none that the graph can go.
    LackOfMemory
        Labels and state, or what has to be made of the graph first, do not fit.
    """
    budget = Budget(graph, options, ways_of(graph, options), options.memory_limit, held)
    if options.devices is not None and kind_of(options.devices) == "gpu":
        from glp_rapids.propagation.part_memory import parts_of, rooms_of

        if budget.form == "compressed":
            _refuse_other_programs(program)
        else:
            budget.parts = parts_of(graph, program, options)
            if not _are_streamed(budget):
                return budget
            budget.ways, budget.parts = (STREAMED_TO_GPU["plain"],), None
        limits = [room for room in rooms_of(graph, options) if room is not None]
    elif options.streams_to == "gpu":
        free = free_on_gpu()
        usable = None if free is None else free - free // OF_FREE
        limits = [limit for limit in (options.memory_limit, usable) if limit is not None]
    if options.streams_to == "gpu":
        budget.limit = min(limits, default=None)
        _check_host(graph, program, options)
        state = graph.number_of_vertices * (
            graph.index_dtype.itemsize + program._bytes_a_vertex(graph.index_dtype)
        )
        planning = GPU_PLANNING * graph.number_of_vertices
        if budget.limit is not None and state + planning > budget.limit:
            parts = {"labels and state": state, "the order of the rows, while made": planning}
            takes = f"takes {state + planning:,} before any list comes"
            raise budget.lack(state + planning, takes, budget.ways[0], parts, "at least ")
        return budget
    if graph.device == "gpu":
        needed = gpu_bytes_of(graph)
        if budget.limit is not None and needed > budget.limit:
            parts = {"measured of others, from above": needed}
            raise budget.lack(needed, f"takes up to {needed:,}", budget.ways[0], parts)
        return budget
    entries, vertices = graph.number_of_edges, graph.number_of_vertices
    a_vertex = program._bytes_a_vertex(graph.index_dtype)
    little = entries * AN_ENTRY + vertices * (A_VERTEX + a_vertex) < LITTLE
    as_it_is = not graph.directed and not graph.scheme and budget.form == "plain"
    if budget.limit is None and little and as_it_is:
        return budget
    readers = wants_readers(graph, program, options, budget.form)
    made = bytes_to_make(graph, options, budget.form, readers)
    if budget.limit is None and little and not made:
        return budget
    taken = taken_already(graph, options, budget.form, readers)
    state = held + vertices * (graph.index_dtype.itemsize + a_vertex)
    budget.making = taken + made + state
    if budget.limit is None:
        if little:
            return budget
        budget.limit = memory_free("cpu") + taken + held
    if budget.making > budget.limit:
        parts = {
            "the graph, what is kept on it included": taken,
            "rows in another form or direction, while they are made": made,
            "labels and state": state,
        }
        takes = f"takes {budget.making:,} before the engine's own arrays"
        raise budget.lack(budget.making, takes, budget.ways[-1], parts, "at least ")
    return budget


def _refuse_other_programs(program: Program) -> None:
    """Raise unless packed lists are streamed by a program; one GPU says so when it lacks memory."""
    traits = traits_of(program, weighted=False)
    if not (traits.plain and traits.growing_scores):
        raise ValueError(
            "devices: packed lists are streamed to several GPUs by label_propagation alone, not by "
            f"{type(program).__name__}; pass graph.to_graph(), or leave devices out"
        )


def _are_streamed(budget: Budget) -> bool:
    """Tell whether GPUs that share a graph have its lists streamed; raise if they cannot hold them.

    What they hold together they do not stream, unless they are to.
    """
    if budget.ways == ("streamed plain",):
        return True
    try:
        budget.parts.check()
    except LackOfMemory:
        if budget.options.streams_to is None or budget.options.way != "auto":
            raise
        return True
    return False


def _check_host(graph: BaseGraph, program: Program, options: Options) -> None:
    """Raise if lists that a GPU reads do not fit host memory once more, pinned."""
    both = graph.directed and options.direction == "both"
    form = "compressed" if graph.scheme and not both else "plain"
    readers = wants_readers(graph, program, options, form)
    an_entry = bytes_an_entry(graph) if options.way == "hybrid" else bytes_streamed(graph)
    lists = int(graph.number_of_edges * an_entry * (2 if both else 1))
    if form == "compressed":  # each at a word of its own
        lists = graph.nbytes + 2 * graph.number_of_vertices
    elif graph.directed and readers and not both:
        lists += graph.number_of_edges * graph.index_dtype.itemsize
    which = options.direction if graph.directed else None
    traits = traits_of(program, weighted=graph.weights is not None)
    skips = traits.skip_inactive and options.skip_inactive
    read = form == "compressed" or (skips and not traits.plain)
    kept = graph._derived.get(("kept", which), {}).get("strips")
    there = kept is not None and (form == "compressed" or kept[1].bytes_an_entry == an_entry)
    if not read or there:
        lists = 0  # gathered if need be; or there already, unless it was of other classes
    needed = lists + bytes_to_make(graph, options, form, readers)
    if needed >= LITTLE and needed > (free := memory_free("cpu")):
        how = "copied in the order of the strips, and pinned" if lists else "made in another form"
        raise LackOfMemory(
            f"graph: to stream the lists of its {graph.number_of_vertices:,} vertices and "
            f"{graph.number_of_edges:,} entries to the gpu takes {needed:,} bytes of host memory "
            f"(they are {how}), {needed - free:,} more "
            "than are free there; free some, or use device='cpu', which streams them from where "
            "they lie"
        )


def wants_readers(graph: BaseGraph, program: Program, options: Options, form: str) -> bool:
    """Tell whether a run asks for the readers of a vertex, whose rows may have to be made."""
    if program._asks_for_readers:
        return True
    traits = traits_of(program, weighted=graph.weights is not None)
    there = _source_there(graph, form, options)
    if form == "compressed" and options.direction == "out" and traits.plain and (
        there is None or "transpose" not in there._derived
    ):  # fmt: skip
        return False  # see `CompressedGraph.readers`
    return traits.skip_inactive and options.skip_inactive


def _taken(graph: BaseGraph, workload: Workload) -> int:
    """Add up what is in memory of the graph, and of what the run has made of it."""
    if workload.rows.form == "compressed" and isinstance(
        getattr(workload.rows.weights, "codes", workload.rows.weights), np.ndarray
    ):
        _ = workload.rows.entry_starts  # which the first weights that are read would make
    return _in_memory(graph, [workload.rows, workload.readers], workload.id_words)


def taken_already(graph: BaseGraph, options: Options, form: str, readers: bool) -> int:
    """Add up what `_taken` will that is in memory before a run, kept from others."""
    source = _source_there(graph, form, options)
    rows: list[Rows] = []
    if source is None:
        return _in_memory(graph, rows, None)
    if source.directed:
        if "in" in (options.direction, REVERSE[options.direction] if readers else None):
            rows += [one.rows("out") for one in [source._derived.get("transpose")] if one]
        if options.direction == "both" and "both" in source._derived:
            rows.append(source.rows("both"))
    words = source._derived.get("id words") if hashes(options) else None
    return _in_memory(graph, [source.rows("out"), *rows], words)


def _source_there(graph: BaseGraph, form: str, options: Options) -> BaseGraph | None:
    """Return what `in_form` does; None: that would have to be made."""
    if form == "compressed" and not graph.scheme:
        return graph._derived.get("packed")
    if form == "plain" and graph.scheme and not decoded_for_good(graph, options):
        return graph._derived.get("plain")
    return graph


def _in_memory(graph: BaseGraph, rows: list[Rows], id_words: IdWords | None) -> int:
    """Add up the arrays of a graph and of what is made of it, each once, as far as in memory."""
    arrays = {id(array): array for one in (graph.rows("out"), *rows) for array in one.arrays()}
    words = None if id_words is None else id_words.words
    if not any(words is getattr(column, "values", None) for column in graph.vertices.columns):
        arrays[id(words)] = words
    return memory_taken(*arrays.values())
