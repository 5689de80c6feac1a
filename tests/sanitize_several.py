"""A small run of ranks that share a GPU, and of one that stores into its own inbox:

    compute-sanitizer --tool racecheck --kernel-name kernel_substring=propagate_ \\
        python tests/sanitize_several.py [classic layered ...]

Says of every graph whether labels are those of a CPU.
"""

import sys

import graphs
import one_gpu
import pytest
from memory_limits import EVERY, large

from glp_rapids import as_graph
from glp_rapids.propagation.engines import partitioned_gpu


def main(*programs):
    with pytest.MonkeyPatch.context() as patch:
        one_gpu.patched(patch)
        compared(programs, [0, 0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitioned_gpu, "chosen", "peer stores")
        compared(programs, [0])


def compared(programs, devices):
    hub = as_graph(**graphs.GRAPHS["hub"](), device="cpu")
    for name, graph in (("hub", hub), ("large", large(700, 20_000, weighted=True))):
        for program in programs or ("classic",):
            how = {"max_iter": 3, "classes": 3}
            expected = EVERY[program](graph, device="cpu", **how)
            found = EVERY[program](graph.to("gpu"), devices=devices, **how)
            same = "same as on a CPU" if found.equals(expected) else "DIFFERENT"
            print(f"{program}, {name}, {len(devices)} ranks: {same}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
