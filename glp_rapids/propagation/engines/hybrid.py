"""The hybrid engine: a GPU evaluates a class from the front, the host's cores from the rear.

Lists lie in host memory and are streamed to the GPU strip by strip, as `gpu_streamed` does; what
the bus cannot bring in time the host's cores evaluate where it lies (Kozawa et al., CIKM 2017,
section 4.4). Both evaluate the labels as they stand before a class is updated, so who takes which
rows changes nothing. Then the host's outcome goes to the GPU, in the order of the plan: what wins,
slack, ties; the GPU updates the class, and the host takes over the labels and state of its
vertices. The GPU goes on with the next class in the meantime.

The GPU asks for a strip as soon as the one that had its slot is evaluated, so strips are taken as
fast as the bus brings them, and the host finds what is left at the other end. Hubs are for the GPU.
Sweeps that a kernel leads, for little is active, are the GPU's alone.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.device import to_host
from glp_rapids.jit.cuda import bound, kernel, multiprocessors
from glp_rapids.jit.launch import launch
from glp_rapids.outofcore import pinned
from glp_rapids.outofcore.both_ends import BothEnds, Strip
from glp_rapids.outofcore.double_buffer import SLOTS
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines.gpu_streamed import StreamedGpuEngine
from glp_rapids.propagation.engines.host_share import HostShare
from glp_rapids.propagation.kernels.gpu import host_rows
from glp_rapids.propagation.kernels.gpu.plan import HUBS
from glp_rapids.propagation.kernels.gpu.shared_memory import THREADS
from glp_rapids.propagation.kernels.gpu.streamed import EVERYTHING, Step
from glp_rapids.propagation.schedule import Schedule, spans_of
from glp_rapids.propagation.workload import Workload

TAKE = kernel(host_rows.take_rows, "rows for the host")
PUT = kernel(host_rows.put_rows, "rows of the host")
# Bytes of a strip: so many a class that the host finds something to take, of which the bus brings
# 52 GB/s still.
STRIPS_A_CLASS, LEAST = 12, 2 << 20
# Entries a second before anything is measured: of the bus, and of sixteen cores.
OF_BUS, OF_HOST = 13e9, 1e9


# The host's share of what both do in a time, for tests and benchmarks; None: as it is measured.
SHARE: float | None = None


def array_of(argument: Any) -> Any:
    """Return the array that a kernel's argument wraps."""
    return getattr(argument, "array", argument)


class Class(NamedTuple):
    """A class of a sweep: its strips, from ``first`` up to ``end``, and what is left of it."""

    first: int
    end: int
    left: BothEnds


class HybridEngine(StreamedGpuEngine):
    """Run one program on one graph in host memory with a GPU and the host's cores."""

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        self._on_host = workload
        self._host: HostShare | None = None
        self._told: tuple[int, int] | None = None  # positions that the host knows not yet
        self._knows = False  # of all others their labels and state
        self._evaluated = np.zeros(2, np.int64)  # entries, by the GPU and by the host
        self._rates = [OF_BUS, OF_HOST]
        self._ahead: deque[tuple[Class, Strip]] = deque()  # strips on their way, as they come
        super().__init__(workload, compiled, fields)
        self._by_vertex = [name for name in fields if self._is_by_vertex(name)]

    def _is_by_vertex(self, name: str) -> bool:
        """Tell whether an update of a vertex writes its own row of a field."""
        number, value = self._workload.graph.number_of_vertices, self._fields[name]
        return name != "volume" and getattr(value, "ndim", 0) > 0 and value.shape[0] == number

    # ------------------------------------------------------------ memory

    def _most_positions(self) -> int:
        """Return how many positions a class of a sweep has at the most."""
        bounds, most = self._layout.bounds, 0
        for span in spans_of(self._workload.classes):
            ends = np.append(bounds[:-1:span], bounds[-1])
            most = max(most, int(np.diff(ends).max(initial=0)))
        return max(most, 1)

    def _bytes_beside(self) -> int:
        """Count the buffer through which the host and the GPU tell one another of a class."""
        return self._most_positions() * self._widest()

    def _widest(self) -> int:
        """Return the bytes of what is told of a vertex at a time."""
        fields = self._fields
        return max(4, *(fields[name][:1].nbytes for name in fields if self._is_by_vertex(name)))

    def _sizes_of_strips(self, fixed: int, an_entry: int) -> tuple[int, int]:
        layout = self._layout
        stays, a_strip = super()._sizes_of_strips(fixed, an_entry)
        if layout.gathered or stays >= layout.number_of_entries:
            return stays, a_strip
        parted = max(layout.largest_class // STRIPS_A_CLASS, LEAST // an_entry)
        return stays, max(min(a_strip, parted), layout.longest_row, 1)

    def _make_buffer(self) -> None:
        super()._make_buffer()
        layout = self._layout
        if layout.gathered or not self._coming:
            return  # nothing lies in the order of the plan, or nothing is streamed
        xp, positions = self._xp, self._most_positions()
        host = {
            name: to_host(value) if getattr(value, "ndim", 0) else value
            for name, value in self._fields.items()
        }
        scores = array_of(self._workspace.run.winner_score)
        score_type = None if self._compiled.traits.default_update else scores.dtype
        self._host = HostShare(self._on_host, host, layout, positions, score_type, self._device)
        self._knows = True
        self._buffer = xp.empty(positions * self._widest(), np.uint8)
        self._staged = {
            name: pinned.empty(positions * row.size, row.dtype, self._device).array
            for name in self._by_vertex
            for row in [self._fields[name][:1]]
        }
        self._staged |= {
            "slack": pinned.empty(positions, np.int32, self._device).array,
            "tied": pinned.empty(positions, np.uint8, self._device).array,
        }
        self._copy = partial(pinned.copy, xp=xp)
        if xp is not np:
            self._there = xp.cuda.Event(disable_timing=True)

    # ------------------------------------------------------------ sweeps

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps."""
        with ThreadPoolExecutor(1, "glp_rapids hybrid") as self._pool:
            super().advance(schedule, sweeps)

    def _sweep_at_once(self, schedule: Schedule, sweeps: int) -> None:
        self._knows = False
        super()._sweep_at_once(schedule, sweeps)

    def _sweep_in_strips(self, schedule: Schedule, fetched: set[int]) -> None:
        """Lead one sweep, class by class."""
        if self._host is None:
            super()._sweep_in_strips(schedule, fetched)
            return
        how, before = self._begin(schedule, 1)
        self._prepare(how)
        if not self._knows:
            for name in self._by_vertex:
                self._host.fields[name][:] = to_host(self._fields[name])
            if "volume" in self._fields:
                self._host.fields["volume"][:] = to_host(self._fields["volume"])
            self._knows, self._told = True, None
        classes = list(self._classes(self._now[0].span))
        self._loaded = True
        for one in classes:  # strips that were asked for at the end of the sweep before
            while len(self._ahead) < self._transfers.waiting and self._take(one):
                pass
        for number, one in enumerate(classes):
            try:
                self._do_class(classes[number:], fetched)
            except BaseException:
                one.left.close()  # so that the host ends with what it is at
                raise
        self._record(schedule, before)

    def _classes(self, span: int) -> Iterator[Class]:
        """Yield the classes of a sweep that updates ``span`` neighbouring ones together."""
        layout, found = self._layout, self._strips
        streamed = self._sizes > 0
        comes = streamed if self._loaded else np.diff(found.entries) > 0
        number, a_class = found.place.size, found.a_class
        for first in range(0, number, span * a_class):
            end = min(first + span * a_class, number)
            strips = [
                Strip(strip, *found.positions[strip : strip + 2].tolist())
                for strip in range(first, end)
                if comes[strip]
            ]
            rear = int(found.positions[end])
            # Of the last class that is merged the host takes what is streamed, hubs apart.
            last = [strip for strip in range(end - a_class, end) if streamed[strip]]
            lowest = rear
            if last:
                hubs_end = int(layout.ends[end // a_class - 1, HUBS])
                lowest = min(max(int(found.positions[last[0]]), hubs_end), rear)
            yield Class(first, end, BothEnds(strips, layout.starts, lowest, rear))

    def _take(self, one: Class) -> bool:
        """Take the next strip of a class for the GPU."""
        strip = one.left.from_front()
        if strip is None:
            return False
        self._ahead.append((one, strip))
        return True

    def _ask_ahead(self, classes: list[Class], fetched: set[int]) -> None:
        """Ask for strips until each slot has one, of the first classes that have any left."""
        for one in classes:
            while len(self._ahead) < SLOTS:
                self._transfers.wait_for_slot()  # so that the host may take what has to wait
                if not self._take(one):
                    break
                strip = self._ahead[-1][1]
                self._ask(strip.number, strip.number in fetched, strip.last)

    def _do_class(self, classes: list[Class], fetched: set[int]) -> None:
        """Evaluate the first of the classes that are left from both ends, and update it."""
        one, last_of_sweep = classes[0], len(classes) == 1
        left, positions = one.left, self._strips.positions
        begin, rear, lowest = time.perf_counter(), left.rear, left.lowest
        job = self._tell_host(left)
        first, updated = one.first, False
        while not updated:
            self._ask_ahead(classes, fetched)
            if not self._ahead or self._ahead[0][0] is not one:
                break
            strip = self._ahead.popleft()[1]
            slot = self._transfers.take()
            end, until = strip.number + 1, EVERYTHING
            if strip.last < positions[end]:
                until = strip.last
            coming = bool(self._ahead) and self._ahead[0][0] is one
            updated = not coming and left.over and left.rear == rear  # the host has no part
            end = one.end if updated else end
            filled = strip.number not in fetched
            self._step(first, end, slot, filled, last_of_sweep and updated, until, updated)
            if slot is not None:
                self._transfers.give_back(slot)
            first = end
        seconds = 0.0 if job is None else job.result()
        if not updated:
            self._tell_gpu(left.rear, rear, lowest)
            until = left.rear
            if first == one.end:  # all are evaluated
                first, until = one.end - 1, -1
            self._step(first, one.end, None, True, last_of_sweep, until, True)
        self._told = tuple(positions[[one.first, one.end]].tolist())
        starts = self._layout.starts
        by_gpu, by_host = np.diff(starts[[self._told[0], left.rear, rear]]).tolist()
        self._note_rates(by_gpu, time.perf_counter() - begin, by_host, seconds)

    def _step(
        self, first: int, end: int, slot: int | None, filled: bool, last: bool, until: int,
        updates: bool,
    ) -> None:  # fmt: skip
        """Launch the kernel for some strips."""
        self._reset()
        numbers = map(np.int64, (first, end, slot or 0))
        self._launch(Step(*numbers, bool(filled), bool(last), np.int64(until), bool(updates)))

    # ------------------------------------------------------------ what one tells the other

    def _tell_host(self, left: BothEnds) -> Future | None:
        """Send the host what it lacks, and let it begin with a class; None: there is no part."""
        told, (_, _, everybody) = self._told, self._now
        lowest, rear = left.lowest, left.rear
        if told is None and lowest == rear:
            return None
        if told is not None:
            for name in self._by_vertex:
                self._bring(name, self._fields[name], *told)
        run = self._workspace.run
        if not everybody:
            self._bring("slack", self._workspace.slack, lowest, rear)
            self._copy(self._staged["tied"], array_of(run.tied)[lowest:rear])
        self._told = None
        return self._pool.submit(self._do_rows, self._here(), told, left, lowest, rear)

    def _do_rows(
        self, come: Callable[[], None], told: tuple[int, int] | None, left: BothEnds, lowest: int,
        rear: int,
    ) -> float:  # fmt: skip
        """Evaluate rows from the rear of a class, as long as there are any; return the seconds."""
        come()
        host, (rule, skips, everybody) = self._host, self._now
        number, staged = rear - lowest, self._staged
        if told is not None:
            size = told[1] - told[0]
            host.note(*told, {
                name: staged[name][: size * self._width(name)] for name in self._by_vertex
            })  # fmt: skip
        if not everybody:
            host.begin(lowest, rear, staged["slack"][:number], staged["tied"][:number])
        elif skips:
            host.begin(lowest, rear, None, None)
        begin = time.perf_counter()
        while (rows := left.from_rear(self._share())) is not None:
            host.evaluate(rule, skips, lowest, *rows)
        return time.perf_counter() - begin

    def _here(self) -> Callable[[], None]:
        """Return what waits, in another thread, for all that the stream has to do so far."""
        if self._xp is np:
            return lambda: None
        device, event = self._xp.cuda.Device(), self._there
        event.record()

        def wait() -> None:
            with device:
                event.synchronize()

        return wait

    def _width(self, name: str) -> int:
        """Return how many values a vertex has in a field."""
        return int(np.prod(self._fields[name].shape[1:]))

    def _share(self) -> float:
        """Return the host's share of what both do in a time."""
        of_gpu, of_host = self._rates
        if SHARE is not None:
            return SHARE
        return of_host / (of_gpu + of_host)

    def _note_rates(self, of_gpu: int, seconds: float, of_host: int, host_seconds: float) -> None:
        """Learn how fast both are, each class a little."""
        self._evaluated += of_gpu, of_host
        for number, (entries, taken) in enumerate(((of_gpu, seconds), (of_host, host_seconds))):
            if entries and taken > 0:
                self._rates[number] = 0.7 * self._rates[number] + 0.3 * entries / taken

    def _bring(self, name: str, values: Any, first: int, last: int) -> None:
        """Copy the rows of some positions to where the host finds them."""
        width = int(np.prod(values.shape[1:]))
        size = (last - first) * width
        if not size:
            return
        taken = self._buffer[: size * values.itemsize].view(values.dtype)
        number = np.int64(first), np.int64(last), np.int64(width)
        launch(
            TAKE, self._blocks(size), THREADS, self._workspace.plan_arrays.vertices,
            *number, bound(values.reshape(-1)), bound(taken),
        )  # fmt: skip
        self._copy(self._staged[name], taken)

    def _tell_gpu(self, first: int, last: int, lowest: int) -> None:
        """Write the host's outcome of some positions to where the update finds it."""
        if first == last:
            return
        run, place = self._workspace.run, slice(first - lowest, last - lowest)
        for name in ("winner", "tied", "winner_score"):
            outcome = self._host.outcome[name]
            if outcome.size:
                self._copy(array_of(getattr(run, name))[first:last], outcome[place])
        if self._now[1]:
            slack = self._buffer[: 4 * (last - first)].view(np.int32)
            self._copy(slack, self._host.outcome["slack"][place])
            launch(
                PUT, self._blocks(last - first), THREADS,
                self._workspace.plan_arrays.vertices, np.int64(first), np.int64(last),
                bound(slack), bound(self._workspace.slack),
            )  # fmt: skip

    def _blocks(self, items: int) -> int:
        return max(1, min(-(-items // THREADS), 8 * multiprocessors()))

    # ------------------------------------------------------------ what it says of itself

    def _note_failure(self) -> None:
        super()._note_failure()
        if self._host is not None:
            self._failure = min(self._failure, self._host.failure())

    def facts(self) -> dict[str, Any]:
        """Return what the report of a run says besides: how much the host evaluated, too."""
        total = int(self._evaluated.sum())
        share = int(self._evaluated[1]) / total if total else 0.0
        return {**super().facts(), "share_of_host": share}
