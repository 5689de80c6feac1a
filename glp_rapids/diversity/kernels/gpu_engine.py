"""The GPU engine: small ego-networks as bits in shared memory, large ones and graphs as CSR.

All ego-networks together are one graph, whose nodes are the entries of the rows and whose pieces
are the ego-networks. So what cuts a graph down to a core or a truss cuts down all large
ego-networks of a batch at once, whatever their sizes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from glp_rapids.cohesion.kernels import gpu_intersect, gpu_join
from glp_rapids.cohesion.kernels.gpu_graph import GpuGraph, index_type_for, nothing, on_its_gpu
from glp_rapids.device import LackOfMemory, memory_free, to_host
from glp_rapids.diversity.kernels import gpu_bitmap
from glp_rapids.diversity.kernels.gpu_bitmap import EVERY, MEMBERS, SCORE
from glp_rapids.jit.launch import launch

Array = Any

MODELS = {"component": gpu_bitmap.COMPONENT, "core": gpu_bitmap.CORE, "truss": gpu_bitmap.TRUSS}
BYTES_A_NODE = 32
MOST_NODES = np.iinfo(np.int32).max  # of a batch: that its nodes have numbers of 32 bits
# Of the ego-networks as a CSR: an entry and its row, and what peeling keeps or makes of each.
BYTES_AN_ENTRY = {"component": 0, "core": 32, "truss": 48}


class GpuEngine(GpuGraph):
    """Ego-networks, cores and trusses of a simple undirected graph on one GPU."""

    @property
    def most_alone(self) -> int:
        """Give the members of the largest ego-network that is not worked on with others."""
        return max((largest for _, largest, _ in gpu_bitmap.SIZES), default=0)

    @on_its_gpu
    def scores(self, vertices: Array, k: int, model: str) -> Array:
        """Give the score of every vertex asked for."""
        scores = self.xp.zeros(vertices.size, np.int32)
        hubs = self._small(vertices, k, model, SCORE, scores=scores)
        for batch in self._batches(vertices, hubs, model):
            fewest = k if model == "component" else 2
            _, size = self._contexts(batch, k, model, fewest)
            self._each(
                gpu_join.build_count, gpu_join.THREADS, size.size,
                size, np.int64(fewest), batch.ego_of, batch.listed, scores,
            )  # fmt: skip
        return scores

    @on_its_gpu
    def every_score(self, vertices: Array, model: str) -> tuple[Array, Array]:
        """Give the scores for k = 1 up to the degree, and where each vertex's begin."""
        xp = self.xp
        offsets = self._offsets(vertices)
        scores = xp.zeros(int(offsets[-1]), np.int32)
        hubs = self._small(vertices, 1, model, EVERY, scores=scores, offsets=offsets)
        if model == "component":
            for batch in self._batches(vertices, hubs, model):
                _, size = self._contexts(batch, 1, model, MOST_NODES)
                root = xp.flatnonzero(size)
                place = offsets[batch.listed][batch.ego_of[root]] + size[root] - 1
                xp.add.at(scores, place, np.int32(1))
            self._sum_rows_from_behind(scores, offsets[:-1], xp.diff(offsets))
            return offsets, scores
        for batch in self._batches(vertices, hubs, model):
            self._add_every(batch, model, offsets[batch.listed], scores)
        return offsets, scores

    @on_its_gpu
    def members(self, vertices: Array, k: int, model: str) -> Array:
        """Give the first member of the context of each node, as a place in the row; else -1."""
        xp = self.xp
        offsets = self._offsets(vertices)
        members = xp.full(int(offsets[-1]), -1, np.int32)
        hubs = self._small(vertices, k, model, MEMBERS, offsets=offsets, members=members)
        for batch in self._batches(vertices, hubs, model):
            fewest = k if model == "component" else 2
            root, size = self._contexts(batch, k, model, fewest)
            place = xp.arange(root.size) - batch.offsets[batch.ego_of]
            first = root - batch.offsets[batch.ego_of]
            members[offsets[batch.listed][batch.ego_of] + place] = xp.where(
                size[root] >= fewest, first, -1
            )
        return members

    @on_its_gpu
    def ego_rows(self, vertices: Array) -> tuple[Array, Array]:
        """Give the ego-networks as one CSR over their nodes."""
        self.batches += 1
        batch = self._batch(vertices, None)
        return batch.indptr, self._filled(batch)

    # ------------------------------------------------------------ small ego-networks

    def _small(self, vertices, k, model, output, scores=None, offsets=None, members=None):
        """Work on all ego-networks that fit shared memory; give the places of the others."""
        xp = self.xp
        scores = nothing(xp) if scores is None else scores
        members = nothing(xp) if members is None else members
        offsets = xp.zeros(1, np.int64) if offsets is None else offsets
        above = (0, *(largest for _, largest, _ in gpu_bitmap.SIZES))
        lists = xp.empty((len(above), vertices.size), index_type_for(vertices.size))
        numbers = xp.zeros(len(above), np.int64)
        self._each(
            partial(gpu_intersect.build_sort_out, above=above), gpu_intersect.PLACES, vertices.size,
            self.indptr, vertices, lists, numbers,
        )  # fmt: skip
        numbers = to_host(numbers).tolist()
        index_type = self.indices.dtype.type
        for (threads, largest, blocks), listed, number in zip(
            gpu_bitmap.SIZES, lists[:-1], numbers[:-1], strict=True
        ):
            kernel = gpu_bitmap.build(threads, largest, blocks, MODELS[model], index_type)
            launch(
                kernel, number, threads, self.indptr, self.indices, vertices, listed,
                np.int64(k), np.int64(output), scores, offsets, members,
            )  # fmt: skip
        self.batches += 1
        return lists[-1, : numbers[-1]].copy()  # the other lists need not be kept for it

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
            raise LackOfMemory(
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
        nodes = int(offsets[-1])
        batch = SimpleNamespace(
            vertices=vertices, listed=listed, offsets=offsets, nodes=nodes,
            long=self._long(offsets), ego_of=self._rows(offsets, nodes),
        )  # fmt: skip
        if counted:
            counts = self._intersect(batch, gpu_intersect.COUNT)
            batch.indptr = self._running(counts)
        return batch

    def _filled(self, batch):
        result = self.xp.zeros(int(batch.indptr[-1]), np.int32)
        return self._intersect(batch, gpu_intersect.FILL, batch.indptr, result)

    def _contexts(self, batch, k, model, enough):
        """Give the root of every node's context, and how many nodes each root stands for.

        Counting ends somewhere from ``enough`` on.
        """
        xp, threads = self.xp, gpu_join.THREADS
        parent = xp.arange(batch.ego_of.size, dtype=np.int32)
        size = xp.zeros(parent.size, np.int32)
        if model == "component":
            self._intersect(batch, gpu_intersect.JOIN, None, parent)
        else:
            indices, rows, level = self._levels(batch, k, model)
            self._each(
                gpu_join.build_inside, threads, indices.size,
                rows, indices, level, np.int64(model == "core"), np.int64(k), parent,
            )  # fmt: skip
        self._each(
            gpu_join.build_roots, threads, parent.size, parent, size, np.int64(enough)
        )  # fmt: skip
        return parent, size

    def _levels(self, batch, k, model):
        """Give the entries of the ego-networks and their rows, and the highest level.

        For cores that of every node; for trusses that of every edge, at its smaller end.
        """
        indices = self._filled(batch)
        if model == "core":
            rows = self._rows(batch.indptr, indices.size)
            return indices, rows, self._cores(batch.indptr, indices, k)
        inner = GpuGraph(batch.indptr, indices)
        whole = inner._whole()
        rows, edge = inner._edges(whole)
        return indices, rows, inner._trusses(whole, rows, edge, inner._common(whole), k)

    def _add_every(self, batch, model, offsets, scores):
        """Add the contexts of a batch for every k: members less the joins between them."""
        xp = self.xp
        indices, rows, level = self._levels(batch, None, model)
        if model == "core":
            highest = level
            level = xp.minimum(level[rows], level[indices])
        else:
            highest = xp.zeros(batch.ego_of.size, np.int32)
            xp.maximum.at(highest, rows, level)
            xp.maximum.at(highest, indices, level)
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
        row = self._rows(ends, int(ends[-1]))
        place = xp.arange(row.size) + (first - ends[:-1])[row]
        running = self._running(scores[place])
        scores[place] = (running[ends[1:]][row] - running[:-1]).astype(np.int32)


def _pieces(sizes: np.ndarray, limit: int) -> Iterator[tuple[int, int]]:
    """Cut a list into runs whose sizes add up to at most the limit, one item at the least."""
    ends = np.cumsum(sizes)
    first, before = 0, 0
    while first < sizes.size:
        last = max(first + 1, int(np.searchsorted(ends, before + limit, side="right")))
        yield first, last
        first, before = last, int(ends[last - 1])
