"""A level and all above it on a GPU, done together and read once."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np

from glp_rapids.communities.kernels import (
    gpu_classes,
    gpu_global_tables,
    gpu_small_levels,
    gpu_store,
    gpu_tables,
)
from glp_rapids.communities.numbers import facts_of
from glp_rapids.communities.objective import Network
from glp_rapids.communities.schedule import DOWN, LARGE, UP
from glp_rapids.device import array_module, to_host
from glp_rapids.jit import arena
from glp_rapids.jit.cuda import bound
from glp_rapids.jit.launch import launch_together

Array = Any


# Vertices and entries: of the first level at the most, and of a block there. With half the blocks
# an H200 takes 5 to 8% longer; where later levels had launches of fewer blocks it took as long. The
# kernel refines all levels above one that is refined, as `schedule.is_refined` has it up to LARGE.
LARGEST, ITEMS_A_BLOCK = LARGE, 1 << 11
ROOM = 3  # times what the first level takes have all together; two at the least
# Fields of a store, by what they are made as.
ZEROS = ("control", "found", "own", "hub_table", "table")
WIDE = (
    "indptr", "volume", "sizes", "volumes", "part_volumes", "outward", "totals", "offsets",
    "counts", "bases", "pieces", "piece_labels", "gains_high",
)  # fmt: skip
WORDS = ("words", "gains_low")
NARROW = (
    "indices", "labels", "names", "first_of_parts", "following", "parts", "joined",
    "parts_following", "members", "goals", "first", "number_of", "of_communities",
    "first_of_communities", "used", "owners",
)  # fmt: skip
FLAGS = ("active", "turns")
# Of hubs there are blocks enough for small pieces. Where shorter rows were hubs', too, an H200 took
# 2 to 8% longer.
LENGTHS = gpu_classes.Lengths(np.int64(128), np.int64(1024), np.int64(512))


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


def is_small(network: Network) -> bool:
    """Tell whether a level, and with it all above it, is small enough."""
    return network.size + network.indices.size <= LARGEST


class SharedStore:
    """The store of all launches of a run, which follow one another; made while a GPU is busy."""

    def __init__(self) -> None:
        self._made: tuple[gpu_store.Store, int, int] | None = None

    def prepare(self, network: Network) -> None:
        """Make a store for the level above a network, should that be small, if there is memory."""
        if self._made is None:
            size, entries = network.size, network.indices.size
            with suppress(MemoryError):
                self._made = _make_store(network, min(size, LARGEST), min(entries, LARGEST))

    def store_for(self, network: Network) -> gpu_store.Store:
        """Return a store in which a level has room; what an earlier launch left there is lost."""
        size, entries = network.size, network.indices.size
        if self._made is None or size > self._made[1] or entries > self._made[2]:
            self._made = None  # two would take more memory
            self._made = _make_store(network, size, entries)
        else:
            # all else that begins as zeros is left so
            arena.as_array(self._made[0].control)[...] = 0
        return self._made[0]


class FusedLevels:
    """A level and all above it, done in one launch, or where there is no room for some in more."""

    def __init__(
        self, network: Network, labels: Array, parameters: gpu_store.Parameters,
        shared: SharedStore,
    ) -> None:  # fmt: skip
        xp, index_type = array_module(labels), network.indices.dtype.type
        size, entries = network.size, network.indices.size
        weights, self._store = network.weights, shared.store_for(network)
        # as the network's that it was made for: a level without an entry says nothing
        wide = arena.as_array(self._store.weights).dtype == np.int64
        if not weights.size:
            weights = xp.ones(entries, np.int64 if wide else np.int32)
        given = gpu_store.Level(
            network.indptr, network.indices, weights, network.volume, network.words,
            labels.astype(index_type, copy=False),
        )  # fmt: skip
        blocks = -(-(size + entries) // ITEMS_A_BLOCK)
        self._parameters = parameters
        self._launch = partial(
            launch_together, gpu_small_levels.build(wide, index_type), blocks, gpu_classes.THREADS,
            *bound((given, self._store)),
        )  # fmt: skip
        self._launch(parameters)
        self.labels = arena.as_array(self._store.labels)[:size]
        self.volumes = arena.as_array(self._store.volumes)[:size]  # of this level, moved last
        self._control = arena.as_array(self._store.control)[: gpu_small_levels.SCRATCH]

    def wait(self) -> tuple[list[dict], bool]:
        """Return how levels went, and whether all were done in the first launch."""
        told = to_host(self._control)
        depth, first = int(told[gpu_small_levels.LEVEL]), int(self._parameters.first)
        if told[gpu_small_levels.FINISHED]:
            levels = [_facts(told, level, first, UP) for level in range(depth + 1)]
            again = [depth] if not levels[-1]["moved"] else []
            down = [*again, *reversed(range(depth))]
            return levels + [_facts(told, level, first, DOWN) for level in down], True
        levels = [_facts(told, level, first, UP) for level in range(depth)]
        parameters = self._parameters
        above, labels = _level(self._store, told, depth, int(parameters.unit))
        # its levels have a store of their own: those here are needed on the way down
        rest = FusedLevels(above, labels, parameters._replace(
            seed=parameters.seed + np.uint64(depth << 40), first=np.int64(first + depth),
        ), SharedStore())  # fmt: skip
        levels += rest.wait()[0]
        labels[...] = rest.labels
        self._control[gpu_small_levels.ARRIVED : gpu_small_levels.ARRIVED + 1] = 0
        self._launch(parameters._replace(above=np.int64(depth)))
        told = to_host(self._control)
        levels += [_facts(told, level, first, DOWN) for level in reversed(range(depth))]
        return levels, False


def _make_store(
    network: Network, size: int, entries: int
) -> tuple[gpu_store.Store, int, int]:
    """Return a store for a level of so many vertices and entries, at most, and these."""
    xp, index_type = array_module(network.indptr), network.indices.dtype.type
    wide = gpu_tables.weights_of(network.indices, network.weights).wide
    blocks = -(-(size + entries) // ITEMS_A_BLOCK)
    words = gpu_global_tables.words_of_slot(wide)
    room = room_of_hubs(entries, int(LENGTHS.block))
    hubs, pieces = hubs_and_pieces(room, LENGTHS)
    table = min(entries + (entries >> 1) + size, size * size)
    stride, control = size + 1, gpu_small_levels.SCRATCH + gpu_small_levels.scratch_size()
    sizes = {
        **dict.fromkeys(gpu_store.STACKED, ROOM * stride),
        **dict.fromkeys(gpu_store.STACKED_ENTRIES, ROOM * entries), "counts": blocks,
        **dict.fromkeys(("bases", "pieces", "found", "own"), hubs),
        **dict.fromkeys(("piece_labels", "gains_high", "gains_low", "owners"), pieces),
        "hub_table": words * room, "used": room, "table": words * table, "control": control,
    }  # fmt: skip

    def sized(dtype: Any, fields: tuple[str, ...]) -> dict[str, tuple[Any, int]]:
        return {field: (dtype, sizes.get(field, stride)) for field in fields}

    zeros = arena.carve(xp, sized(np.int64, ZEROS), zeros=True)
    others = arena.carve(xp, {
        **sized(np.int64, WIDE), **sized(np.uint64, WORDS), **sized(index_type, NARROW),
        **sized(np.uint8, FLAGS), **sized(np.int64 if wide else np.int32, ("weights",)),
    })  # fmt: skip
    return gpu_store.Store(**zeros, **others), size, entries


def _record(told: np.ndarray, level: int) -> list[int]:
    begin = gpu_small_levels.RECORDS + level * gpu_small_levels.A_RECORD
    return told[begin : begin + gpu_small_levels.A_RECORD].tolist()


def _facts(told: np.ndarray, level: int, first: int, way: str) -> dict:
    """Return how a level went, up or down."""
    record = _record(told, level)
    went = record[gpu_small_levels.RISE if way == UP else gpu_small_levels.FALL :]
    moved = went[gpu_small_levels.MOVED :][: went[gpu_small_levels.SWEEPS]]
    parts = record[gpu_small_levels.PARTS] if way == UP else None
    seconds = went[gpu_small_levels.TIME] / 1e9
    return facts_of(first + level, way, record[gpu_small_levels.VERTICES], moved, parts, seconds)


def _level(
    store: gpu_store.Store, told: np.ndarray, level: int, unit: int
) -> tuple[Network, Array]:
    """Return a level that there was no room above, and its communities, which may be written."""
    size, entries, first, entry, *_ = _record(told, level)
    past, end = first + size, entry + entries
    of_vertices, of_entries = slice(first, past), slice(entry, end)
    network = Network(
        arena.as_array(store.indptr)[first : past + 1], arena.as_array(store.indices)[of_entries],
        arena.as_array(store.weights)[of_entries], unit, arena.as_array(store.volume)[of_vertices],
        arena.as_array(store.words)[of_vertices],
    )  # fmt: skip
    return network, arena.as_array(store.labels)[of_vertices]
