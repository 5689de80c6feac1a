"""Small runs of ranks that share a GPU, of one that stores into its own inbox, and of streams:

    compute-sanitizer --tool racecheck --kernel-name kernel_substring=propagate_ \\
        python tests/sanitize_several.py memory|streams [classic layered ...]

Says of every graph whether labels are those of a CPU.
"""

import sys

import graphs
import one_gpu
import pytest
from memory_limits import EVERY, large

from glp_rapids import as_graph
from glp_rapids.propagation.engines import gpu_streamed, partitioned_gpu, partitioned_streams


def in_memory(programs):
    with pytest.MonkeyPatch.context() as patch:
        one_gpu.patched(patch)
        compared(programs, [0, 0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitioned_gpu, "chosen", "peer stores")
        compared(programs, [0])


def in_streams(programs):
    for how, most in (("copies", 1), ("peer stores", gpu_streamed.MOST_OF_CLASS)):
        with pytest.MonkeyPatch.context() as patch:
            one_gpu.patched(patch)
            patch.setattr(partitioned_streams, "how_of", lambda devices, how=how: how)
            patch.setattr(gpu_streamed, "multiprocessors", lambda: 4)
            patch.setattr(gpu_streamed, "MOST", most)
            patch.setattr(gpu_streamed, "MOST_OF_CLASS", most)
            compared(programs, [0, 0], way="streamed plain")


def compared(programs, devices, **options):
    hub = as_graph(**graphs.GRAPHS["hub"](), device="cpu")
    for name, graph in (("hub", hub), ("large", large(700, 20_000, weighted=True))):
        for program in programs or ("classic",):
            how = {"max_iter": 3, "classes": 3}
            expected = EVERY[program](graph, device="cpu", **how)
            given = graph if options else graph.to("gpu")
            found = EVERY[program](given, devices=devices, **how, **options)
            same = "same as on a CPU" if found.equals(expected) else "DIFFERENT"
            print(f"{program}, {name}, {len(devices)} ranks: {same}", flush=True)


if __name__ == "__main__":
    {"memory": in_memory, "streams": in_streams}[sys.argv[1]](sys.argv[2:])
