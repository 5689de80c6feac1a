"""The GPU engine of ego-networks: small ones as bits in shared memory, large ones as one graph.

All ego-networks together are one graph, whose nodes are the entries of the rows and whose pieces
are the ego-networks. So what cuts a graph down to a core or a truss cuts down all large
ego-networks of a batch at once, whatever their sizes. Where only one level is asked for,
components and cores are found without writing its edges down, and trusses by counts that end where
they are enough; every level at once takes the edges, and what decomposes a whole graph.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glp_rapids.cohesion.engines.gpu import (
    GpuEngine,
    Rows,
    index_type_for,
    launch_each,
    on_its_gpu,
    unused,
)
from glp_rapids.cohesion.kernels import gpu_intersect
from glp_rapids.common.segments import segment_offsets
from glp_rapids.device import LackOfMemory, memory_free, to_host
from glp_rapids.diversity.engines import ego_offsets
from glp_rapids.diversity.kernels import (
    gpu_bitmap,
    gpu_contexts,
    gpu_ego_edges,
    gpu_ego_rows,
    gpu_lazy,
    gpu_members,
)
from glp_rapids.diversity.kernels.gpu_bitmap import EVERY, MEMBERS, SCORE
from glp_rapids.jit.cuda import multiprocessors
from glp_rapids.jit.launch import launch, launch_together

Array = Any

BLOCKS = 2048 // gpu_lazy.THREADS  # of a multiprocessor, at most
MODELS = {"component": gpu_bitmap.COMPONENT, "core": gpu_bitmap.CORE, "truss": gpu_bitmap.TRUSS}
BYTES_A_NODE = 48
MOST_NODES = np.iinfo(np.int32).max  # of a batch: that its nodes have numbers of 32 bits
BYTES_A_WORD = 16
# Of the ego-networks as a CSR, if it is made: an entry, and what peeling keeps or makes of each;
# for one level, and for every.
BYTES_AN_ENTRY = {"component": (0, 0), "core": (0, 32), "truss": (28, 48)}


@dataclass(frozen=True)
class Batch:
    """Large ego-networks that are worked on together: their nodes, and once marked their CSR."""

    rows: Rows
    listed: Array | None  # the places of their vertices among those asked for
    ego_of: Array  # of every node
    words: Array | None = None  # where those of every node begin
    marks: Array | None = None  # their bits: whom nodes know
    begins: Array | None = None  # where what they mark begins among all that is marked
    indptr: Array | None = None  # and what all of a node do


class GpuEgoEngine(GpuEngine):
    """Ego-networks of one simple undirected graph on one GPU; and its own cores and trusses."""

    def __init__(
        self, indptr: Array, indices: Array, *,
        number: int | None = None, memory_limit: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(indptr, indices, number=number)
        self._memory_limit = memory_limit

    @property
    def most_alone(self) -> int:
        """The members of the largest ego-network that is not worked on with others."""
        return max((largest for _, largest, _ in gpu_bitmap.SIZES), default=0)

    @on_its_gpu
    def scores(self, vertices: Array, k: int, model: str) -> Array:
        """Count the contexts of every vertex."""
        scores = self.xp.zeros(vertices.size, np.int32)
        hubs = self._small(vertices, k, model, SCORE, scores=scores)
        for batch in self._batches(vertices, hubs, model):
            fewest = k if model == "component" else 2
            _, size = self._contexts(batch, k, model, fewest)
            launch_each(
                gpu_contexts.build_count(gpu_contexts.THREADS), gpu_contexts.THREADS, size.size,
                size, np.int64(fewest), batch.ego_of, batch.listed, scores,
            )  # fmt: skip
        return scores

    @on_its_gpu
    def every_score(self, vertices: Array, model: str) -> tuple[Array, Array]:
        """Count the contexts for every k from 1 to the degree: offsets and scores."""
        xp = self.xp
        offsets = ego_offsets(self.indptr, vertices)
        scores = xp.zeros(int(offsets[-1]), np.int32)
        hubs = self._small(vertices, 1, model, EVERY, scores=scores, offsets=offsets)
        if model == "component":
            for batch in self._batches(vertices, hubs, model, every=True):
                _, size = self._contexts(batch, 1, model, MOST_NODES)
                root = xp.flatnonzero(size)
                place = offsets[batch.listed][batch.ego_of[root]] + size[root] - 1
                xp.add.at(scores, place, np.int32(1))
            self._sum_rows_from_behind(scores, offsets[:-1], xp.diff(offsets))
            return offsets, scores
        for batch in self._batches(vertices, hubs, model, every=True):
            self._add_every(batch, model, offsets[batch.listed], scores)
        return offsets, scores

    @on_its_gpu
    def members(self, vertices: Array, k: int, model: str) -> Array:
        """Name the context of every neighbour by the place of its first member; -1: it has none."""
        xp = self.xp
        offsets = ego_offsets(self.indptr, vertices)
        members = xp.full(int(offsets[-1]), -1, np.int32)
        hubs = self._small(vertices, k, model, MEMBERS, offsets=offsets, members=members)
        for batch in self._batches(vertices, hubs, model):
            fewest = k if model == "component" else 2
            root, size = self._contexts(batch, k, model, fewest)
            place = xp.arange(root.size) - batch.rows.offsets[batch.ego_of]
            first = root - batch.rows.offsets[batch.ego_of]
            members[offsets[batch.listed][batch.ego_of] + place] = xp.where(
                size[root] >= fewest, first, -1
            )
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

    def _small(self, vertices, k, model, output, scores=None, offsets=None, members=None):
        """Work on all ego-networks that fit shared memory; return the places of the others."""
        xp = self.xp
        scores = unused(xp) if scores is None else scores
        members = unused(xp) if members is None else members
        offsets = xp.zeros(1, np.int64) if offsets is None else offsets
        above = (0, *(largest for _, largest, _ in gpu_bitmap.SIZES))
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

    def _batches(
        self, vertices: Array, listed: Array, model: str, *, every: bool = False
    ) -> Iterator[Batch]:
        """Yield the ego-networks listed, as many at once as memory allows."""
        if not listed.size:
            return
        hubs = vertices[listed]
        degree = to_host(self.indptr[hubs + 1] - self.indptr[hubs])
        limit = min(self._memory_limit or memory_free("gpu") // 2, MOST_NODES * BYTES_A_NODE)
        bytes_an_entry = BYTES_AN_ENTRY[model][every]
        bytes_needed, entries = degree * BYTES_A_NODE, np.zeros_like(degree)
        batch, all_at_once = None, False
        if bytes_an_entry:
            words = np.zeros_like(degree)
            for first, last in _pieces(bytes_needed, max(limit, 1 << 20)):
                nodes = self._nodes(hubs[first:last], listed[first:last])
                words[first:last] = np.diff(to_host(nodes.words[nodes.rows.offsets]))
            bytes_needed = bytes_needed + words * BYTES_A_WORD
            # how large they are takes one look at all, itself in pieces that fit
            for first, last in _pieces(bytes_needed, max(limit, 1 << 20)):
                batch = None
                batch = self._marked(self._nodes(hubs[first:last], listed[first:last]))
                entries[first:last] = np.diff(to_host(batch.indptr[batch.rows.offsets]))
                all_at_once = last - first == listed.size
            bytes_needed = bytes_needed + entries * bytes_an_entry
        if bytes_needed.max() > limit:
            worst = int(bytes_needed.argmax())
            edges = f" and {entries[worst] // 2:,} edges among them" if entries[worst] else ""
            raise LackOfMemory(
                f"the ego-network of a vertex with {degree[worst]:,} neighbours{edges} needs "
                f"{bytes_needed[worst]:,} bytes, and there are {limit:,}; raise memory_limit, or "
                "use device='cpu'"
            )
        if all_at_once and bytes_needed.sum() <= limit:  # and what was marked is the batch
            self.batches += 1
            yield batch
            return
        batch = None  # its memory is wanted
        for first, last in _pieces(bytes_needed, limit):
            self.batches += 1
            nodes = self._nodes(hubs[first:last], listed[first:last], bool(bytes_an_entry))
            yield self._marked(nodes) if bytes_an_entry else nodes

    def _nodes(self, vertices: Array, listed: Array | None, words: bool = True) -> Batch:
        """Number the members of some ego-networks, and their words if these are asked for."""
        offsets = ego_offsets(self.indptr, vertices)
        rows = self.rows_of(vertices, offsets, int(offsets[-1]))
        batch = Batch(rows, listed, self._row_of_places(offsets, rows.nodes))
        if not words:
            return batch
        of_node = self.xp.empty(rows.nodes, np.int32)
        threads = gpu_ego_rows.THREADS
        count = gpu_ego_rows.build_words(threads)
        launch_each(count, threads, rows.nodes, self._members(batch), of_node)
        return replace(batch, words=segment_offsets(of_node))

    def _marked(self, batch: Batch) -> Batch:
        """Mark whom every member knows; and where its row begins once they are listed."""
        xp, threads, number = self.xp, gpu_ego_rows.THREADS, int(batch.words[-1])
        marks, known = xp.empty(number, np.uint32), xp.empty(number, np.uint8)
        mark = gpu_ego_rows.build_mark(threads)
        launch_each(mark, threads, number, self._members(batch), batch.words, marks, known)
        begins = segment_offsets(known)
        return replace(batch, marks=marks, begins=begins, indptr=begins[batch.words])

    def _filled(self, batch):
        """List the rows of a batch that is marked."""
        indices, threads = self.xp.empty(int(batch.indptr[-1]), np.int32), gpu_ego_rows.THREADS
        launch_each(
            gpu_ego_rows.build_list(threads), threads, batch.marks.size,
            self._members(batch), batch.words, batch.marks, batch.begins, indices,
        )  # fmt: skip
        return indices

    def _members(self, batch):
        rows = batch.rows
        return gpu_members.Members(
            self.indptr, self.indices, rows.vertices, rows.offsets, batch.ego_of
        )

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
        members = self._members(batch)
        nodes, blocks = parent.size, multiprocessors() * BLOCKS
        removed, long = xp.empty(0, np.int32), xp.empty(nodes, np.int32)
        if k is not None:
            state = gpu_lazy.new_state(xp, nodes, nodes)
            arguments = members, state, gpu_lazy.new_control(xp), np.int64(k)
            launch_each(gpu_members.build_look(threads, limits), threads, nodes, *arguments)
            core = gpu_members.build_core(threads, gpu_lazy.LANES, limits)
            launch_together(core, blocks, threads, *arguments)
            removed = state.removed
        launch_together(
            gpu_members.build_unite(threads, gpu_members.LANES, limits.long), blocks, threads,
            members, removed, parent, xp.empty(rows.vertices.size, np.int32), long,
            gpu_lazy.new_control(xp),
        )  # fmt: skip

    def _unite_truss(self, batch, k, parent):
        """Unite the ends of the edges of k-trusses in a batch."""
        xp, threads, limits = self.xp, gpu_lazy.THREADS, gpu_lazy.LIMITS
        egos = gpu_ego_edges.Egos(batch.indptr, self._filled(batch))
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
        indices = self._filled(batch)
        egos = GpuEngine(batch.indptr, indices)
        if model == "core":
            return indices, self._row_of_places(batch.indptr, indices.size), egos.peel_cores(None)
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

    def _row_of_places(self, offsets, number):
        """Find the row of every place of rows that begin at ``offsets``, ``number`` in all."""
        rows = self.xp.empty(number, np.int32)
        find = gpu_contexts.build_rows(gpu_contexts.THREADS)
        launch_each(find, gpu_contexts.THREADS, number, offsets, rows)
        return rows

    def _sum_rows_from_behind(self, scores, first, size):
        """Let every place of these pieces hold the sum of what was there and after."""
        xp = self.xp
        ends = segment_offsets(size)
        if not int(ends[-1]):
            return
        row = self._row_of_places(ends, int(ends[-1]))
        place = xp.arange(row.size) + (first - ends[:-1])[row]
        running = segment_offsets(scores[place])
        scores[place] = (running[ends[1:]][row] - running[:-1]).astype(np.int32)


def _pieces(sizes: np.ndarray, limit: int) -> Iterator[tuple[int, int]]:
    """Cut a list into runs whose sizes add up to at most the limit, one item at the least."""
    ends = np.cumsum(sizes)
    first, before = 0, 0
    while first < sizes.size:
        last = max(first + 1, int(np.searchsorted(ends, before + limit, side="right")))
        yield first, last
        first, before = last, int(ends[last - 1])
