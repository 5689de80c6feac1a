"""Time against modularity over a grid of classes and explore, other libraries' points beside it.

Seconds are the run's, the graph where it is worked on already; medians of the repeats after a run
that warms up. With --plot the same as a picture, a panel a graph. The peers were measured once, on
an H200 and on two CPU cores, by their own timers; those beside "web" ran on in-2004, the crawl that
it imitates.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import groupby, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from glp_rapids.bench import subjects, timing
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.common import atomic_file
from glp_rapids.metrics import modularity

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GRAPHS = ("web", "com-dblp", "lfr-100000-mu0.3")
CLASSES, EXPLORE = (2, 4, 8, 16, 32, 64), (0, 3, 5, 10, 15)
PICTURES = (".png", ".svg", ".pdf")


@dataclass(frozen=True)
class Peer:
    """Another library's run: seconds, modularity (None: not known), where it was measured."""

    name: str
    seconds: float
    modularity: float | None
    machine: str


# ANCHORS.md of this project: "Label propagation, ms", "cuGraph 26.10" and "On two CPU cores".
PEERS: dict[str, tuple[Peer, ...]] = {
    "web": (
        Peer("nuBM-LPA", 0.00206, None, "H200, in-2004"),
        Peer("nuMG8-LPA", 0.0080, None, "H200, in-2004"),
        Peer("nu-LPA", 0.0118, None, "H200, in-2004"),
        Peer("cuGraph Louvain", 1.116, 0.980, "H200, in-2004"),
        Peer("NetworKit PLP", 1.13, 0.942, "2 CPU cores, in-2004"),
        Peer("igraph LPA", 88.6, 0.931, "2 CPU cores, in-2004"),
    ),
    "com-dblp": (
        Peer("NetworKit PLP", 0.159, 0.638, "2 CPU cores"),
        Peer("igraph LPA", 43.9, 0.700, "2 CPU cores"),
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    subjects.add_options(parser, GRAPHS, repeats=3, threads="on a CPU")
    parser.add_argument("--classes", nargs="+", type=int, default=CLASSES)
    parser.add_argument("--explore", nargs="+", type=int, default=EXPLORE)
    parser.add_argument("--plot", type=Path, metavar="FILE", help=f"*{', *'.join(PICTURES)}")


def run(options: argparse.Namespace) -> Tables:
    """Return a table with a row a setting and graph, and one of the peers; draw them if asked."""
    if options.plot is not None:
        _check_picture(options.plot)
    subjects.processors(options.threads)
    settings = list(product(options.explore, options.classes))
    rows: Rows = []
    progress = tqdm(
        total=len(settings) * len(options.graphs), desc="tradeoff", leave=False, disable=None
    )
    for name in options.graphs:
        graph = subjects.load(name, options.device)
        for explore, classes in settings:
            rows.append(_measured(name, graph, options.repeats, explore, classes))
            progress.update()
    progress.close()
    peers: Rows = [
        {"graph": name, "peer": peer.name, "seconds": peer.seconds, "modularity": peer.modularity,
         "where": peer.machine}
        for name in options.graphs for peer in PEERS.get(name, ())
    ]  # fmt: skip
    if options.plot is not None:
        draw(rows, options.plot)
    tables = {"Time against modularity": rows}
    return tables | {"Peers, as measured before (ANCHORS.md)": peers} if peers else tables


def draw(rows: Rows, path: Path) -> None:
    """Draw the rows of `run` as time against modularity, a panel a graph, and save the picture.

    Rows are ordered by graph and explore; the ending of the path says what kind of picture.
    """
    from matplotlib.figure import Figure  # not pyplot: there need be no display

    panels = {name: list(part) for name, part in groupby(rows, key=lambda row: row["graph"])}
    figure = Figure(figsize=(5.4 * len(panels), 4.6), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (name, part) in zip(axes, panels.items(), strict=True):
        _draw_panel(axis, name, part)
    axes[0].set_ylabel("modularity")
    with atomic_file.replacing(path) as file:
        figure.savefig(file, dpi=150, format=path.suffix[1:])


def _check_picture(path: Path) -> None:
    """Refuse a path where no picture could be saved before hours of work."""
    if path.suffix not in PICTURES:
        raise ValueError(f"--plot {path}: the name must end in {', '.join(PICTURES)}")
    if not path.parent.is_dir():
        raise ValueError(f"--plot {path}: there is no folder {path.parent}")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError("--plot needs matplotlib: pip install matplotlib") from error


def _measured(name: str, graph: Any, repeats: int, explore: int, classes: int) -> dict:
    from glp_rapids.propagation.options import Options

    setting = {"explore": explore, "classes": classes}
    run = timing.timed(subjects.propagation(graph, **setting), repeats, graph.device)
    default = Options()
    return {
        "graph": name,
        **setting,
        "default": "<--" if (default.explore, default.classes) == (explore, classes) else None,
        "seconds": run.run_ms / 1e3,
        "call seconds": run.call_ms / 1e3,
        "sweeps": run.sweeps,
        "modularity": modularity(graph, run.found),
    }


def _draw_panel(axes: Axes, name: str, rows: Rows) -> None:
    from matplotlib import colormaps

    lines = {explore: list(part) for explore, part in groupby(rows, key=lambda row: row["explore"])}
    for place, (explore, points) in enumerate(lines.items()):
        colour = colormaps["viridis"](0.9 * place / max(len(lines) - 1, 1))
        seconds, found = ([row[key] for row in points] for key in ("seconds", "modularity"))
        axes.plot(seconds, found, "o-", color=colour, markersize=4, label=f"explore={explore}")
        for row, x, y in zip(points, seconds, found, strict=True):
            axes.annotate(str(row["classes"]), (x, y), textcoords="offset points", xytext=(3, 3),
                          fontsize=6, color=colour)  # fmt: skip
    red = "#d7263d"
    for place, peer in enumerate(PEERS.get(name, ())):
        if peer.modularity is None:  # only its time is known
            axes.axvline(peer.seconds, color="0.6", linestyle=":", linewidth=1)
            axes.annotate(peer.name, (peer.seconds, 0.02 + 0.16 * (place % 3)), rotation=90,
                          xycoords=("data", "axes fraction"), fontsize=7, color="0.4",
                          ha="right", va="bottom")  # fmt: skip
        else:
            axes.plot(peer.seconds, peer.modularity, "D", color=red, markersize=5)
            axes.annotate(peer.name, (peer.seconds, peer.modularity), ha="right", fontsize=7,
                          textcoords="offset points", xytext=(-5, -10), color=red)  # fmt: skip
    axes.set_xscale("log")
    axes.set_xlabel("seconds (a number at a point: classes)")
    axes.set_title(f"{name}, peers on in-2004" if name == "web" else name, fontsize=10)
    axes.grid(alpha=0.25, which="both")
    axes.legend(fontsize=7, loc="best")
