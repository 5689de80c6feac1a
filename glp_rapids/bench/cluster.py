"""Label propagation and diversity on the workers of a Dask cluster, one process beside them.

A graph's edges are written to a folder of Parquet files. One process reads them with pandas and
calls the function of `glp_rapids`; the workers of a cluster on this machine, a thread each, read
them with Dask and run that of `glp_rapids.dask`. Each is a fresh process that has done the same on
a small folder before, so that nothing is compiled. "MB" is the most that a process has at any time,
less what it had after the small folder; of the workers that of the largest, and its share of the
one process's. "seconds" go from files to a frame that is there; "same": all rows of the result.

With ``--device gpu`` the frames are cuDF's and dask-cuDF's and each worker has a GPU, in a
`dask_cuda.LocalCUDACluster`. There the edges are in the GPUs' memory before the clock starts, the
seconds are medians of five calls, and host memory is not looked at.
"""

from __future__ import annotations

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from tqdm import tqdm

import glp_rapids
from glp_rapids.bench import subjects
from glp_rapids.bench.from_parquet import SMALL, edges_of, write
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.bench.timing import clocked
from glp_rapids.device import DeviceName

GRAPHS = ("kron-19-20",)  # 10 M edges
SEEDS = 100
REPEATS = 5  # on GPUs
VARIANTS: dict[str, dict[str, Any]] = {
    "label_propagation": {},
    "layered_label_propagation": {"gammas": [1.0]},
    "speaker_listener": {},
    "seeded_label_propagation": {},  # and seeds that both folders have
    "structural_diversity": {"k": 4, "model": "truss"},
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    subjects.add_options(parser, GRAPHS, repeats=None, device=False)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu",
                        help="where one process and the workers run (default cpu)")  # fmt: skip
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="default 2")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=list(VARIANTS)[:1],
                        help="default: label_propagation")  # fmt: skip


def run(options: argparse.Namespace) -> Tables:
    """Return a table with a row for each graph and variant."""
    rows: Rows = []
    row = {"cpu": _row, "gpu": _row_of_gpus}[options.device]
    for name in tqdm(options.graphs, desc="cluster", leave=False, disable=None):
        with tempfile.TemporaryDirectory() as place:
            folders = {size: Path(place) / size for size in ("small", "whole")}
            number = _elsewhere(_write, name, options.device, folders)
            rows += [
                {"graph": name, "edges": number, **row(variant, folders, options.workers)}
                for variant in options.variants
            ]
    where = {"cpu": "", "gpu": ", on GPUs"}[options.device]
    return {f"One process beside {options.workers} workers of a Dask cluster{where}": rows}


def _row_of_gpus(variant: str, folders: dict[str, Path], workers: int) -> dict[str, Any]:
    seconds, digest = _elsewhere(_alone_on_gpu, variant, folders)
    several, reports, also = _by_gpus(variant, folders, workers)
    making, run = (
        max(report[name] for report in reports) for name in ("seconds_of_graph", "seconds")
    )
    return {
        "variant": variant, "one seconds": seconds, "workers seconds": several,
        "of that the graph": making, "the run": run, "times": several / seconds,
        "same": digest == also,
    }  # fmt: skip


def _alone_on_gpu(variant: str, folders: dict[str, Path]) -> tuple[float, int]:
    """Return the seconds and the digest of a call on a GPU in this process."""
    import cudf

    function, keywords = getattr(glp_rapids, variant), _keywords(variant, folders)
    for folder in folders.values():
        call = partial(function, cudf.read_parquet(folder), device="gpu", **keywords)
        milliseconds, found = clocked(call, REPEATS, "gpu")
    return milliseconds / 1e3, _digest(found.to_pandas())


def _by_gpus(
    variant: str, folders: dict[str, Path], workers: int
) -> tuple[float, list[dict[str, Any]], int]:
    """Return the seconds of a call on workers with a GPU each, its ranks' reports, the digest."""
    import dask_cudf
    from dask_cuda import LocalCUDACluster
    from distributed import Client, wait

    import glp_rapids.dask as on_workers

    function, keywords = getattr(on_workers, variant), _keywords(variant, folders)
    with (
        LocalCUDACluster(n_workers=workers, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        for folder in folders.values():
            edges = dask_cudf.read_parquet(folder, split_row_groups=False).persist()
            wait(edges)
            call = partial(function, edges, client=client, device="gpu", **keywords)
            milliseconds, found = clocked(call, REPEATS, "cpu")
        reports = found.attrs["glp"]["ranks"]
        parts = [part.compute().to_pandas() for part in found.to_delayed()]
    return milliseconds / 1e3, reports, sum(map(_digest, parts)) % (1 << 64)


def _row(variant: str, folders: dict[str, Path], workers: int) -> dict[str, Any]:
    seconds, peak, digest = _elsewhere(_alone, variant, folders)
    several, largest, also = _by_workers(variant, folders, workers)
    return {
        "variant": variant, "one seconds": seconds, "workers seconds": several,
        "one MB": peak / 1e6, "largest worker MB": largest / 1e6, "share": largest / max(peak, 1),
        "same": digest == also,
    }  # fmt: skip


def _elsewhere(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a new process: what this one ever had would count for those it starts."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def _write(name: str, device: DeviceName, folders: dict[str, Path]) -> int:
    """Write the edges of a graph; return how many there are."""
    edges = edges_of(subjects.load(name, device).to("cpu"))
    write(edges.head(SMALL), folders["small"])
    write(edges, folders["whole"])
    return len(edges)


def _alone(variant: str, folders: dict[str, Path]) -> tuple[float, int, int]:
    """Return the seconds, the bytes and the digest of a call in this process."""
    function, keywords = getattr(glp_rapids, variant), _keywords(variant, folders)
    for folder in folders.values():
        before, begin = _peak(), time.perf_counter()
        found = function(pd.read_parquet(folder), device="cpu", **keywords)
        seconds = time.perf_counter() - begin
    return seconds, _peak() - before, _digest(found)


def _by_workers(variant: str, folders: dict[str, Path], workers: int) -> tuple[float, int, int]:
    """Return the seconds, the bytes of the largest worker and the digest of a call on a cluster."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    import glp_rapids.dask as on_workers

    function, keywords = getattr(on_workers, variant), _keywords(variant, folders)
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        for folder in folders.values():
            before, begin = client.run(_peak), time.perf_counter()
            found = function(dd.read_parquet(folder), client=client, **keywords)
            seconds = time.perf_counter() - begin
            peaks = client.run(_peak)
        digest = sum(_digest(part.compute()) for part in found.to_delayed()) % (1 << 64)
    return seconds, max(peaks[worker] - before[worker] for worker in peaks), digest


def _keywords(variant: str, folders: dict[str, Path]) -> dict[str, Any]:
    if variant != "seeded_label_propagation":
        return VARIANTS[variant]
    sources = pd.read_parquet(folders["small"], columns=["src"])["src"]
    return {"seeds": sources.drop_duplicates().head(SEEDS)}


def _peak() -> int:
    """Return the most bytes of memory that this process ever had."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def _digest(frame: pd.DataFrame) -> int:
    """Digest the rows of a frame, whatever their order."""
    return int(pd.util.hash_pandas_object(frame, index=False).sum())
