"""The engines that work for one call of a public function, asked as if they were one.

One GPU is asked once for all vertices, in the caller's thread: there is nothing to balance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

from glp_rapids.common.checks import is_integer, is_sequence, shown
from glp_rapids.device import all_true, array_module, gpu_of, memory_in_use
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.rows import CSR
from glp_rapids.multigpu.work_stealing import Call, Worker, mixed_units, units_of, work

Array = Any
# Makes an engine for a CSR, on the GPU of a number and with a limit of memory in bytes, or returns
# one that is kept. An engine has ``xp``, the module of its arrays, and ``batches``, a count.
EngineFor = Callable[[CSR, int | None, int | None], Any]

# The more units, the better the balance; GPUs are asked less often, see `mixed_units`.
UNITS_A_WORKER = 32


class Costs(NamedTuple):
    """What some vertices cost, by which they are cut into units."""

    each: Array  # above 0
    least: float  # that a unit should cost, for a call not to be what costs most
    # tells which ones an engine works on at once, a truth each; None: none
    together: Callable[[], Array] | None = None
    call: float = 0.0  # what a unit of these costs: so much,
    times: float = 1.0  # and so many times the sum of ``each``


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


def workers_of(
    graph: Graph,
    csr: CSR,
    engine_for: EngineFor,
    devices: Sequence[Any] | None,
    memory_limit: int | None,
) -> list[Worker]:
    """Make the workers: one GPU or several, or threads that share an engine and its limit."""
    if graph.device == "cpu":
        if devices is None:
            from glp_rapids.jit.parallel import threads_available

            devices = range(threads_available())
        # each thread may fill its share at the same time
        limit = memory_limit and max(memory_limit // len(devices), 1)
        shared = engine_for(csr, None, limit)
        return [Worker(f"thread {device}", shared) for device in devices]
    import cupy

    if devices is None:
        device = cupy.cuda.Device()
        engine = engine_for(csr, None, memory_limit)
        # the thread of a worker begins on GPU 0
        scope = partial(cupy.cuda.Device, device.id)
        return [Worker(f"gpu {device.id}", engine, scope, device.synchronize)]
    workers = []
    for number in devices:
        with (device := cupy.cuda.Device(number)):
            rows = csr
            if gpu_of(csr.indptr) != number:
                rows = graph.keep(("simple", number), partial(_copied, csr))
            engine = engine_for(rows, number, memory_limit)
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
        The graph, which keeps plans and copies, and its simple CSR.
    engine_for
        Makes an engine for that CSR or a copy of it, or returns one that is kept.
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
        engine_for: EngineFor,
        *,
        devices: Sequence[Any] | None = None,
        memory_limit: int | None = None,
        tell: Callable[[int], None] | None = None,
        steal: bool = True,
    ) -> None:
        self._graph, self._csr, self._xp = graph, csr, array_module(csr.indptr)
        self._tell, self._steal, self._memory_limit = tell, steal, memory_limit
        self._chosen, self._engine_for = devices is not None, engine_for
        self.workers = workers_of(graph, csr, engine_for, devices, memory_limit)
        self._engines = list({id(worker.engine): worker.engine for worker in self.workers}.values())
        self._batches_before = sum(engine.batches for engine in self._engines)

    def report(self) -> dict[str, Any]:
        """Sum up how it went, for ``attrs``."""
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

    def map(
        self, call: Call, vertices: Array, costs: Callable[[Array], Costs], name: Any
    ) -> tuple[Array | None, Array]:
        """Make a call for all vertices, at least one, by as many workers as it is worth.

        ``call`` returns an array for the vertices of a unit, ``costs`` estimates what some cost;
        ``name`` is what a plan for all of the graph is kept under. Returns the places of the
        vertices in the order of the answer (None: as they came), and the answer.
        """
        vertices = vertices.astype(self._csr.indices.dtype, copy=False)
        if len(self.workers) == 1 and self._tell is None:
            (there,) = self._sent(self.workers, vertices)
            with self.workers[0].scope():
                found = self.workers[0].do(call, there)
            return None, self._brought([found])[0]
        plan = self._plan(vertices, costs, name)
        return plan.order, self._xp.concatenate(self._brought(self._shared(call, plan)))

    def _shared(self, call: Call, plan: Plan) -> list[Array]:
        """Let the workers share the units of a plan; return the answers, unit after unit."""
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
            return work(workers, call, units, plan.costs, **options)
        except MemoryError:
            if self._graph.device == "gpu" or not self._memory_limit or len(self.workers) == 1:
                raise
            # what threads cannot hold side by side, one may hold alone, from the start
            tell(-told)
            for worker in self.workers:
                worker.seconds, worker.units, worker.stolen = 0.0, 0, 0
            engine = self._engine_for(self._csr, None, self._memory_limit)
            self._engines.append(engine)
            self.workers[0].engine = engine
            return work(self.workers[:1], call, units[:1], plan.costs, **options)

    def _plan(self, vertices: Array, costs: Callable[[Array], Costs], name: Any) -> Plan:
        """Plan who gets which vertices; the plan for all of them is kept on the graph."""
        everyone = self._graph.number_of_vertices
        if vertices.size != everyone or not all_true(vertices == self._xp.arange(everyone)):
            return self._planned(vertices, costs(vertices))
        # Kept are 4 or 8 bytes a vertex, as large as its number, and on every other GPU as many for
        # the units; all that is freed with the graph. Threads are alike, whatever they are called.
        threads = self._graph.device == "cpu"
        who = len(self.workers) if threads else tuple(worker.name for worker in self.workers)

        def make() -> Plan:
            return self._planned(vertices, costs(vertices), everyone=True)

        return self._graph.keep(("plan", name, who, self._chosen), make)

    def _planned(self, vertices: Array, costs: Costs, *, everyone: bool = False) -> Plan:
        """Cut vertices into units, at least one a worker but not many more than are worth it.

        With ``everyone``, vertices are their own places, and one array is both.
        """
        worth = int(float(costs.each.sum()) / costs.least)
        workers = len(self.workers) if self._chosen else min(len(self.workers), worth + 1)
        if costs.together is None or worth < 3 * workers:
            number = max(workers, min(worth, UNITS_A_WORKER * workers))
            places, unit_costs, early = *units_of(costs.each, number), 0
        else:
            together = costs.together()
            found = mixed_units(costs.each, together, workers, costs.call, costs.times)
            places, unit_costs, early = found
        order = self._xp.concatenate(places).astype(vertices.dtype, copy=False)
        sent = self._sent(self.workers[:workers], order if everyone else vertices[order])
        bounds = list(pairwise([0, *accumulate(unit.size for unit in places)]))
        units = [[there[first:end] for first, end in bounds] for there in sent]
        return Plan(workers, order, units, unit_costs, early)

    def _sent(self, workers: Sequence[Worker], vertices: Array) -> list[Array]:
        """Send each worker vertices to where it is: before any begins, as a copy stops all of them.

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
