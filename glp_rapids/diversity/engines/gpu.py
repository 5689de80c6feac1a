"""The GPU engine of ego-networks: small ones as bits in shared memory, large ones as one graph.

All ego-networks together are one graph, whose nodes are the entries of the rows and whose pieces
are the ego-networks. So what cuts a graph down to a core or a truss cuts down all large
ego-networks of a batch at once, whatever their sizes. Where only one level is asked for,
components and cores are found without writing its edges down, and trusses by counts that end where
they are enough; every level at once takes the edges, and what decomposes a whole graph.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.cohesion.engines.gpu import (
    GpuEngine,
    index_type_for,
    launch_each,
    on_its_gpu,
    unused,
)
from glp_rapids.cohesion.kernels import gpu_intersect
from glp_rapids.common.segments import segment_offsets
from glp_rapids.device import to_host
from glp_rapids.diversity.engines import ego_offsets
from glp_rapids.diversity.engines.gpu_batches import MOST_NODES, Batch, BatchingEngine
from glp_rapids.diversity.kernels import (
    gpu_bitmap,
    gpu_contexts,
    gpu_ego_edges,
    gpu_hubs,
    gpu_lazy,
    gpu_members,
)
from glp_rapids.diversity.kernels.gpu_bitmap import EVERY, MEMBERS, SCORE
from glp_rapids.jit.cuda import multiprocessors
from glp_rapids.jit.launch import launch, launch_together

Array = Any

BLOCKS = 2048 // gpu_lazy.THREADS  # of a multiprocessor, at most
MOST_WITHOUT_HUBS = 64  # members of an ego-network that hubs are not worth a block for
MODELS = {"component": gpu_bitmap.COMPONENT, "core": gpu_bitmap.CORE, "truss": gpu_bitmap.TRUSS}


class GpuEgoEngine(BatchingEngine):
    """Ego-networks of one simple undirected graph on one GPU; and its own cores and trusses."""

    @on_its_gpu
    def most_alone(self, model: str) -> int:
        """Return the members of the largest ego-network that is not worked on with others."""
        return _alone(bool(self.hubs(model).size))[1][-1]

    @on_its_gpu
    def scores(self, vertices: Array, k: int, model: str) -> Array:
        """Count the contexts of every vertex."""
        scores = self.xp.zeros(vertices.size, np.int32)
        hubs = self.hubs_for(vertices, model)
        large = self._small(vertices, k, model, SCORE, hubs, scores=scores)
        fewest = k if model == "component" else 2

        def count(batch: Batch) -> None:
            _, size = self._contexts(batch, k, model, fewest)
            launch_each(
                gpu_contexts.build_count(gpu_contexts.THREADS), gpu_contexts.THREADS, size.size,
                size, np.int64(fewest), batch.ego_of, batch.listed, scores,
            )  # fmt: skip

        self.in_batches(count, vertices, large, model, hubs)
        return scores

    @on_its_gpu
    def every_score(self, vertices: Array, model: str) -> tuple[Array, Array]:
        """Count the contexts for every k from 1 to the degree: offsets and scores."""
        xp = self.xp
        offsets = ego_offsets(self.indptr, vertices)
        scores = xp.zeros(int(offsets[-1]), np.int32)
        hubs = self.hubs_for(vertices, model, every=True)
        large = self._small(vertices, 1, model, EVERY, hubs, scores=scores, offsets=offsets)

        def add_sizes(batch: Batch) -> None:
            _, size = self._contexts(batch, 1, model, MOST_NODES)
            root = xp.flatnonzero(size)
            place = offsets[batch.listed][batch.ego_of[root]] + size[root] - 1
            xp.add.at(scores, place, np.int32(1))

        def add_levels(batch: Batch) -> None:
            self._add_every(batch, model, offsets[batch.listed], scores)

        if model == "component":
            self.in_batches(add_sizes, vertices, large, model, hubs, every=True)
            self._sum_rows_from_behind(scores, offsets[:-1], xp.diff(offsets))
        else:
            self.in_batches(add_levels, vertices, large, model, hubs, every=True)
        return offsets, scores

    @on_its_gpu
    def members(self, vertices: Array, k: int, model: str) -> Array:
        """Name the context of every neighbour by the place of its first member; -1: it has none."""
        xp = self.xp
        offsets = ego_offsets(self.indptr, vertices)
        members = xp.full(int(offsets[-1]), -1, np.int32)
        hubs = self.hubs_for(vertices, model)
        large = self._small(vertices, k, model, MEMBERS, hubs, offsets=offsets, members=members)
        fewest = k if model == "component" else 2

        def name(batch: Batch) -> None:
            root, size = self._contexts(batch, k, model, fewest)
            place = xp.arange(root.size) - batch.rows.offsets[batch.ego_of]
            first = root - batch.rows.offsets[batch.ego_of]
            members[offsets[batch.listed][batch.ego_of] + place] = xp.where(
                size[root] >= fewest, first, -1
            )

        self.in_batches(name, vertices, large, model, hubs)
        return members

    @on_its_gpu
    def ego_rows(self, vertices: Array) -> tuple[Array, Array]:
        """Build indptr and indices of the ego-networks, a node for each of the rows' entries."""
        self.batches += 1
        offsets = ego_offsets(self.indptr, vertices)
        rows = self.rows_of(vertices, offsets, int(offsets[-1]))
        # not by bits, which take memory for all whom members could know
        indptr = segment_offsets(self.intersect(rows, gpu_intersect.COUNT))
        result = self.xp.zeros(int(indptr[-1]), np.int32)
        return indptr, self.intersect(rows, gpu_intersect.FILL, indptr, result)

    # ------------------------------------------------------------ small ego-networks

    def _small(self, vertices, k, model, output, hubs, scores=None, offsets=None, members=None):
        """Work on all ego-networks that fit shared memory; return the places of the others.

        More than a few members are left to hubs, if there are any: what most of them know of these
        is enough, where a block would have to look them up in pairs.
        """
        xp = self.xp
        scores = unused(xp) if scores is None else scores
        members = unused(xp) if members is None else members
        offsets = xp.zeros(1, np.int64) if offsets is None else offsets
        sizes, above = _alone(bool(hubs.vertices.size))
        lists = xp.empty((len(above), vertices.size), index_type_for(vertices.size))
        numbers = xp.zeros(len(above), np.int64)
        list_by_degree = gpu_bitmap.build_list_by_degree(gpu_bitmap.THREADS, above)
        launch_each(
            list_by_degree, gpu_bitmap.THREADS, vertices.size,
            self.indptr, vertices, lists, numbers,
        )  # fmt: skip
        numbers = to_host(numbers).tolist()
        index_type = self.indices.dtype.type
        for (threads, largest, blocks), listed, number in zip(
            sizes, lists[:-1], numbers[:-1], strict=True
        ):
            kernel = gpu_bitmap.build(threads, largest, blocks, MODELS[model], index_type)
            launch(
                kernel, number, threads, self.indptr, self.indices, vertices, listed,
                np.int64(k), np.int64(output), scores, offsets, members,
            )  # fmt: skip
        self.batches += 1
        return lists[-1, : numbers[-1]].copy()  # the other lists need not be kept for it

    # ------------------------------------------------------------ large ones

    def _contexts(self, batch, k, model, enough):
        """Find the root of every node's context, and how many nodes each root stands for.

        Counting ends somewhere from ``enough`` on.
        """
        xp = self.xp
        parent = xp.arange(batch.ego_of.size, dtype=np.int32)
        size = xp.zeros(parent.size, np.int32)
        if model == "truss":
            self._unite_truss(batch, k, parent)
        else:
            self._unite_members(batch, None if model == "component" else k, parent)
        threads = gpu_contexts.THREADS
        roots = gpu_contexts.build_roots(threads)
        launch_each(roots, threads, parent.size, parent, size, np.int64(enough))
        return parent, size

    def _unite_members(self, batch, k, parent):
        """Unite the members of a batch who know each other; with ``k`` those of k-cores."""
        xp, rows, threads, limits = self.xp, batch.rows, gpu_lazy.THREADS, gpu_lazy.LIMITS
        members, blocks = self.members_of(batch), multiprocessors() * BLOCKS
        nodes, egos = parent.size, rows.vertices.size
        removed = xp.empty(0, np.int32)
        if k is not None:
            state = gpu_lazy.new_state(xp, nodes, nodes)
            arguments = members, state, gpu_lazy.new_control(xp), np.int64(k)
            look = gpu_members.build_look(threads, limits)
            launch_each(look, threads, nodes, members, batch.hubs.known, *arguments[1:])
            core = gpu_members.build_core(threads, gpu_lazy.LANES, limits)
            launch_together(core, blocks, threads, *arguments)
            removed = state.removed
            del state, arguments  # there is other use for their memory
        arguments = (
            removed, parent, xp.empty(egos, np.int32), xp.empty(nodes, np.int32),
            xp.zeros(2, np.int64),
        )  # fmt: skip
        by_hubs = gpu_hubs.build_unite(gpu_hubs.THREADS, gpu_hubs.WORDS)
        launch(by_hubs, egos, gpu_hubs.THREADS, members, batch.hubs, *arguments)
        launch_together(
            gpu_members.build_unite(threads, gpu_members.LANES, limits.long), blocks, threads,
            members, *arguments, xp.empty(nodes, np.int32), gpu_lazy.new_control(xp),
        )  # fmt: skip

    def _unite_truss(self, batch, k, parent):
        """Unite the ends of the edges of k-trusses in a batch."""
        xp, threads, limits = self.xp, gpu_lazy.THREADS, gpu_lazy.LIMITS
        egos = gpu_ego_edges.Egos(batch.indptr, self.listed_rows(batch))
        entries = egos.indices.size
        if not entries:
            return
        state = gpu_lazy.new_state(xp, entries, entries // 2)
        arguments = egos, state, gpu_lazy.new_control(xp), np.int64(k - 2)
        launch_each(gpu_ego_edges.build_look(threads, limits), threads, entries, *arguments)
        truss = gpu_ego_edges.build_truss(threads, gpu_lazy.LANES, limits)
        launch_together(truss, multiprocessors() * BLOCKS, threads, *arguments)
        unite = gpu_ego_edges.build_unite(threads)
        launch_each(unite, threads, entries, egos, state.removed, parent)

    def _levels(self, batch, model):
        """Find the entries of the ego-networks and their rows, and the highest level.

        For cores that of every node; for trusses that of every edge, at its smaller end.
        """
        indices = self.listed_rows(batch)
        egos = GpuEngine(batch.indptr, indices)
        if model == "core":
            return indices, self.row_of_places(batch.indptr, indices.size), egos.peel_cores(None)
        rows, edge = egos.rows_and_edges()
        return indices, rows, egos.peel_trusses(rows, edge, None)

    def _add_every(self, batch, model, offsets, scores):
        """Add the contexts of a batch for every k: members less the joins between them."""
        xp = self.xp
        indices, rows, level = self._levels(batch, model)
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
            launch_each(
                gpu_contexts.build_ends(gpu_contexts.THREADS), gpu_contexts.THREADS, last - first,
                rows, indices, chosen[first:last], parent,
                batch.ego_of, offsets, np.int64(height), scores,
            )  # fmt: skip
            first = last
        self._sum_rows_from_behind(scores, offsets, xp.diff(batch.rows.offsets))
        if model == "truss":  # there is no 1-truss
            scores[offsets] = 0

    # ------------------------------------------------------------ small things

    def _sum_rows_from_behind(self, scores, first, size):
        """Let every place of these pieces hold the sum of what was there and after."""
        xp = self.xp
        ends = segment_offsets(size)
        if not int(ends[-1]):
            return
        row = self.row_of_places(ends, int(ends[-1]))
        place = xp.arange(row.size) + (first - ends[:-1])[row]
        running = segment_offsets(scores[place])
        scores[place] = (running[ends[1:]][row] - running[:-1]).astype(np.int32)


def _alone(hubs: bool) -> tuple[tuple, tuple[int, ...]]:
    """Return the sizes of blocks that work on an ego-network each, and above what sizes these are.

    Where hubs are known to many, component and core take only smaller ones by themselves.
    """
    sizes = gpu_bitmap.SIZES
    if hubs:
        return sizes[:1], (0, MOST_WITHOUT_HUBS)[: len(sizes[:1]) + 1]
    return sizes, (0, *(largest for _, largest, _ in sizes))
