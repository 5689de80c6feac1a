"""The loop: sweeps over classes of vertices until labels stand still (GLP, section 3; DESIGN.md).

A sweep updates class after class; a class is evaluated as a whole on the labels as they stand,
then updated. The first ``explore`` sweeps settle ties by a new random order each time, which lets
communities merge; then ties keep the current label and the run settles. Engines differ in how they
do one sweep, never in what comes out of it.

Exploring ends early when hardly anything changes. Two guards end what does not end by itself. It
ends, too, when a sweep changes hardly fewer labels than the one before: on graphs with weak
communities one label would flood everything.
Settling ends when it no longer gets anywhere: a few neighbours of one class may swap labels for
ever.
"""

from __future__ import annotations

import time
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from glp_rapids.common.progress import reporting
from glp_rapids.common.reused_memory import memory_of_caller, reused_memory
from glp_rapids.common.segments import occurrences
from glp_rapids.device import (
    DeviceName,
    LackOfMemory,
    memory_free,
    memory_in_use,
    module_on,
    to_device,
)
from glp_rapids.outofcore.peak import watched
from glp_rapids.propagation.failures import LOWEST, explain_failure
from glp_rapids.propagation.memory import budget_of, gpu_bytes_of
from glp_rapids.propagation.options import Options
from glp_rapids.propagation.program import RESERVED, Program, initial_state
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.ways import decoded_for_good
from glp_rapids.propagation.workload import TooLittleMemory, warn_of_small_weights, workload_of

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.propagation.warm_start import Start


# Entries from which on to share a graph pays without being asked, whole calls on fresh graphs: with
# two H100 (a script) 0.5 G took 62 ms beside 59, 2.2 G 411 beside 480, 4.5 G 790 beside 1,000.
SHARED_FROM = 1 << 31


@dataclass
class Outcome:
    """The labels, the state and the report of a finished run."""

    graph: BaseGraph
    labels: Any
    state: dict[str, Any]
    report: dict[str, Any] = field(default_factory=dict)


class Run(Protocol):
    """What runs a program: `run` on a graph, `rank_run.run_on_rank` on a rank's part of one."""

    def __call__(
        self, graph: Any, program: Program, options: Options, held: int = 0, start: Any = None,
        later: int = 0,
    ) -> Outcome:  # fmt: skip
        """Run a program; ``held``, ``start`` and ``later``: see `run`."""


def run(
    graph: BaseGraph, program: Program, options: Options, held: int = 0,
    start: Start | None = None, later: int = 0,
) -> Outcome:  # fmt: skip
    """Run a program on a graph, on the device where the graph lives.

    ``held``: bytes that the caller holds for the same call, and that count as those of the run.
    ``start``: where a warm run begins; None: each vertex with what the program says. ``later``:
    bytes that the caller will hold besides in the last run of the same call, which must fit, too.
    """
    try:
        with watched(options.streams_to) as peak, memory_of_run(graph, options):
            outcome = _run(graph, program, options, held, start, later)
        if options.streams_to is not None:
            outcome.report.setdefault("peak", peak.most or None)
        return outcome
    except LackOfMemory:
        raise
    except MemoryError as error:
        device, needed = options.streams_to or graph.device, gpu_bytes_of(graph)
        raise LackOfMemory(
            f"graph: there is too little memory to propagate labels over its "
            f"{graph.number_of_vertices:,} vertices and {graph.number_of_edges:,} entries on the "
            f"{device}: it takes about {needed / 2**30:.1f} GiB, the graph included, and "
            f"{memory_free(device) / 2**30:.1f} GiB are free there ({error}); free some, compress "
            "the graph (glp_rapids.compress), or use host memory with device='cpu'"
        ) from error


def memory_of_run(graph: BaseGraph, options: Options) -> AbstractContextManager[None]:
    """Return the context of a run; what is made for it may be made within, too."""
    # with a limit nothing may be held besides; lists that are streamed keep to one
    if options.memory_limit is None and options.streams_to is None:
        return reused_memory(graph.device)
    return memory_of_caller()


def _run(
    graph: BaseGraph, program: Program, options: Options, held: int, start: Start | None,
    later: int,
) -> Outcome:  # fmt: skip
    begin = time.perf_counter()
    # Numba, CUDA and pandas wait for the first run: `import glp_rapids` stays light.
    from glp_rapids.propagation.compile_program import compile_program, with_small_sums
    from glp_rapids.propagation.engines import ENGINES, engine_of, engine_on
    from glp_rapids.propagation.pending import pending_text, rule_of
    from glp_rapids.propagation.warm_start import changed_before, first_active

    if may_be_shared(graph, options):
        from glp_rapids.propagation.part_memory import shared_by_all

        options = shared_by_all(graph, program, options)
    held += 0 if start is None else start.labels.nbytes
    budget = budget_of(graph, program, options, held)
    device = options.streams_to or graph.device
    number_of_vertices = graph.number_of_vertices
    fields, singletons = first_fields(graph, program, options, device, start)
    state = {name: value for name, value in fields.items() if name not in ("labels", *RESERVED)}

    source = budget.source()
    rows = source.rows(options.direction)
    if graph.device == "gpu" and decoded_for_good(graph, options) and options.strategy == "decode":
        choices = ", ".join(map(repr, ENGINES["gpu", "plain"]))
        raise ValueError(
            f"direction={options.direction!r} of a directed compressed graph decodes it for good; "
            f"strategy must then be one of {choices}, not 'decode'"
        )
    engine_class, target = engine_of(device, budget.ways[0], options.strategy)
    compiled = compile_program(program, target, types_on_host(fields), rows.weights)
    workload = workload_of(source, rows, program, compiled.traits, options, singletons)
    if workload.small_sums and target.name == "gpu":
        compiled = with_small_sums(compiled)
    if options.warns:
        warn_of_small_weights(workload, compiled.traits, options)
    rule = rule_of(program, compiled.traits, workload, options, state)
    if start is not None:
        marks = compiled.traits.plain and options.explore == 0
        active = None
        if options.streams_to is None:
            active = first_active(start, rule, workload, options)
        workload = replace(workload, marks=marks)
        if active is not None:
            vertices, entries = active
            workload = replace(workload, active=vertices, active_entries=entries)
    if later:  # raises before the first sweep, not when most of the call is done
        replace(budget, held=held + later).choose(workload, compiled.traits, fields)
    way, workload, predicted = budget.choose(workload, compiled.traits, fields)
    if options.devices is not None:
        engine_class = engine_on(options.devices, way)
    elif way != budget.ways[0]:
        engine_class, _ = engine_of(graph.device, way, options.strategy)
    options = ended_as_asked(program, options)
    schedule = Schedule(options, number_of_vertices, changed_before(start, options))

    def check(failure: int) -> None:
        if failure:
            traits, sweep = compiled.traits, len(schedule.changed)
            largest = workload.largest_amount
            raise ValueError(explain_failure(failure, program, traits, graph, largest, sweep))

    pending, facts = None, {}
    if not schedule.over:
        try:
            engine = engine_class(workload, compiled, fields)
        except TooLittleMemory as error:
            raise budget.lack_of_streams(error, predicted) from None
        engine.start()
        check(engine.failure())
        with reporting(options.progress, _show, desc="sweeps", unit="sweep") as tell:
            while not schedule.over:
                exploring = schedule.exploring
                engine.advance(schedule, options.max_iter if tell is None else 1)
                if tell is not None:
                    sweep, changed = len(schedule.changed), schedule.changed[-1]
                    tell({"sweep": sweep, "changed": changed, "exploring": exploring})
                check(engine.failure())
        if rule is not None:
            pending = engine.pending()
        facts = engine.facts()
    changed = schedule.changed
    if changed and changed[-1] == 0:  # so all that were not left out for good reasons are settled
        pending = np.empty(0, np.int64)
    report = {
        "warm": start is not None,
        "evaluated": number_of_vertices if workload.active is None else workload.active.size,
        "sweeps": len(changed),
        "explored": len(changed) if schedule.exploring else schedule.explored,
        "changed": changed,
        "converged": converged(schedule),
        "seconds": time.perf_counter() - begin,
        "device": device,
        "memory_in_use": memory_in_use(device),
        "way": way,
        "memory_limit": budget.limit,
        "predicted": predicted + facts.pop("predicted", 0),
        **facts,
    }
    if rule is not None:
        report["pending"] = pending_text(rule, workload, pending)
    if rows.scheme is not None:
        report["compressed"] = rows.scheme
    if device != graph.device:
        fields = {
            name: to_device(value, graph.device) if getattr(value, "ndim", 0) else value
            for name, value in fields.items()
        }
    return Outcome(graph, fields["labels"], fields, report)


def converged(schedule: Schedule) -> bool:
    """Tell whether few labels changed in the last sweep, not only as many as in those before."""
    changed = schedule.changed
    return schedule.settled and (not changed or changed[-1] <= schedule.few)


def ended_as_asked(program: Program, options: Options) -> Options:
    """Return the options of a run: what changes does not end one that is to make all sweeps."""
    return replace(options, stops=False) if program.all_sweeps else options


def may_be_shared(graph: BaseGraph, options: Options) -> bool:
    """Tell whether several GPUs may do a run: one cannot hold the graph, or it is large.

    And nobody said how it goes.
    """
    asked = options.devices, options.memory_limit, options.way, options.strategy
    if graph.scheme or asked != (None, None, "auto", "auto"):
        return False
    large = graph.device == "gpu" and graph.number_of_edges >= SHARED_FROM
    return large or options.streams_to == "gpu"


def first_fields(
    graph: BaseGraph, program: Program, options: Options, device: DeviceName,
    start: Start | None = None,
) -> tuple[dict[str, Any], bool]:  # fmt: skip
    """Return all that a program's functions see by name; and whether each vertex is alone at first.

    ``start``: where a warm run begins.
    """
    xp, number_of_vertices = module_on(device), graph.number_of_vertices
    state = initial_state(program, graph, lambda array: to_device(array, device))
    labels = state.pop("labels", None)
    singletons = labels is None and start is None  # each vertex begins with a label of its own
    if start is not None:
        labels = _warm_labels(program, labels, start, device)
    elif singletons:
        labels = xp.arange(number_of_vertices, dtype=graph.index_dtype)
    else:
        labels = _first_labels(labels, number_of_vertices, graph.index_dtype)
    fields = {"labels": labels, "sweep": np.int64(0), "seed": np.int64(options.seed)}
    if program.count_volumes and singletons:
        fields["volume"] = xp.ones(max(number_of_vertices, 1), np.int64)
        fields["volume"][number_of_vertices:] = 0
    elif program.count_volumes:
        said = labels[labels >= 0]
        fields["volume"] = occurrences(said, max(number_of_vertices, 1))
    return {**fields, **state}, singletons


def _warm_labels(program: Program, labels: Any, start: Start, device: DeviceName) -> Any:
    if labels is not None:
        raise ValueError(
            f"{type(program).__name__}.initial_state gives labels, which are not named after "
            "vertices as those of initial are; leave initial out, or the labels"
        )
    return to_device(start.labels.copy(), device)  # which the run will change


def _show(bar: Any, facts: dict) -> None:
    bar.set_postfix(changed=facts["changed"], exploring=facts["exploring"])
    bar.update()


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


def types_on_host(fields: dict[str, Any]) -> dict[str, Any]:
    """Return host arrays of the same types and no content: types are all a compiler needs."""
    return {
        name: np.empty((0,) * value.ndim, value.dtype) if getattr(value, "ndim", 0) else value
        for name, value in fields.items()
    }
