"""The variants of label propagation on the workers of a Dask cluster.

What they find is what the functions of the same names in `glp_rapids` find in one process, bit for
bit; of these they are the bodies, called with a rank's part of the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Unpack

from glp_rapids.common.checks import check_truth, refuse_unknown, shown
from glp_rapids.dask.cluster import on_cluster, refuse_options
from glp_rapids.frames.kinds import Frame
from glp_rapids.frames.partitions import is_frame
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.propagation.call import settling
from glp_rapids.propagation.options import Options, SweepOptions
from glp_rapids.propagation.program import Program
from glp_rapids.propagation.variants import classic, layered, seeded
from glp_rapids.propagation.variants import speaker_listener as speakers

if TYPE_CHECKING:
    from distributed import Client

    from glp_rapids.propagation.rank_graph import RankGraph

# What a run of one process takes that one of several workers does not, so far; by default:
REFUSED: dict[str, Any] = {
    "devices": None, "memory_limit": None, "touched": None, "way": "auto", "strategy": "auto",
    "progress": False,
}  # fmt: skip


def label_propagation(
    edges: Any, *, renumber: bool = True, connected: bool = False, initial: Any = None,
    client: Client | None = None, **options: Unpack[SweepOptions],
) -> Any:  # fmt: skip
    """Find communities on the workers of a Dask cluster.

    Parameters
    ----------
    edges : dask.dataframe.DataFrame
        Frames of pandas or cuDF: an edge a row, ids of any kind in one column or several.
    renumber, connected : bool
        As in `glp_rapids.label_propagation`. Communities are cut by the workers' CPUs.
    initial : frame of dask or pandas, optional
        An earlier result to go on from, as in `glp_rapids.label_propagation`. Every vertex is
        evaluated at first, so there is no ``touched``.
    client : distributed.Client, optional
        Of the cluster; None: the current one. Each of its workers becomes a rank. One run at a
        time: a second one on the same cluster waits.
    **options
        ``device``: "cpu" or "gpu", where the workers work; by default frames of pandas on CPUs, and
        those of cuDF on GPUs if each worker has one of its own, as `dask_cuda.LocalCUDACluster`
        gives it. ``source``, ``destination``, ``weight``, ``directed``, ``multigraph``,
        ``vertices`` (which may be a dask frame or Series) as in `glp_rapids.as_graph`;
        ``max_iter``, ``update``, ``classes``, ``explore``, ``tie_break``, ``retain``, ``tol``,
        ``direction``, ``seed``, ``skip_inactive`` as in `glp_rapids.label_propagation`.

    Returns
    -------
    dask.dataframe.DataFrame
        ``vertex`` (``0_vertex``, ... for ids of several columns) and ``partition``: a partition a
        worker, where it stays; vertices are sorted across partitions. Frames are of the kind of
        those of ``edges``. ``.attrs["glp"]["ranks"]`` says how each worker's part of the run went,
        as does, in frames of pandas, ``.attrs["glp"]`` of its partition.

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
    GPUs exchange arrays by NCCL, whose communicators stay on the workers for further runs; ids go
    over Dask's own connections. When a run on GPUs fails, a worker whose rank does not end within
    8 seconds, since NCCL waits there for a dead one, is restarted, and what it held is lost.

    All partitions are computed before any worker begins its part of the run, and Dask keeps those
    of a worker until it is done with it. Besides them, it holds the rows of its range of vertices,
    who of it reads each vertex, and labels, hashed ids (8 bytes, unless ids are integers without a
    gap) and 16 bytes of offsets of all vertices. Ranges are chosen by samples, to have about as
    many ends of edges each.

    The result lies on the workers and cannot be made again in part: when a worker dies that holds
    some of it, what asks for it raises. Write it to files if it is to outlive its workers.

    Examples
    --------
    >>> import glp_rapids.dask
    >>> glp_rapids.dask.label_propagation("edges.csv")
    Traceback (most recent call last):
    ...
    TypeError: edges must be a dask frame of pandas or cuDF, not 'edges.csv'
    """
    check_truth(renumber=renumber, connected=connected)
    find = partial(
        classic.of_program, program=classic.Classic(), renumber=renumber, connected=connected
    )
    return _by_workers("label_propagation", edges, options, client, find, initial)


def propagate(
    edges: Any, program: Program, *, renumber: bool = True, initial: Any = None,
    client: Client | None = None, **options: Unpack[SweepOptions],
) -> Any:  # fmt: skip
    """Run a program of your own on the workers of a Dask cluster.

    Parameters
    ----------
    edges, client
        As in `label_propagation`.
    program : Program
        An instance of your subclass of `glp_rapids.Program`, which is pickled: the workers import
        its module, or, if it is of the script that runs, get its code. ``initial_state`` is called
        on every worker with a graph that has ``number_of_vertices``, ``index_dtype``, ``directed``,
        ``degree`` and ``row_weights()`` of ``rows(direction)``, for all vertices, but no lists; of
        directed edges that the run reads both ways only ``row_weights()`` of ``rows("both")``. It
        must return the same on all of them.
    renumber, initial
        As in `label_propagation`; a null, or -1, in ``initial`` stands for a vertex that is silent.
    **options
        As in `label_propagation`.

    Returns
    -------
    dask.dataframe.DataFrame
        ``vertex``, ``partition`` (-1 where a vertex is silent), then the program's
        ``result_columns``; otherwise as in `label_propagation`.

    Raises
    ------
    ValueError, TypeError, WorkerLost, RuntimeError
        As in `label_propagation` and `glp_rapids.propagate`.

    Notes
    -----
    As in `label_propagation`; each worker holds the state of all vertices.

    Examples
    --------
    >>> import glp_rapids.dask
    >>> glp_rapids.dask.propagate("edges.csv", glp_rapids.Program())
    Traceback (most recent call last):
    ...
    TypeError: edges must be a dask frame of pandas or cuDF, not 'edges.csv'
    """
    classic.check_program(program)
    check_truth(renumber=renumber)
    find = partial(classic.of_program, program=program, renumber=renumber)
    return _by_workers("propagate", edges, options, client, find, initial)


def layered_label_propagation(
    edges: Any, *, gammas: Sequence[float] = layered.GAMMAS, initial: Any = None,
    client: Client | None = None, **options: Unpack[SweepOptions],
) -> Any:  # fmt: skip
    """Find communities at several resolutions on the workers of a Dask cluster.

    Parameters
    ----------
    edges, client
        As in `label_propagation`.
    gammas : sequence of float
        The resolutions, as in `glp_rapids.layered_label_propagation`.
    initial : frame of dask or pandas, optional
        An earlier result to go on from, as there; every vertex is evaluated.
    **options
        As in `label_propagation`.

    Returns
    -------
    dask.dataframe.DataFrame
        ``vertex``, ``gamma``, ``partition``: in each partition every vertex of its worker once a
        gamma, in the order of ``gammas``; otherwise as in `label_propagation`.

    Raises
    ------
    ValueError, TypeError, WorkerLost, RuntimeError
        As in `label_propagation` and `glp_rapids.layered_label_propagation`.

    Notes
    -----
    As in `label_propagation`. Each worker holds the labels of all vertices for every gamma, and how
    many vertices each label has.

    Examples
    --------
    >>> import glp_rapids.dask
    >>> glp_rapids.dask.layered_label_propagation("edges.csv", gammas=[-1])
    Traceback (most recent call last):
    ...
    ValueError: gammas must be finite and at least 0, not -1
    """
    find = partial(layered.layers, gammas=layered.checked_gammas(gammas))
    return _by_workers("layered_label_propagation", edges, options, client, find, initial)


def speaker_listener(
    edges: Any, *, max_labels: int = 5, threshold: float = 0.1, max_iter: int = 20,
    client: Client | None = None, **options: Unpack[SweepOptions],
) -> Any:  # fmt: skip
    """Find overlapping communities on the workers of a Dask cluster.

    Parameters
    ----------
    edges, client
        As in `label_propagation`.
    max_labels, threshold, max_iter
        As in `glp_rapids.speaker_listener`.
    **options
        ``classes``, ``update``, ``direction``, ``seed``, and how edges are read, as in
        `label_propagation`.

    Returns
    -------
    dask.dataframe.DataFrame
        ``vertex``, ``partition``, ``frequency`` as of `glp_rapids.speaker_listener`; otherwise as
        in `label_propagation`.

    Raises
    ------
    ValueError, TypeError, WorkerLost, RuntimeError
        As in `label_propagation` and `glp_rapids.speaker_listener`.

    Notes
    -----
    As in `label_propagation`. Each worker holds the memories of all vertices, 4 (max_iter + 1)
    bytes each.

    Examples
    --------
    >>> import glp_rapids.dask
    >>> glp_rapids.dask.speaker_listener("edges.csv", max_labels=0)
    Traceback (most recent call last):
    ...
    ValueError: max_labels must be at least 1, not 0
    """
    speakers.check(options, max_labels, threshold, max_iter)
    find = partial(speakers.cover, max_labels=max_labels, threshold=threshold)
    return _by_workers("speaker_listener", edges, options, client, find, **speakers.DEFAULTS)


def seeded_label_propagation(
    edges: Any, seeds: Any, *, max_hops: int | None = None, damping: float = 0.85,
    max_iter: int = 10, absent: Literal["raise", "drop"] = "raise", client: Client | None = None,
    **options: Unpack[SweepOptions],
) -> Any:  # fmt: skip
    """Spread the labels of a few known vertices on the workers of a Dask cluster.

    Parameters
    ----------
    edges, client
        As in `label_propagation`.
    seeds : frame of pandas, dict, or list, array or Series of ids
        As in `glp_rapids.seeded_label_propagation`; all of them go to each worker.
    max_hops, damping, max_iter, absent
        As in `glp_rapids.seeded_label_propagation`.
    **options
        ``update``, ``classes``, ``tie_break``, ``retain``, ``direction``, ``seed``, and how edges
        are read, as in `label_propagation`.

    Returns
    -------
    dask.dataframe.DataFrame
        ``vertex``, ``label``, ``score``, ``hop`` as of `glp_rapids.seeded_label_propagation`;
        otherwise as in `label_propagation`.

    Raises
    ------
    ValueError, TypeError, WorkerLost, RuntimeError
        As in `label_propagation` and `glp_rapids.seeded_label_propagation`.

    Notes
    -----
    As in `label_propagation`. Each worker holds 44 bytes of state of every vertex; of directed
    edges, while the state is made, its rows of the other direction, too.

    Examples
    --------
    >>> import glp_rapids.dask
    >>> glp_rapids.dask.seeded_label_propagation("edges.csv", [1], damping=2)
    Traceback (most recent call last):
    ...
    ValueError: damping must be above 0 and at most 1, not 2
    """
    seeded.check(options, max_hops, damping, max_iter, absent)
    find = partial(
        seeded.spread, seeds=seeds, max_hops=max_hops, damping=damping, absent=absent
    )
    return _by_workers("seeded_label_propagation", edges, options, client, find, **seeded.DEFAULTS)


def _by_workers(
    function: str, edges: Any, given: SweepOptions, client: Any, find: Callable[..., Frame],
    initial: Any = None, **defaults: Any,
) -> Any:  # fmt: skip
    """Check a call of a public function, and make it on the workers; return a dask frame."""
    options: dict[str, Any] = dict(given)
    how: Any = {name: options.pop(name) for name in EdgeOptions.__annotations__ if name in options}
    if initial is not None and not is_frame(initial):
        raise TypeError(
            "initial must be a frame of dask or pandas with the columns 'vertex' and 'partition', "
            f"not {shown(initial)}"
        )
    refuse_options(function, options, REFUSED)
    refuse_unknown(options, SweepOptions.__annotations__.keys() - REFUSED.keys())
    run_options = Options(**{**settling(initial), **defaults, **options})
    (found,) = on_cluster(
        edges, how, client, partial(_propagated, find, run_options),
        direction=run_options.direction, initial=initial,
    )  # fmt: skip
    return found


def _propagated(
    find: Callable[..., Frame], options: Options, graph: RankGraph, **more: Any
) -> list[Frame]:
    """Find what a variant does, on a rank."""
    from glp_rapids.propagation.rank_run import run_on_rank

    return [find(graph, options, run_on_rank, **more)]
