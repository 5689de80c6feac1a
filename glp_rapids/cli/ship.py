"""``python -m glp_rapids.cli.ship``: compile what first calls need, into the package itself.

It is run before a wheel is built, on any machine with numba-cuda, and takes some minutes. `KERNELS`
says what is compiled: what a call without a GPU would launch, were there one; and what of it is in
git, to be made anew and committed whenever its sources change. The rest is left to
`glp_rapids.cli.warmup`, or to first calls.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import numpy as np

from glp_rapids.cli import ship_scores, ship_searches
from glp_rapids.cli.ship_multilevel import any_level, first_level, fused_levels, run_on_host

Launch = Callable[..., None]  # kernel, blocks, threads, *arguments
# Machine code is for the GPUs of data centres and workstations; on others PTX is assembled.
MACHINES = ((8, 0, ""), (8, 6, ""), (8, 9, ""), (9, 0, "a"), (10, 0, "a"), (12, 0, "a"))


def _classic(graph: Any) -> None:
    from glp_rapids import label_propagation

    label_propagation(graph, max_iter=1)


def _settled(graph: Any) -> dict[str, Any]:
    """Run on the host; return the options of a run that goes on from there."""
    from glp_rapids import label_propagation

    return {"initial": label_propagation(graph, tol=0.0), "touched": []}


def _warm(graph: Any, **earlier: Any) -> None:
    from glp_rapids import label_propagation

    label_propagation(graph, max_iter=1, **earlier)


def _packed(graph: Any) -> None:
    from glp_rapids import compress, label_propagation

    label_propagation(compress(graph), max_iter=1)


def _streamed(graph: Any) -> None:
    from glp_rapids import label_propagation

    label_propagation(graph, max_iter=1, way="streamed plain")


def _streamed_packed(graph: Any) -> None:
    from glp_rapids import compress, label_propagation

    label_propagation(compress(graph), max_iter=1, way="streamed packed")


def _seeded(graph: Any) -> None:
    from glp_rapids import seeded_label_propagation

    seeded_label_propagation(graph, {0: "a"}, max_iter=1)


def _layered(graph: Any) -> None:
    from glp_rapids import layered_label_propagation

    layered_label_propagation(graph, gammas=[1], max_iter=1)


def _speaker_listener(graph: Any) -> None:
    from glp_rapids import speaker_listener

    speaker_listener(graph, max_iter=1)


FRACTION, LARGE = 0.5, 1 << 40  # weights whose sums take 64 bits


class Shipped(NamedTuple):
    """What a call launches is shipped, for a graph with weights of a type (None: without).

    ``each``: what an edge weighs; whole numbers of small sums are added up in 32 bits.
    ``earlier``: what is done on the host before, and gives the call further options.
    """

    call: Callable[..., None]
    weights: Any
    machines: tuple[tuple, ...] = ()
    earlier: Callable[[Any], dict[str, Any]] | None = None
    in_git: bool = False
    each: float = 1

    def run(self, launch: Launch) -> None:
        """Call it on host arrays, with what stands for the launcher."""
        _propagated(self, launch)


class ShippedRun(NamedTuple):
    """What a function launches is shipped; it runs on host arrays."""

    run: Callable[[Launch], None]
    machines: tuple[tuple, ...] = ()
    in_git: bool = False


def _levels(weights: Any, *stages: Callable[[Any, np.ndarray], None]) -> Callable[[Launch], None]:
    """Return what runs stages of multilevel label propagation, for levels with such weights.

    ``weights``: None, int32 for what comes of a graph without weights, or int64.
    """
    return partial(run_on_host, stages, np.int32, weights)


# In git is what first calls of a clone would wait for longest. Of `label_propagation` that is
# machine code, too: to assemble a text takes 2 to 8 s, to compile it anew 14 to 28 (an H200).
KERNELS: dict[str, Shipped | ShippedRun] = {
    "classic": Shipped(_classic, None, MACHINES, in_git=True),
    "classic, float64": Shipped(_classic, np.float64, MACHINES, None, True, FRACTION),
    "classic, whole float64": Shipped(_classic, np.float64, MACHINES, in_git=True),
    "classic, int64": Shipped(_classic, np.int64, MACHINES, in_git=True),
    "classic, large int64": Shipped(_classic, np.int64, MACHINES, None, True, LARGE),
    "classic, float32": Shipped(_classic, np.float32, each=FRACTION),
    "classic, whole float32": Shipped(_classic, np.float32),
    "packed": Shipped(_packed, None, in_git=True),
    "warm": Shipped(_warm, None, (), _settled, in_git=True),
    "warm, float64": Shipped(_warm, np.float64, (), _settled, each=FRACTION),
    "warm, int64": Shipped(_warm, np.int64, (), _settled),
    "streamed": Shipped(_streamed, None, in_git=True),
    "streamed packed": Shipped(_streamed_packed, None, in_git=True),
    "streamed, float64": Shipped(_streamed, np.float64, each=FRACTION),
    "seeded": Shipped(_seeded, None, in_git=True),
    "seeded, float64": Shipped(_seeded, np.float64),
    "layered": Shipped(_layered, None, in_git=True),
    "speaker-listener": Shipped(_speaker_listener, None, in_git=True),
    "multilevel": ShippedRun(_levels(None, first_level, any_level, fused_levels), in_git=True),
    "multilevel, larger": ShippedRun(_levels(np.int32, any_level), in_git=True),
    "multilevel, weights": ShippedRun(_levels(np.int64, first_level, any_level, fused_levels)),
    "breadth-first": ShippedRun(ship_searches.breadth_first, in_git=True),
    "shortest paths": ShippedRun(ship_searches.shortest_paths, in_git=True),
    "scores": ShippedRun(ship_scores.run_on_host, in_git=True),
}


class Launched(NamedTuple):
    """A kernel, and the types of the arguments that it was to be launched with."""

    kernel: Any
    signature: tuple


class _Enough(Exception):
    """A run got to its last kernel."""


def launches(shipped: Shipped | ShippedRun) -> list[Launched]:
    """Return what a call would launch on a GPU: it runs on host arrays until the last kernel."""
    from glp_rapids import device
    from glp_rapids.jit.ship import oldest_gpu

    found: list[Launched] = []

    def launch(kernel: Any, blocks: int, threads: int, *arguments: Any) -> None:
        found.append(Launched(kernel, tuple(map(kernel.typeof_pyval, arguments))))

    # On a machine with a GPU what is compiled is found as on one without: on host arrays, and for
    # the oldest GPU, as what a kernel is made of depends on the GPU, too.
    on_host = mock.patch.object(device, "gpu_available", return_value=False)
    with oldest_gpu(), on_host:
        shipped.run(launch)
    return found


def _propagated(shipped: Shipped, launch: Launch) -> None:
    """Propagate labels on host arrays until the last kernel."""
    from glp_rapids import as_graph
    from glp_rapids.jit import parallel_for
    from glp_rapids.propagation import engines
    from glp_rapids.propagation.engines import (
        gpu,
        gpu_compressed,
        gpu_frontier,
        gpu_streamed,
        gpu_streamed_packed,
        launched,
        packed_strips,
        strips,
    )
    from glp_rapids.propagation.kernels.gpu import plan

    def launch_together(kernel: Any, wanted: int, threads: int, *arguments: Any) -> None:
        launch(kernel, wanted, threads, *arguments)
        raise _Enough

    def prepared_together(
        kernel: Any, wanted: int, threads: int, arguments: tuple, last: Any
    ) -> None:
        launch_together(kernel, wanted, threads, *arguments, last)

    def each(functions: Any, scheme: str, name: str, items: int, work: Any, device: str) -> None:
        launch(parallel_for._kernel(functions, scheme, name), 1, 1, np.int64(items), work)
        parallel_for.each(functions, scheme, name, items, work, device)

    persistent = gpu, gpu_frontier
    layouts = (
        launched, gpu_compressed, gpu_streamed, gpu_streamed_packed, packed_strips, strips,
    )  # fmt: skip
    engine_of = engines.engine_of
    ends = np.array([0, 1, 2]), np.array([1, 2, 0])
    weights = () if shipped.weights is None else (np.full(3, shipped.each, shipped.weights),)
    graph = as_graph((*ends, *weights), device="cpu")
    options = {} if shipped.earlier is None else shipped.earlier(graph)
    with ExitStack() as stack:
        for module, name, instead in (
            (engines, "engine_of", lambda device, *choice: engine_of("gpu", *choice)),
            *((module, "bound", lambda value: value) for module in (*persistent, *layouts)),
            *((module, "multiprocessors", lambda: 1) for module in (*persistent, gpu_streamed)),
            (gpu, "launch", launch),
            *((module, "launch_together", launch_together) for module in persistent),
            (gpu_streamed, "prepared_together", prepared_together),
            (plan, "each", each),
        ):
            stack.enter_context(mock.patch.object(module, name, instead))
        try:
            shipped.call(graph, **options)
        except _Enough:
            return
    raise RuntimeError("the call launched no last kernel")


def ship_all(kernels: dict[str, Shipped | ShippedRun], say: Callable[[str], Any]) -> list[Path]:
    """Compile what is not there yet, and remove what is stale."""
    from glp_rapids.jit.ship import forget_others, ship

    paths: list[Path] = []
    for title, shipped in kernels.items():
        begin = time.perf_counter()
        before = len(paths)
        for kernel, signature in launches(shipped):
            paths += ship(kernel, signature, shipped.machines, folder_of(shipped))
        size = sum(path.stat().st_size for path in set(paths[before:]))
        say(f"{title:<20}{time.perf_counter() - begin:7.1f} s{size / 1000:9.1f} KB")
    stale = sum(
        forget_others(names, folder)
        for folder, names in current_names({**KERNELS, **kernels}).items()
    )
    if stale:
        say(f"removed {stale} files of older sources")
    return paths


def folder_of(shipped: Shipped | ShippedRun) -> Path:
    """Return where an entry of the table is kept."""
    from glp_rapids.jit import shipped_kernels

    return shipped_kernels.IN_GIT if shipped.in_git else shipped_kernels.FOLDER


def current_names(kernels: dict[str, Shipped | ShippedRun]) -> dict[Path, set[str | None]]:
    """Return the names of what is launched, as the sources are, by the folder where it is kept."""
    from glp_rapids.jit.shipped_kernels import name_of

    names: dict[Path, set[str | None]] = {}
    for shipped in kernels.values():
        found = {name_of(one.kernel.recipe, one.signature) for one in launches(shipped)}
        names.setdefault(folder_of(shipped), set()).update(found)
    return names


def main() -> None:
    """Compile kernels of the table into the package, and say where."""
    parser = argparse.ArgumentParser(prog="python -m glp_rapids.cli.ship", description=__doc__)
    names = ", ".join(map(repr, KERNELS))
    parser.add_argument("what", nargs="*", help=f"of {names} (default: all)", metavar="WHAT")
    what = parser.parse_args().what or list(KERNELS)
    if unknown := set(what) - set(KERNELS):
        parser.error(f"WHAT must be some of {names}, not {', '.join(map(repr, sorted(unknown)))}")
    chosen = {name: KERNELS[name] for name in what}
    paths = set(ship_all(chosen, lambda line: print(line, flush=True)))
    for folder in sorted({path.parent for path in paths}):
        sizes = [path.stat().st_size for path in paths if path.parent == folder]
        print(f"{len(sizes)} files of {sum(sizes) / 1e6:.2f} MB in {folder}")


if __name__ == "__main__":
    main()
