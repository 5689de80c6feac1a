"""The GPU engine of a rank that stores winners into its peers' memory (`kernels.gpu.peer_stores`).

One launch does all sweeps, on all GPUs at the same time. While one waits for the others nothing may
be loaded or allocated, as that could wait for the GPU in turn: all is made before ranks meet. Other
threads of the process that allocate on these GPUs may delay a launch likewise.

The inboxes take 16 bytes, on every rank, for each vertex of the largest classes that are updated at
once (all vertices of a synchronous run), with 32-bit indices, and up to 32 with the scores of a
program's update; they stay on the graph for the next run. With them lies the slack, 4 bytes a
vertex, from which the other ranks take.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.device import settle, to_host
from glp_rapids.jit.cuda import multiprocessors
from glp_rapids.jit.launch import prepared_together
from glp_rapids.multigpu.exchange import RankFailed, ThreadExchange
from glp_rapids.multigpu.peers import PeerMeeting, address_of, plain_memory
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines.rank_cpu import agree
from glp_rapids.propagation.engines.rank_gpu import GpuRankEngine
from glp_rapids.propagation.kernels.gpu import peer_stores
from glp_rapids.propagation.kernels.gpu.peer_stores import BROKEN, FACTS, SENT, WAITED, Peers
from glp_rapids.propagation.kernels.gpu.shared_memory import THREADS
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.workload import Workload

INBOX = "inbox"  # what is kept of one, as its key begins


class PeerExchange(ThreadExchange):
    """The exchange of small words between ranks whose kernels send the rest."""

    _meeting: PeerMeeting

    @property
    def meeting(self) -> PeerMeeting:
        """Where the ranks meet."""
        return self._meeting


class PeerRankEngine(GpuRankEngine):
    """The engine of one rank; see `GpuRankEngine`."""

    _module: Any = peer_stores
    _exchange: PeerExchange
    _box: Peers

    def __init__(
        self, workload: Workload, compiled: Compiled, fields: dict[str, Any],
        exchange: PeerExchange, first: int, last: int,
    ):  # fmt: skip
        super().__init__(workload, compiled, fields, exchange, first, last)
        self._box.slack.fill(0)
        made = self._workspace
        made.slack, made.run = self._box.slack, made.run._replace(slack=self._bound_box.slack)

    def _slacks(self) -> int:
        """Return 1: slack lies in the box, where others can take from it."""
        return 1

    def _new_box(self) -> Peers:
        """Take the inboxes of an earlier run, if all ranks have those of one; else make them."""
        exchange = self._exchange
        self._box_key = INBOX, *self._key
        token, box = self._workload.kept.pop(self._box_key, (None, None))
        tokens = exchange.tell(token)
        if token is None or any(other is not token for other in tokens):
            box, token = self._made_box(), exchange.tell(object())[0]
        self._token = token
        return box._replace(
            stop=exchange.meeting.word(), patience=np.int64(exchange.meeting.patience * 1e9)
        )

    def bytes_of_inbox(self) -> int:
        """Count what others write to."""
        box = self._box
        theirs = box.vertices, box.labels, box.scores, box.mail, box.slack
        return sum(array.nbytes for array in theirs)

    def _made_box(self) -> Peers:
        """Make the inboxes, and learn where those of the others are."""
        exchange, xp, (index_type, _, score_type) = self._exchange, self._xp, self._functions.types
        first = np.concatenate([[0], np.cumsum(exchange.tell(self._most_winners()))])
        bounds = np.array([0, *exchange.tell(self._range[1])], np.int64)
        places = 2 * int(first[-1])
        arrays = (
            plain_memory(places, index_type),
            plain_memory(places, index_type),
            plain_memory(places if self._keeps_score else 1, score_type),
            plain_memory(5 * exchange.ranks, np.int64),
            plain_memory(super()._slacks(), np.int32),
        )
        addresses = exchange.tell([address_of(array) for array in arrays])
        return Peers(
            xp.asarray(np.array(addresses, np.int64).T.copy()),
            *arrays,
            xp.asarray(bounds),
            xp.asarray(first),
            xp.zeros(1, np.int64),
            xp.zeros(FACTS, np.int64),
            stop=None,
            patience=None,
            rank=np.int64(exchange.rank),
            ranks=np.int64(exchange.ranks),
        )

    def advance(self, schedule: Schedule, sweeps: int) -> None:
        """Do up to so many sweeps in one launch, with the other ranks."""
        made, peers, done = self._workspace, self._box, len(schedule.changed)
        how, before = self._begin(schedule, sweeps)
        for words in (peers.mail, peers.number, peers.facts):
            words.fill(0)
        blocks = -(-made.plan.entries_a_group // (2 * THREADS))
        begin = prepared_together(
            self._propagate, max(blocks, multiprocessors()), THREADS,
            (made.plan_arrays, made.tables, made.hubs, made.pieces, made.run, made.rows,
             made.readers, made.lists, self._bound, how, self._numbers),
            self._bound_box,
        )  # fmt: skip
        settle()
        self._exchange.barrier()  # all flags are 0, and all kernels are loaded
        begin(self._bound_box)
        facts = to_host(peers.facts)
        if facts[BROKEN]:
            raise RankFailed(
                f"rank {self._exchange.rank} ended its kernel: another one failed, or did not come "
                f"within {self._exchange.meeting.patience:g} seconds"
            )
        self._record(schedule, before)
        winner = sum(
            array.itemsize
            for array in (peers.vertices, peers.labels, peers.scores)[: 2 + self._keeps_score]
        )
        self._exchange.bytes += int(facts[SENT]) * winner * (self._exchange.ranks - 1)
        self._exchange.waiting += int(facts[WAITED]) / 1e9
        told = self._exchange.tell((tuple(schedule.changed[done:]), self._failure))
        agree([changed for changed, _ in told])
        self._failure = min(failure for _, failure in told)
        if schedule.over and not self._failure:
            kept = self._workload.kept
            kept[self._key] = made
            kept[self._box_key] = self._token, peers._replace(stop=None)
