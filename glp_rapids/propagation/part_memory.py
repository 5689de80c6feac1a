"""How much memory each of several GPUs takes that share a graph.

Each holds the rows of its range, labels and state of all, the plan and the winners of its range,
and an inbox for the winners of all; who reads its vertices if the graph is directed, or, where
winners are carried (by NCCL or copies), who of its range reads each vertex. What a part takes is
bounded from above, but for the lists, which are counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from glp_rapids.common.scans import number_where
from glp_rapids.device import (
    LITTLE,
    LackOfMemory,
    array_module,
    free_on_gpu,
    gpu_of,
    memory_free,
    to_host,
)
from glp_rapids.jit.cuda import current_gpu
from glp_rapids.multigpu.partition import ranges_kept
from glp_rapids.multigpu.peers import reach_one_another
from glp_rapids.propagation.engines.partitioned_gpu import how_of
from glp_rapids.propagation.gpu_memory import (
    A_PLANNED,
    AN_INSPECTED,
    LEAST_AT_ONCE,
    SMALL,
    arrays_beside_lists,
    bytes_an_entry,
    bytes_on_gpu,
)
from glp_rapids.propagation.kernels.gpu.update import OF_BLOCK
from glp_rapids.propagation.making_memory import bytes_to_make
from glp_rapids.propagation.memory import OF_FREE, wants_readers
from glp_rapids.propagation.program import traits_of
from glp_rapids.propagation.subject import LONG, largest_expected
from glp_rapids.propagation.workload import hashes

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.graph.rows import Rows
    from glp_rapids.propagation.options import Options
    from glp_rapids.propagation.program import Program, Traits

Part = dict[str, int]  # bytes, by what for
STATE = "labels, state and slack of all"


@dataclass
class Parts:
    """What the part of each GPU takes, and what it may: ``rooms``; None: nobody knows."""

    graph: BaseGraph
    options: Options
    parts: list[Part]
    rooms: list[int | None]
    state: int  # of the labels and the state, as far as known before they are made

    def check(self, state: int = 0) -> int:
        """Return the bytes that the largest part takes; raise if one does not fit its GPU.

        ``state``: bytes of the labels and the state, once they are there.

        Raises
        ------
        LackOfMemory
            A part takes more than the limit, or than is free.
        """
        more = max(state - self.state, 0)
        sizes = [sum(part.values()) + more for part in self.parts]
        rooms = [
            size if room is None else room for size, room in zip(sizes, self.rooms, strict=True)
        ]
        lacking, rank = max((sizes[rank] - rooms[rank], rank) for rank in range(len(sizes)))
        if lacking > 0:
            raise self._lack(rank, lacking, rooms[rank], more)
        return max(sizes)

    def _lack(self, rank: int, lacking: int, room: int, more: int) -> LackOfMemory:
        graph, devices = self.graph, self.options.devices or ()
        given, mend = f"memory_limit={room:,} bytes is", "raise memory_limit"
        if room != self.options.memory_limit:
            given, mend = f"the {room:,} bytes that are free there, or held, are", "free some"
        part = {**self.parts[rank], STATE: self.parts[rank][STATE] + more}
        taken = "; ".join(f"{name}: {size:,}" for name, size in part.items())
        return LackOfMemory(
            f"graph: {given} {lacking:,} too little on GPU {devices[rank]} for its part of "
            f"{graph.number_of_vertices:,} vertices and {graph.number_of_edges:,} entries, of "
            f"which devices={list(devices)} make {len(self.parts)}: it takes up to "
            f"{sum(part.values()):,} ({taken}); {mend}, name more GPUs, or have the lists streamed "
            "to them (a graph in host memory, graph.to('cpu'), and way='auto')"
        )


def parts_of(graph: BaseGraph, program: Program, options: Options) -> Parts:
    """Count what the part of each GPU takes, and what is free there.

    Raises
    ------
    LackOfMemory
        Rows in another direction, which are made first, take more than host memory has.
    """
    if graph.device == "cpu":
        _check_host(graph, program, options)
    traits = traits_of(program, weighted=graph.weights is not None)
    skips = traits.skip_inactive and options.skip_inactive
    rows, devices = graph.rows(options.direction), options.devices or ()
    readers = graph.readers(options.direction, make=not traits.plain) if skips else None
    skips, by_class = readers is not None, how_of(devices) != "peer stores"
    apart = skips and (by_class or readers is not rows)
    vertices, item = graph.number_of_vertices, graph.index_dtype.itemsize
    state = item + program._bytes_a_vertex(graph.index_dtype) + 8 * program.count_volumes
    classes = options.classes if options.update == "semi" else 1
    updated = largest_expected(vertices, classes)
    winners = 2 * updated * (2 * item + (0 if traits.default_update else 8))
    which = options.direction if graph.directed else None
    kept = graph.keep(("kept", which), dict)
    bounds = ranges_kept(kept, rows.indptr, devices)
    arrays = _arrays(graph, rows, bounds, traits, classes, hashes(options), kept)
    offsets, parts = 8 * (vertices + 1), []
    for (first, last), own in zip(pairwise(bounds), arrays, strict=True):
        entries, heard = (
            0 if lists is None else int(lists.indptr[last]) - int(lists.indptr[first])
            for lists in (rows, readers)
        )
        made_before = max((last - first) * A_PLANNED, AN_INSPECTED * LEAST_AT_ONCE)
        parts.append({
            "its rows": entries * bytes_an_entry(graph) + offsets,
            "who reads its vertices": apart * (item * (entries if by_class else heard) + offsets),
            STATE: vertices * (state + 4 * skips),
            "their order, and winners": max(own, made_before) + winners + SMALL,
        })  # fmt: skip
    if graph.device == "gpu":  # where the graph lies its rows are views
        home = _home(graph)
        lists = graph.number_of_edges * bytes_an_entry(graph) * (1 + graph.directed)
        for part, device in zip(parts, devices, strict=True):
            if device == home:
                part["its rows"] = lists + offsets
    return Parts(graph, options, parts, rooms_of(graph, options), vertices * state)


def _arrays(
    graph: BaseGraph, rows: Rows, bounds: list[int], traits: Traits, classes: int, hashed: bool,
    kept: dict[tuple, Any],
) -> list[int]:  # fmt: skip
    """Count what the engine of each rank makes beside lists and slack, tables of hubs included."""
    key = "arrays of ranges", tuple(bounds), traits, classes
    if key in kept:
        return kept[key]
    xp, counted = array_module(rows.indptr), []
    words = graph.id_words(hashed)
    for first, last in pairwise(bounds):
        degrees = xp.diff(rows.indptr[first : last + 1])
        long = xp.flatnonzero(degrees > LONG)
        subject = SimpleNamespace(
            index_dtype=graph.index_dtype, listed=number_where(degrees),
            long_rows=(to_host(words.of(long + first)), to_host(degrees[long])),
        )  # fmt: skip
        entries = int(rows.indptr[last]) - int(rows.indptr[first])
        lists_of_readers = 16 * (entries // OF_BLOCK)
        counted.append(
            lists_of_readers + arrays_beside_lists(subject, traits, classes, False, entries)
        )
    kept[key] = counted
    return counted


def _check_host(graph: BaseGraph, program: Program, options: Options) -> None:
    readers = wants_readers(graph, program, options, "plain")
    needed = bytes_to_make(graph, options, "plain", readers)
    if needed >= LITTLE and needed > (free := memory_free("cpu")):
        raise LackOfMemory(
            f"graph: rows in another direction of its {graph.number_of_vertices:,} vertices and "
            f"{graph.number_of_edges:,} entries take {needed:,} bytes of host memory while they "
            f"are made, {needed - free:,} more than are free there; free some"
        )


def _home(graph: BaseGraph) -> int | None:
    """Return the GPU where a graph lies."""
    return gpu_of(graph.rows("out").indptr)


def shared_by_all(graph: BaseGraph, program: Program, options: Options) -> Options:
    """Let all GPUs of this machine share a graph, if their memory suffices.

    They have to reach one another's memory; else a run goes as ``options`` say.
    """
    devices = gpus_there()
    if len(devices) < 2:
        return options
    shared = replace(options, devices=devices)
    parts = parts_of(graph, program, shared)
    home = _home(graph) if graph.device == "gpu" else None
    if any(room is None for one, room in zip(devices, parts.rooms, strict=True) if one != home):
        return options  # nobody knows what is free
    try:
        parts.check()
    except LackOfMemory:
        return options
    return shared


def gpus_there() -> tuple[int, ...]:
    """Return all GPUs of this machine if they reach one another, else none."""
    import cupy

    devices = tuple(range(cupy.cuda.runtime.getDeviceCount()))
    return devices if reach_one_another(devices) else ()


def rooms_of(graph: BaseGraph, options: Options) -> list[int | None]:
    """Return what the part of each GPU may take: at most what is free there; None: nobody knows.

    What earlier runs left there counts as free. Where a graph lies nobody asks but for a limit:
    what is free there says little of what its part takes more.
    """
    devices, limit = options.devices or (), options.memory_limit
    home = _home(graph) if graph.device == "gpu" else None
    which = options.direction if graph.directed else None
    kept = graph.keep(("kept", which), dict)
    most: list[int | None] = []
    for rank, device in enumerate(devices):
        if device == home:
            most.append(limit)
            continue
        with current_gpu(int(device)):
            free = free_on_gpu()
        there = [value[rank] for key, value in kept.items() if key[:2] == ("parts", devices)]
        room = None if free is None else free - free // OF_FREE + bytes_on_gpu(there)
        most.append(min((one for one in (limit, room) if one is not None), default=None))
    return most
