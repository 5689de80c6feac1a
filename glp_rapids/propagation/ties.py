"""The order that settles ties: plain functions, compiled once for the CPU and once for the GPU."""

from __future__ import annotations

import numpy as np

from glp_rapids.common.hashing import mix

TIE_MIN, TIE_MAX, TIE_HASH = 0, 1, 2
TIE_BREAKS = {"min": TIE_MIN, "max": TIE_MAX, "hash": TIE_HASH}


def word_of(vertex, first, words):
    """Return what is hashed in the place of a vertex, see `graph.id_words`."""
    if words.size > 1:
        return np.uint64(words[np.uint64(vertex)])
    return np.uint64(vertex) + np.uint64(first)


def comes_first(label, other, tie_break, seed, first, words):
    """Tell whether ``label`` precedes ``other`` in the order that settles ties."""
    if tie_break == TIE_MIN:
        return label < other
    if tie_break == TIE_MAX:
        return label > other
    key = mix(word_of(label, first, words), seed)
    other_key = mix(word_of(other, first, words), seed)
    return key < other_key or (key == other_key and label < other)


def order_key(label, tie_break, seed, first, words):
    """Return a number that ascends in the order that settles ties, but for equal hashes."""
    if tie_break == TIE_MIN:
        return np.uint64(label)
    if tie_break == TIE_MAX:
        return ~np.uint64(label)
    return mix(word_of(label, first, words), seed)


def preferred(label, other, current, retain, tie_break, seed, first, words):
    """Tell whether ``label`` wins over ``other`` when both have the highest score."""
    if retain:
        if label == current:
            return True
        if other == current:
            return False
    return comes_first(label, other, tie_break, seed, first, words)
