"""What a worker does in a run: the part of one rank, on its CPU or its GPU."""

from __future__ import annotations

import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from glp_rapids.common.checks import shown
from glp_rapids.device import DeviceName
from glp_rapids.frames.facts import set_attributes
from glp_rapids.frames.kinds import Frame, is_cudf, to_frame

if TYPE_CHECKING:
    from glp_rapids.dask.cluster import Call


def kept(run: str, rank: int, frames: int, client: Any) -> list[Any]:
    """Return where a rank hands over the frames that it has found, which stay on its worker."""
    from distributed import Variable

    return [
        Variable(f"glp-rapids-{run}-{rank}-{number}", client=client) for number in range(frames)
    ]


def rank_of_run(
    parts: list[Frame], meta: Frame, vertices: list, initial: list[Frame],
    run: str, rank: int, workers: list[str], call: Call,
) -> tuple[list[Frame], dict[str, Any]]:  # fmt: skip
    """Do the part of one rank, hand over what it finds; return frames like those, and its report.

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
) -> tuple[list[Frame], dict[str, Any]]:  # fmt: skip
    from distributed import get_client

    from glp_rapids.ingest import shuffle
    from glp_rapids.jit.parallel import threads_available
    from glp_rapids.propagation.rank_graph import RankGraph

    begin, exchange = time.perf_counter(), _exchange_on(call.device)(run, rank, workers)
    if arrow := sys.modules.get("pyarrow"):  # it keeps what files were read by: a good part of them
        arrow.default_memory_pool().release_unused()
    for part in parts:
        if not hasattr(part, "columns"):
            raise TypeError(f"graph: a partition must be a frame, not {shown(part)}")
    frames = [part for part in parts if len(part)] or [meta]
    parts.clear()
    if call.device == "cpu":
        frames = [_of_pandas(frame) for frame in frames]
        vertices = [_of_pandas(table) for table in vertices]
    initial = [_of_pandas(part) for part in initial]
    part = shuffle.part_of(exchange, frames, call.edges, call.multigraph, call.direction, vertices)
    graph = RankGraph(exchange, part, call.edges.directed, call.direction, threads_available())
    del part
    making = time.perf_counter() - begin
    find = partial(call.find, initial=initial) if call.warm else call.find
    found = list(find(graph))
    if call.kind == "cudf" and call.device == "cpu":
        found = [
            set_attributes(to_frame(dict(one.items()), "cudf"), one.attrs["glp"]) for one in found
        ]
    for one in found:
        one.attrs["glp"]["seconds_of_graph"] = making
    client = get_client()
    for place, one in zip(kept(run, rank, call.frames, client), found, strict=True):
        place.set(client.scatter(one, hash=False))
    exchange.barrier()  # nobody forgets what another one still waits for
    exchange.close()
    return [one.iloc[:0] for one in found], found[0].attrs["glp"]


def _exchange_on(device: DeviceName | None) -> Any:
    if device == "gpu":
        from glp_rapids.multigpu.dask_gpu_exchange import DaskGpuExchange

        return DaskGpuExchange
    from glp_rapids.multigpu.dask_exchange import DaskExchange

    return DaskExchange


def _of_pandas(table: Any) -> Any:
    """Bring a frame or column of cuDF to the host; any other table is itself."""
    return table.to_pandas() if is_cudf(table, "DataFrame", "Series", "Index") else table
