"""The most device memory that arrays take while something runs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from glp_rapids.device import module_on


class Peak:
    """Bytes: how many are held of what was allocated since the watch began, and the most so far."""

    held = most = 0


@contextlib.contextmanager
def watched(device: str) -> Iterator[Peak]:
    """Watch what this thread allocates on a GPU from CuPy's pool; of other allocators it is 0."""
    peak = Peak()
    if device != "gpu":
        yield peak
        return
    sizes: dict[int, int] = {}

    class Watch(module_on("gpu").cuda.MemoryHook):
        def __init__(self):
            self.name = f"glp_rapids peak {id(self)}"  # a run may begin another one

        def malloc_postprocess(self, **facts):
            if facts["mem_ptr"]:
                sizes[facts["mem_ptr"]] = facts["mem_size"]
                peak.held += facts["mem_size"]
                peak.most = max(peak.most, peak.held)

        def free_postprocess(self, **facts):
            peak.held -= sizes.pop(facts["mem_ptr"], 0)

    with Watch():
        yield peak
