"""Breadth-first search on CPU cores: narrow levels by a queue, wide ones by bitmaps.

A vertex is one 64-bit word, ``distance << 32 | predecessor``: the least word wins, so a level's
smallest predecessor is found by the comparison that finds its vertices, and a search writes one
cache line a vertex where two arrays take two (on a road network half of the time).

A level whose rows hold a good part of the edges that are left is found the other way round
(Beamer, Asanovic and Patterson, "Direction-optimizing breadth-first search", SC 2012): every vertex
without a distance looks for a neighbour in the frontier. Rows ascend, so the first it finds is the
smallest, and the rest of the row is not read. Threads take chunks of whole words of the bitmaps.

What may take long returns early once ``stop[0]`` is not 0, and what it returns then means nothing.
"""

from __future__ import annotations

import numpy as np
from numba.core import config
from numba.cpython.unsafe.numbers import trailing_zeros

from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, together
from glp_rapids.jit.prefetch import prefetch

U64 = np.uint64
FAR = np.uint64(0xFFFFFFFF_FFFFFFFF)  # of a vertex without a distance
HIGH, ONE, WORD, IN_WORD = U64(32), U64(1), U64(6), U64(63)
LOW = U64(0xFFFFFFFF)
LATER = 8  # vertices: how far ahead of their turn rows are asked for
CHUNK = 64  # words of a bitmap that a thread takes at a time
MOST_VERTICES = (1 << 32) - 2  # that half a word can name

jit = kept(error_model="numpy", allocates=True)
part = compiled(error_model="numpy")

if config.DISABLE_JIT:

    def trailing_zeros(value):
        """Count the zeros below the lowest one."""
        return (int(value) & -int(value)).bit_length() - 1


@jit
def top_down(indptr, indices, label, queue, search, depth, pull, stop):
    """Expand level after level until none is left, ``depth`` is reached or a level is wide.

    ``search``: where in the queue the frontier begins and ends, its distance, how many entries the
    rows have that were in no frontier so far, and, at a wide level, those in this one. ``pull``: a
    level is wide if it has more than one in ``pull[0]`` of the entries that are left, and more than
    one for ``pull[1]`` vertices; never if that is 0, nor if it has at most ``pull[2]`` vertices:
    counting its entries would read the rows' ends once more (on a road network a quarter of the
    time).
    """
    head, tail, level, left = search[0], search[1], search[2], search[3]
    vertices = indptr.size - 1
    while head < tail and level < depth and stop[0] == 0:
        if pull[1] and tail - head > pull[2]:
            entries = np.int64(0)
            for i in range(head, tail):
                u = U64(queue[U64(i)])
                entries += indptr[u + ONE] - indptr[u]
            if entries * pull[0] > left and entries * pull[1] > vertices:
                search[4] = entries
                break
        end = tail
        level += 1
        ahead = U64(level) << HIGH
        beyond = U64(level + 1) << HIGH
        while head < end:
            u = U64(queue[U64(head)])
            if head + 2 * LATER < tail:
                prefetch(indptr, U64(queue[U64(head + 2 * LATER)]))
                prefetch(indices, U64(indptr[U64(queue[U64(head + LATER)])]))
            head += 1
            left -= indptr[u + ONE] - indptr[u]
            new = ahead | u
            for p in range(indptr[u], indptr[u + ONE]):
                v = U64(indices[U64(p)])
                known = label[v]
                if new < known:
                    label[v] = new
                    if known >= beyond:
                        queue[U64(tail)] = v
                        tail += 1
    search[0], search[1], search[2], search[3] = head, tail, level, left


@jit
def without_entries(indptr):
    """Mark, as bits, vertices whose rows are empty, and what is behind the last vertex."""
    vertices = indptr.size - 1
    words = np.zeros((vertices + 63) >> 6, np.uint64)
    for v in range(vertices):
        if indptr[v] == indptr[v + 1]:
            words[v >> 6] |= ONE << U64(v & 63)
    for v in range(vertices, words.size << 6):
        words[v >> 6] |= ONE << U64(v & 63)
    return words


@jit
def mark(queue, first, last, words):
    """Set the bits of the vertices in ``queue[first:last]``."""
    for i in range(first, last):
        v = U64(queue[U64(i)])
        words[v >> WORD] |= ONE << (v & IN_WORD)


@jit
def listed(words, queue, first):
    """Write the vertices whose bits are set to ``queue[first:]``; return where they end."""
    place = first
    for w in range(words.size):
        left = words[w]
        while left:
            queue[U64(place)] = (U64(w) << WORD) + U64(trailing_zeros(left))
            place += 1
            left &= left - ONE
    return place


@part
def _pull_some(
    thread, threads, indptr, indices, out_indptr, label, seen, frontier, following, ahead, counts,
):  # fmt: skip
    found = entries = np.int64(0)
    words = seen.size
    for chunk in range(thread, (words + CHUNK - 1) // CHUNK, threads):
        for w in range(chunk * CHUNK, min(words, (chunk + 1) * CHUNK)):
            left = ~seen[U64(w)]
            new = U64(0)
            while left:
                lowest = left & (~left + ONE)
                v = (U64(w) << WORD) + U64(trailing_zeros(left))
                left ^= lowest
                for p in range(indptr[v], indptr[v + ONE]):
                    u = U64(indices[U64(p)])
                    if (frontier[u >> WORD] >> (u & IN_WORD)) & ONE:
                        label[v] = ahead | u
                        new |= lowest
                        found += 1
                        entries += out_indptr[v + ONE] - out_indptr[v]
                        break
            following[U64(w)] = new
            seen[U64(w)] |= new
    counts[thread, 0] = found
    counts[thread, 1] = entries


@ParallelKernel
def bottom_up(
    team, indptr, indices, out_indptr, label, seen, frontier, following, distance, counts
):
    """Let every vertex that is not ``seen`` look for the frontier: one level.

    ``indptr``, ``indices``: whence edges come. ``following`` becomes the next frontier. Returns how
    many vertices are in it, and the entries of their rows in ``out_indptr``.
    """
    ahead = U64(distance) << HIGH
    arguments = (
        team.threads, indptr, indices, out_indptr, label, seen, frontier, following, ahead, counts,
    )  # fmt: skip
    together(team, _pull_some, arguments)
    found = entries = np.int64(0)
    for thread in range(team.threads):
        found += counts[thread, 0]
        entries += counts[thread, 1]
    return found, entries


@part
def _unpack_some(thread, threads, label, unreached, distance, predecessor):
    size, wanted = label.size, predecessor.size > 0
    for v in range(size * thread // threads, size * (thread + 1) // threads):
        word = label[U64(v)]
        if word == FAR:
            distance[U64(v)] = unreached
        else:
            distance[U64(v)] = word >> HIGH
        if wanted and word & LOW == LOW:
            predecessor[U64(v)] = -1
        elif wanted:
            predecessor[U64(v)] = word & LOW


@ParallelKernel
def unpack(team, label, unreached, distance, predecessor):
    """Write the halves of the words: ``unreached`` in the place of `FAR`, -1 of a low half of ones.

    ``predecessor`` may have no elements: then it is not wanted.
    """
    together(team, _unpack_some, (team.threads, label, unreached, distance, predecessor))
