"""How the classes of a sweep are parted between a GPU and the host: pieces from the front, units.

A strip comes to the GPU piece by piece, its hubs in the first one. Units are what the host's
threads take from the rear.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from glp_rapids.outofcore.both_ends import Piece, units_of
from glp_rapids.outofcore.double_buffer import SLOTS
from glp_rapids.propagation.engines.strips import Layout, Strips
from glp_rapids.propagation.kernels.gpu.plan import HUBS
from glp_rapids.propagation.schedule import spans_of


class Part(NamedTuple):
    """A class: its strips, from ``first`` up to ``end``, what the GPU takes, what the host may."""

    first: int
    end: int
    pieces: list[Piece]
    units: np.ndarray


def most_positions(layout: Layout, classes: int) -> int:
    """Return how many positions a class of a sweep has at the most."""
    bounds, most = layout.bounds, 0
    for span in spans_of(classes):
        ends = np.append(bounds[:-1:span], bounds[-1])
        most = max(most, int(np.diff(ends).max(initial=0)))
    return max(most, 1)


def parts_of(
    layout: Layout, strips: Strips, comes: np.ndarray, span: int, size: int
) -> Iterator[Part]:
    """Yield the classes of a sweep that updates ``span`` neighbouring ones together.

    ``comes``: which strips are copied in it; ``size``: entries of a piece.
    """
    number, a_class = strips.place.size, strips.a_class
    for first in range(0, number, span * a_class):
        end = min(first + span * a_class, number)
        pieces: list[Piece] = []
        for strip in filter(comes.__getitem__, range(first, end)):
            pieces += _pieces(layout, strips, strip, size)
        rear = int(strips.positions[end])
        # Of the last class that is merged the host takes what is streamed, hubs apart; and nothing
        # of the first pieces, which have been asked for by then.
        streamed = [piece for piece in pieces if strips.place[piece.strip] < 0]
        last = [piece for piece in streamed if piece.strip >= end - a_class]
        lowest = rear
        if last and len(streamed) > SLOTS:
            hubs_end = _hubs_end(layout, strips, last[0].strip)
            lowest = max(last[0].first, streamed[SLOTS].first, hubs_end)
        yield Part(first, end, pieces, units_of(layout.starts, pieces, min(lowest, rear), rear))


def _hubs_end(layout: Layout, strips: Strips, strip: int) -> int:
    """Return the position behind the hubs of a strip's class."""
    return int(layout.ends[strip // strips.a_class, HUBS])


def _pieces(layout: Layout, strips: Strips, strip: int, size: int) -> list[Piece]:
    """Cut a strip into pieces of so many entries; what stays on the device is one."""
    first, last = strips.positions[strip : strip + 2].tolist()
    if strips.place[strip] >= 0:
        return [Piece(strip, first, last)]
    entries = layout.starts[first : last + 1]
    cuts = np.searchsorted(entries, np.arange(entries[0], entries[-1], size)) + first
    after = max(first, min(_hubs_end(layout, strips, strip), last))
    cuts = np.unique([first, *cuts[cuts > after].tolist(), last]).tolist()
    return [Piece(strip, *ends) for ends in pairwise(cuts)]
