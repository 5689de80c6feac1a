"""How much memory a run takes on a GPU: figures from above, measured by `bench gpu`, and estimates.

A run decides by the former, which are there at once; `estimate_memory` counts arrays.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.common.hashing import CLASS_SEED, mix_array
from glp_rapids.common.sizes import bits_of_vertex

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.propagation.program import Traits
    from glp_rapids.propagation.subject import Subject

# On a GPU, beside entries or compressed lists: plain graphs of 0.3 to 17 M vertices took 43 to 59.
GPU_PLAIN, GPU_PACKED = 59, 60
# Bytes a vertex of compressed lists beside the engine's arrays, slack counted, while their order is
# made: ten graphs took 24 to 29.
A_DECODED = 26
# Bytes a vertex on a GPU that lists are streamed to, while the order of the rows is made: offsets,
# a word a vertex, and as much to sort them, or the lists.
GPU_PLANNING = 32
# Where several GPUs share a graph, bytes for each vertex of a range: its places in the plan and its
# winner, and what is sorted while the plan is made, or looked at while readers are found.
A_PLANNED = 43
AN_INSPECTED = 32  # of an entry while it is decided whether its reader is in a range
LEAST_AT_ONCE = 1 << 12  # entries
SMALL = 1 << 15  # bytes of arrays of a few elements
WIDEST = 16  # bytes of an entry, its weight included
MULTIPROCESSORS = 132  # of a GPU: they decide little, which rows are hubs of a large graph


def gpu_bytes(
    vertices: int, entries: int, bytes_an_entry: int, directed: bool, packed: int | None = None
) -> int:
    """Estimate the peak of a run on a GPU, the graph included; ``packed``: bytes of its lists."""
    if packed is not None:
        return packed + GPU_PACKED * vertices
    return entries * bytes_an_entry * (2 if directed else 1) + GPU_PLAIN * vertices


def gpu_bytes_of(graph: BaseGraph) -> int:
    """Estimate the peak of a run of a graph on a GPU, see `gpu_bytes`."""
    wide = 0 if graph.scheme else bytes_an_entry(graph)
    packed = graph.nbytes if graph.scheme else None
    return gpu_bytes(graph.number_of_vertices, graph.number_of_edges, wide, graph.directed, packed)


def gpu_resident_bytes(
    subject: Subject, state: int, traits: Traits, classes: int, skip: bool, packed: bool
) -> int:
    """Estimate the peak of a run in a GPU's memory, the graph included.

    ``state``, ``skip`` and ``packed``: see `gpu_streamed_bytes`. Of a directed graph it is the
    figure from above.
    """
    vertices, entries = subject.number_of_vertices, subject.number_of_edges
    wide = bytes_an_entry(subject)
    if subject.directed:
        lists = subject.packed_bytes if packed else None
        return gpu_bytes(vertices, entries, wide, True, lists)
    made = state + arrays_beside_lists(subject, traits, classes, skip or packed, entries)
    if packed:
        return subject.packed_bytes + made + A_DECODED * vertices
    # in the end communities are numbered: where each label occurs first, a sum, and the numbers
    numbering = 3 * subject.index_dtype.itemsize * vertices
    return entries * wide + 8 * (vertices + 1) + made + numbering


def entries_at_once(vertices: int) -> int:
    """Return how many entries are looked at together for a range: as much as its plan takes."""
    return max(vertices * A_PLANNED // AN_INSPECTED, LEAST_AT_ONCE)


def bytes_on_gpu(held: Any) -> int:
    """Add up the device memory that something holds, what is kept with it included."""
    sizes: dict[int, int] = {}
    seen, left = set(), [held]
    while left:
        one = left.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        memory = getattr(getattr(one, "data", None), "mem", None)
        if memory is not None:  # an array, or a view of one
            sizes[memory.ptr] = memory.size
        elif isinstance(one, dict):
            left += one.values()
        elif isinstance(one, tuple | list):
            left += one
        elif type(one).__module__.startswith("glp_rapids."):
            names = (*getattr(one, "__dict__", ()), *getattr(one, "__slots__", ()))
            left += [getattr(one, name) for name in names]
    return sum(sizes.values())


def gpu_streamed_bytes(
    subject: Subject, state: int, traits: Traits, classes: int, skip: bool, apart: bool,
    both: bool, packed: bool, limit: int | None,
) -> tuple[int, bool | None]:  # fmt: skip
    """Estimate the peak on a GPU that lists are streamed to; tell whether it fits.

    ``state``: labels and state, and what is hashed in the place of ids; ``skip``: who is not woken
    is left out; ``apart``: readers have offsets of their own there; ``both``: rows of both
    directions; ``packed``: lists are.
    """
    vertices, entries = subject.number_of_vertices, subject.number_of_edges * (2 if both else 1)
    lists, longest = (
        int(number * bytes_streamed(subject)) for number in (entries, subject.longest_row)
    )
    if packed:  # each list from a word on
        longest = subject.longest_row * subject.packed_bytes // max(entries, 1) + 4
        lists = subject.packed_bytes + 2 * subject.listed
    fixed = state + arrays_beside_lists(subject, traits, classes, skip, entries)
    fixed += 8 * vertices * apart
    two_strips, rows = _two_strips(lists, longest, classes)
    least = max(fixed + two_strips, state + GPU_PLANNING * (vertices + 1) + SMALL)
    whole = max(least, fixed + lists + rows)
    if limit is None or limit < least:
        return least, None if limit is None else False
    return min(limit, whole), True


def _two_strips(lists: int, longest: int, classes: int) -> tuple[int, int]:
    """Estimate the bytes of two strips and what is known of all, cut so that they are the fewest.

    Also what is known if all of every class stays on the device.
    """
    from glp_rapids.propagation.engines import strips, strips_within

    largest = lists // classes + longest
    sizes = strips_within.sizes_by_halves(largest, longest, classes, 1)
    a_class = classes * strips.A_ROW  # with a strip each
    a_line = strips.LINE * WIDEST  # that a slot has more than its strip
    taken = (strips.SLOTS * (size + a_line) + a_class * (2 + largest // size) for size in sizes)
    return min(taken), 2 * a_class


def arrays_beside_lists(
    subject: Subject, traits: Traits, classes: int, skip: bool, entries: int
) -> int:
    """Add up what an engine makes beside the lists; with ``skip`` also slack."""
    # Numba waits for the first run: `import glp_rapids` stays light.
    from glp_rapids.propagation.engines import workspace
    from glp_rapids.propagation.kernels.gpu import hub_pieces, plan, shared_memory
    from glp_rapids.propagation.kernels.gpu.block_per_row import HANDED_OVER

    index = subject.index_dtype
    vote = np.dtype(np.int32 if traits.narrow_votes else np.int64)
    score = vote if traits.default_score else np.dtype(np.int64)
    wide = index.itemsize == 8 or vote.itemsize == 8
    slots = shared_memory.TABLE_SLOTS // (2 if wide else 1)
    growing, prunes = traits.growing_scores, traits.growing_scores and traits.default_update
    handed_over = HANDED_OVER if prunes else None
    blocks = MULTIPROCESSORS * shared_memory.BLOCKS_A_MULTIPROCESSOR
    limits = plan.Limits(blocks, shared_memory.WARPS, slots, handed_over, growing)
    largest = plan.bins(-(-entries // classes), limits)[0][-1]  # of those that are no hubs
    words, degrees = (values[subject.long_rows[1] > largest] for values in subject.long_rows)
    of_class = (mix_array(words, CLASS_SEED) % np.uint64(classes)).astype(np.int64)
    order = np.lexsort((-degrees, of_class))
    begins, ends = (
        np.searchsorted(of_class[order], np.arange(classes), side) for side in ("left", "right")
    )
    hubs = hub_pieces.cut(degrees[order], [begins], [ends], slots, handed_over)
    pieces, listed = hubs.arrays["of_piece"], subject.listed
    sizes = workspace.PlanSizes(hubs.table_slots, hubs.hubs, pieces.shape[0], listed)
    functions = SimpleNamespace(types=(index, vote, score))
    fixed = workspace.bytes_of(
        sizes, functions, prunes, not traits.default_update,
        subject.number_of_vertices if skip else 1, 0, 0,
    )  # fmt: skip
    return fixed + pieces.nbytes + SMALL + listed * (2 * index.itemsize + 8)


def bytes_streamed(graph: BaseGraph) -> float:
    """Return the bytes of a neighbour and its weight in lists that are streamed to a GPU."""
    bits = bits_of_vertex(graph.number_of_vertices, graph.index_dtype)
    return bytes_an_entry(graph) - graph.index_dtype.itemsize + bits / 8


def bytes_an_entry(graph: BaseGraph) -> int:
    """Return the bytes of a neighbour and its weight in plain lists."""
    weights = 0 if graph.weights is None else graph.weights.dtype.itemsize
    return graph.index_dtype.itemsize + weights
