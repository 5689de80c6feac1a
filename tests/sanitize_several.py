"""A small run of ranks that share a GPU, and of one that stores into its own inbox:

    compute-sanitizer --tool racecheck --kernel-name kernel_substring=propagate_ \\
        python tests/sanitize_several.py [classic layered ...]

With ``streamed`` before these, of ranks that share a GPU and stream their parts. Says of every
graph whether labels are those of a CPU.
"""

import sys

import graphs
import one_gpu
import pytest
from memory_limits import EVERY, large

from glp_rapids import as_graph
from glp_rapids.propagation.engines import gpu_streamed, partitioned_gpu


def main(*programs):
    if programs[:1] == ("streamed",):
        with pytest.MonkeyPatch.context() as patch:
            one_gpu.patched(patch)
            for name in ("MOST", "LEAST", "MOST_OF_CLASS"):
                patch.setattr(gpu_streamed, name, 1 << 10)
            compared(programs[1:], [0, 0], "streamed plain")
        return
    with pytest.MonkeyPatch.context() as patch:
        one_gpu.patched(patch)
        compared(programs, [0, 0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitioned_gpu, "chosen", "peer stores")
        compared(programs, [0])


def compared(programs, devices, way="plain"):
    hub = as_graph(**graphs.GRAPHS["hub"](), device="cpu")
    for name, graph in (("hub", hub), ("large", large(700, 20_000, weighted=True))):
        for program in programs or ("classic",):
            how = {"max_iter": 3, "classes": 3}
            expected = EVERY[program](graph, device="cpu", **how)
            given = graph.to("gpu" if way == "plain" else "cpu")
            found = EVERY[program](given, devices=devices, way=way, **how)
            same = "same as on a CPU" if found.equals(expected) else "DIFFERENT"
            print(f"{program}, {name}, {len(devices)} ranks: {same}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
