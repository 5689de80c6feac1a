"""``glp-rapids fraud``: transactions and a blacklist in, suspicious clusters out."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glp_rapids.cli import blacklist, edge_files
from glp_rapids.common.sizes import as_bytes
from glp_rapids.frames import files, outputs

if TYPE_CHECKING:
    import pandas as pd

EPILOG = """\
examples:
  glp-rapids fraud transactions.csv --seeds blacklist.txt
  glp-rapids fraud days/ --seeds blacklist.txt --days 30      # a file a day, say
  glp-rapids fraud transactions.parquet --seeds blacklist.csv --seed-column account \\
      --source payer --destination payee --amount eur --time booked_at --days 30 \\
      --output members.parquet --clusters clusters.csv --scores scores.parquet

The blacklist holds one id a line, with notes behind it if you like (after a comma; of .tsv
after a tab, of .txt after a blank, too, unless ids have blanks), or is a table with
--seed-column, which may be left out if the first column is called vertex, id, account, source
or destination. The first line is a header only if it cannot be an id of the transactions.
Every account is scored by how strongly the blacklist reaches it; among the high scores, groups
that trade mostly with one another are the clusters. `glp-rapids demo` shows it on made-up
data.
"""
TIME_UNITS = ("D", "h", "m", "s", "ms", "us")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    parser.epilog = EPILOG
    columns = add_inputs(parser)
    columns.add_argument(
        "--days", type=float, metavar="N",
        help="only transactions of the last N days before the newest one; default: all of them, "
        "and no column of times is needed",
    )  # fmt: skip
    add_limits(parser)
    out = parser.add_argument_group("the results, by their endings CSV or Parquet")
    out.add_argument("--output", type=Path, metavar="FILE", help="the accounts of the clusters")
    out.add_argument("--clusters", type=Path, metavar="FILE", help="the clusters")
    out.add_argument("--scores", type=Path, metavar="FILE", help="the score of every account")
    out.add_argument("--top", type=int, default=10, help="clusters to print (default 10)")
    edge_files.add_memory_limit(
        parser, "what does not fit a GPU is done on the host, and what does not fit there is "
        "refused; the window is not counted",
    )  # fmt: skip
    parser.add_argument("--device", choices=("cpu", "gpu"), help="default: the GPU if there is one")


def add_inputs(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add transactions, the blacklist, and what the columns are called; return these."""
    parser.add_argument(
        "transactions", type=Path, metavar="TRANSACTIONS",
        help=f"{files.FORMATS}, or a folder of such files with the same columns",
    )  # fmt: skip
    parser.add_argument("--seeds", type=Path, required=True, metavar="FILE", help="the blacklist")
    parser.add_argument("--seed-column", metavar="COLUMN", help="of a blacklist that is a table")
    columns = parser.add_argument_group("the columns")
    columns.add_argument("--source", default="source", metavar="COLUMN", help="default: source")
    columns.add_argument(
        "--destination", default="destination", metavar="COLUMN", help="default: destination"
    )
    columns.add_argument(
        "--amount", metavar="COLUMN", help="default: amount, if there is such a column"
    )
    columns.add_argument("--time", default="time", metavar="COLUMN", help="default: time")
    columns.add_argument(
        "--time-unit", choices=TIME_UNITS, default="D", help="of times that are numbers (default D)"
    )
    return columns


def inputs_of(options: argparse.Namespace) -> dict[str, Path]:
    """Return the files that are read, by what messages call them."""
    path = options.transactions
    transactions = {"TRANSACTIONS": path}
    if path.is_dir():
        transactions = {f"TRANSACTIONS ({one.name})": one for one in files.tables_in(path)}
    return {**transactions, "--seeds": options.seeds}


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add what a cluster is."""
    limits = parser.add_argument_group("what a cluster is")
    limits.add_argument("--minimum-size", type=int, metavar="N", help="accounts (default 6)")
    limits.add_argument(
        "--minimum-score", type=float, metavar="SCORE", help="of its accounts (default 0.025)"
    )
    limits.add_argument("--minimum-share", type=float, metavar="SHARE",
                        help="of an account's trade that stays inside (default 0.2)")  # fmt: skip
    limits.add_argument(
        "--minimum-partners", type=int, metavar="N", help="of an account inside (default 5)"
    )


def limits_of(options: argparse.Namespace) -> dict[str, Any]:
    """Return what was said of clusters."""
    names = ("minimum_size", "minimum_score", "minimum_share", "minimum_partners")
    given = {name: getattr(options, name) for name in names}
    return {name: value for name, value in given.items() if value is not None}


def run(options: argparse.Namespace) -> None:
    """Read transactions and blacklist, find clusters, print and write them."""
    import pandas as pd

    from glp_rapids.fraud import SlidingWindow, find_clusters

    check_top(options.top)
    as_bytes("memory_limit", options.memory_limit)  # before a long file is read
    results = {"--output": options.output, "--clusters": options.clusters,
               "--scores": options.scores}  # fmt: skip
    for path in results.values():
        if path is not None:
            files.checked_ending(path)
    outputs.check_outputs(results, inputs_of(options))
    frame = transactions_of(options)
    ends = [frame[options.source], frame[options.destination]]
    seeds, header = blacklist.read(options.seeds, options.seed_column, ends)
    window = SlidingWindow(
        days=1 if options.days is None else options.days, source=options.source,
        destination=options.destination, amount=options.amount, time=options.time,
        time_unit=options.time_unit, device=options.device,
    )  # fmt: skip
    start = time.perf_counter()
    with files.naming(options.transactions):
        change = window.append(frame)
        vertices = window.graph().external()
    print(
        f"transactions  {len(frame):,}, of which {change.added:,} in the window; "
        f"{window.number_of_vertices:,} accounts; on the {window.device}"
    )
    if hasattr(vertices, "to_pandas"):
        vertices = vertices.to_pandas()
    known = blacklist.known(seeds, vertices)
    under = "" if header is None else f" (its header is {header!r})"
    print(f"blacklist     {len(seeds):,} ids, of which {len(known):,} in the window{under}")
    if known.empty:
        outside = blacklist.known(seeds, pd.concat(ends).drop_duplicates())
        if len(outside) and options.days is not None:
            raise ValueError(
                f"{options.seeds}: none of its ids is in the window, of the last {options.days:g} "
                f"days: {change.added:,} of {len(frame):,} transactions; {outside.iloc[0]!r} is in "
                "the others; is --days right, and --time-unit?"
            )
        raise ValueError(
            f"{options.seeds}: none of its ids is in the transactions: {seeds.iloc[0]!r} is not "
            f"among their {options.source!r} and {options.destination!r}"
        )
    found = find_clusters(
        window, known, **limits_of(options), memory_limit=options.memory_limit,
        progress=sys.stderr.isatty(),
    )  # fmt: skip
    seconds = time.perf_counter() - start
    unknown = len(found.members) - int(found.members["is_seed"].sum())
    print(
        f"clusters      {len(found.clusters):,} with {len(found.members):,} accounts, "
        f"{unknown:,} of them not on the blacklist; {seconds:.2f} s\n"
    )
    print(clusters_text(found.clusters, options.top))
    tables = found.members, found.clusters, found.scores
    for path, table in zip(results.values(), tables, strict=True):
        if path is not None:
            files.write_table(table, path)
            print(f"\nwritten       {path} ({len(table):,} rows: {', '.join(table.columns)})")


def check_top(top: int) -> None:
    """Raise if so many clusters cannot be shown."""
    if top < 0:
        raise ValueError(f"--top must be at least 0, not {top}")


def clusters_text(clusters: pd.DataFrame, top: int) -> str:
    """Show the first clusters as a table."""
    if clusters.empty:
        return (
            "no cluster is suspicious; lower --minimum-size, --minimum-partners, --minimum-score "
            "or --minimum-share"
        )
    if not top:
        return "none is shown, as --top is 0"
    shown = clusters.head(top)
    if not shown["value"].any():
        shown = shown.drop(columns="value")
    formats = {"score": "{:.3f}", "value": "{:,.2f}", "density": "{:.2f}", "share": "{:.2f}"}
    text = shown.to_string(
        index=False,
        formatters={name: form.format for name, form in formats.items() if name in shown},
    )
    more = len(clusters) - len(shown)
    return text + (f"\n... and {more:,} more" if more else "")


def transactions_of(options: argparse.Namespace) -> Any:
    """Read the transactions, of which times may be texts."""
    ends = {"source": options.source, "destination": options.destination}
    needed = ends | {
        "amount": options.amount,
        "time": None if options.days is None else options.time,
    }
    frame = files.read_tables(options.transactions, ends.values(), **needed)
    if not len(frame):
        raise ValueError(f"{options.transactions}: holds no transactions")
    if options.amount is None and "amount" in frame.columns:
        options.amount = "amount"
        for path in files.tables_in(options.transactions):
            if files.checked_ending(path) not in files.PARQUET:  # pandas makes them differ
                files.check_columns(files.names_in(path), path, {"amount": "amount"})
    if options.days is None:
        options.time = "no window"
        while options.time in frame.columns:
            options.time += "'"
        frame[options.time] = 0
    if frame[options.time].dtype.kind not in "iufM":
        frame[options.time] = _times(frame[options.time], options)
    return frame


def _times(column: pd.Series, options: argparse.Namespace) -> pd.Series:
    import numpy as np
    import pandas as pd

    try:
        return pd.to_datetime(column, format="ISO8601")
    except (ValueError, TypeError):
        # of several offsets from UTC, as where summer time ends, pandas makes no column of its own
        times = pd.to_datetime(column, format="ISO8601", utc=True, errors="coerce")
    bad = np.flatnonzero(times.isna() & column.notna())
    if not bad.size:
        return times
    raise ValueError(
        f"{options.transactions}: column {options.time!r} (--time) holds neither numbers nor dates "
        f"such as 2026-01-31 12:00:00, but {str(column.iloc[bad[0]])!r} at row {bad[0]}"
    )
