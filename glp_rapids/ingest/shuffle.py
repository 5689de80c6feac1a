"""A graph made by several ranks, each of which has some of the edges: none ever has all of them.

Ids are ranked by a range shuffle: each rank owns a range of the sorted ids, chosen by samples so
that all own about as many ends of edges. It ranks those it is sent, and answers with their indices;
then each edge goes to the rank that owns its row. Vertices are numbered as in one process.

Frames of cuDF are worked on where they are, on the GPU of each rank; samples of ids are of pandas.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from glp_rapids.common.segments import occurrences
from glp_rapids.device import DeviceName, array_module, device_of, module_on, to_device, to_host
from glp_rapids.frames import kinds
from glp_rapids.frames.kinds import Column, Frame, Kind
from glp_rapids.graph import build
from glp_rapids.graph.id_words import IdWords, id_words
from glp_rapids.graph.rows import CSR
from glp_rapids.graph.sort_gpu import index_dtype
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.ingest import readers
from glp_rapids.ingest.further import further_columns
from glp_rapids.ingest.rank import rank_ids
from glp_rapids.ingest.weights import checked_weights
from glp_rapids.multigpu.exchange import Exchange

Array = Any
SAMPLES = 256  # ids that a rank names for each range there will be
A_ROUND = 1 << 19  # edges of a rank that are sent at once
A_ROUND_OF_GPU = 1 << 26  # there the sending takes longer than what it is sent by


class Part(NamedTuple):
    """What a rank has of a graph."""

    rows: CSR  # as many as vertices; only those of its range have entries
    bounds: np.ndarray  # where the ranges of the ranks begin, and the last one ends
    rank: int
    vertices: VertexIds  # the ids of its range
    words: IdWords  # of all vertices

    @property
    def first(self) -> int:
        """The first vertex of its range."""
        return int(self.bounds[self.rank])

    @property
    def last(self) -> int:
        """The one behind the last vertex of its range."""
        return int(self.bounds[self.rank + 1])


def part_of(
    exchange: Exchange, frames: list[Frame], options: readers.Options,
    multigraph: build.Multigraph, direction: str, vertices: Sequence[Any] = (),
) -> Part:  # fmt: skip
    """Make this rank's part of the graph whose edges are those in the frames of all ranks.

    ``frames``: one at least, maybe without a row; they are taken out. All are of pandas, or of cuDF
    on all ranks. Row v holds the neighbours
    whose labels v reads, by ``direction``: "in", "out" or "both". ``vertices``: tables of further
    ids, which this rank has.
    """
    kind: Kind = "cudf" if kinds.is_cudf(frames[0], "DataFrame") else "pandas"
    device: DeviceName = "cpu" if kind == "pandas" else "gpu"
    xp = module_on(device)
    edges = [readers.read(frame, options) for frame in frames]
    frames.clear()
    labels = [edges[0].source_labels, edges[0].destination_labels]
    ends = [end for one in edges for end in (one.source, one.destination)]
    labels *= len(edges)
    more = _further(exchange, vertices, ends[:2], options.ends)
    labels += [["vertices"] * len(ends[0])] * len(more)
    codes, known = rank_ids([*ends, *more], labels, kind, device)
    del codes[len(codes) - len(more) :], more  # they have no edges
    weights = None
    if edges[0].weight is not None:
        weights = [checked_weights(one.weight, one.weight_label) for one in edges]
        weights = xp.concatenate([to_device(one, device) for one in weights])
        weights = _of_one_type(exchange, weights)
    del edges, ends
    source, destination = xp.concatenate(codes[::2]), xp.concatenate(codes[1::2])
    del codes
    counts = xp.zeros(len(known), np.int64)
    for end in (source, destination):
        if end.size:
            counts += occurrences(end, len(known))
    ids = kinds.joined(known.take(None, "id"), kind)
    cuts = _cuts(exchange, ids, counts, labels[0])
    asked = exchange.alltoall([ids[low:high] for low, high in pairwise([0, *cuts, len(ids)])])
    parts = [_columns(one) for one in asked]
    found, own = rank_ids(parts, [_labels(parts[0], labels[0])] * len(parts), kind, device)
    sizes = [size for (size,) in exchange.numbers([len(own)])]
    bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    number, first = int(bounds[-1]), int(bounds[exchange.rank])
    dtype = index_dtype(number)
    answers = exchange.alltoall([(first + codes.astype(np.int64)).astype(dtype) for codes in found])
    index = xp.concatenate(answers)
    ends = [index[source], index[destination], weights]
    del source, destination, weights, index, answers, asked, parts, found, ids
    one_way = "in" if direction == "both" else direction
    pairs = _sent_to_owners(exchange, ends, bounds, options.directed, one_way)
    rows = CSR(*build.csr_of_pairs(*pairs, number, symmetric=False, multigraph=multigraph))
    del pairs
    if options.directed and direction == "both":
        rows = _joined(rows, reversed_rows(exchange, rows, bounds))
    return Part(rows, bounds, exchange.rank, own, _words(exchange, own, number, device))


def _of_one_type(exchange: Exchange, weights: Array) -> Array:
    """Cast weights to the type that holds those of all ranks; who has none has no say."""
    told = exchange.tell((weights.dtype, weights.size > 0))
    dtypes = [dtype for dtype, some in told if some] or [dtype for dtype, _ in told]
    return weights.astype(np.result_type(*dtypes), copy=False)


def _further(
    exchange: Exchange, vertices: Sequence[Any], ends: list[list[Column]], names: list[list[Any]]
) -> list[list[Column]]:
    """Return the columns of further ids; of a rank that has none, of one of another rank's.

    So the ids of all ranks are of the type that they have together.
    """
    own = [further_columns(one, ends, names) for one in vertices]
    filled = [columns for columns in own if len(columns[0])]
    some = [kinds.to_series(column[:1], "pandas") for column in filled[0]] if filled else None
    told = exchange.tell(some)
    others = [columns for columns in told if columns is not None]
    return own if filled or not others else [*own, others[0]]


def reversed_rows(exchange: Exchange, rows: CSR, bounds: np.ndarray) -> CSR:
    """Return this rank's rows of the graph whose every entry is reversed; of all ranks' rows."""
    entries = [rows.row_indices(), rows.indices, rows.weights]
    pairs = _sent_to_owners(exchange, entries, bounds, True, "in")
    return CSR(*build.csr_of_pairs(*pairs, rows.number_of_vertices, symmetric=False))


def _joined(one: CSR, other: CSR) -> CSR:
    """Join rows: an entry of both is twice in a row, unless it is a loop."""
    row, xp = other.row_indices(), array_module(other.indices)
    proper = row != other.indices
    rows = xp.concatenate([one.row_indices(), row[proper]])
    indices = xp.concatenate([one.indices, other.indices[proper]])
    number, order = one.number_of_vertices, build.ordering(indices)
    indptr, indices, edge = order.sorted_entries(rows, indices, number, False)
    if one.weights is None:
        return CSR(indptr, indices, None)
    weights = xp.concatenate([one.weights, other.weights[proper]])
    return CSR(indptr, indices, weights[edge])


def _columns(frame: Frame) -> list[Column]:
    return [frame[name] for name in frame]


def _labels(columns: list, labels: tuple[str, ...]) -> list[str]:
    return [labels[min(place, len(labels) - 1)] for place in range(len(columns))]


def _cuts(
    exchange: Exchange, ids: Frame, counts: Array, labels: tuple[str, ...]
) -> list[int]:
    """Return where the ranges of the ranks begin among this one's sorted ids, but for the first."""
    ranks, xp = exchange.ranks, array_module(counts)
    kind: Kind = "pandas" if xp is np else "cudf"
    running = xp.cumsum(counts)
    total = int(running[-1]) if running.size else 0
    wanted = xp.arange(SAMPLES * ranks) * total // (SAMPLES * ranks)
    places = to_host(xp.searchsorted(running, wanted, side="right"))
    sample = ids.iloc[places if total else []]
    sample = sample if kind == "pandas" else sample.to_pandas()
    told = exchange.tell((total, sample))
    samples = [_columns(frame) for _, frame in told]
    codes, distinct = rank_ids(samples, [_labels(samples[0], labels)] * ranks, "pandas", "cpu")
    # a sample stands for as many ends as its rank has, divided by how many it named
    weights = np.concatenate([
        np.full(one.size, rank_total // max(one.size, 1) + 1)
        for one, (rank_total, _) in zip(codes, told, strict=True)
    ])  # fmt: skip
    share = np.bincount(np.concatenate(codes), weights=weights, minlength=len(distinct))
    share = np.cumsum(share)
    if not share.size:
        return [0] * (ranks - 1)
    wanted = share[-1] * np.arange(1, ranks) / ranks
    splitters = distinct.take(np.searchsorted(share, wanted), "id")
    splitters = [kinds.to_series(pd.Series(one), kind) for one in splitters.values()]
    together, _ = rank_ids(
        [splitters, _columns(ids)], [_labels(splitters, labels)] * 2, kind, device_of(counts)
    )
    return to_host(xp.searchsorted(together[1], together[0])).tolist()


def _rows_of(
    source: Array, destination: Array, weights: Array | None, directed: bool, direction: str
) -> tuple[Array, Array, Array | None]:
    """Return row, neighbour and weight of the entries that edges make."""
    if directed:
        pair = (destination, source) if direction == "in" else (source, destination)
        return *pair, weights
    proper, xp = source != destination, array_module(source)
    rows = xp.concatenate([source, destination[proper]])
    neighbours = xp.concatenate([destination, source[proper]])
    if weights is not None:
        weights = xp.concatenate([weights, weights[proper]])
    return rows, neighbours, weights


def _sent_to_owners(
    exchange: Exchange, edges: list[Array | None], bounds: np.ndarray, directed: bool,
    direction: str,
) -> list[Array | None]:  # fmt: skip
    """Send each entry to the rank that owns its row; return row, neighbour, weight of this rank's.

    ``edges`` (ends and weights) are taken out. Some are sent after others, so that a rank holds
    little beside them and what has come.
    """
    xp = array_module(edges[0])
    step, ends = (A_ROUND if xp is np else A_ROUND_OF_GPU), xp.asarray(bounds[1:])
    come: list[list[Array] | None] = [None if values is None else [] for values in edges]
    rounds = exchange.numbers([-(-edges[0].size // step)])
    for number in range(max(1, *(told for (told,) in rounds))):
        some = slice(number * step, (number + 1) * step)
        part = [None if values is None else values[some] for values in edges]
        entries = _rows_of(*part, directed, direction)
        owner = xp.searchsorted(ends, entries[0], side="right").astype(np.int16)
        for taken, values in zip(come, entries, strict=True):
            if taken is not None:
                parts = [values[owner == rank] for rank in range(exchange.ranks)]
                taken += exchange.alltoall(parts)
    edges.clear()
    joined: list[Array | None] = []
    while come:
        taken = come.pop(0)
        joined.append(None if taken is None else xp.concatenate(taken))
    return joined


def _words(
    exchange: Exchange, own: VertexIds, number: int, device: DeviceName
) -> IdWords:
    """Return the words of all vertices: those that the graph of one process would have."""
    (column, *more) = own.columns
    integer = not more and (not len(own) or column.family == "integer")
    ends = exchange.tell(column.ends if integer and len(own) else (integer, len(own)))
    sizes = [end for end in ends if not (end[0] is True and end[1] == 0)]
    if all(not isinstance(low, bool) for low, _ in sizes) and sizes:
        low, high = min(low for low, _ in sizes), max(high for _, high in sizes)
        if high - low == number - 1:
            return IdWords.range(low, device)
    xp = module_on(device)
    words = xp.empty(0, np.int64)
    if len(own):
        words = id_words(own, device).of_first(len(own)).astype(np.int64, copy=False)
    (words,) = exchange.allgather([words])
    if words.size == 1:  # one word counts as none
        return IdWords.range(int(words[0]), device)
    return IdWords(np.int64(0), words)
