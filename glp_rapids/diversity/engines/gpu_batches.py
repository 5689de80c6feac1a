"""Large ego-networks on a GPU, as many at once as memory allows.

All ego-networks of a batch are one graph. Its nodes are the entries of the rows of their vertices;
whom a node knows is looked up in the graph itself, or, for trusses and for all levels at once,
listed first. How many entries that takes is twice the triangles at these vertices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from glp_rapids.cohesion.engines.gpu import GpuEngine, Rows, launch_each
from glp_rapids.common.segments import segment_offsets
from glp_rapids.device import LackOfMemory, memory_free, to_host
from glp_rapids.diversity.engines import ego_offsets
from glp_rapids.diversity.kernels import gpu_contexts, gpu_ego_rows, gpu_hubs, gpu_members
from glp_rapids.jit.launch import launch

Array = Any

BYTES_A_NODE = 48
MOST_NODES = np.iinfo(np.int32).max  # of a batch: that its nodes have numbers of 32 bits
BYTES_A_WORD = 16
# Of the ego-networks as a CSR, if it is made: an entry, and what peeling keeps or makes of each;
# for one level, and for every.
BYTES_AN_ENTRY = {"component": (0, 0), "core": (0, 32), "truss": (28, 48)}
# Of the whole graph while its triangles are counted: an entry, and a vertex.
BYTES_OF_TRIANGLES = 4, 16


@dataclass(frozen=True)
class Batch:
    """Large ego-networks that are worked on together: their nodes, and once marked their CSR."""

    rows: Rows
    listed: Array  # the places of their vertices among those asked for
    ego_of: Array  # of every node
    hubs: gpu_hubs.Hubs  # that may unite members
    words: Array | None = None  # where those of every node begin
    marks: Array | None = None  # their bits: whom nodes know
    begins: Array | None = None  # where what they mark begins among all that is marked
    indptr: Array | None = None  # and what all of a node do


class BatchingEngine(GpuEngine):
    """Lists the large ones of the ego-networks of a graph, in batches."""

    def __init__(
        self, indptr: Array, indices: Array, *,
        number: int | None = None, memory_limit: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__(indptr, indices, number=number)
        self._memory_limit = memory_limit
        self._highest: Array | None = None  # the vertices of highest degree, if they are hubs
        self._least_of_hubs = 0  # degree

    def hubs_for(self, vertices: Array, model: str, *, every: bool = False) -> gpu_hubs.Hubs:
        """Note for everybody which hubs they know; none where that would spare nothing.

        That is where vertices know too few of them, where so few vertices are asked for that
        noting takes as long, where there is no memory for it, and where edges are listed.
        """
        xp, everybody = self.xp, self.indptr.size - 1
        highest = self.hubs(model, every=every)
        nobody = gpu_hubs.Hubs(highest[:0], xp.empty((gpu_hubs.WORDS, 0), np.uint64))
        if not highest.size:
            return nobody
        if int((self.indptr[vertices + 1] - self.indptr[vertices]).sum()) < everybody:
            return nobody
        known = xp.zeros((gpu_hubs.WORDS, everybody), np.uint64)
        hubs = gpu_hubs.Hubs(highest, known)
        threads, parts = gpu_hubs.THREADS, gpu_hubs.PARTS
        mark = gpu_hubs.build_mark(threads, parts)
        blocks = hubs.vertices.size * parts
        launch(mark, blocks, threads, self.indptr, self.indices, hubs)
        return hubs

    def hubs(self, model: str, *, every: bool = False) -> Array:
        """Return the hubs that are noted if many vertices are asked for; see `hubs_for`."""
        everybody = self.indptr.size - 1
        bytes_noted = gpu_hubs.WORDS * everybody * np.dtype(np.uint64).itemsize
        if BYTES_AN_ENTRY[model][every] or bytes_noted > self._limit() // 4:
            return self.xp.empty(0, self.indices.dtype)
        if self._highest is None:
            degree = self.xp.diff(self.indptr)
            highest = self.xp.argsort(-degree)[: gpu_hubs.NUMBER]
            known = int(degree[highest].sum()) / max(everybody, 1)
            number = highest.size if known >= gpu_hubs.LEAST_KNOWN else 0
            self._highest = highest[:number].astype(self.indices.dtype)
            self._least_of_hubs = int(degree[highest[-1:]].sum())
        return self._highest

    def _limit(self) -> int:
        return self._memory_limit or memory_free("gpu") // 2

    def in_batches(
        self, work: Callable[[Batch], None], vertices: Array, listed: Array, model: str,
        hubs: gpu_hubs.Hubs, *, every: bool = False,
    ) -> None:  # fmt: skip
        """Call ``work`` with the ego-networks listed; nothing of a batch outlives its call."""
        if not listed.size:
            return
        egos = vertices[listed]
        degree = to_host(self.indptr[egos + 1] - self.indptr[egos])
        limit = min(self._limit() - hubs.known.nbytes, MOST_NODES * BYTES_A_NODE)
        bytes_an_entry = BYTES_AN_ENTRY[model][every]
        bytes_needed, entries = degree * BYTES_A_NODE, np.zeros_like(degree)
        if bytes_an_entry:
            words = np.zeros_like(degree)
            for first, last in _pieces(bytes_needed, max(limit, 1 << 20)):
                words[first:last] = self._words(egos[first:last])
            bytes_needed = bytes_needed + words * BYTES_A_WORD
            entries = np.minimum(words * gpu_ego_rows.BITS, degree * (degree - 1))
            if int((bytes_needed + entries * bytes_an_entry).sum()) > limit:
                entries = self._entries(egos, bytes_needed, limit)
            bytes_needed = bytes_needed + entries * bytes_an_entry
        if bytes_needed.max() > limit:
            worst = int(bytes_needed.argmax())
            edges = f" and {entries[worst] // 2:,} edges among them" if entries[worst] else ""
            raise LackOfMemory(
                f"the ego-network of a vertex with {degree[worst]:,} neighbours{edges} needs "
                f"{bytes_needed[worst]:,} bytes, and there are {limit:,}; raise memory_limit, or "
                "use device='cpu'"
            )
        for first, last in _pieces(bytes_needed, limit):
            self.batches += 1
            chosen = egos[first:last], listed[first:last], hubs
            work(self._marked(*chosen) if bytes_an_entry else self._nodes(*chosen))

    def listed_rows(self, batch: Batch) -> Array:
        """List the rows of a batch that is marked."""
        indices, threads = self.xp.empty(int(batch.indptr[-1]), np.int32), gpu_ego_rows.THREADS
        launch_each(
            gpu_ego_rows.build_list(threads), threads, batch.marks.size,
            self.members_of(batch), batch.words, batch.marks, batch.begins, indices,
        )  # fmt: skip
        return indices

    def members_of(self, batch: Batch) -> gpu_members.Members:
        """Describe the nodes of a batch to kernels."""
        rows = batch.rows
        return gpu_members.Members(
            self.indptr, self.indices, rows.vertices, rows.offsets, batch.ego_of,
            np.int64(self._least_of_hubs),
        )  # fmt: skip

    def row_of_places(self, offsets: Array, number: int) -> Array:
        """Find the row of every place of rows that begin at ``offsets``, ``number`` in all."""
        rows = self.xp.empty(number, np.int32)
        find = gpu_contexts.build_rows(gpu_contexts.THREADS)
        launch_each(find, gpu_contexts.THREADS, number, offsets, rows)
        return rows

    # ------------------------------------------------------------ how large they are

    def _words(self, egos: Array) -> np.ndarray:
        """Count the words of bits that some ego-networks take."""
        batch = self._with_words(self._nodes(egos, None, None))
        return np.diff(to_host(batch.words[batch.rows.offsets]))

    def _entries(self, egos: Array, bytes_needed: np.ndarray, limit: int) -> np.ndarray:
        """Count the entries of ego-networks: whom members know, over all members."""
        an_entry, a_vertex = BYTES_OF_TRIANGLES
        if self.indices.size * an_entry + self.indptr.size * a_vertex <= limit:
            # each triangle at a vertex is an edge of its ego-network
            return 2 * to_host(self.count_triangles()[egos])
        entries = np.zeros_like(bytes_needed)
        for first, last in _pieces(bytes_needed, max(limit, 1 << 20)):
            entries[first:last] = self._marked_entries(egos[first:last])
        return entries

    def _marked_entries(self, egos: Array) -> np.ndarray:
        batch = self._marked(egos, None, None)
        return np.diff(to_host(batch.indptr[batch.rows.offsets]))

    # ------------------------------------------------------------ batches

    def _nodes(self, egos: Array, listed: Array | None, hubs: gpu_hubs.Hubs | None) -> Batch:
        """Number the members of some ego-networks."""
        offsets = ego_offsets(self.indptr, egos)
        rows = self.rows_of(egos, offsets, int(offsets[-1]))
        return Batch(rows, listed, self.row_of_places(offsets, rows.nodes), hubs)

    def _with_words(self, batch: Batch) -> Batch:
        """Find where the words of every node begin."""
        of_node, threads = self.xp.empty(batch.rows.nodes, np.int32), gpu_ego_rows.THREADS
        count = gpu_ego_rows.build_words(threads)
        launch_each(count, threads, of_node.size, self.members_of(batch), of_node)
        return replace(batch, words=segment_offsets(of_node))

    def _with_marks(self, batch: Batch) -> Batch:
        """Mark whom every member knows; and where its row begins once they are listed."""
        xp, threads, number = self.xp, gpu_ego_rows.THREADS, int(batch.words[-1])
        marks, known = xp.empty(number, np.uint32), xp.empty(number, np.uint8)
        mark = gpu_ego_rows.build_mark(threads)
        launch_each(mark, threads, number, self.members_of(batch), batch.words, marks, known)
        begins = segment_offsets(known)
        return replace(batch, marks=marks, begins=begins, indptr=begins[batch.words])

    def _marked(self, egos: Array, listed: Array | None, hubs: gpu_hubs.Hubs | None) -> Batch:
        return self._with_marks(self._with_words(self._nodes(egos, listed, hubs)))


def _pieces(sizes: np.ndarray, limit: int) -> Iterator[tuple[int, int]]:
    """Cut a list into runs whose sizes add up to at most the limit, one item at the least."""
    ends = np.cumsum(sizes)
    first, before = 0, 0
    while first < sizes.size:
        last = max(first + 1, int(np.searchsorted(ends, before + limit, side="right")))
        yield first, last
        first, before = last, int(ends[last - 1])
