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

from glp_rapids.jit.cuda import bound, kernel, multiprocessors
from glp_rapids.jit.launch import launch
from glp_rapids.outofcore import double_buffer, pinned
from glp_rapids.outofcore.both_ends import BothEnds, Strip, units_of
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
# Strips of a class, so that the host finds something to take; of each the copy takes so many
# seconds at least, in which the next is asked for.
STRIPS_A_CLASS, COPY = 10, 3e-4
MEASURED, BUS = 8 << 20, 55e9  # bytes, and bytes a second where nothing is measured
# The GPU waits until the host has taken such a share of what it may, for tests.
HEAD_START = 0.0


def array_of(argument: Any) -> Any:
    """Return the array that a kernel's argument wraps."""
    return getattr(argument, "array", argument)


_speeds: dict[tuple, float] = {}


def bus_speed(entries: pinned.HostArray, memory: int | None, xp: Any) -> float:
    """Return how many bytes a second come to the device from pinned memory, measured once.

    ``memory``: bytes that there are for it; None: enough.
    """
    size = min(MEASURED, entries.array.nbytes, MEASURED if memory is None else memory // 8)
    if xp is np or size < MEASURED:
        return BUS
    key = xp.cuda.Device().id, double_buffer.TIMES
    if key not in _speeds:
        host = entries.array.view(np.uint8)[:size]
        there, seconds = xp.empty(size, np.uint8), []
        for _ in range(3):
            xp.cuda.get_current_stream().synchronize()
            begin = time.perf_counter()
            for _ in range(double_buffer.TIMES):
                pinned.copy(there, host, xp)
            xp.cuda.get_current_stream().synchronize()
            seconds.append(time.perf_counter() - begin)
        _speeds[key] = size / min(seconds)
    return _speeds[key]


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
        self._parted: dict[tuple[int, bool], list[tuple]] = {}
        self._ahead: deque[tuple[Class, Strip]] = deque()  # strips on their way, as they come
        super().__init__(workload, compiled, fields)

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
        arrays = (value for value in self._fields.values() if getattr(value, "ndim", 0))
        return max(4, *(array[:1].nbytes for array in arrays))

    def _sizes_of_strips(self, fixed: int, an_entry: int) -> tuple[int, int]:
        layout = self._layout
        stays, a_strip = super()._sizes_of_strips(fixed, an_entry)
        if layout.gathered or stays >= layout.number_of_entries:
            return stays, a_strip
        least = int(COPY * bus_speed(layout.entries, self._workload.memory, self._xp)) // an_entry
        parted = max(layout.largest_class // STRIPS_A_CLASS, least)
        return stays, max(min(a_strip, parted), layout.longest_row, 1)

    def _make_buffer(self) -> None:
        super()._make_buffer()
        layout, xp = self._layout, self._xp
        if layout.gathered or not self._coming:
            return  # nothing lies in the order of the plan, or nothing is streamed
        positions = self._most_positions()
        self._host = self._kept_share(positions)
        self._host.begin(self._on_host, self._fields)
        self._buffer = xp.empty(positions * self._widest(), np.uint8)
        self._copy = partial(pinned.copy, xp=xp)
        if xp is not np:
            self._there = xp.cuda.Event(disable_timing=True)

    def _kept_share(self, positions: int) -> HostShare:
        """Return the host's part, of an earlier run if there is one; who finds none makes it."""
        self._key_of_share = "hybrid", self._compiled.digest, positions
        share = self._on_host.kept.pop(self._key_of_share, None)
        if share is None or share.layout is not self._layout:
            scores = None
            if not self._compiled.traits.default_update:
                scores = array_of(self._workspace.run.winner_score).dtype
            share = HostShare(
                self._on_host, self._fields, self._layout, positions, scores, self._device
            )
        return share

    # ------------------------------------------------------------ sweeps

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps."""
        with ThreadPoolExecutor(1, "glp_rapids hybrid") as self._pool:
            super().advance(schedule, sweeps)
        if self._host is not None and schedule.over and not self._failure:
            self._on_host.kept[self._key_of_share] = self._host

    def _sweep_at_once(self, schedule: Schedule, sweeps: int) -> None:
        self._knows = False
        super()._sweep_at_once(schedule, sweeps)

    def _sweep_in_strips(self, schedule: Schedule, fetched: set[int]) -> None:
        """Lead one sweep, class by class."""
        classes = [] if self._host is None else list(self._classes(self._now[0].span))
        if not any(one.left.units.size > 1 for one in classes):  # the host has no part
            self._knows = False
            super()._sweep_in_strips(schedule, fetched)
            return
        how, before = self._begin(schedule, 1)
        self._prepare(how)
        if not self._knows:
            self._host.refresh(self._fields)
            self._knows, self._told = True, None
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
        key = span, self._loaded
        if key not in self._parted:
            self._parted[key] = list(self._parts(span))
        for first, end, strips, units in self._parted[key]:
            yield Class(first, end, BothEnds(strips, units))

    def _parts(self, span: int) -> Iterator[tuple[int, int, list[Strip], np.ndarray]]:
        """Yield where each class begins and ends, its strips, and units for the host."""
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
            # Of the last class that is merged the host takes what is streamed, hubs apart; and
            # nothing of the first strips, which have been asked for by then.
            last = [strip for strip in range(end - a_class, end) if streamed[strip]]
            of_class = [strip.number for strip in strips if streamed[strip.number]]
            lowest = rear
            if last and len(of_class) > SLOTS:
                hubs_end = int(layout.ends[end // a_class - 1, HUBS])
                lowest = int(found.positions[max(last[0], of_class[SLOTS])])
                lowest = min(max(lowest, hubs_end), rear)
            yield first, end, strips, units_of(layout.starts, strips, lowest, rear)

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
        left, positions, starts = one.left, self._strips.positions, self._layout.starts
        job = self._tell_host(left)
        while HEAD_START and job and not job.done() and left.share_of_host < HEAD_START:
            time.sleep(1e-4)
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
            updated = not coming and left.over and left.share_of_host == 0
            end = one.end if updated else end
            filled = strip.number not in fetched
            self._step(first, end, slot, filled, last_of_sweep and updated, until, updated)
            if slot is not None:
                self._transfers.give_back(slot)
            first = end
        if job is not None:
            job.result()
        if not updated:
            self._tell_gpu(left)
            until = left.rear
            if first == one.end:  # all are evaluated
                first, until = one.end - 1, -1
            self._step(first, one.end, None, True, last_of_sweep, until, True)
        self._told = tuple(positions[[one.first, one.end]].tolist())
        self._evaluated += np.diff(starts[[self._told[0], left.rear, self._told[1]]])

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
        told, everybody = self._told, self._now[2]
        lowest, rear = int(left.units[-1]), int(left.units[0])
        if told is None and lowest == rear:
            return None
        if told is not None:
            for name in self._host.by_vertex:
                self._bring(self._fields[name], *told, self._host.staged[name])
        if not everybody:
            self._bring(self._workspace.slack, lowest, rear, self._host.known.slack)
            self._copy(self._host.known.tied, array_of(self._workspace.run.tied)[lowest:rear])
        self._told = None
        return self._pool.submit(self._do_units, self._here(), told, left)

    def _do_units(
        self, come: Callable[[], None], told: tuple[int, int] | None, left: BothEnds
    ) -> None:
        """Evaluate units from the rear of a class, as long as there are any."""
        come()
        if told is not None:
            self._host.note(*told)
        if left.units.size > 1:
            self._host.evaluate(*self._now, left)

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

    def _bring(self, values: Any, first: int, last: int, there: np.ndarray) -> None:
        """Copy the rows of some positions to where the host finds them."""
        width = int(np.prod(values.shape[1:]))
        size = (last - first) * width
        if not size:
            return
        taken = self._buffer[: size * values.itemsize].view(values.dtype)
        launch(
            TAKE, self._blocks(size), THREADS, self._workspace.plan_arrays.vertices,
            np.int64(first), np.int64(last), np.int64(width), bound(values.reshape(-1)),
            bound(taken),
        )  # fmt: skip
        self._copy(there, taken)

    def _tell_gpu(self, left: BothEnds) -> None:
        """Write the host's outcome of a class to where the update finds it."""
        lowest, first, last = int(left.units[-1]), left.rear, int(left.units[0])
        if first == last:
            return
        run, place = self._workspace.run, slice(first - lowest, last - lowest)
        outcome = self._host.outcome
        self._copy(array_of(run.winner)[first:last], outcome.winner[place])
        self._copy(array_of(run.tied)[first:last], outcome.tied[place])
        if outcome.score.size:
            self._copy(array_of(run.winner_score)[first:last], outcome.score[place])
        if self._now[1]:
            slack = self._buffer[: 4 * (last - first)].view(np.int32)
            self._copy(slack, outcome.slack[place])
            launch(
                PUT, self._blocks(last - first), THREADS, self._workspace.plan_arrays.vertices,
                np.int64(first), np.int64(last), bound(slack), bound(self._workspace.slack),
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
