"""The GPU engine: one level of a multilevel run, each stage a few launches and one read."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.common.cached_property import cached_property
from glp_rapids.communities.engines import small_levels
from glp_rapids.communities.engines.merging import ITEMS_A_BLOCK, Merge
from glp_rapids.communities.kernels import (
    gpu_best,
    gpu_classes,
    gpu_global_tables,
    gpu_merging,
    gpu_moving,
    gpu_numbering,
    gpu_refining,
    gpu_store,
    gpu_tables,
    gpu_uniting,
    gpu_windows,
)
from glp_rapids.communities.numbers import Numbered, PendingLevels, Terms
from glp_rapids.communities.objective import Network
from glp_rapids.communities.schedule import (
    CLASSES,
    FEWER_CLASSES,
    MOST_SWEEPS,
    REFINING_SWEEPS,
    ends_at,
)
from glp_rapids.device import array_module, to_host
from glp_rapids.jit import arena
from glp_rapids.jit.cuda import bound
from glp_rapids.jit.launch import launch, launch_together

Array = Any
FEW_ENTRIES = 1 << 22  # up to which there is room for hubs as if all rows were hubs'
# Entries, up to which a level is contracted before the host knows how many parts there are, though
# these may turn out to be so many that it is the last. The host takes .2 ms to hear of it, a GPU as
# long for 2 million entries; more levels than not go on, so it pays for a few times as many.
AHEAD = 1 << 23
LENGTHS = gpu_classes.Lengths(np.int64(128), np.int64(1024), np.int64(1024))
# Counters of a stage that are told of, and others, by how many there are.
TOLD = {
    "swept": 1, "moved": MOST_SWEEPS * CLASSES, "terms": gpu_uniting.JUDGED, "numbered": 2,
    "merged": 3,
}  # fmt: skip
OTHERS = {
    "arrived": 1, "numbered_first": 2, "counts": REFINING_SWEEPS * gpu_classes.LISTS,
    "cursors": REFINING_SWEEPS * gpu_classes.LISTS,
    "rooms": REFINING_SWEEPS * gpu_classes.ROOMS * CLASSES,
}  # fmt: skip


class Counters:
    """Zeros that the launches of a stage share; what these tell is in front, and read at once."""

    def __init__(self, xp: Any) -> None:
        sizes = {name: (np.int64, size) for name, size in {**TOLD, **OTHERS}.items()}
        self._whole = xp.zeros(sum(size for _, size in sizes.values()), np.int64)
        self.arrays = arena.cut(self._whole, sizes, np.dtype(np.int64).itemsize)

    def read(self) -> dict[str, list[int]]:
        """Wait for the launches, and return what they tell."""
        numbers, begin, found = to_host(self._whole[: sum(TOLD.values())]).tolist(), 0, {}
        for name, size in TOLD.items():
            found[name] = numbers[begin : begin + size]
            begin += size
        return found


class GpuEngine:
    """As `Engine` says; a stage is a few launches and one read.

    Parameters
    ----------
    network : Network
        Its arrays on the GPU.
    constant : int
        C of the objective.
    shared : SharedStore, optional
        That of the engine of the level below.
    """

    def __init__(
        self, network: Network, constant: int, shared: small_levels.SharedStore | None = None
    ) -> None:
        self.network, self.constant = network, constant
        self._shared = shared or small_levels.SharedStore()
        self._parts_of: tuple[Any, ...] = ()
        self.xp = array_module(network.indptr)
        self._index_type = network.indices.dtype.type
        self._weights = gpu_tables.weights_of(network.indices, network.weights)
        size = network.size
        self._rows = bound((network.indptr, network.indices, network.weights))
        self._vertices = bound((network.volume, network.words))
        self._blocks = (network.indices.size + size) // ITEMS_A_BLOCK + 1

    @cached_property
    def _scratch(self) -> dict[str, Any]:
        """What moving and numbering write on their way; volumes are those of the last partition."""
        index, size = self._index_type, self.network.size
        return arena.carve(self.xp, {
            "sizes": (np.int64, size), "volumes": (np.int64, size),
            "counts": (np.int64, self._blocks), "following": (index, size),
            "members": (index, size), "goals": (index, size), "first": (index, size),
            "number_of": (index, size), "active": (np.uint8, size),
        })  # fmt: skip

    @cached_property
    def _hubs(self) -> tuple[tuple, tuple]:
        """The tables of hubs, and where these and their pieces are found."""
        network, xp = self.network, self.xp
        largest = int(LENGTHS.block)
        room = small_levels.room_of_hubs(network.indices.size, largest)
        if network.indices.size > FEW_ENTRIES:
            room = _room_of_long_rows(network.indptr, largest)
        hubs, pieces = small_levels.hubs_and_pieces(room, LENGTHS)
        words = gpu_global_tables.words_of_slot(self._weights.wide)
        zeros = arena.carve(xp, {
            "found": (np.int64, hubs), "own": (np.int64, hubs), "table": (np.int64, words * room),
        }, zeros=True)  # fmt: skip
        index = self._index_type
        others = arena.carve(xp, {
            "used": (index, room), "labels": (np.int64, pieces), "gains_high": (np.int64, pieces),
            "gains_low": (np.uint64, pieces), "bases": (np.int64, hubs),
            "pieces": (np.int64, hubs), "owners": (index, pieces),
        })  # fmt: skip
        of_work = (others[name] for name in ("used", "labels", "gains_high", "gains_low"))
        of_lists = (others[name] for name in ("bases", "pieces", "owners"))
        return (*zeros.values(), *of_work), tuple(of_lists)

    def rest(
        self, labels: Array, seed: int, depth: int, max_level: int, refining: bool
    ) -> PendingLevels | None:
        """Do all levels from here on in one launch, if this one is small."""
        if not small_levels.is_small(self.network):
            return None
        parameters = gpu_store.Parameters(
            np.int64(self.network.unit), np.int64(self.constant), np.uint64(seed), np.int64(depth),
            np.int64(max_level), np.int64(refining), small_levels.LENGTHS, np.int64(0),
        )  # fmt: skip
        return small_levels.FusedLevels(self.network, labels, parameters, self._shared)

    @property
    def volumes(self) -> Any:
        """Of communities by name, as a move left them."""
        return self._scratch["volumes"]

    def up(
        self, labels: Array, seed: int, classes: int, least_moves: int | None
    ) -> tuple[Array, list[int], Numbered, tuple[GpuEngine, Array] | None]:
        """Move, number and contract: three launches."""
        counters = Counters(self.xp)
        labels = self._move(labels, None, seed, classes, counters)
        numbers = self._number(labels, counters.arrays["numbered"])
        named = numbers.numbers, numbers.firsts
        told, above = self._above(numbers, named, counters, least_moves)
        parts = _counted(numbers, told["numbered"])
        return arena.as_array(labels), _moved(told), parts, above

    def down(
        self, labels: Array, parts: Numbered | None, seed: int, classes: int, *,
        terms: bool = False, last: bool = False,
    ) -> tuple[Array, list[int], Terms | None]:  # fmt: skip
        """Move once more, and begin what comes next."""
        counters = Counters(self.xp)
        moved = self._move(labels, parts, seed, classes, counters)
        numbers = self._sum_terms(moved, self.volumes, counters) if terms else None
        labels = arena.as_array(moved)
        self._parts_of = (labels, *self._connect(labels)) if last else ()
        told = counters.read()
        found = _terms(told, self.network.unit, numbers) if terms else None
        return labels, _moved(told), found

    def refined(
        self, labels: Array, seed: int, sweeps: int, communities: Numbered | None = None
    ) -> tuple[Numbered, tuple[GpuEngine, Array] | None]:
        """Refine, number and contract: three or four launches."""
        network, xp, index, size = self.network, self.xp, self._index_type, self.network.size
        counters, scratch = Counters(xp), self._scratch
        labels = labels.astype(index, copy=False)
        named = communities
        if named is None:
            numbers = self._number(labels, counters.arrays["numbered_first"])
            named = numbers.numbers, numbers.firsts
        own = arena.carve(xp, {
            "labels": (index, size), "turns": (np.uint8, size), "volumes": (np.int64, size),
            "outward": (np.int64, size), "joined": (np.int16, size),
        })  # fmt: skip
        state = gpu_refining.Refining(
            *self._rows, np.int64(network.unit), *self._vertices, np.int64(self.constant),
            labels, scratch["volumes"], *own.values(), scratch["following"], np.uint64(seed),
        )  # fmt: skip
        lists, work = self._work(FEWER_CLASSES, counters)
        kernel = gpu_refining.build(self._weights, index)
        launch_together(
            kernel, self._blocks, gpu_classes.THREADS, state, lists, work, np.int64(sweeps)
        )
        parts = self._number(own["labels"], counters.arrays["numbered"])
        told, above = self._above(parts, named, counters, 0)
        return _counted(parts, told["numbered"]), above

    def terms(self, labels: Array, volumes: Array | None) -> Terms:
        """Add up and number: two launches."""
        if volumes is None:
            total = self.xp.zeros(self.network.size, np.uint64)  # CuPy adds no int64 at places
            self.xp.add.at(total, labels, self.network.volume.view(np.uint64))
            volumes = total.view(np.int64)
        counters = Counters(self.xp)
        numbers = self._sum_terms(labels.astype(self._index_type, copy=False), volumes, counters)
        return _terms(counters.read(), self.network.unit, numbers)

    def connected_parts(self, labels: Array) -> tuple[Array, Terms]:
        """Find connected parts, number them and add up: four launches, unless they have begun."""
        begun, self._parts_of = self._parts_of, ()
        if not begun or begun[0] is not labels:
            begun = labels, *self._connect(labels)
        _, roots, numbers, counters = begun
        return roots, _terms(counters.read(), self.network.unit, numbers)

    def _connect(self, labels: Array) -> tuple[Array, gpu_numbering.Numbering, Counters]:
        network, index, threads = self.network, self._index_type, gpu_uniting.THREADS
        counters, size = Counters(self.xp), network.size
        parent = self.xp.arange(size, dtype=index)
        volumes, roots = self.xp.zeros(size, np.int64), self.xp.empty_like(parent)
        build = gpu_uniting.build_unite
        self._along_edges(build(threads, gpu_uniting.EACH, self._weights.listed, index),
                          labels, parent)  # fmt: skip
        kernel = gpu_uniting.build_roots(threads)
        launch(kernel, -(-size // threads), threads, parent, roots, network.volume, volumes)
        return roots, self._sum_terms(roots, volumes, counters), counters

    def _move(
        self, labels: Array, parts: Numbered | None, seed: int, classes: int, counters: Counters
    ) -> Any:
        """Sweep; return labels, on their way."""
        network, scratch, index = self.network, self._scratch, self._index_type
        labels = labels.astype(index, copy=False)
        given = gpu_moving.Initial(labels, *(parts or (labels[:0], labels[:0])))
        found = arena.carve(self.xp, {"labels": (index, network.size)})["labels"]
        state = gpu_moving.Moving(
            *self._rows, np.int64(network.unit), *self._vertices, np.int64(self.constant),
            found, scratch["sizes"], scratch["volumes"], scratch["active"], scratch["following"],
            np.uint64(seed),
        )  # fmt: skip
        lists, work = self._work(classes, counters)
        kernel = gpu_moving.build(self._weights, index)
        launch_together(
            kernel, self._blocks, gpu_classes.THREADS, given, state, lists, work,
            counters.arrays["swept"],
        )  # fmt: skip
        return found

    def _number(self, labels: Any, done: Any) -> gpu_numbering.Numbering:
        """Number communities, or parts, in the order of their first vertices; for `_counted`."""
        scratch, index, size = self._scratch, self._index_type, self.network.size
        found = arena.carve(self.xp, {"numbers": (index, size), "firsts": (index, size)})
        state = gpu_numbering.Numbering(
            labels, found["numbers"], scratch["first"], scratch["number_of"], found["firsts"],
            scratch["counts"], done,
        )  # fmt: skip
        threads = gpu_numbering.THREADS
        launch_together(gpu_numbering.build(threads), self._blocks, threads, state)
        return state

    def _sum_terms(self, labels: Any, volumes: Any, counters: Counters) -> gpu_numbering.Numbering:
        """Add up what an objective is made of, and number communities, both on their way."""
        kernel = gpu_uniting.build_terms(
            gpu_uniting.THREADS, gpu_uniting.EACH, self._weights.listed
        )  # fmt: skip
        self._along_edges(kernel, labels, volumes, counters.arrays["terms"])
        return self._number(labels, counters.arrays["numbered"])

    def _above(
        self, parts: gpu_numbering.Numbering, communities: tuple[Any, Any], counters: Counters,
        least_moves: int | None,
    ) -> tuple[dict[str, list[int]], tuple[GpuEngine, Array] | None]:  # fmt: skip
        """Return what launches tell, and the level whose vertices are the parts, if there is one.

        ``communities``: of every vertex the number, and of each the first vertex.
        """
        size, begun = self.network.size, None
        # few are not contracted for want of moves, and those are larger
        if least_moves is not None and self.network.indices.size <= AHEAD:
            begun = self._contract(parts, communities, size, counters, ahead=True)
            self._shared.prepare(self.network)
        told = counters.read()
        number = told["numbered"][gpu_numbering.NUMBER]
        if least_moves is None or sum(_moved(told)) < least_moves or ends_at(number, size):
            return told, None
        if begun is None:
            begun = self._contract(parts, communities, number, counters, ahead=False)
            _, total, blocks = counters.read()["merged"]
        else:
            _, total, blocks = told["merged"]
        merge, vertices = begun
        volumes, words, labels = (
            arena.as_array(piece)[:number]
            for piece in (vertices.volumes, vertices.words_of_parts, vertices.labels)
        )
        rows = merge.rows(number, total, blocks)
        above = Network(*rows, self.network.unit, volumes, words)
        return told, (GpuEngine(above, self.constant, self._shared), labels)

    def _contract(
        self, parts: gpu_numbering.Numbering, communities: tuple[Any, Any], most: int,
        counters: Counters, *, ahead: bool,
    ) -> tuple[Merge, gpu_merging.Vertices]:  # fmt: skip
        """Launch what makes rows of at most so many parts, and vertices."""
        old, index, arrays = self.network, self._index_type, counters.arrays
        volumes = arena.carve(self.xp, {"volumes": (np.int64, most)}, zeros=True)["volumes"]
        others = arena.carve(self.xp, {"words": (np.uint64, most), "labels": (index, most)})
        vertices = gpu_merging.Vertices(
            *self._vertices, parts.firsts, *communities, volumes, *others.values()
        )
        rows = gpu_windows.Rows(old.indptr, old.indices, old.weights, parts.numbers)
        merge = Merge(rows, vertices, most, arrays["numbered"], arrays["merged"], ahead=ahead)
        return merge, vertices

    def _along_edges(self, kernel: Any, labels: Any, *found: Any) -> None:
        threads = gpu_uniting.THREADS
        edges = gpu_uniting.Edges(*self._rows, labels)
        blocks = -(-self.network.indices.size // (threads * gpu_uniting.EACH))
        launch(kernel, blocks, threads, edges, *found)

    def _work(self, classes: int, counters: Counters) -> tuple[gpu_classes.Lists, gpu_best.Work]:
        """Return lists and what blocks share, as a launch takes them."""
        tables, of_hubs = self._hubs
        arrays, scratch = counters.arrays, self._scratch
        lists = gpu_classes.Lists(
            scratch["members"], scratch["goals"], arrays["counts"], arrays["cursors"],
            arrays["rooms"], *of_hubs, np.int64(classes), LENGTHS,
        )  # fmt: skip
        return lists, gpu_best.Work(arrays["arrived"], arrays["moved"], *tables)


def _moved(told: dict[str, list[int]]) -> list[int]:
    """Return how many vertices moved in each sweep."""
    (swept,), moved = told["swept"], told["moved"]
    return [sum(moved[sweep * CLASSES :][:CLASSES]) for sweep in range(swept)]


def _counted(state: gpu_numbering.Numbering, done: list[int]) -> Numbered:
    first = arena.as_array(state.firsts)[: done[gpu_numbering.NUMBER]]
    return Numbered(arena.as_array(state.numbers), first)


def _terms(told: dict[str, list[int]], unit: int, state: gpu_numbering.Numbering) -> Terms:
    sums = told["terms"]
    communities = _counted(state, told["numbered"])
    crossing = sums[gpu_uniting.CROSSING] * unit
    return Terms(crossing, gpu_uniting.squares(sums), communities)


def _room_of_long_rows(indptr: Array, largest: int) -> int:
    """Return how many slots the tables of rows longer than that take."""
    xp = array_module(indptr)
    if xp is np:
        degree = np.diff(indptr)
        return int(((degree + (degree >> 1) + 1) * (degree > largest)).sum())
    total = xp.zeros(1, np.int64)
    _adding_room()(indptr[:-1], indptr[1:], np.int64(largest), total)
    return int(total[0])


@functools.cache
def _adding_room() -> Any:
    """Make the kernel that does so: few rows are long, and CuPy's reductions have one block."""
    import cupy

    room = """
        long long degree = end - begin;
        if (degree > largest)
            atomicAdd((unsigned long long*)&total[0],
                      (unsigned long long)(degree + (degree >> 1) + 1));
    """
    return cupy.ElementwiseKernel(
        "int64 begin, int64 end, int64 largest", "raw int64 total", room, "glp_room_of_hubs"
    )
