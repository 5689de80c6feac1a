"""What breadth-first search and shortest paths would launch on a GPU, found on host arrays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np

Note = Callable[..., None]  # kernel, blocks, threads, *arguments


def breadth_first(note: Note) -> None:
    """Search a graph without weights."""
    from glp_rapids import bfs
    from glp_rapids.traversal.kernels import gpu_bfs

    _search(bfs, None, gpu_bfs, note)


def shortest_paths(note: Note) -> None:
    """Search a graph with weights of float64."""
    from glp_rapids import sssp
    from glp_rapids.traversal.kernels import gpu_sssp

    _search(sssp, np.float64, gpu_sssp, note)


def _search(search: Callable[..., Any], weights: Any, kernels: Any, note: Note) -> None:
    """Search a graph of three vertices; ``note`` is called for each launch."""
    from glp_rapids import as_graph
    from glp_rapids.traversal import engines
    from glp_rapids.traversal.engines import gpu, gpu_breadth_first

    def note_and_end(kernel: Any, blocks: int, threads: int, *arguments: Any) -> None:
        note(kernel, blocks, threads, *arguments)
        (words,) = (
            array for array in arguments
            if isinstance(array, np.ndarray) and array.size == kernels.NUMBER_OF_WORDS
        )  # fmt: skip
        words[kernels.WORDS.over] = 1

    def prepared_together(
        kernel: Any, blocks: int, threads: int, arguments: tuple, last: Any
    ) -> Callable[[Any], None]:
        return lambda last: note_and_end(kernel, blocks, threads, *arguments, last)

    instead = {
        "launch": note, "launch_together": note_and_end, "multiprocessors": lambda: 1,
        "prepared_together": prepared_together,
    }  # fmt: skip
    ends = np.array([0, 1, 2]), np.array([1, 2, 0])
    graph = as_graph((*ends, *(() if weights is None else (np.ones(3, weights),))), device="cpu")
    with ExitStack() as stack:
        for module in (gpu, gpu_breadth_first):
            for name in instead.keys() & vars(module).keys():
                stack.enter_context(mock.patch.object(module, name, instead[name]))
        stack.enter_context(mock.patch.dict(engines.ENGINES, cpu=engines.ENGINES["gpu"]))
        search(graph, 0)
