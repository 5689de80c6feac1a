"""Layers in files that a CPU works on: read strip by strip, each edge once a pass."""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.interrupts import call
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
