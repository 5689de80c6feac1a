"""Sizes and volumes of communities on a GPU, added up by warps.

One address takes few sums at a time, and few communities may have all vertices: of a Kronecker
graph with 2.4 million, 1.2 of the 18 ms of its first level's way down went by before a row was
evaluated. So lanes of one community add up what is theirs before one of them adds it, as long as
there are several.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np

from glp_rapids.communities.kernels import gpu_classes
from glp_rapids.jit.cuda import add_only, cuda
from glp_rapids.jit.warps import ballot, count_bits, first_bit, shuffle_down, shuffle_from

ROUNDS, SEVERAL = 4, 3  # communities of a warp whose lanes go together, if there are so many


@functools.cache
def build(counted: bool) -> Callable:
    """Make the function that adds; a whole warp calls, lanes with labels below 0 for nothing.

    ``counted``: sizes, too, each ``sign`` times as many vertices as there are.
    """
    warp_size, rounds, several = gpu_classes.WARP, ROUNDS, min(SEVERAL, gpu_classes.WARP)
    remainder = gpu_classes.remainder

    @cuda.jit(device=True)
    def add_to_community(label, sign, volume, sizes, volumes):
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
                total, label = volume, np.int64(-1)
            distance = warp_size // 2
            while distance > 0:
                total += shuffle_down(total, distance)
                distance //= 2
            if lane == 0:
                if counted:
                    add_only(sizes, common, sign * number)
                add_only(volumes, common, total)
        if label >= 0:
            if counted:
                add_only(sizes, label, sign)
            add_only(volumes, label, volume)

    return add_to_community
