"""Breadth-first search on a GPU: what it works in, and its launches, prepared once.

A search of a small frontier, or a wide one of a few levels, is over in half a millisecond. To look
at some forty arguments of a kernel anew takes a fifth of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from glp_rapids.device import overwrite, to_host
from glp_rapids.jit.cuda import bound, multiprocessors
from glp_rapids.jit.launch import prepared_together
from glp_rapids.traversal.engines import gpu_pace
from glp_rapids.traversal.kernels import gpu_bfs, gpu_frontier, gpu_levels
from glp_rapids.traversal.kernels.gpu_bfs import WORDS

if TYPE_CHECKING:
    from glp_rapids.graph.rows import CSR

Array = Any
MOST_PREPARED = 8  # launches that are kept


class Room(NamedTuple):
    """What one search at a time works in: its frontiers, and what a breadth-first one takes.

    Of ``all_words`` the last two are ``barrier`` and ``alone``. ``searches``: launches that are
    prepared, by what they search, each with the arrays that it reads.
    """

    frontier: gpu_frontier.Frontier
    all_words: Array
    words: Array
    missing: Array
    barrier: Array
    alone: Array
    searches: dict[tuple, tuple]


class BreadthFirst:
    """The breadth-first searches of an engine, which says what its rows are."""

    _xp: Any
    _rows: CSR
    _indices: Array
    _pull: Callable[..., None]

    def _make_ready(self) -> None:
        self._rooms: list[Room] = []  # which nobody works in
        self._prepared = self._bound(self._rows.indptr, self._indices)
        self._words_at_first = self._first_words()

    def _some(self, array: Array) -> Array:
        """Return an array, or one of a single element in the place of an empty one."""
        return array if array.size else self._xp.zeros(1, array.dtype)

    def _bound(self, *arrays: Array) -> tuple:
        """Prepare arrays for many launches, each of which would take as long as a small level."""
        return arrays if self._xp is np else bound(arrays)

    def _first_words(self) -> np.ndarray:
        """Return the words that a breadth-first search begins with, and what else is 0 at first."""
        where = WORDS
        words = np.zeros(gpu_bfs.NUMBER_OF_WORDS + 2, np.int64)
        words[where.level], words[where.listed] = -1, 1
        words[where.left], words[where.penalty] = self._rows.indices.size, gpu_pace.PENALTY
        words[where.lost : where.lost + 3] = gpu_levels.NONE
        return words

    @contextmanager
    def _room(self) -> Iterator[Room]:
        """Lend what a search works in; it is kept on the graph."""
        size = max(2 * self._rows.number_of_vertices, 1)
        try:
            room = self._rooms.pop()
        except IndexError:
            arrays = self._xp.empty(size, np.int32), self._xp.empty(size, np.int64)
            words, missing = self._xp.empty(self._words_at_first.size, np.int64), WORDS.missing
            room = Room(
                gpu_frontier.Frontier(*self._bound(*arrays)), words, words[:-2],
                words[missing : missing + 1], words[-2:-1], words[-1:], {},
            )  # fmt: skip
        yield room
        self._rooms[:] = [room]

    def _distances(
        self, starts: Array, depth: int, predecessors: bool, reverse: CSR | None
    ) -> tuple[Array, Array, np.ndarray]:
        vertices = self._rows.number_of_vertices
        # at once: where nothing keeps memory, RMM's default, each allocation takes 0.1 ms
        size = vertices * (1 + (predecessors and reverse is not None))
        memory = self._xp.empty(size, np.int32)
        distance, before = memory[:vertices], memory[vertices:]
        asked = gpu_bfs.Asked(*self._bound(starts, distance, before))
        with self._room() as room:
            search = self._prepare(room, asked, depth, reverse)
            overwrite(room.all_words, self._words_at_first)
            while True:
                search(asked)
                if before.size:
                    # before it is known whether anything is missing, which it seldom is: none is
                    # until the search is over, and to be told takes as long as many a level
                    self._pull(reverse, None, distance, before, room.missing, room.alone)
                found = to_host(room.words)
                if found[WORDS.over]:
                    return distance, before, found
                room.barrier.fill(0)

    def _prepare(
        self, room: Room, asked: gpu_bfs.Asked, depth: int, reverse: CSR | None
    ) -> Callable[[gpu_bfs.Asked], None]:
        """Return what launches a search; to prepare it takes as long as two or three levels."""
        kernel = gpu_bfs.build(gpu_frontier.THREADS, gpu_frontier.LANES, gpu_frontier.ASKS_AHEAD)
        pace = gpu_bfs.Pace(
            depth=np.int64(depth), levels=np.int64(gpu_pace.LEVELS_A_LAUNCH),
            hops=np.int64(gpu_pace.HOPS), chunk=np.int64(gpu_pace.CHUNK),
            most=np.int64(gpu_pace.MOST_CHUNK), pulls=reverse is not None,
            alpha=np.int64(gpu_pace.PULL[0]), beta=np.int64(gpu_pace.PULL[1]),
        )  # fmt: skip
        key = kernel, pace, asked.starts.dtype, id(reverse)
        if key not in room.searches:
            rows, into = self._prepared, self._prepared
            if reverse is not None and reverse is not self._rows:
                into = self._bound(reverse.indptr, self._some(reverse.indices))
            search = prepared_together(
                kernel, multiprocessors() * gpu_frontier.BLOCKS_A_MULTIPROCESSOR,
                gpu_frontier.THREADS,
                (*rows, *into, room.frontier, *self._bound(room.words, room.barrier), pace), asked,
            )  # fmt: skip
            if len(room.searches) == MOST_PREPARED:
                room.searches.clear()
            # what is read stays there, and nobody else gets its name
            room.searches[key] = search, reverse, into
        return room.searches[key][0]
