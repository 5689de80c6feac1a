"""A team of workers is asked like one engine: by units, wherever the workers are.

The engines here are made up, and so are the devices.
"""

import threading
from functools import partial

import numpy as np
import pytest
from graphs import edges, power_law_pairs

from glp_rapids import as_graph
from glp_rapids.diversity import costs, engines
from glp_rapids.diversity.team import DiversityTeam
from glp_rapids.graph.simple import simple
from glp_rapids.multigpu import workers as multigpu_workers
from glp_rapids.multigpu.work_stealing import Worker


class Counting:
    """An engine whose answers show which vertex they are for."""

    xp = np

    def __init__(self, indptr, indices, limit):
        self.indptr, self.indices, self.limit = indptr, indices, limit
        self.batches, self.asked = 0, []

    def most_alone(self, model):
        return None

    def _ask(self, vertices):
        self.batches += 1
        self.asked.append(vertices)
        if self.limit is not None and self.limit < 100:
            raise MemoryError("memory_limit is too low")

    def scores(self, vertices, k, model):
        self._ask(vertices)
        return vertices.astype(np.int32) * 10 + k

    def members(self, vertices, k, model):
        self._ask(vertices)
        rows = [np.arange(self.indptr[v], self.indptr[v + 1]) for v in vertices]
        return np.concatenate([*rows, []]).astype(np.int32)

    def every_score(self, vertices, model):
        sizes = self.indptr[vertices + 1] - self.indptr[vertices]
        return np.concatenate([[0], np.cumsum(sizes)]), self.members(vertices, 0, model)


@pytest.fixture
def made(monkeypatch):
    """Teams of engines that count; and the engines made so far."""
    made = []

    def engine_of(csr, device, number=None, memory_limit=None, **shared):
        made.append(Counting(csr.indptr, csr.indices, memory_limit))
        return made[-1]

    monkeypatch.setattr(engines, "engine_of", engine_of)
    monkeypatch.setitem(costs.LEAST_COST, "cpu", 50)

    def make(**options):
        graph = as_graph(**edges(power_law_pairs(300, 2000, 2)), device="cpu")
        return DiversityTeam(graph, simple(graph, False), **options), graph

    return make, made


@pytest.mark.parametrize("devices", [None, [0], [0, 1], range(5)])
@pytest.mark.parametrize("tell", [None, lambda items: None])
@pytest.mark.parametrize("model", ["component", "truss"])
@pytest.mark.parametrize("most_alone", [None, 0, 20, 10**6])
def test_every_vertex_is_asked_for_once_and_answers_are_in_order(
    made, devices, tell, model, most_alone, monkeypatch
):
    monkeypatch.setattr(Counting, "most_alone", lambda engine, model: most_alone)
    make, engines = made
    one, graph = make(devices=devices, tell=tell)
    n = graph.number_of_vertices
    indptr = simple(graph, False).indptr
    for vertices in (np.arange(n), np.random.default_rng(3).permutation(n)[: n // 2]):
        rows = np.concatenate([np.arange(indptr[v], indptr[v + 1]) for v in vertices])
        for method, arguments, expected in [
            ("scores", (3,), vertices * 10 + 3),
            ("members", (3,), rows),
            ("every_score", (), rows),
        ]:
            for engine in engines:
                engine.asked.clear()
            found = getattr(one, method)(vertices, *arguments, model)
            if method == "every_score":
                offsets, found = found
                sizes = indptr[vertices + 1] - indptr[vertices]
                assert np.array_equal(offsets, np.concatenate([[0], np.cumsum(sizes)]))
            assert np.array_equal(found, expected)
            asked = np.concatenate([unit for engine in engines for unit in engine.asked])
            assert np.array_equal(np.sort(asked), np.sort(vertices))
    report = one.report()
    units = sum(worker["units"] for worker in report["devices"])
    assert units == report["batches"] == sum(engine.batches for engine in engines)
    if devices is not None:
        assert len(report["devices"]) == len(devices)
        if len(devices) == 1 and tell is None:
            assert units == 6
        elif most_alone is None:
            assert units > 6 * len(devices)
        else:
            assert 6 * len(devices) <= units <= 6 * 3 * len(devices)


class There(np.ndarray):
    """An array that knows on which device it lies, as any part of it does."""

    where = None

    def __array_finalize__(self, other):
        self.where = getattr(other, "where", None)


@pytest.fixture
def several(made, monkeypatch):
    """Teams of made-up devices, of which the graph is on the first; and what was done."""
    log = []

    def workers_of(graph, csr, engine_for, devices, memory_limit):
        workers = []
        for name in devices:

            class Module:
                @staticmethod
                def asarray(array, name=name):
                    if getattr(array, "where", None) == name or name == 0:
                        return array
                    log.append(("copy", name, array.size, threading.get_ident()))
                    array = array.copy().view(There)
                    array.where = name
                    return array

            engine = Counting(csr.indptr, csr.indices, memory_limit)
            engine.xp, engine.most_alone, ask = Module, lambda model: 20, engine._ask

            def asked(vertices, name=name, ask=ask):
                where = getattr(vertices, "where", None)
                log.append(("ask", name, name if where is None and name == 0 else where, None))
                ask(vertices)

            engine._ask = asked
            settle = partial(log.append, ("settle", name, None, None))
            workers.append(Worker(f"gpu {name}", engine, settle=settle))
        return workers

    monkeypatch.setattr(multigpu_workers, "workers_of", workers_of)
    make, _ = made
    _, graph = make(devices=[0])

    def team_of(devices):
        return DiversityTeam(graph, simple(graph, False), devices=devices), log

    return team_of, np.arange(graph.number_of_vertices)


def copies(log):
    return [event for event in log if event[0] == "copy"]


@pytest.mark.parametrize("devices", [[0, 1], [1, 0], [1, 2, 3]])
def test_units_lie_on_each_device_before_any_works_and_stay_with_the_plan(several, devices):
    team_of, everyone = several
    for vertices in (everyone, everyone[::-1]):
        for _ in range(2):
            one, log = team_of(devices)
            log.clear()
            assert np.array_equal(one.scores(vertices, 3, "core"), vertices * 10 + 3)
            asked = [event for event in log if event[0] == "ask"]
            assert len(asked) >= len(devices)
            assert all(where == name for _, name, where, _ in asked)
            begun = log.index(asked[0])
            assert not copies(log[begun:])
            for event in copies(log):  # waited for, in the thread of the caller
                assert log[log.index(event) + 1] == ("settle", event[1], None, None)
                assert event[2:] == (everyone.size, threading.get_ident())
        # whoever asks for all again copies nothing
        elsewhere = sorted(device for device in devices if device)
        again = [] if vertices is everyone else elsewhere
        assert sorted(name for _, name, _, _ in copies(log)) == again
    one, log = team_of([4, *devices])  # of other devices, the plan is another
    log.clear()
    one.scores(everyone, 3, "core")
    assert sorted(name for _, name, _, _ in copies(log)) == [*elsewhere, 4]


def test_the_only_device_gets_vertices_where_it_is(several):
    team_of, everyone = several
    one, log = team_of([1])
    assert np.array_equal(one.scores(everyone, 3, "core"), everyone * 10 + 3)
    assert [event[:3] for event in log[:3]] == [
        ("copy", 1, everyone.size),
        ("settle", 1, None),
        ("ask", 1, 1),
    ]


def test_what_is_kept_of_a_plan_is_no_more_than_it_has_to_be(several):
    team_of, everyone = several
    one, _ = team_of([0, 1])
    everyone = everyone.astype(one._csr.indices.dtype)
    how = one._costs_by("core"), "core"
    plan = one._plan(everyone, *how)
    assert one._plan(everyone, *how) is plan
    for device, units in enumerate(plan.units):
        assert np.array_equal(np.concatenate(units), plan.order)
        assert all(np.shares_memory(unit, plan.order) == (device == 0) for unit in units)
    assert plan.order.dtype == everyone.dtype
    fewer = one._plan(everyone[5:], *how)
    assert one._plan(everyone[5:], *how) is not fewer
    assert np.array_equal(np.concatenate(fewer.units[1]), everyone[5:][fewer.order])


def test_no_vertices_need_nobody(made):
    make, engines = made
    one, _ = make(devices=[0, 1])
    nobody = np.empty(0, dtype=np.int64)
    assert one.scores(nobody, 3, "core").size == one.members(nobody, 3, "core").size == 0
    offsets, scores = one.every_score(nobody, "core")
    assert (offsets.tolist(), scores.size) == ([0], 0)
    assert not engines[0].asked


def test_what_threads_cannot_hold_together_one_holds_alone(made):
    make, engines = made
    one, graph = make(devices=[0, 1, 2], memory_limit=120)  # 40 each is too little
    vertices = np.arange(graph.number_of_vertices)
    assert np.array_equal(one.scores(vertices, 1, "core"), vertices * 10 + 1)
    assert [engine.limit for engine in engines] == [40, 120]
    assert np.array_equal(np.sort(np.concatenate(engines[1].asked)), vertices)
    too_little, _ = make(devices=[0, 1], memory_limit=99)
    with pytest.raises(MemoryError, match="memory_limit"):
        too_little.scores(vertices, 1, "core")
