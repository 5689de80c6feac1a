"""Compressed rows the slow and obvious way: strings of "0" and "1", written from the format's text.

The format is that of glp_rapids/compressed/layout.py and packed.py, and the codes those of bits.py;
nothing else of the library is used. The first character of a string is the first bit of the stream.
"""

from itertools import pairwise
from typing import NamedTuple

BLOCK, WIDTH_BITS, CLASSES, CLASS_BITS = 32, 6, 8, 3

KINDS = "degree", "count", "start", "length", "first", "gap", "rest"


class Format(NamedTuple):
    """A layout, and how numbers of each kind are written.

    Of "cgr" that is the number of a code: 0 for delta, k for zeta_k. Of "packed" it is the widths
    of the classes.
    """

    scheme: str
    min_interval: int
    raw_below: int
    segment: int
    of_kind: dict


def form_of(layout, codes, tables):
    """A layout of the library; ``codes`` gives the number of a code by its name."""
    if layout.scheme == "packed":
        of_kind = widths_of(tables)
        assert words_of(of_kind) == list(map(int, tables))
    else:
        assert list(map(int, tables)) == [0]
        of_kind = {kind: codes[code] for kind, code in layout.codes._asdict().items()}
    return Format(layout.scheme, layout.min_interval, layout.raw_below, layout.segment, of_kind)


def widths_of(tables):
    """The widths that tables tell, of the classes of every kind."""
    widths = [int(word) & 63 for word in tables[1::2]]
    assert len(widths) == len(KINDS) * CLASSES
    return {kind: widths[CLASSES * i :][:CLASSES] for i, kind in enumerate(KINDS)}


def bases_of(widths):
    """The first number of every class, and the one behind the last class."""
    bases = [0]
    for width in widths:
        bases.append(bases[-1] + 2**width)
    return bases


def words_of(widths_of_kinds):
    """The tables that such widths make."""
    words = []
    for kind in KINDS:
        widths = widths_of_kinds[kind]
        for base, width in zip(bases_of(widths)[:-1], widths, strict=True):
            words += [base % 2**32, base // 2**32 * 64 + width]
    return words


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


def classified(x, widths):
    """The class of a number, and its bits."""
    bases = bases_of(widths)
    (name,) = (i for i in range(CLASSES) if bases[i] <= x < bases[i + 1])
    return fixed(name, CLASS_BITS), fixed(x - bases[name], widths[name])


def number_bits(x, kind, form):
    """A number where it stands alone."""
    if form.scheme == "packed":
        return "".join(classified(x, form.of_kind[kind]))
    return coded(x, form.of_kind[kind])


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


def numbers_of(v, entries, form):
    """What is written of a part, as kinds and numbers: counts, of intervals, of residuals."""
    counts, front, intervals, residuals = [], [], [], list(entries)
    if form.min_interval > 0 and len(entries) >= form.min_interval:
        intervals = [run for run in runs_of(entries) if run[1] >= form.min_interval]
        inside = {first + i for first, length in intervals for i in range(length)}
        residuals = [entry for entry in entries if entry not in inside]
        counts = [("count", len(intervals))]
    last = None
    for first, length in intervals:
        front.append(("first", fold(first - v)) if last is None else ("start", first - last - 2))
        front.append(("length", length - form.min_interval))
        last = first + length - 1
    rest = [("first", fold(entry - v)) for entry in residuals[:1]]
    rest += [("gap", b - a - 1) for a, b in pairwise(residuals)]
    if intervals and form.scheme == "packed":
        counts.append(("rest", len(residuals)))
        front.pop()  # the last interval has what is left
    return counts, front, rest


def part(v, entries, form):
    counts, front, rest = numbers_of(v, entries, form)
    bits = "".join(number_bits(x, kind, form) for kind, x in counts)
    if form.scheme == "cgr":
        return bits + "".join(number_bits(x, kind, form) for kind, x in front + rest)
    pairs = [classified(x, form.of_kind[kind]) for kind, x in front + rest]
    return bits + "".join(name for name, _ in pairs) + "".join(number for _, number in pairs)


def list_bits(v, entries, form, number_of_vertices):
    bits = number_bits(len(entries), "degree", form)
    if not entries:
        return bits
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


def counted(lists, form):
    """Every number that is written, by kind."""
    found = {kind: [] for kind in KINDS}
    for v, entries in enumerate(lists):
        found["degree"].append(len(entries))
        if len(entries) <= form.raw_below:
            continue
        for begin in range(0, len(entries), form.segment):
            for numbers in numbers_of(v, entries[begin : begin + form.segment], form):
                for kind, x in numbers:
                    found[kind].append(x)
    return found
