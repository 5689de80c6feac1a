"""Label propagation and its variants as functions: check and convert, run, give a frame back."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import (
    as_float,
    check_integer,
    check_share,
    check_truth,
    is_number,
    is_sequence,
    shown,
)
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.propagation.options import Options, SweepOptions
from glp_rapids.propagation.program import Program
from glp_rapids.propagation.run import run
from glp_rapids.propagation.variants import Classic, Layered, Seeded, SpeakerListener

if TYPE_CHECKING:
    from glp_rapids.frames.kinds import Frame
    from glp_rapids.graph.graph import BaseGraph


# The layers of `layered_label_propagation` unless the caller says: to look at, and for an order.
GAMMAS = tuple(2**i for i in range(10))
ORDERING_GAMMAS = (0, *(2.0**-i for i in (11, 9, 7, 5, 3)))


def _results() -> ModuleType:
    """Give the module that makes frames; pandas waits for a first call."""
    from glp_rapids.propagation import results

    return results


def _prepared(graph: Any, options: SweepOptions, **defaults: Any) -> tuple[BaseGraph, Options]:
    """Split the keywords, check those of the run before the graph is even looked at, convert."""
    from glp_rapids.ingest.read import as_any_graph

    names = EdgeOptions.__annotations__
    edges = {name: value for name, value in options.items() if name in names}
    others = {name: value for name, value in options.items() if name not in names}
    if unknown := sorted(others.keys() - SweepOptions.__annotations__.keys()):
        known = ", ".join(sorted(SweepOptions.__annotations__))
        raise TypeError(f"unknown option {unknown[0]!r}; there are {known}")
    run_options = Options(**{**defaults, **others})
    return as_any_graph(graph, **edges), run_options


@guarded
def label_propagation(
    graph: Any, *, renumber: bool = True, **options: Unpack[SweepOptions]
) -> Frame:
    """Find communities: every vertex takes the label that weighs most among its neighbours.

    Parameters
    ----------
    graph : frame, tuple of arrays, sparse matrix, networkx, cugraph or glp_rapids graph
        Whatever `as_graph` takes; its keywords (``source=``, ``destination=``, ``weight=``,
        ``directed=``, ``vertices=``, ``multigraph=``, ``device=``) are taken here too.
    renumber : bool
        True: ``partition`` counts communities from 0, by the smallest vertex in each. False: it
        is the id of the vertex that the winning label started from.
    max_iter : int
        Sweeps at the most (default 100); 0 leaves every vertex with its own label.
    update : {"semi", "sync"}
        "semi" (default): ``classes`` classes of vertices (default 32) are updated one after the
        other, each reading the labels as they stand. "sync": all vertices at once.
    explore : int
        At most so many sweeps at first (default 10) settle ties in a random order, a new one each
        sweep, which lets communities merge. Then the run settles; it does so earlier if a sweep
        changes hardly fewer labels than the one before (less than 4% fewer), the sign that one
        label begins to flood the graph.
    tie_break : {"min", "max", "hash"}
        Which of the best labels wins while settling: the smallest, the largest, or the first in a
        random order of the labels.
    retain : bool
        While settling, a vertex whose label is among the best keeps it.
    tol : float, optional
        The run ends when a settling sweep changes at most this share of the vertices (default
        0.001), or when three in a row change no fewer labels than an earlier one did. 0: neither,
        only when nothing changes; this is the default with ``retain=False``, where a run is asked
        for by its number of sweeps.
    direction : {"in", "out", "both"}
        For directed graphs, whose labels a vertex reads: those of its predecessors (labels flow
        along the edges), of its successors, or of both (a reciprocal pair counts twice).
    seed : int
        Of the random orders. The same seed gives the same result on every device, every time.
    skip_inactive : bool
        Leave out vertices whose evaluation cannot change anything; the result is the same.
    strategy : {"auto", "shared+warp", "shared", "global", "sort", "decode"}
        How a GPU counts votes; the result is the same. "auto" is the fastest: one persistent
        kernel for all sweeps. The others are for comparison: GLP's tables in shared memory with and
        without warps that serve many vertices, hash tables in global memory, and Kozawa et al.'s
        sort. For a `CompressedGraph` there are "auto", which decodes lists as they are needed, and
        "decode", which decodes everything before each sweep. A CPU has one way and takes no notice.
    progress : bool or callable
        Show a bar, or call the function with a dict after every sweep.

    Returns
    -------
    frame
        ``vertex``: the ids as they came, every vertex once, sorted. ``partition``: integer
        community, or an id (``renumber=False``). ``.attrs["glp"]`` holds ``sweeps``, ``explored``,
        ``changed`` (labels a sweep), ``converged``, ``seconds``, ``device``, ``memory_in_use``;
        and ``compressed``, the scheme, where lists were read compressed.

    Raises
    ------
    ValueError, TypeError
        An option or the graph is not as described; the message says what and how to mend it.

    Notes
    -----
    O(m) time a sweep, of which settled vertices are left out. Memory, the graph included: on a GPU
    4 bytes an edge (8 or 12 with weights) and at the peak 40 to 54 bytes a vertex
    (`glp-rapids bench gpu`, five graphs); 22 a vertex that has neighbours stay on the graph for the
    next run of the same kind. On a CPU 4 bytes an edge
    more, 8 or 12 with weights (a copy in the order of the classes), and 8 bytes a vertex for each
    thread.
    A `CompressedGraph` is read as it is. On a CPU that takes 30 bytes a vertex beside it, 16 to 24
    more with weights, and 8 for each thread. Of a directed one the transpose, for
    ``direction="in"``, is made at the first run, by way of the plain graph, and kept compressed;
    ``direction="both"`` decodes the graph, as lists that name a neighbour twice have no compressed
    form.
    Votes are added in 64-bit fixed point. The framework is GLP's (SIGMOD 2021), semi-synchronous
    classes are Kozawa et al.'s (CIKM 2017).
    With ``update="sync", explore=0, tie_break="min", retain=False, renumber=False`` it is CDLP of
    LDBC Graphalytics.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import label_propagation
    >>> edges = pd.DataFrame({"src": ["a", "a", "b", "d", "d", "e"],
    ...                       "dst": ["b", "c", "c", "e", "f", "f"]})
    >>> label_propagation(edges)["partition"].tolist()
    [0, 0, 0, 1, 1, 1]
    """
    check_truth(renumber=renumber)
    prepared, run_options = _prepared(graph, options)
    outcome = run(prepared, Classic(), run_options)
    return _results().communities(outcome, renumber)


@guarded
def propagate(
    graph: Any, program: Program, *, renumber: bool = True, **options: Unpack[SweepOptions]
) -> Frame:
    """Run a program of your own: any variant of label propagation in a few lines of Python.

    Parameters
    ----------
    graph : frame, tuple of arrays, sparse matrix, networkx, cugraph or glp_rapids graph
        Whatever `as_graph` takes, with its keywords.
    program : Program
        An instance of your subclass of `Program`.
    renumber : bool
        As in `label_propagation`, which describes all further options.

    Returns
    -------
    frame
        ``vertex``, ``partition`` (-1, or null with ``renumber=False``, where a vertex is silent),
        then the program's ``result_columns``; ``.attrs["glp"]`` as in `label_propagation`.

    Raises
    ------
    TypeError
        A function does not compile: the message names it and says why.
    ValueError
        Options or state are not as described.

    Notes
    -----
    Programs are GLP's (Ye et al., SIGMOD 2021, section 3.1). Compiled once and kept on disk; what
    a program leaves as it is in classic label propagation costs what it costs there.

    Examples
    --------
    >>> import pandas as pd
    >>> import glp_rapids
    >>> class Squared(glp_rapids.Program):
    ...     def label_score(v, label, freq, state):
    ...         return freq * freq
    >>> edges = pd.DataFrame({"src": [1, 1, 2], "dst": [2, 3, 3]})
    >>> glp_rapids.propagate(edges, Squared())["partition"].tolist()
    [0, 0, 0]
    """
    if not isinstance(program, Program):
        hint = " (write Name() to make one)" if isinstance(program, type) else ""
        raise TypeError(
            f"program must be an instance of glp_rapids.Program, not {shown(program)}{hint}"
        )
    check_truth(
        renumber=renumber,
        skip_inactive=program.skip_inactive,
        count_volumes=program.count_volumes,
    )
    prepared, run_options = _prepared(graph, options)
    outcome = run(prepared, program, run_options)
    return _results().communities(outcome, renumber, program.result_columns)


@guarded
def layered_label_propagation(
    graph: Any,
    *,
    gammas: Sequence[float] = GAMMAS,
    order: bool = False,
    renumber: bool = True,
    **options: Unpack[SweepOptions],
) -> Frame:
    """Find communities at several resolutions, or the vertex ordering that they add up to.

    Large labels are charged for what they hold, so a larger gamma finds smaller communities.

    Parameters
    ----------
    graph : frame, tuple of arrays, sparse matrix, networkx, cugraph or glp_rapids graph
        Whatever `as_graph` takes, with its keywords.
    gammas : sequence of float
        The resolutions, each at least 0; one result a gamma. 0 is classic label propagation;
        the larger, the finer. Default: 1, 2, 4, ... 512; with ``order=True`` 0, 1/2048, 1/512,
        1/128, 1/32, 1/8, which compress best, in whatever order they are given.
    order : bool
        Give an ordering instead of the communities: those of the coarsest layer side by side,
        in each those of the next finer one, and so on; by falling degree in the finest. Neighbours
        come to lie close together, so the graph compresses and its rows read nearby memory.
    renumber : bool
        As in `label_propagation`, which describes all further options; without a meaning, and
        refused if False, with ``order=True``.

    Returns
    -------
    frame
        ``vertex``, ``gamma``, ``partition``: every vertex once a gamma, in the order of
        ``gammas``. ``.attrs["glp"]["layers"]`` holds the report of each run.
        With ``order=True``: ``vertex``, ``position``: every vertex once, sorted by its id, and its
        place 0..n-1 in the ordering.

    Raises
    ------
    ValueError, TypeError
        A gamma is negative or not a number, or as in `label_propagation`.

    Notes
    -----
    The score of a label with k votes around a vertex and v holders in the graph is
    ``k - gamma * (v - k)`` (Boldi, Rosa, Santini, Vigna, WWW 2011, section 4), where the scored
    vertex itself is not counted in v. Volumes count as they stand before each class. O(m) time a
    sweep and gamma. The ordering is that of section 5, from an order by degree instead of a random
    one; a directed graph is read in both directions unless ``direction`` says otherwise. A
    shuffled cnr-2000 takes 16.6 bits an entry, so ordered 3.6, in its published order 3.4.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import layered_label_propagation
    >>> chain = pd.DataFrame({"src": range(8), "dst": range(1, 9)})
    >>> layers = layered_label_propagation(chain, gammas=[0, 64])
    >>> layers.groupby("gamma")["partition"].nunique().tolist()
    [1, 3]

    Two triangles whose members come in turn lie side by side:

    >>> edges = pd.DataFrame({"src": [0, 0, 2, 1, 1, 3], "dst": [2, 4, 4, 3, 5, 5]})
    >>> layered_label_propagation(edges, order=True)["position"].tolist()
    [0, 3, 1, 4, 2, 5]
    """
    check_truth(order=order, renumber=renumber)
    if order and not renumber:
        raise ValueError("renumber=False has no meaning with order=True; leave it out")
    if order and gammas is GAMMAS:
        gammas = ORDERING_GAMMAS
    if not is_sequence(gammas):
        raise TypeError(f"gammas must be a sequence of numbers, not {shown(gammas)}")
    gammas = list(gammas)
    for gamma in gammas:
        if not is_number(gamma):
            raise TypeError(f"gammas must be numbers, not {shown(gamma)}")
        if not 0 <= as_float(gamma) < np.inf:
            raise ValueError(f"gammas must be finite and at least 0, not {shown(gamma)}")
    if order:
        return _ordering(*_prepared(graph, options, direction="both"), sorted(gammas, reverse=True))
    prepared, run_options = _prepared(graph, options)
    outcomes = [run(prepared, Layered(gamma), run_options) for gamma in gammas]
    return _results().layers(prepared, gammas, outcomes, renumber)


def _ordering(graph: BaseGraph, run_options: Options, gammas: list[float]) -> Frame:
    """Let every layer, the finest first, put its clusters together."""
    from glp_rapids.graph import vertex_order

    vertices, reports = vertex_order.by_degree(graph.rows(run_options.direction)), []
    for gamma in gammas:
        outcome = run(graph, Layered(gamma), run_options)
        vertices = vertex_order.with_layer(vertices, outcome.labels)
        reports.append(outcome.report)
    place = vertex_order.positions(vertices, graph.index_dtype)
    return _results().ordering(graph, gammas, place, reports)


@guarded
def speaker_listener(
    graph: Any,
    *,
    max_labels: int = 5,
    threshold: float = 0.1,
    max_iter: int = 20,
    **options: Unpack[SweepOptions],
) -> Frame:
    """Find overlapping communities: vertices remember what they heard, and say what they remember.

    Parameters
    ----------
    graph : frame, tuple of arrays, sparse matrix, networkx, cugraph or glp_rapids graph
        Whatever `as_graph` takes, with its keywords.
    max_labels : int
        Communities a vertex can belong to, at the most.
    threshold : float
        A label counts if it fills at least this share of the memory; the most frequent one always
        does.
    max_iter : int
        How many sweeps are made; there is no earlier end.
    **options
        ``classes``, ``update``, ``direction``, ``seed``, ``progress`` as in `label_propagation`.

    Returns
    -------
    frame
        ``vertex``, ``partition``, ``frequency``: a row for each community of a vertex, the
        strongest first. Communities count from 0 by their smallest vertex.

    Raises
    ------
    ValueError, TypeError
        An option is out of range or has no meaning here, or as in `label_propagation`.

    Notes
    -----
    SLPA (Xie, Szymanski, Liu, ICDMW 2011). A speaker says one label a sweep, drawn from its
    memory by (seed, sweep, vertex) alone; a listener keeps the one that most neighbours said, ties
    in a random order. O(m) time a sweep; the memory takes 4 (max_iter + 1) bytes a vertex.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import speaker_listener
    >>> edges = pd.DataFrame({"src": [0, 0, 1], "dst": [1, 2, 2]})
    >>> list(speaker_listener(edges).columns)
    ['vertex', 'partition', 'frequency']
    """
    check_integer("max_labels", max_labels, 1)
    check_share("threshold", threshold, "a share in [0, 1]")
    _refuse(options, "speaker_listener", "explore", "tol", "tie_break", "retain", "skip_inactive")
    options["max_iter"] = max_iter
    # Every sweep explores, however many there are.
    prepared, run_options = _prepared(graph, options, explore=1 << 31, stops=False)
    outcome = run(prepared, SpeakerListener(max_iter), run_options)
    return _results().cover(outcome, int(max_labels), float(threshold))


@guarded
def seeded_label_propagation(
    graph: Any,
    seeds: Any,
    *,
    max_hops: int | None = None,
    damping: float = 0.85,
    max_iter: int = 10,
    **options: Unpack[SweepOptions],
) -> Frame:
    """Spread the labels of a few known vertices: who is close to which of them, and how strongly.

    Parameters
    ----------
    graph : frame, tuple of arrays, sparse matrix, networkx, cugraph or glp_rapids graph
        Whatever `as_graph` takes, with its keywords.
    seeds : frame, dict, or list, array or Series of ids
        A frame with the columns ``vertex`` (``0_vertex``, ... for ids of several columns) and
        ``label``; a dict of id to label; or ids alone, which then all carry the label 1.
    max_hops : int, optional
        Vertices farther than this from every seed stay without a label. None: no limit but
        ``max_iter``.
    damping : float
        What is left of the strength at each hop, above 0 and at most 1.
    max_iter : int
        How many sweeps are made; the strengths have settled after about ten.
    **options
        ``update`` (default "sync", by which ``hop`` is the distance from the nearest seed),
        ``classes``, ``tie_break``, ``retain``, ``direction``, ``seed``, ``progress`` as in
        `label_propagation`.

    Returns
    -------
    frame
        ``vertex``; ``label``, null where no label came; ``score``: 1 for seeds, 0 where no label
        came, in between the strength of the label there (it passes 1 only where many seeds meet);
        ``hop``: the sweep in which the first label came, 0 for seeds, null where none came.
        ``.attrs["glp"]`` as in `label_propagation`, and ``seeds``: how many vertices are seeds.

    Raises
    ------
    ValueError, TypeError
        A seed is no vertex, is null or carries two labels, or as in `label_propagation`.

    Notes
    -----
    Unlabelled vertices are silent, seeds never change. Vertex u with strength s and weight d (the
    sum of the edges that carry what it says, self-loops left out) gives ``w * s / sqrt(d)`` to a
    neighbour over an edge of weight w; the label with the largest sum wins there, and its strength
    is the damped sum over the root of the weight that the neighbour hears over (Zhou et al., NIPS
    2003, the winner taking all).
    Weights are added exactly, and of integers beyond 64 bits too. Votes are fixed point in a unit
    of each vertex: in an undirected graph a score is off by at most
    ``2**-61 / (1 - damping) * k * sqrt(d / least)``, k being the largest degree, d the weight of
    the vertex, least that of the lightest seed; and by 1e-13 of itself. A label that comes from
    afar over edges that are light among heavy ones can so have a score that rounds to 0.
    O(m) time a sweep, 48 bytes a vertex more than `label_propagation`.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import seeded_label_propagation
    >>> edges = pd.DataFrame({"src": ["a", "b", "c"], "dst": ["b", "c", "d"]})
    >>> seeded_label_propagation(edges, {"a": "red", "d": "blue"})["label"].tolist()
    ['red', 'red', 'blue', 'blue']
    """
    if max_hops is not None:
        check_integer("max_hops", max_hops, 0, or_none=" or None")
    check_share("damping", damping, "above 0 and at most 1", zero=False)
    _refuse(options, "seeded_label_propagation", "explore", "tol", "skip_inactive")
    options["max_iter"] = max_iter
    prepared, run_options = _prepared(graph, options, explore=0, update="sync", stops=False)
    labels, names = _results().seed_labels(prepared, seeds)
    # no label gets farther than there are sweeps
    reach = max_iter if max_hops is None else min(int(max_hops), int(max_iter))
    rows = prepared.rows(run_options.direction)
    readers = prepared.readers(run_options.direction)
    heard = rows.row_weights()
    said = heard if readers is rows else readers.row_weights()
    # whatever the order of updates, nobody gets further in a class than all at once would
    steps = max_iter * (run_options.classes if run_options.update == "semi" else 1)
    program = Seeded(labels, heard, said, damping, reach, steps)
    outcome = run(prepared, program, run_options)
    return _results().reached(outcome, names)


def _refuse(options: SweepOptions, function: str, *names: str) -> None:
    """Say so when an option that other variants have means nothing here."""
    for name in names:
        if name in options:
            raise TypeError(f"{function} has no option {name!r}: it makes max_iter sweeps")
