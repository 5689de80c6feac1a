"""One run on several GPUs of this process, to which the lists of a graph come strip by strip.

For graphs in host memory of which the GPUs together cannot hold the lists (those that they can,
they do: `partitioned_gpu`). Labels and state are on each of them, and the order of all rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from glp_rapids.propagation.engines.partitioned import PartitionedEngine
from glp_rapids.propagation.engines.partitioned_gpu import PartitionedGpuEngine, copied
from glp_rapids.propagation.engines.rank_streamed import StreamedRankEngine
from glp_rapids.propagation.workload import Workload


class PartitionedStreamsEngine(PartitionedGpuEngine):
    """Run one program on one graph in host memory with several GPUs of this process."""

    _how = "copies"  # outcomes of classes get to the others

    def _find_parts(self, workload: Workload, devices: tuple[int | str, ...]) -> None:
        """Leave the lists where they are: none is kept on a GPU from run to run."""

    def _engine(self, rank: int) -> StreamedRankEngine:
        fields = self._fields
        if not self._works_on_given(rank):
            fields = {name: copied(value) for name, value in fields.items()}
        workload = replace(self._workload, active=None)
        return StreamedRankEngine(workload, self._compiled, fields, self._exchanges[rank])

    def facts(self) -> dict[str, Any]:
        """Return what the report of a run says besides: of each GPU, and of all together."""
        facts = PartitionedEngine.facts(self)
        found = [engine.facts() for engine in self._engines]
        for rank, (told, one, engine) in enumerate(
            zip(facts["ranks"], found, self._engines, strict=True)
        ):
            told |= {
                "vertices": engine.number_of_vertices, "bytes_over_bus": one["bytes_over_bus"],
                "peak": self._peaks[rank].most + self._bytes_of_fields(rank),
            }  # fmt: skip
        return {
            **facts,
            "predicted": max(one["predicted"] for one in found),
            "bytes_over_bus": sum(one["bytes_over_bus"] for one in found),
            "share_cached": sum(one["share_cached"] for one in found),
            "pinned": all(one["pinned"] for one in found),
            "peak": max(told["peak"] for told in facts["ranks"]),
        }
