"""Compressed rows of a graph whose plain rows are never there at once: piece by piece.

Each block of 32 lists takes whole bytes and is read by itself. So a piece is encoded as the whole
graph would be in which all other rows are empty, and the bytes of its own blocks are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.compressed.choose_codes import SAMPLE, histograms
from glp_rapids.compressed.encode import encode
from glp_rapids.compressed.format import packed_tables
from glp_rapids.compressed.format.layout import BLOCK, PADDING, CompressedRows, Layout
from glp_rapids.device import array_module
from glp_rapids.graph.rows import CSR


class Piece(NamedTuple):
    """Rows that follow one another, from one on whose number is a multiple of 32."""

    first: int
    rows: CSR


def encode_pieces(
    pieces: Callable[[], Iterable[Piece]], number_of_vertices: int, layout: Layout
) -> CompressedRows:
    """Compress rows under "packed", without weights, that come in pieces.

    Parameters
    ----------
    pieces
        Makes them, in order and without a gap, as often as it is called: once for the tables of
        numbers, of which a sample is counted, once for the rows.
    number_of_vertices : int
        Of the whole graph.
    layout : Layout
        How.

    Returns
    -------
    CompressedRows
        On the device of the pieces; the same, bit for bit, as of the whole graph if that has no
        more than a million entries or two, of which no sample is drawn.

    Raises
    ------
    ValueError
        As `encode`, or pieces do not follow one another.

    Notes
    -----
    Beside a piece and the result 20 bytes a vertex, and at the end the result once more.
    """
    if layout.scheme != "packed":
        raise ValueError(f"only lists under 'packed' are made of pieces, not {layout.scheme!r}")
    widths, xp = _tables(pieces, number_of_vertices, layout), None
    stream: list[Any] = []
    sizes: list[Any] = []
    entries = end = 0
    for first, rows in pieces():
        xp = array_module(rows.indptr)
        if first != end or first % BLOCK:
            raise ValueError(
                f"a piece begins with row {first}; the next one is {end}, and has to be a multiple "
                f"of {BLOCK}"
            )
        end = first + rows.number_of_vertices
        if end > number_of_vertices:
            raise ValueError(f"a piece ends with row {end} of {number_of_vertices}")
        made = encode(_among_empty_rows(first, rows, number_of_vertices, xp), layout, widths)
        blocks = slice(first // BLOCK, -(-end // BLOCK))
        ends = xp.cumsum(made.block_bytes, dtype=np.int64)
        begin, behind = int(ends[blocks.start - 1]) if first else 0, int(ends[blocks.stop - 1])
        stream.append(made.words.view(np.uint8)[begin:behind].copy())
        sizes.append(made.block_bytes[blocks])
        entries += rows.number_of_edges
        tables = made.tables
        del made, ends, rows
    if end != number_of_vertices or xp is None:
        raise ValueError(f"pieces end with row {end}, where there are {number_of_vertices} rows")
    words = xp.zeros(-(-sum(part.size for part in stream) // 4) + PADDING, np.uint32)
    place, bytes_of = 0, words.view(np.uint8)
    for number, part in enumerate(stream):
        bytes_of[place : place + part.size] = part
        place += part.size
        stream[number] = None  # twice there, but not longer than need be
    return CompressedRows(
        layout, number_of_vertices, entries, words, xp.concatenate(sizes), tables
    )


def _tables(pieces: Any, number_of_vertices: int, layout: Layout) -> np.ndarray:
    """Count a sample of the numbers of every piece, and make the tables."""
    counts: dict[str, np.ndarray] = {}
    for first, rows in pieces():
        shifted = CSR(rows.indptr, rows.indices - rows.indices.dtype.type(first), None)
        for kind, found in histograms(shifted, layout, SAMPLE).items():
            counts[kind] = counts.get(kind, 0) + found
        del rows, shifted  # before the next piece is made
    return packed_tables.tables_of(counts, layout, number_of_vertices)


def _among_empty_rows(first: int, rows: CSR, number_of_vertices: int, xp: Any) -> CSR:
    indptr = xp.empty(number_of_vertices + 1, np.int64)
    last = first + rows.number_of_vertices
    indptr[:first] = 0
    indptr[first : last + 1] = rows.indptr
    indptr[last + 1 :] = rows.number_of_edges
    return CSR(indptr, rows.indices, None)
