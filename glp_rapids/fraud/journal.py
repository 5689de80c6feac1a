"""A monitor in a folder: its state now and then, and every batch since.

``state-00000007.glp`` is all of a monitor after tick 7, ``batch-00000008.glp`` what tick 8 was
given. Since a tick follows from the state before it and from what it is given, replaying those is
being there. A file is there as a whole or not at all, and the files before a state go when it is
there; so whatever ends the process, the folder stands for a whole number of ticks.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from glp_rapids.common.checks import errors_named
from glp_rapids.compressed.file import vertex_ids
from glp_rapids.compressed.file.container import damaged
from glp_rapids.device import to_device, to_host
from glp_rapids.fraud import seeds, snapshot
from glp_rapids.fraud.clock import start_of
from glp_rapids.fraud.engines import ENGINES, Batch, Engine
from glp_rapids.fraud.monitor_state import Delivery, State
from glp_rapids.fraud.names import Register
from glp_rapids.fraud.pairs import Rows
from glp_rapids.fraud.score_state import ScoreState
from glp_rapids.fraud.system import Fixed
from glp_rapids.fraud.window import SlidingWindow
from glp_rapids.graph.vertex_ids import VertexIds

if TYPE_CHECKING:
    from glp_rapids.graph.graph import Graph

FILE = re.compile(r"(state|batch)-(\d{8})\.glp")
COLUMNS = ("source", "destination", "units", "time")
AT_ONCE = 64  # batches after which a state is written
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
        rows: int = 0,
    ) -> None:  # fmt: skip
        self.folder, self.tick, self.since, self.rows = folder, tick, since, rows

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
            folder.mkdir(exist_ok=True)
        there = files_in(folder)
        last = there.batches[-1] if there.batches else there.state
        if last is not None and (folder, last) != (self.folder, self.tick):
            raise ValueError(
                f"{path} holds a monitor at tick {last}, which is not where this one was last "
                "saved or opened; save to a new folder, or open that one"
            )
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
    lists = (delivery.batch, delivery.add, delivery.drop)
    return sum(len(one) for one in lists if one is not None)


def write_batch(folder: Path, tick: int, delivery: Delivery) -> None:
    """Write what a tick was given."""
    facts = {"tick": tick, "kind": delivery.kind, "times": delivery.times}
    ids = {"add": delivery.add, "drop": delivery.drop}
    arrays, tables = _parts_of(delivery.batch)
    tables |= {name: table for name, table in ids.items() if table is not None}
    snapshot.write(path_of(folder, "batch", tick), facts, arrays, tables)


def read_batch(folder: Path, tick: int, device: Any) -> Delivery:
    """Read what a tick was given."""
    facts, arrays, ids = _read(path_of(folder, "batch", tick), tick, device)
    batch = _batch_of(arrays, ids, device)
    return Delivery(batch, facts["kind"], facts["times"], ids.get("add"), ids.get("drop"))


def write_state(folder: Path, state: State, window: SlidingWindow, options: dict[str, Any]) -> None:
    """Write all of a monitor."""
    held, register = window._state, state.register
    facts: dict[str, Any] = {
        "tick": state.tick, "period": state.period, "names": list(register.names),
        "monitor": options, "window": _options_of(window),
        "newest": held.newest, "kind": held.kind, "times": held.times,
    }  # fmt: skip
    arrays, ids = _parts_of(_all_of(held.engine) if len(window) else None)
    if len(window) and (known := held.engine.ids()) is not None:
        ids["known"], arrays["known"] = known[0], to_host(known[1])
    arrays |= {"cluster": register.cluster, "cluster_score": register.score}
    tables = {"seeds": state.seeds, "good": state.good}
    if register.ids is not None and len(register.ids):
        members = [register.ids[name] for name in register.ids.columns]
        tables["members"] = seeds.sorted_ids_of(members)
    if state.scores is not None:
        effort = state.scores.effort
        facts["scores"] = {
            "exponent": state.scores.system.exponent, "rounds": effort.rounds,
            "entries": effort.entries,
        }  # fmt: skip
        arrays["numbers"] = state.scores.numbers
    ids |= {name: table for name, table in tables.items() if table is not None}
    snapshot.write(path_of(folder, "state", state.tick), facts, arrays, ids)


def read_state(
    folder: Path, tick: int, device: Any
) -> tuple[SlidingWindow, State, dict[str, Any]]:
    """Read all of a monitor: its window, its state, its options."""
    facts, arrays, ids = _read(path_of(folder, "state", tick), tick, device)
    window = SlidingWindow(**facts["window"], device=device)
    known = None
    if "known" in ids:
        known = ids["known"], to_device(arrays["known"], window.device)
    batch = _batch_of(arrays, ids, window.device)
    _restore(window, batch, known, facts["newest"], facts["kind"], facts["times"])
    members = ids.get("members")
    frame = None
    if members is not None:
        frame = pd.DataFrame(dict(enumerate(pd.Series(one.values) for one in members.columns)))
    names, score = tuple(facts["names"]), arrays["cluster_score"]
    register = Register(names, score, frame, arrays["cluster"])
    state = State(
        tick=facts["tick"], seeds=ids.get("seeds"), good=ids.get("good"), period=facts["period"],
        register=register, mark=window.mark(),
    )  # fmt: skip
    if (scores := facts.get("scores")) is not None:
        graph = window.graph("transfers")
        options = facts["monitor"]
        numbers = to_device(arrays["numbers"], graph.device)
        if numbers.size != graph.number_of_vertices:
            damaged(path_of(folder, "state", tick), "section numbers: there is not one a vertex")
        found = ScoreState.restored(
            graph, fixed_of(state, graph), options["damping"], options["tol"], numbers, **scores
        )
        places = window._state.engine.places()
        state = state._replace(scores=found, vertices=graph.vertices, places=places)
    return window, state, facts["monitor"]


def fixed_of(state: State, graph: Graph) -> Fixed:
    """Find the seeds and the good accounts among the vertices."""
    return Fixed(
        seeds.index_of(state.seeds, graph, "seeds"), seeds.index_of(state.good, graph, "good")
    )


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
        engine = ENGINES[window.device if kind == "pandas" else "gpu"]()(window.directed)
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
