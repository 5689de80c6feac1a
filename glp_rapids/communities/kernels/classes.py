"""Classes of vertices on a CPU: drawn by a hash, and listed by counting."""

from __future__ import annotations

import numpy as np

from glp_rapids.common import hashing
from glp_rapids.communities.schedule import classes_for
from glp_rapids.jit.cache import kept
from glp_rapids.jit.target import cpu_target

mix = cpu_target().compile(hashing.mix)


def draws_of_classes(
    words: np.ndarray, seed: int, draw: int, dtype: type = np.int64
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw classes by a hash: that of each vertex, where each begins in the list, and the list."""
    class_of = np.empty(words.size, np.uint8)
    offsets = np.zeros(classes_for(words.size) + 1, np.int64)
    members = np.empty(words.size, dtype)
    _draw(words, np.uint64(hashing.CLASS_SEED + seed + (draw << 32)), class_of, offsets, members)
    return class_of, offsets, members


@kept(error_model="numpy")
def _draw(words, seed, class_of, offsets, members):
    others = np.uint64(offsets.size - 2)  # there is a power of two of classes
    for v in range(words.size):
        drawn = mix(words[v], seed) & others
        class_of[v] = drawn
        offsets[drawn + np.uint64(1)] += 1
    for group in range(offsets.size - 1):
        offsets[group + 1] += offsets[group]
    for v in range(words.size):
        place = np.uint64(class_of[v])
        members[np.uint64(offsets[place])] = v
        offsets[place] += 1
    for group in range(offsets.size - 1, 0, -1):
        offsets[group] = offsets[group - 1]
    offsets[0] = 0
