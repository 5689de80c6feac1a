"""A monitor in a folder: its state now and then, and every batch since.

``state-00000007.glp`` is all of a monitor after tick 7, ``batch-00000008.glp`` what tick 8 was
given. Since a tick follows from the state before it and from what it is given, replaying those is
being there. A file is there as a whole or not at all, and the files before a state go when it is
there; so whatever ends the process, the folder stands for a whole number of ticks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from glp_rapids.common.atomic_file import PART
from glp_rapids.common.checks import errors_named
from glp_rapids.compressed.file import vertex_ids
from glp_rapids.compressed.file.container import damaged
from glp_rapids.device import to_device, to_host
from glp_rapids.fraud import parts, seeds, snapshot
from glp_rapids.fraud.clock import span, start_of
from glp_rapids.fraud.deliveries import SUMS, Deliveries
from glp_rapids.fraud.engines import ENGINES, Batch, Engine
from glp_rapids.fraud.folder_lock import FolderLock, hold
from glp_rapids.fraud.monitor_state import Delivery, State
from glp_rapids.fraud.names import Register
from glp_rapids.fraud.pairs import Rows
from glp_rapids.fraud.scores import Rule
from glp_rapids.fraud.seeds import Blacklists
from glp_rapids.fraud.window import SlidingWindow
from glp_rapids.graph.vertex_ids import VertexIds

FILE = re.compile(r"(state|batch)-(\d{8})\.glp")
COLUMNS = ("source", "destination", "units", "time")
AT_ONCE = 64  # batches after which a state is written
RULES = 3  # from which scores and clusters follow; another number where these change
COUNTS = 2  # those since which amounts by age and partners of hubs are what they are
SHARE = 2  # or when they have so many rows as this part of the window


class Files(NamedTuple):
    """The newest state in a folder, the batches since, and everything else of a journal there."""

    state: int | None
    batches: list[int]
    older: list[Path]


def path_of(folder: Path, kind: str, tick: int) -> Path:
    """Return the path of a file: the state after a tick, or what it was given."""
    return folder / f"{kind}-{tick:08d}.glp"


def files_in(folder: Path) -> Files:
    """Look what a folder holds."""
    if not folder.is_dir():
        return Files(None, [], [])
    found = [(match[1], int(match[2]), path) for path in folder.iterdir()
             if (match := FILE.fullmatch(path.name))]  # fmt: skip
    newest = max((tick for kind, tick, _ in found if kind == "state"), default=None)
    if newest is None:
        return Files(None, sorted(tick for _, tick, _ in found), [])
    batches = sorted(tick for kind, tick, _ in found if kind == "batch" and tick > newest)
    older = [path for kind, tick, path in found if (tick, kind) < (newest, "state")]
    return Files(newest, batches, older)


class Journal:
    """Where a monitor was saved last, and what it was given since.

    ``since`` is None where a state has to be written: at first, when more came than is worth
    replaying, when the caller has changed the window. ``rows``: of all batches since a state.
    """

    def __init__(
        self, folder: Path | None = None, tick: int = 0, since: list[Delivery] | None = None,
        rows: int = 0, lock: FolderLock | None = None,
    ) -> None:  # fmt: skip
        self.folder, self.tick, self.since, self.rows = folder, tick, since, rows
        self.lock = lock

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "lock": None}

    def close(self) -> None:
        """Leave the folder to other processes."""
        self.lock = None

    def note(self, delivery: Delivery, outside: bool, size: int) -> None:
        """Note what a tick was given; ``size``: rows in the window."""
        if outside or self.since is None:
            self.since = None
            return
        self.rows += size_of(delivery)
        since = [*self.since, delivery]
        fits = len(since) <= AT_ONCE and self.rows * SHARE <= size
        self.since = since if fits else None

    def save(
        self, path: Any, state: State, window: SlidingWindow, options: dict[str, Any]
    ) -> None:
        """Write what is new, one whole file after the other."""
        folder = Path(path).resolve()
        with errors_named("path"):
            if folder.exists() and not folder.is_dir():
                raise ValueError(f"path: {path} is a file; name a folder")
            folder.mkdir(exist_ok=True)
        lock = hold(folder)
        there = files_in(folder)
        last = there.batches[-1] if there.batches else there.state
        if last is not None and (folder, last) != (self.folder, self.tick):
            raise ValueError(
                f"{path} holds a monitor at tick {last}, which is not where this one was last "
                "saved or opened; save to a new folder, or open that one"
            )
        self.lock = lock
        since = self.since if last is not None else None
        many = since is not None and len(there.batches) + len(since) > AT_ONCE
        if since is None or many or last + len(since) != state.tick:
            write_state(folder, state, window, options)
            self.folder, self.tick, self.since, self.rows = folder, state.tick, [], 0
            for old in files_in(folder).older:
                old.unlink(missing_ok=True)
            return
        for tick, delivery in enumerate(since, last + 1):
            write_batch(folder, tick, delivery)
            self.tick, self.since = tick, since[tick - last :]


def size_of(delivery: Delivery) -> int:
    """Count what is kept of a delivery, in rows."""
    lists = (delivery.batch, *delivery.add.values(), delivery.drop, delivery.merchants)
    return sum(len(one) for one in lists if one is not None)


def write_batch(folder: Path, tick: int, delivery: Delivery) -> None:
    """Write what a tick was given."""
    facts = {"tick": tick, "kind": delivery.kind, "times": delivery.times}
    arrays, tables = _parts_of(delivery.batch)
    tables |= _put_kinds(facts, "add", delivery.add)
    lists = {"drop": delivery.drop, "merchants": delivery.merchants}
    tables |= {name: table for name, table in lists.items() if table is not None}
    snapshot.write(path_of(folder, "batch", tick), facts, arrays, tables)


def read_batch(folder: Path, tick: int, device: Any) -> Delivery:
    """Read what a tick was given."""
    facts, arrays, ids = _read(path_of(folder, "batch", tick), tick, device)
    batch, add = _batch_of(arrays, ids, device), _kinds_of(facts, "add", ids)
    given = batch, facts["kind"], facts["times"]
    return Delivery(*given, add, ids.get("drop"), ids.get("merchants"))


def _batches(folder: Path, ticks: list[int], device: Any) -> Iterator[Delivery]:
    """Read what ticks were given, one after the other."""
    for tick in ticks:
        try:
            yield read_batch(folder, tick, device)
        except ValueError as error:
            if tick == ticks[-1]:
                error.add_note(f"without this file the monitor opens at tick {tick - 1}")
            raise


def _put_kinds(facts: dict[str, Any], name: str, lists: Blacklists) -> dict[str, VertexIds]:
    """Note the kinds of seeds, and name the ids of each."""
    facts[name] = list(lists)
    return {f"{name}{i}": ids for i, ids in enumerate(lists.values())}


def _kinds_of(facts: dict[str, Any], name: str, ids: dict[str, VertexIds]) -> Blacklists:
    return {kind: ids[f"{name}{i}"] for i, kind in enumerate(facts[name])}


def write_state(folder: Path, state: State, window: SlidingWindow, options: dict[str, Any]) -> None:
    """Write all of a monitor."""
    held, register = window._state, state.register
    facts: dict[str, Any] = {
        "tick": state.tick, "period": state.period, "names": list(register.names),
        "monitor": options, "window": _options_of(window),
        "newest": held.newest, "kind": held.kind, "times": held.times,
        "late": held.deliveries.late, "rules": RULES,
    }  # fmt: skip
    arrays, ids = _parts_of(_all_of(held.engine) if len(window) else None)
    if len(window) and (known := held.engine.ids()) is not None:
        ids["known"], arrays["known"] = known[0], to_host(known[1])
    arrays |= {"cluster": register.cluster, "cluster_score": register.score}
    batches = held.deliveries.batches
    arrays["came"] = np.array(list(batches), dtype=np.int64).reshape(-1)
    arrays["came_until"] = np.array(list(batches.values()))
    tables = {"good": state.good, "merchants": state.merchants}
    if register.ids is not None and len(register.ids):
        members = [register.ids[name] for name in register.ids.columns]
        tables["members"] = seeds.sorted_ids_of(members)
    if state.scores is not None:
        facts["scores"] = [
            {"exponent": one.system.exponent, "rounds": one.effort.rounds,
             "entries": one.effort.entries}
            for one in state.scores.states
        ]  # fmt: skip
        for i, one in enumerate(state.scores.states):
            arrays[f"numbers{i}"] = one.numbers
    ids |= _put_kinds(facts, "seeds", state.seeds)
    ids |= {name: table for name, table in tables.items() if table is not None}
    snapshot.write(path_of(folder, "state", state.tick), facts, arrays, ids)


def opened(
    folder: Path, path: Any, device: Any
) -> tuple[SlidingWindow, State, dict[str, Any], Iterator[Delivery], Journal]:
    """Return a window, its monitor's state and options, what later ticks were given, the rest."""
    lock = hold(folder) if folder.is_dir() else None
    there = files_in(folder)
    if there.state is None:
        raise FileNotFoundError(f"{path}: there is no monitor; name a folder for Monitor.save")
    if lock is not None and lock.is_new:  # what a process that was killed was writing
        for part in folder.glob(f"{PART}*"):
            part.unlink(missing_ok=True)
    for number, tick in enumerate(there.batches, there.state + 1):
        if number != tick:
            missing = path_of(folder, "batch", number)
            raise ValueError(f"{missing} is missing, and later ones are there; restore it")
    window, state, options, current = read_state(folder, there.state, device, len(there.batches))
    batches = _batches(folder, there.batches, window.device)
    # beside a state of other rules no batch may be written that follows it by these
    since: list[Delivery] | None = [] if current else None
    return window, state, options, batches, Journal(folder, since=since, lock=lock)


def read_state(
    folder: Path, tick: int, device: Any, batches: int = 0
) -> tuple[SlidingWindow, State, dict[str, Any], bool]:
    """Read all of a monitor: its window, its state, its options; ``batches`` came since.

    Last is whether it was written by these rules. Of other, earlier ones is only what does not
    depend on them: who is in a cluster is told again by the next tick, but what came between would
    be told to nobody.
    """
    facts, arrays, ids = _read(path_of(folder, "state", tick), tick, device)
    window, options = SlidingWindow(**facts["window"], device=device), facts["monitor"]
    fades, amounts = options["half_life"] is not None, options["weight"] == "amount"
    rules, counts = facts.get("rules", 0), (fades and amounts) or options["hubs"] is not None
    if rules > RULES or (rules < RULES and batches) or (rules < COUNTS and counts):
        raise ValueError(
            f"{path_of(folder, 'state', tick)} is of another version, for which amounts by age, "
            "partners of hubs and what accounts pay to themselves counted otherwise, or scores "
            "were nearer the exact ones; start a new Monitor"
        )
    if fades:
        window.fades(span(options["half_life"], "half_life"), amounts)
    known = None
    if "known" in ids:
        known = ids["known"], to_device(arrays["known"], window.device)
    batch = _batch_of(arrays, ids, window.device)
    _restore(window, batch, known, facts["newest"], facts["kind"], facts["times"])
    came = zip(*(iter(arrays["came"].tolist()),) * SUMS, strict=True)
    batches = dict(zip(came, arrays["came_until"].tolist(), strict=True))
    deliveries = Deliveries(batches, facts["late"])
    window._state = window._state._replace(deliveries=deliveries)
    members = ids.get("members")
    frame = None
    if members is not None:
        frame = pd.DataFrame(dict(enumerate(pd.Series(one.values) for one in members.columns)))
    names, score = tuple(facts["names"]), arrays["cluster_score"]
    register = Register(names, score, frame, arrays["cluster"])
    state = State(
        tick=facts["tick"], seeds=_kinds_of(facts, "seeds", ids), good=ids.get("good"),
        merchants=ids.get("merchants"), period=facts["period"], register=register,
        mark=window.mark(),
    )  # fmt: skip
    if (saved := facts.get("scores")) is not None:
        weight = {"transfers": "transfers", "amount": "units"}[options["weight"]]
        graph = window._graph(weight if options["half_life"] is None else "faded")
        numbers = [to_device(arrays[f"numbers{i}"], graph.device) for i in range(len(saved))]
        if any(one.size != graph.number_of_vertices for one in numbers):
            damaged(path_of(folder, "state", tick), "section numbers: there is not one a vertex")
        fixed = parts.fixed_by_kind(state.seeds, state.good, graph, options["hubs"])
        rule = Rule(options["damping"], options["tol"], 0)
        found = parts.restored(graph, fixed, rule, saved, iter(numbers))
        places = window._state.engine.places()
        decay, newest = window._state.engine.decay, window._state.newest
        state = state._replace(
            scores=found, vertices=graph.vertices, places=places,
            epoch=0 if decay is None else decay.epoch(newest),
        )  # fmt: skip
    return window, state, options, rules == RULES


def _read(path: Path, tick: int, device: Any) -> tuple[dict, dict, dict[str, VertexIds]]:
    of_window = ("vertices", "known", "transactions")
    facts, arrays, ids = snapshot.read(path, device, on_device=of_window)
    if facts.get("tick") != tick:
        damaged(path, f"its name: it is of tick {facts.get('tick')}")
    if facts["kind"] is not None:
        facts["kind"] = vertex_ids.kind_here(facts["kind"])
    return facts, arrays, ids


def as_text(length: Any) -> float | str | None:
    """Return a length of time, as `clock.span` takes it, as JSON has it."""
    if length is None or isinstance(length, str):
        return length
    if isinstance(length, int | float | np.number):
        return float(length)
    return str(pd.Timedelta(length))


def _options_of(window: SlidingWindow) -> dict[str, Any]:
    """Return what a window was made of, but for the device, as JSON has it."""
    reader = window._reader
    names = ("source", "destination", "amount", "time", "id")
    return {
        **{name: _plain(getattr(reader, name)) for name in names},
        "days": float(window.days), "time_unit": window._time_unit,
        "max_lead": as_text(reader.lead), "directed": window.directed,
        "decimals": len(str(window._scale)) - 1,
    }  # fmt: skip


def _plain(names: Any) -> Any:
    """Return names of columns without NumPy's types."""
    if isinstance(names, list | tuple):
        return [_plain(name) for name in names]
    return names.item() if isinstance(names, np.generic) else names


def _all_of(engine: Engine) -> Batch:
    """Return all transactions of a window, on the host, as one batch."""
    runs = list(engine.runs())
    columns = [np.concatenate([to_host(getattr(run, name)) for run in runs]) for name in COLUMNS]
    return Batch(Rows(*columns), engine.window().vertices)


def _restore(
    window: SlidingWindow, batch: Batch | None, known: Any, newest: Any, kind: Any, times: Any
) -> None:
    """Let a new window hold what another did; ``known``: ids of transactions, and their times."""
    engine = None
    if batch is not None:
        start = start_of(newest, window.days, times, window._time_unit)
        decay = window._decay_of(times)
        engine = ENGINES[window.device if kind == "pandas" else "gpu"]()(window.directed, decay)
        engine = engine.advanced(batch, start, newest - start)[0]
        engine = engine if known is None else engine.knowing(*known)
    window._state = window._state._replace(engine=engine, newest=newest, kind=kind, times=times)


def _parts_of(batch: Batch | None) -> tuple[dict[str, Any], dict[str, VertexIds]]:
    if batch is None:
        return {}, {}
    arrays = {name: to_host(column) for name, column in vars(batch.rows).items()}
    ids = {"vertices": batch.vertices}
    if batch.ids is not None:
        arrays["index"], ids["transactions"] = to_host(batch.index), batch.ids
    return arrays, ids


def _batch_of(arrays: dict[str, Any], ids: dict[str, VertexIds], device: Any) -> Batch | None:
    if "vertices" not in ids:
        return None
    rows = Rows(*(to_device(arrays[name], device) for name in COLUMNS))
    index = arrays.get("index")
    index = None if index is None else to_device(index, device)
    return Batch(rows, ids["vertices"], ids.get("transactions"), index)
