"""``glp-rapids monitor``: transactions replayed in ticks, and what becomes of clusters in each."""

from __future__ import annotations

import argparse
import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glp_rapids.cli import blacklist, fraud, unused
from glp_rapids.frames import files, outputs

if TYPE_CHECKING:
    import pandas as pd

    from glp_rapids.fraud import Tick

MANY_TICKS = 10_000  # without a word, where there are no more transactions than that
EPILOG = """\
examples:
  glp-rapids monitor transactions.parquet --seeds blacklist.csv --days 30 --every 6h
  glp-rapids monitor transactions.csv --seeds blacklist.txt --days 10 --every 5min \\
      --output alerts.csv --members members.parquet --folder watch
  glp-rapids monitor --replay transactions.parquet --seeds blacklist.csv --days 30 --port 8000

The transactions are replayed in the order of their times. After each --every a line is printed for
every cluster that is new, has grown, shrunk, merged with others, split off, or is gone. A cluster
keeps its name as long as most of its members stay together. --folder keeps the monitor's state,
with which `fraud.Monitor.open` goes on; this command begins anew. --output and --members are
written at the end. --port makes a page of it for a browser on this machine
that stays until Ctrl-C: alerts as they come, a picture of each cluster, why its members are in it.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    parser.epilog = EPILOG
    columns = fraud.add_inputs(parser)
    columns.add_argument("--id", metavar="COLUMN", help="of transactions, to find duplicates by")
    parser.add_argument(
        "--days", type=float, required=True, metavar="N", help="length of the window"
    )
    parser.add_argument(
        "--every", default="1D", metavar="SPAN",
        help="length of a tick, such as 5min or 6h (default 1D); a number counts the --time-unit",
    )  # fmt: skip
    fraud.add_limits(parser)
    parser.add_argument(
        "--half-life", metavar="SPAN", help="after which a transaction counts half as much"
    )
    parser.add_argument(
        "--hubs", type=int, metavar="N", help="accounts with more partners pass nothing on"
    )
    out = parser.add_argument_group("the results, by their endings CSV or Parquet")
    out.add_argument("--output", type=Path, metavar="FILE", help="all alerts")
    out.add_argument("--members", type=Path, metavar="FILE", help="the members in the last tick")
    out.add_argument("--folder", type=Path, metavar="FOLDER", help="the state of the monitor")
    page = parser.add_argument_group("a live page")
    page.add_argument(
        "--replay", action="store_true", help="replay the transactions, as is done in any case"
    )
    page.add_argument("--port", type=int, metavar="N", help="of the page; 0: any that is free")
    page.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS",
        help="where it is served: this machine alone (default), or 0.0.0.0 for all others, too",
    )  # fmt: skip
    page.add_argument(
        "--pause", type=float, default=0.5, metavar="SECONDS",
        help="between two ticks, with --port (default 0.5)",
    )  # fmt: skip
    parser.add_argument("--device", choices=("cpu", "gpu"), help="default: the GPU if there is one")


def run(options: argparse.Namespace) -> None:
    """Replay transactions tick by tick, print and write the alerts."""
    import pandas as pd

    from glp_rapids.cli.live_page import LivePage
    from glp_rapids.fraud import Monitor, SlidingWindow

    if not 0 <= options.pause < threading.TIMEOUT_MAX:
        raise ValueError(f"--pause must be a number of seconds from 0 up, not {options.pause}")
    if options.port is not None and not 0 <= options.port <= 65535:
        raise ValueError(f"--port must be from 0 to 65535, not {options.port}")
    results = {"--output": options.output, "--members": options.members}
    if options.port is None:
        unused.refuse(options, ("host", "pause"), "is for the live page: add --port N")
    for path in results.values():
        if path is not None:
            files.checked_ending(path)
    outputs.check_outputs(results, fraud.inputs_of(options))
    frame = fraud.transactions_of(options)
    if options.id is not None and options.id not in frame.columns:
        raise ValueError(f"{options.transactions}: there is no column {options.id!r} (--id)")
    ends = [frame[options.source], frame[options.destination]]
    seeds, _ = blacklist.read(options.seeds, options.seed_column, ends)
    known = blacklist.known(seeds, pd.concat(ends).drop_duplicates())
    if known.empty:
        raise ValueError(
            f"{options.seeds}: none of its ids is in the transactions: {seeds.iloc[0]!r} is not"
        )
    window = SlidingWindow(
        days=options.days, source=options.source, destination=options.destination,
        amount=options.amount, time=options.time, time_unit=options.time_unit, id=options.id,
        device=options.device,
    )  # fmt: skip
    half_life = options.half_life
    with contextlib.suppress(TypeError, ValueError):  # a number counts the unit of times
        half_life = float(half_life)
    watch = Monitor(
        window, known, half_life=half_life, hubs=options.hubs, **fraud.limits_of(options)
    )
    with files.naming(options.transactions):  # all of it, before the first tick
        reader = replace(window._reader, device="cpu")
        reader.read(*reader.checked(frame, None), None)
    alerts, tick = [], None
    page = None
    if options.port is not None:
        page = LivePage(watch, options.host, options.port)
        print(f"page       {page.address}", flush=True)
        if not page.local:
            print(f"warning: --host {options.host}: whoever reaches this machine can read the page",
                  file=sys.stderr, flush=True)  # fmt: skip
    for end, part in _parts(frame, frame[options.time], watch, options):
        with files.naming(options.transactions):
            tick = watch.update(part)
        if options.folder is not None:
            watch.save(options.folder)
        table = _on_host(tick.alerts)
        table.insert(0, "until", pd.Series([end] * len(table), dtype=object))
        alerts.append(table)
        for line in _lines(end, table):
            print(line)
        if page is not None:
            page.show(tick, end)
            time.sleep(options.pause)
    if tick is None:
        raise ValueError(f"{options.transactions}: there are no transactions")
    print(_summary(watch, tick, alerts))
    together = pd.concat(alerts, ignore_index=True)
    together["parents"] = together["parents"].map(" ".join)
    tables = {"--output": together, "--members": tick.members}
    for option, path in results.items():
        if path is not None:
            files.write_table(tables[option], path)
            print(f"written    {path} ({len(tables[option]):,} rows)")
    if options.folder is not None:
        print(f"written    {options.folder}/, for fraud.Monitor.open")
    if page is not None:
        with contextlib.suppress(KeyboardInterrupt):
            page.end()
            print("the page stays until Ctrl-C", flush=True)
            while True:  # one wait without end may begin just after a signal, and never learn of it
                time.sleep(0.5)
        page.close()


def _parts(
    frame: pd.DataFrame, times: pd.Series, watch: Any, options: argparse.Namespace
) -> Iterator[tuple[str, pd.DataFrame | None]]:
    """Cut transactions into ticks: the end of each, as a text, and its rows.

    None: nothing came, but something left the window of the monitor.
    """
    import pandas as pd

    from glp_rapids.fraud import clock

    every = options.every
    with contextlib.suppress(ValueError):  # a number counts the unit of times
        every = float(every)
    try:
        span = clock.span(every, "--every")
    except TypeError as error:
        raise ValueError(str(error)) from None
    kind = clock.NUMBERS if times.dtype.kind in "iuf" else clock.DATES
    try:
        length = clock.length_of(span, kind, options.time_unit)
        step = 1 if kind == clock.NUMBERS else pd.Timedelta(length, "us")
    except (OverflowError, ValueError) as error:
        raise ValueError(f"--every {options.every}: {error}") from None
    if not length > 0:
        raise ValueError(f"--every must be above 0, not {options.every}")

    def moment(tick: Any) -> Any:
        """Return when a tick begins."""
        return tick * length if kind == clock.NUMBERS else tick

    if kind == clock.NUMBERS:  # ticks are counted, as fractions would drift
        number = times // length
        if not number.abs().max() < 2**53:  # beyond, the next one is the same
            raise ValueError(
                f"--every {options.every} is too short for times such as {times.iloc[0]}"
            )
    else:
        # hours of the clock are missing or come twice where summer time begins or ends
        number = (times if times.dt.tz is None else times.dt.tz_convert("UTC")).dt.floor(step)
    _say_if_many(number, step, len(frame), options)
    last = None
    for tick, part in frame.groupby(number):
        while last is not None and last + step < tick and len(watch.window):
            last += step
            end = moment(last + step)
            if watch.window.advance(end).expired:
                yield str(end), None
        last = tick
        yield str(moment(tick + step)), part


def _say_if_many(number: pd.Series, step: Any, rows: int, options: argparse.Namespace) -> None:
    """Warn of ticks without number: times may count another unit than was said."""
    import pandas as pd

    ticks = (number.max() - number.min()) / step + 1 if rows else 0
    if ticks > max(MANY_TICKS, rows):
        is_number = not isinstance(step, pd.Timedelta)
        asked = f"--time-unit {options.time_unit} right" if is_number else "--every long enough"
        print(
            f"warning: from the first of {rows:,} transactions to the last it is {ticks:,.0f} "
            f"times {options.every}; is {asked}?", file=sys.stderr, flush=True,
        )  # fmt: skip


def _lines(end: str, alerts: pd.DataFrame) -> list[str]:
    """Say what became of each cluster."""
    lines = []
    for row in alerts.itertuples():
        moves = f"{row.joined:>4} joined {row.left:>4} left"
        text = f"{end}  {row.event:<7}{row.cluster_id:<20} {moves}"
        if row.event != "gone":
            text += f"   score {row.score:.2f} ({row.delta:+.2f})"
        if row.parents:
            text += f"   from {', '.join(row.parents)}"
        lines.append(text)
    return lines


def _summary(watch: Any, tick: Tick, alerts: list[pd.DataFrame]) -> str:
    return (
        f"\n{tick.number:,} ticks, {sum(map(len, alerts)):,} alerts; now {len(tick.clusters):,} "
        f"clusters with {len(tick.members):,} members in a window of {len(watch.window):,} "
        f"transactions, on the {watch.window.device}"
    )


def _on_host(frame: Any) -> pd.DataFrame:
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame.copy()
