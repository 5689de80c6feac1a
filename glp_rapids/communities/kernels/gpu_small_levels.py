"""A level and all above it in one launch: up, moving or refining, and contracting; down, moving.

A small level takes less time than what a host does for it: five launches, some twenty allocations
and fills, three reads. So the upper levels of an iteration are done here, by the functions of which
`gpu_moving`, `gpu_refining`, `gpu_numbering` and `gpu_merging` are made. All levels stay, one after
the other in the arrays of a `Store`, since the way down goes through them once more. The host reads
once what came out. A block alone waits for no other: its barriers are those of its threads.

Launch: cooperative, any number of blocks of THREADS. Degrees: any, as in `gpu_moving`. Shared
memory: 32 KB, where sums take 64 bits 41 KB, and where indices do 50 KB. Registers: 255, with 260
bytes of a thread in memory or more: a block a multiprocessor (two take as long, four 10% longer).
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from glp_rapids.communities import schedule
from glp_rapids.communities.kernels import (
    gpu_best,
    gpu_classes,
    gpu_merging,
    gpu_moving,
    gpu_numbering,
    gpu_refining,
    gpu_store,
    gpu_windows,
    gpu_writing,
)
from glp_rapids.communities.kernels.gpu_tables import Weights
from glp_rapids.communities.schedule import CLASSES, FEWER_CLASSES, MOST_SWEEPS, REFINING_SWEEPS
from glp_rapids.jit.cuda import cuda, gpu_target, kernel, nanoseconds

BLOCKS = 1  # a multiprocessor: small levels have fewer than there are, and much at hand
MOST_LEVELS = 32

# Words of `Store.control`.
FINISHED, LEVEL, CLOCK = range(3)
NUMBERED = 10  # two words, of `Numbering.done`
NUMBER = NUMBERED + gpu_numbering.NUMBER
ARRIVED = 12
MERGED = 16  # three words, `Merging.done`
SWEPT = 20
RECORDS = 24  # of each level:
VERTICES, ENTRIES, FIRST, FIRST_ENTRY, PARTS = range(5)
RISE, FALL = 5, 7 + MOST_SWEEPS  # how it went on the way up, and down:
(TIME, SWEEPS, MOVED), A_RECORD = range(3), FALL + 2 + MOST_SWEEPS
SCRATCH = RECORDS + MOST_LEVELS * A_RECORD  # zeros when a level begins:
STEPS_MOVING, STEPS_REFINING = MOST_SWEEPS * CLASSES, REFINING_SWEEPS * CLASSES
DRAWS = 1 + REFINING_SWEEPS
ROOMS = gpu_classes.ROOMS * CLASSES


def scratch_size() -> int:
    """Return how many words of ``control`` begin as zeros on every level."""
    return STEPS_MOVING + STEPS_REFINING + DRAWS * (2 * gpu_classes.LISTS + ROOMS)


classes_for = gpu_target().compile(schedule.classes_for)
ends_at = gpu_target().compile(schedule.ends_at)


@functools.cache
def build(wide: bool, index_type: Any) -> Any:
    """Make the kernel, for sums of 64 bits or 31."""
    threads, slots = gpu_classes.THREADS, gpu_classes.SLOTS
    lists_of_all, hub_lists = gpu_classes.LISTS, DRAWS * gpu_classes.LISTS
    scratch = scratch_size()
    barrier = gpu_classes.barrier
    weighted = Weights(True, wide)
    lay_out = gpu_best.build_shared(weighted, index_type)
    lay_out_begins = gpu_classes.build_begins()
    move = gpu_moving.build_move(weighted, index_type, False)
    refine = gpu_refining.build_refine(weighted, index_type)
    number_all = gpu_numbering.build_number(threads)
    lay_out_cache, add_all = gpu_merging.build_add_all(threads, weighted, False)
    write_all = gpu_writing.build_write_all(threads, slots // threads, wide, True)

    @cuda.jit(device=True)
    def level_of(store, size, entries, first, entry):
        return gpu_store.Level(
            store.indptr[first : first + size + 1], store.indices[entry : entry + entries],
            store.weights[entry : entry + entries], store.volume[first : first + size],
            store.words[first : first + size], store.labels[first : first + size],
        )  # fmt: skip

    @cuda.jit(device=True)
    def load(given, store):
        """Copy the first level."""
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
            store.control[RECORDS + VERTICES] = size
            store.control[RECORDS + ENTRIES] = entries

    @cuda.jit(device=True)
    def prepare(store, level, first, next_first, up, from_above):
        """Bring all arrays to what the functions of a level begin with; name communities anew."""
        everywhere = np.int64(cuda.blockIdx.x) * threads + np.int64(cuda.threadIdx.x)
        all_threads = np.int64(cuda.gridDim.x) * threads
        for place in range(everywhere, scratch, all_threads):
            store.control[SCRATCH + place] = 0
        for word in range(everywhere, 3, all_threads):
            store.control[MERGED + word] = 0
        for v in range(everywhere, level.labels.size, all_threads):
            if from_above:
                above = store.labels[next_first + store.names[first + v]]
                level.labels[v] = store.first_of_parts[first + above]
            gpu_moving.initialize(
                v, level.labels[v], level.labels, store.following, store.sizes, store.volumes,
                store.active,
            )  # fmt: skip
            if up:
                gpu_refining.initialize(
                    v, level.volume[v], store.parts, store.part_volumes, store.outward,
                    store.joined, store.parts_following,
                )  # fmt: skip
                store.totals[v] = 0
                store.volume[next_first + v] = 0

    @cuda.jit(device=True)
    def lists_of(store, draw, draws, classes, lengths):
        """Return the lists of some of the times that classes are drawn on a level."""
        begin = SCRATCH + STEPS_MOVING + STEPS_REFINING
        counts, cursors = begin + draw * lists_of_all, begin + hub_lists + draw * lists_of_all
        rooms, step = begin + 2 * hub_lists + draw * ROOMS, draws * lists_of_all
        return gpu_classes.Lists(
            store.members, store.goals, store.control[counts : counts + step],
            store.control[cursors : cursors + step],
            store.control[rooms : rooms + draws * ROOMS], store.bases, store.pieces, store.owners,
            classes, lengths,
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
    def contract(level, then, parts, first, communities, first_of_all, store, shared, turn):
        """Make the next level of the parts; return the turn."""
        arrived = store.control[ARRIVED : ARRIVED + 1]
        rows = gpu_windows.Rows(level.indptr, level.indices, level.weights, parts)
        vertices = gpu_merging.Vertices(
            level.volume, level.words, first, communities, first_of_all, then.volume, then.words,
            then.labels,
        )  # fmt: skip
        merging = gpu_merging.Merging(
            store.control[NUMBERED : NUMBERED + 2], store.totals, store.offsets, store.table,
            store.counts, store.control[MERGED : MERGED + 3],
        )  # fmt: skip
        # what evaluating rows takes is free meanwhile
        window = gpu_windows.Window(shared.labels, shared.own, shared.gains_high, shared.counts)
        turn = add_all(
            rows, vertices, merging, shared.listed, window, lay_out_cache(), arrived, turn
        )
        turn += 1
        barrier(arrived, turn * np.int64(cuda.gridDim.x))
        written = gpu_writing.Written(then.indptr, then.indices, then.weights)
        write_all(merging, written, shared.listed, shared.used)
        return turn

    @cuda.jit(device=True)
    def move_vertices(store, level, parameters, classes, seed, shared, begins, turn):
        arrived = store.control[ARRIVED : ARRIVED + 1]
        state = gpu_moving.Moving(
            level.indptr, level.indices, level.weights, parameters.unit, level.volume, level.words,
            parameters.constant, level.labels, store.sizes, store.volumes, store.active,
            store.following, seed,
        )  # fmt: skip
        return move(
            state, lists_of(store, 0, 1, classes, parameters.lengths),
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
            state, lists_of(store, 1, REFINING_SWEEPS, np.int64(FEWER_CLASSES), parameters.lengths),
            work_of(store, arrived, STEPS_MOVING, STEPS_REFINING), np.int64(REFINING_SWEEPS),
            shared, begins, turn,
        )  # fmt: skip

    @cuda.jit(device=True)
    def write_record(control, record, sweeps):
        """Write how a level went; one block does."""
        thread = np.int64(cuda.threadIdx.x)
        for sweep in range(thread, MOST_SWEEPS, threads):
            moved = np.int64(0)
            for group in range(CLASSES):
                moved += control[SCRATCH + sweep * CLASSES + group]
            control[record + MOVED + sweep] = moved
        if thread == 0:
            now = np.int64(nanoseconds())
            control[record + SWEEPS], control[record + TIME] = sweeps, now - control[CLOCK]
            control[CLOCK] = now

    def go_up_and_down(given, store, parameters):
        cuda.cg.this_grid()
        shared, begins = lay_out(), lay_out_begins()
        control = store.control
        blocks, turn = np.int64(cuda.gridDim.x), np.int64(0)
        one = cuda.blockIdx.x == 0 and cuda.threadIdx.x == 0
        arrived = control[ARRIVED : ARRIVED + 1]
        depth, up, from_above = parameters.above - 1, False, True
        if parameters.above == 0:
            depth, up, from_above = np.int64(0), True, False
            load(given, store)
        if one:
            control[CLOCK] = np.int64(nanoseconds())
        turn += 1
        barrier(arrived, turn * blocks)
        while depth >= 0:
            record = RECORDS + depth * A_RECORD
            size, entries = control[record + VERTICES], control[record + ENTRIES]
            first, entry = control[record + FIRST], control[record + FIRST_ENTRY]
            next_first, next_entry = first + size + 1, entry + entries
            if up and (
                depth + 1 == MOST_LEVELS
                or next_first + size + 1 > store.labels.size
                or next_entry + entries > store.indices.size
            ):
                break
            level = level_of(store, size, entries, first, entry)
            prepare(store, level, first, next_first, up, from_above)
            turn += 1
            barrier(arrived, turn * blocks)
            seed = parameters.seed + (np.uint64(depth) << np.uint64(40))
            if not up:
                seed += np.uint64(1) << np.uint64(36)
            last = parameters.first + depth + 1 == parameters.most
            refines = up and parameters.refining != 0 and not last
            sweeps = np.int64(0)
            if not refines:
                classes = np.int64(classes_for(size, parameters.first + depth, up))
                turn = move_vertices(
                    store, level, parameters, classes, seed, shared, begins, turn
                )
                sweeps = control[SWEPT]  # of the thread that wrote it; others do not ask
            top, number, filled = last, np.int64(0), np.int64(0)
            if up:
                # Communities are numbered, and then parts: one text, which is compiled once.
                parts, first_of_parts = store.names[first:], store.first_of_parts[first:]
                communities, first_of_all = parts, first_of_parts
                labels, numbers, firsts = level.labels, parts[:size], first_of_parts
                if refines:
                    communities, first_of_all = store.of_communities, store.first_of_communities
                    numbers, firsts = communities[:size], first_of_all
                for stage in range(2):
                    if stage == 1:
                        if not refines:
                            continue
                        turn = refine_parts(
                            store, level, parameters, seed, shared, begins, arrived, turn
                        )
                        labels, numbers, firsts = store.parts[:size], parts[:size], first_of_parts
                    turn = number_all(
                        gpu_numbering.Numbering(
                            labels, numbers, store.first, store.number_of, firsts, store.counts,
                            control[NUMBERED : NUMBERED + 2],
                        ),
                        shared.listed, arrived, turn,
                    )  # fmt: skip
                turn += 1
                barrier(arrived, turn * blocks)
                number = control[NUMBER]
                top = last or ends_at(number, size)
                if not top:
                    then = level_of(
                        store, number, store.indices.size - next_entry, next_first, next_entry
                    )
                    turn = contract(
                        level, then, parts[:size], first_of_parts, communities, first_of_all,
                        store, shared, turn,
                    )  # fmt: skip
                    filled = control[MERGED + gpu_merging.USED]
            way = RISE
            if not up:
                way = FALL
            if cuda.blockIdx.x == 0:
                write_record(control, record + way, sweeps)
            if one and up:
                control[record + PARTS], control[LEVEL] = number, depth
                if not top:
                    above = record + A_RECORD
                    control[above + VERTICES], control[above + ENTRIES] = number, filled
                    control[above + FIRST], control[above + FIRST_ENTRY] = next_first, next_entry
                    control[LEVEL] = depth + 1
            turn += 1
            barrier(arrived, turn * blocks)
            from_above = not (up and refines)
            if up and not top:
                depth, from_above = depth + 1, False
            else:
                if from_above:
                    depth -= 1
                up = False
        if one and depth < 0:
            control[FINISHED] = 1

    return kernel(
        go_up_and_down, f"{threads} {slots} {wide}", launch_bounds=(threads, BLOCKS)
    )
