"""Numbers for communities or parts on a GPU, in the order of their first vertices: one launch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.communities.kernels import gpu_classes, gpu_scans
from glp_rapids.jit.cuda import cuda, kernel

Array = Any
THREADS = 256
ARRIVED, NUMBER = range(2)  # of `Numbering.done`


class Numbering(NamedTuple):
    """What is numbered, and what is found."""

    labels: Array  # below the number of vertices
    numbers: Array  # of the vertices
    first: Array  # of each label the first vertex
    number_of: Array  # of each label
    firsts: Array  # of each number the first vertex
    counts: Array  # int64, one a block
    done: Array  # int64, zeros: for the barrier, and how many numbers there are


@functools.cache
def build_number(threads: int) -> Callable:
    """Make the function that numbers; all threads call, and meet before they read the numbers.

    ``sums`` is shared, int64, one a thread. It returns the next barrier's turn.
    """
    barrier = gpu_classes.barrier
    announce, base, ranked, own_range = gpu_scans.build(threads)

    @cuda.jit(device=True)
    def number_all(state, sums, arrived, turn):
        thread, block = np.int64(cuda.threadIdx.x), np.int64(cuda.blockIdx.x)
        blocks, vertices = np.int64(cuda.gridDim.x), np.int64(state.labels.size)
        everywhere, all_threads = block * threads + thread, blocks * threads
        for label in range(everywhere, vertices, all_threads):
            state.first[label] = vertices
        turn += 1
        barrier(arrived, turn * blocks)
        for v in range(everywhere, vertices, all_threads):
            label = state.labels[v]
            # most vertices of a large community find a smaller one there, and spare the atomic
            if v < state.first[label]:
                cuda.atomic.min(state.first, label, v)
        turn += 1
        barrier(arrived, turn * blocks)
        begin, past = own_range(vertices, block, blocks, np.int64(threads))
        own = np.int64(0)
        for v in range(begin + thread, past, threads):
            if state.first[state.labels[v]] == v:
                own += 1
        announce(own, sums, state.counts)
        turn += 1
        barrier(arrived, turn * blocks)
        number = base(block, sums, state.counts)
        for start in range(begin, past, threads):
            v, leads = start + thread, np.int64(0)
            if v < past and state.first[state.labels[v]] == v:
                leads = np.int64(1)
            rank, whole = ranked(leads, sums)
            if leads == 1:
                state.number_of[state.labels[v]] = number + rank - 1
                state.firsts[number + rank - 1] = v
            number += whole
        if block == blocks - 1 and thread == 0:
            state.done[NUMBER] = number
        turn += 1
        barrier(arrived, turn * blocks)
        for v in range(everywhere, vertices, all_threads):
            state.numbers[v] = state.number_of[state.labels[v]]
        return turn

    return number_all


@functools.cache
def build(threads: int) -> Any:
    """Make the kernel.

    Launch: cooperative, any number of blocks. Shared memory: 2 KB. Registers: 48.
    """
    number_all = build_number(threads)

    def number_labels(state):
        cuda.cg.this_grid()
        number_all(state, cuda.shared.array(threads, np.int64), state.done, np.int64(0))

    return kernel(number_labels, str(threads))
