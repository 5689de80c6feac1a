"""A monitor: batch after batch, who is suspicious, what has changed, and since when.

A tick costs what has changed. The window merges its batch; scores go on from those of the tick
before, and only residuals around what changed are looked at; clusters are looked for among the
accounts with a score; and each takes over the name of the one that most of its members were in.
Everything follows from the batches, the seeds and the options, whoever computes it, where and when.
"""

from __future__ import annotations

import logging
import math
import os
import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import shown
from glp_rapids.device import DeviceName, array_module, choose, module_on
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Frame
from glp_rapids.fraud import clock, journal
from glp_rapids.fraud import seeds as seed_lists
from glp_rapids.fraud.clusters import Limits, grouped
from glp_rapids.fraud.monitor_frames import Tick, alerts_frame, empty_frames, frames_of
from glp_rapids.fraud.monitor_state import Delivery, Laps, State, index_since, named, score_changes
from glp_rapids.fraud.names import carried
from glp_rapids.fraud.score_state import ScoreState
from glp_rapids.fraud.scores import Rule, checked
from glp_rapids.fraud.window import Change, SlidingWindow
from glp_rapids.graph.graph import Graph
from glp_rapids.jit.interrupts import interruptible

Array = Any
MAX_ITER = 1000

logger = logging.getLogger(__name__)


class Monitor:
    """Watch a window of transactions, from a blacklist: an alert for whatever changes.

    Parameters
    ----------
    window : SlidingWindow
        Undirected; with transactions in it, or empty. The monitor appends to it.
    seeds : list, array, Series or frame of ids
        The blacklist at first. Those that are no account in the window wait until they are.
    good : the same, optional
        Accounts known to be honest: their score is 0, and nothing passes through them.
    damping, tol
        As in `account_scores`.
    refresh : str, pandas.Timedelta, number, optional
        After so much time of the transactions scores are computed from nothing once, not from the
        last ones; a number counts the window's ``time_unit``. Both are within ``tol`` of the exact
        ones, so this is for the cautious; None (default): never.
    minimum_size, minimum_score, minimum_share, minimum_partners
        What a cluster is, as in `find_clusters`.

    Attributes
    ----------
    window : SlidingWindow
        The one that was given.

    Raises
    ------
    ValueError, TypeError
        The window is directed, an option out of range, or an id both a seed and good.

    Notes
    -----
    An `update` costs O(b log w) for a batch of b rows and a window of w, a pass over the pairs
    of the window, and what `find_clusters` does with the accounts above ``minimum_score``.
    Memory: that of the window and its graph, and 60 bytes an account.
    The state depends on the sequence of batches and seeds alone: the same bits on every device,
    in any order of rows within a batch in which no ``id`` comes twice. Logger
    ``glp_rapids.fraud.monitor`` writes a line a tick.
    After section 2 of C. Ye et al., GPU-Accelerated Graph Label Propagation for Real-Time Fraud
    Detection, SIGMOD 2021; what becomes of clusters after D. Greene et al., Tracking the Evolution
    of Communities in Dynamic Social Networks, ASONAM 2010.

    Examples
    --------
    >>> from glp_rapids.datasets import blacklist, transactions
    >>> from glp_rapids.fraud import Monitor, SlidingWindow
    >>> frame, truth = transactions(20_000, accounts=2_000, merchants=200, rings=4, towns=10)
    >>> watch = Monitor(SlidingWindow(days=30), blacklist(truth))
    >>> for _, day in frame.groupby(frame["time"].dt.floor("D")):
    ...     tick = watch.update(day)
    >>> list(tick.alerts.columns)
    ['cluster_id', 'event', 'parents', 'joined', 'left', 'score', 'delta']
    """

    def __init__(
        self,
        window: SlidingWindow,
        seeds: Any = (),
        *,
        good: Any = (),
        damping: float = 0.8,
        tol: float = 1e-4,
        refresh: Any = None,
        minimum_size: int = 6,
        minimum_score: float = 0.025,
        minimum_share: float = 0.2,
        minimum_partners: int = 5,
    ) -> None:
        if not isinstance(window, SlidingWindow):
            raise TypeError(f"window must be a SlidingWindow, not {shown(window)}")
        if window.directed:
            raise ValueError("window is directed; clusters and scores need directed=False")
        self.window = window
        self._rule: Rule = checked(damping, tol, MAX_ITER)
        if damping == 1:
            raise ValueError("damping must be below 1: else nothing that is over would fade")
        self._limits = Limits(minimum_size, minimum_score, minimum_share, minimum_partners)
        self.refresh = refresh
        self._refresh = None if refresh is None else clock.span(refresh, "refresh")
        if self._refresh is not None and clock.length_of(self._refresh, clock.DATES, "us") < 1:
            raise ValueError("refresh must be above 0, a microsecond at the least; None: never")
        columns = window._reader.number_of_id_columns
        known = [seed_lists.read(ids, columns, name) for ids, name in
                 ((seeds, "seeds"), (good, "good"))]  # fmt: skip
        seed_lists.refuse_common(*known)
        self._state = State(seeds=known[0], good=known[1])
        self._options = {
            "damping": self._rule.damping, "tol": self._rule.tol,
            "refresh": journal.as_text(self._refresh), **asdict(self._limits),
        }  # fmt: skip
        self._seen = window._state  # by the last tick
        self._journal = journal.Journal()

    def __repr__(self) -> str:
        state = self._state
        number = 0 if state.seeds is None else len(state.seeds)
        return (
            f"Monitor(tick {state.tick}, {number} seeds, {len(state.register.names)} clusters, "
            f"{self.window!r})"
        )

    @guarded
    def update(
        self, batch: Any = None, *, add_seeds: Any = (), drop_seeds: Any = (), now: Any = None
    ) -> Tick:
        """Take in a batch, and say what has changed.

        Parameters
        ----------
        batch : pandas or cuDF frame, optional
            Transactions, as `SlidingWindow.append` takes them; None: there are none.
        add_seeds, drop_seeds : list, array, Series or frame of ids
            Who comes onto the blacklist, and who leaves it.
        now
            As `SlidingWindow.append` takes it.

        Returns
        -------
        Tick
            ``number``: from 1. ``change``: what `SlidingWindow.append` returned.
            ``alerts``: what became of clusters since the last tick, by falling score.
            ``cluster_id``, a text that the cluster keeps (the tick it came up in, and its smallest
            member then); ``event``: "new", "grown", "shrunk" (members joined, or more left),
            "merged" (others, its ``parents``, went on in it), "split" (it broke off from its
            parent) or "gone";
            ``parents``, a list of ids; ``joined`` and ``left``, how many members did; ``score``,
            the mean of its members; ``delta``, by how much that has changed.
            ``changes``: accounts whose score has changed by more than twice ``tol``: ``vertex``,
            ``score``, ``previous`` (0 for who has come), by vertex.
            ``clusters``: as `find_clusters` has them, the most suspicious first, with
            ``cluster_id`` in the place of ``cluster``. ``members``: ``vertex``, ``cluster_id``,
            ``score``, ``is_seed``, by vertex.
            ``alerts.attrs["glp"]``: the tick, seconds by stage, ``pushed`` (entries read to mend
            scores), ``error`` (how far scores may be off), and more.

        Raises
        ------
        ValueError, TypeError
            The batch is refused, or an id in ``drop_seeds`` is no seed, or one in ``add_seeds`` is
            good. The monitor and its window stay as they were.
        """
        columns = self.window._reader.number_of_id_columns
        read = None if batch is None else self.window._read(batch, now)
        add, drop = (
            seed_lists.read(ids, columns, name)
            for name, ids in (("add_seeds", add_seeds), ("drop_seeds", drop_seeds))
        )
        if read is not None:  # times may be those of the caller's frame, who may write to it
            rows = read[0].rows
            read = (replace(read[0], rows=replace(rows, time=rows.time.copy())), *read[1:])
        delivery = Delivery(*(read or (None,) * 3), add, drop)
        tick = self._advance(delivery)
        facts = tick.alerts.attrs["glp"]
        logger.info(
            "tick %d: %d rows joined, %d left; %d clusters, %d alerts; %.3f s",
            tick.number, tick.change.added, tick.change.expired, len(tick.clusters),
            len(tick.alerts), sum(facts["seconds"].values()),
        )  # fmt: skip
        return tick

    def save(self, path: str | os.PathLike[str]) -> None:
        """Keep the monitor in a folder, from which `open` takes it up, after a crash or elsewhere.

        Called after every tick it costs the batch: it writes what the ticks since the last call
        were given, and only now and then, at the least at the first call, all of the window.

        Parameters
        ----------
        path
            A folder for this monitor alone; it is made if its parent is there.

        Raises
        ------
        ValueError
            The folder holds another monitor, or this one at another tick than it was left at; or
            the window holds what no tick has seen.
        OSError
            A file cannot be written.
        TypeError
            Ids are of a type that files have no form for.

        Notes
        -----
        Files hold numbers and text with checksums, and nothing that is executed. A state takes 28
        bytes a transaction, and 8 or the text of an account.
        """
        if self.window._state is not self._seen:
            raise ValueError("the window holds what no tick has seen: update() first, then save")
        self._journal.save(path, self._state, self.window, self._options)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, device: DeviceName | None = None) -> Monitor:
        """Take up a monitor where `save` left it.

        Parameters
        ----------
        path
            The folder.
        device : {"cpu", "gpu"}, optional
            Where its window is to live; None: on the GPU if there is one.

        Returns
        -------
        Monitor
            With a window of its own. What it finds from then on is, to the bit, what the one that
            was saved would have found; of batches that came before it warns no more if they come
            again, which ``id`` is the guard against.

        Raises
        ------
        FileNotFoundError
            There is no monitor in the folder.
        ValueError
            A file is damaged, of another version, or missing between others.

        Notes
        -----
        Costs a sort of the window's rows, and again the ticks since its state was written.
        """
        folder = Path(path).resolve()
        there = journal.files_in(folder)
        if there.state is None:
            raise FileNotFoundError(f"{path}: there is no monitor; name a folder for Monitor.save")
        window, state, options = journal.read_state(folder, there.state, choose(device))
        monitor = cls(window, **options)
        monitor._state = state
        rows = 0
        for number, tick in enumerate(there.batches, there.state + 1):
            if number != tick:
                missing = journal.path_of(folder, "batch", number)
                raise ValueError(f"{missing} is missing, and later ones are there; restore it")
            delivery = journal.read_batch(folder, tick, window.device)
            rows += journal.size_of(delivery)
            with warnings.catch_warnings():  # of what the first run has warned
                warnings.simplefilter("ignore")
                monitor._advance(delivery)
        monitor._journal = journal.Journal(folder, monitor._state.tick, [], rows)
        return monitor

    def _advance(self, delivery: Delivery) -> Tick:
        """Go on by a tick; if that fails, all stays as it was."""
        held = self.window._state
        outside = held is not self._seen
        try:
            state, tick = self._next(delivery)
        except BaseException:
            self.window._state = held
            raise
        self._state, self._seen = state, self.window._state
        self._journal.note(delivery, outside, len(self.window))
        return tick

    @property
    def scores(self) -> Frame:
        """The score of every account, as `account_scores` returns it."""
        state = self._state
        if state.scores is None:
            raise ValueError("there are no scores yet: update first")
        system = state.scores.system
        is_seed = module_on(system.graph.device).zeros(len(state.vertices), dtype=bool)
        is_seed[system.of.seeds] = True
        return system.graph.frame({"score": state.scores.scores, "is_seed": is_seed})

    def _next(self, delivery: Delivery) -> tuple[State, Tick]:
        laps, window, state = Laps(), self.window, self._state
        seeds = seed_lists.together(seed_lists.without(state.seeds, delivery.drop), delivery.add)
        seed_lists.refuse_common(seeds, state.good)
        state = state._replace(tick=state.tick + 1, seeds=seeds)
        change = Change(0, 0, 0, 0)
        if delivery.batch is not None:
            change = window._take(*delivery[:3])
        laps.lap("window")
        facts = {"tick": state.tick, "device": window.device, **change._asdict()}
        if not len(window):
            return self._emptied(state, change, facts, laps)
        transfers, values = window.graph("transfers"), window.graph("amount")
        laps.lap("graph")
        before = state.scores
        state, place = self._scored(state, transfers)
        laps.lap("scores")
        xp = array_module(transfers.indptr)
        score = state.scores.scores
        is_seed = xp.zeros(score.size, dtype=bool)
        is_seed[state.scores.system.of.seeds] = True
        found = grouped(transfers, values, score, is_seed, self._limits)
        laps.lap("clusters")
        effort = state.scores.effort
        facts |= {"rounds": effort.rounds, "pushed": effort.entries, "error": state.scores.error}
        state, alerts = named(state, transfers, found)
        changed = score_changes(before, place, score, self._rule.tol)
        frames = frames_of(transfers, found, state.register, score, is_seed, changed)
        return state, self._tick(state, change, alerts, frames, facts, laps)

    def _scored(self, state: State, graph: Graph) -> tuple[State, Array | None]:
        """Score the accounts of the window, from their last scores; tell their former indices."""
        window, engine = self.window, self.window._state.engine
        fixed = journal.fixed_of(state, graph)
        period, old, place = state.period, state.scores, None
        touched = engine.changed_since(state.mark)
        now = graph.vertices, engine.places()
        if old is not None:
            place = index_since((state.vertices, state.places), now, touched)
        if self._refresh is not None:
            held = window._state
            length = clock.length_of(self._refresh, held.times, window._time_unit)
            period = math.floor(held.newest / length)
        rule = self._rule
        if old is None or period != state.period:
            scores = interruptible(ScoreState)(graph, fixed, *rule)
        else:
            follow = interruptible(old.follow)
            scores = follow(graph, fixed, rule.max_iter, place=place, touched=touched)
        vertices, places = now
        state = state._replace(
            scores=scores, vertices=vertices, places=places, mark=window.mark(), period=period
        )
        return state, place

    def _emptied(
        self, state: State, change: Change, facts: dict[str, Any], laps: Laps
    ) -> tuple[State, Tick]:
        """Return the tick of a window without rows."""
        none, ids = np.empty(0), state.register.ids
        members = pd.DataFrame() if ids is None else ids[:0]
        register, changes = carried(
            state.register, members, none.astype(np.int64), none, state.tick
        )
        state = state._replace(
            register=register, scores=None, vertices=None, places=None, mark=self.window.mark()
        )
        window = self.window
        frames = empty_frames(window._reader.no_vertices, window._state.kind or "pandas")
        return state, self._tick(state, change, changes.alerts, frames, facts, laps)

    def _tick(
        self, state: State, change: Change, alerts: dict[str, list], frames: dict[str, Frame],
        facts: dict[str, Any], laps: Laps,
    ) -> Tick:  # fmt: skip
        frames = {"alerts": alerts_frame(alerts, (self.window._state.kind or "pandas")), **frames}
        laps.lap("frames")
        facts["seconds"] = laps.seconds
        for frame in frames.values():
            kinds.set_attributes(frame, dict(facts))
        return Tick(state.tick, change, **frames)
