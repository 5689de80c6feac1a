"""Going down on a GPU: the levels from a small one on, sent off together and read once."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from glp_rapids.communities.kernels import (
    gpu_classes,
    gpu_descent,
    gpu_global_tables,
    gpu_merging,
    gpu_store,
    gpu_tables,
)
from glp_rapids.communities.kernels.gpu_descent import A_RECORD, RECORDS
from glp_rapids.communities.numbers import Rest
from glp_rapids.communities.objective import Network
from glp_rapids.device import array_module, to_host
from glp_rapids.jit.cuda import bound
from glp_rapids.jit.launch import launch_together

Array = Any


# Vertices and entries: of the first level at the most, and of a block there. With half the blocks
# an H200 takes 4 to 7% longer; where later levels had launches of fewer blocks it took as long.
LARGEST, ITEMS_A_BLOCK = 1 << 20, 1 << 12
# Fields of a store, by what they are made as: six allocations in all.
ZEROS = ("found", "own", "hub_table", "table", "control")
WIDE = (
    "indptr", "volume", "sizes", "volumes", "part_volumes", "outward", "totals",
    "offsets", "counts", "bases", "pieces", "piece_labels", "gains_high",
)  # fmt: skip
WORDS = ("words", "gains_low")
NARROW = (
    "indices", "labels", "following", "parts", "joined", "parts_following", "parent", "members",
    "goals", "first", "number_of", "of_communities", "first_of_communities", "first_of_parts",
    "names", "used", "long",
)  # fmt: skip
FLAGS = ("active", "turns")
# Of hubs there are blocks enough for small pieces. Where shorter rows were hubs', too, an H200 took
# 2 to 8% longer.
LENGTHS = gpu_classes.Lengths(np.int64(256), np.int64(2048), np.int64(512))
FEW_NAMES = 1 << 15  # numbers of parts that all have room for; and four a vertex


def room_of_hubs(entries: int, largest: int) -> int:
    """Return how many slots the tables of hubs take at the most."""
    if entries <= largest:
        return 0
    return entries + (entries >> 1) + entries // (largest + 1)


def hubs_and_pieces(room: int, lengths: gpu_classes.Lengths) -> tuple[int, int]:
    """Return how many hubs, and pieces of them, take so much room at the most."""
    largest = int(lengths.block)
    hubs = room // (largest + (largest >> 1)) + 1
    return hubs, room // int(lengths.piece) + hubs


def goes_down(network: Network) -> bool:
    """Tell whether a level, and with it all after it, is small enough."""
    return network.size + network.indices.size <= LARGEST


def sent_off(network: Network, labels: Array, parameters: gpu_store.Parameters) -> Rest:
    """Do all levels from this one on, or as many as there is room for, and wait."""
    xp, index_type = array_module(labels), network.indices.dtype.type
    size, entries = network.size, network.indices.size
    weights, wide = network.weights, gpu_tables.weights_of(network.indices, network.weights).wide
    if not weights.size:
        weights = xp.ones(entries, np.int64 if wide else np.int32)
    given = gpu_store.Level(
        network.indptr, network.indices, weights, network.volume, network.words,
        labels.astype(index_type, copy=False),
    )  # fmt: skip
    blocks = -(-(size + entries) // ITEMS_A_BLOCK)
    store = _store(xp, index_type, wide, size, entries, blocks)
    kernel, arguments = gpu_descent.build(wide, index_type), bound((given, store))
    launch_together(kernel, blocks, gpu_classes.THREADS, *arguments, parameters)
    return _read(store, network.unit, bool(parameters.refine))


def _store(
    xp: Any, index_type: Any, wide: bool, size: int, entries: int, blocks: int
) -> gpu_store.Store:
    words = gpu_global_tables.words_of_slot(wide)
    room = room_of_hubs(entries, int(LENGTHS.block))
    hubs, pieces = hubs_and_pieces(room, LENGTHS)
    table = min(entries + (entries >> 1) + size, size * size)
    stride, control = size + 1, gpu_descent.SCRATCH + gpu_descent.scratch_size()
    sizes = {
        **dict.fromkeys(("indptr", "volume", "words", "labels"), 2 * stride),
        **dict.fromkeys(("indices", "weights"), 2 * entries), "counts": blocks,
        **dict.fromkeys(("bases", "pieces", "found", "own"), hubs),
        **dict.fromkeys(("piece_labels", "gains_high", "gains_low"), pieces),
        "hub_table": words * room, "used": room, "table": words * table, "control": control,
        "long": entries // (gpu_merging.LONGEST + 1) + 1, "names": 4 * stride + FEW_NAMES,
    }  # fmt: skip
    arrays = {}
    for make, dtype, fields in (
        (xp.zeros, np.int64, ZEROS), (xp.empty, np.int64, WIDE), (xp.empty, np.uint64, WORDS),
        (xp.empty, index_type, NARROW), (xp.empty, np.uint8, FLAGS),
        (xp.empty, np.int64 if wide else np.int32, ("weights",)),
    ):  # fmt: skip
        ends = np.cumsum([0, *(sizes.get(field, stride) for field in fields)]).tolist()
        whole = make(ends[-1], dtype)
        for field, (begin, end) in zip(fields, pairwise(ends), strict=True):
            arrays[field] = whole[begin:end]
    return gpu_store.Store(**arrays, stride=np.int64(stride), entries=np.int64(entries))


def _read(store: gpu_store.Store, unit: int, refine: bool) -> Rest:
    """Wait, and tell what came out; arrays stay where they are."""
    told = to_host(store.control[: gpu_descent.SCRATCH])
    depth = int(told[gpu_descent.LEVEL])
    records = told[RECORDS : RECORDS + depth * A_RECORD].reshape(depth, A_RECORD)
    ends = [int(told[gpu_descent.START]), *records[:, gpu_descent.TIME].tolist()]
    levels, parts, begin = [], [], 0
    for record, (earlier, later) in zip(records.tolist(), pairwise(ends), strict=True):
        vertices = record[gpu_descent.VERTICES]
        moved = record[gpu_descent.MOVED :][: record[gpu_descent.SWEEPS]]
        levels.append(
            {"vertices": vertices, "communities": record[gpu_descent.FOUND], "moved": moved,
             "seconds": (later - earlier) / 1e9}
        )  # fmt: skip
        parts.append(store.names[begin : begin + vertices])
        begin += vertices
    size, filled = int(told[gpu_descent.SIZE]), int(told[gpu_descent.ENTRIES])
    if told[gpu_descent.FINISHED]:
        communities = parts.pop()
        if refine:
            communities = store.of_communities[:size]
        volumes = store.totals[: int(told[gpu_descent.COMMUNITIES])]
        crossing = int(told[gpu_descent.CROSSING])
        return Rest(levels, parts, communities, volumes, crossing, None, None)
    side = int(told[gpu_descent.SIDE])
    first, entry = side * int(store.stride), side * int(store.entries)
    network = Network(
        store.indptr[first : first + size + 1], store.indices[entry : entry + filled],
        store.weights[entry : entry + filled], unit, store.volume[first : first + size],
        store.words[first : first + size],
    )  # fmt: skip
    return Rest(levels, parts, None, None, 0, network, store.labels[first : first + size])
