"""What ranks of one process that stream lists tell one another after each class, by copies.

Who won goes to all, and how often a vertex elsewhere was told of a change to the rank of that
vertex. A rank copies both from where they lie on the other's GPU: directly, or through the host if
the two cannot reach one another. So no kernel waits for another GPU, and nothing but CUDA is asked.

That nobody copies what is being written holds by two rules. Before a rank says how many won, it has
waited for its stream, and so for all copies that it began: what others copied of a class may be
written again once they say how many won in the next one. Lists of winners take turns, for they are
written before that.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.device import settle, to_host
from glp_rapids.multigpu.exchange import Exchange
from glp_rapids.multigpu.peers import plain_memory
from glp_rapids.outofcore import pinned
from glp_rapids.propagation.engines import workspace
from glp_rapids.propagation.engines.workspace import ALIGNMENT
from glp_rapids.propagation.kernels.gpu.rank_winners import Winners

TURNS = 2
ARRAYS = 12  # at the most, each of which may take so much more than its elements
SLACK = np.dtype(np.int32)


class ClassExchange:
    """One rank's end; ``slack`` of the vertices of others counts how often these were told.

    Parameters
    ----------
    exchange : Exchange
        Where the threads of the ranks meet.
    vertices : tuple of int
        The range of this rank.
    most : list of int
        By rank: how many win in a class at the most.
    types : tuple
        Of a vertex, of a label, and of a score; None: scores are not told.
    slacks : int
        Vertices that have a slack, or 1: nobody is told.
    """

    def __init__(
        self, exchange: Exchange, vertices: tuple[int, int], most: list[int],
        types: tuple[Any, Any, Any], slacks: int, xp: Any,
    ):  # fmt: skip
        self._exchange, self._xp, self._kinds = exchange, xp, 2 + (types[2] is not None)
        self._first, self._last = vertices
        self._turn, self._told = 0, False
        # what others copy from is no memory of a pool, which they may not read
        readable = np.empty if xp is np else plain_memory
        own, others = most[exchange.rank], sum(most) - most[exchange.rank]
        self._outs = [_winners(own, types, readable) for _ in range(TURNS)]
        self.come = _winners(max(others, 1), types, xp.empty)
        self.number = xp.zeros(1, np.int64)
        self.slack = readable(slacks, SLACK)
        self.slack.fill(0)
        first, last = vertices
        self._woken = xp.empty(max(last - first, 1) if slacks > 1 else 1, SLACK)
        self._theirs = exchange.tell((self._outs, self.slack))

    @staticmethod
    def bytes_of(
        rank: int, vertices: tuple[int, int], most: list[int], types: tuple[Any, Any, Any],
        skips: bool,
    ) -> int:  # fmt: skip
        """Count what one takes, but for the slack."""
        a_winner = sum(np.dtype(one).itemsize for one in types if one is not None)
        winners = (TURNS * most[rank] + sum(most) - most[rank]) * a_winner
        woken = (vertices[1] - vertices[0]) * SLACK.itemsize * skips
        return winners + woken + ARRAYS * 2 * ALIGNMENT

    @property
    def out(self) -> Winners:
        """Where the winners of this rank are listed, of the class that is being evaluated."""
        return self._outs[self._turn]

    @property
    def bytes_others_read(self) -> int:
        """Count what is no memory of a pool."""
        arrays = [self.slack, *(array for out in self._outs for array in out)]
        return sum(array.nbytes for array in arrays)

    def exchange_winners(self) -> tuple[int, int, bool]:
        """Copy the winners of all others; return how many won here, how many came, and if any."""
        own = int(to_host(self.number)[0])  # and so all copies that this rank has begun are done
        sizes = [size for (size,) in self._exchange.numbers([own])]
        come = 0
        for rank, size in enumerate(sizes):
            if rank == self._exchange.rank:
                continue
            out = self._theirs[rank][0][self._turn]
            for there, given in zip(self.come[: self._kinds], out, strict=False):
                pinned.copy(there[come : come + size], given[:size], self._xp)
            come += size
        a_winner = sum(array.itemsize for array in self.come[: self._kinds])
        self._exchange.bytes += (self._exchange.ranks - 1) * own * a_winner
        self._turn = (self._turn + 1) % TURNS
        if self._told:
            for elsewhere in (self.slack[: self._first], self.slack[self._last :]):
                workspace.clear(elsewhere, self._xp)
            self._told = False
        return own, come, any(sizes)

    def wake(self) -> None:
        """Take from the slack of this rank's vertices what the others were to tell them."""
        settle()  # what this rank tells is there
        self._exchange.barrier()
        own = slice(self._first, self._last)
        slack_here = self.slack[own]
        for rank, (_, slack) in enumerate(self._theirs):
            if rank != self._exchange.rank and slack_here.size:
                pinned.copy(self._woken, slack[own], self._xp)
                slack_here += self._woken
        self._exchange.bytes += self.slack.nbytes - slack_here.nbytes
        self._told = True


def _winners(size: int, types: tuple[Any, Any, Any], make: Any) -> Winners:
    vertex, label, score = types
    scores = make(1 if score is None else size, np.int64 if score is None else score)
    return Winners(make(size, vertex), make(size, label), scores)
