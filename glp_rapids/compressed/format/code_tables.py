"""The tables of the scheme "entropy": made of counts of symbols, and inverted for encoders.

Symbols are counted over all entries and the sums are exact, so both devices make the same tables.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.compressed.format import entropy, huffman
from glp_rapids.compressed.format.entropy import (
    CONTEXTS,
    DEGREE,
    DIRECT,
    EXTRA_AT,
    FIELDS,
    LENGTH_BITS,
    SYMBOLS,
    TOP_AT,
    TOP_BITS,
)
from glp_rapids.compressed.format.layout import Settings
from glp_rapids.compressed.format.scheme import Function
from glp_rapids.device import array_module, device_of, to_host
from glp_rapids.graph.rows import CSR
from glp_rapids.jit.parallel_for import CHUNK, each
from glp_rapids.jit.target import Target

Array = Any

MOST_TABLES = {"degree": 1, "lower": 16, "gap": 16, "length": 16}
"""More would take a multiprocessor's cache from what is read through it."""

COPIES = 32
"""Of the counts, so that threads seldom count in the same place."""

ONE = np.int64(1)


class Counting(NamedTuple):
    """What the counting works on."""

    settings: Settings
    indptr: Array
    indices: Array
    cut: Array  # as in `encode`
    first_part: Array
    items: np.int64  # that share the work
    run: np.int64  # of items that count in one copy
    counts: Array  # of every symbol in every context, a row a copy


def count(csr: CSR, settings: Settings, cut: Array, first_part: Array) -> np.ndarray:
    """Count the symbols of every context: int64, of contexts by symbols, on the host."""
    xp, device = array_module(csr.indptr), device_of(csr.indptr)
    parts = int(first_part[-1])
    counts = xp.zeros((COPIES, CONTEXTS * SYMBOLS), np.uint64)
    for name, number in (("count_lists", csr.number_of_vertices), ("count_parts", parts)):
        # On a CPU the items of a chunk, and they alone, count in one copy, one after the other.
        items, run = (number, 1) if device == "gpu" else (COPIES * CHUNK, CHUNK)
        work = Counting(
            settings, csr.indptr, csr.indices, cut, first_part, np.int64(items), np.int64(run),
            counts,
        )  # fmt: skip
        if number > 0:
            each(functions, "entropy", name, items, work, device)
    return to_host(counts.sum(axis=0)).astype(np.int64).reshape(CONTEXTS, SYMBOLS)


@functools.cache
def functions(scheme: str, target: Target) -> dict[str, Function]:
    """Compile the functions that take an item and a `Counting`."""
    from glp_rapids.compressed.encode import row_of_part

    device = target.device_function
    build = entropy.build(target)
    count_number, count_part = build.count_number, build.count_part
    find_row = device(row_of_part)

    @device
    def count_lists(item, work):
        settings = work.settings
        counts = work.counts[(item // work.run) % COPIES]
        n = np.int64(work.indptr.size) - ONE
        for v in range(item * n // work.items, (item + ONE) * n // work.items):
            first, last = work.indptr[v], work.indptr[v + ONE]
            degree = np.int64(last - first)
            count_number(counts, degree, np.int64(DEGREE))
            if settings.raw_below < degree <= settings.segment:
                count_part(counts, work.indices, first, last, v, settings)

    @device
    def count_parts(item, work):
        settings = work.settings
        counts = work.counts[(item // work.run) % COPIES]
        parts = work.first_part[work.first_part.size - 1]
        for part in range(item * parts // work.items, (item + ONE) * parts // work.items):
            row = find_row(work.first_part, part)
            v = work.cut[row]
            before = (part - work.first_part[row]) << settings.segment_shift
            first = work.indptr[v] + before
            last = min(first + settings.segment, work.indptr[v + ONE])
            count_part(counts, work.indices, first, last, v, settings)

    return {"count_lists": count_lists, "count_parts": count_parts}


def tables_of(counts: np.ndarray) -> np.ndarray:
    """Make the tables for so many symbols of every context: ``counts[context, symbol]``."""
    heads, entries = np.zeros(CONTEXTS, np.int64), []
    begin = 2 * CONTEXTS
    first = 0
    for name, contexts in FIELDS.items():
        own = counts[first : first + contexts]
        group_of = huffman.share(own, MOST_TABLES[name])
        for group in range(int(group_of.max()) + 1):
            total = own[group_of == group].sum(axis=0)
            lengths = huffman.best_lengths(total)
            symbols = huffman.symbols_by_bits(lengths, total)
            of_group = first + np.flatnonzero(group_of == group)
            heads[of_group] = begin << 4 | (symbols.size.bit_length() - 1)
            entries.append(_entries(symbols, lengths))
            begin += symbols.size
        first += contexts
    halves = np.concatenate([*entries, np.zeros(begin & 1, np.uint16)])
    return np.concatenate((heads.astype(np.uint32), halves.astype("<u2").view("<u4")))


def _entries(symbols: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    number, flag = symbols >> 1, symbols & 1
    beyond = number - DIRECT
    extra = np.where(beyond < 0, 0, (beyond >> 1) + 2)
    top = np.where(beyond < 0, number, 2 | (beyond & 1))
    entries = lengths[symbols] | flag << LENGTH_BITS | top << TOP_AT | extra << EXTRA_AT
    return entries.astype(np.uint16)


def codes_of(tables: np.ndarray) -> np.ndarray:
    """Take what an encoder needs out of tables, uint32.

    For every context where its code begins; there, for every symbol, its bits as they lie in the
    bit stream (16 bits) and how many they are (16 bits).
    """
    heads = tables[:CONTEXTS]
    halves = tables.view("<u2")
    own, code_of = np.unique(heads, return_inverse=True)
    codes = np.zeros((own.size, SYMBOLS), np.uint32)
    for code, head in enumerate(own):
        begin, size = int(head) >> 4, 1 << (int(head) & 15)
        entries = halves[begin : begin + size].astype(np.uint32)
        lengths, flags = entries & 15, entries >> LENGTH_BITS & 1
        top, extra = entries >> TOP_AT & ((1 << TOP_BITS) - 1), entries >> EXTRA_AT
        number = np.where(extra == 0, top, DIRECT + 2 * (extra - 2) + (top & 1))
        strings = np.arange(size, dtype=np.uint32)
        word = strings & ((1 << lengths) - 1) | lengths << 16
        codes[code, 2 * number + flags] = word
    starts = CONTEXTS + SYMBOLS * code_of
    return np.concatenate((starts.astype(np.uint32), codes.ravel()))


def check(tables: np.ndarray) -> None:
    """Raise ValueError for tables that a decoder must not be given, wherever they come from."""
    if tables.size < CONTEXTS:
        raise ValueError(f"{tables.size} words are too few for the tables of {CONTEXTS} contexts")
    heads = tables[:CONTEXTS].astype(np.int64)
    begins, widths = heads >> 4, heads & 15
    if (begins < 2 * CONTEXTS).any() or (begins + (1 << widths) > 2 * tables.size).any():
        raise ValueError("a table of codes begins or ends outside the tables")
    halves = tables.view("<u2")
    for begin, width in np.unique(np.stack((begins, widths)), axis=1).T:
        entries = halves[begin : begin + (1 << width)]
        if ((entries & 15) > width).any() or (entries >> EXTRA_AT > 61).any():
            raise ValueError("a table of codes has an entry that no table has")
