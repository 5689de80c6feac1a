"""Label propagation itself (Raghavan et al. 2007), and programs of the caller's own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Unpack

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_truth, shown
from glp_rapids.common.types import Frame
from glp_rapids.device import any_true, to_device, to_host
from glp_rapids.propagation.call import prepare, results, settling, warm
from glp_rapids.propagation.options import SweepOptions
from glp_rapids.propagation.program import Program
from glp_rapids.propagation.run import memory_of_run, run

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.propagation.options import Options
    from glp_rapids.propagation.rank_graph import RankGraph
    from glp_rapids.propagation.run import Run


class Classic(Program):
    """The label with the most votes among the neighbours wins (Raghavan et al. 2007)."""

    skip_inactive = True


@guarded
def label_propagation(
    graph: Any,
    *,
    renumber: bool = True,
    connected: bool = False,
    initial: Any = None,
    touched: Any = None,
    **options: Unpack[SweepOptions],
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
    connected : bool
        True: split communities into their connected pieces, whichever way edges go (those of
        weight 0 join nothing); with ``renumber=False`` the smallest vertex names a piece. This is
        done on the host, after the run, and takes up to 50 bytes a vertex that ``memory_limit``
        does not count; compressed lists are decoded a few at a time. False (default): a community
        may be disconnected, as a vertex that joined two parts may have left.
    initial : frame, dict, or list of sets, optional
        An earlier result to go on from: ``vertex`` (``0_vertex``, ... for ids of several columns)
        and ``partition``, numbers or ids, of this library or of cuGraph's Louvain and the like, its
        rows in any order; or a partition as NetworkX has it. Vertices that have left the graph are
        ignored, those that it lacks begin with themselves, and a community is named after its
        smallest member that is there. The run only settles (``explore=0`` unless it is given), so
        most communities stay what they were.
    touched : list, array, Series or frame of ids, optional
        The vertices whose neighbourhoods have changed since ``initial``: both ends of every edge
        that came, went or has another weight; ids that have left the graph are ignored. Only they
        are evaluated at first, those that are new to ``initial`` with their neighbours, and those
        that were pending when the earlier run ended; then whom these wake. The result is the same,
        bit for bit, as without it, if ``initial`` is as it came: where its partition was changed
        since, call ``initial.attrs.clear()``, and everybody is evaluated; see the notes.
    max_iter : int
        Sweeps at the most (default 100); 0 leaves every vertex with its first label.
    update : {"semi", "sync"}
        "semi" (default): ``classes`` classes of vertices (default 32) are updated one after the
        other, each reading the labels as they stand; a hash of its id says in which a vertex is.
        On graphs of some hundred vertices 4 classes may be better; up to 8,192
        vertices the first sweep that explores has 4 at the most, by merging neighbouring ones.
        After a sweep that changed at most an eighth of the labels (a quarter, once it settles)
        neighbouring classes are one and 8 are left, after one that changed at most 1 in 32 (in 8),
        4. A run with ``initial`` that does not explore begins as after one that changed those of
        new vertices. "sync": all vertices at once; ``classes`` has no effect.
    explore : int
        At most so many sweeps at first (default 10) settle ties in a random order, a new one each
        sweep, which lets communities merge. Then the run settles; it does so earlier if a sweep
        changes at most ``tol`` of the labels, or hardly fewer than the one before (less than 4%
        fewer), the sign that one label begins to flood the graph.
    tie_break : {"min", "max", "hash"}
        Which of the best labels wins while settling: the smallest, the largest, or the first in a
        random order of the labels, by a hash of the id of the vertex that each is named after.
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
        "decode", which decodes everything before each sweep. A CPU counts in one manner and ignores
        this.
    memory_limit : int or str, optional
        Bytes, or a text such as "40GB" or "512MiB", that the run may take, the graph included. A
        graph in a mapped file takes none. With less than the fastest run needs, lists are
        streamed, and the result is the same. To a GPU they are streamed from host memory, where the
        graph is then built, never on the GPU; what lies on the GPU already has to fit. None: what
        is free; where another allocator than CuPy's pool is set, as RMM's, a GPU is tried first,
        and lists are streamed if the graph cannot be built there. `estimate_memory` says what is
        needed.
    way : {"auto", "plain", "packed", "streamed packed", "streamed plain", "hybrid"}
        How neighbour lists are held. "plain": in memory, on a CPU copied class by class. "packed":
        compressed. Streamed: those of a class are read into a buffer, strip by strip, from where
        they lie, in memory or in a mapped file. "auto": the first that fits, of "plain" and
        "streamed plain", or, for a `CompressedGraph`, of "packed" and "streamed packed": on a CPU
        streaming costs no memory but the buffer, so packing what the caller holds plain would save
        none. A way that is asked for converts the graph, on a CPU; the other form is kept on it.
        A GPU has "plain" and, for graphs in host memory, "streamed plain" and "hybrid", which lets
        the host's cores evaluate what the bus has not brought yet (Kozawa et al., CIKM 2017): it
        pays where the bus is slow and sweeps read everything. For compressed graphs a GPU has
        "packed", and for those in host memory that are undirected, without weights, in the order of
        the ids and under the scheme "packed", "streamed packed".
    devices : list, optional
        Of ranks that share the graph: each evaluates a range of the vertices, and after every class
        they exchange what changed. The result is the same. Each holds the lists of its range (and
        of a directed graph who reads it) and the labels and the state of all. "cpu" for each rank,
        as ``["cpu"] * 3``, stands for threads of the host: that shows what is exchanged, and gains
        nothing. Numbers of GPUs of this machine, as ``[0, 1]``, store into one another's memory, or
        exchange by NCCL where they cannot, and then hold who of their range reads each vertex, too:
        graphs of billions of entries gain, those of half a billion hardly. With ``memory_limit``,
        which is then what each GPU may take, or where one GPU does not hold the whole, a graph
        stays in host memory, and each GPU gets its part from there; where they do not hold it
        together, or ``way`` is "streamed plain", it is streamed to all. None: one device; of GPUs
        that reach one another all those of the machine, if ``way`` and ``memory_limit`` leave it
        open, where one does not hold the graph or it has 2**31 entries or more, which then pays
        (``CUDA_VISIBLE_DEVICES`` or ``way`` forbid it). A compressed graph has to be in host
        memory, and of the kind that "streamed packed" is for: it is streamed to all, in strips of
        packed lists.
    progress : bool or callable
        Show a bar, or call the function with a dict after every sweep.

    Returns
    -------
    frame
        ``vertex``: the ids as they came, every vertex once, sorted. ``partition``: integer
        community, or an id (``renumber=False``; one of several columns in ``0_partition``,
        ``1_partition``, ...). ``.attrs["glp"]`` holds ``sweeps``, ``explored``,
        ``changed`` (labels a sweep), ``converged`` (False at ``max_iter``, and where as many labels
        go on swinging), ``warm`` (from an ``initial``), ``evaluated``
        (vertices that the first sweep looked at, but for those woken in it), ``pending`` (those
        that were not known to be settled in the end, as a text; None: all may be), ``seconds``,
        ``device``, ``memory_in_use``, ``way``, ``memory_limit`` (bytes, the graph included; None
        where nobody gave one and the run is in a GPU's memory, or takes so little that nobody
        looked what is free; of streams to a GPU what is free there, less 1 part in 16, if that is
        less than what was given) and ``predicted`` (bytes, of the run at its peak, the graph
        included; on a GPU an upper figure, but for streams); ``compressed``, the scheme, where
        lists were read compressed; and of lists streamed to a GPU: ``peak`` (bytes that arrays took
        there; None under another allocator than CuPy's), ``bytes_over_bus``, ``share_cached`` (of
        the lists, that stayed there) and ``pinned`` (False: the system let nobody pin so much host
        memory, so copies are staged by the driver, and nobody is skipped), of a hybrid run
        ``share_of_host`` (of the entries evaluated, by the host's cores); of several ``devices``
        ``ranks``: for each its ``device``, ``vertices``, ``bytes_sent`` to others,
        ``seconds_waiting`` for them (not of streams) and, of a graph in host memory, ``peak``.

    Raises
    ------
    ValueError, TypeError
        An option or the graph is not as described; the message says what and how to mend it.
    MemoryError
        Labels and state of all vertices, or the longest row, do not fit ``memory_limit``, or what
        is free. It is raised before the first sweep and says by how many bytes.

    Notes
    -----
    O(m) time a sweep, of which settled vertices are left out. Memory, the graph included: on a GPU
    4 bytes an edge (8 or 12 with weights) and at the peak 43 to 57 bytes a vertex
    (`glp-rapids bench gpu` on five graphs, and 3 that have come since); 25 a vertex that has
    neighbours stay on the graph for the next run of the same kind. On a CPU 4 bytes an edge more, 8
    or 12 with weights (a copy in the order of the classes), and 8 bytes a vertex for each thread.
    Ids that are no range of integers take 8 bytes a vertex more, for their hashes.
    Streamed on a CPU, lists take a buffer of 2 entries a vertex or 4 million, or what the limit
    leaves, down to the longest row; beside it 23 bytes a vertex (53 if ``update="sync"``) and for
    each thread 8 more, or 32 an entry of the longest row where that is less. Frames of results are
    made when that is free again.
    Streamed to a GPU, lists lie in pinned host memory once more, in the order of the classes, and
    stay there with the graph (pinning takes 0.4 s a GiB, once). On the GPU there are beside labels
    and state 25 bytes a vertex that has neighbours, 8 more if directed, and two strips, of a class
    (at most 4 GiB each) or 64 MB, less under a low limit, down to two longest rows; what is left
    keeps the longest rows of each class there. At first the order is made, by 32 bytes a vertex.
    Sweeps in which little is active read only what is.
    A `CompressedGraph` is read as it is. On a CPU that takes 30 bytes a vertex beside it, 16 to 24
    more with weights, and 8 for each thread. Of a directed one the transpose, for
    ``direction="in"``, is made at the first run, by way of the plain graph, and kept compressed;
    ``direction="both"`` decodes the graph, as lists that name a neighbour twice have no compressed
    form.
    A run with ``touched`` takes time for what changes, and O(n) to read ``initial`` and to make the
    frame (`glp-rapids bench warm`). On a GPU up to a 16th of the vertices with a third of the
    entries are listed, and nobody else is looked at until more are active. It looks at all
    vertices, nevertheless, where others might have changed: if ``initial`` does not say who is
    settled (its ``attrs``, which pandas hands on and Parquet keeps, are gone, or are of another
    function), was run in another ``direction`` or with weights of another type or unit in fixed
    point (which follows from the largest weight and the largest degree); with ``explore`` above 0,
    ``retain=False`` or ``skip_inactive=False``; on a GPU that lists are streamed to, and on
    several; and on one, if lists are compressed, where those of new vertices have more entries than
    there are vertices. Other options may differ from those of the earlier run. ``initial`` must
    hold the partition that its ``attrs`` are of; rows may be missing. Where float weights of
    duplicate edges are merged, the last bit of a sum may follow from the largest weight elsewhere:
    the claim is then about the merged weights.
    Votes are added in 64-bit fixed point, those of float weights in units of a power of two, at
    most the largest weight times the entries of the longest row by 2**61. A weight of up to half a
    unit counts as 0: there is a warning where the smallest does, but not of weights in mapped
    files, nor on the workers of a Dask cluster. The framework is GLP's (SIGMOD 2021),
    semi-synchronous classes are Kozawa et al.'s (CIKM 2017).
    With ``update="sync", explore=0, tie_break="min", retain=False, renumber=False`` it is CDLP of
    LDBC Graphalytics.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import label_propagation
    >>> edges = pd.DataFrame({"src": ["a", "a", "b", "d", "d", "e"],
    ...                       "dst": ["b", "c", "c", "e", "f", "f"]})
    >>> found = label_propagation(edges)
    >>> found["partition"].tolist()
    [0, 0, 0, 1, 1, 1]

    Later, with one edge more:

    >>> more = pd.concat([edges, pd.DataFrame({"src": ["c"], "dst": ["g"]})])
    >>> label_propagation(more, initial=found, touched=["c", "g"])["partition"].tolist()
    [0, 0, 0, 1, 1, 1, 0]
    """
    check_truth(renumber=renumber, connected=connected)
    prepared, run_options = prepare(graph, options, **settling(initial))
    with memory_of_run(prepared, run_options):
        outcome = run(prepared, Classic(), run_options, start=warm(prepared, initial, touched))
    if connected:
        begin = time.perf_counter()
        outcome.labels = _pieces(prepared, outcome.labels)
        if not _pieces_hold(prepared, run_options):
            outcome.report["pending"] = None
        outcome.report["seconds"] += time.perf_counter() - begin
    return results().communities(outcome, renumber)


def _pieces(graph: BaseGraph, labels: Any) -> Any:
    """Cut communities into connected pieces, named by their smallest vertices."""
    from glp_rapids.graph.connected import connected_parts

    pieces = connected_parts(graph.to("cpu").rows("out"), to_host(labels))
    return to_device(pieces.astype(labels.dtype), graph.device)


def _pieces_hold(graph: BaseGraph, options: Options) -> bool:
    """Tell whether who was settled in a community is so in a piece of it.

    Its votes for the community came from the piece; but edges that weigh nothing join none.
    """
    if graph.weights is None:
        return True
    rows = graph.rows(options.direction)
    return not any_true((rows.row_weights() == 0) & (rows.degree > 0))


@guarded
def propagate(
    graph: Any,
    program: Program,
    *,
    renumber: bool = True,
    initial: Any = None,
    touched: Any = None,
    **options: Unpack[SweepOptions],
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
    initial : frame, dict, or list of sets, optional
        An earlier result, as in `label_propagation`; a null, or -1, stands for a vertex that is
        silent. Only labels begin with it: all other state is what ``initial_state`` returns, which
        must not give labels then.
    touched : list, array, Series or frame of ids, optional
        As in `label_propagation`. It holds for programs with ``skip_inactive`` that leave
        ``pick_label`` and ``update_vertex`` as they are and keep no arrays; all others evaluate
        everybody. What the functions return must depend on vertices and labels by which are the
        same, not by their numbers, as these change with the graph.

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
    check_program(program)
    check_truth(renumber=renumber)
    prepared, run_options = prepare(graph, options, **settling(initial))
    with memory_of_run(prepared, run_options):
        outcome = run(
            prepared, program, run_options,
            start=warm(prepared, initial, touched, may_be_silent=True),
        )  # fmt: skip
    return results().communities(outcome, renumber, program.result_columns)


def check_program(program: Any) -> None:
    """Raise if this is no program that could be run."""
    if not isinstance(program, Program):
        hint = " (write Name() to make one)" if isinstance(program, type) else ""
        raise TypeError(
            f"program must be an instance of glp_rapids.Program, not {shown(program)}{hint}"
        )
    flags = ("skip_inactive", "count_volumes", "all_sweeps")
    check_truth(**{name: getattr(program, name) for name in flags})


def of_program(
    graph: RankGraph, options: Options, run: Run, program: Program, renumber: bool = True,
    initial: Any = None, connected: bool = False,
) -> Frame:  # fmt: skip
    """Run a program on a rank; return ``vertex, partition`` and what it says besides.

    ``initial``: the rows that the rank has of a result to go on from, if any, in frames.
    """
    start = None
    if initial is not None:
        from glp_rapids.propagation.rank_warm_start import start_on_rank

        start = start_on_rank(graph, initial, may_be_silent=not isinstance(program, Classic))
    outcome = run(graph, program, options, start=start)
    if connected:
        from glp_rapids.propagation.rank_connected import pieces_of_ranks

        begin = time.perf_counter()
        outcome.labels = pieces_of_ranks(graph, outcome.labels)
        outcome.report["seconds"] += time.perf_counter() - begin
    return results().communities(outcome, renumber, program.result_columns)
