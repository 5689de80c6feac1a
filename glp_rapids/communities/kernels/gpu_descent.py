"""All levels from one on in one launch: moving, refining, numbering, contraction, and again.

A small level takes less time than what a host does for it: five launches, some forty allocations
and fills, four reads. So the last levels of an iteration go down here, by the functions of which
`gpu_moving`, `gpu_refining`, `gpu_numbering`, `gpu_merging` and `gpu_uniting` are made, between two
copies of a level's arrays. The host reads once what came out. A block alone waits for no other:
its barriers are those of its threads.

Launch: cooperative, any number of blocks of THREADS. Degrees: any, as in `gpu_moving`. Shared
memory: 32 KB, where sums take 64 bits 41 KB. Registers: 255, with 190 to 230 bytes of a thread in
memory: a block a multiprocessor (128 and 860, as two leave, take as long).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.communities.kernels import (
    gpu_best,
    gpu_classes,
    gpu_merging,
    gpu_moving,
    gpu_numbering,
    gpu_refining,
    gpu_store,
    gpu_uniting,
)
from glp_rapids.communities.kernels.gpu_tables import Weights
from glp_rapids.communities.schedule import CLASSES, MOST_SWEEPS, REFINING_SWEEPS
from glp_rapids.jit.cuda import cuda, kernel, nanoseconds
from glp_rapids.jit.primitives import find_root

BLOCKS = 1  # a multiprocessor: small levels have fewer than there are, and much at hand
LANES = 32  # of a row, of the last level
MOST_LEVELS = 32

# Words of `Store.control`.
FINISHED, LEVEL, SIZE, ENTRIES, SIDE, NAMED, COMMUNITIES, CROSSING, START = range(9)
NUMBERED = 10  # two words, of `Numbering.done`
ARRIVED = 12
MERGED = 16  # four words, `Merging.done`
SWEPT = 20
RECORDS = 24  # of each level:
(VERTICES, FOUND, SWEEPS, TIME, MOVED), A_RECORD = range(5), 4 + MOST_SWEEPS
SCRATCH = RECORDS + MOST_LEVELS * A_RECORD  # zeros when a level begins:
STEPS_MOVING, STEPS_REFINING = MOST_SWEEPS * CLASSES, REFINING_SWEEPS * CLASSES
DRAWS = 1 + REFINING_SWEEPS


def scratch_size() -> int:
    """Return how many words of ``control`` begin as zeros on every level."""
    return STEPS_MOVING + STEPS_REFINING + DRAWS * 2 * (gpu_classes.LISTS + CLASSES)


@functools.cache
def build(wide: bool, index_type: Any) -> Any:
    """Make the kernel, for sums of 64 bits or 31; ``zeros`` and ``control`` begin as such."""
    threads, slots = gpu_classes.THREADS, gpu_classes.SLOTS
    lists_of_all, hub_lists = gpu_classes.LISTS, DRAWS * gpu_classes.LISTS
    scratch = scratch_size()
    barrier, classes_of = gpu_classes.barrier, gpu_classes.classes_of
    lanes = LANES
    weighted = Weights(True, wide)
    lay_out = gpu_best.build_shared(weighted, index_type)
    lay_out_begins = gpu_classes.build_begins()
    move = gpu_moving.build_move(weighted, index_type)
    refine = gpu_refining.build_refine(weighted, index_type)
    number_all = gpu_numbering.build_number(threads)
    lay_out_cache, add_all = gpu_merging.build_add_all(
        threads, gpu_merging.LANES, gpu_merging.LONGEST, gpu_merging.PIECE, weighted, False
    )
    write_all = gpu_merging.build_write_all(threads, slots // threads, wide, True)
    unite_row = gpu_uniting.build_unite_row(True, index_type)

    @cuda.jit(device=True)
    def level_of(store, side, size, entries):
        first, entry = side * store.stride, side * store.entries
        return gpu_store.Level(
            store.indptr[first : first + size + 1], store.indices[entry : entry + entries],
            store.weights[entry : entry + entries], store.volume[first : first + size],
            store.words[first : first + size], store.labels[first : first + size],
        )  # fmt: skip

    @cuda.jit(device=True)
    def load(given, store):
        """Copy the first level to the first side."""
        everywhere = np.int64(cuda.blockIdx.x) * threads + np.int64(cuda.threadIdx.x)
        all_threads = np.int64(cuda.gridDim.x) * threads
        size, entries = np.int64(given.labels.size), np.int64(given.indices.size)
        for entry in range(everywhere, entries, all_threads):
            store.indices[entry] = given.indices[entry]
            store.weights[entry] = given.weights[entry]
        for v in range(everywhere, size, all_threads):
            store.indptr[v] = given.indptr[v]
            store.volume[v] = given.volume[v]
            store.words[v] = given.words[v]
            store.labels[v] = given.labels[v]
        if everywhere == 0:
            store.indptr[size] = entries
            store.control[SIZE], store.control[ENTRIES] = size, entries
            store.control[START] = np.int64(nanoseconds())

    @cuda.jit(device=True)
    def prepare(store, level, side):
        """Bring all arrays to what the functions of a level begin with."""
        everywhere = np.int64(cuda.blockIdx.x) * threads + np.int64(cuda.threadIdx.x)
        all_threads = np.int64(cuda.gridDim.x) * threads
        next_volume = (1 - side) * store.stride
        for place in range(everywhere, scratch, all_threads):
            store.control[SCRATCH + place] = 0
        for word in range(everywhere, 4, all_threads):
            store.control[MERGED + word] = 0
        for v in range(everywhere, level.labels.size, all_threads):
            store.following[v] = level.labels[v]
            store.sizes[v] = 0
            store.volumes[v] = 0
            store.active[v] = 1
            store.parts[v] = v
            store.part_volumes[v] = level.volume[v]
            store.outward[v] = 0
            store.joined[v] = 0
            store.parts_following[v] = v
            store.parent[v] = v
            store.totals[v] = 0
            store.volume[next_volume + v] = 0

    @cuda.jit(device=True)
    def lists_of(store, draw, draws, size, lengths):
        """Return the lists of some of the times that classes are drawn on a level."""
        begin = SCRATCH + STEPS_MOVING + STEPS_REFINING
        counts, cursors = begin + draw * lists_of_all, begin + hub_lists + draw * lists_of_all
        rooms, step = begin + 2 * hub_lists + draw * 2 * CLASSES, draws * lists_of_all
        return gpu_classes.Lists(
            store.members, store.goals, store.control[counts : counts + step],
            store.control[cursors : cursors + step],
            store.control[rooms : rooms + draws * 2 * CLASSES], store.bases, store.pieces,
            classes_of(size), lengths,
        )  # fmt: skip

    @cuda.jit(device=True)
    def work_of(store, arrived, first, steps):
        """Return what blocks share in the steps of moving, or of refining."""
        return gpu_best.Work(
            arrived, store.control[SCRATCH + first : SCRATCH + first + steps], store.found,
            store.own, store.hub_table, store.used, store.piece_labels, store.gains_high,
            store.gains_low,
        )  # fmt: skip

    @cuda.jit(device=True)
    def unite(level, store, arrived, turn):
        """Name every vertex by the smallest it is connected to inside its community."""
        everywhere = np.int64(cuda.blockIdx.x) * threads + np.int64(cuda.threadIdx.x)
        blocks, size = np.int64(cuda.gridDim.x), level.labels.size
        for v in range(everywhere // lanes, size, blocks * threads // lanes):
            unite_row(
                v, level.indptr[v] + everywhere % lanes, lanes, level.indptr, level.indices,
                level.weights, level.labels, store.parent,
            )  # fmt: skip
        turn += 1
        barrier(arrived, turn * blocks)
        for v in range(everywhere, size, blocks * threads):
            store.parts[v] = find_root(store.parent, v)
        turn += 1
        barrier(arrived, turn * blocks)
        return turn

    @cuda.jit(device=True)
    def judge(level, numbers, unit, store):
        """Add up the volumes of the communities, and the weight between them."""
        everywhere = np.int64(cuda.blockIdx.x) * threads + np.int64(cuda.threadIdx.x)
        all_threads, crossing = np.int64(cuda.gridDim.x) * threads, np.int64(0)
        for v in range(everywhere // lanes, level.labels.size, all_threads // lanes):
            own = numbers[v]
            if everywhere % lanes == 0:
                cuda.atomic.add(store.totals, own, level.volume[v])
            for entry in range(level.indptr[v] + everywhere % lanes, level.indptr[v + 1], lanes):
                if numbers[level.indices[entry]] != own:
                    crossing += level.weights[entry]
        if crossing != 0:
            cuda.atomic.add(store.control, CROSSING, crossing * unit)

    @cuda.jit(device=True)
    def contract(level, parts, first, number, communities, side, store, shared, arrived, turn):
        """Make the next level of the parts, on the other side; return the turn."""
        then = level_of(store, 1 - side, number, store.entries)
        rows = gpu_merging.Rows(level.indptr, level.indices, level.weights, parts)
        vertices = gpu_merging.Vertices(
            level.volume, level.words, first, communities, store.first_of_communities,
            then.volume, then.words, then.labels,
        )  # fmt: skip
        merging = gpu_merging.Merging(
            store.totals[:number], store.offsets[: number + 1], store.table, store.long,
            store.counts, store.control[MERGED : MERGED + 4],
        )  # fmt: skip
        turn = add_all(
            rows, vertices, merging, shared.listed, shared.labels, shared.words, lay_out_cache(),
            arrived, turn,
        )  # fmt: skip
        turn += 1
        barrier(arrived, turn * np.int64(cuda.gridDim.x))
        write_all(merging, then.indptr, then.indices, then.weights, shared.listed, shared.used)
        return turn

    @cuda.jit(device=True)
    def move_vertices(store, level, parameters, seed, shared, begins, arrived, turn):
        state = gpu_moving.Moving(
            level.indptr, level.indices, level.weights, parameters.unit, level.volume, level.words,
            parameters.constant, level.labels, store.sizes, store.volumes, store.active,
            store.following, seed,
        )  # fmt: skip
        return move(
            state, lists_of(store, 0, 1, level.labels.size, parameters.lengths),
            work_of(store, arrived, 0, STEPS_MOVING), store.control[SWEPT : SWEPT + 1],
            shared, begins, turn,
        )  # fmt: skip

    @cuda.jit(device=True)
    def refine_parts(store, level, parameters, seed, shared, begins, arrived, turn):
        state = gpu_refining.Refining(
            level.indptr, level.indices, level.weights, parameters.unit, level.volume, level.words,
            parameters.constant, level.labels, store.volumes, store.parts, store.turns,
            store.part_volumes, store.outward, store.joined, store.parts_following, seed,
        )  # fmt: skip
        return refine(
            state, lists_of(store, 1, REFINING_SWEEPS, level.labels.size, parameters.lengths),
            work_of(store, arrived, STEPS_MOVING, STEPS_REFINING), np.int64(REFINING_SWEEPS),
            shared, begins, turn,
        )  # fmt: skip

    @cuda.jit(device=True)
    def write_record(control, level, size, found):
        """Write how a level went; one block does."""
        record, thread = RECORDS + level * A_RECORD, np.int64(cuda.threadIdx.x)
        for sweep in range(thread, MOST_SWEEPS, threads):
            moved = np.int64(0)
            for group in range(CLASSES):
                moved += control[SCRATCH + sweep * CLASSES + group]
            control[record + MOVED + sweep] = moved
        if thread == 0:
            control[record + VERTICES], control[record + FOUND] = size, found
            control[record + SWEEPS] = control[SWEPT]
            control[record + TIME] = np.int64(nanoseconds())

    def go_down(given, store, parameters):
        cuda.cg.this_grid()
        shared, begins = lay_out(), lay_out_begins()
        control = store.control
        blocks, turn = np.int64(cuda.gridDim.x), np.int64(0)
        one = cuda.blockIdx.x == 0 and cuda.threadIdx.x == 0
        arrived = control[ARRIVED : ARRIVED + 1]
        load(given, store)
        turn += 1
        barrier(arrived, turn * blocks)
        while control[FINISHED] == 0:
            size, entries, side = control[SIZE], control[ENTRIES], control[SIDE]
            depth, named = control[LEVEL], control[NAMED]
            if depth == MOST_LEVELS or named + size > store.names.size:
                break
            level = level_of(store, side, size, entries)
            names = store.names[named : named + size]
            prepare(store, level, side)
            turn += 1
            barrier(arrived, turn * blocks)
            seed = parameters.seed + (np.uint64(depth) << np.uint64(40))
            turn = move_vertices(store, level, parameters, seed, shared, begins, arrived, turn)
            last = parameters.first + depth + 1 == parameters.most
            # Communities are numbered, then parts, then pieces: one text, which is compiled once.
            labels, firsts = level.labels, store.first_of_communities
            numbers = store.of_communities[:size]
            if parameters.refine == 0:
                numbers = names
            communities, parts, first_of_parts = numbers, numbers, firsts
            number, found = np.int64(0), np.int64(0)
            for stage in range(3):
                if stage == 1:
                    if last or parameters.refine == 0:
                        continue
                    turn = refine_parts(
                        store, level, parameters, seed, shared, begins, arrived, turn
                    )
                    labels, numbers, firsts = store.parts[:size], names, store.first_of_parts
                    parts, first_of_parts = numbers, firsts
                if stage == 2:
                    last = last or number == size
                    if not last or parameters.refine == 0:
                        continue
                    turn = unite(level, store, arrived, turn)
                    labels, numbers = store.parts[:size], communities
                    firsts = store.first_of_communities
                turn = number_all(
                    gpu_numbering.Numbering(
                        labels, numbers, store.first, store.number_of, firsts, store.counts,
                        control[NUMBERED : NUMBERED + 2],
                    ),
                    shared.listed, arrived, turn,
                )  # fmt: skip
                number = control[NUMBERED + gpu_numbering.NUMBER]
                if stage != 1:
                    found = number
            turn += 1
            barrier(arrived, turn * blocks)
            if last:
                judge(level, communities, parameters.unit, store)
            else:
                turn = contract(
                    level, parts, first_of_parts, number, communities, side, store, shared,
                    arrived, turn,
                )  # fmt: skip
                entries = control[MERGED + gpu_merging.USED]
            if cuda.blockIdx.x == 0:
                write_record(control, depth, size, found)
            if one:
                control[LEVEL], control[COMMUNITIES] = depth + 1, found
                if last:
                    control[FINISHED] = 1
                else:
                    control[SIZE], control[ENTRIES], control[SIDE] = number, entries, 1 - side
                    control[NAMED] = named + size
            turn += 1
            barrier(arrived, turn * blocks)

    return kernel(go_down, f"{threads} {slots} {lanes} {wide}", launch_bounds=(threads, BLOCKS))
