"""How much memory a run takes on a GPU, by figures from above, measured by `bench gpu`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.propagation.program import Traits

# On a GPU, beside entries or compressed lists: plain graphs of 0.3 to 17 M vertices took 43 to 59.
GPU_PLAIN, GPU_PACKED = 59, 60
# Bytes a vertex on a GPU that lists are streamed to: while the order of the rows is made (offsets,
# a word a vertex, and as much to sort them, or the lists), and in a run, beside labels and state.
GPU_PLANNING, GPU_STREAMED = 32, 25


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
    subject: BaseGraph, state: int, words: int, traits: Traits, apart: bool, limit: int | None
) -> tuple[int, bool | None]:
    """Estimate the peak on a GPU that plain lists are streamed to; tell whether it fits.

    ``apart``: readers have offsets of their own there.
    """
    vertices, an_entry = subject.number_of_vertices, bytes_an_entry(subject)
    fixed = state + words + vertices * (GPU_STREAMED + (0 if traits.default_update else 8))
    fixed += 8 * vertices * apart
    least = fixed + 2 * subject.longest_row * an_entry
    least = max(least, state + words + GPU_PLANNING * vertices)
    whole = max(least, fixed + subject.number_of_edges * an_entry)
    if limit is None or limit < least:
        return least, None if limit is None else False
    return min(limit, whole), True


def bytes_an_entry(graph: BaseGraph) -> int:
    """Return the bytes of a neighbour and its weight in plain lists."""
    weights = 0 if graph.weights is None else graph.weights.dtype.itemsize
    return graph.index_dtype.itemsize + weights
