"""One device beside several that share a graph: milliseconds, bytes sent, time spent waiting.

Two runs of every graph: with the defaults, and synchronous sweeps that leave nothing out. "MB sent"
is what all ranks sent to one another, "waiting" the share of the run that the rank with the most of
it spent until others came (of streams nobody knows). "same": labels and changes of every sweep.
"peak" is of the GPU that took most. The parts are made, and kernels compiled, by a run before. With
``--memory-limit`` the graph lies in host memory, and GPUs get their parts from there.

GPUs that can store into one another's memory have a row for that, one for NCCL, and one for copies
by the driver. Two H100 took 361 ms (NCCL 409) beside 657 of one with the defaults on large-28 (4.5
G entries, ``--repeats 1``), and 184 (198) beside 278 for 3 synchronous sweeps; kron-24-16, 31 (NCCL
71, copies 97) beside 31, and 26 (32, 34) beside 31; kron-22-16, 22 (60, 79) beside 11. Of each run
some 5 ms are of the host, which makes two engines and launches both. Within 1.9 GB each (one takes
3.1 for the whole) kron-24-16 took 29 ms, and 24 for the synchronous sweeps, where one GPU within
that limit streams it in 74 and 81. Within less it is streamed to both, which one thread of the host
leads. Two H200, best of 7: within 0.9 GB each 3 synchronous sweeps took 51 ms (one: 79) and 12 took
121 (267), within 0.7 GB 57 (86) and 166 (302): each further one 12 ms for 1.1 GB, 92 GB a second
over both buses. The defaults, whose classes are many, took 67 (68) and 71 (70). Before what a class
needs was known ahead they took 70 and 81, a sweep of 32 classes 11 ms, in which both waited for the
host (it came to the end of a sweep when they did), and packed lists within 0.75 GB 76 (87) for 3
sweeps, 166 (264) for 12, 148 (130) with the defaults.

At the scale of the internet, on paper: 128 G edges (256 G entries) and 2 G vertices on 16 machines
of 8 GPUs. What ranks send follows from what changes: each change is a vertex and a label, 8 bytes,
to each other rank. 32 ranks on a CPU (``--devices`` and 32 times cpu) sent 124.7 MB on com-dblp:
31 * 8 bytes * 1.59 changes a vertex. On four graphs there were 1.2 to 1.6 changes a vertex in a
run, most of them in the first sweep. So of 2 G vertices 24 GB come to each GPU: half a second at
50 GB/s, which a network card for each GPU is taken to give. Evaluation: one H200 does a run on 4.5
G entries in 0.6 s (large-28), so 2 G entries take 0.27 s. Every rank applies all changes, 18 G a
second measured: 0.17 s, whatever the number of GPUs. Some 150 steps at 0.5 ms, measured with two
and NCCL, are 0.08 s; with 127 others each will take several times as long. Together 1 to 1.5 s.

Labels stop being replicable there: a rank takes 32 bytes a vertex (a label, two offsets of lists,
slack, winners) and 32 more while it plans, of which 2 G vertices fill an H200 beside the lists.
Beyond, and beyond 2**31 vertices, where indices take 8 bytes, ranks would have to keep the labels
of their own and of their neighbours only; that is not built.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

from tqdm import tqdm

from glp_rapids.bench import memory, subjects, timing
from glp_rapids.bench.large_graph import large_graph
from glp_rapids.bench.table import Rows, Tables
from glp_rapids.device import choose
from glp_rapids.graph.graph import Graph
from glp_rapids.multigpu.devices import Devices, devices_of, kind_of

GRAPHS = "com-dblp", "large-16"
LARGE = "large-"  # and 2**BITS vertices, as for bench large


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this bench's options."""
    about = "as for bench gpu, or large-BITS as for bench large"
    subjects.add_options(parser, GRAPHS, repeats=3, device=False, about=about)
    parser.add_argument("--devices", nargs="+", default=("cpu", "cpu"), metavar="N",
                        help="a cpu for each rank (default: two), or numbers of GPUs")  # fmt: skip
    parser.add_argument("--memory-limit", metavar="SIZE",
                        help="what each GPU may take, as 2GB; the graph lies in host memory, and "
                             "what one or all cannot hold is streamed")  # fmt: skip
    parser.add_argument("--sweeps", type=int, default=3, help="synchronous ones (default 3)")


def run(options: argparse.Namespace) -> Tables:
    """Return a table with two rows a graph."""
    named = [one if one == "cpu" else int(one) for one in options.devices]
    devices = devices_of(named)
    rows: Rows = []
    for name in tqdm(options.graphs, desc="several", leave=False, disable=None):
        if choose(kind_of(devices)) == "gpu":
            memory.free_memory()
        rows += _rows(name, _graph(name, devices), devices, options)
    return {f"One device beside {len(devices)}: {', '.join(map(str, devices))}": rows}


def _graph(name: str, devices: Devices) -> Graph:
    if name.startswith(LARGE):
        return large_graph(int(name.removeprefix(LARGE)), 0, kind_of(devices))
    return subjects.load(name, kind_of(devices))


def _rows(name: str, graph: Graph, devices: Devices, options: argparse.Namespace) -> Rows:
    modes = {
        "defaults": {},
        f"{options.sweeps} synchronous": subjects.synchronous(options.sweeps, skip_inactive=False),
    }
    rows, repeats = [], max(options.repeats, 1)
    kind = kind_of(devices)
    if options.memory_limit is not None:
        graph = graph.to("cpu")
    for mode, settings in modes.items():
        settings = {**settings, "memory_limit": options.memory_limit}
        one = timing.timed(
            partial(_propagated, graph, {**settings, "device": kind}), repeats, kind
        )
        for exchange in _exchanges(devices, options.memory_limit is not None):
            with _exchanging(exchange):
                many = timing.timed(
                    partial(_propagated, graph, {**settings, "devices": devices}), repeats, kind
                )
            reports = [timed.found.attrs["glp"] for timed in (one, many)]
            changed = [report["changed"] for report in reports]
            ranks = reports[1]["ranks"]
            waits = [rank["seconds_waiting"] for rank in ranks if "seconds_waiting" in rank]
            rows.append({
                "graph": name, "entries": graph.number_of_edges, "run": mode, "sweeps": one.sweeps,
                "way of one": reports[0]["way"], "way": reports[1]["way"],
                "exchange": reports[1]["exchange"],
                "one ms": one.run_ms, "several ms": many.run_ms,
                "times": one.run_ms / many.run_ms,
                "MB sent": sum(rank["bytes_sent"] for rank in ranks) / 1e6,
                "waiting": max(waits) / reports[1]["seconds"] if waits else None,
                "peak MB": reports[1]["peak"] / 1e6 if "peak" in reports[1] else None,
                "same": subjects.same_labels(one.found, many.found) and changed[0] == changed[1],
            })  # fmt: skip
            del many
        del one
    return rows


def _exchanges(devices: Devices, limited: bool) -> list[str]:
    """Return the ways in which these can exchange winners; within a limit, the usual one."""
    if kind_of(devices) == "cpu":
        return ["threads"]
    from glp_rapids.multigpu.peers import reach_one_another
    from glp_rapids.propagation.engines.partitioned_gpu import EXCHANGES, how_of

    if limited:
        return [how_of(devices)]
    return [how for how in EXCHANGES if how != "peer stores" or reach_one_another(devices)]


@contextlib.contextmanager
def _exchanging(how: str) -> Iterator[None]:
    """Let GPUs exchange winners in this way."""
    if how == "threads":
        yield
        return
    from glp_rapids.propagation.engines import partitioned_gpu

    before, partitioned_gpu.chosen = partitioned_gpu.chosen, how
    try:
        yield
    finally:
        partitioned_gpu.chosen = before


def _propagated(graph: Graph, settings: dict[str, Any]) -> Any:
    from glp_rapids import label_propagation

    return label_propagation(graph, **settings)
