"""Compile the CUDA kernels without a GPU: the engine runs on host arrays, launches compile."""

import contextlib
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
from numba import cuda, typeof

from glp_rapids.propagation.kernels import (
    auto,
    auto_common,
    auto_compressed,
    baselines,
    cuda_target,
)


class CompilingLauncher:
    """Collects the PTX of every kernel that the engine would launch."""

    capability: ClassVar[tuple[int, int]] = (9, 0)
    ptx: ClassVar[dict] = {}

    def __init__(self, program):
        self.program = program

    def __call__(self, kernel, blocks, threads, *arguments):
        self._compile(kernel, arguments)

    def together(self, kernel, wanted, threads, *arguments):
        """Compile the persistent kernel, and say that it did the sweeps, which changed nothing."""
        bounds = threads, auto_common.BLOCKS_A_MULTIPROCESSOR
        self._compile(kernel, arguments, launch_bounds=bounds)
        run, course = arguments[4], arguments[9]
        run.control[0] += course.sweeps

    def _compile(self, kernel, arguments, **options):
        signature = tuple(typeof(argument) for argument in arguments)
        name = kernel.py_func.__name__
        if (name, signature) in self.ptx:
            return
        with cuda_target.without_contraction():
            code, _ = cuda.compile_ptx(
                kernel.py_func, signature, device=False, cc=type(self).capability, **options
            )
        type(self).ptx[name, signature] = code


@contextlib.contextmanager
def compiling(monkeypatch, capability):
    """Inside the block the engines take NumPy arrays and compile instead of launching."""
    from numba.cuda import dispatcher

    monkeypatch.setattr(
        dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=capability)
    )
    for engine in (auto, auto_compressed, baselines):
        monkeypatch.setattr(engine, "bound", lambda array: array)
    for engine in (auto, baselines):
        monkeypatch.setattr(engine, "multiprocessors", lambda: 1)
        monkeypatch.setattr(engine, "Launcher", CompilingLauncher)
    monkeypatch.setattr(auto, "_built", {})
    monkeypatch.setattr(baselines, "_kernels", {})
    CompilingLauncher.capability = capability
    CompilingLauncher.ptx = {}
    yield CompilingLauncher.ptx


def every_degree_class():
    """A graph with vertices for every kernel of every strategy: few neighbours, many, a hub."""
    star = [(0, leaf) for leaf in range(1, 1200)]
    star += [(1, leaf) for leaf in range(2, 300)] + [(2, leaf) for leaf in range(3, 25)]
    return np.array(star).T
