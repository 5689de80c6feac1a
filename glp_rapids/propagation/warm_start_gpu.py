"""The usual warm start on a GPU, in few launches: whose labels, who is new, who is evaluated first.

On a graph of a million vertices a run takes some milliseconds, so that dozens of launches with a
look at what each came to would take as long as a run. Here each of the two steps reads one word or
a few back at its end. What is not as usual, errors among it, is only flagged: `warm_start` looks
into it with the functions of a CPU, and says what is wrong.

Launches: a thread a row, vertex or list; for the neighbours of new vertices 32 to 1,024 a vertex.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from glp_rapids.device import to_device, to_host
from glp_rapids.graph.vertex_ids import held_between

if TYPE_CHECKING:
    from glp_rapids.graph.rows import CSR

Array = Any

# All bits are 1 at first: no community is there, no position smaller, no flag down.
NOTHING = 0xFFFFFFFF
# Words before: 0 if something is wrong, 0 if a partition is negative, one less than are new.
HEAD = 3
# Words before a bit a vertex: how many are marked, nothing, and in two the entries of their rows.
MARKS = 4
# Threads in all that look at the neighbours of new vertices; as powers of two, those of a vertex.
THREADS, FEWEST, MOST = 1 << 22, 5, 10


class Beginning(NamedTuple):
    """The labels, and which vertices had none, in any order."""

    labels: Array
    new: Array
    negative: bool  # whether a partition is


class Active(NamedTuple):
    """The vertices that are evaluated first."""

    vertices: Array
    entries: int | None  # in their rows; None: they are compressed


def beginning_of(
    index: Array, partition: Array, beyond: int, silence: bool, labels: Array, few: int
) -> Beginning | None:
    """Return where a run begins by the rows of an earlier result; None: look closer.

    ``index``: the vertices of the rows, -1 for what is none. ``partition``: integers; None is
    returned if one is not from -1 to ``beyond`` - 2, or if a vertex has two. ``silence``: -1 stands
    for it, else it is a community as any other. ``labels`` are written. Up to ``few`` new vertices
    take no further look.
    """
    import cupy

    if max(beyond, labels.size) >= NOTHING:
        return None
    least, most = held_between(partition.dtype, -1, beyond - 2)
    words = cupy.full(HEAD + beyond + labels.size, NOTHING, np.uint32)
    head, first, held = words[:HEAD], words[HEAD : HEAD + beyond], words[HEAD + beyond :]
    listed = cupy.empty(few, labels.dtype)
    note, name = _kernels_of_labels()
    note(index, partition, least, most, head, first, held)
    name(held, first, int(silence), few, labels, head, listed)
    right, no_negative, count = to_host(head).tolist()
    if not right:
        return None
    count = (count + 1) & NOTHING
    new = cupy.flatnonzero(held == NOTHING) if count > few else listed[:count].copy()
    return Beginning(labels, new, not no_negative)


def active_of(
    lists: list[Array], new: Array, readers: CSR | None, indptr: Array | None, size: int, most: int
) -> Active | None:
    """Return which of ``size`` vertices are in one of the lists, in any order.

    Those in the plain rows ``readers`` of ``new`` vertices are, too, unless it is None. What is
    negative in a list is no vertex. ``indptr``: of the rows whose entries are counted. None is
    returned for more vertices than ``most``.
    """
    import cupy

    words = cupy.zeros(MARKS + -(-size // 32), np.uint32)
    found = cupy.empty(most, np.int32 if size <= np.iinfo(np.int32).max else np.int64)
    starts = words[:2].view(np.int64) if indptr is None else indptr
    common = most, int(indptr is not None), starts, words, found
    of_list, of_rows = _kernels_of_active()
    for vertices in (*lists, new):
        if vertices.size:
            of_list(to_device(vertices, "gpu"), *common)
    if readers is not None and new.size:
        power = min(max((THREADS // new.size).bit_length() - 1, FEWEST), MOST)
        threads = new.size << power
        of_rows(new, readers.indptr, readers.indices, power, *common, size=threads)
    head = to_host(words[:MARKS])
    count, entries = int(head[0]), int(head[-2:].view(np.uint64)[0])
    if count > most:
        return None
    return Active(found[:count].copy(), None if indptr is None else entries)


@functools.cache
def _kernels_of_labels() -> tuple[Any, Any]:
    """Compile what is done for a row of a result, and then for a vertex."""
    import cupy

    # Most rows of a large community find a smaller position there, and spare the atomic.
    note = """
        if (partition < least || partition > most) {
            head[0] = 0;
        } else {
            if (partition < 0) head[1] = 0;
            if (vertex >= 0) {
                unsigned int community = (unsigned int)((long long)partition + 1);
                unsigned int before = atomicCAS(&held[vertex], 0xFFFFFFFFu, community);
                if (before != 0xFFFFFFFFu && before != community) head[0] = 0;
                unsigned int position = (unsigned int)vertex;
                if (first[community] > position) atomicMin(&first[community], position);
            }
        }
    """
    # Once they are too many, hardly a thread adds to the one word that all would wait for.
    name = """
        if (community == 0xFFFFFFFFu) {
            label = (V)i;
            if (head[2] + 1u <= few) {
                unsigned int place = atomicAdd(&head[2], 1u) + 1u;
                if (place < few) listed[place] = (V)i;
            }
        } else {
            label = silence && community == 0 ? (V)-1 : (V)first[community];
        }
    """
    return (
        cupy.ElementwiseKernel(
            "int64 vertex, P partition, P least, P most",
            "raw uint32 head, raw uint32 first, raw uint32 held", note, "glp_note_communities",
        ),
        cupy.ElementwiseKernel(
            "uint32 community, raw uint32 first, int32 silence, uint32 few",
            "V label, raw uint32 head, raw V listed", name, "glp_name_communities",
        ),
    )  # fmt: skip


_MARK = """
template <class V, class P>
__device__ void glp_mark(
    long long vertex, unsigned int most, bool counts, P& indptr, unsigned int* words, V* found
) {
    unsigned int bit = 1u << (vertex & 31);
    unsigned int* word = words + MARKS + (vertex >> 5);
    if (words[0] > most || (*word & bit) != 0 || (atomicOr(word, bit) & bit) != 0) return;
    unsigned int place = atomicAdd(words, 1u);
    if (place < most) found[place] = (V)vertex;
    if (counts) {
        unsigned long long entries = indptr[vertex + 1] - indptr[vertex];
        if (entries) atomicAdd((unsigned long long*)(words + MARKS - 2), entries);
    }
}
""".replace("MARKS", str(MARKS))


@functools.cache
def _kernels_of_active() -> tuple[Any, Any]:
    """Compile what marks a list of vertices, and what marks those in their rows."""
    import cupy

    of_list = """
        if (vertex >= 0) glp_mark((long long)vertex, most, counts, indptr, &words[0], &found[0])
    """
    of_rows = """
        long long vertex = vertices[i >> power], threads = 1LL << power;
        long long end = begins[vertex + 1];
        for (long long j = begins[vertex] + (i & (threads - 1)); j < end; j += threads)
            glp_mark((long long)indices[j], most, counts, indptr, &words[0], &found[0]);
    """
    given, written = "uint32 most, int32 counts, raw int64 indptr", "raw uint32 words, raw V found"
    return (
        cupy.ElementwiseKernel(
            f"T vertex, {given}", written, of_list, "glp_mark_vertices", preamble=_MARK
        ),
        cupy.ElementwiseKernel(
            f"raw T vertices, raw int64 begins, raw I indices, int32 power, {given}", written,
            of_rows, "glp_mark_neighbours", preamble=_MARK,
        ),
    )  # fmt: skip
