"""Integer ids in the room that they need: none for a range of them, some bits each for others.

Ids ascend, so what an id is above its number never falls: nothing for ids without a gap, and a gap
adds its size once. Blocks of 128 ids have the first one as it is, and of each how much more it is
above its number than that one, in as many bits as the last needs. So an id is read without
those before it, and found by a search among the first ones and then in a block.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.scans import integer_sum
from glp_rapids.compressed.format.scheme import Function
from glp_rapids.device import DeviceName, array_module, device_of, module_on, to_device, to_host
from glp_rapids.frames.kinds import Kind
from glp_rapids.graph.vertex_ids import IdColumn, VertexIds, held_between
from glp_rapids.jit.parallel_for import each
from glp_rapids.jit.target import Target

Array = Any

BLOCK = 128  # ids; two words for each bit of the width
ROUNDS = 7  # that find one of them


@dataclass(frozen=True, eq=False)
class RangeOfIds:
    """The integers from ``first`` on, ``size`` of them."""

    first: int
    size: int
    dtype: np.dtype
    device: DeviceName

    nbytes = 0

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last id."""
        return self.first, self.first + self.size - 1

    def decoded(self) -> Array:
        """All ids."""
        number = dtype_of_64_bits(self.dtype)
        ids = module_on(self.device).arange(self.size, dtype=number)
        ids += number(self.first)
        return ids.astype(self.dtype, copy=False)

    def unbounded(self) -> Array:
        """All ids, of which the dtype holds every one."""
        return self.decoded()

    def at(self, index: Array) -> Array:
        """The ids of some numbers."""
        number = dtype_of_64_bits(self.dtype)
        return (index.astype(number) + number(self.first)).astype(self.dtype, copy=False)

    def find(self, asked: Array) -> Array:
        """Number integers from the first id to the last; -1 where they are no id."""
        number = dtype_of_64_bits(self.dtype)
        return (asked.astype(number) - number(self.first)).astype(np.int64)

    def to(self, device: DeviceName) -> RangeOfIds:
        """Copy to a device."""
        return RangeOfIds(self.first, self.size, self.dtype, device)


@dataclass(frozen=True, eq=False)
class PackedIds:
    """Ascending integers by blocks.

    Parameters
    ----------
    firsts : int64 or uint64 array
        The first id of each block.
    widths : uint8 array
        The bits of a number of each block, at most 64.
    words : uint64 array
        The numbers, the lowest bits of a word first; each block begins with a word.
    size : int
        How many ids.
    dtype : dtype
        Of the ids.
    """

    firsts: Array
    widths: Array
    words: Array
    size: int
    dtype: np.dtype
    _derived: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def device(self) -> DeviceName:
        """Where the arrays live."""
        return device_of(self.words)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays."""
        return self.firsts.nbytes + self.widths.nbytes + self.words.nbytes

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last id."""
        if "ends" not in self._derived:
            ends = to_host(self.at(np.array([0, self.size - 1])))
            self._derived["ends"] = int(ends[0]), int(ends[1])
        return self._derived["ends"]

    @property
    def starts(self) -> Array:
        """The word with which each block begins."""
        if "starts" not in self._derived:
            self._derived["starts"] = _starts(self.widths)
        return self._derived["starts"]

    def decoded(self) -> Array:
        """All ids."""
        xp = module_on(self.device)
        return self._read(xp.empty(0, np.int64), self.size)

    def unbounded(self) -> Array:
        """All ids, even where the dtype cannot hold one."""
        return replace(self, dtype=np.dtype(dtype_of_64_bits(self.dtype)), _derived={}).decoded()

    def at(self, index: Array) -> Array:
        """The ids of some numbers."""
        return self._read(to_device(index.astype(np.int64), self.device), index.size)

    def find(self, asked: Array) -> Array:
        """Number integers from the first id to the last; -1 where they are no id."""
        xp = module_on(self.device)
        asked = asked.astype(self.dtype)
        block = xp.searchsorted(self.firsts, asked.astype(self.firsts.dtype), side="right") - 1
        low = block * BLOCK
        high = xp.minimum(low + (BLOCK - 1), self.size - 1)
        for _ in range(ROUNDS):
            middle = (low + high + 1) >> 1
            upper = self.at(middle) <= asked
            low, high = xp.where(upper, middle, low), xp.where(upper, high, middle - 1)
        return xp.where(self.at(low) == asked, low, -1)

    def to(self, device: DeviceName) -> PackedIds:
        """Copy to a device."""
        arrays = (to_device(array, device) for array in (self.firsts, self.widths, self.words))
        return PackedIds(*arrays, self.size, self.dtype)

    def _read(self, index, size):
        ids = array_module(self.words).empty(size, self.dtype)
        work = Reading(index, self.firsts, self.widths, self.starts, self.words, ids)
        each(functions, "any", "read_id", size, work, self.device)
        return ids


class PackedColumn(IdColumn):
    """A column of ids in one of these forms; ``values`` are made anew each time."""

    def __init__(self, held: RangeOfIds | PackedIds, dtype: Any):
        for name, value in (("held", held), ("family", "integer"), ("dtype", dtype)):
            object.__setattr__(self, name, value)

    @property
    def values(self) -> Array:
        """All ids."""
        return self.held.decoded()

    def __len__(self) -> int:
        return self.held.size

    @property
    def device(self) -> DeviceName:
        """Where the ids live."""
        return self.held.device

    @property
    def id_dtype(self) -> np.dtype:
        """The dtype of the ids."""
        return self.held.dtype

    @property
    def ends(self) -> tuple[int, int]:
        """The first and the last id."""
        return self.held.ends

    def lasting(self) -> PackedColumn:
        """Return these ids: a compressed graph has them for as long as it is there."""
        return self

    def at(self, index: Array) -> Array:
        """Some ids."""
        return self.held.at(index)

    def search(self, asked: Array) -> Array:
        """Find integers among the ids: their positions, -1 where not there."""
        asked = to_device(asked, self.device)
        xp = array_module(asked)
        least, most = held_between(asked.dtype, *self.held.ends)
        if least > most:
            return xp.full(asked.size, -1, dtype=np.int64)
        # all are looked up, since to pick some makes the host wait for a GPU
        inside = (asked >= least) & (asked <= most)
        return xp.where(inside, self.held.find(xp.where(inside, asked, least)), -1)

    def _all(self, kind: Kind) -> Any:
        return self._as_series(self.values, kind, copy=False)


class Reading(NamedTuple):
    """What `read_id` works on."""

    which: Array  # of the ids, by number; none: all
    firsts: Array
    widths: Array
    starts: Array
    words: Array
    ids: Array


class Packing(NamedTuple):
    """What `pack_block` works on."""

    ids: Array
    widths: Array
    starts: Array
    words: Array


def compact(vertices: VertexIds) -> VertexIds:
    """Put ids in the form that takes the least room; several columns need not ascend."""
    if len(vertices.columns) > 1:
        return vertices
    (column,) = vertices.columns
    if isinstance(column, PackedColumn) or column.family != "integer":
        return vertices
    held = packed(column.values)
    if held is None:
        return vertices
    return VertexIds((PackedColumn(held, column.dtype),), vertices.kind)


def packed(ids: Array) -> RangeOfIds | PackedIds | None:
    """Put ascending integers in the form that takes the least room; None: as they are."""
    xp, size = array_module(ids), ids.size
    if not size or not ids.dtype.isnative:
        return None
    first, last = int(ids[0]), int(ids[-1])
    if last - first == size - 1:
        return RangeOfIds(first, size, ids.dtype, device_of(ids))
    numbers = xp.arange(0, size, BLOCK)
    ends = xp.minimum(numbers + (BLOCK - 1), size - 1)
    firsts = ids[numbers].astype(dtype_of_64_bits(ids.dtype))
    more = (ids[ends].astype(firsts.dtype) - firsts).astype(np.uint64)
    more -= (ends - numbers).astype(np.uint64)
    powers = xp.asarray(np.uint64(1) << np.arange(64, dtype=np.uint64))
    widths = xp.searchsorted(powers, more, side="right").astype(np.uint8)
    words = xp.zeros(words_of(widths), np.uint64)
    found = PackedIds(firsts, widths, words, size, ids.dtype)
    if found.nbytes >= ids.nbytes:
        return None
    work = Packing(ids, widths, found.starts, words)
    each(functions, "any", "pack_block", widths.size, work, found.device)
    return found


def words_of(widths: Array) -> int:
    """Say how many words blocks of such widths have."""
    return BLOCK // 64 * integer_sum(widths)


def _starts(widths):
    starts = array_module(widths).cumsum(widths, dtype=np.int64)
    starts -= widths
    starts *= BLOCK // 64
    return starts


def dtype_of_64_bits(dtype: np.dtype) -> type:
    """The type of 64 bits in which integers of a dtype are reckoned with."""
    return np.uint64 if np.dtype(dtype).kind == "u" else np.int64


@functools.cache
def functions(_scheme: str, target: Target) -> dict[str, Function]:
    """Compile the functions that take a number and a `Reading`, a block and a `Packing`."""
    device = target.device_function
    block_bits, in_block, word_bits = np.int64(7), np.int64(127), np.uint64(64)
    one, all_bits = np.uint64(1), np.uint64(0xFFFF_FFFF_FFFF_FFFF)

    @device
    def read_id(item, work):
        i = work.which[item] if work.which.size > 0 else item
        block, inside = i >> block_bits, i & in_block
        number = np.uint64(np.int64(work.firsts[block])) + np.uint64(inside)
        width = np.uint64(work.widths[block])
        if width > 0:
            bit = np.uint64(inside) * width
            place = np.uint64(work.starts[block]) + (bit >> np.uint64(6))
            shift = bit & np.uint64(63)
            more = work.words[place] >> shift
            if shift + width > word_bits:
                more |= work.words[place + one] << (word_bits - shift)
            number += more & (all_bits >> (word_bits - width))
        work.ids[item] = number

    @device
    def pack_block(block, work):
        width, place = np.uint64(work.widths[block]), np.uint64(work.starts[block])
        if width == 0:
            return
        begin = block << block_bits
        first = np.uint64(np.int64(work.ids[begin]))
        word, shift = np.uint64(0), np.uint64(0)
        for i in range(begin, min(begin + in_block + np.int64(1), work.ids.size)):
            more = np.uint64(np.int64(work.ids[i])) - first - np.uint64(i - begin)
            word |= more << shift
            shift += width
            if shift >= word_bits:
                work.words[place] = word
                place += one
                shift -= word_bits
                # what of the number did not fit; all of it did if nothing is left over
                word = more >> (width - shift) if shift > 0 else np.uint64(0)
        if shift > 0:
            work.words[place] = word

    return {"read_id": read_id, "pack_block": pack_block}
