"""A run of one rank whose graph nobody has as a whole: programs on a `RankGraph`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from glp_rapids.device import DeviceName
from glp_rapids.graph import build
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.rows import CSR
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.propagation.failures import explain_failure
from glp_rapids.propagation.options import Options
from glp_rapids.propagation.program import Program
from glp_rapids.propagation.run import (
    Outcome,
    converged,
    ended_as_asked,
    first_fields,
    types_on_host,
)
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.workload import workload_of

if TYPE_CHECKING:
    from glp_rapids.propagation.rank_graph import RankGraph
    from glp_rapids.propagation.warm_start import Start


def run_on_rank(
    graph: RankGraph, program: Program, options: Options, held: int = 0,
    start: Start | None = None, later: int = 0,
) -> Outcome:  # fmt: skip
    """Run a program on this rank's part of a graph, with the other ranks; see `run.run`.

    Nobody looks what memory there is, and a warm run evaluates everybody, too.
    """
    from glp_rapids.propagation.compile_program import compile_program, with_small_sums
    from glp_rapids.propagation.warm_start import changed_before

    make, target = ENGINES[graph.device]()
    begin, exchange, part = time.perf_counter(), graph.exchange, graph.part
    fields, singletons = first_fields(graph, program, options, graph.device, start)
    own = graph.keep("own rows", lambda: _own_rows(graph, options))
    compiled = compile_program(program, target, types_on_host(fields), part.rows.weights)
    workload = workload_of(own, part.rows, program, compiled.traits, options, singletons)
    if workload.small_sums and target.name == "gpu":
        compiled = with_small_sums(compiled)
    if workload.skip:
        workload = replace(workload, readers=graph.keep("own readers", lambda: _readers(own)))
    options = ended_as_asked(program, options)
    schedule = Schedule(options, graph.number_of_vertices, changed_before(start, options))

    def check(failure: int) -> None:
        if failure:
            traits, sweep, largest = compiled.traits, len(schedule.changed), workload.largest_amount
            raise ValueError(explain_failure(failure, program, traits, graph, largest, sweep))

    if not schedule.over:
        engine = make(workload, compiled, fields, exchange, part.first, part.last, graph.threads)
        engine.start()
        check(engine.failure())
        while not schedule.over:
            engine.advance(schedule, options.max_iter)
            check(engine.failure())
    changed = schedule.changed
    report = {
        "warm": start is not None,
        "sweeps": len(changed),
        "explored": len(changed) if schedule.exploring else schedule.explored,
        "changed": changed,
        "converged": converged(schedule),
        "seconds": time.perf_counter() - begin,
        "device": graph.device,
        "way": "plain",
        "memory_limit": None,
        "rank": exchange.rank,
        "vertices": part.last - part.first,
        "entries": part.rows.number_of_edges,
        "bytes_sent": exchange.bytes,
        "seconds_waiting": exchange.waiting,
    }
    return Outcome(graph, fields["labels"], fields, report)


def _cpu() -> tuple[Any, Any]:
    from glp_rapids.jit.target import cpu_target
    from glp_rapids.propagation.engines.rank_cpu import CpuRankEngine

    return CpuRankEngine, cpu_target()


def _gpu() -> tuple[Any, Any]:
    from glp_rapids.jit.cuda import gpu_target
    from glp_rapids.propagation.engines.rank_gpu import GpuRankEngine

    def make(*arguments: Any) -> GpuRankEngine:
        return GpuRankEngine(*arguments[:-1])  # threads are the host's

    return make, gpu_target()


ENGINES: dict[DeviceName, Callable[[], tuple[Any, Any]]] = {"cpu": _cpu, "gpu": _gpu}


def _own_rows(graph: RankGraph, options: Options) -> Graph:
    """Return a graph of the rows of this rank alone, which knows what is true of all."""
    rows, both = graph.part.rows, graph.directed and options.direction == "both"
    number = rows.number_of_vertices
    # Rows are those that the run reads, whichever way the edges point.
    ids = VertexIds.numbers(number, graph.device)
    own = Graph(rows.indptr, rows.indices, rows.weights, both, ids)
    shared = graph.rows(options.direction)
    own._derived["both"] = rows
    own._derived["id words"] = graph.part.words
    which = "both" if both else None
    own._derived["longest row", which] = shared.largest_degree()
    own._derived["largest weight", which] = float(shared.largest_weight())
    own._derived["whole weights", which] = False  # nobody asks the others whether theirs are
    return own


def _readers(own: Graph) -> CSR:
    """Return who of this rank's range reads each vertex."""
    indptr, indices, _ = build.transpose(own.indptr, own.indices, None)
    return CSR(indptr, indices, None)
