"""The kernel of few active vertices in a few lines of NumPy, to run its engine without a GPU."""

import numpy as np
import reference
from streamed_model import NAMES

from glp_rapids.propagation.kernels.gpu.frontier_lists import (
    BITS_OF_VERTEX,
    SPREADS,
    vertices_of,
)
from glp_rapids.propagation.schedule import judged, span_of, ties_of
from glp_rapids.propagation.slack import slack_of


class FrontierModel:
    """Stands for the kernel of plain votes; ``words``: of the vertices, for what is hashed."""

    def __init__(self, words):
        self.words, self.launches = words, 0

    def launch_together(self, kernel, wanted, threads, active, tables, pieces, run, rows, readers,
                        apart, fields, schedule, numbers):  # fmt: skip
        """Do the sweeps of a launch."""
        assert apart or readers.indptr is rows.indptr
        assert kernel.py_func.__name__ == "propagate_frontier"
        self.launches += 1
        self.which = int(run.control[2])
        for v in active:
            assert run.slack[v] == 0
            run.slack[v] = -1
            self._put(run, self.which, v)
        spreads = False
        for _ in range(int(schedule.sweeps)):
            if spreads:
                break
            over = self._sweep(run, rows, readers, fields[0], schedule, numbers)
            spreads = run.listed.counts[self.which] > run.most_listed
            if over:
                break
        run.control[2] = self.which
        run.listed.counts[SPREADS] = spreads

    def _class_of(self, v, classes):
        return reference.mix(self.words[v], reference.CLASS_SEED) % int(classes)

    def _put(self, run, which, v):
        place = run.listed.counts[which]
        number = self._class_of(v, run.classes)
        run.listed.members[which, place] = number << BITS_OF_VERTEX | int(v)
        run.listed.counts[which] += 1

    def _sweep(self, run, rows, readers, labels, schedule, numbers):
        sweep, explored = int(run.control[0]) + 1, int(run.control[1])
        retain, tie_break, seed, _ = ties_of(
            sweep, explored, bool(schedule.retain), int(schedule.tie_break), int(schedule.seed)
        )
        before = int(schedule.before)
        if sweep > 1:
            before = int(run.changed[sweep - 2 - schedule.forgotten])
        span = span_of(int(schedule.classes), sweep, before, int(schedule.vertices), False)
        changed, following = 0, 1 - self.which
        for first in range(0, int(schedule.classes), span):
            members = run.listed.members[self.which, : run.listed.counts[self.which]]
            members = [v for v in vertices_of(members).tolist()
                       if first <= self._class_of(v, schedule.classes) < first + span]  # fmt: skip
            winners = {}
            for v in members:
                heard = labels[rows.indices[rows.indptr[v] : rows.indptr[v + 1]]]
                run.slack[v] = 0
                if not heard.size:
                    continue
                votes = dict(zip(*map(np.ndarray.tolist, np.unique(heard, return_counts=True)),
                                 strict=True))  # fmt: skip
                run.slack[v] = slack_of(max(votes.values()), heard.size, int(numbers.largest_vote))
                winner = reference.winner(
                    votes, int(labels[v]), sweep=sweep, exploring=False, tie_break=NAMES[tie_break],
                    retain=retain, seed=seed, words=self.words,
                )  # fmt: skip
                if winner != labels[v]:
                    winners[v] = winner
            for v, winner in winners.items():
                labels[v] = winner
            for v in winners:
                for u in readers.indices[readers.indptr[v] : readers.indptr[v + 1]].tolist():
                    run.slack[u] -= 1
                    if run.slack[u] == -1:
                        later = self._class_of(u, schedule.classes) >= first + span
                        self._put(run, self.which if later else following, u)
            changed += len(winners)
        run.listed.counts[self.which], self.which = 0, following
        run.changed[sweep - 1 - int(schedule.forgotten)] = changed
        run.control[0] = sweep
        _, settled = judged(
            run.changed.tolist(), int(schedule.forgotten), sweep, explored, int(schedule.explore),
            bool(schedule.stops), int(schedule.few), int(schedule.patience),
        )  # fmt: skip
        return settled and schedule.stops
