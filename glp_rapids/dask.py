"""Label propagation on a Dask cluster: dask frames of edges in, dask frames of communities out.

Each worker reads its partitions, and the workers rank the ids, send each edge to the worker that
owns its row (`ingest.shuffle`) and propagate labels together (`engines.rank_cpu`): no worker ever
has all edges. Labels are those of one process, bit for bit. The ranks run on the workers' CPUs.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import pandas as pd

from glp_rapids.common.checks import check_choice, check_truth, shown
from glp_rapids.frames.foreign import instance_of
from glp_rapids.ingest.edges import Options as EdgesAsGiven
from glp_rapids.ingest.readers import column_names
from glp_rapids.propagation.call import refuse_unknown
from glp_rapids.propagation.options import Options, SweepOptions

if TYPE_CHECKING:
    from distributed import Client

# What a run of one process takes that one of several workers does not, so far; by default:
REFUSED: dict[str, Any] = {
    "device": None, "devices": None, "memory_limit": None, "way": "auto", "strategy": "auto",
    "vertices": None, "progress": False,
}  # fmt: skip
LOOK = 0.2  # seconds after which the driver looks whether all workers are there
GRACE = 5.0  # seconds that the scheduler may take to miss a worker that a rank misses


class WorkerLost(RuntimeError):
    """A worker of a run has died, or left the cluster."""


def label_propagation(
    edges: Any,
    *,
    source: str | Sequence[str] = "src",
    destination: str | Sequence[str] = "dst",
    weight: str | None = None,
    directed: bool = False,
    multigraph: str = "merge",
    client: Client | None = None,
    **options: Unpack[SweepOptions],
) -> Any:
    """Find communities on the workers of a Dask cluster.

    Parameters
    ----------
    edges : dask.dataframe.DataFrame
        Frames of pandas: an edge a row, ids of any kind in one column or several.
    source, destination, weight, directed, multigraph
        As in `glp_rapids.as_graph`.
    client : distributed.Client, optional
        Of the cluster; None: the current one. Each of its workers becomes a rank. One run at a
        time: a second one on the same cluster waits.
    **options
        ``max_iter``, ``update``, ``classes``, ``explore``, ``tie_break``, ``retain``, ``tol``,
        ``direction`` ("in" or "out"), ``seed``, ``skip_inactive``, as in
        `glp_rapids.label_propagation`.

    Returns
    -------
    dask.dataframe.DataFrame
        ``vertex`` (``0_vertex``, ... for ids of several columns) and ``partition``: a partition a
        worker, where it stays; vertices are sorted across partitions. Of each partition,
        ``.attrs["glp"]`` says how its worker's part of the run went.

    Raises
    ------
    ValueError, TypeError
        There is no cluster, or none with workers; or as in `glp_rapids.label_propagation`.
    WorkerLost
        A worker died during the run; the others have stopped.
    RuntimeError
        The run was cancelled; its ranks have stopped.

    Notes
    -----
    Dask keeps the partitions of a worker until its part of the run is done. Besides them, it holds
    the rows of its range of vertices, who of it reads each vertex, and labels, hashed ids (8 bytes,
    unless ids are integers without a gap) and 16 bytes of offsets of all vertices. Ranges are
    chosen by samples, to have about as many ends of edges each.

    The result lies on the workers and cannot be made again in part: when a worker dies that holds
    some of it, what asks for it raises. Write it to files if it is to outlive its workers.

    Examples
    --------
    >>> import glp_rapids.dask
    >>> glp_rapids.dask.label_propagation("edges.csv")
    Traceback (most recent call last):
    ...
    TypeError: edges must be a dask frame of pandas, not 'edges.csv'
    """
    if not instance_of("dask.dataframe", "DataFrame")(edges):
        raise TypeError(f"edges must be a dask frame of pandas, not {shown(edges)}")
    if not isinstance(edges._meta, pd.DataFrame):
        raise TypeError(
            f"edges must be a dask frame of pandas, not of {type(edges._meta).__module__}; "
            "convert it with edges.to_backend('pandas')"
        )
    check_truth(directed=directed)
    check_choice("multigraph", multigraph, ("merge", "keep", "min"))
    names = {"source": source, "destination": destination, "weight": weight}
    columns = column_names(list(edges.columns), _how(names, directed))
    run_options = _run_options(dict(options))
    if directed and run_options.direction == "both":
        raise ValueError("direction='both' is for one process so far; use 'in' or 'out'")
    edges = edges[columns.names]
    return _on_cluster(edges, names, directed, multigraph, run_options, client)


def _run_options(options: dict[str, Any]) -> Options:
    """Check the options of a run; those of other runs may be given as they are by default."""
    refuse_unknown(options)
    for name, default in REFUSED.items():
        given = options.pop(name, None)
        if given is not None and not (isinstance(given, str | bool) and given == default):
            raise TypeError(f"glp_rapids.dask.label_propagation has no option {name!r}")
    return Options(**options)


def _how(names: dict[str, Any], directed: bool) -> EdgesAsGiven:
    return EdgesAsGiven(names["source"], names["destination"], names["weight"], directed, None)


def _on_cluster(
    edges: Any, names: dict, directed: bool, multigraph: str, options: Options, client: Any
) -> Any:
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
        client.register_plugin(ExchangePlugin())
        parts = client.compute(_dealt(edges.to_delayed(), workers, client))
        given = [parts[rank :: len(workers)] for rank in range(len(workers))]
        ranks: list[Any] = []
        try:
            for rank, address in enumerate(workers):
                ranks.append(client.submit(
                    _rank_of_run, given[rank], edges._meta, run, rank, workers, names, directed,
                    multigraph, options, workers=[address], allow_other_workers=False, pure=False,
                    retries=0,
                ))  # fmt: skip
            del parts, given
            _wait_for(client, ranks, workers)
            # data, not tasks: a rank alone cannot be run again when its worker is lost
            frames = [_kept(run, rank, client).get(timeout=GRACE) for rank in range(len(ranks))]
            meta = ranks[0].result()
        except BaseException as error:
            _stop(client, ranks, run, workers, error)
            raise
        for rank in range(len(ranks)):
            _kept(run, rank, client).delete()
    return dd.from_delayed(frames, meta=meta, verify_meta=False)


def _dealt(parts: list, workers: list[str], client: Any) -> list:
    """Say which worker computes which partition: they take turns."""
    import dask

    dealt = []
    for number, part in enumerate(parts):
        with dask.annotate(
            workers=[workers[number % len(workers)]], allow_other_workers=False
        ):  # fmt: skip
            dealt.append(dask.delayed(_itself)(part))
    return dealt


def _itself(part: Any) -> Any:
    return part


def _workers(client: Any) -> set[str]:
    """Return the addresses of the cluster's workers."""
    # `scheduler_info` may be what the client last refreshed by itself, which has no workers
    return set(client.nthreads())


def _wait_for(client: Any, ranks: list, workers: list[str]) -> None:
    """Wait until all ranks are done; raise as soon as one fails, or a worker is gone."""
    from glp_rapids.multigpu.exchange import RankFailed

    while not all(rank.done() for rank in ranks):
        if any(rank.status in ("error", "cancelled", "lost") for rank in ranks):
            break
        _refuse_lost(client, workers)
        time.sleep(LOOK)
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
    parts: list[pd.DataFrame], meta: pd.DataFrame, run: str, rank: int, workers: list[str],
    names: dict, directed: bool, multigraph: str, options: Options,
) -> pd.DataFrame:  # fmt: skip
    """Do the part of one rank, hand over its communities, and return a frame like them."""
    from distributed import get_client

    from glp_rapids.ingest import shuffle
    from glp_rapids.jit.parallel import threads_available
    from glp_rapids.multigpu.dask_exchange import DaskExchange
    from glp_rapids.propagation.rank_run import run_part
    from glp_rapids.propagation.results import renumbered
    from glp_rapids.propagation.variants.classic import Classic

    exchange = DaskExchange(run, rank, workers)
    if arrow := sys.modules.get("pyarrow"):  # it keeps what files were read by: a good part of them
        arrow.default_memory_pool().release_unused()
    try:
        frames = [part for part in parts if len(part)] or [meta]
        parts.clear()
        how = _how(names, directed)
        part = shuffle.part_of(exchange, frames, how, multigraph, options.direction)
        outcome = run_part(exchange, part, Classic(), options, threads_available())
        partition = renumbered(outcome.labels)[part.first : part.last]
        found = pd.DataFrame({**part.vertices.take(None), "partition": partition})
        found.attrs["glp"] = outcome.report
        client = get_client()
        there = client.scatter(found, hash=False)
        _kept(run, rank, client).set(there)
        exchange.barrier()  # nobody forgets what another one still waits for
    except BaseException as error:
        exchange.abort(error)
        raise
    exchange.close()
    return found.iloc[:0]
