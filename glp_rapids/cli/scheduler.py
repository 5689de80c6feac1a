"""``--scheduler``: a command whose run is made by the workers of a Dask cluster, not here.

Workers read the Parquet files, those of ``--initial`` among them, and write those of the result:
all must lie where all see them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from glp_rapids.cli import edge_files, unused
from glp_rapids.frames import files

PATIENCE = 10  # seconds until a scheduler must have answered
ELSEWHERE = "device", "devices", "no_header"  # what means nothing there


def add_option(parser: Any) -> None:
    """Add the address of the scheduler."""
    parser.add_argument(
        "--scheduler", metavar="ADDRESS",
        help="of a Dask cluster, such as tcp://10.0.0.1:8786, whose workers share the work: all "
        "that is read or written is then Parquet files or folders that they all see",
    )  # fmt: skip


def run(
    options: argparse.Namespace, find: Callable[..., Sequence[Any]],
    summarise: Callable[[Sequence[Any]], None], *, elsewhere: Sequence[str] = ELSEWHERE,
    initial: Path | None = None, **more: Path | None,
) -> None:  # fmt: skip
    """Find something on the cluster, print a summary, have the results written.

    ``find`` returns dask frames for ``--output`` and the further outputs, of one of the edges and,
    as ``initial``, of an earlier result. ``elsewhere``: options that mean nothing on a cluster.
    """
    outputs = {name: path for name, path in {"--output": options.output, **more}.items()
               if path is not None or name == "--output"}  # fmt: skip
    edges = _checked(options, outputs, initial, elsewhere)
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
            if initial is not None:
                with files.naming(initial):
                    earlier["initial"] = dd.read_parquet(str(initial.absolute()))
            with files.naming(edges):
                found = find(dd.read_parquet(str(edges)), **earlier)
            for frame, output in zip(found, outputs.values(), strict=True):
                frame.to_parquet(str(output.absolute()), write_index=False)
            summarise(found)
            for frame, output in zip(found, outputs.values(), strict=True):
                rows = int(frame.map_partitions(len).compute().sum())
                columns = ", ".join(frame.columns)
                edge_files.say(f"written     {output.absolute()} ({rows:,} rows: {columns})")
    except RuntimeError as error:  # a worker died, or the run was cancelled
        raise OSError(str(error)) from error


def _checked(
    options: argparse.Namespace, outputs: Mapping[str, Path | None], initial: Path | None,
    elsewhere: Sequence[str],
) -> Path:  # fmt: skip
    """Return what is read; raise if an option means nothing on a cluster, or a file will not do."""
    unused.refuse(
        options, elsewhere, "is for a run in this process; leave it out, or --scheduler"
    )
    for read in filter(None, (options.edges, initial)):
        if not read.is_dir() and read.suffix not in files.PARQUET:
            raise ValueError(f"{read}: workers read Parquet files and folders of them")
    for name, output in outputs.items():
        if output is None or output.suffix not in files.PARQUET:
            raise ValueError(f"{name} must name a folder *.parquet, which the workers write to")
        if output.exists():
            raise ValueError(f"{output} exists; name a folder that does not")
    if len({output.absolute() for output in outputs.values() if output}) < len(outputs):
        raise ValueError(f"{' and '.join(outputs)} must name different folders")
    return options.edges.absolute()
