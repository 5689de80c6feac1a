"""The engines that work for one call of a public function, asked as if they were one.

One GPU is asked once for all vertices, in the caller's thread: there is nothing to balance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.checks import is_integer, is_sequence, shown
from glp_rapids.device import array_module, gpu_of, memory_in_use
from glp_rapids.diversity.kernels import engine_of
from glp_rapids.graph.graph import CSR, Graph
from glp_rapids.graph.simple import rows_between
from glp_rapids.multigpu.work_stealing import TOGETHER, Worker, costs, mixed_units, units_of, work

Array = Any

# The more units, the better the balance; GPUs are asked less often, see `mixed_units`.
UNITS_A_WORKER = 32
# What a unit should cost at the least, for a call not to be what costs most; as `costs` estimates.
LEAST_COST = {"cpu": 1 << 16, "gpu": 1 << 22}


def check_devices(devices: Any, graph: Graph) -> list[Any] | None:
    """Check ``devices=``: numbers of GPUs, or an item for each thread."""
    if devices is None:
        return None
    if not is_sequence(devices):
        raise TypeError(
            "devices must be a list, of GPU numbers or with an item for each thread of a CPU, "
            f"not {shown(devices)}"
        )
    devices = list(devices)
    if not devices:
        raise ValueError("devices must name one at least, not []; None takes what there is")
    if graph.device == "cpu":
        return devices
    import cupy

    there = cupy.cuda.runtime.getDeviceCount()
    for device in devices:
        if not is_integer(device):
            raise TypeError(f"devices must be numbers of GPUs, not {shown(device)}")
        if not 0 <= device < there:
            raise ValueError(f"devices must be numbers of GPUs, in 0..{there - 1}, not {device}")
    if len(set(devices)) < len(devices):
        raise ValueError(f"devices must name each GPU once, not {devices}")
    return [int(device) for device in devices]


def engine_for(graph: Graph, csr: CSR, number: int | None = None, limit: int | None = None) -> Any:
    """Give an engine for the simple graph: one kept on the graph, or a new one with a limit."""
    make = partial(engine_of, csr, graph.device, number, limit)
    return make() if limit else graph.keep(("diversity engine", number), make)


def workers_of(
    graph: Graph, csr: CSR, devices: Sequence[Any] | None, memory_limit: int | None
) -> list[Worker]:
    """Make the workers: one GPU or several, or threads that share an engine and its limit."""
    if graph.device == "cpu":
        if devices is None:
            from glp_rapids.jit.parallel import threads_available

            devices = range(threads_available())
        # each thread may have an ego-network in hand
        limit = memory_limit and max(memory_limit // len(devices), 1)
        shared = engine_for(graph, csr, None, limit)
        return [Worker(f"thread {device}", shared) for device in devices]
    import cupy

    if devices is None:
        device = cupy.cuda.Device()
        engine = engine_for(graph, csr, None, memory_limit)
        # the thread of a worker begins on GPU 0
        scope = partial(cupy.cuda.Device, device.id)
        return [Worker(f"gpu {device.id}", engine, scope, device.synchronize)]
    workers = []
    for number in devices:
        with (device := cupy.cuda.Device(number)):
            here = csr
            if gpu_of(csr.indptr) != number:
                here = graph.keep(("simple", number), partial(_copied, csr))
            engine = engine_for(graph, here, number, memory_limit)
        scope = partial(cupy.cuda.Device, number)
        workers.append(Worker(f"gpu {number}", engine, scope, device.synchronize))
    return workers


def _copied(csr: CSR) -> CSR:
    """Copy the rows to the current GPU from another."""
    import cupy

    cupy.cuda.Device(gpu_of(csr.indptr)).synchronize()  # its own stream does not wait for this one
    copy = CSR(cupy.array(csr.indptr), cupy.array(csr.indices), None)
    cupy.cuda.Device().synchronize()
    return copy


class Plan(NamedTuple):
    """How vertices are shared out: among so many workers, in units; the ``early`` ones first."""

    workers: int
    order: Array  # the places of the vertices, unit after unit
    units: list[list[Array]]  # for each worker the vertices of every unit, where the worker is
    costs: list[float]
    early: int


class Team:
    """The workers of one call, asked like an engine; vertices and answers are where the graph is.

    Parameters
    ----------
    graph, csr
        The graph, which keeps engines, and its simple CSR.
    devices, memory_limit
        As the public functions take them; checked.
    tell
        Called with the number of vertices of each unit that is done; None: nobody wants to know.
    steal
        False: each worker does what it was given, which shows what stealing is good for.
    """

    def __init__(
        self,
        graph: Graph,
        csr: CSR,
        *,
        devices: Sequence[Any] | None = None,
        memory_limit: int | None = None,
        tell: Callable[[int], None] | None = None,
        steal: bool = True,
    ) -> None:
        self._graph, self._csr, self._xp = graph, csr, array_module(csr.indptr)
        self._tell, self._steal, self._memory_limit = tell, steal, memory_limit
        self._chosen = devices is not None
        self.workers = workers_of(graph, csr, devices, memory_limit)
        self._engines = list({id(worker.engine): worker.engine for worker in self.workers}.values())
        self._batches_before = sum(engine.batches for engine in self._engines)

    def scores(self, vertices: Array, k: int, model: str) -> Array:
        """Give the score of every vertex."""
        order, found = self._map("scores", vertices, k, model)
        if order is None:
            return found
        scores = self._xp.empty_like(found)
        scores[order] = found
        return scores

    def members(self, vertices: Array, k: int, model: str) -> Array:
        """Give of every entry of the vertices' rows the first member of its context, or -1."""
        return self._rows(vertices, *self._map("members", vertices, k, model))

    def every_score(self, vertices: Array, model: str) -> tuple[Array, Array]:
        """Give where each vertex's scores begin, and these for k = 1 up to its degree."""
        scores = self._rows(vertices, *self._map("every_score", vertices, model))
        return self._offsets(vertices), scores

    def report(self) -> dict[str, Any]:
        """Say how it went, for ``attrs``."""
        workers = [worker for worker in self.workers if self._chosen or worker.units]
        workers = workers or self.workers[:1]
        busy = [worker.seconds for worker in workers]
        names = ("name", "seconds", "units", "stolen")
        return {
            "device": self._graph.device,
            "batches": sum(engine.batches for engine in self._engines) - self._batches_before,
            "devices": [{name: getattr(worker, name) for name in names} for worker in workers],
            "balance": max(busy) * len(busy) / sum(busy) if any(busy) else 1.0,
            "peak_memory": memory_in_use(self._graph.device),
        }

    def _map(self, method: str, vertices: Array, *arguments: Any) -> tuple[Array | None, Array]:
        """Ask for all vertices; give their places in the order of the answer (None: as asked)."""
        if not vertices.size:
            return None, self._xp.empty(0, dtype=np.int32)
        vertices = vertices.astype(self._csr.indices.dtype, copy=False)

        def call(engine: Any, unit: Array) -> Array:
            found = getattr(engine, method)(unit, *arguments)
            return found[1] if isinstance(found, tuple) else found

        if len(self.workers) == 1 and self._tell is None:
            (there,) = self._sent(self.workers, vertices)
            with self.workers[0].scope():
                found = self.workers[0].do(call, there)
            return None, self._brought([found])[0]
        order, found = self._shared(call, vertices, arguments[-1])
        return order, self._xp.concatenate(self._brought(found))

    def _shared(self, call: Callable, vertices: Array, model: str) -> tuple[Array, list]:
        """Share the vertices out; give their places, unit after unit, and the answers."""
        plan = self._plan(vertices, model)
        workers, units = self.workers[: plan.workers], plan.units
        self._settle()
        told = 0

        def tell(further: int) -> None:
            nonlocal told
            told += further
            if self._tell:
                self._tell(further)

        options = {"early": plan.early, "steal": self._steal, "tell": tell}
        try:
            return plan.order, work(workers, call, units, plan.costs, **options)
        except MemoryError:
            if self._graph.device == "gpu" or not self._memory_limit or len(self.workers) == 1:
                raise
            # what threads cannot hold side by side, one may hold alone, from the start
            tell(-told)
            for worker in self.workers:
                worker.seconds, worker.units, worker.stolen = 0.0, 0, 0
            engine = engine_for(self._graph, self._csr, None, self._memory_limit)
            self._engines.append(engine)
            self.workers[0].engine = engine
            return plan.order, work(self.workers[:1], call, units[:1], plan.costs, **options)

    def _plan(self, vertices: Array, model: str) -> Plan:
        """Plan who gets which vertices; the plan for all of them is kept on the graph."""
        everyone = self._graph.number_of_vertices
        if vertices.size != everyone or not bool((vertices == self._xp.arange(everyone)).all()):
            return self._planned(vertices, model)
        # Kept are 4 or 8 bytes a vertex, as large as its number, and on every other GPU as many for
        # the units; all that is freed with the graph. Threads are alike, whatever they are called.
        threads = self._graph.device == "cpu"
        who = len(self.workers) if threads else tuple(worker.name for worker in self.workers)
        make = partial(self._planned, vertices, model, everyone=True)
        return self._graph.keep(("plan", model, who, self._chosen), make)

    def _planned(self, vertices: Array, model: str, *, everyone: bool = False) -> Plan:
        """Cut vertices into units, at least one a worker but not many more than are worth it.

        With ``everyone``, vertices are their own places, and one array is both.
        """
        device = self._graph.device
        cost = costs(self._graph, self._csr, vertices, model)
        worth = int(float(cost.sum()) / LEAST_COST[device])
        workers = len(self.workers) if self._chosen else min(len(self.workers), worth + 1)
        most_alone = self.workers[0].engine.most_alone
        if most_alone is None or worth < 3 * workers:
            number = max(workers, min(worth, UNITS_A_WORKER * workers))
            places, unit_costs, early = *units_of(cost, number), 0
        else:
            together = self._csr.degree[vertices] > most_alone
            places, unit_costs, early = mixed_units(cost, together, workers, *TOGETHER[model])
        order = self._xp.concatenate(places).astype(vertices.dtype, copy=False)
        sent = self._sent(self.workers[:workers], order if everyone else vertices[order])
        bounds = list(pairwise([0, *accumulate(unit.size for unit in places)]))
        units = [[there[first:end] for first, end in bounds] for there in sent]
        return Plan(workers, order, units, unit_costs, early)

    def _sent(self, workers: Sequence[Worker], vertices: Array) -> list[Array]:
        """Give each worker vertices where it is: before any begins, as a copy stops all of them.

        A copy between GPUs waits for what both have begun, and what either begins later for it.
        When each unit was copied as it was taken, one GPU waited for the other to end its own.
        """
        if self._chosen:
            self._settle()
        sent = []
        for worker in workers:
            with worker.scope():
                sent.append(worker.engine.xp.asarray(vertices))
                if sent[-1] is not vertices:
                    worker.settle()
        return sent

    def _brought(self, found: list[Array]) -> list[Array]:
        """Bring answers to where the graph is."""
        brought = [self._xp.asarray(part) for part in found]
        if any(one is not other for one, other in zip(brought, found, strict=True)):
            self._settle()  # only then may the memory there be used again
        return brought

    def _settle(self) -> None:
        """Wait for the GPU of the graph: others read what it wrote, or write what it reads."""
        if self._graph.device == "gpu":
            import cupy

            cupy.cuda.Device(gpu_of(self._csr.indptr)).synchronize()

    def _rows(self, vertices: Array, order: Array | None, found: Array) -> Array:
        """Put rows that came in some order into that of the vertices."""
        if order is None:
            return found
        xp = self._xp
        offsets = self._offsets(vertices)
        moved = self._offsets(vertices[order])
        row = rows_between(moved, self._csr.indices.dtype)
        rows = xp.empty_like(found)
        rows[(offsets[order] - moved[:-1])[row] + xp.arange(row.size)] = found
        return rows

    def _offsets(self, vertices: Array) -> Array:
        offsets = self._xp.zeros(vertices.size + 1, dtype=np.int64)
        degree = self._csr.indptr[vertices + 1] - self._csr.indptr[vertices]
        offsets[1:] = self._xp.cumsum(degree)
        return offsets
