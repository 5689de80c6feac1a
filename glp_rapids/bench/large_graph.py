"""A graph of billions of edges, made row by row on its device, without a list of its edges.

Vertices lie in blocks of 64, and two of a block are neighbours by a hash of the pair: in one block
of eight nearly always, in the others now and then. Besides, vertex v may be a neighbour of v with
some of its bits flipped, wherever that is. Both are the same seen from either end, so each row is
made by itself, in order, and the graph needs neither sorting nor room for a second copy.
"""

from __future__ import annotations

import functools
from functools import partial
from typing import Any

import numpy as np

from glp_rapids.common import hashing
from glp_rapids.device import DeviceName, to_device
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.rows import CSR
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.jit.target import DigestCache, Target, cpu_target

DIGEST = "rows of a large graph 2"  # another number for other rows
BLOCK = 64
FAR = 6  # neighbours elsewhere that a vertex may have; each it has or has not, evenly
DENSE = 8  # one block of so many
DENSE_SHARE, SHARE = 230, 31  # of 256 pairs of a block, those that are neighbours


def _row_of(target: Target) -> Any:
    mix = target.compile(hashing.mix)
    block, far = np.int64(BLOCK), FAR
    dense, dense_share = np.uint64(DENSE), np.uint64(DENSE_SHARE)
    low = np.uint64(255)

    @target.device_function
    def row(v, masks, seed, share, out, place, write):
        """Count the neighbours of v; with ``write`` put them into ``out[place:]``."""
        first = v - (v & (block - np.int64(1)))
        likely = share
        if mix(first, seed) % dense == np.uint64(0):
            likely = dense_share
        count = np.int64(0)
        for u in range(first, first + block):
            pair = min(u, v) * block + (max(u, v) & (block - np.int64(1)))
            if u != v and (mix(pair, seed) & low) < likely:
                if write:
                    out[place + count] = u
                count += np.int64(1)
        for i in range(far):
            u = v ^ masks[i]
            if mix(min(u, v) * np.int64(far) + np.int64(i), seed + np.int64(1)) & np.uint64(1) == 0:
                if write:  # where it belongs: those beyond make room
                    at = place + count
                    while at > place and out[at - 1] > u:
                        out[at] = out[at - 1]
                        at -= 1
                    out[at] = u
                count += np.int64(1)
        return count

    return row


@functools.cache
def _kernel(device: DeviceName) -> Any:
    """Compile what counts, or writes, all rows; on a GPU: a thread a vertex, of any degree."""
    if device == "cpu":
        from glp_rapids.jit.cpu import compiled
        from glp_rapids.jit.parallel import ParallelKernel, threads_available, together

        row = _row_of(cpu_target())

        @compiled(error_model="numpy")
        def some_rows(thread, threads, first, indptr, masks, seed, share, out, write):
            vertices = indptr.size - 1
            for i in range(vertices * thread // threads, vertices * (thread + 1) // threads):
                place = indptr[i] if write else np.int64(0)
                count = row(first + np.int64(i), masks, seed, share, out, place, write)
                if not write:
                    indptr[i + 1] = count

        def rows(team, first, indptr, masks, seed, share, out, write):
            work = team.threads, first, indptr, masks, seed, share, out, write
            together(team, some_rows, work)

        kernel = ParallelKernel(rows, partial(DigestCache, digest=DIGEST))
        return lambda *arguments: kernel(threads_available(), *arguments)
    from glp_rapids.jit.cuda import cuda, gpu_target, kernel

    row = _row_of(gpu_target())

    def rows(first, indptr, masks, seed, share, out, write):
        i = np.int64(cuda.grid(1))
        if i < indptr.size - 1:
            place = indptr[i] if write else np.int64(0)
            count = row(first + i, masks, seed, share, out, place, write)
            if not write:
                indptr[i + 1] = count

    return kernel(rows, DIGEST)


def large_graph(bits: int, seed: int, device: DeviceName) -> Graph:
    """Make a graph of 2**bits vertices, 16.6 entries each; the same on both devices."""
    vertices = 1 << bits
    rows = rows_of_large_graph(bits, seed, device, 0, vertices)
    return Graph(rows.indptr, rows.indices, None, False, VertexIds.numbers(vertices, device))


def rows_of_large_graph(
    bits: int, seed: int, device: DeviceName, first: int, last: int, share: int = SHARE
) -> CSR:
    """Make the rows of some of its vertices; ``share``: 61 gives 23 entries each."""
    if not 8 <= bits <= 32:
        raise ValueError(f"bits must be in 8..32, not {bits}")
    vertices = 1 << bits
    masks = np.arange(1, FAR + 1, dtype=np.int64)
    masks = (hashing.mix_array(masks, seed) % np.uint64(vertices)).astype(np.int64)
    masks |= vertices >> 1  # far away, and distinct by the lowest bits
    masks = (masks & ~np.int64(7)) + np.arange(FAR)
    if device == "cpu":
        xp: Any = np

        def run(*arguments: Any) -> None:
            _kernel("cpu")(np.int64(first), *arguments)
    else:
        import cupy as xp

        from glp_rapids.jit.launch import launch

        def run(*arguments: Any) -> None:
            launch(_kernel("gpu"), -(-(last - first) // 256), 256, np.int64(first), *arguments)

    masks = to_device(masks, device)
    dtype = np.int32 if vertices <= np.iinfo(np.int32).max else np.int64
    indptr = xp.zeros(last - first + 1, np.int64)
    how = masks, np.int64(seed), np.uint64(share)
    run(indptr, *how, xp.zeros(1, dtype), np.bool_(False))
    xp.cumsum(indptr, out=indptr)
    indices = xp.empty(int(indptr[-1]), dtype)
    run(indptr, *how, indices, np.bool_(True))
    return CSR(indptr, indices, None)
