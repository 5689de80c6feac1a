"""A monitor: batch after batch, who is suspicious, what has changed, and since when.

The window merges its batch; scores go on from those of the tick before; clusters are looked for
among the accounts with a score; and each takes over the name of the one that most of its members
were in. Everything follows from the batches, the seeds and the options, whoever computes it, where.
"""

from __future__ import annotations

import logging
import os
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_progress
from glp_rapids.common.locks import Lock
from glp_rapids.common.progress import Progress, Report
from glp_rapids.common.reused_memory import reused_memory
from glp_rapids.device import DeviceName, choose
from glp_rapids.frames.kinds import Frame
from glp_rapids.fraud import journal, verification
from glp_rapids.fraud import seeds as seed_lists
from glp_rapids.fraud.clusters import Limits
from glp_rapids.fraud.cross_fitting import features_of
from glp_rapids.fraud.explanation import explained
from glp_rapids.fraud.monitor_frames import Tick
from glp_rapids.fraud.monitor_options import Settings, as_saved, check_weighing, lists_of, spans_of
from glp_rapids.fraud.monitor_state import Delivery
from glp_rapids.fraud.monitor_steps import next_state, scores_frame
from glp_rapids.fraud.placing import Transfers, telling, told_of
from glp_rapids.fraud.scores import checked
from glp_rapids.fraud.window import SlidingWindow

MAX_ITER = 1000
logger = logging.getLogger(__name__)


class Monitor:
    """Watch a window of transactions, from a blacklist: an alert for whatever changes.

    Parameters
    ----------
    window : SlidingWindow
        Undirected; with transactions in it, or empty. The monitor appends to it.
    seeds : list, array, Series or frame of ids, or dict
        The blacklist at first. Those that are no account in the window wait until they are. A dict
        of id to kind (all strings, or all integers) is several blacklists, kept apart: frames then
        say of which ``kind`` most of a score is, and `scores` what part of it each makes.
    good : list, array, Series or frame of ids, optional
        Accounts known to be honest: their score is 0, and nothing passes through them.
    merchants : the same, optional
        A second kind of vertex, as in `find_clusters`: they carry suspicion, and are no suspects.
    hubs : int, optional
        Accounts with more than so many partners pass nothing on, unless they are seeds.
    weight : {"transfers", "amount"}
        What an edge weighs: the number of its transactions, or what they are worth.
    half_life : str, pandas.Timedelta, number, optional
        After so much time a transaction counts half as much, after twice that a quarter, and so on,
        in steps of a 1024th of it; a number counts the window's ``time_unit``. At the least one
        counts as if 20 half-lives old, or 0.0001 (``decimals``) of an amount, of which a window has
        up to 2**54; amounts over ten half-lives old are rough. None (default): all count the same.
    damping, tol
        As in `account_scores`.
    refresh : str, pandas.Timedelta, number, optional
        After so much time of the transactions scores are computed from nothing once, not from the
        last ones; a number counts the window's ``time_unit``. Both are as near the exact ones, so
        this is for the cautious; None (default): never.
    minimum_size, minimum_score, minimum_share, minimum_partners
        What a cluster is, as in `find_clusters`.

    Attributes
    ----------
    window : SlidingWindow
        The one that was given.

    Raises
    ------
    ValueError, TypeError
        The window is directed, an option out of range, an id both a seed and good, or ids are not
        of the type of the window's.

    Notes
    -----
    An `update` costs O(b log w) for a batch of b rows and a window of w, a pass over the pairs
    of the window, and what `find_clusters` does with the accounts above ``minimum_score``; with
    kinds, a part of that for each; with ``half_life``, every eight of them all is added up anew.
    Memory: that of the window and its graph, and 70 bytes an account.
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
        good: Any = None,
        merchants: Any = None,
        hubs: int | None = None,
        weight: Literal["transfers", "amount"] = "transfers",
        half_life: Any = None,
        damping: float = 0.8,
        tol: float = 1e-4,
        refresh: Any = None,
        minimum_size: int = 6,
        minimum_score: float = 0.025,
        minimum_share: float = 0.2,
        minimum_partners: int = 5,
    ) -> None:
        if not isinstance(window, SlidingWindow):
            raise TypeError(f"window must be a SlidingWindow, not {type(window).__name__}")
        if window.directed:
            raise ValueError("window is directed; clusters and scores need directed=False")
        self.window = window
        rule = checked(damping, tol, MAX_ITER)
        if damping == 1:
            raise ValueError("damping must be below 1: else nothing that is over would fade")
        limits = Limits(minimum_size, minimum_score, minimum_share, minimum_partners)
        check_weighing(window, weight, hubs)
        self.refresh, self.half_life = refresh, half_life
        spans = spans_of(window, refresh, half_life)
        self._state = lists_of(window, seeds, good, merchants)
        of_weight = {"transfers": "transfers", "amount": "units"}[weight]
        if spans[1] is not None:
            window.fades(spans[1], weight == "amount")
            of_weight = "faded"
        self._settings = Settings(rule, limits, spans[0], of_weight, hubs)
        self._options = as_saved(rule, limits, weight, hubs, spans)
        self._seen = window._state  # by the last tick
        self._journal = journal.Journal()
        self._lock = Lock()

    def __repr__(self) -> str:
        state = self._state
        number = sum(map(len, state.seeds.values()))
        return (
            f"Monitor(tick {state.tick}, {number} seeds, {len(state.register.names)} clusters, "
            f"{self.window!r})"
        )

    @guarded
    def update(
        self, batch: Any = None, *, add_seeds: Any = (), drop_seeds: Any = (),
        add_merchants: Any = (), now: Any = None, progress: Progress = False,
    ) -> Tick:  # fmt: skip
        """Take in a batch, and say what has changed.

        Parameters
        ----------
        batch : pandas or cuDF frame, optional
            Transactions, as `SlidingWindow.append` takes them; None: there are none.
        add_seeds, drop_seeds : list, array, Series or frame of ids
            Who comes onto the blacklist, and who leaves it; with kinds, ``add_seeds`` is a dict.
        add_merchants : the same, optional
            Further merchants.
        now
            As `SlidingWindow.append` takes it.
        progress : bool or callable
            Show a bar, or call the function with a dict: the ``step`` "window" with its ``rows``
            when the batch is taken in, then "scores" and "clusters" as `find_clusters` does.

        Returns
        -------
        Tick
            ``number``: from 1. ``change``: what `SlidingWindow.append` returned.
            ``alerts``: what became of clusters since the last tick, by falling score.
            ``cluster_id``, a text that the cluster keeps (the tick it came up in, and its smallest
            member then); ``event``: "new", "grown", "shrunk" (members joined, or more left),
            "merged" (others, its ``parents``, went on in it), "split" (it broke off from its
            parent) or "gone"; ``parents``, a list of ids; ``joined`` and ``left``, how many members
            did; ``score``, the mean of its members; ``delta``, by how much that has changed.
            ``changes``: accounts whose score has changed by more than twice what it may now be off
            (``tol``, if known), by ``vertex``: ``score``, ``previous`` (0: new), ``kind``, if any.
            ``clusters``: as `find_clusters` has them, the most suspicious first, with
            ``cluster_id`` for ``cluster``; accounts as near ``minimum_score`` as scores may be off
            may be missing. ``members``: ``vertex``, ``cluster_id``, ``score``, ``is_seed``, by
            vertex. These two are made when they are first looked at.
            ``alerts.attrs["glp"]``: the tick, seconds by stage, ``pushed`` (entries read to mend
            scores), ``error``, as in `account_scores`, and more.

        Raises
        ------
        ValueError, TypeError
            The batch is refused, or an id in ``drop_seeds`` is no seed, or one in ``add_seeds`` is
            good. The monitor and its window stay as they were.
        """
        columns = self.window._reader.number_of_id_columns
        add = seed_lists.read_kinds(add_seeds, columns, "add_seeds")
        drop, merchants = (
            seed_lists.read(ids, columns, name)
            for name, ids in (("drop_seeds", drop_seeds), ("add_merchants", add_merchants))
        )
        ours, windows = (lock.once("update") for lock in (self._lock, self.window._lock))
        with telling(progress, "update") as tell, ours, windows, reused_memory(self.window.device):
            read = None if batch is None else self.window._read(batch, now)
            if read is not None:  # times may be those of the caller's frame, who may write to it
                rows = read[0].rows
                read = (replace(read[0], rows=replace(rows, time=rows.time.copy())), *read[1:])
            tick = self._advance(Delivery(*(read or (None,) * 3), add, drop, merchants), tell)
        facts = tick.alerts.attrs["glp"]
        logger.info(
            "tick %d: %d rows joined, %d left; %d clusters, %d alerts; %.3f s",
            tick.number, tick.change.added, tick.change.expired, tick.number_of_clusters,
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
            A file cannot be written, or the folder belongs to a monitor of another process.
        TypeError
            Ids are of a type that files have no form for.

        Notes
        -----
        Files hold numbers and text with checksums, and nothing that is executed: 28 bytes a
        transaction, and 8 or the text of an account.
        """
        with self._lock.once("save"), self.window._lock:
            self._refuse_unseen("save")
            self._journal.save(path, self._state, self.window, self._options)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, device: DeviceName | None = None,
        progress: Progress = False,
    ) -> Monitor:  # fmt: skip
        """Take up a monitor where `save` left it.

        Parameters
        ----------
        path
            The folder.
        device : {"cpu", "gpu"}, optional
            Where its window is to live; None: on the GPU if there is one.
        progress : bool or callable
            As of `update`, for each ``tick`` that is made again.

        Returns
        -------
        Monitor
            With a window of its own. What it finds from then on is, to the bit, what the one that
            was saved would have found.

        Raises
        ------
        FileNotFoundError
            There is no monitor in the folder.
        BlockingIOError
            It belongs to another process, which has saved or opened it.
        ValueError
            A file is damaged, of another version, or missing between others.

        Notes
        -----
        Costs a sort of the window's rows, and again the ticks since its state was written.
        """
        check_progress(progress)
        folder = Path(path).resolve()
        window, state, options, batches, kept = journal.opened(folder, path, choose(device))
        monitor = cls(window, **options)
        monitor._state, monitor._seen = state, window._state
        rows = 0
        with telling(progress, "open") as tell:
            for tick, delivery in enumerate(batches, state.tick + 1):
                rows += journal.size_of(delivery)
                with warnings.catch_warnings():  # of what the first run has warned
                    warnings.simplefilter("ignore")
                    monitor._advance(delivery, told_of(tell, tick=tick))
        kept.tick, kept.rows, monitor._journal = monitor._state.tick, rows, kept
        return monitor

    def close(self) -> None:
        """Leave the folder to other processes, as the end of this one does."""
        self._journal.close()

    @guarded
    def explain(self, vertex: Any, k: int = 3, *, least: float = 1e-6) -> Frame:
        """List the strongest paths from an account to the blacklist: the reasons for its score.

        Parameters
        ----------
        vertex, k, least
            As in the function `explain`.

        Returns
        -------
        frame
            As `explain` returns it, of the last tick; ``transfers`` is what the monitor weighs,
            with ``half_life`` in units of its own.

        Raises
        ------
        ValueError, TypeError
            As in `explain`; or the window holds what no tick has seen.
        """
        with self._lock, self.window._lock:
            self._refuse_unseen("explain")
            window, damping, scores = self.window, self._settings.rule.damping, self.scores
            graphs = window._graph(self._settings.weight), window.graph("amount")
            known = self._state.scores.facts()
            return explained(*graphs, window, scores, vertex, k, damping, least, known)

    @guarded
    def features(self, labels: Any, folds: int = 5, seed: int = 0, *, absent: str = "raise") -> Any:
        """Compute features of every account for a model, without a leak of its own label.

        Parameters
        ----------
        labels, folds, seed, absent
            As in the function `features`.

        Returns
        -------
        frame
            As `features` returns it, of the graph that the monitor weighs; not of its seeds.

        Raises
        ------
        ValueError, TypeError
            As in `features`.
        """
        with self._lock, self.window._lock:
            graph = self.window._graph(self._settings.weight)
            transfers = Transfers(graph, self.window.graph("amount"))
            return features_of(transfers, labels, folds, seed, self._settings.rule, absent)

    def verify(self) -> None:
        """Compare the window's sums and residuals of scores with what the rows say, to the bit.

        Raises
        ------
        RuntimeError
            Something differs; the message says what, and at how many places.

        Notes
        -----
        The sums are compared with those of the rows, added up at once, and residuals with what the
        graph says; names of clusters are not looked at. Costs as much as filling the window anew.
        """
        with self._lock, self.window._lock:
            found = verification.window_differs(self.window)
            if self.window._state is self._seen and self._state.scores is not None:
                graph = self.window._graph(self._settings.weight)
                found += verification.scores_differ(self._state, graph, self._settings)
        verification.refuse(found)

    def _refuse_unseen(self, what: str) -> None:
        if self.window._state is not self._seen:
            raise ValueError(f"the window holds what no tick has seen: update() first, then {what}")

    def _advance(self, delivery: Delivery, tell: Report | None = None) -> Tick:
        """Go on by a tick; if that fails, all stays as it was."""
        held, outside = self.window._state, self.window._state is not self._seen
        try:
            state, tick = next_state(self.window, self._settings, self._state, delivery, tell)
        except BaseException:
            self.window._state = held
            raise
        self._state, self._seen = state, self.window._state
        self._journal.note(delivery, outside, len(self.window))
        return tick

    @property
    def scores(self) -> Frame:
        """The score of every account, as `account_scores` returns it."""
        return scores_frame(self._state, self._settings.rule)
