"""The schedule of a level: who is updated together, and when sweeps end.

Eight classes, at most five sweeps, ended by one that moves at most a vertex in a hundred: chosen by
a table over 21 of the named graphs. With 16 or 32 classes wiki-Vote ended .003 of modularity lower
as often as not; with more sweeps LFR at mu 0.5 gained .003, which a third iteration gives, too. On
levels of up to 2,048 vertices there are four classes, so that a GPU waits half as often: modularity
changed by -.0002 to +.0009 (medians on 14 graphs). Up to 8,192 wiki-Vote ended .006 lower with one
seed of three.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.common.hashing import CLASS_SEED, mix_array
from glp_rapids.device import array_module

Array = Any

CLASSES = 8
SMALL, FEWER_CLASSES = 2048, 4  # up to so many vertices, so many
MOST_SWEEPS = 5
FEW = 100  # a sweep ends a level if it moves at most one vertex in so many
REFINING_SWEEPS = 2


def classes_for(vertices: int) -> int:
    """Return how many classes so many vertices fall in."""
    return FEWER_CLASSES if vertices <= SMALL else CLASSES


def settles(moved: list[int], vertices: int) -> bool:
    """Tell whether sweeps that moved so many vertices each are enough."""
    return len(moved) >= MOST_SWEEPS or bool(moved and FEW * moved[-1] <= vertices)


def draws_of_classes(words: Array, seed: int, draw: int) -> tuple[Array, Array, Array]:
    """Draw classes by a hash: that of each vertex, where each begins in the list, and the list."""
    xp = array_module(words)
    mixed = mix_array(words, CLASS_SEED + seed + (draw << 32))
    classes = classes_for(words.size)
    class_of = (mixed % np.uint64(classes)).astype(np.uint8)
    members = xp.argsort(class_of, kind="stable")
    offsets = xp.zeros(classes + 1, np.int64)
    xp.cumsum(xp.bincount(class_of, minlength=classes), out=offsets[1:])
    return class_of, offsets, members
