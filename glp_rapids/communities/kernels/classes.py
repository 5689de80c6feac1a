"""Classes of vertices on a CPU: drawn by a hash, and listed by counting."""

from __future__ import annotations

import numpy as np

from glp_rapids.common import hashing
from glp_rapids.jit.cache import kept
from glp_rapids.jit.target import cpu_target

U64 = np.uint64
mix = cpu_target().compile(hashing.mix)

JOINED = 255  # in the place of a class: not in any


def draws_of_classes(
    words: np.ndarray, seed: int, draw: int, classes: int, dtype: type = np.int64,
    class_of: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """Draw classes by a hash: that of each vertex, where each begins in the list, and the list.

    There is a power of two of ``classes``. They are written to ``class_of``, if it is given, but
    for those that are `JOINED` there.
    """
    if class_of is None:
        class_of = np.zeros(words.size, np.uint8)
    offsets = np.zeros(classes + 2, np.int64)
    members = np.empty(words.size, dtype)
    _draw(words, U64(hashing.CLASS_SEED + seed + (draw << 32)), class_of, offsets, members)
    return class_of, offsets[:-1], members[: offsets[-1]]


@kept(error_model="numpy")
def _draw(words, seed, class_of, offsets, members):
    """Draw, and list; ``offsets``, of zeros before, has one more at the end."""
    others = U64(offsets.size - 3)  # there is a power of two of classes
    for v in range(words.size):
        if class_of[v] == JOINED:
            continue
        drawn = mix(words[v], seed) & others
        class_of[v] = drawn
        offsets[drawn + U64(2)] += 1
    for group in range(2, offsets.size):
        offsets[group] += offsets[group - 1]
    for v in range(words.size):
        if class_of[v] == JOINED:
            continue
        place = U64(class_of[v]) + U64(1)
        members[U64(offsets[place])] = v
        offsets[place] += 1
