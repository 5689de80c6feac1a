"""``--scheduler``: a command whose run is made by the workers of a Dask cluster, not here.

Workers read the Parquet files, those of ``--initial`` among them, and write those of the result:
all must lie where all see them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from glp_rapids.cli import edge_files
from glp_rapids.frames import files

PATIENCE = 10  # seconds until a scheduler must have answered
# Mean nothing there.
ELSEWHERE = ("device", "devices", "memory_limit", "no_header", "top", "contexts")


def add_option(parser: Any) -> None:
    """Add the address of the scheduler."""
    parser.add_argument(
        "--scheduler", metavar="ADDRESS",
        help="of a Dask cluster, such as tcp://10.0.0.1:8786, whose workers share the work: all "
        "that is read or written is then Parquet files or folders that they all see",
    )  # fmt: skip


def run(
    options: argparse.Namespace, find: Callable[..., Any],
    summarise: Callable[[Any, argparse.Namespace], int],
) -> None:  # fmt: skip
    """Work on the cluster, print a summary, have the result written.

    ``find``: makes a dask frame of one of edges, the options, and if there is one an earlier result
    as ``initial``. ``summarise``: says what is in it, and counts its rows.
    """
    edges, output = _checked(options)
    try:
        import dask.dataframe as dd
        from distributed import Client
    except ImportError as error:
        raise ValueError(
            f"--scheduler needs Dask ({error}); pip install 'glp-rapids[cluster,parquet]'"
        ) from error
    try:
        with Client(options.scheduler, timeout=PATIENCE):
            earlier = {}
            initial = getattr(options, "initial", None)
            if initial is not None:
                with files.naming(initial):
                    earlier["initial"] = dd.read_parquet(str(initial.absolute()))
            with files.naming(edges):
                found = find(dd.read_parquet(str(edges)), options, **earlier)
            found.to_parquet(str(output), write_index=False)
            rows = summarise(found, options)
        edge_files.say(f"written     {output} ({rows:,} rows: {', '.join(found.columns)})")
    except RuntimeError as error:  # a worker died, or the run was cancelled
        raise OSError(str(error)) from error


def summarise_communities(found: Any, options: argparse.Namespace) -> int:
    """Say what was found, and count its rows; only counts come from the workers."""
    reports = found.attrs["glp"]["ranks"]
    layered = "gamma" in found.columns
    counts = found.groupby(["gamma", "partition"] if layered else "partition").size().compute()
    layers = {"": counts}
    if layered:
        layers = {f"gamma {gamma:g}: ": part for gamma, part in counts.groupby(level=0)}
    for name, sizes in layers.items():
        sizes = sizes.sort_values(ascending=False)
        largest = ", ".join(f"{size:,}" for size in sizes.head(5)) or "none"
        edge_files.say(f"found       {name}{len(sizes):,} communities, the largest of {largest}")
    sweeps, seconds = reports[0]["sweeps"], max(report["seconds"] for report in reports)
    edge_files.say(f"run         {sweeps} sweeps in {seconds:.3f} s on {len(reports)} workers")
    return int(counts.sum())


def _checked(options: argparse.Namespace) -> tuple[Path, Path]:
    """Return what is read and written; raise if an option means nothing on a cluster."""
    for name in ELSEWHERE:
        if getattr(options, name, None):
            raise ValueError(
                f"--{name.replace('_', '-')} is for a run in this process; leave it out, or "
                "--scheduler"
            )
    if getattr(options, "way", "auto") != "auto":
        raise ValueError("--way is for a run in this process; leave it out, or --scheduler")
    edges = options.edges.absolute()
    for read in filter(None, (options.edges, getattr(options, "initial", None))):
        if not read.is_dir() and read.suffix not in files.PARQUET:
            raise ValueError(f"{read}: workers read Parquet files and folders of them")
    if options.output is None or options.output.suffix not in files.PARQUET:
        raise ValueError("--output must name a folder *.parquet, which the workers write to")
    output = options.output.absolute()
    if output.exists():
        raise ValueError(f"{options.output} exists; name a folder that does not")
    return edges, output


def communities(frame: Any, options: argparse.Namespace, **earlier: Any) -> Any:
    """Propagate labels on the workers."""
    import glp_rapids.dask as on_workers

    how = {
        "source": options.source, "destination": options.destination, "weight": options.weight,
        "directed": options.directed, "seed": options.seed,
    }  # fmt: skip
    if options.variant == "layered":
        gammas = options.gamma or [1.0]
        return on_workers.layered_label_propagation(frame, gammas=gammas, **how, **earlier)
    if options.variant == "speaker-listener":
        return on_workers.speaker_listener(frame, **how, **earlier)  # which has no warm start
    return on_workers.label_propagation(frame, **how, **earlier)
