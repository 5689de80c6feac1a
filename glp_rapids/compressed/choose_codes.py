"""Which numbers a graph's lists have: counted, and the cheapest code of each kind taken.

How many bits a number x takes depends in every code on the bits of x + 1 alone, so one histogram
of these tells the exact cost of all codes. Only integers are added and compared: the same codes on
every device. Of a large graph the numbers of every so many blocks of 32 lists are counted, one
or two million entries in all, which matters only between codes that are nearly equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.common.segments import occurrences, segment_ids, segment_offsets
from glp_rapids.compressed.format.layout import BLOCK, CODES, DELTA, Codes, Layout
from glp_rapids.device import array_module, to_host
from glp_rapids.graph.rows import CSR

Array = Any

SAMPLE = 1 << 20  # entries
LENGTHS = 63  # of x + 1, less one


def best_codes(rows: CSR, layout: Layout, sample: int = SAMPLE) -> Codes:
    """Choose the cheapest code of each kind of number; of equals the first in `CODES`."""
    counts = histograms(rows, layout, sample)
    costs = {name: code_sizes(code) for name, code in CODES.items()}
    best = {}
    for kind, count in counts.items():
        if count.any():
            best[kind] = min(costs, key=lambda name: int(count @ costs[name]))
    return Codes(**best)


def code_sizes(code: int) -> np.ndarray:
    """Count the bits of numbers x in a code, by the bits of x + 1 less one."""
    length = np.arange(LENGTHS)
    if code == DELTA:
        return length + 2 * np.frexp(length + 1)[1] - 1
    zeros = length // code
    return zeros + 1 + zeros * code + code - (length % code == 0)


def histograms(rows: CSR, layout: Layout, sample: int = SAMPLE) -> dict[str, np.ndarray]:
    """Count the numbers of each kind by the bits of x + 1 less one."""
    xp = array_module(rows.indptr)
    powers = 1 << xp.arange(LENGTHS, dtype=np.int64)
    found = {}
    for kind, numbers in _numbers(*_sampled(rows, sample), layout).items():
        # Rows that do not ascend have numbers below 0; whoever encodes them is told, but not here.
        lengths = xp.maximum(xp.searchsorted(powers, numbers + 1, side="right") - 1, 0)
        found[kind] = to_host(occurrences(lengths, LENGTHS))
    return found


def _sampled(rows: CSR, sample: int) -> tuple[Array, CSR]:
    """Pick the vertices of every so many blocks, and their rows."""
    xp, n = array_module(rows.indptr), rows.number_of_vertices
    step = max(1, rows.number_of_edges // sample)
    if step == 1:
        return xp.arange(n), rows
    blocks = xp.arange(0, -(-n // BLOCK), step)
    vertices = (BLOCK * blocks[:, None] + xp.arange(BLOCK)).ravel()
    vertices = vertices[vertices < n]
    return vertices, _some(rows, vertices)


def _some(rows: CSR, wanted: Array) -> CSR:
    xp = array_module(rows.indptr)
    starts = rows.indptr[wanted]
    degrees = rows.indptr[wanted + 1] - starts
    indptr = segment_offsets(degrees)
    entries = xp.arange(int(indptr[-1]))
    row = segment_ids(indptr, np.int64, entries.size)
    return CSR(indptr, rows.indices[entries + (starts - indptr[:-1])[row]], None)


def _numbers(vertices: Array, rows: CSR, layout: Layout) -> dict[str, Array]:
    """Collect all numbers that would be written of some rows, by kind; see `layout`."""
    xp, shortest = array_module(rows.indptr), layout.min_interval
    numbers = {"degree": rows.degree}
    if layout.raw_below:
        wanted = xp.flatnonzero(rows.degree > layout.raw_below)
        vertices, rows = vertices[wanted], _some(rows, wanted)
    indices = rows.indices.astype(np.int64, copy=False)
    if not indices.size:
        return numbers
    row = segment_ids(rows.indptr, np.int64, indices.size)
    entries = xp.arange(indices.size)
    opens_part = ((entries - rows.indptr[row]) & (layout.segment - 1)) == 0
    opens_run = opens_part.copy()
    opens_run[1:] |= indices[1:] != indices[:-1] + 1
    part = xp.cumsum(opens_part) - 1
    run = xp.flatnonzero(opens_run)
    length = xp.diff(xp.append(run, indices.size))
    is_interval = length >= (shortest or indices.size + 1)
    distance = indices - vertices[row]  # from the vertex whose list it is

    interval, length = run[is_interval], length[is_interval]
    opens = _first_of_their_part(part[interval])
    sizes = xp.diff(xp.append(xp.flatnonzero(opens_part), indices.size))
    many = occurrences(part[interval], sizes.size)
    start = indices[interval]
    before = xp.zeros_like(start)
    before[1:] = start[:-1] + length[:-1]
    residual = xp.flatnonzero(~is_interval[xp.cumsum(opens_run) - 1])
    leads = _first_of_their_part(part[residual])
    gap = xp.diff(indices[residual])[~leads[1:]] - 1
    first = xp.append(distance[interval[opens]], distance[residual[leads]])
    numbers |= {"first": (first << 1) ^ (first >> 63), "gap": gap}
    if shortest:
        numbers |= {
            "count": many[sizes >= shortest],
            "start": (start - before - 1)[~opens],
            "length": length - shortest,
        }
    if layout.scheme == "packed" and interval.size:
        # How long the last interval is follows from how many residuals there are.
        last = xp.append(opens[1:], True)
        residuals = occurrences(part[residual], sizes.size)
        numbers |= {"length": numbers["length"][~last], "rest": residuals[many > 0]}
    return numbers


def _first_of_their_part(part: Array) -> Array:
    first = array_module(part).ones(part.size, dtype=bool)
    first[1:] = part[1:] != part[:-1]
    return first
