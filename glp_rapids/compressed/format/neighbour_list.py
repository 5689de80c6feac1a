"""One neighbour list in the bit stream: read, skipped, measured and written, whatever the scheme.

`layout` says what lists look like, and the modules of the schemes how numbers
are coded. The functions are scalar: a thread works on a list, or on a part of one.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from glp_rapids.compressed.format import bits, cgr, entropy, packed
from glp_rapids.compressed.format.layout import WIDTH_BITS
from glp_rapids.compressed.format.scheme import Function, PartFunctions
from glp_rapids.jit.target import Target

ONE = np.int64(1)


SCHEMES: dict[str, Callable[[Target], PartFunctions]] = {
    "cgr": cgr.build,
    "packed": packed.build,
    "entropy": entropy.build,
}


@dataclass(frozen=True)
class ListFunctions:
    """Functions on lists under a scheme, for compiled code alone to call.

    Bits, vertices, degrees and places are int64; ``settings`` is a `Settings`, ``out`` an array of
    vertices, ``indices`` the entries of a CSR. A bit "of a list" is the one behind its degree.

    ``scheme``
        The functions of the scheme, of which ``read_part`` is here again.
    ``read_degree(words, tables, bit, settings)``
        A degree and the bit behind it.
    ``read_list(words, tables, bit, v, degree, settings, out, place)``
        Write a list of degree <= max(raw_below, segment) to ``out[place:]``, ascending; give the
        bit behind it.
    ``directory(words, bit, degree, settings)``
        Of a longer list: the directory's width, the bit of its first entry, that of the first
        part, and the number of parts.
    ``part_bit(words, bit, degree, part, settings)``
        Where a part of a longer list begins; part number ``number of parts``: where the list ends.
    ``skip_list(words, tables, bit, degree, settings)``
        The bit behind any list.
    ``write_raw(words, bit, indices, first, last, settings)``
        Put a list that is left raw into words of zeros; give the bit behind it.
    """

    scheme: PartFunctions
    read_degree: Function
    read_list: Function
    read_part: Function
    directory: Function
    part_bit: Function
    skip_list: Function
    write_raw: Function


@functools.cache
def build(scheme: str, target: Target) -> ListFunctions:
    """Compile the functions on lists under a scheme."""
    parts = SCHEMES[scheme](target)
    code = bits.build(target)
    device = target.device_function
    read_bits, open_window, take = code.read_bits, code.open_window, code.take
    read_number, read_part, skip_part = parts.read_number, parts.read_part, parts.skip_part
    write_bits = code.write_bits
    width_bits = np.int64(WIDTH_BITS)

    @device
    def read_degree(words, tables, bit, settings):
        return read_number(words, tables, bit, settings.degree)

    @device
    def read_raw(words, bit, degree, settings, out, place):
        window, have, word = open_window(words, bit)
        for i in range(place, place + degree):
            value, window, have, word = take(words, window, have, word, settings.id_bits)
            out[np.uint64(i)] = np.int64(value)
        return bit + degree * settings.id_bits

    @device
    def read_list(words, tables, bit, v, degree, settings, out, place):
        if degree == 0:
            return bit
        if degree <= settings.raw_below:
            return read_raw(words, bit, degree, settings, out, place)
        return read_part(words, tables, bit, v, degree, settings, out, place)

    @device
    def directory(words, bit, degree, settings):
        parts = (degree + settings.segment - ONE) >> settings.segment_shift
        width = np.int64(read_bits(words, bit, width_bits))
        bit += width_bits
        return width, bit, bit + parts * width, parts

    @device
    def part_bit(words, bit, degree, part, settings):
        width, entries, parts_bit, _parts = directory(words, bit, degree, settings)
        if part == 0:
            return parts_bit
        return parts_bit + np.int64(read_bits(words, entries + (part - ONE) * width, width))

    @device
    def skip_list(words, tables, bit, degree, settings):
        if degree == 0:
            return bit
        if degree <= settings.raw_below:
            return bit + degree * settings.id_bits
        if degree > settings.segment:
            width, entries, parts_bit, parts = directory(words, bit, degree, settings)
            return parts_bit + np.int64(read_bits(words, entries + (parts - ONE) * width, width))
        return skip_part(words, tables, bit, degree, settings)

    @device
    def write_raw(words, bit, indices, first, last, settings):
        for i in range(first, last):
            bit = write_bits(words, bit, np.uint64(indices[np.uint64(i)]), settings.id_bits)
        return bit

    return ListFunctions(
        scheme=parts, read_degree=read_degree, read_list=read_list, read_part=read_part,
        directory=directory, part_bit=part_bit, skip_list=skip_list, write_raw=write_raw,
    )  # fmt: skip
