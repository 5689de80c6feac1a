"""The names under which users of cuGraph look for `multilevel_label_propagation`."""

from __future__ import annotations

import inspect
from typing import Any, Unpack

from glp_rapids.common.calls import warn_caller
from glp_rapids.common.checks import check_integer, is_number, refuse_unknown, shown
from glp_rapids.common.progress import Progress
from glp_rapids.common.types import Frame
from glp_rapids.communities.multilevel import (
    MAX_LEVEL,
    check_seed,
    check_tolerance,
    multilevel_label_propagation,
)
from glp_rapids.ingest.options import EdgeOptions


def louvain(
    graph: Any,
    max_level: int | None = None,
    max_iter: int | None = None,
    resolution: float = 1.0,
    threshold: float = 1e-7,
    *,
    seed: int = 0,
    memory_limit: int | str | None = None,
    progress: Progress = False,
    **edges: Unpack[EdgeOptions],
) -> tuple[Frame, float]:
    """Find communities of high modularity: `multilevel_label_propagation` without refinement.

    It takes the arguments of ``cugraph.louvain``, in their order, and has its result; but
    communities are the same every time.

    Parameters
    ----------
    graph : graph-like
        Whatever `as_graph` takes, undirected.
    max_level : int, optional
        At most so many levels; None: 100.
    max_iter : int, optional
        An older name of ``max_level`` in cuGraph; not both.
    resolution : float
        Above 1 communities are smaller, below larger.
    threshold : float
        No more iterations after one by which modularity gained at most so much. cuGraph asks that
        of every level.
    seed, memory_limit, progress
        As in `multilevel_label_propagation`.
    **edges
        How to read ``graph``; see `as_graph`.

    Returns
    -------
    frame
        ``vertex, partition``, as of `multilevel_label_propagation`.
    float
        The modularity.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `multilevel_label_propagation`.

    Notes
    -----
    Costs, and what differs from Louvain's method (Blondel et al. 2008): see
    `multilevel_label_propagation`. A community may be disconnected; `leiden` finds none that is.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import louvain
    >>> edges = pd.DataFrame({"src": [0, 0, 1, 3, 3, 4, 2], "dst": [1, 2, 2, 4, 5, 5, 3]})
    >>> parts, modularity = louvain(edges)
    >>> parts["partition"].tolist(), round(modularity, 4)
    ([0, 0, 0, 1, 1, 1], 0.3571)
    """
    if max_iter is not None:
        if max_level is not None:
            raise ValueError("max_iter is another name of max_level; leave one of them out")
        check_integer("max_iter", max_iter, 1, or_none=" or None")
        max_level = max_iter
    if max_level is not None:
        check_integer("max_level", max_level, 1, or_none=" or None")
    refuse_unknown(edges, _options_of(louvain))
    check_tolerance("threshold", threshold)
    found = multilevel_label_propagation(
        graph, refine=False, max_level=MAX_LEVEL if max_level is None else max_level,
        resolution=resolution, tol=threshold, seed=seed, memory_limit=memory_limit,
        progress=progress, **edges,
    )  # fmt: skip
    return found, found.attrs["glp"]["modularity"]


def leiden(
    graph: Any,
    max_iter: int = MAX_LEVEL,
    resolution: float = 1.0,
    random_state: int | None = None,
    theta: float = 1.0,
    *,
    iterations: int | None = None,
    memory_limit: int | str | None = None,
    progress: Progress = False,
    **edges: Unpack[EdgeOptions],
) -> tuple[Frame, float]:
    """Find connected communities of high modularity: `multilevel_label_propagation`.

    It takes the arguments of ``cugraph.leiden``, in their order, and has its result; but
    communities are the same every time.

    Parameters
    ----------
    graph : graph-like
        Whatever `as_graph` takes, undirected.
    max_iter : int
        At most so many levels, as in cuGraph.
    resolution : float
        Above 1 communities are smaller, below larger.
    random_state : int, optional
        The seed; None, which draws one in cuGraph, always means 0.
    theta : float
        Of no effect, and other values than 1 get a warning: cuGraph's refinement draws by it.
    iterations : int, optional
        As in `multilevel_label_propagation`; cuGraph makes one.
    memory_limit, progress
        As in `multilevel_label_propagation`.
    **edges
        How to read ``graph``; see `as_graph`.

    Returns
    -------
    frame
        ``vertex, partition``, as of `multilevel_label_propagation`.
    float
        The modularity.

    Raises
    ------
    ValueError, TypeError, MemoryError
        As `multilevel_label_propagation`.

    Notes
    -----
    Costs, and what differs from Leiden's method (Traag, Waltman and van Eck 2019): see
    `multilevel_label_propagation`.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import leiden
    >>> edges = pd.DataFrame({"src": [0, 0, 1, 3, 3, 4, 2], "dst": [1, 2, 2, 4, 5, 5, 3]})
    >>> parts, modularity = leiden(edges, random_state=7)
    >>> parts["partition"].tolist(), round(modularity, 4)
    ([0, 0, 0, 1, 1, 1], 0.3571)
    """
    check_integer("max_iter", max_iter, 1)
    if not is_number(theta):
        raise TypeError(f"theta must be a number, not {shown(theta)}")
    if theta != 1:
        warn_caller(f"theta={shown(theta)} has no effect: the refinement here draws nothing by it")
    refuse_unknown(edges, _options_of(leiden))
    if random_state is not None:
        check_seed("random_state", random_state)
    found = multilevel_label_propagation(
        graph, max_level=max_iter, resolution=resolution, iterations=iterations,
        seed=0 if random_state is None else random_state, memory_limit=memory_limit,
        progress=progress, **edges,
    )  # fmt: skip
    return found, found.attrs["glp"]["modularity"]


def _options_of(function: Any) -> list[str]:
    """List the keywords of a function that takes a graph and how to read it."""
    _, *own, _ = inspect.signature(function).parameters
    return [*own, *EdgeOptions.__annotations__]
