"""`estimate_memory`: what a run would take, way by way, before there is a run or even a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, Unpack

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_choice, check_truth, is_number, refuse_unknown, shown
from glp_rapids.common.sizes import as_bytes
from glp_rapids.common.types import Frame
from glp_rapids.device import (
    DeviceName,
    gpu_available,
    memory_free,
    memory_taken,
)
from glp_rapids.graph.graph import BaseGraph
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.ingest.read import as_any_graph
from glp_rapids.propagation import gpu_memory
from glp_rapids.propagation import memory as measured
from glp_rapids.propagation.call import refuse
from glp_rapids.propagation.estimated_calls import FUNCTIONS, Call
from glp_rapids.propagation.making_memory import bytes_of_csr, bytes_of_places, bytes_to_make
from glp_rapids.propagation.options import Options, SweepOptions
from glp_rapids.propagation.program import Program, traits_of
from glp_rapids.propagation.subject import Subject, of_graph, of_sizes
from glp_rapids.propagation.variants import seeded, speaker_listener
from glp_rapids.propagation.variants.classic import Classic
from glp_rapids.propagation.variants.layered import GAMMAS, Layered, checked_gammas
from glp_rapids.propagation.ways import ON_CPU, STREAMED_TO_GPU, WAYS
from glp_rapids.propagation.workload import hashes


class Made(NamedTuple):
    """What is run: a program, how, and how many results are held while the last one is made."""

    program: Program
    options: Options
    results_held: int = 0

    def bytes_held(self, subject: Subject) -> int:
        """Return what the labels of earlier runs of the same call take in the last one."""
        return self.results_held * subject.number_of_vertices * subject.index_dtype.itemsize


def _seeded(max_iter: int = 10, **options: Any) -> Made:
    refuse(options, "seeded_label_propagation", "explore", "tol", "skip_inactive")
    options = {**seeded.DEFAULTS, **options}
    return Made(seeded.Seeded(None, "in", 1.0, 0, 0), Options(max_iter=max_iter, **options))


def _speakers(max_iter: int = 20, **options: Any) -> Made:
    unused = "explore", "tol", "tie_break", "retain", "skip_inactive"
    refuse(options, "speaker_listener", *unused)
    options = Options(max_iter=max_iter, **options, **speaker_listener.DEFAULTS)
    return Made(speaker_listener.SpeakerListener(max_iter), options)


def _layers(gammas: Sequence[float] = GAMMAS, **options: Any) -> Made:
    others = max(len(checked_gammas(gammas)) - 1, 0)
    return Made(Layered(1.0), Options(**options), others)


def _of_a_user(program: Program | None = None, **options: Any) -> Made:
    if not isinstance(program, Program):
        raise TypeError(
            f"program must be an instance of glp_rapids.Program for algorithm='propagate', not "
            f"{shown(program)}"
        )
    return Made(program, Options(**options))


# The functions that can be estimated: what makes the program and the options of a run.
ALGORITHMS: dict[str, Callable[..., Made]] = {
    "label_propagation": lambda **options: Made(Classic(), Options(**options)),
    "layered_label_propagation": _layers,
    "speaker_listener": _speakers,
    "seeded_label_propagation": _seeded,
    "propagate": _of_a_user,
}
OTHER_NAMES = dict.fromkeys(("louvain", "leiden"), "multilevel_label_propagation")
A_WORD = 8  # bytes: all there is of ids that are not hashed
DEVICES: tuple[DeviceName, ...] = ("cpu", "gpu")


class EstimateOptions(SweepOptions, total=False):
    """The keywords of `estimate_memory` that are those of the run."""

    program: Program
    gammas: Sequence[float]


OF_ONE = {"program": "propagate", "gammas": "layered_label_propagation"}  # whose option each is
OF_RUNS = {"memory_limit", "way", "devices"}  # estimated are all ways, on one device


@guarded
def estimate_memory(
    graph_or_sizes: Any,
    algorithm: Literal[
        "label_propagation", "layered_label_propagation", "speaker_listener",
        "seeded_label_propagation", "propagate", "multilevel_label_propagation", "louvain",
        "leiden", "account_scores", "find_clusters", "features",
    ] = "label_propagation",
    *,
    device: DeviceName | None = None,
    memory_limit: int | str | None = None,
    mapped: bool = False,
    bits_per_entry: float | None = None,
    **options: Unpack[EstimateOptions],
) -> Frame:  # fmt: skip
    """Estimate the memory that a call takes, for each way to hold the neighbour lists.

    Parameters
    ----------
    graph_or_sizes : graph, or tuple of int
        Whatever `as_graph` takes, with its keywords; or numbers: ``(vertices, entries)``, where an
        undirected edge is two entries, or ``(vertices, entries, longest_row)``. Without the third
        the longest row is taken for 16 times the root of the entries, or all vertices if they are
        fewer. A `Graph` or a `CompressedGraph` is looked at as it is; it stays unchanged.
    algorithm : str
        The function that would be called. From `multilevel_label_propagation` on they know one way,
        "plain", and go over from a GPU to the host where it does not fit.
    device : {"cpu", "gpu"}, optional
        Where it would run; None: a row for both. The GPU need not be there.
    memory_limit : int or str, optional
        Bytes, or a text such as "80GB", that the run may take, the graph included; None: what is
        free where the run would be.
    mapped : bool
        The graph's own arrays lie in mapped files, so on a CPU they take no memory. A graph that is
        given knows that itself.
    bits_per_entry : float, optional
        Of the neighbour lists if packed, weights apart. None: measured on a sample of the lists, or
        10 if there are only numbers; a crawl takes 3 to 5, a graph without any order up to 25.
    **options
        Those of the run that decide how much it takes: ``update``, ``classes``, ``direction``,
        ``skip_inactive``, ``max_iter`` (of `speaker_listener`), ``program`` (of `propagate`),
        ``gammas`` (of `layered_label_propagation`; the labels of all layers count, held until the
        last is made). With sizes also ``directed``, and ``weight``: the type of the weights, as
        "float64".

    Returns
    -------
    frame
        A row for each device and way: ``way``, ``device``, ``device_bytes`` (on a GPU),
        ``host_bytes``, ``fits`` (null where nobody knows what is free, as on a GPU that is not
        there). A row is of a graph that is given in the form of its way: ``fits`` does not say that
        a plain graph as it is can go a packed way, for which a run holds both forms, or on a GPU
        refuses it; `compress` it first. What is streamed to a GPU is of a graph in host memory,
        where it and its copy in the order of the strips are. What is streamed takes what the limit
        leaves, up to a useful size; where it does not fit, or nobody knows, the numbers are the
        least.

    Raises
    ------
    ValueError, TypeError
        The algorithm is none of those above, or an option or the graph is not as described.

    Notes
    -----
    On a CPU "plain" is exact, to 1%, of large graphs: the arrays of a run are made of the same
    plan. Of smaller ones it was up to 240,000 bytes high, 2% of 50,000 vertices. "packed" is so
    on a graph that is compressed already, up to 5% high if it is directed and has weights; of
    another one lists of some 300,000 entries are measured, and weights count as if they did not
    compress. Ids count only where a run makes hashes of them, 8 bytes each. On a GPU the arrays of
    a run count, and those that number communities in the end, within 10% of ten graphs measured; of
    a directed graph, whose rows are also made in the other direction, it is an upper figure.
    What `multilevel_label_propagation` and those behind it take is an upper figure, see there; of
    `find_clusters` as if all accounts were above ``minimum_score``, without amounts.
    ``fits`` goes by the upper figure by which a run decides and of which a failing one speaks, 59
    or 60 bytes a vertex beside the lists, measured on graphs of 0.3 to 17 M vertices. What a user's
    program holds is known only for a graph, whose ``initial_state`` is called. "streamed plain" to
    a GPU counts the pinned copy of the lists, in as few bits a neighbour as the largest vertex
    takes, as if host memory had room for it: a run that finds none gathers the rows of a strip when
    it is their turn, unless its kernels read them, into two buffers for neighbours and two for
    weights, each of 32 MiB or the longest row. "hybrid" has no row: its lists have 32 bits a
    neighbour, and it takes room for the labels and the state of one class on the GPU, on the host
    for those of all. O(n + sample); O(m) if directed. Neo4j's users know this as ``.estimate``.

    Examples
    --------
    >>> from glp_rapids import estimate_memory
    >>> taobao = (1_010_000_000, 23_200_000_000)  # a hundred days of it; GLP, TKDE 2024
    >>> found = estimate_memory(taobao, device="gpu", memory_limit="150GB", bits_per_entry=8)
    >>> found[["way", "device_bytes", "fits"]]
                   way  device_bytes   fits
    0            plain  142290044936  False
    1           packed   78750044928   True
    2   streamed plain  116290070528   True
    3  streamed packed   54510070528   True
    """
    check_truth(mapped=mapped)
    edges = {name: options.pop(name) for name in EdgeOptions.__annotations__ if name in options}
    made, limit = asked(algorithm, device, memory_limit, bits_per_entry, **options)
    graph = None
    if isinstance(graph_or_sizes, tuple) and all(np.ndim(one) == 0 for one in graph_or_sizes):
        subject = of_sizes(graph_or_sizes, bits_per_entry, **edges)
    else:
        graph = graph_or_sizes
        if not isinstance(graph, BaseGraph) or edges:
            graph = as_any_graph(graph, **{"device": "cpu", **edges})
        if isinstance(made, Made):
            subject = of_graph(graph, bits_per_entry, made.options)
        else:
            subject = graph
    rows = []
    for name in DEVICES if device is None else (device,):
        there = 0 if graph is None or graph.device != name else _taken(graph)
        most = limit or _free(name, there)
        if isinstance(made, Call):
            rows.append(made.row(subject, name, most, mapped))
            continue
        estimate = {"cpu": _on_cpu, "gpu": _on_gpu}[name]
        rows += estimate(subject, graph, made, most, mapped)
    import pandas as pd

    frame = pd.DataFrame(rows, columns=["way", "device", "device_bytes", "host_bytes", "fits"])
    return frame.astype({"device_bytes": "int64", "host_bytes": "int64", "fits": "boolean"})


def asked(
    algorithm: Any, device: Any, memory_limit: Any, bits_per_entry: Any, **options: Any
) -> tuple[Made | Call, int | None]:
    """Return what would be run, and the limit in bytes; raise if something is not as described."""
    if isinstance(algorithm, str):
        algorithm = OTHER_NAMES.get(algorithm, algorithm)
    if not isinstance(algorithm, str) or algorithm not in (*ALGORITHMS, *FUNCTIONS):
        known = ", ".join(map(repr, (*ALGORITHMS, *FUNCTIONS)))
        raise ValueError(
            f"algorithm must be one of {known}, not {shown(algorithm)}: others have no estimate yet"
        )
    if device is not None:
        check_choice("device", device, DEVICES, "'cpu', 'gpu' or None")
    limit = as_bytes("memory_limit", memory_limit)
    if bits_per_entry is not None and not (is_number(bits_per_entry) and 0 < bits_per_entry <= 64):
        raise ValueError(f"bits_per_entry must be in (0, 64], not {shown(bits_per_entry)}")
    refuse_unknown(options, {*SweepOptions.__annotations__, *OF_ONE} - OF_RUNS)
    for name, owner in OF_ONE.items():
        if name in options and algorithm != owner:
            raise TypeError(f"{name} is for algorithm={owner!r}, not {algorithm!r}")
    if algorithm in FUNCTIONS:
        return Call.of(algorithm, options), limit
    return ALGORITHMS[algorithm](**options), limit


def _taken(graph: BaseGraph) -> int:
    """Count what a graph takes where it lives."""
    return memory_taken(*graph.rows("out").arrays())


def _free(device: DeviceName, there: int) -> int | None:
    """Return what a run on a device may take, with the graph that is there; None: nobody knows."""
    if device == "gpu" and not gpu_available():
        return None
    return memory_free(device) + there


def _state(subject: Subject, graph: BaseGraph | None, program: Program) -> int:
    """Count labels and state of all vertices."""
    item = subject.index_dtype.itemsize
    a_vertex = item + program._bytes_a_vertex(subject.index_dtype) + 8 * program.count_volumes
    if isinstance(program, seeded.Seeded):
        a_vertex += item  # the labels of the seeds
    size = subject.number_of_vertices * a_vertex
    if graph is not None and type(program).__module__.split(".")[0] != "glp_rapids":
        state = program.initial_state(graph)
        arrays = (value for name, value in state.items() if name != "labels")
        size += sum(getattr(array, "nbytes", 0) for array in arrays)
    return size


def _on_cpu(
    subject: Subject, graph: BaseGraph | None, made: Made, limit: int, mapped: bool
) -> list[tuple]:
    from glp_rapids.propagation.engines.cpu_arrays import Sizes
    from glp_rapids.propagation.kernels.cpu.hash_votes import threads_for

    program, options, _ = made
    traits = traits_of(program, weighted=subject.weights is not None)
    classes = options.classes if options.update == "semi" else 1
    both = subject.directed and options.direction == "both"
    entries = subject.number_of_edges * (2 if both else 1)
    state = _state(subject, graph, program) + made.bytes_held(subject)
    rows = []
    for name in ON_CPU:
        way = WAYS[name]
        if both and way.form == "compressed":
            continue  # a list may name a neighbour twice
        packed = way.form == "compressed"
        there = graph is not None and graph.device == "cpu" and bool(graph.scheme) == packed
        given = replace(subject, scheme="packed" if packed else None, _derived={})
        if there:  # with all that is kept on it
            given = graph
        readers = measured.wants_readers(given, program, options, way.form)
        apart = subject.directed and not both and readers
        asked = apart and traits.skip_inactive and options.skip_inactive
        longest = max(subject.longest_row, subject.longest_reader if packed and asked else 0)
        sizes = Sizes(
            subject.number_of_vertices, entries, longest, subject.index_dtype,
            None if subject.weights is None else subject.weights.dtype, classes,
            threads_for(entries), traits.unit_votes and traits.default_score,
            ordered=packed and subject.order is not None, readers_apart=asked,
        )  # fmt: skip
        if there:
            here = measured.taken_already(graph, options, way.form, readers)
        else:
            here = 0 if mapped else subject.packed_bytes if packed else bytes_of_csr(given)
        lists = here + _made_bytes(given, subject.packed_bytes, options, apart)
        if not hashes(options):
            lists += A_WORD
        elif not there:
            lists += subject.packed_words if packed else subject.words
        largest = partial(subject.largest_class, classes)
        size, fits, _ = measured.total_of(name, sizes, largest, lists, state, limit)
        making = here + state + bytes_to_make(given, options, way.form, apart)
        rows.append((name, "cpu", 0, max(size, making), fits and making <= limit))
    return rows


def _made_bytes(
    given: Subject | BaseGraph, packed_bytes: int, options: Options, apart: bool
) -> int:  # fmt: skip
    """Count what a run on a CPU makes of a graph, and keeps, unless it is kept there already."""
    csr = bytes_of_csr(given)
    places = bytes_of_places(given) if given.scheme else 0
    if not given.directed or (options.direction == "out" and not apart):
        return places
    if options.direction == "both":
        if "both" in given._derived:
            return places
        return places + csr + given.number_of_edges * gpu_memory.bytes_an_entry(given)
    if (other := given._derived.get("transpose")) is not None:
        return places + (bytes_of_places(other) if other.scheme else 0)
    if not given.scheme:
        return csr
    shared = 0 if given.order is None else given.order.nbytes
    return places + packed_bytes - shared + bytes_of_places(given, anew=True)


def _on_gpu(
    subject: Subject, graph: BaseGraph | None, made: Made, limit: int | None, mapped: bool
) -> list[tuple]:
    rows = []
    program, options, _ = made
    traits = traits_of(program, weighted=subject.weights is not None)
    both = subject.directed and options.direction == "both"
    readers = traits.skip_inactive and options.skip_inactive
    classes = options.classes if options.update == "semi" else 1
    labels, hashed = _state(subject, graph, program), hashes(options)
    for name in ("plain", "packed"):
        packed = WAYS[name].form == "compressed"
        # ids that are hashed as they are lie in the graph, and are gone when a plain run is largest
        state = labels + made.bytes_held(subject)
        state += subject.packed_words if packed and hashed else 0
        size = gpu_memory.gpu_resident_bytes(subject, state, traits, classes, readers, packed)
        # by which a run decides
        most = gpu_memory.gpu_bytes(
            subject.number_of_vertices, subject.number_of_edges, gpu_memory.bytes_an_entry(subject),
            subject.directed, subject.packed_bytes if packed else None,
        )  # fmt: skip
        rows.append((name, "gpu", size, 0, None if limit is None else max(size, most) <= limit))
    # what is hashed is copied there, the ids themselves where that is what is hashed
    state = labels + (subject.packed_words if hashed else 0)
    for name in STREAMED_TO_GPU.values():
        packed = WAYS[name].form == "compressed"
        usual = traits.plain and traits.growing_scores and subject.order is None
        usual &= subject.index_dtype.itemsize == 4
        if packed and (subject.directed or subject.weights is not None or not usual):
            continue
        apart = readers and subject.directed and not both
        size, fits = gpu_memory.gpu_streamed_bytes(
            subject, state, traits, classes, readers, apart, both, packed, limit
        )
        entries = subject.number_of_edges * (2 if both else 1)
        lists = int(entries * gpu_memory.bytes_streamed(subject))
        host = 0 if mapped else bytes_of_csr(subject)
        if packed:
            lists = subject.packed_bytes + 2 * subject.listed
            host = 0 if mapped else subject.packed_bytes
        rows.append((name, "gpu", size, host + lists, fits))
    return rows
