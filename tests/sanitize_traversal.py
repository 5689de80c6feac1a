"""Small runs of every kernel of searches, for compute-sanitizer; run by hand.

    compute-sanitizer --tool memcheck --report-api-errors no \\
        --kernel-name kernel_substring=locals python tests/sanitize_traversal.py

and the same with ``--tool racecheck``. What comes out is compared with a CPU. Names of ways behind
it: only these. There are few blocks: each more takes as long again, and does the same.
"""

import sys
from dataclasses import replace

import numpy as np

from glp_rapids import as_graph
from glp_rapids.traversal.engines import (
    Lists,
    gpu,
    gpu_breadth_first,
    gpu_layers,
    gpu_pace,
    order_by_level,
)
from glp_rapids.traversal.engines.cpu import CpuEngine

# As it is; blocks on their own, for few steps or alone; wide levels; from the other side.
WAYS = {
    "as it is": {},
    "parts": {"CHUNK": 1, "NEAR_CHUNK": 1, "HOPS": 3, "NEAR_HOPS": 3, "STEP": 16.0},
    "wide": {"MOST_CHUNK": 0, "PULL": (0, 0), "PULL_TOGETHER": 0},
    "pull": {"PULL": (1 << 20, 1 << 20), "PULL_TOGETHER": 1 << 20},
}


def graph():
    rng = np.random.default_rng(3)
    hub = [(0, i) for i in range(1, 1500)] + [(1, i) for i in range(2, 300)]
    chain = [(1500 + i, 1501 + i) for i in range(60)]
    pairs = np.vstack([hub, chain, [(1499, 1500)], rng.integers(0, 1500, (2500, 2))])
    return as_graph(tuple(pairs.T), device="gpu")


def results(engine, starts):
    yield "bfs", engine.bfs(starts, 1 << 40, True)[:2]
    yield "sssp", engine.sssp(starts, 1 << 40, starts[:0], True)[:2]
    for distance, summary in engine.bfs_of_each(starts, 1 << 40, True):
        yield "together", (distance, summary)
    level, deepest = engine.bfs(starts, 1 << 40, False)[::2]
    order, first_row = order_by_level(level, deepest)
    lists = Lists(order, *engine.rows_in_order(order), first_row)
    yield "paths", (engine.count_paths(lists, starts, level),)
    yield "relaxed", (distance := engine.relax(lists, starts, 1 << 40)[0],)
    yield "before", (engine.predecessors(starts, distance),)
    yield "dependencies", (engine.dependencies(starts, False),)
    yield "components", (engine.components(),)
    yield "rows", engine.rows_in_order(starts)


def main():
    import cupy

    for module in (gpu, gpu_breadth_first, gpu_layers):
        module.multiprocessors = lambda: 1
    plain = graph()
    ends = plain.row_indices() + plain.indices
    on_gpu = replace(plain, weights=(ends % 7).astype(np.int64), _derived={})
    directed = replace(on_gpu, directed=True, _derived={})
    starts = cupy.array([3, 1540], np.int32)
    for kind, one in (("undirected", on_gpu), ("directed", directed)):
        expected = list(results(CpuEngine(one.to("cpu"), "out"), starts.get()))
        for way, values in WAYS.items():
            if sys.argv[1:] and way not in sys.argv[1:]:
                continue
            before = {name: getattr(gpu_pace, name) for name in values}
            for name, value in values.items():
                setattr(gpu_pace, name, value)
            engine = gpu.GpuEngine(one, "out")
            for (name, known), (_, found) in zip(expected, results(engine, starts), strict=True):
                same = all(map(np.array_equal, known, (part.get() for part in found)))
                print(f"{kind}, {way}: {name}: {'same as on a CPU' if same else 'DIFFERENT'}")
            for name, value in before.items():
                setattr(gpu_pace, name, value)


if __name__ == "__main__":
    main()
