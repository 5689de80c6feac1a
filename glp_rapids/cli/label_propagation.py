"""``glp-rapids label-propagation``: a file of edges in, communities out."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from glp_rapids.cli import edge_files, scheduler
from glp_rapids.common.sizes import bytes_in_words
from glp_rapids.device import DeviceName, choose
from glp_rapids.frames import files
from glp_rapids.multigpu.devices import devices_of, kind_of
from glp_rapids.propagation.ways import ON_CPU, WAYS

# What means nothing on a cluster.
ELSEWHERE = *scheduler.ELSEWHERE, "memory_limit", "way"
SEEDED = "seeded"
EPILOG = """\
examples:
  glp-rapids label-propagation edges.csv                       # columns src and dst
  glp-rapids label-propagation calls.parquet --source caller --destination callee \\
      --weight minutes --output communities.parquet
  glp-rapids label-propagation follows.csv --directed          # labels flow along the edges
  glp-rapids label-propagation com-dblp.edges.tsv.gz --no-header
  glp-rapids label-propagation edges.csv --variant layered --gamma 1 8 64
  glp-rapids label-propagation edges.csv --variant speaker-listener   # may overlap
  glp-rapids label-propagation edges.csv --variant seeded --seeds known.csv  # vertex, label
  glp-rapids label-propagation graph.glp --memory-limit 2GB    # slower where lists do not fit
  glp-rapids label-propagation edges.csv --devices cpu cpu     # EDGES first, devices behind it
  glp-rapids label-propagation payments/ --scheduler tcp://10.0.0.1:8786 --output found.parquet
  glp-rapids label-propagation today.csv --initial yesterday.csv --output found.csv  # goes on

The same file and --seed give the same communities, on a GPU and on a CPU. Without --output the
communities go to stdout as CSV, or, on a terminal, their first rows; the summary goes to stderr.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    parser.epilog = EPILOG
    columns = edge_files.add_options(parser)
    edge_files.add_weight_and_direction(columns)
    run = parser.add_argument_group("the run")
    run.add_argument(
        "--variant", choices=("classic", "layered", "speaker-listener", SEEDED), default="classic",
        help="classic (default): one community a vertex; layered: finer with --gamma; "
        "speaker-listener: communities may overlap; seeded: labels spread from --seeds",
    )  # fmt: skip
    run.add_argument("--gamma", dest="gammas", type=float, nargs="+", metavar="GAMMA",
                     help="resolutions of layered (default 1), the larger the finer")  # fmt: skip
    run.add_argument("--seeds", type=Path, metavar="FILE",
                     help="of seeded: a table with the columns vertex and label")  # fmt: skip
    run.add_argument("--seed", type=int, default=0, help="of the random orders (default 0)")
    run.add_argument(
        "--initial", type=Path, metavar="FILE",
        help="an earlier result to go on from, with columns vertex and partition (and gamma, if "
        "layered): faster, and communities stay; vertices that are new begin by themselves",
    )  # fmt: skip
    edge_files.add_memory_limit(run)
    run.add_argument(
        "--way", choices=("auto", *WAYS), default="auto",
        help="how neighbour lists are held; auto (default): the fastest that fits",
    )  # fmt: skip
    run.add_argument(
        "--devices", nargs="+", metavar="N",
        help="a cpu for each rank on the host that shares the graph, or numbers of GPUs; "
        "behind EDGES",
    )  # fmt: skip
    scheduler.add_option(run)
    edge_files.add_device_and_output(run)


def run(options: argparse.Namespace) -> None:
    """Check all that can be before a long file is read; read, propagate, write the result."""
    # imported here, as --help needs none of it
    from glp_rapids.propagation.options import Options
    from glp_rapids.propagation.variants.layered import checked_gammas

    if options.gammas is not None and options.variant != "layered":
        raise ValueError(f"--gamma is for --variant layered, not {options.variant}")
    _check_seeds(options)
    if options.initial is not None and options.variant == "speaker-listener":
        raise ValueError(
            "--initial is not for --variant speaker-listener: its communities are counted in "
            "memories, which a result does not hold; leave it out"
        )
    if options.variant == "layered":
        checked_gammas(_gammas(options))
    if options.scheduler is not None:
        Options(seed=options.seed)
        scheduler.run(
            options, partial(_found_on_cluster, options), _summarise_cluster,
            elsewhere=ELSEWHERE, initial=options.initial,
        )  # fmt: skip
        return
    edge_files.check_outputs(options)
    if options.devices is not None:
        named = [int(one) if one.isdecimal() else one for one in options.devices]
        options.devices = devices_of(named)
        options.device = options.device or kind_of(options.devices)
    how = {"seed": options.seed, "memory_limit": options.memory_limit, "way": options.way}
    asked, where = Options(**how, devices=options.devices), choose(options.device)
    if options.devices is None:
        asked.check_limit(where)
    if options.way != "auto" and where not in WAYS[options.way].devices:
        raise ValueError(
            f"--way must be {' or '.join(map(repr, ON_CPU))} on a CPU, not {options.way!r}, which "
            "shares the work with a GPU; give --device gpu where there is one"
        )
    if options.initial is not None:
        options.initial = _read_initial(options.initial)
    if options.seeds is not None:
        options.seeds = _read_seeds(options.seeds)
    streamed = options.way != "auto" and WAYS[options.way].streamed
    if where == "gpu" and (streamed or options.memory_limit is not None):
        options.device = "cpu"  # from where it is streamed, or moved if it fits
    how = {"weight": options.weight, "directed": options.directed}
    try:
        graph = edge_files.read_graph(options, **how)
    except MemoryError:
        if where == "cpu" or options.device == "cpu":
            raise
        options.device = "cpu"
        graph = edge_files.read_graph(options, **how)
    if options.initial is not None:
        options.initial = _with_ids_as(graph, options.initial)
    if options.seeds is not None:
        options.seeds = _with_ids_as(graph, options.seeds, all_there=True)
    found = _propagate(graph, options, where)
    _summarise(graph, found, options.variant)
    edge_files.put_out(found, options.output)


def _check_seeds(options: argparse.Namespace) -> None:
    """Raise unless there are seeds where, and only where, labels spread from them."""
    if options.variant != SEEDED:
        if options.seeds is not None:
            raise ValueError(f"--seeds is for --variant {SEEDED}, not {options.variant}")
        return
    if options.seeds is None:
        raise ValueError(f"--variant {SEEDED} needs --seeds, a table of vertex and label")
    if options.initial is not None:
        raise ValueError(f"--initial is not for --variant {SEEDED}, which begins at its seeds")
    if options.scheduler is not None:
        raise ValueError(
            f"--scheduler is not for --variant {SEEDED}; call "
            "glp_rapids.dask.seeded_label_propagation from Python"
        )


def _read_initial(path: Path) -> Any:
    """Read an earlier result, which has vertices and their communities."""
    from glp_rapids.frames.partitions import columns_of

    initial = files.read_table(path, ["vertex"], names=["partition"])
    with files.naming(path):
        columns_of(initial, "initial", of_ids=True)
    return initial


def _read_seeds(path: Path) -> Any:
    """Read the seeds, which have names."""
    seeds = files.read_table(path, ["vertex"], names=["label"])
    if missing := [name for name in ("vertex", "label") if name not in seeds.columns]:
        raise ValueError(
            f"{path}: has no column {missing[0]!r}; its columns are: "
            f"{', '.join(map(str, seeds.columns))}; write vertex,label on its first line"
        )
    seeds.attrs["path"] = path
    return seeds


def _with_ids_as(graph: Any, initial: Any, all_there: bool = False) -> Any:
    """Read ids of a table as those of the graph are: one odd id makes all texts.

    ``all_there``: one that cannot be read so is an error; else whoever has it has left the graph.
    """
    import pandas as pd

    if "vertex" not in initial.columns:  # as the library says
        return initial
    column = graph.vertices.columns[0]
    numbers = pd.api.types.is_integer_dtype(initial["vertex"].dtype)
    if column.family == "string" and numbers:
        return initial.assign(vertex=initial["vertex"].astype(str))
    if column.family != "integer" or numbers:
        return initial
    if all_there:
        odd = ~initial["vertex"].astype(str).str.fullmatch(files.INTEGER).eq(True)
        if not odd.any():  # too large, or none: as the library says
            return initial
        row = int(odd.to_numpy().argmax())
        raise ValueError(
            f"{initial.attrs['path']}: the ids of the edges are integers, but "
            f"{initial['vertex'].iloc[row]!r} at row {row} of the seeds is none"
        )
    # who is no integer has left the graph
    written = initial["vertex"].astype(str).str.fullmatch(files.INTEGER).eq(True)
    there = initial[written.to_numpy()].reset_index(drop=True)
    return there.assign(vertex=files.as_ids([there["vertex"].astype(str)])[0])


def _gammas(options: argparse.Namespace) -> list[float]:
    return options.gammas or [1.0]


def _propagate(graph: Any, options: argparse.Namespace, device: DeviceName) -> Any:
    from glp_rapids import (
        label_propagation,
        layered_label_propagation,
        seeded_label_propagation,
        speaker_listener,
    )

    shared = {"seed": options.seed, "device": device, "progress": sys.stderr.isatty(),
              "memory_limit": options.memory_limit, "way": options.way,
              "devices": options.devices}  # fmt: skip
    if options.initial is not None:
        shared["initial"] = options.initial
    if options.variant == SEEDED:
        found = seeded_label_propagation(graph, options.seeds, absent="drop", **shared)
        if not found.attrs["glp"]["seeds"] and len(options.seeds):
            raise ValueError(
                f"{options.seeds.attrs['path']}: none of its ids is a vertex of the graph: "
                f"{options.seeds['vertex'].iloc[0]!r} is not"
            )
        return found
    if options.variant == "layered":
        return layered_label_propagation(graph, gammas=_gammas(options), **shared)
    if options.variant == "speaker-listener":
        return speaker_listener(graph, **shared)
    return label_propagation(graph, **shared)


def _say_run(report: dict[str, Any]) -> None:
    edge_files.say(
        f"run         {report['sweeps']} sweeps in {report['seconds']:.3f} s, lists "
        f"{report['way']}, {bytes_in_words(report['predicted'])}"
    )


def _summarise_seeded(found: Any) -> None:
    report, sizes = found.attrs["glp"], found["label"].value_counts().to_dict()
    largest = ", ".join(f"{label} {size:,}" for label, size in list(sizes.items())[:5])
    edge_files.say(
        f"found       labels of {report['seeds']:,} seeds come to {sum(sizes.values()):,} of "
        f"{len(found):,} vertices: {largest or 'none'}"
    )
    if report["absent"]:
        edge_files.say(f"            {report['absent']:,} further seeds are no vertex of the graph")
    _say_run(report)


def _summarise(graph: Any, found: Any, variant: str) -> None:
    from glp_rapids import modularity

    report = found.attrs["glp"]
    if variant == SEEDED:
        _summarise_seeded(found)
        return
    layers = [("", found, report)]
    if variant == "layered":
        layers = [
            (f"gamma {layer['gamma']:g}: ", found[found["gamma"] == layer["gamma"]], layer)
            for layer in report["layers"]
        ]
    for name, part, layer in layers:
        sizes = part["partition"].value_counts().to_numpy()
        line = f"{name}{len(sizes):,} communities"
        if len(sizes):
            line += f", the largest of {', '.join(f'{size:,}' for size in sizes[:5])} vertices"
        if variant == "speaker-listener":
            members = part["vertex"].nunique() if "vertex" in part.columns else len(part)
            line += f"; {len(part) / max(members, 1):.2f} communities a vertex"
        elif graph.number_of_edges:
            line += f"; modularity {modularity(graph, part[['vertex', 'partition']]):.4f}"
        edge_files.say(f"found       {line}")
        _say_run(layer)


def _found_on_cluster(options: argparse.Namespace, frame: Any, **earlier: Any) -> Sequence[Any]:
    import glp_rapids.dask as on_workers

    how = {
        "source": options.source, "destination": options.destination, "weight": options.weight,
        "directed": options.directed, "seed": options.seed,
    }  # fmt: skip
    if options.variant == "layered":
        gammas = _gammas(options)
        return [on_workers.layered_label_propagation(frame, gammas=gammas, **how, **earlier)]
    if options.variant == "speaker-listener":
        return [on_workers.speaker_listener(frame, **how, **earlier)]  # which has no warm start
    return [on_workers.label_propagation(frame, **how, **earlier)]


def _summarise_cluster(frames: Sequence[Any]) -> None:
    """Say what was found on a cluster; only counts come from the workers."""
    (found,) = frames
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
