"""Compile the CUDA kernels without a GPU: the engine runs on host arrays, launches compile."""

import contextlib
from types import SimpleNamespace

import numpy as np
from numba import cuda, typeof

from glp_rapids.jit import cuda as cuda_target
from glp_rapids.propagation.baselines import engine as baselines
from glp_rapids.propagation.engines import (
    gpu,
    gpu_compressed,
    gpu_frontier,
    gpu_streamed,
    gpu_streamed_packed,
    hybrid,
    launched,
    packed_strips,
    rank_streamed,
    strips,
)

LAYOUTS = strips, packed_strips
ENGINES = (
    gpu, gpu_compressed, gpu_frontier, gpu_streamed, gpu_streamed_packed, hybrid, launched,
    rank_streamed, baselines,
)  # fmt: skip


class Compiling:
    """Stands for the launcher: collects the PTX of every kernel that would be launched."""

    def __init__(self, capability):
        self.capability, self.ptx = capability, {}

    def launch(self, kernel, blocks, threads, *arguments):
        self._compile(kernel, arguments)

    def launch_together(self, kernel, wanted, threads, *arguments):
        """Compile a kernel of many sweeps, and say that it did them, which changed nothing."""
        self._compile(kernel, arguments, **kernel.recipe.options)
        run, schedule = (
            next(one for one in arguments if hasattr(one, name)) for name in ("control", "sweeps")
        )
        run.control[0] += schedule.sweeps

    def prepared_together(self, kernel, wanted, threads, arguments, last):
        """Return what does the same, given the last argument."""
        return lambda last: self.launch_together(kernel, wanted, threads, *arguments, last)

    def _compile(self, kernel, arguments, **options):
        signature = tuple(typeof(argument) for argument in arguments)
        name = kernel.py_func.__name__
        if (name, signature) in self.ptx:
            return
        with cuda_target.compiling():
            code, _ = cuda.compile_ptx(
                kernel.py_func, signature, device=False, cc=self.capability, **options
            )
        self.ptx[name, signature] = code


@contextlib.contextmanager
def compiling(monkeypatch, capability):
    """Inside the block the engines take NumPy arrays and compile instead of launching."""
    from numba.cuda import dispatcher

    instead = Compiling(capability)
    monkeypatch.setattr(
        dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=capability)
    )
    for engine in (*ENGINES, *LAYOUTS):
        monkeypatch.setattr(engine, "bound", lambda array: array)
    for engine in (gpu, gpu_frontier, gpu_streamed, hybrid, baselines):
        monkeypatch.setattr(engine, "multiprocessors", lambda: 1)
        monkeypatch.setattr(engine, "launch", instead.launch, raising=False)
        monkeypatch.setattr(engine, "_built", {}, raising=False)
    for engine in (gpu, gpu_frontier):
        monkeypatch.setattr(engine, "launch_together", instead.launch_together)
    for engine in (gpu_streamed, rank_streamed):
        monkeypatch.setattr(engine, "prepared_together", instead.prepared_together)
    monkeypatch.setattr(baselines, "_kernels", {})
    yield instead.ptx


def every_degree_class():
    """A graph with vertices for every kernel of every strategy: few neighbours, many, a hub."""
    star = [(0, leaf) for leaf in range(1, 1200)]
    star += [(1, leaf) for leaf in range(2, 300)] + [(2, leaf) for leaf in range(3, 25)]
    return np.array(star).T
