"""A file of a compressed graph, read by the text of its format alone: Python, no NumPy, no library.

The text is at the top of glp_rapids/compressed/file.py, layout.py, bits.py, packed.py and
entropy.py.
"""

import json
import struct
import zlib
from itertools import pairwise

FORMATS = {"u1": "B", "u2": "H", "u4": "I", "u8": "Q", "i1": "b", "i2": "h", "i4": "i", "i8": "q",
           "f4": "f", "f8": "d"}  # fmt: skip
CODES = {"delta": 0, "gamma": 1, **{f"zeta{k}": k for k in range(1, 9)}}


def read(path):
    """Give the header, and for every vertex its id, its neighbours and their weights."""
    content = path.read_bytes()
    magic, mark, version, length, size, header_sum, own_sum = struct.unpack_from(
        "<8sIIQQII", content
    )
    assert (magic, mark) == (bytes.fromhex("89474C5043470D0A"), 0x01020304)
    assert version in (2, 3)
    assert size == len(content)
    assert own_sum == zlib.crc32(content[:36])
    text = content[40 : 40 + length]
    assert header_sum == zlib.crc32(text)
    header = json.loads(text)
    begin = 40 + length
    assert begin % 64 == 0
    sections = {}
    for section in header["sections"]:
        first = begin + section["offset"]
        part = content[first : first + section["bytes"]]
        assert section["offset"] % 64 == 0
        assert zlib.crc32(part) == int(section["crc32"], 16)
        sections[section["name"]] = [
            number for (number,) in struct.iter_unpack("<" + FORMATS[section["type"]], part)
        ]
    assert first + section["bytes"] == size
    return header, _by_vertex(header, sections)


def _by_vertex(header, sections):
    n = header["vertices"]
    lists = Stream(header, sections).lists()
    assert sum(map(len, lists)) == header["edges"]
    weights = _weights(header, sections)
    order = sections.get("order", range(n))
    found = [None] * n
    at = 0
    for place, entries in enumerate(lists):
        own = None if weights is None else weights[at : at + len(entries)]
        pairs = zip((order[entry] for entry in entries), own or entries, strict=True)
        found[order[place]] = [pair[: 1 if own is None else 2] for pair in sorted(pairs)]
        at += len(entries)
    return list(zip(_ids(header["ids"]["columns"], sections, n), found, strict=True))


def _weights(header, sections):
    if header["weights"] == "coded":
        return [sections["weights.values"][code] for code in sections["weights.codes"]]
    if header["weights"] == "equal":
        (value,) = sections["weights.values"]
        return [value] * header["edges"]
    return sections["weights"] if header["weights"] == "plain" else None


def _ids(columns, sections, n):
    parts = []
    for i, column in enumerate(columns):
        if column["kind"] == "range":
            parts.append(list(range(column["first"], column["first"] + n)))
            continue
        if column["kind"] == "packed":
            parts.append(list(_unpacked(sections, f"ids{i}"))[:n])
            continue
        ids = [] if column["kind"] == "empty" else sections[f"ids{i}"]
        if column["kind"] in ("text", "bytes", "decimal", "moment"):
            offsets, whole = sections[f"ids{i}.offsets"], bytes(ids)
            ids = [whole[a:b] for a, b in pairwise(offsets)]
            if column["kind"] != "bytes":
                ids = [part.decode(errors="surrogatepass") for part in ids]
        parts.append(ids)
    return parts[0] if len(parts) == 1 else list(zip(*parts, strict=True))


def _unpacked(sections, name):
    bits = "".join(f"{word:064b}"[::-1] for word in sections[f"{name}.words"])
    at = 0
    for first, width in zip(sections[name], sections[f"{name}.widths"], strict=True):
        for i in range(128):
            yield first + i + int("0" + bits[at : at + width][::-1], 2)
            at += width
    assert at == len(bits)


class Stream:
    def __init__(self, header, sections):
        words = sections["words"]
        assert words[-2:] == [0, 0]
        self.bits = "".join(f"{word:032b}"[::-1] for word in words)
        self.block_bytes, self.n = sections["block_bytes"], header["vertices"]
        layout = header["layout"]
        self.scheme, self.segment = layout["scheme"], layout["segment"]
        self.min_interval, self.raw_below = layout["min_interval"], layout["raw_below"]
        kind = {"cgr": Codes, "packed": Classes, "entropy": Tables}[self.scheme]
        self.tables = kind(sections["tables"], layout["codes"])

    def lists(self):
        found, begin = [], 0
        for size in self.block_bytes:
            self.at = begin
            for v in range(len(found), min(len(found) + 32, self.n)):
                found.append(self.list(v))
            begin += 8 * size
            assert begin - 8 < self.at <= begin or size == 0
        return found

    def fixed(self, width):
        self.at += width
        return int("0" + self.bits[self.at - width : self.at][::-1], 2)

    def number(self, kind, context=0):
        return self.tables.read(self, kind, context)[0]

    def coded(self, code):
        if code == 0:
            b = self.coded(1)
            return (1 << b) + self.fixed(b) - 1
        h = self.bits.index("1", self.at) - self.at
        self.at += h + 1
        low = 1 << h * code
        y = self.fixed(h * code + code - 1)
        return (y + low if y < low else 2 * y + self.fixed(1)) - 1

    def list(self, v):
        degree = self.number("degree")
        if degree <= self.raw_below:
            return [self.fixed(max(1, (self.n - 1).bit_length())) for _ in range(degree)]
        if degree <= self.segment:
            return self.part(v, degree)
        width = self.fixed(6)
        ends = [self.fixed(width) for _ in range(-(-degree // self.segment))]
        begin, found = self.at, []
        for end in ends:
            found += self.part(v, min(self.segment, degree - len(found)))
            assert self.at == begin + end
        return found

    def part(self, v, count):
        if self.scheme == "entropy":
            return self.runs(v, count)
        many = 0
        if self.min_interval > 0 and count >= self.min_interval:
            many = self.number("count")
        if self.scheme == "cgr":
            return self.ids(v, count, many, None, self.number)
        residuals = self.number("rest") if many else count
        kinds = ["first", "length", *["start", "length"] * (many - 1)][: max(2 * many - 1, 0)]
        kinds += ["first", *["gap"] * (residuals - 1)][:residuals]
        numbers = zip(kinds, self.tables.read_all(self, kinds), strict=True)

        def next_number(kind):
            expected, x = next(numbers)
            assert kind == expected
            return x

        found = self.ids(v, count, many, residuals, next_number)
        assert next(numbers, None) is None
        return found

    def ids(self, v, count, many, residuals, number):
        """The ids of a part: of so many intervals; of so many residuals, or of what is left."""
        intervals = []
        for i in range(many):
            if i == 0:
                start = v + unfolded(number("first"))
            else:
                start = intervals[-1] + 2 + number("start")
            if i == many - 1 and residuals is not None:
                length = count - residuals - len(intervals)
            else:
                length = number("length") + self.min_interval
            intervals += range(start, start + length)
        left = count - len(intervals)
        found = [v + unfolded(number("first"))] if left else []
        while len(found) < left:
            found.append(found[-1] + number("gap") + 1)
        return sorted(intervals + found)

    def runs(self, v, count):
        folded = self.number("lower", count if count < 16 else min(11 + count.bit_length(), 23))
        lower = folded // 2 if folded % 2 == 0 else count - folded // 2
        found = []
        for left, step, nearest in ((lower, -1, v - 1), (count - lower, 1, v)):
            before = 0
            while left:
                among = min(left.bit_length() - 1, 7)
                gap, more = self.tables.read(self, "gap", (before * 8 + among) * 2 + (step > 0))
                before = min((gap + 1).bit_length(), 7)
                length = 1
                if more:
                    among = min((left - 2).bit_length(), 7)
                    length = 2 + self.number("length", before * 8 + among)
                first = nearest + step * gap
                found += range(first, first + step * length, step)
                nearest = first + step * (length + 1)
                left -= length
        return sorted(found)


def unfolded(x):
    return x // 2 if x % 2 == 0 else -(x + 1) // 2


class Codes:
    def __init__(self, words, codes):
        assert words == [0]
        self.codes = {kind: CODES[code] for kind, code in codes.items()}

    def read(self, stream, kind, context):
        return stream.coded(self.codes[kind]), 0


class Classes:
    KINDS = "degree", "count", "start", "length", "first", "gap", "rest"

    def __init__(self, words, _codes):
        assert len(words) == 7 * 8 * 2
        both = zip(words[::2], words[1::2], strict=True)
        pairs = [(low + (high >> 6 << 32), high & 63) for low, high in both]
        for (base, width), (after, _) in pairwise(pairs):
            assert after in (0, base + (1 << width))
        self.of_kind = {kind: pairs[8 * i : 8 * i + 8] for i, kind in enumerate(self.KINDS)}

    def read(self, stream, kind, context):
        return self.read_all(stream, [kind])[0], 0

    def read_all(self, stream, kinds):
        classes = [self.of_kind[kind][stream.fixed(3)] for kind in kinds]
        return [base + stream.fixed(width) for base, width in classes]


class Tables:
    FIRST: dict = {"degree": 0, "lower": 1, "gap": 25, "length": 153}  # noqa: RUF012

    def __init__(self, words, _codes):
        self.words = words
        self.halves = [half for word in words for half in (word & 0xFFFF, word >> 16)]

    def read(self, stream, kind, context):
        head = self.words[self.FIRST[kind] + context]
        begin, width = head >> 4, head & 15
        at = stream.at
        entry = self.halves[begin + stream.fixed(width)]
        stream.at = at + (entry & 15)
        more, top, extra = entry >> 4 & 1, entry >> 5 & 7, entry >> 8 & 63
        return top << extra | stream.fixed(extra), more
