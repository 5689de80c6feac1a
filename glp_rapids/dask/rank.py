"""What a worker does in a run: the part of one rank, on its CPU or its GPU."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from glp_rapids.device import DeviceName
from glp_rapids.frames.kinds import Frame, is_cudf, set_attributes, to_frame

if TYPE_CHECKING:
    from glp_rapids.dask.cluster import Call


def kept(run: str, rank: int, client: Any) -> Any:
    """Return where a rank hands over what it has found, which stays on its worker."""
    from distributed import Variable

    return Variable(f"glp-rapids-{run}-{rank}", client=client)


def rank_of_run(
    parts: list[Frame], meta: Frame, vertices: list, initial: list[Frame],
    run: str, rank: int, workers: list[str], call: Call,
) -> tuple[Frame, dict[str, Any]]:  # fmt: skip
    """Do the part of one rank, hand over what it finds; return a frame like that, and its report.

    Frames of cuDF lose their attributes on the way to another process.
    """
    from distributed import get_worker

    from glp_rapids.multigpu.dask_exchange import NAME

    plugin = get_worker().plugins[NAME]
    plugin.begin(run)
    try:
        return _found_by_rank(parts, meta, vertices, initial, run, rank, workers, call)
    except BaseException as error:
        plugin.fail(run, f"{type(error).__name__}: {error}")
        raise
    finally:
        plugin.end(run)


def _found_by_rank(
    parts: list[Frame], meta: Frame, vertices: list, initial: list[Frame],
    run: str, rank: int, workers: list[str], call: Call,
) -> tuple[Frame, dict[str, Any]]:  # fmt: skip
    from distributed import get_client

    from glp_rapids.ingest import shuffle
    from glp_rapids.jit.parallel import threads_available
    from glp_rapids.propagation.rank_graph import RankGraph
    from glp_rapids.propagation.rank_run import run_on_rank

    begin, exchange = time.perf_counter(), _exchange_on(call.device)(run, rank, workers)
    if arrow := sys.modules.get("pyarrow"):  # it keeps what files were read by: a good part of them
        arrow.default_memory_pool().release_unused()
    frames = [part for part in parts if len(part)] or [meta]
    parts.clear()
    if call.device == "cpu":
        frames = [_of_pandas(frame) for frame in frames]
        vertices = [_of_pandas(table) for table in vertices]
    initial = [_of_pandas(part) for part in initial]
    directed, direction = call.edges.directed, call.options.direction
    how = call.edges, call.multigraph, direction
    part = shuffle.part_of(exchange, frames, *how, vertices)
    graph = RankGraph(exchange, part, directed, direction, threads_available())
    making = time.perf_counter() - begin
    find = partial(call.find, initial=initial) if call.warm else call.find
    found = find(graph, call.options, run_on_rank)
    if call.kind == "cudf" and call.device == "cpu":
        found = set_attributes(to_frame(dict(found.items()), "cudf"), found.attrs["glp"])
    found.attrs["glp"]["seconds_of_graph"] = making
    client = get_client()
    there = client.scatter(found, hash=False)
    kept(run, rank, client).set(there)
    exchange.barrier()  # nobody forgets what another one still waits for
    exchange.close()
    return found.iloc[:0], found.attrs["glp"]


def _exchange_on(device: DeviceName | None) -> Any:
    if device == "gpu":
        from glp_rapids.multigpu.dask_gpu_exchange import DaskGpuExchange

        return DaskGpuExchange
    from glp_rapids.multigpu.dask_exchange import DaskExchange

    return DaskExchange


def _of_pandas(table: Any) -> Any:
    """Bring a frame or column of cuDF to the host; any other table is itself."""
    return table.to_pandas() if is_cudf(table, "DataFrame", "Series", "Index") else table
