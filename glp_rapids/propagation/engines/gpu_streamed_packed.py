"""The GPU engine of packed lists in host memory: they come in strips, and are decoded there.

All is as with plain lists, see `gpu_streamed`, but that a strip is a stretch of words, in which a
list takes a fifth to a half of what it does plain. A warp decodes lists where it counts them, see
`read_packed`; so this is for lists under "packed" without weights, in parts of 128. It is for plain
votes in undirected graphs whose lists are in the order of the ids, for that is what has run on a
GPU and agreed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from glp_rapids.device import LackOfMemory, to_device
from glp_rapids.jit.cuda import bound
from glp_rapids.propagation.compile_program import Compiled
from glp_rapids.propagation.engines import packed_strips
from glp_rapids.propagation.engines.gpu_compressed import decoding_of, streams_packed
from glp_rapids.propagation.engines.gpu_streamed import StreamedGpuEngine
from glp_rapids.propagation.kernels.gpu import read_packed
from glp_rapids.propagation.kernels.gpu.arguments import CompressedLists
from glp_rapids.propagation.kernels.gpu.plan import Limits, Plan
from glp_rapids.propagation.schedule import Schedule
from glp_rapids.propagation.workload import Workload

# From one change in so many on it takes longer to decode who reads a vertex than to read everything
# in the next sweep. One H200, all, 4, 16: kron-22-16 37.4, 34.7, 38.8 ms; web 32.3, 31.3, 31.4.
MANY = 4


class StreamedPackedGpuEngine(StreamedGpuEngine):
    """Run one program on one packed graph in host memory with a GPU."""

    _beyond = packed_strips.BEYOND
    _laid_out = staticmethod(packed_strips.laid_out)

    def __init__(self, workload: Workload, compiled: Compiled, fields: dict[str, Any]):
        rows = workload.rows
        traits = compiled.traits
        if not (streams_packed(workload.graph) and traits.plain and traits.growing_scores):
            raise LackOfMemory(
                "graph: its packed lists do not fit the GPU, and are streamed to it only by "
                "label_propagation, without weights, directions and an order of their own; pass "
                "graph.to_graph(), whose plain lists are, or give device='cpu'"
            )
        # no row is in order, so none can be searched
        workload = replace(workload, once=False)
        self._decoding = decoding_of(rows, fused=True, bufferless=True)
        super().__init__(workload, compiled, fields)

    def _plan(self, limits: Limits) -> Plan:
        # A warp would be at a very long row when all others have come to the end.
        return super()._plan(replace(limits, longest=read_packed.LONGEST))

    def _many(self, schedule: Schedule) -> int:
        """Return how many changes make everybody active: lists have to be decoded to wake them."""
        if self._compiled.traits.plain:
            return min(super()._many(schedule), schedule.number_of_vertices // MANY)
        return super()._many(schedule)

    def _how_read(self) -> CompressedLists:
        """Give what tells how lists are read; the words come with the buffer."""
        xp, rows = self._xp, self._workload.rows
        none = bound(xp.zeros(1, self._layout.starts.dtype))
        return CompressedLists(
            words=bound(xp.zeros(1, self._layout.entries.array.dtype)),
            tables=bound(to_device(rows.lists.tables, self._device)),
            settings=rows.lists.settings, place=none, order=none, offsets=none,
            position=none, part=none, group_parts=none, first_weight=none,
            weights=none, values=none,
        )  # fmt: skip

    def _make_buffer(self) -> None:
        """Show the buffer to the kernel, as words."""
        super()._make_buffer()
        made = self._workspace
        packed = made.lists.packed._replace(words=made.rows.indices)
        made.lists = made.lists._replace(packed=packed)
        none = bound(self._xp.zeros(1, self._workload.rows.index_dtype))
        made.rows = made.rows._replace(indices=none)
