"""A run on the workers of a Dask cluster: a rank each, watched until all are done or one has died.

Each worker reads its partitions, and the workers rank the ids, send each edge to the worker that
owns its row (`ingest.shuffle`) and propagate labels together (`propagation.rank_run`): no worker
ever has all edges. Frames of cuDF are worked on by the workers' GPUs, where each has one of its
own; all others by their CPUs.
"""

from __future__ import annotations

import contextlib
import sys
import time
import uuid
from collections.abc import Callable, MutableMapping
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import pandas as pd

from glp_rapids.common.checks import check_choice, check_truth, shown
from glp_rapids.device import DeviceName
from glp_rapids.frames.foreign import instance_of
from glp_rapids.frames.kinds import Frame, Kind, is_cudf, set_attributes, to_frame
from glp_rapids.frames.partitions import is_frame
from glp_rapids.ingest.edges import Options as EdgesAsGiven
from glp_rapids.ingest.readers import column_names
from glp_rapids.propagation.call import refuse_unknown, settling
from glp_rapids.propagation.options import Options, SweepOptions

# What a run of one process takes that one of several workers does not, so far; by default:
REFUSED: dict[str, Any] = {
    "devices": None, "memory_limit": None, "way": "auto", "strategy": "auto", "progress": False,
}  # fmt: skip
LOOK = 0.2  # seconds after which the driver looks whether all workers are there
GRACE = 5.0  # seconds that the scheduler may take to miss a worker that a rank misses


class WorkerGpu(NamedTuple):
    """The GPU of a worker, by a name that no other has, and why it cannot be used, if so."""

    name: str
    problem: str | None


# Clients whose workers can exchange values, and the GPUs of these as far as they were asked.
_prepared: MutableMapping[Any, dict[str, WorkerGpu]] = WeakKeyDictionary()


class WorkerLost(RuntimeError):
    """A worker of a run has died, or left the cluster."""


@dataclass(frozen=True)
class Call:
    """What every rank is told: how edges are read, how the run goes, and what it is.

    ``find``: returns a frame of the rank's vertices, of its `RankGraph`, the options and what runs
    a program; if the run is a ``warm`` one, also of the rows of ``initial`` that the rank has.
    """

    edges: EdgesAsGiven
    multigraph: str
    options: Options
    find: Callable[..., Frame]
    warm: bool
    kind: Kind  # of the frames that come and go
    device: DeviceName | None  # where ranks run; None, before the workers are asked: where they can


def on_cluster(
    function: str, edges: Any, given: SweepOptions, client: Any, find: Callable[..., Frame],
    initial: Any = None, **defaults: Any,
) -> Any:  # fmt: skip
    """Check a call of a public function, and make it on the workers; return a dask frame.

    ``initial``: a frame of dask or pandas, for runs that go on from an earlier result.
    """
    if not instance_of("dask.dataframe", "DataFrame")(edges):
        what = type(edges).__name__ if hasattr(edges, "columns") else shown(edges)
        raise TypeError(f"edges must be a dask frame of pandas or cuDF, not {what}")
    kind: Kind = "cudf" if is_cudf(edges._meta, "DataFrame") else "pandas"
    if kind == "pandas" and not isinstance(edges._meta, pd.DataFrame):
        raise TypeError(
            "edges must be a dask frame of pandas or cuDF, not of "
            f"{type(edges._meta).__module__}; convert it with edges.to_backend('pandas')"
        )
    options: dict[str, Any] = dict(given)
    device = _device_wanted(options.pop("device", None), kind)
    names = [options.pop(*default) for default in
             (("source", "src"), ("destination", "dst"), ("weight", None))]  # fmt: skip
    directed, multigraph = options.pop("directed", False), options.pop("multigraph", "merge")
    vertices = options.pop("vertices", None)
    check_truth(directed=directed)
    check_choice("multigraph", multigraph, ("merge", "keep", "min"))
    how = EdgesAsGiven(*names, directed, None)
    columns = column_names(list(edges.columns), how)
    if initial is not None and not is_frame(initial):
        raise TypeError(
            "initial must be a frame of dask or pandas with the columns 'vertex' and 'partition', "
            f"not {shown(initial)}"
        )
    defaults = {**settling(initial), **defaults}
    warm = initial is not None
    run_options = _run_options(function, options, defaults)
    call = Call(how, multigraph, run_options, find, warm, kind, device)
    return _made_by_workers(edges[columns.names], vertices, initial, call, client)


def _device_wanted(device: Any, kind: Kind) -> DeviceName | None:
    """Check where ranks are to run; frames of pandas are worked on by CPUs."""
    if device is not None:
        check_choice("device", device, ("cpu", "gpu"), "'cpu', 'gpu' or None")
    if kind == "cudf":
        return device
    if device == "gpu":
        raise TypeError(
            "device='gpu' takes a dask frame of cuDF, not of pandas; convert it with "
            "edges.to_backend('cudf')"
        )
    return "cpu"


def _run_options(function: str, options: dict[str, Any], defaults: dict[str, Any]) -> Options:
    """Check the options of a run; those of other runs may be given as they are by default."""
    refuse_unknown(options)
    for name, default in REFUSED.items():
        given = options.pop(name, None)
        if given is not None and not (isinstance(given, str | bool) and given == default):
            raise TypeError(f"glp_rapids.dask.{function} has no option {name!r}")
    return Options(**{**defaults, **options})


def _made_by_workers(edges: Any, vertices: Any, initial: Any, call: Call, client: Any) -> Any:
    import dask.dataframe as dd
    from distributed import Lock, default_client

    from glp_rapids.multigpu.dask_exchange import ExchangePlugin

    client = default_client() if client is None else client
    run = uuid.uuid4().hex
    # the ranks of two runs would wait for each other's threads
    with client.as_current(), Lock("glp-rapids"):
        workers = sorted(_workers(client))
        if not workers:
            raise ValueError("client: the cluster has no workers; start some, or wait for them")
        if client not in _prepared:  # the scheduler gives it to new workers, too
            client.register_plugin(ExchangePlugin())
            _prepared[client] = {}
        call = replace(call, device=_device_of(call, client, workers))
        given = _dealt(edges, workers, client)
        isolated = _dealt_if_dask(vertices, workers, client)
        earlier = _dealt_if_dask(initial, workers, client)
        ranks: list[Any] = []
        try:
            for rank, address in enumerate(workers):
                ranks.append(client.submit(
                    _rank_of_run, given[rank], edges._meta, isolated[rank], earlier[rank], run,
                    rank, workers, call,
                    workers=[address], allow_other_workers=False, pure=False, retries=0,
                ))  # fmt: skip
            del given, isolated, earlier
            _wait_for(client, ranks, workers)
            # data, not tasks: a rank alone cannot be run again when its worker is lost
            frames = [_kept(run, rank, client).get(timeout=GRACE) for rank in range(len(ranks))]
            told = client.gather(ranks)
        except BaseException as error:
            _stop(client, ranks, run, workers, error)
            raise
        for rank in range(len(ranks)):
            _kept(run, rank, client).delete()
    found = dd.from_delayed(frames, meta=told[0][0], verify_meta=False)
    found.attrs = {"glp": {"ranks": [report for _, report in told]}}
    return found


def _device_of(call: Call, client: Any, workers: list[str]) -> DeviceName:
    """Return where ranks run: on GPUs, if each worker has one that no other has."""
    if call.device == "cpu":
        return "cpu"
    known = _prepared[client]
    if new := [worker for worker in workers if worker not in known]:
        known.update(client.run(_gpu_of_worker, workers=new))
    problems = [known[worker].problem for worker in workers if known[worker].problem]
    gpus = [known[worker].name for worker in workers]
    if not problems and len(set(gpus)) < len(gpus):
        problems = ["several workers have the same one (dask_cuda.LocalCUDACluster gives each its "
                    "own)"]  # fmt: skip
    if not problems:
        return "gpu"
    if call.device == "gpu":
        raise ValueError(f"device='gpu', but the workers cannot run on GPUs: {problems[0]}")
    return "cpu"


def _gpu_of_worker() -> WorkerGpu:
    """Name the GPU of a worker, or say why it cannot be used."""
    from glp_rapids.device import gpu_available
    from glp_rapids.multigpu.nccl import nccl_problem

    if not gpu_available():
        return WorkerGpu("", "a worker finds none (glp-rapids doctor says why)")
    if problem := nccl_problem():
        return WorkerGpu("", problem)
    import cupy

    properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())
    return WorkerGpu(bytes(properties["uuid"]).hex(), None)


def _dealt_if_dask(table: Any, workers: list[str], client: Any) -> list[list]:
    """Return what each worker has of a table; all is the first one's, if it is not of dask."""
    if hasattr(table, "to_delayed"):
        return _dealt(table, workers, client)
    return [[] if table is None or rank else [table] for rank in range(len(workers))]


def _dealt(table: Any, workers: list[str], client: Any) -> list[list]:
    """Have workers compute partitions, as many each; return the futures of each worker."""
    import dask

    parts, places = table.to_delayed(), _places(table, client)
    ranks = shares([places.get(number) for number in range(len(parts))], workers)
    dealt = []
    for part, rank in zip(parts, ranks, strict=True):
        with dask.annotate(workers=[workers[rank]], allow_other_workers=False):
            dealt.append(dask.delayed(_itself)(part))
    futures = client.compute(dealt)
    return [
        [future for future, other in zip(futures, ranks, strict=True) if other == rank]
        for rank in range(len(workers))
    ]


def _places(table: Any, client: Any) -> dict[int, str]:
    """Return where partitions lie that are there already, by their numbers."""
    from distributed import futures_of

    futures = futures_of(table)
    keys = [future.key for future in futures]
    if len(keys) != table.npartitions or not all(isinstance(key, tuple) for key in keys):
        return {}
    return {key[-1]: there[0] for key, there in client.who_has(futures).items() if there}


def shares(places: list[str | None], workers: list[str]) -> list[int]:
    """Return a rank for each partition: that of the worker where it lies, if that has not many.

    None has more than one more than any other.
    """
    rank_of = {worker: rank for rank, worker in enumerate(workers)}
    most = -(-len(places) // len(workers))
    taken, ranks = [0] * len(workers), [rank_of.get(place, -1) for place in places]
    for number, rank in enumerate(ranks):
        if rank >= 0 and taken[rank] < most:
            taken[rank] += 1
        else:
            ranks[number] = -1
    for number in [number for number, rank in enumerate(ranks) if rank < 0]:
        ranks[number] = taken.index(min(taken))
        taken[ranks[number]] += 1
    return ranks


def _itself(part: Any) -> Any:
    return part


def _workers(client: Any) -> set[str]:
    """Return the addresses of the cluster's workers."""
    # `scheduler_info` may be what the client last refreshed by itself, which has no workers
    return set(client.nthreads())


def _wait_for(client: Any, ranks: list, workers: list[str]) -> None:
    """Wait until all ranks are done; raise as soon as one fails, or a worker is gone."""
    from distributed import wait

    from glp_rapids.multigpu.exchange import RankFailed

    while not all(rank.done() for rank in ranks):
        if any(rank.status in ("error", "cancelled", "lost") for rank in ranks):
            break
        _refuse_lost(client, workers)
        with contextlib.suppress(TimeoutError, CancelledError):
            wait(ranks, timeout=LOOK)
    errors = [rank.exception() for rank in ranks if rank.status == "error"]
    for error in errors:
        if not isinstance(error, RankFailed):
            raise error
    if errors:  # a rank may miss another one before the scheduler does
        for _ in range(round(GRACE / LOOK)):
            _refuse_lost(client, workers)
            time.sleep(LOOK)
        raise errors[0]
    if not all(rank.status == "finished" for rank in ranks):
        _refuse_lost(client, workers)
        ends = ", ".join(rank.status for rank in ranks)
        raise RuntimeError(f"label propagation was cancelled: its ranks ended as {ends}")


def _refuse_lost(client: Any, workers: list[str]) -> None:
    """Raise if a worker is gone."""
    if lost := set(workers) - _workers(client):
        raise WorkerLost(
            f"{', '.join(sorted(lost))} of {len(workers)} workers died or left the cluster during "
            "label propagation; the others have stopped: call it again, on those that are left"
        )


def _stop(client: Any, ranks: list, run: str, workers: list[str], error: BaseException) -> None:
    """Let the ranks that are left fail, and drop what was asked for."""
    why = f"{type(error).__name__}: {error}"
    try:
        try:
            if there := sorted(_workers(client) & set(workers)):
                client.run(_fail, run, why, workers=there, on_error="ignore")
        finally:
            client.cancel(ranks, force=True)
            for rank in range(len(workers)):
                _kept(run, rank, client).delete()
    except Exception as another:  # why the run failed matters more
        error.add_note(f"its ranks may go on, as they could not be reached: {another!r}")


def _fail(run: str, why: str, dask_worker: Any) -> None:
    from glp_rapids.multigpu.dask_exchange import NAME

    dask_worker.plugins[NAME].fail(run, why)


def _kept(run: str, rank: int, client: Any) -> Any:
    """Return where a rank hands over what it has found, which stays on its worker."""
    from distributed import Variable

    return Variable(f"glp-rapids-{run}-{rank}", client=client)


def _rank_of_run(
    parts: list[Frame], meta: Frame, vertices: list, initial: list[Frame],
    run: str, rank: int, workers: list[str], call: Call,
) -> tuple[Frame, dict[str, Any]]:  # fmt: skip
    """Do the part of one rank, hand over what it finds; return a frame like that, and its report.

    Frames of cuDF lose their attributes on the way to another process.
    """
    from distributed import get_client

    from glp_rapids.ingest import shuffle
    from glp_rapids.jit.parallel import threads_available
    from glp_rapids.propagation.rank_graph import RankGraph
    from glp_rapids.propagation.rank_run import run_on_rank

    begin, exchange = time.perf_counter(), _exchange_on(call.device)(run, rank, workers)
    if arrow := sys.modules.get("pyarrow"):  # it keeps what files were read by: a good part of them
        arrow.default_memory_pool().release_unused()
    try:
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
        _kept(run, rank, client).set(there)
        exchange.barrier()  # nobody forgets what another one still waits for
    except BaseException as error:
        exchange.abort(error)
        raise
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
