"""Small runs of every kernel of multilevel label propagation, for compute-sanitizer; run by hand.

    compute-sanitizer --tool memcheck --report-api-errors no \\
        --kernel-name kernel_substring=locals python tests/sanitize_multilevel.py

and the same with ``--tool racecheck``. What comes out is compared with a CPU. Arguments name graphs
(``counts``, ``weights``), say which levels are done in one launch, all (``together``) or none
(``apart``), and with which options (``refined``, ``plain``); without any it is all of these.
"""

import itertools
import sys

import numpy as np

from glp_rapids import as_graph, contract, multilevel_label_propagation
from glp_rapids.communities.engines import small_levels

WAYS = {"together": small_levels.LARGEST, "apart": 0}
OPTIONS = {
    "refined": {"iterations": 2},
    "plain": {"refine": False, "resolution": 0.2},
    "potts": {"refine": False, "objective": "cpm", "resolution": 0.2},
}


def main(*wanted):
    rng = np.random.default_rng(3)
    hubs = [(0, i) for i in range(1, 2600)] + [(1, i) for i in range(2, 1300)]
    hubs += [(2, i) for i in range(3, 500)] + [(3, i) for i in range(4, 100)]
    pairs = np.vstack([hubs, rng.integers(0, 2700, (5000, 2))])
    graphs = {
        "counts": as_graph(tuple(pairs.T), device="cpu"),
        "weights": as_graph((*pairs.T, rng.integers(0, 2**40, len(pairs))), device="cpu"),
    }
    ways = [way for way in WAYS if way in wanted] or WAYS
    names = [name for name in graphs if name in wanted] or graphs
    kinds = [kind for kind in OPTIONS if kind in wanted] or OPTIONS
    for name, way, kind in itertools.product(names, ways, kinds):
        graph, options, small_levels.LARGEST = graphs[name], OPTIONS[kind], WAYS[way]
        expected = multilevel_label_propagation(graph, **options, device="cpu")
        found = multilevel_label_propagation(graph, **options, device="gpu")
        found = found.to_pandas() if hasattr(found, "to_pandas") else found
        same = np.array_equal(found.to_numpy(), expected.to_numpy())
        print(f"{name} {way} {kind}: {'same as on a CPU' if same else 'DIFFERENT'}", flush=True)
        if way == "apart":
            small = contract(graph, expected, device="cpu")
            there = contract(graph, expected, device="gpu")
            same = np.array_equal(there.weights.get(), small.weights)
            print(f"{name} contract: {'same as on a CPU' if same else 'DIFFERENT'}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
