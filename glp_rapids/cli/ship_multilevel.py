"""What multilevel label propagation would launch on a GPU, found on host arrays."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any
from unittest import mock

import numpy as np

Note = Callable[..., None]  # kernel, blocks, threads, *arguments


def first_level(engine: Any, labels: np.ndarray) -> None:
    """Launch what the level of the graph takes but for its contraction."""
    from glp_rapids.communities.numbers import Numbered

    engine.down(labels, Numbered(labels, labels), 0, 4, terms=True)
    engine.connected_parts(labels)


def any_level(engine: Any, labels: np.ndarray) -> None:
    """Launch what a level takes that is done alone."""
    with mock.patch("glp_rapids.communities.engines.gpu.AHEAD", -1):
        engine.up(labels, 0, 4, 0)
    engine.refined(labels, 0, 1)


def fused_levels(engine: Any, labels: np.ndarray) -> None:
    """Launch what small levels take, which are done together."""
    engine.rest(labels, 0, 0, 9, True)


def run_on_host(
    stages: tuple[Callable[[Any, np.ndarray], None], ...], index_type: Any, weight_type: Any,
    note: Note,
) -> None:  # fmt: skip
    """Call stages of the GPU engine of a network of two vertices, and ``note`` for each launch.

    ``weight_type``: None, int32 of a level above a graph without weights, or int64.
    """
    from glp_rapids.communities.engines import gpu, merging, small_levels
    from glp_rapids.communities.objective import Network

    indices = np.array([1, 0], index_type)
    weights = np.empty(0, np.int64) if weight_type is None else np.ones(2, weight_type)
    words = np.arange(2, dtype=np.uint64)
    network = Network(np.arange(3), indices, weights, 1, np.ones(2, np.int64), words)
    instead = {
        "launch": note, "launch_together": note, "to_host": lambda array: array,
        "bound": lambda arrays: arrays,
    }  # fmt: skip
    with ExitStack() as stack:
        for module in (gpu, merging, small_levels):
            for name in instead.keys() & vars(module).keys():
                stack.enter_context(mock.patch.object(module, name, instead[name]))
        engine = gpu.GpuEngine(network, 1)
        for stage in stages:
            stage(engine, np.arange(2, dtype=index_type))
