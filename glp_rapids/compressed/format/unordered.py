"""Lists read in no order, for who only wants all neighbours: intervals first, then residuals.

Label propagation counts votes, and does not mind. Threads of a warp, each with a list of its own,
do the same at the same time then, interval by interval and gap by gap, where putting both in order
would send every thread its own way. What becomes of an entry is up to the caller.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glp_rapids.compressed.format import bits, cgr, entropy, neighbour_list, packed
from glp_rapids.compressed.format.neighbour_list import ListFunctions
from glp_rapids.compressed.format.packed import CLASS_BITS, CLASSES, FIRST, GAP, LENGTH, START
from glp_rapids.compressed.format.scheme import Function
from glp_rapids.jit.target import Target

ONE = np.int64(1)
LOW = np.uint64(0xFFFF_FFFF)


def store(out, place, entry):
    """Write an entry to its place."""
    out[np.uint64(place)] = entry


def _coded_gaps(target: Target, emit: Any) -> Any:
    """Make what reads the gaps of "cgr"."""
    code = bits.build(target)
    open_window, fill = code.open_window, code.fill
    code_in, read_far = code.code_in, code.read_far

    @target.device_function
    def read_gaps(words, bit, residual, count, settings, sink, place):
        window, have, word = open_window(words, bit)
        for i in range(count):
            window, have, word = fill(words, window, have, word)
            gap, used = code_in(np.uint32(window & LOW), settings.gap)
            if used == 0:
                far, bit = read_far(
                    words, np.int64(word << np.uint64(5)) - np.int64(have), settings.gap
                )
                residual += far + ONE
                window, have, word = open_window(words, bit)
            else:
                residual += np.int64(gap) + ONE
                window >>= np.uint64(used)
                have = np.uint32(have - used)
            emit(sink, place + i, residual)

    return read_gaps


def _of_codes(target: Target, emit: Any, functions: cgr.CgrFunctions) -> Any:
    """Make what reads a part of "cgr"."""
    code = bits.build(target)
    read_code, unfold, read_gaps = code.read_code, code.unfold, _coded_gaps(target, emit)

    @target.device_function
    def read_part(words, tables, bit, v, count, settings, sink, place):
        if settings.min_interval > 0 and count >= settings.min_interval:
            intervals, bit = read_code(words, bit, settings.count)
            beyond, start_code = np.int64(0), settings.first
            for i in range(intervals):
                x, bit = read_code(words, bit, start_code)
                start = v + unfold(x) if i == 0 else beyond + x + ONE
                start_code = settings.start
                length, bit = read_code(words, bit, settings.length)
                length += settings.min_interval
                beyond = start + length
                for j in range(length):
                    emit(sink, place + j, start + j)
                place += length
                count -= length
        if count > 0:
            x, bit = read_code(words, bit, settings.first)
            residual = v + unfold(x)
            emit(sink, place, residual)
            read_gaps(words, bit, residual, count - ONE, settings, sink, place + ONE)

    return read_part


def _of_classes(target: Target, emit: Any, functions: packed.PackedFunctions) -> Any:
    """Make what reads a part of "packed"."""
    code = bits.build(target)
    open_window, fill, take, unfold = code.open_window, code.fill, code.take, code.unfold
    open_part, class_at = functions.open_part, functions.class_at
    name_mask, name_bits = np.uint64(CLASSES - 1), np.uint64(CLASS_BITS)
    name_have = np.uint32(CLASS_BITS)

    @target.device_function
    def next_number(words, tables, names, cursor, kind):
        """Read a number, and the windows of classes and of bits behind it."""
        name, have, place = fill(words, names[0], names[1], names[2])
        base, width = class_at(tables, kind, np.int64(name & name_mask))
        names = name >> name_bits, np.uint32(have - name_have), place
        rest, window, have, place = take(words, cursor[0], cursor[1], cursor[2], width)
        return base + np.int64(rest), names, (window, have, place)

    @target.device_function
    def read_part(words, tables, bit, v, count, settings, sink, place):
        intervals, residuals, _front, classes, bit = open_part(words, tables, bit, count, settings)
        names, cursor = open_window(words, classes), open_window(words, bit)
        beyond, left = np.int64(0), count - residuals
        for i in range(intervals):
            x, names, cursor = next_number(words, tables, names, cursor, FIRST if i == 0 else START)
            start = v + unfold(x) if i == 0 else beyond + x + ONE
            length = left
            if i < intervals - ONE:
                length, names, cursor = next_number(words, tables, names, cursor, LENGTH)
                length += settings.min_interval
            left -= length
            beyond = start + length
            for j in range(length):
                emit(sink, place + j, start + j)
            place += length
        residual = v
        for i in range(residuals):
            x, names, cursor = next_number(words, tables, names, cursor, FIRST if i == 0 else GAP)
            residual += unfold(x) if i == 0 else x + ONE
            emit(sink, place + i, residual)

    return read_part


def _of_runs(target: Target, emit: Any, functions: entropy.EntropyFunctions) -> Any:
    """Make what reads a part of "entropy", runs to both sides of the vertex."""
    open_runs, next_run = functions.open_runs, functions.next_run

    @target.device_function
    def read_part(words, tables, bit, v, count, settings, sink, place):
        cursor = open_runs(words, tables, bit, v, count)
        while count > 0:
            first, length, cursor = next_run(words, tables, cursor, v)
            for j in range(length):
                emit(sink, place + j, first + j)
            place += length
            count -= length

    return read_part


PARTS: dict[str, Callable[..., Any]] = {
    "cgr": _of_codes,
    "packed": _of_classes,
    "entropy": _of_runs,
}


@dataclass(frozen=True)
class UnorderedFunctions:
    """Functions that read lists of a scheme in no order.

    ``emit(sink, place, entry)``, a plain function, gets every entry once, with a place of its own
    from ``place`` on; ``sink`` is handed through.

    ``read_list(words, tables, bit, v, degree, settings, sink, place)``
        Of a list of degree <= max(raw_below, segment), from the bit behind its degree on.
    ``read_part(words, tables, bit, v, count, settings, sink, place)``
        Of a part of a longer list.
    ``read_degree``, ``part_bit``
        As in `ListFunctions`.
    """

    read_list: Function
    read_part: Function
    read_degree: Function
    part_bit: Function


@functools.cache
def build(scheme: str, target: Target, emit: Callable = store) -> UnorderedFunctions:
    """Compile the functions that read lists of a scheme in no order, and what gets the entries."""
    functions = neighbour_list.build(scheme, target)
    device = target.device_function
    emit = device(emit)
    read_part = PARTS[scheme](target, emit, functions.scheme)
    code = bits.build(target)
    open_window, take = code.open_window, code.take

    @device
    def read_list(words, tables, bit, v, degree, settings, sink, place):
        if degree == 0:
            return
        if degree > settings.raw_below:
            read_part(words, tables, bit, v, degree, settings, sink, place)
            return
        window, have, word = open_window(words, bit)
        for i in range(degree):
            entry, window, have, word = take(words, window, have, word, settings.id_bits)
            emit(sink, place + i, np.int64(entry))

    return UnorderedFunctions(
        read_list=read_list,
        read_part=read_part,
        read_degree=functions.read_degree,
        part_bit=functions.part_bit,
    )


@functools.cache
def in_no_order(scheme: str, target: Target) -> ListFunctions:
    """Do as `neighbour_list.build`, but leave the entries of lists and parts in no order."""
    return replace(neighbour_list.build(scheme, target), **vars(build(scheme, target)))
