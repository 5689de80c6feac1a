"""What goes into a run of labels and what comes out of it, as frames of the caller's kind."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from glp_rapids.common.checks import errors_named, is_sequence
from glp_rapids.common.scans import number_where
from glp_rapids.device import any_true, array_module, module_on, to_device, to_host
from glp_rapids.frames.facts import set_attributes
from glp_rapids.frames.kinds import (
    Frame,
    Kind,
    as_column,
    ids_as_text,
    null_where,
    taken,
    to_series,
    without_proxy,
)
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.id_types import of_labels_by_id
from glp_rapids.jit.cache import kept
from glp_rapids.jit.interrupts import parts
from glp_rapids.propagation.run import Outcome
from glp_rapids.propagation.strongest_gpu import strongest as strongest_on_gpu


def renumbered(labels: Any) -> Any:
    """Renumber labels 0..k-1 by the smallest vertex index that holds each; silence is -1."""
    return _numbers_by_first(labels, labels.size)


def first_of(numbers: Any) -> Any:
    """Return where each of the numbers 0 .. k - 1 occurs first."""
    if array_module(numbers) is np:
        return np.unique(numbers, return_index=True)[1]
    return first_positions(numbers, int(numbers.max()) + 1 if numbers.size else 0)


def first_positions(numbers: Any, beyond: int) -> Any:
    """Return where each of the numbers below ``beyond`` occurs first; their size: nowhere."""
    xp = array_module(numbers)
    first = xp.full(beyond, numbers.size, numbers.dtype)
    if xp is np:
        said = numbers >= 0
        np.minimum.at(first, numbers[said], np.flatnonzero(said))
    else:
        _kernels()[0](numbers, first)
    return first


def _numbers_by_first(values: Any, bound: int) -> Any:
    """Number the values, all below ``bound``, in the order of their first occurrence.

    Negative ones become -1. No value is looked at on the host, so a GPU is not waited for.
    """
    if values.size == 0:
        return values.copy()
    if array_module(values) is not np:
        return _numbers_on_gpu(values, bound)
    numbers = np.full(max(bound, 1), -1, values.dtype)
    found = np.empty_like(values)
    given = 0
    for first, last in parts(values.size):
        given = _number(values[first:last], numbers, given, found[first:last])
    return found


@kept
def _number(values, numbers, given, found):
    """Number some more values, of which so many distinct ones have a number already."""
    for place in range(values.size):
        value = values[place]
        if value < 0:
            found[place] = -1
            continue
        if numbers[value] < 0:
            numbers[value] = given
            given += 1
        found[place] = numbers[value]
    return given


def _numbers_on_gpu(values: Any, bound: int) -> Any:
    import cupy

    find, lead, name = _kernels()
    first = cupy.full(bound, values.size, dtype=values.dtype)
    find(values, first)
    number = lead(values, first)
    cupy.cumsum(number, out=number)
    return name(values, first, number)


@functools.cache
def _kernels() -> tuple[Any, Any, Any]:
    """Compile the three steps around a running sum: one launch each, where CuPy alone takes ten."""
    import cupy

    # Most entries of a large community find a smaller position there, and spare the atomic.
    find = "if (value >= 0 && first[value] > (T)i) atomicMin(&first[value], (T)i)"
    lead = "is_first = value >= 0 && first[value] == (T)i"
    name = "named = value < 0 ? (T)-1 : number[first[value]] - 1"
    return (
        cupy.ElementwiseKernel("T value", "raw T first", find, "glp_find_first"),
        cupy.ElementwiseKernel("T value, raw T first", "T is_first", lead, "glp_lead"),
        cupy.ElementwiseKernel("T value, raw T first, raw T number", "T named", name, "glp_name"),
    )


def communities(outcome: Outcome, renumber: bool, further: tuple[str, ...] = ()) -> Frame:
    """Make the frame ``vertex, partition``, and further columns of the state."""
    graph = outcome.graph
    columns = _partition(graph, outcome.labels, renumber)
    columns.update({name: outcome.state[name] for name in further})
    return set_attributes(graph.frame(columns, copy=bool(further)), outcome.report)


def _partition(graph: Graph, labels: Any, renumber: bool) -> dict[str, Any]:
    if renumber:
        return {"partition": renumbered(labels)}
    labels = graph.own(labels)
    silent = labels < 0
    if not any_true(silent):
        return graph.external_columns(labels, "partition")
    # A silent vertex has no label to give the id of.
    columns = graph.external_columns(array_module(labels).where(silent, 0, labels), "partition")
    kind = graph.vertices.kind
    return {name: null_where(silent, values, kind) for name, values in columns.items()}


def layers(graph: Graph, gammas: list, outcomes: list[Outcome], renumber: bool) -> Frame:
    """Make the frame ``vertex, gamma, partition``, gamma after gamma, of outcomes' labels."""
    xp = module_on(graph.device)
    number_of_vertices = graph.number_of_vertices
    vertex = xp.tile(xp.arange(number_of_vertices), len(gammas))
    values = np.asarray(gammas, dtype=None if gammas else np.int64)
    gamma = xp.repeat(xp.asarray(values), number_of_vertices)
    empty = xp.empty(0, dtype=graph.index_dtype)
    if renumber:
        parts = [renumbered(outcome.labels) for outcome in outcomes]
        columns = {"partition": xp.concatenate([*parts, empty])}
    else:
        parts = [outcome.labels for outcome in outcomes]
        columns = graph.external_columns(xp.concatenate([*parts, empty]), "partition")
    frame = graph.frame({"gamma": gamma, **columns}, vertex=vertex)
    return set_attributes(frame, _in_all(graph, gammas, [outcome.report for outcome in outcomes]))


def ordering(graph: Graph, gammas: list, place: Any, reports: list[dict]) -> Frame:
    """Make the frame ``vertex, position`` of the order that layers made."""
    return set_attributes(graph.frame({"position": place}), _in_all(graph, gammas, reports))


def _in_all(graph: Graph, gammas: list, reports: list[dict]) -> dict[str, Any]:
    """Report on the runs of all layers together, and on each."""
    return {
        "sweeps": sum(report["sweeps"] for report in reports),
        "seconds": sum(report["seconds"] for report in reports),
        "device": graph.device,
        **{name: reports[0][name] for name in ("device", "way", "memory_limit") if reports},
        "layers": [
            dict(report, gamma=gamma) for gamma, report in zip(gammas, reports, strict=True)
        ],
    }


def cover(outcome: Outcome, max_labels: int, threshold: float) -> Frame:
    """Make the frame ``vertex, partition, frequency`` from the memories of SLPA."""
    graph = outcome.graph
    memory, heard = (outcome.state.pop(name) for name in ("memory", "heard"))
    xp, n = array_module(memory), graph.number_of_vertices
    # in host memory, less than the run took
    at_once, strongest = (max(n // 32, 1 << 11), _strongest) if xp is np else (n, strongest_on_gpu)
    parts = []
    for first in range(0, max(n, 1), max(at_once, 1)):
        some = slice(first, first + at_once)
        vertex, *rest = strongest(memory[some], heard[some], max_labels, threshold)
        parts.append((vertex + first, *rest))
    vertex, label, frequency = map(xp.concatenate, zip(*parts, strict=True))
    del parts, memory, heard  # which take more than the result
    partition = xp.empty(label.size, dtype=graph.index_dtype)
    if label.size:
        # By the smallest vertex of each, and by the label where two share that vertex.
        by_label = xp.lexsort(xp.stack([label, vertex]))
        number = _numbers_by_first(label[by_label], graph.number_of_vertices)
        partition[by_label] = number.astype(partition.dtype)
    frame = graph.frame({"partition": partition, "frequency": frequency}, vertex=vertex)
    return set_attributes(frame, outcome.report)


def _strongest(memory: Any, heard: Any, max_labels: int, threshold: float) -> tuple:
    """Do what `strongest_on_gpu` does."""
    ordered = np.sort(memory, axis=1)
    begins = ordered >= 0
    begins[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    vertex, place = np.nonzero(begins)
    label = ordered[vertex, place].astype(np.int64)
    width = memory.shape[1]
    flat = vertex * width + place
    row_end = (vertex + 1) * width
    following = np.concatenate([flat[1:], row_end[-1:]]) if flat.size else flat
    count = np.minimum(following, row_end) - flat
    # Of equals the smaller label comes first.
    order = np.lexsort(np.stack([label, -count, vertex]))
    vertex, label, count = vertex[order], label[order], count[order]
    first = np.searchsorted(vertex, vertex, side="left")
    rank = np.arange(vertex.size) - first
    frequency = count / heard[vertex].astype(np.float64)
    kept = (rank < max_labels) & ((rank == 0) | (frequency >= threshold))
    return vertex[kept], label[kept], frequency[kept]


def seed_labels(graph: Graph, seeds: Any, drops: bool) -> tuple[Any, pd.Index, int]:
    """Return the code of each vertex's seed label (-1: none), the labels, and how many are absent.

    ``drops``: seeds that are no vertex are left out, not refused.
    """
    ids, given = _ids_and_labels(graph, seeds)
    try:
        index = to_host(graph.vertices.lookup(ids, "seeds", drops, "pass absent='drop'"))
    except (TypeError, ValueError) as error:
        if mend := of_labels_by_id(seeds, "labels"):
            raise type(error)(f"{error}; {mend}") from error
        raise
    with errors_named("the labels of seeds"):
        column = to_series(as_column(given, "the labels of seeds"), "pandas")
        values = pd.Index(column, tupleize_cols=False)  # labels may be tuples
        there = index >= 0
        if len(values) == len(index) and not there.all():
            index, values = index[there], values[there]
        hasnans = values.hasnans
    if len(values) != len(index):
        raise ValueError(f"seeds have {len(index)} vertices but {len(values)} labels")
    if hasnans:
        raise ValueError(f"seeds hold {int(values.isna().sum())} null label(s); drop those rows")
    try:
        names = values.unique().sort_values()
        codes = names.get_indexer(values)
        if names.dtype == object and len(names):
            # what cannot be part of a result is refused before a run, not after it
            one = to_device(np.zeros(1, dtype=np.int32), graph.device)
            _named(one, names, graph.vertices.kind)
    except (TypeError, ValueError, ArithmeticError, NotImplementedError) as error:
        raise TypeError(
            f"labels of seeds must be of one type that can be sorted ({error!s:.200}); make all of "
            "them strings, or all numbers"
        ) from error
    labels = np.full(graph.number_of_vertices, -1, dtype=graph.index_dtype)
    labels[index] = codes
    if (labels[index] != codes).any():
        where = int(np.argmax(labels[index] != codes))
        vertex = graph.external(index[where : where + 1])
        raise ValueError(
            f"seeds give two labels to {ids_as_text(vertex)}: {values.tolist()[where]!r} and "
            "another; keep one row a vertex"
        )
    return to_device(labels, graph.device), names, len(there) - number_where(there)


def _ids_and_labels(graph: Graph, seeds: Any) -> tuple[Any, Any]:
    with errors_named("seeds"):
        seeds, _ = without_proxy(seeds)
    if isinstance(seeds, Mapping):
        return list(seeds.keys()), list(seeds.values())
    if not hasattr(seeds, "columns"):
        # what is no list is refused later
        number = len(seeds) if is_sequence(seeds) and hasattr(seeds, "__len__") else 0
        return seeds, np.ones(number, dtype=np.int64)
    names = graph.vertices.names()
    if missing := [name for name in [*names, "label"] if name not in seeds.columns]:
        raise ValueError(
            f"seeds have no column {missing[0]!r}; there are {list(map(str, seeds.columns))}"
        )
    if repeated := [name for name, times in Counter(seeds.columns).items() if times > 1]:
        raise ValueError(f"seeds have several columns named {repeated[0]!r}")
    return (seeds[names[0]] if len(names) == 1 else seeds[names]), seeds["label"]


def reached(outcome: Outcome, names: pd.Index, absent: int) -> Frame:
    """Make the frame ``vertex, label, score, hop``, with nulls where no label came."""
    graph, state = outcome.graph, outcome.state
    kind = graph.vertices.kind
    columns = {
        "label": _named(outcome.labels, names, kind),
        "score": state["strength"],
        "hop": null_where(state["hop"] < 0, state["hop"], kind),
    }
    seeds = number_where(state["hop"] == 0)
    report = {**outcome.report, "seeds": seeds, "absent": absent}
    return set_attributes(graph.frame(columns), report)


def _named(codes: Any, names: pd.Index, kind: Kind) -> Any:
    """Return ``names[codes]`` as a Series, null where a code is negative."""
    if kind == "pandas":
        # pd.array of an ndarray is a masked array: nulls don't turn integers into floats
        values = names.to_numpy() if isinstance(names.dtype, np.dtype) else names.array
        array = pd.array(values) if len(names) else pd.array([], dtype="Int64")
        return pd.Series(array.take(to_host(codes).astype(np.int64), allow_fill=True))
    silent = codes < 0
    if len(names) == 0:
        names = pd.Index([0])
    code = array_module(codes).where(silent, 0, codes)
    if isinstance(names.dtype, np.dtype) and names.dtype.kind in "iufb":
        # cuDF would look whether each code is one, which takes it two milliseconds
        return null_where(silent, to_device(names.to_numpy(), "gpu")[code], kind)
    return null_where(silent, taken(to_series(pd.Series(names), kind), code), kind)
