"""The GPU engine: small ego-networks as bits in shared memory, large ones and graphs as CSR.

All ego-networks together are one graph, whose nodes are the entries of the rows and whose pieces
are the ego-networks. So what cuts a graph down to a core or a truss cuts down all large
ego-networks of a batch at once, whatever their sizes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.device import array_module, memory_free, to_host
from glp_rapids.diversity.kernels import gpu_bitmap, gpu_edges, gpu_join, gpu_peel, gpu_rows
from glp_rapids.diversity.kernels.gpu_bitmap import EVERY, MEMBERS, SCORE
from glp_rapids.diversity.kernels.gpu_common import launch, launch_together, multiprocessors, on
from glp_rapids.sorting import rows_of

Array = Any

MODELS = {"component": gpu_bitmap.COMPONENT, "core": gpu_bitmap.CORE, "truss": gpu_bitmap.TRUSS}
BYTES_A_NODE = 32
MOST_NODES = np.iinfo(np.int32).max  # of a batch: that its nodes have numbers of 32 bits
# Of the ego-networks as a CSR: an entry and its row, and what peeling keeps or makes of each.
BYTES_AN_ENTRY = {"component": 0, "core": 32, "truss": 48}


def _on_its_gpu(method: Callable) -> Callable:
    @functools.wraps(method)
    def run(self, *arguments, **options):
        with on(self._number):
            return method(self, *arguments, **options)

    return run


class GpuEngine:
    """Ego-networks, cores and trusses of a simple undirected graph on one GPU."""

    def __init__(
        self, indptr: Array, indices: Array, *,
        number: int | None = None, memory_limit: int | None = None,
    ):  # fmt: skip
        self.xp = array_module(indptr)
        self.indptr, self.indices = indptr, indices
        self.batches = 0
        self._number, self._memory_limit = number, memory_limit

    @_on_its_gpu
    def scores(self, vertices: Array, k: int, model: str) -> Array:
        """Give the score of every vertex asked for."""
        scores = self.xp.zeros(vertices.size, np.int32)
        hubs = self._small(vertices, k, model, SCORE, scores=scores)
        for batch in self._batches(vertices, hubs, model):
            root, size = self._contexts(batch, k, model)
            first = self._first_members(root, size, k, model)
            found = self.xp.bincount(batch.ego_of[first], minlength=batch.listed.size)
            scores[batch.listed] = found.astype(np.int32)
        return scores

    @_on_its_gpu
    def every_score(self, vertices: Array, model: str) -> tuple[Array, Array]:
        """Give the scores for k = 1 up to the degree, and where each vertex's begin."""
        xp = self.xp
        offsets = self._offsets(vertices)
        scores = xp.zeros(int(offsets[-1]), np.int32)
        hubs = self._small(vertices, 1, model, EVERY, scores=scores, offsets=offsets)
        if model == "component":
            for batch in self._batches(vertices, hubs, model):
                _, size = self._contexts(batch, 1, model)
                root = xp.flatnonzero(size)
                place = offsets[batch.listed][batch.ego_of[root]] + size[root] - 1
                xp.add.at(scores, place, np.int32(1))
            self._sum_rows_from_behind(scores, offsets[:-1], xp.diff(offsets))
            return offsets, scores
        for batch in self._batches(vertices, hubs, model):
            self._add_every(batch, model, offsets[batch.listed], scores)
        return offsets, scores

    @_on_its_gpu
    def members(self, vertices: Array, k: int, model: str) -> Array:
        """Give the first member of the context of each node, as a place in the row; else -1."""
        xp = self.xp
        offsets = self._offsets(vertices)
        members = xp.full(int(offsets[-1]), -1, np.int32)
        hubs = self._small(vertices, k, model, MEMBERS, offsets=offsets, members=members)
        for batch in self._batches(vertices, hubs, model):
            root, size = self._contexts(batch, k, model)
            counts = xp.zeros(root.size, bool)
            counts[self._first_members(root, size, k, model)] = True
            place = xp.arange(root.size) - batch.offsets[batch.ego_of]
            first = root - batch.offsets[batch.ego_of]
            members[offsets[batch.listed][batch.ego_of] + place] = xp.where(counts[root], first, -1)
        return members

    @_on_its_gpu
    def ego_rows(self, vertices: Array) -> tuple[Array, Array]:
        """Give the ego-networks as one CSR over their nodes."""
        self.batches += 1
        batch = self._batch(vertices, None)
        return batch.indptr, self._filled(batch)

    @_on_its_gpu
    def common_neighbors(self) -> Array:
        """Count what the two ends of every entry have in common."""
        self.batches += 1
        whole = self._whole()
        _, edge = self._edges(whole)
        return self._common(whole)[edge]

    @_on_its_gpu
    def triangle_counts(self) -> Array:
        """Count the triangles that each vertex is a corner of."""
        self.batches += 1
        corners = self.xp.zeros(self.indptr.size - 1, np.int64)
        self._intersect(self._whole(), gpu_rows.CORNERS, result=_nothing(self.xp), corners=corners)
        corners //= 2  # each was counted over both edges at this corner
        return corners

    @_on_its_gpu
    def core_number(self, k: int | None = None) -> Array:
        """Give core numbers; with ``k`` only whether they reach it."""
        self.batches += 1
        return self._cores(self.indptr, self.indices, k)

    @_on_its_gpu
    def trussness(self, k: int | None = None, *, once: bool = False) -> Array:
        """Give the trussness of every entry; with ``k`` only whether it reaches it.

        ``once``: only at the entry of an edge's smaller end, with less than any at the other.
        """
        self.batches += 1
        whole = self._whole()
        rows, edge = self._edges(whole)
        truss = self._trusses(whole, rows, edge, self._common(whole), k)
        return truss if once else truss[edge]

    @_on_its_gpu
    def edges(
        self, least: int = 0, *, entries: Array | None = None, ends: Array | None = None,
        place: bool = False,
    ) -> tuple[Array, Array, Array | None]:  # fmt: skip
        """Give every edge once: its smaller end, its greater end and, if asked, its entry there.

        Only those of a value of at least ``least``: that of this entry, or those of both ends.
        """
        xp, size = self.xp, self.indices.size
        threads, steps = gpu_edges.THREADS, gpu_edges.STEPS
        blocks = -(-size // (threads * steps))
        wanted, values = gpu_edges.ALL, _nothing(xp)
        if entries is not None:
            wanted, values = gpu_edges.ENTRIES, entries
        elif ends is not None:
            wanted, values = gpu_edges.ENDS, ends
        none, no_entry = (xp.empty(0, t) for t in (self.indices.dtype, _index_type(size)))
        begin = xp.zeros(blocks + 1, np.int64)
        pick = partial(
            launch, gpu_edges.build_pick(threads, steps), blocks, threads,
            self.indptr, self.indices, np.int64(wanted), values, np.int64(least),
        )  # fmt: skip
        pick(begin, none, none, no_entry)
        begin = xp.cumsum(begin)
        number = int(begin[-1])
        if not number:
            return none, none, no_entry
        source, destination = xp.empty(number, none.dtype), xp.empty(number, none.dtype)
        entry = xp.empty(number, no_entry.dtype) if place else no_entry
        pick(begin, source, destination, entry)
        return source, destination, entry

    # ------------------------------------------------------------ small ego-networks

    def _small(self, vertices, k, model, output, scores=None, offsets=None, members=None):
        """Work on all ego-networks that fit shared memory; give the places of the others."""
        xp = self.xp
        scores = _nothing(xp) if scores is None else scores
        members = _nothing(xp) if members is None else members
        offsets = xp.zeros(1, np.int64) if offsets is None else offsets
        degree = self._degrees(vertices)
        smallest = 0
        index_type = self.indices.dtype.type
        for threads, largest, blocks in gpu_bitmap.SIZES:
            listed = xp.flatnonzero((degree > smallest) & (degree <= largest))
            kernel = gpu_bitmap.build(threads, largest, blocks, MODELS[model], index_type)
            launch(
                kernel, listed.size, threads, self.indptr, self.indices, vertices, listed,
                np.int64(k), np.int64(output), scores, offsets, members,
            )  # fmt: skip
            smallest = largest
        self.batches += 1
        return xp.flatnonzero(degree > smallest)

    # ------------------------------------------------------------ large ones

    def _batches(self, vertices: Array, listed: Array, model: str) -> Iterator[SimpleNamespace]:
        """Give the ego-networks listed, as many at once as memory allows."""
        if not listed.size:
            return
        hubs = vertices[listed]
        degree = to_host(self._degrees(hubs))
        bytes_needed = degree * BYTES_A_NODE
        entries = np.zeros_like(degree)
        limit = min(self._memory_limit or memory_free("gpu") // 2, MOST_NODES * BYTES_A_NODE)
        batch, all_at_once = None, False
        if BYTES_AN_ENTRY[model]:
            # how large they are takes one count, itself in pieces that fit
            for first, last in _pieces(degree * BYTES_A_NODE, max(limit, 1 << 20)):
                batch = self._batch(hubs[first:last], listed[first:last])
                ends = to_host(batch.indptr[batch.offsets])
                entries[first:last] = np.diff(ends)
                all_at_once = last - first == listed.size
            bytes_needed = bytes_needed + entries * BYTES_AN_ENTRY[model]
        if bytes_needed.max() > limit:
            worst = int(bytes_needed.argmax())
            edges = f" and {entries[worst] // 2:,} edges among them" if entries[worst] else ""
            raise MemoryError(
                f"the ego-network of a vertex with {degree[worst]:,} neighbours{edges} needs "
                f"{bytes_needed[worst]:,} bytes, and there are {limit:,}; raise memory_limit, or "
                "use device='cpu'"
            )
        if all_at_once and bytes_needed.sum() <= limit:  # and what was counted is the batch
            self.batches += 1
            yield batch
            return
        batch = None  # its memory is wanted
        for first, last in _pieces(bytes_needed, limit):
            self.batches += 1
            yield self._batch(hubs[first:last], listed[first:last], model != "component")

    def _batch(self, vertices, listed, counted=True):
        offsets = self._offsets(vertices)
        ego_of = rows_of(offsets, self.xp.empty(int(offsets[-1]), np.int32))
        batch = SimpleNamespace(vertices=vertices, listed=listed, offsets=offsets, ego_of=ego_of)
        if counted:
            counts = self._intersect(batch, gpu_rows.COUNT)
            batch.indptr = self._running(counts)
        return batch

    def _whole(self):
        """Give the whole graph as a batch: its nodes are its entries, its egos all vertices."""
        return SimpleNamespace(
            vertices=self.xp.arange(self.indptr.size - 1, dtype=self.indices.dtype),
            offsets=self.indptr,
            indptr=self.indptr,
            indices=self.indices,
        )

    def _intersect(self, batch, action, places=None, result=None, corners=None):
        xp = self.xp
        nodes = int(batch.offsets[-1])
        result = xp.zeros(nodes, np.int32) if result is None else result
        places = xp.zeros(1, np.int64) if places is None else places
        corners = xp.zeros(1, np.int64) if corners is None else corners
        # only a node whose ego has that many can be a long one
        size = xp.diff(batch.offsets)
        long = int((size * (size > gpu_rows.LARGEST_SHORT)).sum())
        listed, number = xp.empty(max(long, 1), _index_type(nodes)), xp.zeros(1, np.int64)
        arguments = (
            self.indptr, self.indices, batch.vertices, batch.offsets, np.int64(action), places,
            result, corners, listed, number, np.int64(gpu_rows.LARGEST_SHORT),
        )  # fmt: skip
        threads, together = gpu_rows.SHORT
        launch(gpu_rows.build_intersect(threads, together), -(-nodes // together), threads,
               *arguments)  # fmt: skip
        if long:
            threads, together = gpu_rows.LONG
            launch(gpu_rows.build_intersect(threads, together), int(number[0]), threads,
                   *arguments)  # fmt: skip
        return result

    def _filled(self, batch):
        result = self.xp.zeros(int(batch.indptr[-1]), np.int32)
        return self._intersect(batch, gpu_rows.FILL, batch.indptr, result)

    def _contexts(self, batch, k, model):
        """Give the root of every node's context, and how many nodes each root stands for."""
        xp = self.xp
        parent = xp.arange(batch.ego_of.size, dtype=np.int32)
        if model == "component":
            self._intersect(batch, gpu_rows.JOIN, None, parent)
        else:
            indices, rows, level = self._levels(batch, k, model)
            chosen = xp.flatnonzero((level >= k) & (rows < indices))
            self._join(rows, indices, chosen, parent)
        while True:
            above = parent[parent]
            if bool((above == parent).all()):
                break
            parent = above
        return parent, xp.bincount(parent, minlength=max(parent.size, 1))

    def _first_members(self, root, size, k, model):
        return self.xp.flatnonzero(size >= (k if model == "component" else 2))

    def _levels(self, batch, k, model):
        """Give the entries of the ego-networks and the highest level that each is still in."""
        xp = self.xp
        indices = self._filled(batch)
        rows = rows_of(batch.indptr, indices)
        if model == "core":
            core = self._cores(batch.indptr, indices, k)
            return indices, rows, xp.minimum(core[rows], core[indices])
        inner = GpuEngine(batch.indptr, indices)
        return indices, rows, inner.trussness(k)

    def _add_every(self, batch, model, offsets, scores):
        """Add the contexts of a batch for every k: members less the joins between them."""
        xp = self.xp
        indices, rows, level = self._levels(batch, None, model)
        highest = xp.zeros(batch.ego_of.size, np.int32)
        xp.maximum.at(highest, rows, level)
        inside = xp.flatnonzero(highest)
        xp.add.at(scores, offsets[batch.ego_of[inside]] + highest[inside] - 1, np.int32(1))
        chosen = xp.flatnonzero((rows < indices) & (level > 0))
        chosen = chosen[xp.argsort(-level[chosen])]
        parent = xp.arange(batch.ego_of.size, dtype=np.int32)
        falling = level[chosen]
        last = xp.ones(falling.size, bool)
        xp.not_equal(falling[1:], falling[:-1], out=last[:-1])
        last_of_level = xp.flatnonzero(last)
        levels = to_host(falling[last_of_level]).tolist()
        first = 0
        for last, height in zip((to_host(last_of_level) + 1).tolist(), levels, strict=True):
            self._join(
                rows, indices, chosen[first:last], parent,
                batch.ego_of, offsets, height, scores,
            )  # fmt: skip
            first = last
        self._sum_rows_from_behind(scores, offsets, xp.diff(batch.offsets))
        if model == "truss":  # there is no 1-truss
            scores[offsets] = 0

    def _join(self, rows, indices, chosen, parent, ego_of=None, offsets=None, level=0, scores=None):
        xp = self.xp
        none = xp.zeros(0, np.int32)
        launch(
            gpu_join.build(gpu_join.THREADS), -(-chosen.size // gpu_join.THREADS), gpu_join.THREADS,
            rows, indices, chosen, parent, none if ego_of is None else ego_of,
            xp.zeros(1, np.int64) if offsets is None else offsets, np.int64(level),
            none if scores is None else scores,
        )  # fmt: skip

    # ------------------------------------------------------------ cores and trusses of any CSR

    def _common(self, batch):
        """Count the triangles over each edge, at the entry of its smaller end."""
        return self._intersect(batch, gpu_rows.COUNT_UPPER)

    def _edges(self, csr):
        """Give every entry's row, and the entry of its edge's smaller end."""
        rows = self.xp.empty(csr.indices.size, csr.indices.dtype)
        edge = self.xp.empty(csr.indices.size, _index_type(csr.indices.size))
        threads = gpu_peel.THREADS
        launch(
            gpu_peel.build_edges(threads), -(-edge.size // threads), threads,
            csr.indptr, csr.indices, rows, edge,
        )  # fmt: skip
        return rows, edge

    def _control(self):
        control = np.zeros(gpu_peel.WORDS, np.int64)
        control[gpu_peel.LEAST :] = gpu_peel.NEVER
        return self.xp.asarray(control)

    def _cores(self, indptr, indices, k):
        xp = self.xp
        left = xp.diff(indptr).astype(np.int32)
        core = xp.full(left.size, -1, np.int32)
        lowest, highest = (0, gpu_peel.NEVER - 1) if k is None else (k - 1, k - 1)
        if left.size:
            threads, lanes = gpu_peel.THREADS, gpu_peel.LANES
            launch_together(
                gpu_peel.build_core(threads, lanes), multiprocessors() * 8, threads,
                indptr, indices, left, core, xp.empty(left.size, _index_type(left.size)),
                self._control(), np.int64(lowest), np.int64(highest),
            )  # fmt: skip
        return core

    def _trusses(self, csr, rows, edge, support, k):
        xp = self.xp
        size = edge.size
        truss = xp.where(rows < csr.indices, np.int32(0), np.int32(-1))
        lowest, highest = (0, gpu_peel.NEVER - 4) if k is None else (k - 3, k - 3)
        edges = size // 2
        if size:
            threads, lanes = gpu_peel.THREADS, gpu_peel.LANES
            launch_together(
                gpu_peel.build_truss(threads, lanes), multiprocessors() * 8, threads,
                csr.indptr, csr.indices, rows, edge, support,
                xp.full(size, gpu_peel.NEVER, np.int32), truss, xp.empty(edges, edge.dtype),
                self._control(), np.int64(edges), np.int64(lowest), np.int64(highest),
            )  # fmt: skip
        return truss

    # ------------------------------------------------------------ small things

    def _degrees(self, vertices):
        return self.indptr[vertices + 1] - self.indptr[vertices]

    def _offsets(self, vertices):
        return self._running(self._degrees(vertices))

    def _running(self, sizes):
        ends = self.xp.zeros(sizes.size + 1, np.int64)
        ends[1:] = self.xp.cumsum(sizes)
        return ends

    def _sum_rows_from_behind(self, scores, first, size):
        """Let every place of these pieces hold the sum of what was there and after."""
        xp = self.xp
        ends = self._running(size)
        if not int(ends[-1]):
            return
        row = rows_of(ends, xp.empty(int(ends[-1]), np.int32))
        place = xp.arange(row.size) + (first - ends[:-1])[row]
        running = self._running(scores[place])
        scores[place] = (running[ends[1:]][row] - running[:-1]).astype(np.int32)


def _nothing(xp: Any) -> Array:
    return xp.zeros(1, np.int32)


def _index_type(size: int) -> Any:
    return np.int32 if size < 2**31 else np.int64


def _pieces(sizes: np.ndarray, limit: int) -> Iterator[tuple[int, int]]:
    """Cut a list into runs whose sizes add up to at most the limit, one item at the least."""
    ends = np.cumsum(sizes)
    first, before = 0, 0
    while first < sizes.size:
        last = max(first + 1, int(np.searchsorted(ends, before + limit, side="right")))
        yield first, last
        first, before = last, int(ends[last - 1])
