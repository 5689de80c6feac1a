"""The file of a compressed graph: saved, and read back with nothing taken on trust.

A file has all that a reader in another language needs, and nothing in it is code. All numbers are
little-endian. It begins with 40 bytes::

    offset  type     what
         0  8 bytes  89 47 4C 50 43 47 0D 0A ("GLPCG" between bytes that text modes change)
         8  uint32   0x01020304: read as 0x04030201, the reader has the wrong byte order
        12  uint32   version of the format: 3; in files of version 2 there are no "equal" weights
                     and no "range" or "packed" ids, and all else is the same
        16  uint64   bytes of the header
        24  uint64   bytes of the file
        32  uint32   CRC-32 (that of zlib and gzip) of the header
        36  uint32   CRC-32 of the 36 bytes before

The header follows: an object in JSON, in ASCII, with blanks behind it up to a multiple of 64 bytes
from the beginning of the file. There the data begin. The header's ``sections`` are one-dimensional
arrays, in the order in which they lie: ``name``; ``type`` ("u4" is uint32, "i8" int64, "f4" and
"f8" are IEEE floats); ``offset`` from the beginning of the data, in bytes, a multiple of 64 (with
zeros between the sections); ``bytes``; ``crc32``, of the section, eight hexadecimal digits. The
file ends with the last one. The rest of the header is the graph::

    vertices, edges   n, and the number m of entries of all lists
    directed          whether the entries of a list are the destinations of its edges; otherwise an
                      edge is in the lists of both its ends, and in one list if it is a self-loop
    layout            ``scheme``, ``min_interval``, ``raw_below``, ``segment``, and ``codes``: the
                      code of each kind of number, by name; only "cgr" takes notice of them
    weights           null: every edge weighs one. "plain", "equal" or "coded": see below
    order             whether there is a section ``order``
    ids               what the vertices are called

Sections:

``words`` (u4), ``block_bytes`` (u4)
    The bit stream, and the bytes that every block of 32 lists takes. What lists look like is
    said at the top of `compressed.format.layout`, what codes look like at that of
    `compressed.format.bits`, what is different under the schemes "packed" and "entropy" at those of
    `compressed.format.packed` and `compressed.format.entropy`. There, ``id_bits`` is the number of
    bits of n - 1, at least 1. The first block begins at bit 0, and two words of zeros follow the
    last.
``tables`` (u4)
    One zero; under "packed", the classes of numbers, as described there; under "entropy", the
    tables of codes. Word k is of context k: ``begin << 4 | width``.
    Its table has 2**width entries of 16 bits, entry i of all being the lower half of word i / 2 if
    i is even and the upper half if not; it begins with entry ``begin``. The next ``width`` bits of
    the bit stream tell which entry it is, and the entry how many of them belong to the code (its
    lowest 4 bits), then the flag (1), ``top`` (3) and ``extra`` (6). Contexts are, with b(x) for
    the number of bits of x::

        degree   0
        lower    1 + c, for a part of c entries; 1 + min(11 + b(c), 23) from 16 entries on
        gap      25 + 16 * before + 2 * min(b(left) - 1, 7) + up. ``left``: entries that this side
                 of the vertex still has; ``up``: 0 downwards, 1 upwards; ``before``:
                 min(b(g + 1), 7) of the gap g of the run before, 0 for the first on a side
        length   153 + 8 * class + min(b(left - 2), 7). ``class``: as ``before``, of this run's gap
``order`` (i4, or i8 from 2**31 vertices on)
    The index of the vertex at each place: list number p is of vertex ``order[p]``, and entry q of
    it is vertex ``order[q]``. Without it, list v is of vertex v.
``weights`` (i8, f4, f8)
    If "plain": of every entry, in the order of the lists.
``weights.codes`` (u1, u2), ``weights.values`` (i8, f4, f8)
    If "coded": entry i weighs ``values[codes[i]]``; the values ascend and each of them occurs. If
    "equal", there are no codes: every entry weighs ``values[0]``, the only one.
``ids0``, ``ids1``, ...
    The names of the vertices, ascending, of vertex 0 first; a name has as many parts as there are
    objects in the list ``ids.columns``. The object of a section has

    ``kind``
        "integer": any type of integer. "range": the integers from ``first`` on, with no section;
        ``type``, as that of a section, is what they are. "packed": integers too, of ``type``. Of
        them, ``ids0`` (i8, or u8 if the type is unsigned) has those with the numbers 0, 128, 256
        and so on. ``ids0.words`` (u8) has of each 128, in ``ids0.widths`` (u1) bits, how much more
        an id is than the first of its 128, less the difference of their two numbers: one behind the
        other from the lowest bit of a word up, 128 of them also at the end, where zeros are added.
        "text": names in UTF-8 one behind the other (lone surrogates, which are not Unicode and
        which Python has, in three bytes as if they were), of which number i is at
        ``ids0.offsets[i]`` to ``ids0.offsets[i + 1]``. "bytes", "decimal" (the text of the
        number), "moment" (ISO 8601): the same. "datetime", "timedelta": i8, in ``unit`` ("s",
        "ms", "us", "ns"), since 1970 in UTC; ``zone`` is the time zone to show them in, or null.
        "date": i4, days since 1970. "empty": there are no vertices and no section.
    ``family``, ``series``, ``caller``
        For this library: what ids compare with, and the types in which they came. A ``caller``
        that is an object has the categories of categorical ids, section ``ids0.categories``.

    ``ids.frame`` is the kind of table that the caller had, for this library too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from glp_rapids.common.scans import integer_sum
from glp_rapids.compressed import reorder, symmetry
from glp_rapids.compressed.file import container, vertex_ids
from glp_rapids.compressed.file.container import damaged
from glp_rapids.compressed.file.verify import check as check_lists
from glp_rapids.compressed.format import code_tables, packed_tables
from glp_rapids.compressed.format.layout import PADDING, Codes, CompressedRows, Layout
from glp_rapids.compressed.graph import CompressedGraph
from glp_rapids.compressed.rows import CompressedCSR
from glp_rapids.compressed.weights import ByValue, CodedWeights, EqualWeights, Weights, moved
from glp_rapids.device import DeviceName, all_true, any_true, array_module, choose, to_device

Array = Any
Sections = dict[str, Array]

ARRAYS = ("block_bytes", "tables", "words")


def _check_none(tables: np.ndarray) -> None:
    if tables.size != 1:
        raise ValueError("there are some, and the scheme has none")


CHECKS = {"cgr": _check_none, "packed": packed_tables.check, "entropy": code_tables.check}


def save(graph: CompressedGraph, path: str | os.PathLike[str]) -> None:
    """Write a graph to a file; `CompressedGraph.save` says what can go wrong."""
    path = _path(path)
    ids, id_sections = vertex_ids.saved_ids(graph.vertices)
    lists, layout = graph.lists, graph.layout
    sections = {name: getattr(lists, name) for name in ARRAYS}
    if graph.order is not None:
        sections["order"] = graph.order
    sections |= _sections_of(graph.weights)
    header = {
        "vertices": lists.number_of_vertices,
        "edges": lists.number_of_edges,
        "directed": graph.directed,
        "layout": {
            "scheme": layout.scheme,
            "min_interval": layout.min_interval,
            "raw_below": layout.raw_below,
            "segment": layout.segment,
            "codes": layout.codes._asdict(),
        },
        "weights": _form_of(graph.weights),
        "order": graph.order is not None,
        "ids": ids,
    }
    container.write(path, header, sections | id_sections)


def load(
    path: str | os.PathLike[str], mapped: bool, device: DeviceName | None, verify: bool
) -> CompressedGraph:
    """Read a graph from a file; `CompressedGraph.open` says how."""
    path, device = _path(path), choose(device)
    header, sections = container.read(path, mapped=mapped, verify=verify)
    lists = _lists(path, header, sections, device)
    if type(header.get("directed")) is not bool or type(header.get("order")) is not bool:
        damaged(path, "its header: directed and order must be true or false")
    size, order = lists.number_of_vertices, None
    if header["order"]:
        order = to_device(_section(path, sections, "order", size, lists.index_dtype), device)
    weights = moved(_weights(path, header, sections, lists.number_of_edges), device)
    try:
        vertices = vertex_ids.restored_ids(header.get("ids"), sections, size, device, verify)
        if sections:
            raise ValueError(f"nobody knows the section {min(sections)}")
    except ValueError as error:
        damaged(path, f"its vertex ids ({error})")
    if verify:
        _verify(path, CompressedCSR(lists, weights, order), header["directed"])
    return CompressedGraph(lists, weights, header["directed"], vertices, order)


def _lists(path: Path, header: dict, sections: Sections, device: DeviceName) -> CompressedRows:
    """Read the lists of a file; they are as long as they are said to be, and no more is known."""
    vertices, edges = (_natural(path, header, name) for name in ("vertices", "edges"))
    if edges > vertices**2 or edges >= 2**62:
        damaged(path, f"its header: {vertices:,} vertices cannot have {edges:,} entries")
    try:
        entry = dict(header["layout"])
        layout = Layout(**{**entry, "codes": Codes(**entry["codes"])})
    except (LookupError, TypeError, ValueError) as error:
        damaged(path, f"its header: no such layout ({error})")
    arrays = {name: _section(path, sections, name, None, np.uint32) for name in ARRAYS}
    words, block_bytes = arrays["words"], arrays["block_bytes"]
    blocks = -(-vertices // 32)
    if block_bytes.size != blocks:
        damaged(path, f"section block_bytes: it has {block_bytes.size:,} blocks, not {blocks:,}")
    size = -(-integer_sum(block_bytes) // 4) + PADDING
    if words.size != size or any_true(words[-PADDING:] != 0):
        damaged(path, f"section words: it does not end with its last block, of {size:,} words")
    try:
        CHECKS[layout.scheme](arrays["tables"])
        arrays = {name: to_device(array, device) for name, array in arrays.items()}
        return CompressedRows(layout, vertices, edges, **arrays)
    except ValueError as error:
        damaged(path, f"section tables ({error})")


def _weights(path: Path, header: dict, sections: Sections, size: int) -> Weights | None:
    form = header.get("weights", "")
    numbers = (np.int64, np.float32, np.float64)
    if form is None:
        return None
    if form == "plain":
        return _section(path, sections, "weights", size, *numbers)
    if form == "equal":
        return EqualWeights(_section(path, sections, "weights.values", 1, *numbers), size)
    if form == "coded":
        codes = _section(path, sections, "weights.codes", size, np.uint8, np.uint16)
        return CodedWeights(codes, _section(path, sections, "weights.values", None, *numbers))
    damaged(path, "its header: weights must be null, plain, equal or coded")


def _verify(path: Path, rows: CompressedCSR, directed: bool) -> None:
    """Check what only a look at all of the data tells."""
    try:
        check_lists(rows.lists)
    except ValueError as error:
        damaged(path, f"section words ({error})")
    if rows.order is not None and (problem := reorder.misplaced(rows.order)):
        damaged(path, f"section order, which {problem}")
    weights = rows.weights
    if isinstance(weights, CodedWeights) and (problem := _misnumbered(weights)):
        damaged(path, f"section weights.codes, which {problem}")
    values = weights.values if isinstance(weights, ByValue) else weights
    if values is not None:
        xp = array_module(values)
        if not all_true(xp.isfinite(values) & (values >= 0)):
            damaged(path, "its weights, of which one is negative or not finite")
    if not directed and not symmetry.is_symmetric(rows):
        damaged(
            path,
            "section words (the graph is said to be undirected, and its edges are not all at both "
            "ends alike)",
        )


def _misnumbered(weights: CodedWeights) -> str | None:
    """Say what keeps codes from naming ascending values, each of them, or give None."""
    codes, values = weights.codes, weights.values
    bits = values.view(f"u{values.itemsize}")
    if not all_true(bits[1:] > bits[:-1]):
        return "has values that do not ascend"
    used = array_module(codes).zeros(1 << 8 * codes.itemsize, dtype=bool)
    used[codes] = True
    if any_true(used[values.size :]):
        return "has codes without a value"
    if not all_true(used[: values.size]):
        return "has values without a code"
    return None


def _section(path: Path, sections: Sections, name: str, size: int | None, *dtypes: Any) -> Array:
    """Take a section, of one of some types and, unless that is None, of a size."""
    array = sections.pop(name, None)
    if array is None:
        damaged(path, f"the list of its sections: {name} is missing")
    if array.dtype not in dtypes:
        damaged(path, f"section {name}: it holds {array.dtype}, not {np.dtype(dtypes[0])}")
    if size is not None and array.size != size:
        damaged(path, f"section {name}: it has {array.size:,} numbers, not {size:,}")
    return array


def _natural(path: Path, header: dict, name: str) -> int:
    number = header.get(name)
    if type(number) is not int or not 0 <= number < 2**62:
        damaged(path, f"its header: {name} must be a number of them, not {number!r:.40}")
    return number


def _form_of(weights: Weights | None) -> str | None:
    if weights is None:
        return None
    forms = {EqualWeights: "equal", CodedWeights: "coded"}
    return forms.get(type(weights), "plain")


def _sections_of(weights: Weights | None) -> Sections:
    if weights is None:
        return {}
    if not isinstance(weights, ByValue):
        return {"weights": weights}
    codes = {"weights.codes": weights.codes} if isinstance(weights, CodedWeights) else {}
    return codes | {"weights.values": weights.values}


def _path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be a str or a path, not {path!r:.80}")
    return Path(os.fsdecode(path))
