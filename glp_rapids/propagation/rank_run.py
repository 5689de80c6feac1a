"""A run of one rank whose graph nobody has as a whole: label propagation on a `Part` of it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from glp_rapids.graph import build
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.rows import CSR
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.propagation.program import Program
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.workload import workload_of

if TYPE_CHECKING:
    from glp_rapids.ingest.shuffle import Part
    from glp_rapids.multigpu.exchange import Exchange
    from glp_rapids.propagation.options import Options


class RankOutcome(NamedTuple):
    """The labels of all vertices, and the report of the run."""

    labels: np.ndarray
    report: dict[str, Any]


def run_part(
    exchange: Exchange, part: Part, program: Program, options: Options, threads: int
) -> RankOutcome:
    """Run a program that has no state on this rank's part of a graph, with the other ranks."""
    from glp_rapids.jit.target import cpu_target
    from glp_rapids.propagation.compile_program import compile_program
    from glp_rapids.propagation.engines.rank_cpu import CpuRankEngine

    begin, rows = time.perf_counter(), part.rows
    number = rows.number_of_vertices
    # Rows are those that the run reads, whichever way the edges point.
    graph = Graph(rows.indptr, rows.indices, rows.weights, False, VertexIds.numbers(number, "cpu"))
    graph._derived["id words"] = part.words
    extremes = exchange.tell((rows.largest_degree(), float(rows.largest_weight())))
    graph._derived["extremes", None] = tuple(map(max, zip(*extremes, strict=True)))
    labels = np.arange(number, dtype=graph.index_dtype)
    fields = {"labels": labels, "sweep": np.int64(0), "seed": np.int64(options.seed)}
    nothing = {name: np.empty(0, value.dtype) if np.ndim(value) else value
               for name, value in fields.items()}  # fmt: skip
    compiled = compile_program(program, cpu_target(), nothing, rows.weights)
    workload = workload_of(graph, rows, program, compiled.traits, options, True)
    if workload.skip:
        indptr, indices, _ = build.transpose(rows.indptr, rows.indices, None)
        workload = replace(workload, readers=CSR(indptr, indices, None))
    schedule = Schedule(options, number)
    if not schedule.over:
        engine = CpuRankEngine(workload, compiled, fields, exchange, part.first, part.last, threads)
        engine.start()
        engine.advance(schedule, options.max_iter)
    changed = schedule.changed
    report = {
        "sweeps": len(changed),
        "explored": len(changed) if schedule.exploring else schedule.explored,
        "changed": changed,
        "converged": schedule.settled,
        "seconds": time.perf_counter() - begin,
        "device": "cpu",
        "rank": exchange.rank,
        "vertices": part.last - part.first,
        "entries": rows.number_of_edges,
        "bytes_sent": exchange.bytes,
        "seconds_waiting": exchange.waiting,
    }
    return RankOutcome(labels, report)
