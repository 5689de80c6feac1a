"""What a CPU does with layers beside its engine: relaxations strip by strip, dependencies.

Layers in files are read strip by strip, each edge once a pass.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.device import to_host
from glp_rapids.jit.interrupts import call, interruptible
from glp_rapids.traversal.engines import Lists, Relaxed
from glp_rapids.traversal.engines.strips import Strips
from glp_rapids.traversal.kernels import cpu_layers

# Bytes a vertex beside the lists: level, predecessor, order, offsets, distance, who waits, and the
# frame that comes out.
OF_RELAXING = 40


def relax_in_strips(
    lists: Lists, starts: np.ndarray, distance: np.ndarray, cutoff: np.generic
) -> Relaxed:
    """Relax layer after layer until nothing changes; strips in which nobody waits are not read."""
    order, offsets = lists.order, lists.offsets
    waits = np.zeros(distance.size, np.uint8)
    waits[starts] = 1
    sweeps, waiting = 0, starts.size
    with Strips(lists, np, OF_RELAXING * distance.size) as strips:
        bounds = strips.first_row.tolist()
        while waiting:
            sweeps += 1
            wanted = [
                strip for strip in range(strips.number)
                if waits[order[bounds[strip] : bounds[strip + 1]]].any()
            ]  # fmt: skip
            if not wanted:  # nobody has an edge
                break
            for strip, base in strips.each(wanted):
                waiting += call(
                    cpu_layers.relax_rows, order, offsets, bounds[strip], bounds[strip + 1], base,
                    strips.indices, strips.weights, waits, distance, cutoff,
                )  # fmt: skip
        return Relaxed(distance, sweeps, strips.moved, strips.layers_streamed)


@interruptible
def dependencies(lists: Lists, starts: Any, level: Any, paths: Any) -> np.ndarray:
    """Add up Brandes's dependencies of the starts on every other vertex, on the host."""
    order, offsets, indices, level, paths, starts = map(
        to_host, (lists.order, lists.offsets, lists.indices, level, paths, starts)
    )
    sums = np.zeros(level.size)
    call(cpu_layers.sum_dependencies, order, offsets, indices, level, paths, sums)
    sums[starts] = 0.0
    return sums
