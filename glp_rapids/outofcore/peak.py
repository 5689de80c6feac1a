"""The most device memory that arrays take while something runs."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from glp_rapids.device import module_on


@dataclass
class Peak:
    """Bytes: how many are held of what was allocated since the watch began, and the most so far."""

    held: int = 0
    most: int = 0
    sizes: dict[int, int] = field(default_factory=dict)  # of what is held, by its address

    def start(self, held: int) -> None:
        """Begin with so many bytes, which nobody allocates any more."""
        self.held = self.most = held


@contextlib.contextmanager
def watched(device: str | None, peak: Peak | None = None) -> Iterator[Peak]:
    """Watch what this thread allocates on a GPU from CuPy's pool; of other allocators it is 0.

    ``peak``: that of an earlier watch, which goes on.
    """
    peak = Peak() if peak is None else peak
    if device != "gpu":
        yield peak
        return

    with _watch_type()(peak):
        yield peak


@functools.cache
def _watch_type() -> Any:
    """Make the hook, once: runs enter it for every class of a sweep."""

    class Watch(module_on("gpu").cuda.MemoryHook):
        def __init__(self, peak):
            self.name = f"glp_rapids peak {id(self)}"  # a run may begin another one
            self._peak = peak

        def malloc_postprocess(self, **facts):
            if facts["mem_ptr"]:
                peak = self._peak
                peak.sizes[facts["mem_ptr"]] = facts["mem_size"]
                peak.held += facts["mem_size"]
                peak.most = max(peak.most, peak.held)

        def free_postprocess(self, **facts):
            self._peak.held -= self._peak.sizes.pop(facts["mem_ptr"], 0)

    return Watch
