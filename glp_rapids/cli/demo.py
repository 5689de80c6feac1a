"""``glp-rapids demo``: fraud rings hidden in a million made-up transactions, and found again."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glp_rapids.cli.fraud import check_top, clusters_text
from glp_rapids.frames import files, streams

if TYPE_CHECKING:
    import pandas as pd

EPILOG = """\
examples:
  glp-rapids demo                                   # about half a minute on a laptop
  glp-rapids demo --transactions 5000000 --seed 7 --output /tmp/demo

What happens: transactions of accounts with merchants and friends are drawn, and rings of
collusion are planted in them. A fifth of the ring members, chosen at random, is the blacklist.
Three days at a time the transactions pass through a window that a monitor watches; a line says
what became of clusters. At the end the rest of the rings is looked for in the whole window. How
many of the accounts found are in a ring is the precision; how many ring members are found, the
recall. The folder holds members.parquet, and transactions.parquet and blacklist.csv to try
`glp-rapids fraud` and `glp-rapids monitor` on.
"""
LEAST = 20_000
EVERY = 3  # days, of a tick
EVENTS = ("new", "grown", "shrunk", "merged", "split", "gone")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    parser.epilog = EPILOG
    parser.add_argument("--transactions", type=int, default=1_000_000, metavar="N")
    parser.add_argument("--days", type=float, default=30, help="length of the window (default 30)")
    parser.add_argument(
        "--known", type=float, default=0.2, metavar="SHARE",
        help="of the ring members that is on the blacklist (default 0.2)",
    )  # fmt: skip
    parser.add_argument("--seed", type=int, default=0, help="of the data that is made up")
    parser.add_argument("--device", choices=("cpu", "gpu"), help="default: the GPU if there is one")
    parser.add_argument("--output", type=Path, default=Path("demo-output"), metavar="FOLDER",
                        help="default: ./demo-output")  # fmt: skip
    parser.add_argument("--top", type=int, default=10, help="clusters to print (default 10)")


def run(options: argparse.Namespace) -> None:
    """Make transactions, find their clusters, compare these with the truth, write them."""
    if options.transactions < LEAST:
        raise ValueError(f"--transactions must be at least {LEAST:,}, not {options.transactions:,}")
    check_top(options.top)
    begin = time.perf_counter()
    from glp_rapids.datasets import blacklist
    from glp_rapids.fraud import SlidingWindow, find_clusters

    watch = _Clock()
    frame, truth = _made_up(options.transactions, options.seed)
    seeds = blacklist(truth, options.known, options.seed)
    rings = truth["ring"].nunique()
    watch.say(f"made {len(frame):,} transactions; {rings} rings with {len(truth):,} members in "
              f"them, {len(seeds):,} on the blacklist")  # fmt: skip
    window = SlidingWindow(days=options.days, device=options.device)
    _replay(window, frame, seeds, set(truth["vertex"]) - set(seeds))
    watch.say(
        f"watched a window of {options.days:g} days: {window.number_of_vertices:,} accounts and "
        f"merchants, on the {window.device}"
    )
    found = find_clusters(window, seeds, absent="drop")
    watch.say(f"propagated the blacklist: {len(found.clusters):,} suspicious clusters with "
              f"{len(found.members):,} members")  # fmt: skip
    clusters, members = _on_host(found.clusters), _on_host(found.members)
    print(f"\n{clusters_text(clusters, options.top)}\n")
    print(agreement(members, truth, seeds))
    options.output.mkdir(parents=True, exist_ok=True)
    written = _write(options.output, members, frame, seeds)
    written += _picture(options.output, window, members, truth, frame)
    watch.say(f"wrote {', '.join(written)} to {options.output}/")
    print(f"done in {time.perf_counter() - begin:.1f} s")


def agreement(members: pd.DataFrame, truth: pd.DataFrame, seeds: pd.Series) -> str:
    """Compare what was found with what was planted, with and without what was known before."""
    lines = ["against the planted rings   found  in a ring  planted  precision  recall"]
    known = set(seeds)
    for title, left_out in (("all members", set()), ("not on the blacklist", known)):
        got = set(members["vertex"]) - left_out
        planted = set(truth["vertex"]) - left_out
        both = len(got & planted)
        precision, recall = both / max(len(got), 1), both / max(len(planted), 1)
        lines.append(f"  {title:<24}{len(got):>7,}  {both:>9,}  {len(planted):>7,}  "
                     f"{precision:>9.3f}  {recall:>6.3f}")  # fmt: skip
    return "\n".join(lines)


class _Clock:
    """Prints what was done and how long it took."""

    def __init__(self) -> None:
        self.start = time.perf_counter()

    def say(self, what: str) -> None:
        now = time.perf_counter()
        print(f"{now - self.start:6.2f} s  {what}", flush=True)
        self.start = time.perf_counter()


def _made_up(rows: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Make transactions, with accounts, merchants, rings and towns in proportion."""
    from glp_rapids.datasets import transactions

    return transactions(
        rows,
        accounts=rows // 10,
        merchants=rows // 100,
        rings=max(rows // 25_000, 1),
        towns=max(rows * 3 // 10_000, 1),
        seed=seed,
    )


def _replay(window: Any, frame: pd.DataFrame, seeds: pd.Series, hidden: set) -> None:
    """Let a monitor see the transactions some days at a time, and print its alerts over time."""
    from glp_rapids.fraud import Monitor

    monitor = Monitor(window, seeds)
    day = frame["time"].dt.floor("D")
    part = (day - day.min()).dt.days // EVERY
    if window.device == "gpu":
        print("          a first run on this GPU compiles kernels for some 20 s; later ones do not",
              flush=True)  # fmt: skip
        frame = _as_cudf(frame)
    print(f"\n  alerts until {' '.join(f'{event:>6}' for event in EVENTS)}   clusters  members  "
          "unknown ring members")  # fmt: skip
    for number in range(int(part.max()) + 1):
        chosen = (part == number).to_numpy()
        if not chosen.any():
            continue
        tick = monitor.update(frame[chosen])
        until = f"{day[chosen].max():%Y-%m-%d}"
        events = _on_host(tick.alerts)["event"].value_counts()
        members = set(_on_host(tick.members)["vertex"])
        counts = " ".join(f"{events.get(event, 0):>6}" for event in EVENTS)
        print(f"    {until} {counts}   {len(tick.clusters):>8,} {len(members):>8,}  "
              f"{len(members & hidden):,} of {len(hidden):,}", flush=True)  # fmt: skip
    print()


def _as_cudf(frame: pd.DataFrame) -> Any:
    """Return the frame as one of cuDF if that is installed; the window takes pandas frames too."""
    try:
        import cudf
    except ImportError:
        return frame
    return cudf.from_pandas(frame)


def _on_host(frame: Any) -> pd.DataFrame:
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame


def _write(folder: Path, members: pd.DataFrame, frame: pd.DataFrame, seeds: pd.Series) -> list[str]:
    ending = "parquet"
    if not files.has_pyarrow():
        print('note: pyarrow is missing, so CSV is written (pip install "pyarrow>=17")')
        ending = "csv"
    tables = {f"members.{ending}": members, f"transactions.{ending}": frame,
              "blacklist.csv": seeds.to_frame()}  # fmt: skip
    for name, table in tables.items():
        files.write_table(table, folder / name)
    return list(tables)


def _picture(
    folder: Path, window: Any, members: pd.DataFrame, truth: pd.DataFrame, frame: pd.DataFrame
) -> list[str]:
    """Draw one ring, and beside it how much of each cluster was known, found, or wrong."""
    try:
        import matplotlib
    except ImportError:
        print('note: matplotlib is missing, so no picture is drawn (pip install "matplotlib>=3.8")')
        return []
    if members.empty:
        print("note: there is no cluster, so no picture is drawn")
        return []
    from glp_rapids.plot import draw_cluster

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # of the most suspicious, the one of which least was known
    chosen = int(members.groupby("cluster")["is_seed"].mean().head(10).idxmin())
    figure, (left, right) = pyplot.subplots(
        1, 2, figsize=(14, 7.6), layout="constrained", width_ratios=(1.25, 1)
    )
    payees = set(frame["destination"]) - set(frame["source"])
    draw_cluster(_on_host(window.edges()), members, chosen, sellers=payees, axes=left)
    part = members[members["cluster"] == chosen]
    left.set_title(
        f"Cluster {chosen}: {len(part)} members, {int(part['is_seed'].sum())} of them known before",
        fontsize=14,
    )
    left.legend(loc="lower center", ncols=4, frameon=False, bbox_to_anchor=(0.5, -0.06))
    _draw_bars(right, members, truth)
    path = folder / "ring.png"
    with streams.replacing(path) as file:
        figure.savefig(file, dpi=110, format="png")
    pyplot.close(figure)
    return [path.name]


def _draw_bars(axes: Any, members: pd.DataFrame, truth: pd.DataFrame) -> None:
    planted = members["vertex"].isin(truth["vertex"])
    kinds = {
        "on the blacklist": (members["is_seed"], "#d7263d"),
        "found, in a planted ring": (planted & ~members["is_seed"], "#e8a33d"),
        "found, but honest": (~planted & ~members["is_seed"], "#8fa3b3"),
    }
    number = members["cluster"].max() + 1
    base = 0
    for label, (chosen, colour) in kinds.items():
        counts = members.loc[chosen, "cluster"].value_counts().reindex(range(number), fill_value=0)
        axes.barh(counts.index, counts, left=base, color=colour, label=label, height=0.8)
        base = base + counts
    axes.set_ylim(number - 0.4, -0.6)
    axes.set_title("All clusters, the most suspicious first", fontsize=14)
    axes.set_xlabel("members")
    axes.set_ylabel("cluster")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper center", ncols=3, frameon=False, bbox_to_anchor=(0.5, -0.08))
