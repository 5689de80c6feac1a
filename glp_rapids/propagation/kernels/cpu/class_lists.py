"""The vertices class after class, as `schedule.class_lists` has them, by counting.

Nothing is made but the list itself: hashes are computed twice rather than kept, which takes less
time than to sort by them, and a fifth of the memory.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.common import hashing
from glp_rapids.common.hashing import CLASS_SEED
from glp_rapids.graph.id_words import IdWords
from glp_rapids.jit.cache import kept
from glp_rapids.jit.interrupts import parts
from glp_rapids.jit.target import cpu_target

mix = cpu_target().compile(hashing.mix)


def class_offsets(id_words: IdWords, number_of_vertices: int, classes: int) -> np.ndarray:
    """Return where each class starts in the list of all vertices, and the end: int64."""
    offsets = np.zeros(classes + 1, np.int64)
    if classes == 1:
        offsets[1] = number_of_vertices
        return offsets
    for first, last in parts(number_of_vertices):
        _count(first, last, *id_words, offsets)
    return np.cumsum(offsets, out=offsets)


def vertices_by_class(id_words: IdWords, offsets: np.ndarray, vertices: np.ndarray) -> None:
    """Fill ``vertices`` with all of them, class after class, ascending in each."""
    if offsets.size == 2:
        vertices[:] = np.arange(vertices.size, dtype=vertices.dtype)
        return
    cursor = offsets[:-1].copy()
    for first, last in parts(vertices.size):
        _fill(first, last, *id_words, cursor, vertices)


def largest_class(offsets: np.ndarray, span: int) -> int:
    """Count the vertices of the largest class, if ``span`` neighbouring ones are one."""
    return int(np.diff(np.append(offsets[:-1:span], offsets[-1])).max())


@kept(error_model="numpy")
def class_of(vertex, first_word, words, classes):
    """Return the class of a vertex, of so many; its word as in `IdWords`."""
    word = words[vertex] if words.size > 1 else np.int64(vertex) + first_word
    return mix(word, CLASS_SEED) % np.uint64(classes)


@kept(error_model="numpy")
def _count(first, last, first_word, words, offsets):
    for vertex in range(first, last):
        offsets[class_of(vertex, first_word, words, offsets.size - 1) + np.uint64(1)] += 1


@kept(error_model="numpy")
def _fill(first, last, first_word, words, cursor, vertices):
    for vertex in range(first, last):
        number = class_of(vertex, first_word, words, cursor.size)
        vertices[cursor[number]] = vertex
        cursor[number] += 1
