"""One run on several GPUs that hold none of the lists: each streams those of a range to itself.

A thread a GPU, as where they hold them (`partitioned_gpu`): so the lists come over the buses of all
at the same time. Each has labels and state of all vertices, and the order of the rows of its range.
Of these a copy in the order of its strips lies pinned in host memory, and is kept for the next run.
"""

from __future__ import annotations

from typing import Any

from glp_rapids.graph.rows import CSR
from glp_rapids.multigpu.exchange import Exchange, Meeting, ThreadExchange
from glp_rapids.multigpu.partition import rows_of_range
from glp_rapids.multigpu.peers import reach_one_another
from glp_rapids.propagation.engines.partitioned_gpu import PartitionedGpuEngine
from glp_rapids.propagation.engines.rank_streamed import StreamedRankEngine
from glp_rapids.propagation.ways import COPIES


class PartitionedStreamedEngine(PartitionedGpuEngine):
    """Run one program on one graph in host memory with several GPUs of this process."""

    _rank_engine = StreamedRankEngine

    def _chosen(self) -> str:
        reach_one_another(self._devices)  # if they can, copies do not go through the host
        return COPIES

    def _connected(self) -> list[Exchange]:
        self._meeting = Meeting(len(self._devices))
        return [ThreadExchange(self._meeting, rank) for rank in range(len(self._devices))]

    def _parts(self, rank: int) -> tuple[CSR, CSR, dict]:
        """Return views of a rank's rows and readers, and what runs are to keep of them."""
        workload, (first, last) = self._workload, self._bounds[rank : rank + 2]
        rows = readers = rows_of_range(workload.rows, first, last)
        if workload.readers is not workload.rows:
            given = CSR(workload.readers.indptr, workload.readers.indices, None)
            readers = rows_of_range(given, first, last)
        return rows, readers, {}

    def facts(self) -> dict[str, Any]:
        """Return what the report of a run says besides: what came over the bus of each GPU."""
        facts = super().facts()
        told = [engine.facts() for engine in self._engines]
        predicted = max(own.pop("predicted") for own in told)
        for rank, own in zip(facts["ranks"], told, strict=True):
            rank.update(own)
        entries = [engine.number_of_entries for engine in self._engines]
        resident = sum(own["share_cached"] * one for own, one in zip(told, entries, strict=True))
        return {
            **facts,
            "predicted": predicted,
            "bytes_over_bus": sum(own["bytes_over_bus"] for own in told),
            "share_cached": resident / max(sum(entries), 1),
            "pinned": all(own["pinned"] for own in told),
        }
