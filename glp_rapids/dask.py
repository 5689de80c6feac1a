"""Label propagation on a Dask cluster: dask frames of edges in, dask frames of communities out.

Each worker reads its partitions, and the workers rank the ids, send each edge to the worker that
owns its row (`ingest.shuffle`) and propagate labels together (`engines.rank_cpu`): no worker ever
has all edges. Labels are those of one process, bit for bit. The ranks run on the workers' CPUs.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import pandas as pd

from glp_rapids.common.checks import check_choice, check_truth, shown
from glp_rapids.frames.foreign import instance_of
from glp_rapids.propagation.options import Options, SweepOptions

if TYPE_CHECKING:
    from distributed import Client

# What a run of one process takes that one of several workers does not, so far.
REFUSED = ("device", "devices", "memory_limit", "way", "strategy", "vertices", "progress")
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

    Notes
    -----
    A worker holds its partitions while the graph is made, then the rows of its range of vertices,
    who of it reads each vertex, and labels, hashed ids (8 bytes, unless ids are integers without a
    gap) and 16 bytes of offsets of all vertices. Ranges are chosen by samples, to have about as
    many ends of edges each. Weights of duplicate edges that are floats are added on one worker: the
    last bit of a sum may differ from that of one process, as it follows from the largest weight
    there.

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
    for name in REFUSED:
        if options.get(name) is not None:
            raise TypeError(f"glp_rapids.dask.label_propagation has no option {name!r}")
        options.pop(name, None)
    run_options = Options(**options)
    if directed and run_options.direction == "both":
        raise ValueError("direction='both' is for one process so far; use 'in' or 'out'")
    names = {"source": source, "destination": destination, "weight": weight}
    return _on_cluster(edges, names, directed, multigraph, run_options, client)


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
        edges = edges[_columns(edges, names)]
        parts = client.compute(_dealt(edges.to_delayed(), workers, client))
        given = [parts[rank :: len(workers)] for rank in range(len(workers))]
        ranks = [
            client.submit(
                _rank_of_run, given[rank], edges._meta, run, rank, workers, names, directed,
                multigraph, options, workers=[address], allow_other_workers=False, pure=False,
                retries=0,
            )
            for rank, address in enumerate(workers)
        ]  # fmt: skip
        del parts, given
        try:
            _wait_for(client, ranks, workers)
        except BaseException as error:
            _stop(client, ranks, run, workers, error)
            raise
        meta = client.submit(_empty, ranks[0], pure=False).result()
    return dd.from_delayed(ranks, meta=meta, verify_meta=False)


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


def _columns(edges: Any, names: dict) -> list[str]:
    """List the columns that are read, of those that are there."""
    wanted: list[str] = []
    for name in names.values():
        wanted += [] if name is None else [name] if isinstance(name, str) else list(name)
    return [name for name in edges.columns if name in wanted]


def _itself(part: Any) -> Any:
    return part


def _workers(client: Any) -> set[str]:
    """Return the addresses of the cluster's workers."""
    return set(client.scheduler_info(n_workers=-1)["workers"])


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
        raise RuntimeError(f"ranks ended as {[rank.status for rank in ranks]}; call it again")


def _refuse_lost(client: Any, workers: list[str]) -> None:
    """Raise if a worker is gone."""
    if lost := set(workers) - _workers(client):
        raise WorkerLost(
            f"{', '.join(sorted(lost))} of {len(workers)} workers died or left the cluster during "
            "label propagation; the others have stopped: call it again, on those that are left"
        )


def _stop(client: Any, ranks: list, run: str, workers: list[str], error: BaseException) -> None:
    """Let the ranks that are left fail, and drop what was asked for."""
    there = sorted(_workers(client) & set(workers))
    if there:
        client.run(_fail, run, f"{type(error).__name__}: {error}", workers=there)
    client.cancel(ranks, force=True)


def _fail(run: str, why: str, dask_worker: Any) -> None:
    from glp_rapids.multigpu.dask_exchange import NAME

    dask_worker.plugins[NAME].fail(run, why)


def _empty(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.iloc[:0]


def _rank_of_run(
    parts: list[pd.DataFrame], meta: pd.DataFrame, run: str, rank: int, workers: list[str],
    names: dict, directed: bool, multigraph: str, options: Options,
) -> pd.DataFrame:  # fmt: skip
    """Do the part of one rank, on its worker; return the communities of its vertices."""
    from glp_rapids.ingest import readers, shuffle
    from glp_rapids.jit.parallel import threads_available
    from glp_rapids.multigpu.dask_exchange import DaskExchange
    from glp_rapids.propagation.rank_run import run_part
    from glp_rapids.propagation.results import renumbered
    from glp_rapids.propagation.variants.classic import Classic

    exchange = DaskExchange(run, rank, workers)
    try:
        how = readers.Options(
            names["source"], names["destination"], names["weight"], directed, None
        )
        frames = [part for part in parts if len(part)] or [meta]
        parts.clear()
        part = shuffle.part_of(exchange, frames, how, multigraph, options.direction)
        outcome = run_part(exchange, part, Classic(), options, threads_available())
        partition = renumbered(outcome.labels)[part.first : part.last]
        found = pd.DataFrame({**part.vertices.take(None), "partition": partition})
        found.attrs["glp"] = outcome.report
        exchange.barrier()  # nobody forgets what another one still waits for
    except BaseException as error:
        exchange.abort(error)
        raise
    exchange.close()
    return found
