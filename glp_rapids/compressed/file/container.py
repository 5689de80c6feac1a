"""Named arrays and a header in one file: checksums, aligned sections, nothing that is executed.

The bytes of the file are described in `graph_file`, and what the header and the arrays mean to a
compressed graph; here they are written and read, and damage is found. Files of other `Content`
differ in their first eight bytes and in their version.
"""

from __future__ import annotations

import contextlib
import json
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn

import numpy as np

from glp_rapids.common import atomic_file
from glp_rapids.common.mapping import mapped_bytes
from glp_rapids.device import to_host

Array = Any

MAGIC = b"\x89GLPCG\r\n"
ENDIAN_MARK = 0x01020304
VERSION = 3
READABLE = (2, 3)  # in 1, "packed" was another scheme; what is new in 3, 2 did without
ALIGNMENT = 64
PREAMBLE = struct.Struct("<8sIIQQI")  # magic, mark, version, header bytes, file bytes, header CRC
START = PREAMBLE.size + 4  # of the header: behind the CRC of the preamble
CHUNK = 1 << 26
TYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8")
AGAIN = "copy or make it again"


class Content(NamedTuple):
    """What files hold, how they begin, and who writes them."""

    name: str
    writers: str
    remake: str
    magic: bytes = MAGIC
    version: int = VERSION
    readable: tuple[int, ...] = READABLE


GRAPH = Content(
    "compressed graph", "CompressedGraph.save or `glp-rapids compress`", "compress the graph again"
)


def write(
    path: Path, header: dict[str, Any], sections: dict[str, Array], content: Content = GRAPH
) -> None:
    """Write a file; it takes the place of an older one only when it is complete.

    ``header`` is of plain Python values, ``sections`` of one-dimensional NumPy or CuPy arrays.
    """
    table, end = [], 0
    for name, array in sections.items():
        entry = {"name": name, "type": array.dtype.str[1:], "offset": _aligned(end)}
        # a checksum has eight digits whatever it is, so the header's length is known before
        table.append(entry | {"bytes": array.nbytes, "crc32": "0" * 8})
        end = entry["offset"] + array.nbytes
    data = START + len(_text(header, table))
    with atomic_file.replacing(path) as file:
        for entry, array in zip(table, sections.values(), strict=True):
            file.seek(data + entry["offset"])
            entry["crc32"] = f"{_write_array(file, array):08x}"
        file.truncate(data + end)
        text = _text(header, table)
        parts = content.magic, ENDIAN_MARK, content.version, len(text), data + end, zlib.crc32(text)
        preamble = PREAMBLE.pack(*parts)
        file.seek(0)
        file.write(preamble + struct.pack("<I", zlib.crc32(preamble)) + text)


def read(
    path: Path, *, mapped: bool, verify: bool, content: Content = GRAPH
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Read the header and the sections of a file, or raise a ValueError that says what is wrong.

    ``mapped``: the arrays are views of the file, read when they are looked at; what is written to
    them goes to memory of this process, never to the file. ``verify``: check the checksums of the
    sections too, for which all of them are read once.
    """
    if not path.is_file():
        problem = "is no file" if path.exists() else "there is no such file"
        raise FileNotFoundError(f"{path}: {problem}")
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        header, data = _read_header(path, file, size, content)
        table = _checked_table(path, header.pop("sections", None), size - data)
        source = _Mapped(file) if mapped and size else _Loaded(file)
        sections = {}
        end = 0
        for name, dtype, offset, length, checksum in table:
            if source.bytes_at(data + end, offset - end).any():
                damaged(path, f"bytes {data + end:,} to {data + offset:,}, which must be zero")
            end = offset + length
            array = source.bytes_at(data + offset, length)
            if verify and (found := _checksum(array)) != checksum:
                damaged(path, f"section {name} (its CRC-32 is {found:08x}, not {checksum:08x})")
            array = array.view(dtype)
            sections[name] = array.astype(dtype.newbyteorder("="), copy=False)
    return header, sections


def is_container(path: Path) -> bool:
    """Tell whether a file begins as one of these."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
    return False


def damaged(path: Path, what: str) -> NoReturn:
    """Raise that a file is damaged, and where."""
    raise ValueError(f"{path} is damaged in {what}: {AGAIN}")


def _read_header(
    path: Path, file: BinaryIO, size: int, content: Content
) -> tuple[dict[str, Any], int]:
    """Read the header, and where the data begin."""
    preamble = file.read(START)
    if preamble[: len(MAGIC)] != content.magic[: len(preamble)] or not preamble:
        shown = "it is empty" if not preamble else f"it begins with {preamble[:8]!r}"
        raise ValueError(
            f"{path} is no {content.name} of glp_rapids: {shown}; name a file that "
            f"{content.writers} wrote"
        )
    if len(preamble) < START:
        _truncated(path, size, None)
    _, mark, version, length, total, header_sum = PREAMBLE.unpack_from(preamble)
    (own_sum,) = struct.unpack_from("<I", preamble, PREAMBLE.size)
    if own_sum != zlib.crc32(preamble[: PREAMBLE.size]) or mark != ENDIAN_MARK:
        damaged(path, f"its first {START} bytes")
    if version not in content.readable:
        versions = " and ".join(map(str, content.readable))
        which = f"versions {versions}" if len(content.readable) > 1 else f"version {versions}"
        raise ValueError(
            f"{path} is of version {version} of the format, and only {which} can be read: "
            f"update glp_rapids, or {content.remake}"
        )
    if size < total:
        _truncated(path, size, total)
    if size > total:
        raise ValueError(f"{path} goes on for {size - total:,} bytes behind its end: {AGAIN}")
    if not START + length <= size or (START + length) % ALIGNMENT:
        damaged(path, "the length of its header")
    text = file.read(length)
    if len(text) < length:
        _truncated(path, START + len(text), total)
    if zlib.crc32(text) != header_sum:
        damaged(path, "its header")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError):
        damaged(path, "its header, which is no JSON")
    if not isinstance(header, dict):
        damaged(path, "its header, which is no JSON object")
    return header, START + length


def _checked_table(path: Path, table: Any, room: int) -> list[tuple]:
    """List name, dtype, offset, bytes and checksum of the sections, which fill all the room."""
    if not isinstance(table, list):
        damaged(path, "the list of its sections")
    checked, end, names = [], 0, set()
    for number, entry in enumerate(table):
        try:
            name, dtype, checksum = entry["name"], entry["type"], int(entry["crc32"], 16)
            offset, length = entry["offset"], entry["bytes"]
            right = (
                isinstance(name, str)
                and name not in names
                and dtype in TYPES
                and (type(offset), type(length)) == (int, int)
                and offset == _aligned(end)
                and 0 <= length <= room - offset
                and length % (dtype := np.dtype(f"<{dtype}")).itemsize == 0
            )
        except (KeyError, TypeError, ValueError):
            right = False
        if not right:
            damaged(path, f"entry {number} of the list of its sections")
        names.add(name)
        checked.append((name, dtype, offset, length, checksum))
        end = offset + length
    if end != room:
        damaged(path, "the list of its sections, which does not fill the file")
    return checked


def _truncated(path: Path, size: int, total: int | None) -> NoReturn:
    missing = "" if total is None else f" of {total:,}"
    raise ValueError(f"{path} is truncated: it holds {size:,}{missing} bytes; {AGAIN}")


class _Mapped:
    """Views of a file that is mapped into memory."""

    def __init__(self, file: BinaryIO) -> None:
        self.bytes = mapped_bytes(file)

    def bytes_at(self, offset: int, length: int) -> np.ndarray:
        return self.bytes[offset : offset + length]


class _Loaded:
    """Parts of a file, each read into memory of its own."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def bytes_at(self, offset: int, length: int) -> np.ndarray:
        loaded = np.empty(length, dtype=np.uint8)
        self.file.seek(offset)
        read = self.file.readinto(memoryview(loaded))
        if read < length:  # someone cut the file off meanwhile
            _truncated(Path(self.file.name), offset + read, None)
        return loaded


def _chunks(array: Array) -> Iterator[np.ndarray]:
    """Yield the bytes of an array as they are in the file, part by part, from the host."""
    step = CHUNK // array.dtype.itemsize
    for first in range(0, array.size, step):
        part = np.ascontiguousarray(to_host(array[first : first + step]))
        yield part.astype(part.dtype.newbyteorder("<"), copy=False).view(np.uint8)


def _write_array(file: BinaryIO, array: Array) -> int:
    checksum = 0
    for part in _chunks(array):
        file.write(memoryview(part))
        checksum = zlib.crc32(part, checksum)
    return checksum


def _checksum(array: np.ndarray) -> int:
    checksum = 0
    for part in _chunks(array):  # by parts, so that it can be interrupted
        checksum = zlib.crc32(part, checksum)
    return checksum


def _text(header: dict[str, Any], table: list[dict[str, Any]]) -> bytes:
    """Write the header as canonical JSON, blanks behind it up to where the data are aligned."""
    text = json.dumps(header | {"sections": table}, sort_keys=True, separators=(",", ":"))
    return text.encode().ljust(_aligned(START + len(text)) - START)


def _aligned(offset: int) -> int:
    return -(-offset // ALIGNMENT) * ALIGNMENT
