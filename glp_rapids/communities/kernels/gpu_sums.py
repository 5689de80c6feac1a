"""Sums of communities on a GPU, such as sizes and volumes, added up by warps.

One address takes few sums at a time, and few communities may have all vertices: of a Kronecker
graph with 2.4 million, 1.2 of the 18 ms of its first level's way down went by before a row was
evaluated. So lanes of one community add up what is theirs before one of them adds it, as long as
there are several.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from glp_rapids.communities.kernels import gpu_classes
from glp_rapids.jit.cuda import add_only, cuda
from glp_rapids.jit.warps import ballot, count_bits, first_bit, shuffle_down, shuffle_from

ROUNDS, SEVERAL = 4, 3  # communities of a warp whose lanes go together, if there are so many


@cuda.jit(device=True)
def to_total(label, number, total, totals):
    """Add to the total of a label."""
    add_only(totals, label, total)


@cuda.jit(device=True)
def to_community(label, number, volume, into):
    """Add to the size and the volume of a community, or take from its size."""
    sign, sizes, volumes = into
    add_only(sizes, label, sign * number)
    add_only(volumes, label, volume)


@functools.cache
def build(add: Any) -> Callable:
    """Make the function that adds; a whole warp calls, lanes with labels below 0 for nothing.

    ``add``: takes a label, how many lanes have it, their sum, and ``into``, which is handed on.
    """
    warp_size, rounds, several = gpu_classes.WARP, ROUNDS, min(SEVERAL, gpu_classes.WARP)
    remainder = gpu_classes.remainder

    @cuda.jit(device=True)
    def add_by_warp(label, amount, into):
        lane = remainder(np.int64(cuda.threadIdx.x), warp_size)
        for _ in range(rounds):
            waiting = ballot(label >= 0)
            if waiting == 0:
                return
            common = shuffle_from(label, first_bit(waiting))
            joining = ballot(label == common)
            number = np.int64(count_bits(joining))
            if number < several:
                break
            total = np.int64(0)
            if label == common:
                total, label = amount, np.int64(-1)
            distance = warp_size // 2
            while distance > 0:
                total += shuffle_down(total, distance)
                distance //= 2
            if lane == 0:
                add(common, number, total, into)
        if label >= 0:
            add(label, np.int64(1), amount, into)

    return add_by_warp


@functools.cache
def build_all(add: Any) -> Callable:
    """Make the function that does so with all vertices; all threads of all blocks call."""
    add_by_warp, threads, warp_size = build(add), gpu_classes.THREADS, gpu_classes.WARP

    @cuda.jit(device=True)
    def add_all(labels, amounts, into):
        thread, vertices = np.int64(cuda.threadIdx.x), np.int64(labels.size)
        lane = gpu_classes.remainder(thread, warp_size)
        start = np.int64(cuda.blockIdx.x) * threads + thread - lane
        while start < vertices:
            v, label, amount = start + lane, np.int64(-1), np.int64(0)
            if v < vertices:
                label, amount = np.int64(labels[v]), amounts[v]
            add_by_warp(label, amount, into)
            start += np.int64(cuda.gridDim.x) * threads

    return add_all
