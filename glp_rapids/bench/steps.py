"""Where the time of a run goes on a GPU, step by step: what is computed, and who waits for whom.

A step is one class of one sweep. Every block writes down when it began, when it had evaluated the
rows that take a whole block, all its rows, and when it had updated its share; a grid barrier
follows each of the last two. "median block" is what half of the blocks took at the most, "last
block" what the barrier waited for. The kernel is compiled anew, with clocks in it. All numbers but
the sweep's are microseconds a step.
"""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from glp_rapids.bench import subjects
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.device import gpu_available, to_host
from glp_rapids.graph.graph import Graph
from glp_rapids.propagation.options import CLASSES

GRAPHS = ("web", "kron-22-16", "road", "com-dblp")
MOST = 1024  # steps that are clocked


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    subjects.add_options(parser, GRAPHS, repeats=3, device=False, about="as for bench gpu")
    parser.add_argument("--explore", type=int, default=None, help="as for label_propagation")
    parser.add_argument("--sync", action="store_true", help="20 sweeps that leave nothing out")


def run(options: argparse.Namespace) -> Tables:
    """Return a table a graph, with a row a sweep."""
    if not gpu_available():
        raise ValueError("bench steps measures a GPU, and none can be used here")
    return subjects.each(options.graphs, "gpu", "gpu", partial(measure, options=options))


def measure(name: str, graph: Graph, options: argparse.Namespace) -> Tables:
    """Run with clocks, the last of some times."""
    from glp_rapids.propagation.kernels.gpu import shared_memory

    settings = {} if options.explore is None else {"explore": options.explore}
    if options.sync:
        settings = subjects.synchronous(20, skip_inactive=False)
    call = subjects.propagation(graph, **settings)
    before, shared_memory.CLOCKED = shared_memory.CLOCKED, MOST
    try:
        for _ in range(max(options.repeats, 1)):
            found = call()
    finally:
        shared_memory.CLOCKED = before
    (workspace,) = graph.keep(("kept", None), dict).values()
    classes = 1 if options.sync else CLASSES
    clock, facts = to_host(workspace.run.clock.array), found.attrs["glp"]
    return {
        name: rows_of(
            clock, facts["changed"], facts["explored"], classes, graph.number_of_vertices
        )
    }


def rows_of(
    clock: np.ndarray, changes: list[int], explored: int, classes: int, vertices: int
) -> Rows:
    """Return a row a sweep of the means of its steps, from the moments of every block."""
    from glp_rapids.propagation.kernels.gpu.persistent import MOMENTS
    from glp_rapids.propagation.schedule import UNKNOWN, span_of

    clock = clock.reshape(MOST, -1, MOMENTS)
    # of fewer blocks than there is room for the moments lie closer
    flat, rows, first, before = clock.ravel(), [], 0, UNKNOWN
    blocks = _blocks(flat, clock.shape[1])
    clock = flat[: MOST * blocks * MOMENTS].reshape(MOST, blocks, MOMENTS) / 1e3
    for sweep, changed in enumerate(changes, 1):
        steps = -(-classes // span_of(classes, sweep, before, vertices, sweep <= explored))
        of_sweep, before = clock[first : first + steps], changed
        first += steps
        if not of_sweep.size:
            break
        begun, long_rows, evaluated, all_evaluated, updated, all_updated = np.moveaxis(
            of_sweep, 2, 0
        )
        start, middle = begun.min(axis=1), all_evaluated.min(axis=1)
        took = {
            "long rows, median block": np.median(long_rows, axis=1) - start,
            "long rows, last block": long_rows.max(axis=1) - start,
            "evaluate, median block": np.median(evaluated, axis=1) - start,
            "last block": evaluated.max(axis=1) - start,
            "barrier": np.median(all_evaluated, axis=1) - evaluated.max(axis=1),
            "update, median block": np.median(updated, axis=1) - middle,
            "last block, update": updated.max(axis=1) - middle,
            "barrier, update": np.median(all_updated, axis=1) - updated.max(axis=1),
            "step": all_updated.max(axis=1) - start,
        }
        row = {"sweep": sweep, "changed": changed, "steps": steps}
        row |= {name: float(times.mean()) for name, times in took.items()}
        rows.append({**row, "sweep ms": float(all_updated[-1].max() - start[0]) / 1e3})
    return rows


def _blocks(flat: np.ndarray, most: int) -> int:
    """Find out how many blocks wrote: those of the first step follow one another."""
    from glp_rapids.propagation.kernels.gpu.persistent import MOMENTS

    begun = flat[: most * MOMENTS : MOMENTS]
    ended = flat[MOMENTS - 1 : most * MOMENTS : MOMENTS]
    later = np.flatnonzero((begun > ended[0]) | (begun == 0))
    return int(later[0]) if later.size else most
