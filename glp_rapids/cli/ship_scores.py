"""What scores and cores of accounts would launch on a GPU, found on host arrays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from unittest import mock

import numpy as np

Note = Callable[..., None]  # kernel, blocks, threads, *arguments


def run_on_host(note: Note) -> None:
    """Sum, score and cut a small graph of counted transfers; ``note`` is called for each launch."""
    from glp_rapids import as_graph
    from glp_rapids.fraud import cores, residual_engines, totals
    from glp_rapids.fraud.kernels import gpu_traded
    from glp_rapids.fraud.system import Fixed, System
    from glp_rapids.jit import cuda, items, launch

    ends = np.array([0, 1, 2]), np.array([1, 2, 0])
    graph = as_graph((*ends, np.ones(3, np.int64)), device="cpu")
    seeds = np.zeros(1, graph.index_dtype)
    system = System(graph, Fixed(seeds, seeds[:0]), 0.85, 1e-4)
    with ExitStack() as stack:
        for module, name, instead in (
            (launch, "launch", note),
            (items, "launch", note),
            (launch, "launch_together", note),
            (cuda, "multiprocessors", lambda: 1),
        ):
            stack.enter_context(mock.patch.object(module, name, instead))
        totals._by_a_gpu(graph)
        gpu_traded.traded_inside(graph, np.arange(3), np.zeros(3, np.int64))
        engine = residual_engines.GpuEngine(system)
        numbers = system.clamp.copy()
        engine.push(numbers, engine.residuals(numbers), 1, graph.indices.size, 1)
        stack.enter_context(mock.patch.dict(cores.KERNELS, cpu=cores._cut_on_gpu))
        cores.largest_core(graph, system.total, 0.5, 2)
