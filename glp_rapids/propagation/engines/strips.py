"""Rows of a graph on the host, laid out as a GPU reads them, and cut into strips.

Rows lie in the order of the GPU's plan: class after class, by falling degree in each, so a strip is
one stretch of memory. That is done once; what a run keeps on the device, and how long its strips
are, follows from its limit of memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.sizes import bits_of_vertex
from glp_rapids.device import to_device, to_host
from glp_rapids.graph.id_words import IdWords
from glp_rapids.graph.rows import CSR
from glp_rapids.jit.cuda import bound
from glp_rapids.jit.parallel import threads_available
from glp_rapids.outofcore import pinned
from glp_rapids.outofcore.bit_packed import LINE, packed_rows, word_of, words_of
from glp_rapids.outofcore.double_buffer import SLOTS
from glp_rapids.outofcore.gathered import GatheredRows
from glp_rapids.outofcore.pinned import HostArray
from glp_rapids.propagation.engines.workspace import PlanSizes, bytes_of
from glp_rapids.propagation.kernels.cpu.unit_votes import rows_in_order
from glp_rapids.propagation.kernels.gpu import hub_pieces, plan
from glp_rapids.propagation.kernels.gpu.entries import PackedEntries
from glp_rapids.propagation.kernels.gpu.plan import COLUMNS, HUBS, Limits, Listed, Plan
from glp_rapids.propagation.kernels.gpu.streamed import IN_SLOT, OF_OTHERS
from glp_rapids.propagation.kernels.gpu.votes import VoteFunctions
from glp_rapids.propagation.program import Traits
from glp_rapids.propagation.schedule import spans_of
from glp_rapids.propagation.workload import Workload

A_ROW = 8 * (COLUMNS + 4)  # bytes of what the device has about a strip


@dataclass(frozen=True)
class Layout:
    """Rows in host memory, in the order of a plan."""

    vertices: np.ndarray  # pinned, too: they go to the device in every run
    degrees: np.ndarray
    starts: np.ndarray  # of their rows, and the end of the last one
    longest_row: int
    begins: np.ndarray  # [classes, RANGES]: positions
    ends: np.ndarray
    entries: HostArray
    weights: HostArray | None
    cuts: dict[Any, tuple[Strips, int]] = field(default_factory=dict)  # by what they follow from

    @property
    def pinned(self) -> bool:
        """Whether kernels can read it."""
        return self.entries.pinned and (self.weights is None or self.weights.pinned)

    @property
    def gathered(self) -> bool:
        """Whether there was no room for a copy in this order."""
        return isinstance(self.entries, GatheredRows)

    @property
    def bounds(self) -> np.ndarray:
        """The positions where classes begin, and the end of the last."""
        return np.append(self.begins[:, HUBS], self.ends[-1, -1])

    @property
    def number_of_entries(self) -> int:
        """Of all rows."""
        return int(self.starts[-1])

    @property
    def largest_class(self) -> int:
        """Its entries."""
        return int(np.diff(self.starts[self.bounds]).max(initial=0))

    @property
    def bytes_an_entry(self) -> float:
        """Of what is copied of an entry: whole ones, in lines, are that many bytes exactly."""
        weight = 0 if self.weights is None else self.weights.array.itemsize
        return self.entries.bits_an_entry / 8 + weight

    def words_of(self, entries: int) -> int:
        """Count the words in which so many entries lie on the device, in whole lines."""
        word = word_of(self.entries.array.dtype)
        return words_of(entries, self.entries.bits_an_entry, word)

    def buffers(self, room: int, beyond: int, xp: Any) -> tuple[Any, Any]:
        """Make room on the device for so many entries, some words behind them, and weights."""
        entries = xp.empty(self.words_of(room) + beyond, self.entries.array.dtype)
        entries[:1] = 0  # read, with the label of whom it names, by lanes that have no row
        if self.weights is None:
            return entries, xp.zeros(1, np.int64)
        return entries, xp.empty(room, self.weights.array.dtype)

    def shown(self, array: Any) -> Any:
        """Show entries, where they lie on the device or the host, to a kernel."""
        words = array.view(word_of(array.dtype))
        return PackedEntries(bound(words), np.int64(self.entries.bits_an_entry))

    def plan_starts(self, degrees: Any, xp: Any) -> Any:
        """Say where each row begins, on the device."""
        starts = xp.zeros(degrees.size, np.int64)
        xp.cumsum(degrees[:-1], dtype=np.int64, out=starts[1:])
        return starts

    def ranges_of(self, found: Strips | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Return where ranges of degrees begin and end, in strips, or else in whole classes."""
        if found is None:
            return self.begins, self.ends
        of_class = np.arange(found.place.size) // found.a_class
        first, last = found.positions[:-1, None], found.positions[1:, None]
        begins, ends = (np.clip(bound[of_class], first, last) for bound in (self.begins, self.ends))
        return begins, ends

    def bytes_of_arrays(
        self, limits: Limits, found: Strips | None, functions: VoteFunctions, traits: Traits,
        slack: int,
    ) -> int:  # fmt: skip
        """Add up what the engine makes beside lists: of strips, or if every class were one."""
        begins, ends = (bound[:, HUBS] for bound in self.ranges_of(found))
        hubs = hub_pieces.cut(self.degrees, [begins], [ends], limits.slots, limits.handed_over)
        pieces = hubs.arrays["of_piece"]
        sizes = PlanSizes(hubs.table_slots, hubs.hubs, pieces.shape[0], self.vertices.size)
        made = bytes_of(
            sizes, functions, functions.growing and traits.default_update,
            not traits.default_update, slack, 0, 0,
        )  # fmt: skip
        rows = 0 if found is None else found.place.size * A_ROW
        return made + pieces.nbytes + rows + self.bytes_listed

    @property
    def bytes_listed(self) -> int:
        """Of vertices in their order, and where their rows are."""
        return self.vertices.nbytes + self.degrees.nbytes + self.starts.nbytes

    def sizes_of_strips(
        self, room: int | None, caches: bool, a_row: int, most: int, most_of_class: int, least: int,
        ranks: int = 1,
    ) -> tuple[int, int]:  # fmt: skip
        """Return how many entries stay on the device, and how many a strip has at the most.

        ``room``: for entries on the device, with ``a_row`` of them for what is known of a strip.
        ``caches``: what two strips leave of it is for those that stay. ``ranks``: that share each
        class; entries are those of one.
        """
        total, longest, classes = int(self.starts[-1]), self.longest_row, self.begins.shape[0]
        largest = a_strip = self.largest_class
        if ranks > 1:
            total, largest = -(-total // ranks) + longest, -(-largest // ranks) + longest
            a_strip = largest
        if classes == 1 or largest > most_of_class:
            a_strip = min(largest, most)
        a_strip = max(a_strip, longest, 1)
        if room is None:
            return 0, a_strip
        room -= classes * (a_row + 2 * LINE)
        if caches and room >= total:
            return total, a_strip
        room -= 2 * SLOTS * LINE
        if a_strip > room // SLOTS:
            a_strip = min(max(room // 8, least), most)
        a_strip = max(min(a_strip, room // SLOTS), longest, 1)
        # rows of the plan: every class has as many strips as the largest one
        room -= classes * (2 * (largest // a_strip) + 2) * a_row
        a_strip = max(min(a_strip, room // SLOTS), longest, 1)
        stays = max(room - SLOTS * a_strip, 0) if caches else 0
        if a_strip == largest and SLOTS * largest < total:
            # what stays of a class need not come: its strip is so much shorter
            stays = int(max(stays - SLOTS * longest, 0) / (1 - SLOTS * largest / total))
        return min(stays, max(total - 1, 0)), a_strip


class Share(NamedTuple):
    """Which part of every class a rank evaluates, of so many that share each."""

    rank: int = 0
    ranks: int = 1


ALONE = Share()


class Strips(NamedTuple):
    """Strips of every class, as many in each; of several the first may stay on the device.

    Where ranks share a class, others' rows before and behind those of this one are a strip each.
    """

    positions: np.ndarray  # where strips begin, and the end of the last
    entries: np.ndarray  # likewise, on the host
    place: np.ndarray  # where each begins on the device, as in a line; or `IN_SLOT`, `OF_OTHERS`
    a_class: int
    slots: tuple[int, int]  # where these begin
    room: int  # entries of the buffer on the device

    @property
    def own(self) -> np.ndarray:
        """Tell which strips this rank evaluates."""
        return self.place != OF_OTHERS

    def end_behind(self, strip: int, sizes: np.ndarray) -> int:
        """Return the strip behind one and those without anything that end its class."""
        end = strip + 1
        while end < self.place.size and end % self.a_class and not sizes[end]:
            end += 1
        return end


def laid_out(
    rows: CSR, classes: int, id_words: IdWords, bins: tuple[list[int], list[int]], xp: Any,
    packs: bool = True,
) -> Layout:  # fmt: skip
    """Sort the vertices on the device and copy their rows in that order, on the host.

    ``packs``: in as few bits as an entry takes. If there is no room for a copy rows stay where they
    are, and are gathered strip by strip.
    """
    indptr, device = np.asarray(rows.indptr), "cpu" if xp is np else "gpu"
    dtype = rows.index_dtype
    vertices, starts, degrees, ends = plan.listed_vertices(
        to_device(indptr, device), dtype, *bins, id_words, (classes, 1, 1), None, xp
    )
    del starts
    (begins,), (ends,) = plan.range_ends(ends, [1], classes)
    vertices, degrees = (pinned_copy(array, device) for array in (vertices, degrees))
    starts = np.zeros(vertices.size + 1, np.int64)
    np.cumsum(degrees, out=starts[1:])
    parts = [values for values in (rows.indices, rows.weights) if values is not None]
    copies: list[HostArray | None] = []
    bits = bits_of_vertex(indptr.size - 1, dtype) if packs else 8 * dtype.itemsize
    size = sum(values.nbytes for values in parts[1:])
    copied_whole = pinned.room_for(size + int(starts[-1]) * bits // 8)
    for values in parts:
        gather = partial(_gather, vertices, indptr, starts, np.asarray(values))
        if copied_whole and packs and not copies:
            copies.append(packed_rows(vertices, indptr, starts, values, bits, device))
        elif copied_whole:
            # a kernel reads one entry more than it needs
            copies.append(pinned.empty(starts[-1] + 1, values.dtype, device))
            gather(0, vertices.size, copies[-1].array[: starts[-1]])
        else:
            copies.append(GatheredRows(values, False, gather, starts, xp))
    copies += [None] * (2 - len(copies))
    longest = int(degrees.max(initial=0))
    return Layout(vertices, degrees, starts, longest, begins, ends, *copies)


def _gather(
    vertices: np.ndarray, indptr: np.ndarray, starts: np.ndarray, values: np.ndarray,
    first: int, last: int, copy: np.ndarray,
) -> None:  # fmt: skip
    """Copy the rows of some positions."""
    begins = starts[first : last + 1]
    if first:
        begins = begins - starts[first]
    rows_in_order(vertices[first:last], indptr, begins, values, copy, threads_available())


def pinned_copy(array: Any, device: Any) -> np.ndarray:
    """Bring an array to the host, into pinned memory if there is some."""
    host = pinned.empty(array.size, array.dtype, device).array[: array.size]
    host[:] = to_host(array)
    return host


def pinned_readers(workload: Workload, device: Any) -> HostArray | None:
    """Return the lists of readers in pinned memory, kept; None: there is no room for them."""
    host = workload.kept.get("readers")
    if host is None:
        indices = np.asarray(workload.readers.indices)
        if not pinned.room_for(indices.nbytes):
            return None
        host = pinned.empty(indices.size, indices.dtype, device)
        host.array[: indices.size] = indices
        workload.kept["readers"] = host
    return host


def own_bounds(layout: Layout, share: Share) -> np.ndarray:
    """Return the positions of each class where a rank's part begins and ends: [classes, 2]."""
    bounds, starts = layout.bounds, layout.starts
    first, last = bounds[:-1], bounds[1:]
    begin, size = starts[first], starts[last] - starts[first]
    ends = []
    for rank in (share.rank, share.rank + 1):
        at = np.searchsorted(starts, begin + size * rank // share.ranks)
        ends.append(np.clip(at, first, last) if rank % share.ranks else last if rank else first)
    return np.stack(ends, axis=1)


def cut(
    layout: Layout, stays: int, longest: int, share: Share = ALONE, by_class: bool = False
) -> Strips:
    """Cut every class: what stays on the device, ``stays`` entries of all, then strips.

    ``longest``: entries of a strip at the most; no row is longer. ``share``: of whose part.
    ``by_class``: if no class is longer than that, and some fit, whole ones stay.
    """
    starts, several = layout.starts, share.ranks > 1
    if by_class and stays and not several and layout.largest_class <= longest:
        some = _staying(layout, stays)
        if some.any():
            return _of_whole_classes(layout, some)
    ours = own_bounds(layout, share)
    total = int(np.diff(starts[ours]).sum())
    of_classes: list[list[int]] = []
    for first, last in ours.tolist():
        cuts, at = [first] * several, first
        if stays >= total:
            of_classes.append([*cuts, last])
            continue
        if stays:
            part = stays * int(starts[last] - starts[first]) // total
            at = int(np.searchsorted(starts, starts[first] + part, side="right")) - 1
            cuts.append(at)
        while at < last:
            at = min(int(np.searchsorted(starts, starts[at] + longest, side="right")) - 1, last)
            cuts.append(at)
        of_classes.append(cuts if len(cuts) > several else [*cuts, last])
    a_class = max(map(len, of_classes)) + several
    for cuts, end in zip(of_classes, layout.bounds[1:].tolist(), strict=True):
        cuts += [cuts[-1]] * (a_class - several - len(cuts)) + [end] * several
    positions = np.array([0, *(at for cuts in of_classes for at in cuts)], np.int64)
    entries = starts[positions]
    place = np.full(positions.size - 1, IN_SLOT, np.int64)
    if several:
        place[::a_class] = place[a_class - 1 :: a_class] = OF_OTHERS
    sizes = np.diff(entries) * (place != OF_OTHERS)
    fronts = sizes[several::a_class] * (stays > 0)
    begins = entries[several:-1:a_class] % LINE
    taken = _in_lines(begins + fronts) * (fronts > 0)
    place[several::a_class] = np.where(fronts > 0, np.cumsum(taken) - taken + begins, IN_SLOT)
    resident = int(taken.sum())
    streamed = int(sizes[place < 0].max(initial=0))
    slot = _in_lines(streamed + LINE) if streamed else 0
    slots = resident, resident + slot
    return Strips(positions, entries, place, a_class, slots, max(resident + 2 * slot, LINE))


def _staying(layout: Layout, stays: int) -> np.ndarray:
    """Tell which classes stay, of up to so many entries; between them lie others, to be copied."""
    sizes = np.diff(layout.starts[layout.bounds])
    classes = sizes.size
    places, total = np.arange(classes + 1), max(int(sizes.sum()), 1)
    number = min(stays * classes // total + 2, classes)
    while True:  # as many as fit, or nearly so where there are thousands
        some = np.diff((places * number + classes // 2) // classes) > 0
        if int(sizes[some].sum()) <= stays:
            return some
        number -= max(number // 64, 1)


def _of_whole_classes(layout: Layout, some: np.ndarray) -> Strips:
    """Make a strip of every class; some stay on the device."""
    positions = layout.bounds
    entries = layout.starts[positions]
    sizes, begins = np.diff(entries), entries[:-1] % LINE
    taken = _in_lines(begins + sizes) * some
    place = np.where(some, np.cumsum(taken) - taken + begins, IN_SLOT)
    resident, streamed = int(taken.sum()), int(sizes[~some].max(initial=0))
    slot = _in_lines(streamed + LINE) if streamed else 0
    slots = resident, resident + slot
    return Strips(positions, entries, place, 1, slots, max(resident + 2 * slot, LINE))


def _in_lines(entries: Any) -> Any:
    """Round up to whole lines."""
    return -(-entries // LINE) * LINE


def copied(array: np.ndarray, xp: Any) -> Any:
    """Copy a pinned array to the device, at the full speed of the bus."""
    if xp is np:
        return array
    copy = xp.empty(array.size, array.dtype)
    if array.size:
        copy.set(array)
    return copy


def listed_on(xp: Any, layout: Layout, strips: Strips) -> Listed:
    """Copy to the device who is in which row, and where rows begin."""
    begins, ends = layout.ranges_of(strips)
    vertices, degrees = (copied(array, xp) for array in (layout.vertices, layout.degrees))
    return Listed(vertices, layout.plan_starts(degrees, xp), degrees, [begins], [ends])


def plan_of(listed: Listed, layout: Layout, strips: Strips, classes: int, limits: Limits) -> Plan:
    """Make the plan whose groups are the strips; its arrays go to the device."""
    levels = [
        (span, 0, classes * strips.a_class, span * strips.a_class) for span in spans_of(classes)
    ]
    entries = -(-layout.number_of_entries // classes)
    return plan.assembled(listed, np.array(levels), limits, entries, strips.a_class)
