"""CPU = GPU on real graphs, whichever levels are done together. python .gpu/agree.py GRAPH ..."""
import sys, time
import numpy as np
from glp_rapids import as_graph, multilevel_label_propagation as multilevel
from glp_rapids.bench import subjects
from glp_rapids.communities.engines import descent
from glp_rapids.communities.engines.descent import Reach
from glp_rapids.communities.kernels import gpu_descent
WAYS = {"default": descent.REACHES, "all": (Reach(1 << 24, 1 << 12), *descent.REACHES[1:]), "one launch": (Reach(1 << 24, 1 << 10),),
        "alone": (Reach(1 << 14, 1 << 14),), "none": (Reach(0, 1),)}
RUNS = ({}, {"refine": False}, {"objective": "cpm", "resolution": 0.05, "iterations": 2}, {"max_level": 2, "seed": 7}, {"tol": 0, "resolution": 3.0})
def told(frame):
    report = frame.attrs["glp"]
    values = frame["partition"].values
    return (np.asarray(values.get() if hasattr(values, "get") else values).tolist(), report.get("modularity", report.get("cpm")),
            [{k: v for k, v in level.items() if k != "seconds"} for level in report["levels"]])
for name in sys.argv[1:]:
    weighted = name.startswith("w:")
    host = subjects.load(name.removeprefix("w:"), "cpu")
    if weighted:
        rows = host.row_indices(); once = rows <= host.indices
        w = np.random.default_rng(1).integers(1, 2**40, int(once.sum()))
        host = as_graph((rows[once], host.indices[once], w), device="cpu")
    there = host.to("gpu")
    for options in RUNS:
        expected = told(multilevel(host, **options, device="cpu"))
        same = {}
        for way, descent.REACHES in WAYS.items():
            same[way] = told(multilevel(there, **options, device="gpu")) == expected
        print("CPU=GPU" if all(same.values()) else "DIFFERENT", name, options, same, flush=True)
