"""The loop: sweeps over classes of vertices until labels stand still (GLP, section 3; DESIGN.md).

A sweep updates class after class; a class is evaluated as a whole on the labels as they stand,
then updated. The first ``explore`` sweeps settle ties by a new random order each time, which lets
communities merge; then ties keep the current label and the run settles. Engines differ in how they
do one sweep, never in what comes out of it.

Two guards end what does not end by itself. Exploring ends early when a sweep changes hardly fewer
labels than the one before: on graphs with weak communities one label would flood everything.
Settling ends when it no longer gets anywhere: a few neighbours of one class may swap labels for
ever.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.common import fixed_point
from glp_rapids.common.checks import (
    as_float,
    is_number,
    shown,
)
from glp_rapids.device import (
    LackOfMemory,
    memory_free,
    memory_in_use,
    module_on,
    to_device,
)
from glp_rapids.propagation.failures import LOWEST, explain_failure
from glp_rapids.propagation.options import STRATEGIES, Options
from glp_rapids.propagation.program import Program, initial_state
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.workload import Workload

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.graph.rows import Rows


@dataclass
class Outcome:
    """What a run leaves behind."""

    graph: BaseGraph
    labels: Any
    state: dict[str, Any]
    report: dict[str, Any] = field(default_factory=dict)


def run(graph: BaseGraph, program: Program, options: Options) -> Outcome:
    """Run a program on a graph, on the device where the graph lives."""
    try:
        return _run(graph, program, options)
    except MemoryError as error:
        device, needed = graph.device, _bytes_needed(graph)
        raise LackOfMemory(
            f"graph: there is too little memory to propagate labels over its "
            f"{graph.number_of_vertices:,} vertices and {graph.number_of_edges:,} entries on the "
            f"{device}: it takes about {needed / 2**30:.1f} GiB, the graph included, and "
            f"{memory_free(device) / 2**30:.1f} GiB are free there ({error}); free some, compress "
            "the graph (glp_rapids.compress), or use host memory with device='cpu'"
        ) from error


def _bytes_needed(graph: BaseGraph) -> int:
    """Estimate the peak of a run, as `glp-rapids bench gpu` and `bench compressed` measure it."""
    if graph.scheme:
        return graph.nbytes + 60 * graph.number_of_vertices
    arrays = [array for array in (graph.indices, graph.weights) if array is not None]
    entries = sum(array.nbytes for array in arrays) * (2 if graph.directed else 1)
    return entries + 54 * graph.number_of_vertices


def _run(graph: BaseGraph, program: Program, options: Options) -> Outcome:
    begin = time.perf_counter()
    # Numba and CUDA wait for the first run: `import glp_rapids` stays light.
    from glp_rapids.propagation.compile_program import compile_program
    from glp_rapids.propagation.engines import engine_of

    xp = module_on(graph.device)
    number_of_vertices = graph.number_of_vertices
    state = initial_state(program, graph, lambda array: to_device(array, graph.device))
    labels = state.pop("labels", None)
    own_names = labels is None
    if own_names:
        labels = xp.arange(number_of_vertices, dtype=graph.index_dtype)
    else:
        labels = _first_labels(labels, number_of_vertices, graph.index_dtype)
    fields = {"labels": labels, "sweep": np.int64(0), "seed": np.int64(options.seed)}
    if program.count_volumes:
        said = labels[labels >= 0]
        volume = xp.bincount(said, minlength=max(number_of_vertices, 1)).astype(np.int64)
        fields["volume"] = volume
    fields.update(state)

    rows = graph.rows(options.direction)
    compressed = rows.scheme is not None
    decoded = graph.device == "gpu" and graph.scheme and not compressed
    if decoded and options.strategy == "decode":
        choices = ", ".join(map(repr, STRATEGIES))
        raise ValueError(
            f"direction={options.direction!r} of a directed compressed graph decodes it for good; "
            f"strategy must then be one of {choices}, not 'decode'"
        )
    engine_class, target = engine_of(graph.device, rows.form, options.strategy)
    compiled = compile_program(program, target, _host_types(fields), rows.weights)
    workload = _workload(graph, rows, program, compiled.traits, options, own_names)
    schedule = Schedule(options, number_of_vertices)

    def check(failure: int) -> None:
        if failure:
            traits, sweep = compiled.traits, len(schedule.changed)
            largest = workload.largest_amount
            raise ValueError(explain_failure(failure, program, traits, graph, largest, sweep))

    if not schedule.over:
        engine = engine_class(workload, compiled, fields)
        engine.start()
        check(engine.failure())
        with _progress(options) as report_sweep:
            while not schedule.over:
                exploring = schedule.exploring
                engine.advance(schedule, options.max_iter if report_sweep is None else 1)
                if report_sweep is not None:
                    report_sweep(len(schedule.changed), schedule.changed[-1], exploring)
                check(engine.failure())
    changed = schedule.changed
    report = {
        "sweeps": len(changed),
        "explored": len(changed) if schedule.exploring else schedule.explored,
        "changed": changed,
        "converged": schedule.settled,
        "seconds": time.perf_counter() - begin,
        "device": graph.device,
        "memory_in_use": memory_in_use(graph.device),
    }
    if compressed:
        report["compressed"] = rows.scheme
    return Outcome(graph, fields["labels"], {**state, **fields}, report)


def _first_labels(labels: Any, number_of_vertices: int, dtype: Any) -> Any:
    if labels.shape != (number_of_vertices,) or labels.dtype.kind not in "iu":
        raise ValueError(
            f"initial labels must be {number_of_vertices} integers, one a vertex, not "
            f"{labels.shape} of {labels.dtype}"
        )
    extremes = (int(labels.min()), int(labels.max())) if number_of_vertices else ()
    for label in extremes:
        if not LOWEST <= label < number_of_vertices:
            raise ValueError(
                f"initial labels must be vertex indices below {number_of_vertices} or negative "
                f"(down to -2**31), not {label}"
            )
    return labels.astype(dtype)


def _host_types(fields: dict[str, Any]) -> dict[str, Any]:
    """Give host arrays of the same types and no content: types are all a compiler needs."""
    return {
        name: np.empty((0,) * value.ndim, value.dtype) if getattr(value, "ndim", 0) else value
        for name, value in fields.items()
    }


def _extremes(rows: Rows) -> tuple[int, float]:
    """Give the largest degree and the largest weight."""
    return rows.largest_degree(), float(rows.largest_weight())


def _workload(
    graph: BaseGraph,
    rows: Rows,
    program: Program,
    traits: Any,
    options: Options,
    own_names: bool,
) -> Workload:
    which = options.direction if graph.directed else None
    largest_degree, heaviest = graph.keep(("extremes", which), partial(_extremes, rows))
    largest_amount, scale = heaviest, 1.0
    if not traits.default_load:
        largest_amount = program.largest_amount
        if largest_amount is None:
            largest_amount = 1024 * heaviest
        if not is_number(largest_amount) or not 0 < as_float(largest_amount) < np.inf:
            raise ValueError(
                f"largest_amount must be positive and finite, not {shown(largest_amount)}"
            )
        largest_amount = float(largest_amount)
    if traits.checks_heard and not traits.real_amounts:
        largest_amount = 2.0**62 / max(largest_degree, 1)
    if traits.real_amounts and program._largest_sum is not None:
        scale = fixed_point.fixed_point_scale(program._largest_sum, 1)
    elif traits.real_amounts:
        scale = fixed_point.fixed_point_scale(largest_amount, largest_degree)
    elif traits.default_load and heaviest * largest_degree > 2.0**62:
        raise ValueError(
            f"weight: the sum of weights at a vertex may exceed 2**62 (largest weight "
            f"{heaviest:g}, largest degree {largest_degree}); divide the weights or use floats"
        )
    skip, readers = traits.skip_inactive and options.skip_inactive, rows
    if skip:
        # Without them everybody is evaluated, which shows only in what a program does of its own.
        readers = graph.readers(options.direction, make=not traits.plain)
        skip = readers is not None
    distinct = traits.default_load and (not graph.directed or options.direction != "both")
    return Workload(
        graph=graph,
        rows=rows,
        readers=readers if skip else rows,
        classes=options.classes if options.update == "semi" else 1,
        skip=skip,
        scale=scale,
        largest_amount=largest_amount,
        largest_degree=largest_degree,
        once=distinct and rows.ascends,
        distinct=distinct and own_names and traits.default_pick and traits.growing_scores,
        kept=graph.keep(("kept", which), dict),
    )


@contextlib.contextmanager
def _progress(options: Options) -> Iterator[Callable[[int, int, bool], None] | None]:
    """Give a function that reports a sweep: none, the caller's own, or a bar."""
    if options.progress is False:
        yield None
    elif callable(options.progress):
        yield lambda sweep, changed, exploring: options.progress(
            {"sweep": sweep, "changed": changed, "exploring": exploring}
        )
    else:
        from tqdm import tqdm

        with tqdm(desc="sweeps", unit="sweep") as bar:

            def show(sweep: int, changed: int, exploring: bool) -> None:
                bar.set_postfix(changed=changed, exploring=exploring)
                bar.update()

            yield show
