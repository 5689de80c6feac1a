"""The hybrid engine: a GPU evaluates a class from the front, the host's cores from the rear.

Lists lie in host memory and are streamed to the GPU strip by strip, as `gpu_streamed` does; what
the bus cannot bring in time the host's cores evaluate where it lies (Kozawa et al., CIKM 2017,
section 4.4). Both evaluate the labels as they stand before a class is updated, so who takes which
rows changes nothing. Then the host's outcome goes to the GPU, in the order of the plan: what wins,
slack, ties; the GPU updates the class, and the host takes over the labels and state of its
vertices. The GPU goes on with the next class in the meantime.

The GPU takes a strip piece by piece, a launch each: it asks for one more as soon as the one before
the last is evaluated, so as fast as the bus brings them, and the host finds what is left at the
other end. Hubs are for the GPU. So are sweeps of which single rows are fetched.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import bound, kernel, multiprocessors
from glp_rapids.jit.launch import launch
from glp_rapids.outofcore import pinned
from glp_rapids.outofcore.both_ends import BothEnds, Piece
from glp_rapids.outofcore.double_buffer import SLOTS, bus_speed
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines.class_parts import Part, most_positions, parts_of
from glp_rapids.propagation.engines.gpu_streamed import StreamedGpuEngine
from glp_rapids.propagation.engines.host_share import HostShare, bytes_of_share
from glp_rapids.propagation.engines.launched import clear
from glp_rapids.propagation.engines.strips import LINE
from glp_rapids.propagation.kernels.cpu.hash_votes import threads_for
from glp_rapids.propagation.kernels.gpu import host_rows
from glp_rapids.propagation.kernels.gpu.shared_memory import THREADS
from glp_rapids.propagation.kernels.gpu.streamed import EVERYTHING, Step
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.workload import Workload

TAKE = kernel(host_rows.take_rows, "rows for the host")
PUT = kernel(host_rows.put_rows, "rows of the host")
# Pieces of a class, so that the host finds something to take; of each the copy takes so many
# seconds at least, in which the next is asked for.
PIECES, COPY = 12, 3e-4


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

    _how_laid_out: ClassVar[dict[str, bool]] = {"packs": False}  # the host reads the same lists
    _a_launch = 0.0  # sweeps of the GPU alone, in one launch, would leave the host out

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        self._on_host = workload
        self._host: HostShare | None = None
        self._told: tuple[int, int] | None = None  # positions that the host knows not yet
        self._knows = False  # of all others their labels and state
        self._evaluated = np.zeros(2, np.int64)  # entries, by the GPU and by the host
        self._parted: dict[tuple[int, bool], list[Part]] = {}
        self._slot: int | None = None  # of the strip that was taken last
        self._pool: ThreadPoolExecutor | None = None
        self._ahead: deque[tuple[Class, Piece]] = deque()  # on their way, as they come
        super().__init__(workload, compiled, fields)

    # ------------------------------------------------------------ memory

    def _bytes_beside(self) -> int:
        """Count the buffer through which the host and the GPU tell one another of a class."""
        return most_positions(self._layout, self._workload.classes) * self._widest()

    def _widest(self) -> int:
        """Return the bytes of what is told of a vertex at a time."""
        arrays = (value for value in self._fields.values() if getattr(value, "ndim", 0))
        return max(4, *(array[:1].nbytes for array in arrays))

    def _make_buffer(self) -> None:
        super()._make_buffer()
        layout, xp = self._layout, self._xp
        if layout.gathered or not self._coming:
            return  # nothing lies in the order of the plan, or nothing is streamed
        positions = most_positions(self._layout, self._workload.classes)
        self._host = self._kept_share(positions)
        if self._host is None:
            return
        self._host.begin(self._on_host, self._fields)
        self._buffer = xp.empty(positions * self._widest(), np.uint8)
        self._copy = partial(pinned.copy, xp=xp)
        if xp is not np:
            self._there, self._stepped = (xp.cuda.Event(disable_timing=True) for _ in range(2))

    def _kept_share(self, positions: int) -> HostShare | None:
        """Return the host's part, of an earlier run of the kind if there is one, or a new one.

        None: host memory has no room for it, so the GPU does all.
        """
        workload, traits, fields = self._on_host, self._compiled.traits, self._fields
        shapes = (getattr(value, "shape", ()) for value in fields.values())
        threads = threads_for(workload.rows.number_of_edges)
        self._key_of_share = self._compiled.digest, positions, threads, *shapes
        key, share = workload.kept.pop("hybrid", (None, None))
        if key == self._key_of_share and share.layout is self._layout:
            return share
        key = share = None  # first let go of what is pinned, then make
        if not pinned.room_for(bytes_of_share(workload, traits, fields, positions)):
            return None
        scores = None
        if not traits.default_update:
            scores = array_of(self._workspace.run.winner_score).dtype
        return HostShare(workload, fields, self._layout, positions, scores, self._device)

    def _keep_share(self) -> None:
        """Leave the host's part to the next run, unless the lists are laid out anew by then."""
        kept = self._on_host.kept
        if kept.get("strips", (None, None))[1] is self._host.layout:
            self._host.end()
            kept["hybrid"] = self._key_of_share, self._host

    # ------------------------------------------------------------ sweeps

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, "glp_rapids hybrid")
        over = True
        try:
            super().advance(schedule, sweeps)
            over = schedule.over or bool(self._failure)
        finally:
            if over:
                self._pool.shutdown()
        if self._host is not None and schedule.over and not self._failure:
            self._keep_share()

    def _sweep_at_once(self, schedule: Schedule, sweeps: int) -> None:
        self._knows = False
        super()._sweep_at_once(schedule, sweeps)

    def _sweep_in_strips(self, schedule: Schedule, fetched: set[int]) -> None:
        """Lead one sweep, class by class."""
        classes = []
        if self._host is not None and not fetched:
            classes = list(self._classes(self._now[0].span))
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
        for number, one in enumerate(classes):
            try:
                self._do_class(classes[number:])
            except BaseException:
                one.left.close()  # so that the host ends with what it is at
                raise
        self._record(schedule, before)

    def _ask_before(self) -> None:
        """Ask for nothing before a sweep begins: how its strips come is decided then."""

    def _classes(self, span: int) -> Iterator[Class]:
        """Yield the classes of a sweep that updates ``span`` neighbouring ones together."""
        key = span, self._loaded
        if key not in self._parted:
            comes = np.diff(self._strips.entries) > 0  # at first also what stays
            if self._loaded:
                comes &= self._sizes > 0
            buffer = array_of(self._workspace.rows.indices.words)
            begin, end = self._strips.slots  # where nothing is awaited before a sweep
            speed = bus_speed(self._layout.entries, buffer[begin:end], self._xp)
            least = int(COPY * speed / self._layout.bytes_an_entry)
            size = max(self._layout.largest_class // PIECES, least, 1)
            self._parted[key] = list(parts_of(self._layout, self._strips, comes, span, size))
        for first, end, pieces, units in self._parted[key]:
            yield Class(first, end, BothEnds(pieces, units))

    def _ask_ahead(self, classes: list[Class]) -> None:
        """Ask for pieces until two are on their way, of the first classes that have any left."""
        for one in classes:
            while len(self._ahead) < SLOTS:
                if self._xp is not np:
                    self._stepped.synchronize()  # so that the host may take what has to wait
                if not self._has_slot(one.left.next_piece, classes[0]):
                    return
                piece = one.left.from_front()
                if piece is None:
                    break
                self._ahead.append((one, piece))
                self._ask_piece(piece)

    def _has_slot(self, piece: Piece | None, now: Class) -> bool:
        """Tell whether there is a slot for a piece; the update of a class may still need one."""
        if piece is None or self._slot is None or self._slot != self._transfers.turn:
            return True
        if piece.first != self._strips.positions[piece.strip]:
            return True
        if self._ahead and self._ahead[0][0] is now:  # whose slot the update will need
            self._give_back()
            return True
        return False

    def _give_back(self) -> None:
        """Say that nobody needs the slot of the last strip any more."""
        if self._slot is not None:
            self._transfers.give_back(self._slot)
        self._slot = None

    def _ask_piece(self, piece: Piece) -> None:
        """Ask for a piece; the first of a strip takes the next slot."""
        begin = int(self._strips.entries[piece.strip])
        first, last = self._layout.starts[[piece.first, piece.last]].tolist()
        if (there := int(self._strips.place[piece.strip])) >= 0:
            self._transfers.ask_for_good(there, first, last)
            return
        place = tuple(slot + begin % LINE + first - begin for slot in self._strips.slots)
        ask = self._transfers.ask if first == begin else self._transfers.ask_more
        ask(place, first, last)

    def _do_class(self, classes: list[Class]) -> None:
        """Evaluate the first of the classes that are left from both ends, and update it."""
        one, last_of_sweep = classes[0], len(classes) == 1
        left, positions, starts = one.left, self._strips.positions, self._layout.starts
        job = self._tell_host(left)
        first, held, updated = one.first, one.first, False
        done = int(positions[one.first])  # up to there all is evaluated
        while not updated:
            self._ask_ahead(classes)
            if not self._ahead or self._ahead[0][0] is not one:
                break
            piece = self._ahead.popleft()[1]
            if piece.strip != held:
                self._give_back()
            self._slot, held = self._transfers.take(), piece.strip
            coming = bool(self._ahead) and self._ahead[0][0] is one
            updated = not coming and left.over and left.share_of_host == 0
            end = one.end if updated else held + 1
            until = EVERYTHING if updated else piece.last
            self._step(first, end, last_of_sweep and updated, done, until, updated)
            done = piece.last
            first = end if piece.last == positions[held + 1] else held
        if job is not None:
            job.result()
        if not updated:
            self._tell_gpu(left)
            # What is not evaluated yet stays on the GPU. The last strip that came is in its slot.
            self._step(held, one.end, last_of_sweep, done, left.rear, True)
        self._give_back()
        self._told = tuple(positions[[one.first, one.end]].tolist())
        self._evaluated += np.diff(starts[[self._told[0], left.rear, self._told[1]]])

    def _step(
        self, first: int, end: int, last: bool, since: int, until: int, updates: bool
    ) -> None:
        """Launch the kernel for some strips."""
        clear(self._counters)
        numbers = map(np.int64, (first, end, self._slot or 0))
        ends = map(np.int64, (since, until))
        self._launch(Step(*numbers, True, bool(last), *ends, np.int64(end if updates else 0)))
        if self._xp is not np:
            self._stepped.record()

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
