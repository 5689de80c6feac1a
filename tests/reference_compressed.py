"""Compressed rows the slow and obvious way: strings of "0" and "1", written from the format's text.

The format is that of glp_rapids/compressed/layout.py and the codes those of bits.py; nothing else
of the library is used. The first character of a string is the first bit of the stream.
"""

from itertools import pairwise
from typing import NamedTuple

BLOCK, GROUP, WIDTH_BITS = 32, 8, 6


class Format(NamedTuple):
    """A layout; codes are numbers here: 0 for delta, k for zeta_k."""

    scheme: str
    min_interval: int
    raw_below: int
    segment: int
    degree: int
    count: int
    start: int
    length: int
    first: int
    gap: int


def form_of(layout, codes):
    """A layout of the library; ``codes`` gives the number of a code by its name."""
    numbers = [codes[code] for code in layout.codes]
    scalars = layout.scheme, layout.min_interval, layout.raw_below, layout.segment
    return Format(*scalars, *numbers)


def fixed(value, width):
    """A number in some bits, the lowest first."""
    assert 0 <= value < 1 << width
    return "".join(str(value >> bit & 1) for bit in range(width))


def coded(x, code):
    number = x + 1
    power = number.bit_length() - 1
    if code == 0:
        return coded(power, 1) + fixed(number - 2**power, power)
    h = power // code
    low, width = 2 ** (h * code), h * code + code - 1
    if number - low < low:
        return "0" * h + "1" + fixed(number - low, width)
    return "0" * h + "1" + fixed(number >> 1, width) + str(number & 1)


def fold(distance):
    return 2 * distance if distance >= 0 else -2 * distance - 1


def runs_of(entries):
    """The longest runs of consecutive ids: first, number of ids."""
    runs = []
    for entry in entries:
        if runs and entry == sum(runs[-1]):
            runs[-1][1] += 1
        else:
            runs.append([entry, 1])
    return runs


def part(v, entries, form):
    bits, residuals = "", list(entries)
    if form.min_interval > 0 and len(entries) >= form.min_interval:
        intervals = [run for run in runs_of(entries) if run[1] >= form.min_interval]
        bits += coded(len(intervals), form.count)
        last = None
        for first, length in intervals:
            if last is None:
                bits += coded(fold(first - v), form.first)
            else:
                bits += coded(first - last - 2, form.start)
            bits += coded(length - form.min_interval, form.length)
            last = first + length - 1
        inside = {first + i for first, length in intervals for i in range(length)}
        residuals = [entry for entry in entries if entry not in inside]
    if residuals:
        bits += coded(fold(residuals[0] - v), form.first)
    gaps = [b - a - 1 for a, b in pairwise(residuals)]
    if form.scheme == "cgr":
        return bits + "".join(coded(gap, form.gap) for gap in gaps)
    for begin in range(0, len(gaps), GROUP):
        group = gaps[begin : begin + GROUP]
        width = max(group).bit_length()
        bits += fixed(width, WIDTH_BITS) + "".join(fixed(gap, width) for gap in group)
    return bits


def list_bits(v, entries, form, number_of_vertices):
    bits = coded(len(entries), form.degree)
    if len(entries) <= form.raw_below:
        id_bits = max(1, (number_of_vertices - 1).bit_length())
        return bits + "".join(fixed(entry, id_bits) for entry in entries)
    if len(entries) <= form.segment:
        return bits + part(v, entries, form)
    parts = [
        part(v, entries[begin : begin + form.segment], form)
        for begin in range(0, len(entries), form.segment)
    ]
    ends = [sum(map(len, parts[: i + 1])) for i in range(len(parts))]
    width = ends[-1].bit_length()
    directory = fixed(width, WIDTH_BITS) + "".join(fixed(end, width) for end in ends)
    return bits + directory + "".join(parts)


def encode(lists, form):
    """The words as bytes, with their padding, and the bytes of each block."""
    stream, block_bytes = b"", []
    for begin in range(0, len(lists), BLOCK):
        bits = "".join(
            list_bits(begin + i, entries, form, len(lists))
            for i, entries in enumerate(lists[begin : begin + BLOCK])
        )
        bits += "0" * (-len(bits) % 8)
        block = bytes(int(bits[i : i + 8][::-1], 2) for i in range(0, len(bits), 8))
        stream += block
        block_bytes.append(len(block))
    return stream + b"\0" * (-len(stream) % 4 + 8), block_bytes
