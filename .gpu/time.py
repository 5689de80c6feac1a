"""Whole calls and levels before (none together) and after. python .gpu/time.py GRAPH ..."""
import sys, time
from pathlib import Path
import cupy
from glp_rapids import multilevel_label_propagation as multilevel
from glp_rapids.bench import subjects
from glp_rapids.communities.engines import descent
from glp_rapids.communities.engines.descent import Reach
from glp_rapids.communities.kernels import gpu_descent
default = descent.REACHES
WAYS = {
    "before": (Reach(0, 1),), "after": default,
    "up to 2^17": default[1:], "up to 2^14": default[2:],
    "up to 2^19": (default[0]._replace(most=1 << 19), *default[1:]),
    "up to 2^22": (default[0]._replace(most=1 << 22), *default[1:]),
    "no block alone": default[:-1],
    "alone to 2^13": (*default[:-1], Reach(1 << 13, 1 << 13)),
    "half the blocks": tuple(r._replace(items_a_block=min(2 * r.items_a_block, r.most)) for r in default),
    "twice the blocks": tuple(r._replace(items_a_block=max(r.items_a_block // 2, 1 << 9)) for r in default),
    "one launch": default[:1],
}
# Other kernels: (entries at once, blocks a multiprocessor); only where they are compiled already.
KERNELS = {"after": (True, 1), "entries one by one": (False, 1), "two blocks a multiprocessor": (True, 2)}
if len(list(Path("glp_rapids/jit/shipped").glob("go_down.*.ptx.xz"))) >= len(KERNELS):
    WAYS |= {way: default for way in KERNELS}
def choose(way):
    descent.REACHES = WAYS[way]
    kernel = KERNELS.get(way, KERNELS["after"])
    if kernel != (gpu_descent.AT_ONCE, gpu_descent.BLOCKS):
        gpu_descent.AT_ONCE, gpu_descent.BLOCKS = kernel
        gpu_descent.build.cache_clear()
def clock(graph, repeats):
    times = []
    for _ in range(repeats):
        cupy.cuda.Device().synchronize(); t = time.perf_counter()
        found = multilevel(graph, device="gpu"); cupy.cuda.Device().synchronize()
        times.append(1e3 * (time.perf_counter() - t))
    return times, found
for name in sys.argv[1:]:
    graph = subjects.load(name, "gpu")
    ways = WAYS if graph.number_of_edges < 10_000_000 else {w: WAYS[w] for w in ("before", "after", "up to 2^22")}
    repeats = 6 if len(ways) > 3 else 3 if graph.number_of_edges < 50_000_000 else 2
    seen = {}
    for _ in range(2):  # in turns
        for way in ways:
            choose(way)
            times, found = clock(graph, repeats)
            old = seen.get(way)
            seen[way] = (times if old is None else old[0] + times, found.attrs["glp"])
    for way, (times, report) in seen.items():
        times = sorted(times[1:])
        print(f"{name} {way}: min {times[0]:.2f} median {times[len(times) // 2]:.2f} ms; modularity {report['modularity']:.6f}, levels {len(report['levels'])}", flush=True)
    before, after = (seen[way][1]["levels"] for way in ("before", "after"))
    for one, other in zip(before, after):
        print(f"   {one['iteration']} {one['level']} vertices {one['vertices']} sweeps {len(one['moved'])} moved {one['moved'][0]}: {1e3 * one['seconds']:.2f} -> {1e3 * other['seconds']:.2f} ms", flush=True)
