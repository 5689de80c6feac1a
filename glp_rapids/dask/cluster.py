"""A run on the workers of a Dask cluster: a rank each, watched until all are done or one has died.

Each worker reads its partitions, and the workers rank the ids, send each edge to the worker that
owns its row (`ingest.shuffle`) and find something of the graph together. Frames of cuDF are worked
on by the workers' GPUs, where each has one of its own; all others by their CPUs.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import pandas as pd

from glp_rapids.common.checks import check_choice, check_truth, shown
from glp_rapids.dask.partitions import dealt, dealt_if_dask
from glp_rapids.dask.rank import kept, rank_of_run
from glp_rapids.device import DeviceName
from glp_rapids.frames.foreign import instance_of
from glp_rapids.frames.kinds import Frame, Kind, is_cudf
from glp_rapids.ingest.columns import column_names
from glp_rapids.ingest.edges import Options as EdgesAsGiven
from glp_rapids.ingest.options import EdgeOptions

LOOK = 0.2  # seconds after which the driver looks whether all workers are there
GRACE_OF_GPUS = 8.0  # seconds that ranks on GPUs may take to end
GRACE = 5.0  # seconds that the scheduler may take to miss a worker that a rank misses
CLOSED = ("closing", "closed")  # clients
Result = TypeVar("Result")


class WorkerGpu(NamedTuple):
    """The GPU of a worker, by a name that no other has, and why it cannot be used, if so."""

    name: str
    problem: str | None


class WorkerLost(RuntimeError):
    """A worker of a run has died, or left the cluster."""


@dataclass(frozen=True)
class Call:
    """What every rank is told: how edges are read, and what is to be found.

    ``find``: returns the frames of the rank's vertices, of its `RankGraph`; if the run is a
    ``warm`` one, also of the rows of ``initial`` that the rank has.
    """

    edges: EdgesAsGiven
    multigraph: str
    direction: str  # of the rows that ranks have
    find: Callable[..., Sequence[Frame]]
    frames: int  # that it returns
    warm: bool
    kind: Kind  # of the frames that come and go
    device: DeviceName | None  # where ranks run; None, before the workers are asked: where they can


def refuse_options(function: str, options: dict[str, Any], refused: Mapping[str, Any]) -> None:
    """Take out what only a run of one process has, which may be given as it is by default."""
    for name, default in refused.items():
        given = options.pop(name, None)
        if given is not None and not (isinstance(given, str | bool) and given == default):
            raise TypeError(f"glp_rapids.dask.{function} has no option {name!r}")


def on_cluster(
    edges: Any, how: EdgeOptions, client: Any, find: Callable[..., Sequence[Frame]], *,
    frames: int = 1, direction: str = "in", initial: Any = None,
) -> list[Any]:  # fmt: skip
    """Have the workers find so many ``frames`` of a graph; return a dask frame for each.

    ``how``: as edges are read, checked here. ``initial``: a frame of dask or pandas, for runs that
    go on from an earlier result.
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
    device = _device_wanted(how.get("device"), kind)
    directed, multigraph = how.get("directed", False), how.get("multigraph", "merge")
    check_truth(directed=directed)
    check_choice("multigraph", multigraph, ("merge", "keep", "min"))
    as_given = EdgesAsGiven(
        how.get("source"), how.get("destination"), how.get("weight"), directed, None
    )
    columns = column_names(list(edges.columns), as_given)
    warm = initial is not None
    call = Call(as_given, multigraph, direction, find, frames, warm, kind, device)
    return _made_by_workers(edges[columns.names], how.get("vertices"), initial, call, client)


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


def _made_by_workers(
    edges: Any, vertices: Any, initial: Any, call: Call, client: Any
) -> list[Any]:
    import dask.dataframe as dd
    from distributed import Future

    from glp_rapids.multigpu.dask_exchange import ExchangePlugin

    client, run = _client_of(client), uuid.uuid4().hex
    with client.as_current(), _no_other_run(client):
        workers = sorted(_workers(client))
        if not workers:
            raise ValueError("client: the cluster has no workers; start some, or wait for them")
        client.register_plugin(ExchangePlugin())
        call = replace(call, device=_device_of(call, client, workers))
        given = dealt(edges, workers, client)
        isolated = dealt_if_dask(vertices, workers, client)
        earlier = dealt_if_dask(initial, workers, client)
        handed = [kept(run, rank, call.frames, client) for rank in range(len(workers))]
        computed = [one for one in chain(*given, *isolated, *earlier) if isinstance(one, Future)]
        ranks: list[Any] = []
        try:
            # a rank has a thread while it waits for the others, and where a worker has only one,
            # what their partitions are computed of would wait behind it
            _wait_for(client, computed, workers, "partitions")
            for rank, address in enumerate(workers):
                ranks.append(client.submit(
                    rank_of_run, given[rank], edges._meta, isolated[rank], earlier[rank], run,
                    rank, workers, call,
                    workers=[address], allow_other_workers=False, pure=False, retries=0,
                ))  # fmt: skip
            del given, isolated, earlier
            computed.clear()
            _wait_for(client, ranks, workers, "ranks")
            # data, not tasks: a rank alone cannot be run again when its worker is lost
            parts = [[one.get(timeout=GRACE) for one in places] for places in handed]
            told = _told_by(ranks, client, workers)
        except BaseException as error:
            _stop(client, [*computed, *ranks], run, workers, error, call.device, call.frames)
            raise
        for place in chain(*handed):
            place.delete()
    found = []
    for of_ranks, meta in zip(zip(*parts, strict=True), told[0][0], strict=True):
        found.append(dd.from_delayed(list(of_ranks), meta=meta, verify_meta=False))
        found[-1].attrs = {"glp": {"ranks": [report for _, report in told]}}
    return found


def _client_of(given: Any) -> Any:
    from distributed import Client, default_client

    client = default_client() if given is None else given
    if not isinstance(client, Client):
        raise TypeError(
            f"client must be a distributed.Client, not {shown(client)}; "
            "distributed.Client(address) makes one"
        )
    if client.asynchronous:
        raise ValueError(
            "client is asynchronous, and a call would block the loop that it waits for; make one "
            "with asynchronous=False, and call by asyncio.to_thread"
        )
    if client.status in CLOSED:
        raise ValueError(f"client is {client.status}; make another distributed.Client")
    return client


@contextlib.contextmanager
def _no_other_run(client: Any) -> Iterator[None]:
    """Wait for other runs on the cluster: their ranks and ours would wait for one another."""
    from distributed import Lock

    lock = Lock("glp-rapids")
    lock.acquire()
    try:
        yield
    finally:
        if client.status not in CLOSED:  # else the scheduler waits half a minute for it
            lock.release()


def _device_of(call: Call, client: Any, workers: list[str]) -> DeviceName:
    """Return where ranks run: on GPUs, if each worker has one that no other has."""
    if call.device == "cpu":
        return "cpu"
    told = client.run(_gpu_of_worker, workers=workers)
    problems = [gpu.problem for gpu in told.values() if gpu.problem]
    gpus = [gpu.name for gpu in told.values()]
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


def _workers(client: Any) -> set[str]:
    """Return the addresses of the cluster's workers."""
    # `scheduler_info` may be what the client last refreshed by itself, which has no workers
    return set(_asked(client, client.nthreads))


def _asked(client: Any, work: Callable[[], Result]) -> Result:
    """Do what waits for an answer to a client: one that is closed meanwhile waits for ever."""
    answers: list[tuple[Any, BaseException | None]] = []

    def answer() -> None:
        try:
            answers.append((work(), None))
        except BaseException as error:
            answers.append((None, error))

    asking = threading.Thread(target=answer, daemon=True)
    if client.status not in CLOSED:
        asking.start()
    closed = False
    while asking.is_alive() and not closed:
        closed = client.status in CLOSED  # and then what is on its way may still come
        asking.join(GRACE if closed else LOOK)
    if not answers:
        raise RuntimeError("the client was closed during the run; call again with another one")
    found, error = answers[0]
    if error is not None:
        raise error
    return found


def _wait_for(client: Any, futures: list, workers: list[str], what: str) -> None:
    """Wait until all are done; raise as soon as one fails, or a worker is gone.

    ``what``: they are, ranks or the partitions that ranks read.
    """
    from distributed import wait

    from glp_rapids.multigpu.exchange import RankFailed

    while not all(future.done() for future in futures):
        if any(future.status in ("error", "cancelled", "lost") for future in futures):
            break
        _refuse_lost(client, workers)
        with contextlib.suppress(TimeoutError, CancelledError):
            wait(futures, timeout=LOOK)
    errors = [future.exception(timeout=GRACE) for future in futures if future.status == "error"]
    for error in errors:
        if not isinstance(error, RankFailed) and not type(error).__module__.startswith("cupy"):
            raise error
    if errors:  # a rank, or its GPU, may miss another one before the scheduler does
        for _ in range(round(GRACE / LOOK) if what == "ranks" else 1):
            _refuse_lost(client, workers)
            time.sleep(LOOK)
        raise errors[0]
    if not all(future.status == "finished" for future in futures):
        _refuse_lost(client, workers)
        ends = ", ".join(sorted({future.status for future in futures}))
        raise RuntimeError(f"the run was cancelled: its {what} ended as {ends}")


def _told_by(
    ranks: list, client: Any, workers: list[str]
) -> list[tuple[list[Any], dict[str, Any]]]:
    """Return what ranks that are done have returned, unless one has died since."""
    try:
        return [rank.result(timeout=GRACE) for rank in ranks]
    except TimeoutError:
        _refuse_lost(client, workers)
        raise


def _refuse_lost(client: Any, workers: list[str]) -> None:
    """Raise if a worker is gone."""
    if lost := set(workers) - _workers(client):
        raise WorkerLost(
            f"{', '.join(sorted(lost))} of {len(workers)} workers died or left the cluster during "
            "the run; the others have stopped: call again, on those that are left"
        )


def _stop(
    client: Any, ranks: list, run: str, workers: list[str], error: BaseException,
    device: DeviceName | None = "cpu", frames: int = 1,
) -> None:  # fmt: skip
    """Let the ranks that are left fail, and drop what was asked for."""
    stop = partial(_ask_to_stop, client, ranks, run, workers, error, device, frames)
    try:
        _asked(client, stop)
    except Exception as another:  # why the run failed matters more
        error.add_note(f"its ranks may go on, as they could not be reached: {another!r}")


def _ask_to_stop(
    client: Any, ranks: list, run: str, workers: list[str], error: BaseException,
    device: DeviceName | None, frames: int,
) -> None:  # fmt: skip
    why, stuck = f"{type(error).__name__}: {error}", []
    try:
        there = sorted(_workers(client) & set(workers))
        if there and device == "gpu":
            stuck = _where_ranks_go_on(client, run, why, there)
        elif there:
            client.run(_fail, run, why, workers=there, on_error="ignore")
    finally:
        client.cancel(ranks, force=True)
        for rank in range(len(workers)):
            for place in kept(run, rank, frames, client):
                place.delete()
    if stuck:
        told = client.restart_workers(stuck, timeout=GRACE_OF_GPUS, raise_for_error=False)
        said = ", ".join(f"{worker}: {what}" for worker, what in told.items())
        error.add_note(f"restarted workers where ranks went on after the run failed ({said})")


def _where_ranks_go_on(client: Any, run: str, why: str, there: list[str]) -> list[str]:
    """Let ranks on GPUs fail; return the workers where they go on, or whose GPU fails from now on.

    NCCL may wait for the dead. Each worker is asked in a thread of its own, as it may not answer.
    """
    ended: set[str] = set()
    until = time.monotonic() + GRACE_OF_GPUS

    def end(worker: str) -> None:
        one = {"workers": [worker], "on_error": "ignore"}
        client.run(_fail, run, why, **one)
        while client.run(_is_running, run, **one).get(worker):
            if time.monotonic() > until:
                return
            time.sleep(LOOK)
        if worker in client.run(_settle_gpu, **one):  # no error came of it
            ended.add(worker)

    threads = [threading.Thread(target=end, args=(worker,), daemon=True) for worker in there]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(until - time.monotonic(), 0))
    return [worker for worker in there if worker not in ended]


def _settle_gpu() -> None:
    if cupy := sys.modules.get("cupy"):
        cupy.cuda.runtime.deviceSynchronize()


def _is_running(run: str, dask_worker: Any) -> bool:
    from glp_rapids.multigpu.dask_exchange import NAME

    return dask_worker.plugins[NAME].is_running(run)


def _fail(run: str, why: str, dask_worker: Any) -> None:
    from glp_rapids.multigpu.dask_exchange import NAME

    dask_worker.plugins[NAME].fail(run, why)
