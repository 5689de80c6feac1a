"""The GPU engine of lists in host memory: labels and state are on the device, lists come in strips.

A sweep in which much is active is led from here: the copy engine brings strip after strip into two
slots, the next while one is evaluated, also across classes and sweeps, and each is one launch. In a
sweep in which little is active a census says where it is cheaper to read single rows; if that is so
in all strips, several sweeps are one launch, which reads what it needs. As much of every class as
the limit allows, the longest rows first, or as many whole classes, stays on the device from the
start.

On the device are, beside labels and state, 16 bytes for each listed vertex (the plan), 9 to 17 (who
is active, winners), hashed ids, and the buffer. Vertices are sorted there, by 32 bytes each, before
there is a buffer; after a run nothing stays there, and lists stay pinned on the host.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from glp_rapids.device import LackOfMemory, device_of, to_device, to_host
from glp_rapids.graph.id_words import IdWords
from glp_rapids.jit.cuda import bound, gpu_target, multiprocessors, reduces_lanes
from glp_rapids.jit.launch import launch, prepared_together
from glp_rapids.outofcore import pinned
from glp_rapids.outofcore.double_buffer import SLOTS, DoubleBuffer
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines import fetched_rows, strips, strips_within, workspace
from glp_rapids.propagation.engines.gpu import PersistentEngine
from glp_rapids.propagation.engines.launched import clear
from glp_rapids.propagation.engines.strips import A_ROW, LINE, Layout
from glp_rapids.propagation.gpu_memory import SMALL
from glp_rapids.propagation.kernels.gpu import shared_memory, streamed, votes
from glp_rapids.propagation.kernels.gpu.arguments import Decoding, LaunchSchedule, Rows
from glp_rapids.propagation.kernels.gpu.census import BLOCKS_A_STRIP
from glp_rapids.propagation.kernels.gpu.plan import Limits, Plan, bins
from glp_rapids.propagation.kernels.gpu.shared_memory import THREADS
from glp_rapids.propagation.kernels.gpu.streamed import (
    ReadersApart,
    Step,
    StreamedLists,
    StripReaders,
)
from glp_rapids.propagation.schedule import Schedule, activates_all
from glp_rapids.propagation.workload import TooLittleMemory, Workload

# Bytes of a strip: of a part of a class; of a whole class, so that who changed is found in it when
# the class is updated; and what neither need be smaller than for copies at full speed.
MOST, MOST_OF_CLASS, LEAST = 64 << 20, 4 << 30, 16 << 20
AT_ONCE = 4  # sweeps of one launch, before another census
# Of several strips a class, all but the last are read over the bus for rows of changed vertices.
# From one in so many changes on it takes longer than to read everything in the next sweep.
FEW = 16

_built: dict[tuple, tuple] = {}


class StreamedGpuEngine(PersistentEngine):
    """Run one program on one graph in host memory with a GPU."""

    _looks_at_names = False
    _decoding: Decoding | None = None  # lists are plain
    _share = strips.ALONE  # of each class, that this one evaluates
    _a_launch = fetched_rows.A_LAUNCH  # 0: what launches cost is no reason to fetch
    _beyond = 1  # words behind the last ones that a kernel may look at
    _laid_out = staticmethod(strips.laid_out)
    _how_laid_out: ClassVar[dict[str, bool]] = {}

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        self._device = device_of(fields["labels"])
        words = to_device(workload.id_words.words, self._device)
        id_words = IdWords(workload.id_words.first, words)
        workload = replace(workload, id_words=id_words, marks=False, active=None)
        self._apart = workload.readers is not workload.rows
        self._transfers: DoubleBuffer | None = None
        self._activated = False  # by the sweep before
        super().__init__(workload, compiled, fields)

    def _make_room(self, kept: dict[Any, Any]) -> None:
        """Let others' things be: nothing of this engine stays on the device."""

    # ------------------------------------------------------------ what is on the device

    def _kernels(self) -> tuple:
        rows, compiled = self._workload.rows, self._compiled
        weights = None if rows.weights is None else rows.weights.dtype.type
        index_type = rows.index_dtype.type
        key = (compiled.digest, index_type, weights, self._apart, shared_memory.TABLE_SLOTS,
               reduces_lanes(), self._decoding)  # fmt: skip
        if key not in _built:
            made = streamed.build(
                compiled, index_type, gpu_target(), weights, self._apart, self._decoding
            )
            _built[key] = *made, votes.build(compiled, index_type, gpu_target())
        propagate, start, self._census, functions = _built[key]
        return propagate, start, functions

    def _plan(self, limits: Limits) -> Plan:
        workload, xp = self._workload, self._xp
        rows, classes = workload.rows, workload.classes
        binned = bins(-(-rows.number_of_edges // classes), limits)
        words = workload.id_words
        key = classes, int(words.first), words.words.size > 1, binned, self._how_laid_out
        kept = workload.kept.get("strips")
        self._planned = kept is None or kept[0] != key
        if self._planned:
            kept = None  # pinned memory is scarce: first let go, then make
            for name in ("strips", "hybrid"):  # what is named hybrid holds the layout, too
                workload.kept.pop(name, None)
            given = rows, classes, workload.id_words, binned, xp
            kept = key, self._laid_out(*given, **self._how_laid_out)
            if not kept[1].gathered:  # next time there may be room
                workload.kept["strips"] = kept
        self._layout: Layout = kept[1]
        self._reader_lists, readable = None, self._layout.pinned
        if self._apart and workload.skip and readable:
            self._reader_lists = strips.pinned_readers(workload, self._device)
            readable = self._reader_lists is not None and self._reader_lists.pinned
        if workload.skip and not readable:
            if not self._compiled.traits.plain:
                raise LackOfMemory(
                    f"graph: {self._layout.entries.array.nbytes:,} bytes of host memory cannot be "
                    "pinned (too few are free, or ulimit -l?), from where a GPU would read who is "
                    "woken by this program; give skip_inactive=False, or device='cpu'"
                )
            # Who is skipped could not change: to evaluate everybody gives the same.
            self._workload = workload = replace(workload, skip=False)
        self._cut(limits)
        listed = strips.listed_on(xp, self._layout, self._strips)
        self._begin_copies()  # which go on while the rest of the plan is made
        return strips.plan_of(listed, self._layout, self._strips, classes, limits)

    def _cut(self, limits: Limits) -> None:
        """Cut the lists into strips, by what is left of the memory."""
        layout, workload, traits = self._layout, self._workload, self._compiled.traits
        number, memory = workload.graph.number_of_vertices, workload.memory
        words = SMALL + workload.id_words.nbytes
        others = words + self._bytes_beside()
        others += 8 * (number + 1) if self._apart and workload.skip else 0
        slack = number if workload.skip else 1

        def beside(found: strips.Strips | None) -> int:
            arrays = limits, found, self._functions, traits, slack
            return others + layout.bytes_of_arrays(*arrays)

        self._strips, taken = strips_within.cut_within(
            layout, memory, workload.caches, self._share, self._sizes_of_strips, beside,
            (others, slack, limits, traits, self._functions.types, MOST, MOST_OF_CLASS, LEAST),
        )  # fmt: skip
        planning = 0
        if self._planned:
            # offsets and words; then as much as words to sort them, or the lists
            planning = words + 16 * number + max(8 * number, layout.bytes_listed)
        self._predicted = max(taken, planning)
        if memory is None or self._predicted <= memory:
            return
        lists = strips_within.bytes_of(layout, self._strips.room)
        row = int(layout.longest_row * layout.bytes_an_entry)
        parts = {
            "the order of the rows, hashed ids, tables": taken - lists,
            f"two strips, of at least the longest row, {row:,} bytes": lists,
        }
        raise TooLittleMemory(self._predicted - memory, parts)

    def _bytes_beside(self) -> int:
        """Count the bytes of arrays beside lists that other engines have not."""
        return 0

    def _sizes_of_strips(self, fixed: int) -> tuple[int, int]:
        """Return how many entries stay on the device, and how many a strip has."""
        layout, workload = self._layout, self._workload
        memory, an_entry = workload.memory, layout.bytes_an_entry
        room = None if memory is None else int((memory - fixed) / an_entry)
        most = (int(size / an_entry) for size in (MOST, MOST_OF_CLASS, LEAST))
        return layout.sizes_of_strips(
            room, workload.caches, int(A_ROW / an_entry) + 1, *most, self._share.ranks
        )

    def _rows(self, plan: Plan) -> tuple[Any, Any, Any]:
        xp, layout, found = self._xp, self._layout, self._strips
        weights = none = xp.zeros(1, np.int64)
        if layout.weights is not None:
            weights = self._on_device(layout.weights)
        self._moved, self._readers_moved = xp.zeros(1, np.int64), xp.zeros(1, np.int64)
        entries = layout.shown(self._on_device(layout.entries))
        lists = StreamedLists(
            entries=entries,
            weights=bound(weights),
            first=bound(to_device(found.entries[:-1].copy(), self._device)),
            place=bound(to_device(found.place, self._device)),
            slots=bound(to_device(np.array(found.slots, np.int64), self._device)),
            moved=bound(self._moved),
            packed=self._how_read(),
        )
        if self._apart:
            indptr, indices = none, xp.zeros(1, self._workload.rows.index_dtype)
            if self._workload.skip:
                indptr = to_device(np.asarray(self._workload.readers.indptr), self._device)
                indices = self._reader_lists.on_device(xp)
            readers = ReadersApart(bound(indptr), bound(indices), bound(self._readers_moved))
        else:
            readers = StripReaders(
                bound(plan.starts), bound(plan.degrees), entries, np.int64(0), lists.moved, False
            )
        return None, readers, lists

    def _how_read(self) -> tuple:
        """Give what tells how lists are decoded: nothing of plain ones."""
        return (np.int64(0),)

    def _on_device(self, host: pinned.HostArray) -> Any:
        if host.pinned:
            return host.on_device(self._xp)
        return self._xp.zeros(1, host.array.dtype)  # nobody reads it: all is copied, none skipped

    def _begin_copies(self) -> None:
        """Make the buffer, of what stays on the device and two slots, and ask for what is first."""
        xp, layout, found = self._xp, self._layout, self._strips
        self._buffers = layout.buffers(found.room, self._beyond, xp)
        pairs = zip((layout.entries, layout.weights), self._buffers, strict=True)
        self._transfers = DoubleBuffer([pair for pair in pairs if pair[0] is not None], xp)
        self._sizes = np.diff(found.entries) * ((found.place < 0) & found.own)
        self._coming = np.flatnonzero(self._sizes).tolist()  # that take turns in the slots
        given = self._coming, self._sizes, layout.bytes_an_entry, self._a_launch
        self._all_fetched = not self._coming or (layout.pinned and fetched_rows.always(*given))
        self._loaded = False  # the front, whose place is its own
        if not self._all_fetched:
            self._ask_before()

    def _make_buffer(self) -> None:
        """Show the buffer to the kernel."""
        none, (indices, weights) = bound(self._xp.zeros(1, np.int64)), self._buffers
        self._workspace.rows = Rows(none, self._layout.shown(indices), bound(weights))

    # ------------------------------------------------------------ sweeps

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps, led from here or by the kernel."""
        end = len(schedule.changed) + sweeps
        if self._workspace.rows is None:
            self._make_buffer()
        try:
            while len(schedule.changed) < end and not (schedule.over or self._failure):
                self._sweep(schedule, end - len(schedule.changed))
        finally:
            if schedule.over or self._failure:
                self._transfers.settle()

    def _long_lists(self, plan: Plan) -> int:
        """Return 0: where a list of readers lies differs from strip to strip."""
        return 0

    def _how(self, schedule: Schedule, sweeps: int, dropped: int) -> LaunchSchedule:
        return super()._how(schedule, sweeps, dropped)._replace(many=np.int64(self._many(schedule)))

    def _many(self, schedule: Schedule) -> int:
        """Return how many changes make everybody active; more wake them than would be read."""
        most = schedule.number_of_vertices
        streamed_a_class = int((self._sizes.reshape(-1, self._strips.a_class) > 0).sum(1).max())
        if streamed_a_class > 1 and self._compiled.traits.plain:
            return most // FEW
        return most

    def _sweep(self, schedule: Schedule, sweeps: int) -> None:
        """Do a sweep, or several that the kernel leads."""
        fetched = self._begin_sweep(schedule)
        led_by_kernel = len(fetched) == len(self._coming)
        at_once = self._loaded or fetched_rows.loads_at_once(
            self._strips, self._layout.bytes_an_entry, self._a_launch
        )
        if led_by_kernel and at_once:
            self._sweep_at_once(schedule, sweeps if self._all_fetched else min(sweeps, AT_ONCE))
            return
        self._sweep_in_strips(schedule, fetched)

    def _begin_sweep(self, schedule: Schedule) -> set[int]:
        """Note what holds in the next sweep; return the strips of which single rows are read."""
        rule, done = schedule.rule(), len(schedule.changed)
        before = schedule.changed[-1] if done else schedule.before
        wakes_all = activates_all(rule.sweep, before, self._many(schedule))
        skips = self._workload.skip and not wakes_all
        everybody = wakes_all or not self._activated
        self._activated = skips
        self._now = rule, skips, everybody
        return self._fetched(everybody, rule.revisit_tied)

    def _end_sweep(self, schedule: Schedule) -> None:
        """Ask for the first strips of the next sweep if everything is read again in it."""
        all_again = not schedule.over and not (self._workload.skip and self._now[1])
        if all_again and not self._fetched(True, revisit_tied=False):
            self._ask_before()

    def _ask_before(self) -> None:
        """Ask for the first strips of a sweep before it begins."""
        for strip in self._next_coming()[self._transfers.waiting : SLOTS]:
            self._ask(strip)

    def _next_coming(self) -> list[int]:
        """Return what comes in a sweep: the front of each class once, before its first strip."""
        if self._loaded:
            return self._coming
        return np.flatnonzero(np.diff(self._strips.entries) * self._strips.own).tolist()

    def _sweep_at_once(self, schedule: Schedule, sweeps: int) -> None:
        """Let the kernel lead some sweeps, and fetch what it needs."""
        how, before = self._begin(schedule, sweeps)
        self._prepare(how)
        if not self._loaded:
            fronts = np.flatnonzero(self._strips.place >= 0).tolist()
            for one in fronts:
                self._ask(one)
            for _ in fronts:
                self._transfers.take()
            self._loaded = True
        self._launch(Step(*map(np.int64, (-1, -1, 0)), False, True))
        self._record(schedule, before)
        self._activated = self._workload.skip and int(self._kept_words[2]) == 0

    def _sweep_in_strips(self, schedule: Schedule, fetched: set[int]) -> None:
        """Lead one sweep: a launch for each strip that has come, and what is there before it."""
        how, before = self._begin(schedule, 1)
        self._prepare(how)
        transfers, coming = self._transfers, self._next_coming() or [0]
        asked, first, number, self._loaded = transfers.waiting, 0, self._strips.place.size, True
        for turn, strip in enumerate(coming):
            while asked < min(turn + SLOTS, len(coming)):
                self._ask(coming[asked], coming[asked] in fetched)
                asked += 1
            slot = transfers.take()
            last = turn == len(coming) - 1
            end = number if last else self._strips.end_behind(strip, self._sizes)
            clear(self._counters)
            self._launch(Step(*map(np.int64, (first, end, slot or 0)), strip not in fetched, last))
            if slot is not None:
                transfers.give_back(slot)
            first = end
        waits = self._layout.gathered or len(schedule.changed) + 1 == schedule.options.max_iter
        if not waits:
            self._end_sweep(schedule)  # before it is heard whether there is a next one
        self._record(schedule, before)
        if waits:
            self._end_sweep(schedule)

    def _ask(self, strip: int, only_turn: bool = False) -> None:
        """Ask for a strip to be copied to its place or into a slot, or for the slot alone."""
        first, last = self._strips.entries[strip : strip + 2].tolist()
        if (place := int(self._strips.place[strip])) >= 0:
            self._transfers.ask_for_good(place, first, last)
            return
        place = tuple(slot + first % LINE for slot in self._strips.slots)
        self._transfers.ask(place, first, first if only_turn else last)

    def _prepare(self, how: LaunchSchedule) -> None:
        """Get the launches of a sweep ready, which differ in their steps alone."""
        made = self._workspace
        blocks = -(-made.plan.entries_a_group // (2 * THREADS))
        arguments = (
            made.plan_arrays, made.tables, made.hubs, made.pieces, made.run, made.rows,
            made.readers, made.lists, self._bound, how, self._numbers,
        )  # fmt: skip
        step = Step(*map(np.int64, (0, 0, 0)), False, False)
        self._launch = prepared_together(
            self._propagate, max(blocks, multiprocessors()), THREADS, arguments, step
        )
        self._counters = made.words[: workspace.CONTROL]

    def _fetched(self, everybody: bool, revisit_tied: bool) -> set[int]:
        """Return the strips of which the kernel reads rows where they lie; none are copied."""
        everybody = everybody or not self._workload.skip
        if self._all_fetched:
            return set(self._coming)
        if not self._coming or not self._layout.pinned or (everybody and not self._a_launch):
            return set()
        made, costs, entries = self._workspace, self._sizes, self._layout.entries
        if not everybody:
            counted, arrays = self._xp.zeros(costs.size, np.int64), made.plan_arrays
            launch(
                self._census, costs.size * BLOCKS_A_STRIP, THREADS, arrays.groups, arrays.vertices,
                arrays.degrees, bound(made.slack), made.run.tied, bound(counted),
                bool(revisit_tied), fetched_rows.a_read(entries.bits_an_entry),
            )  # fmt: skip
            costs = to_host(counted)
        given = self._coming, costs, self._sizes, self._layout.bytes_an_entry, self._a_launch
        return fetched_rows.chosen(*given)

    # ------------------------------------------------------------ what it says of itself

    def facts(self) -> dict[str, Any]:
        """Return what the report of a run says besides: bytes over the bus, and what stayed."""
        an_entry, a_reader = self._layout.bytes_an_entry, self._workload.rows.index_dtype.itemsize
        read, read_apart = (int(to_host(one)[0]) for one in (self._moved, self._readers_moved))
        moved = 0 if self._transfers is None else self._transfers.moved
        resident = int(np.diff(self._strips.entries)[self._strips.place >= 0].sum())
        return {
            "predicted": self._predicted,
            "bytes_over_bus": moved + int(read * an_entry) + read_apart * a_reader,
            "share_cached": resident / max(int(self._layout.starts[-1]), 1),
            "pinned": self._layout.pinned,
        }
