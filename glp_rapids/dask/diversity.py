"""Structural diversity on the workers of a Dask cluster."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from glp_rapids.common.checks import check_integer, check_truth
from glp_rapids.dask.cluster import on_cluster
from glp_rapids.diversity.models import model_of
from glp_rapids.diversity.rank_scores import scores_of_rank
from glp_rapids.ingest.options import EdgeOptions

if TYPE_CHECKING:
    from distributed import Client


def structural_diversity(
    edges: Any, k: int | None, model: str = "component", *, symmetrize: bool = False,
    client: Client | None = None, **options: Unpack[EdgeOptions],
) -> Any:  # fmt: skip
    """Count the social contexts of every vertex on the workers of a Dask cluster.

    Parameters
    ----------
    edges, client
        As in `label_propagation`.
    k, model, symmetrize
        As in `glp_rapids.structural_diversity`.
    **options
        ``device``: "cpu" or "gpu", where the workers work, as in `label_propagation`; ``source``,
        ``destination``, ``directed`` and ``vertices`` as in `glp_rapids.as_graph`.

    Returns
    -------
    dask.dataframe.DataFrame
        ``vertex`` (``0_vertex``, ... for ids of several columns) and ``score``, with ``k=None``
        ``vertex, k, score``, as of `glp_rapids.structural_diversity`: a partition a worker, where
        it stays; vertices are sorted across partitions. ``.attrs["glp"]["ranks"]`` says what each
        worker has done.

    Raises
    ------
    ValueError, TypeError, WorkerLost, RuntimeError
        As in `label_propagation` and `glp_rapids.structural_diversity`.

    Notes
    -----
    No worker has all ids, but each gets the neighbour lists of all vertices: 4 bytes for either
    end of an edge (8 from 2**31 vertices on) and 8 a vertex, besides what `label_propagation`
    takes. The vertices are dealt to workers by what they are estimated to cost, the costliest
    first, wherever they are; nobody steals from another.

    Huang et al., "Top-k structural diversity search in large networks", VLDB Journal 24 (2015).

    Examples
    --------
    >>> import glp_rapids.dask
    >>> glp_rapids.dask.structural_diversity("edges.csv", 4)
    Traceback (most recent call last):
    ...
    TypeError: edges must be a dask frame of pandas or cuDF, not 'edges.csv'
    """
    about = model_of(model)
    if k is not None:
        check_integer("k", k, about.least_k, f" for model={model!r}")
        k = int(k)
    check_truth(symmetrize=symmetrize)
    for name in options:
        if name not in EdgeOptions.__annotations__:  # but options of label propagation's runs
            raise TypeError(f"glp_rapids.dask.structural_diversity has no option {name!r}")
    if options.get("directed", False) is True and not symmetrize:
        raise ValueError(
            "edges are directed, and this is defined for undirected graphs; pass symmetrize=True "
            "to take every edge as undirected, or leave directed out"
        )
    find = partial(scores_of_rank, k=k, model=model)
    return on_cluster("structural_diversity", edges, options, client, find, direction="both")
