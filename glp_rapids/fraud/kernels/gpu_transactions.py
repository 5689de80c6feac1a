"""Transactions and their sums on a GPU: taken, renamed, put together, a launch for all columns.

A batch is small, so a host that asks CuPy for one operation a column is what a tick waits for.

Launch: a thread for each row that is written, or of a list that is gone through. Shared memory:
none. Registers: at the most 28.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.common.scans import places_where
from glp_rapids.common.segments import segment_offsets
from glp_rapids.device import array_module, to_host
from glp_rapids.jit.cuda import cuda
from glp_rapids.jit.items import ItemKernel, item_of_thread
from glp_rapids.jit.primitives import lower_bound, upper_bound

Array = Any
Columns = tuple[Array, ...]
NO_PAIR = np.int64(2**63 - 1)  # as key: a self-loop's reverse, which sorts behind all others


@ItemKernel
def _take(which, source, destination, units, time, of_source, of_destination, of_units, of_time):
    i = item_of_thread()
    if i < which.size:
        row = which[i]
        of_source[i] = source[row]
        of_destination[i] = destination[row]
        of_units[i] = units[row]
        of_time[i] = time[row]


def taken(columns: Columns, which: Array) -> Columns:
    """Return the rows ``which`` of four columns."""
    out = _empty(columns, which.size)
    _take(which.size, which, *columns, *out)
    return out


@ItemKernel
def _join(
    source, destination, units, time, other_source, other_destination, other_units, other_time,
    of_source, of_destination, of_units, of_time,
):  # fmt: skip
    i = item_of_thread()
    row = i - source.size
    if row < 0:
        of_source[i] = source[i]
        of_destination[i] = destination[i]
        of_units[i] = units[i]
        of_time[i] = time[i]
    elif row < other_source.size:
        of_source[i] = other_source[row]
        of_destination[i] = other_destination[row]
        of_units[i] = other_units[row]
        of_time[i] = other_time[row]


def joined(columns: Columns, others: Columns) -> Columns:
    """Put the rows of four columns behind those of others, of the same types."""
    out = _empty(columns, columns[0].size + others[0].size)
    _join(out[0].size, *columns, *others, *out)
    return out


@ItemKernel
def _rename(index, source, destination, of_source, of_destination):
    i = item_of_thread()
    if i < source.size:
        of_source[i] = index[source[i]]
        of_destination[i] = index[destination[i]]


def renamed(index: Array, source: Array, destination: Array) -> Columns:
    """Return both ends of rows by their new indices."""
    out = tuple(array_module(index).empty(source.size, index.dtype) for _ in range(2))
    _rename(source.size, index, source, destination, *out)
    return out


@ItemKernel
def _rename_keys(index, keys, out):
    i = item_of_thread()
    if i < keys.size:
        row, column = index[keys[i] >> 32], index[keys[i] & 0xFFFFFFFF]
        out[i] = np.int64(row) << 32 | np.int64(column)


def renamed_keys(index: Array, keys: Array) -> Array:
    """Return pairs, row << 32 | column, by the new indices of their ends."""
    out = array_module(keys).empty(keys.size, np.int64)
    _rename_keys(keys.size, index, keys, out)
    return out


@ItemKernel
def _move(values, place, after):
    i = item_of_thread()
    if i < values.size and place[i] >= 0:
        after[place[i]] = values[i]


def moved(values: Array, place: Array, size: int) -> Array:
    """Return an array of so many with each value at its place, unless that is negative."""
    after = array_module(values).zeros(size, values.dtype)
    _move(values.size, values, place, after)
    return after


@ItemKernel
def _find_new(one, other, place, fresh):
    i = item_of_thread()
    if i < other.size:
        found = lower_bound(one, 0, one.size, other[i])
        place[i] = found
        fresh[i] = found == one.size or one[found] != other[i]


@ItemKernel
def _shift(before, place, index, new_index):
    i = item_of_thread()
    if i < index.size:
        index[i] = i + before[upper_bound(place, 0, place.size, i)]
    if i < new_index.size:
        new_index[i] = place[i] + before[i]


def merged_places(one: Array, other: Array) -> tuple[Array | None, Array, int]:
    """Merge ascending lists of distinct numbers; see `ids.merged_places`."""
    xp = array_module(one)
    place, fresh = xp.empty(other.size, np.int64), xp.empty(other.size, bool)
    _find_new(other.size, one, other, place, fresh)
    before = segment_offsets(fresh)
    new = int(to_host(before[-1:])[0])
    if not new:
        return None, place, one.size
    index, new_index = xp.empty(one.size, np.int64), xp.empty(other.size, np.int64)
    _shift(max(one.size, other.size), before, place, index, new_index)
    return index, new_index, one.size + new


@ItemKernel
def _spread(key, sums, to, key_after, sums_after):
    i = item_of_thread()
    if i < key.size:
        place = to[i] if to.size > 0 else i
        key_after[place] = key[i]
        for number in range(len(sums)):
            sums_after[number][place] = sums[number][i]


@ItemKernel
def _add(key, sums, to, key_after, sums_after):
    i = item_of_thread()
    if i < key.size:
        key_after[to[i]] = key[i]
        for number in range(len(sums)):
            sums_after[number][to[i]] += sums[number][i]


def merged(
    key: Array, sums: Columns, to: Array | None, new_key: Array, new_sums: Columns, new_to: Array,
    size: int,
) -> Columns:  # fmt: skip
    """Put sums by key at their places among ``size``, and add new ones; None: they stay."""
    xp = array_module(key)
    key_after, after = xp.empty(size, np.int64), tuple(xp.zeros(size, np.int64) for _ in sums)
    to = xp.empty(0, np.int64) if to is None else to
    _spread(key.size, key, _alike(sums), to, key_after, after)
    _add(new_key.size, new_key, _alike(new_sums), new_to, key_after, after)
    return key_after, *after


def _alike(columns: Columns) -> Columns:
    """Return columns of one type and layout, which a kernel can count through."""
    xp = array_module(columns[0])
    return tuple([xp.ascontiguousarray(column, np.int64) for column in columns])


@ItemKernel
def _list_keys(source, destination, both, keys):
    i = item_of_thread()
    if i < source.size:
        row, column = np.int64(source[i]), np.int64(destination[i])
        keys[i] = row << 32 | column
        if both:
            keys[source.size + i] = column << 32 | row if row != column else NO_PAIR


@ItemKernel
def _read_sorted(keys, order, values, fresh, end, sorted_values):
    i = item_of_thread()
    if i < order.size:
        key = keys[order[i]]
        last = i + 1 == order.size
        fresh[i] = key != NO_PAIR and (i == 0 or keys[order[i - 1]] != key)
        if key != NO_PAIR and (last or keys[order[i + 1]] == NO_PAIR):
            end[0] = i + 1
        for number in range(len(values)):
            sorted_values[number][i] = values[number][order[i] % values[number].size]


@ItemKernel
def _write_pairs(keys, order, first, end, running, key, transfers, sums):
    i = item_of_thread()
    if i < first.size:
        begin = first[i]
        behind = first[i + 1] if i + 1 < first.size else end[0]
        key[i] = keys[order[begin]]
        transfers[i] = behind - begin
        for number in range(len(sums)):
            sums[number][i] = running[number][behind] - running[number][begin]


def added_up(source: Array, destination: Array, both: bool, values: Columns) -> Columns:
    """Add rows up by pair; see `pairs.added_up`. ``both``: they count for their reverse, too."""
    xp = array_module(source)
    values = _alike(values)
    keys = xp.empty(source.size * (1 + both), np.int64)
    _list_keys(source.size, source, destination, both, keys)
    order = xp.argsort(keys)
    fresh, end = xp.empty(keys.size, bool), xp.empty(1, np.int64)
    in_order = tuple(xp.empty((len(values), keys.size), np.int64))
    _read_sorted(keys.size, keys, order, values, fresh, end, in_order)
    first = places_where(fresh)
    running = tuple(segment_offsets(one) for one in in_order)
    # one by one: who keeps one of them does not keep the memory of the others
    key, transfers, *sums = (xp.empty(first.size, np.int64) for _ in range(2 + len(values)))
    _write_pairs(first.size, keys, order, first, end, running, key, transfers, tuple(sums))
    return key, transfers, *sums


@ItemKernel
def _note(source, destination, number, versions, changed):
    i = item_of_thread()
    if i < source.size:
        version = versions[number[i]]
        cuda.atomic.max(changed, source[i], version)
        cuda.atomic.max(changed, destination[i], version)


def note(source: Array, destination: Array, number: Array, versions: Array, changed: Array) -> None:
    """Note at both ends of rows the version of each, unless a later one is noted there."""
    _note(source.size, source, destination, number, versions, changed)


def _empty(columns: Columns, size: int) -> Columns:
    empty = array_module(columns[0]).empty
    return tuple([empty(size, column.dtype) for column in columns])
