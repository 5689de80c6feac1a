"""The order that settles ties: plain functions, compiled once for the CPU and once for the GPU."""

from __future__ import annotations

import numpy as np

from glp_rapids.common.hashing import mix

TIE_MIN, TIE_MAX, TIE_HASH = 0, 1, 2
TIE_BREAKS = {"min": TIE_MIN, "max": TIE_MAX, "hash": TIE_HASH}


def comes_first(label, other, tie_break, seed):
    """Tell whether ``label`` precedes ``other`` in the order that settles ties."""
    if tie_break == TIE_MIN:
        return label < other
    if tie_break == TIE_MAX:
        return label > other
    key = mix(label, seed)
    other_key = mix(other, seed)
    return key < other_key or (key == other_key and label < other)


def order_key(label, tie_break, seed):
    """Return a number that ascends in the order that settles ties, but for equal hashes."""
    if tie_break == TIE_MIN:
        return np.uint64(label)
    if tie_break == TIE_MAX:
        return ~np.uint64(label)
    return mix(label, seed)


def preferred(label, other, current, retain, tie_break, seed):
    """Tell whether ``label`` wins over ``other`` when both have the highest score."""
    if retain:
        if label == current:
            return True
        if other == current:
            return False
    return comes_first(label, other, tie_break, seed)
