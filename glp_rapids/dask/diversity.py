"""Structural diversity on the workers of a Dask cluster: what one process finds, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from glp_rapids.common.checks import check_integer, check_truth, refuse_unknown
from glp_rapids.common.sizes import as_bytes
from glp_rapids.dask.cluster import on_cluster, refuse_options
from glp_rapids.diversity import ranks
from glp_rapids.diversity.models import model_of
from glp_rapids.frames.kinds import Frame
from glp_rapids.graph.simple import refuse_directed
from glp_rapids.ingest.options import EdgeOptions

if TYPE_CHECKING:
    from distributed import Client

REFUSED = {"devices": None, "progress": False}  # what only one process takes; by default


def structural_diversity(
    edges: Any, k: int | None, model: str = "component", *, symmetrize: bool = False,
    memory_limit: int | str | None = None, client: Client | None = None,
    **options: Unpack[EdgeOptions],
) -> Any:  # fmt: skip
    """Count the social contexts of every vertex on the workers of a Dask cluster.

    Parameters
    ----------
    edges : dask.dataframe.DataFrame
        Frames of pandas or cuDF: an edge a row, ids of any kind in one column or several.
    k, model, symmetrize
        As in `glp_rapids.structural_diversity`.
    memory_limit : int or str, optional
        As there, of each worker.
    client : distributed.Client, optional
        Of the cluster; None: the current one. Each of its workers becomes a rank. One run at a
        time: a second one on the same cluster waits.
    **options
        ``source``, ``destination``, ``weight``, ``directed``, ``multigraph``, ``vertices`` (which
        may be a dask frame or Series) as in `glp_rapids.as_graph`; ``device``: "cpu" or "gpu", as
        in `label_propagation`.

    Returns
    -------
    dask.dataframe.DataFrame
        ``vertex``, ``score``, with ``k=None`` ``vertex, k, score`` as of
        `glp_rapids.structural_diversity`: a partition a worker, where it stays; vertices are sorted
        across partitions. Frames are of the kind of those of ``edges``. ``.attrs["glp"]["ranks"]``
        says of each worker, as does, in frames of pandas, ``.attrs["glp"]`` of its partition, what
        ``attrs`` does there; ``evaluated`` is how many vertices this worker looked at.

    Raises
    ------
    ValueError, TypeError, MemoryError
        There is no cluster, or none with workers; or as in `glp_rapids.structural_diversity`.
    WorkerLost
        A worker died during the run; the others have stopped.
    RuntimeError
        The run was cancelled; its ranks have stopped.

    Notes
    -----
    An ego-network takes the rows of all neighbours of its vertex, which may be anywhere. So, when
    the edges are ranked and sorted as for `label_propagation`, each worker is sent the rows of
    all: 4 bytes an entry (twice the edges; 8 from 2**31 vertices on) and 16 a vertex, besides its
    own part. The graph must fit each worker, what is shared is the work. Each deals its vertices to
    all workers by what their ego-networks are estimated to cost; nobody steals from another one.

    As for `label_propagation`, the result lies on the workers and cannot be made again in part.

    Examples
    --------
    >>> import glp_rapids.dask
    >>> glp_rapids.dask.structural_diversity("edges.csv", 4)
    Traceback (most recent call last):
    ...
    TypeError: edges must be a dask frame of pandas or cuDF, not 'edges.csv'
    """
    least_k = model_of(model).least_k
    if k is not None:
        check_integer("k", k, least_k, f" for model={model!r}")
        k = int(k)
    find = partial(
        ranks.scores_of_all, k=k, model=model, memory_limit=as_bytes("memory_limit", memory_limit)
    )
    (found,) = _by_workers("structural_diversity", edges, symmetrize, options, client, find)
    return found


def top_structural_diversity(
    edges: Any, t: int, k: int, model: str = "component", *, contexts: bool = True,
    prune: bool = True, symmetrize: bool = False, memory_limit: int | str | None = None,
    client: Client | None = None, **options: Unpack[EdgeOptions],
) -> Any:  # fmt: skip
    """Find the vertices with the most social contexts on the workers of a Dask cluster.

    Parameters
    ----------
    edges, client
        As in `structural_diversity`.
    t, k, model, contexts, prune
        As in `glp_rapids.top_structural_diversity`.
    symmetrize, memory_limit
        As in `structural_diversity`.
    **options
        As in `structural_diversity`.

    Returns
    -------
    best : dask.dataframe.DataFrame
        ``vertex, score`` as of `glp_rapids.top_structural_diversity`, the best first across
        partitions, of which each worker has one.
    members : dask.dataframe.DataFrame
        Only with ``contexts``: ``vertex, context, member``, in the same order. ``.attrs`` of both
        as in `structural_diversity`.

    Raises
    ------
    ValueError, TypeError, MemoryError, WorkerLost, RuntimeError
        As in `structural_diversity` and `glp_rapids.top_structural_diversity`.

    Notes
    -----
    As in `structural_diversity`. All workers evaluate a batch together and tell one another its
    scores, which say who is in the next one: as many vertices are evaluated as in one process.

    Examples
    --------
    >>> import glp_rapids.dask
    >>> glp_rapids.dask.top_structural_diversity("edges.csv", 0, 4)
    Traceback (most recent call last):
    ...
    ValueError: t must be at least 1, not 0
    """
    check_integer("k", k, model_of(model).least_k, f" for model={model!r}")
    check_integer("t", t, 1)
    check_truth(contexts=contexts, prune=prune)
    find = partial(
        ranks.best_of_all, t=int(t), k=int(k), model=model, contexts=contexts, prune=prune,
        memory_limit=as_bytes("memory_limit", memory_limit),
    )  # fmt: skip
    function = "top_structural_diversity"
    found = _by_workers(function, edges, symmetrize, options, client, find, 1 + contexts)
    return tuple(found) if contexts else found[0]


def _by_workers(
    function: str, edges: Any, symmetrize: bool, given: EdgeOptions, client: Any,
    find: Callable[..., list[Frame]], frames: int = 1,
) -> list[Any]:  # fmt: skip
    """Check what is left of a call, and make it on the workers; return dask frames."""
    how: Any = dict(given)
    refuse_options(function, how, REFUSED)
    refuse_unknown(how, EdgeOptions.__annotations__)
    check_truth(directed=how.get("directed", False))
    refuse_directed(how.get("directed", False), symmetrize)
    undirected: Any = {**how, "directed": False}
    return on_cluster(edges, undirected, client, find, frames=frames)
