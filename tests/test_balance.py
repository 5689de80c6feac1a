"""Units of work are cut, packed, taken and stolen; the engines here are made up.

Where it matters who does what, engines wait for events, so nothing depends on time.
"""

import contextlib
import threading

import numpy as np
import pytest
from graphs import edges
from hypothesis import given
from hypothesis import strategies as st

from glp_rapids import as_graph
from glp_rapids.diversity.costs import TOGETHER
from glp_rapids.diversity.costs import costs as costs_by_model
from glp_rapids.graph.simple import simple
from glp_rapids.multigpu.work_stealing import (
    PARTS,
    Shares,
    Worker,
    mixed_units,
    packed,
    units_of,
    work,
)

PATIENCE = 60  # seconds until a test that hangs fails
costs_of_items = st.lists(st.floats(0.01, 1e9), max_size=60)


class Engine:
    """Remembers the units it was given; may have to wait, or fail, on some of them."""

    xp = np

    def __init__(self, name="", waits=None, raises=None, does=lambda unit: None):
        self.name, self.does = name, does
        self.waits, self.raises = waits or {}, raises or {}
        self.units, self.threads = [], set()

    def call(self, unit):
        unit = int(unit[0])
        self.units.append(unit)
        self.threads.add(threading.get_ident())
        self.does(unit)
        if unit in self.waits:
            assert self.waits[unit].wait(PATIENCE), f"{self.name} waits in vain at unit {unit}"
        if unit in self.raises:
            raise self.raises[unit]
        return f"{self.name}{unit}"


def do(engines, costs, **options):
    """Let engines work on one-item units of these costs; give workers and results."""
    workers = [Worker(engine.name, engine) for engine in engines]
    units = [[np.array([i]) for i in range(len(costs))]] * len(workers)
    before = threading.active_count()
    try:
        return workers, work(workers, Engine.call, units, costs, **options)
    finally:
        assert threading.active_count() == before, "a thread was left behind"


# ---------------------------------------------------------------- cutting and packing


@given(costs_of_items, st.integers(1, 20))
def test_units_hold_every_item_once_and_cost_about_the_same(costs, number):
    costs = np.array(costs)
    if not costs.size:
        return
    units, totals = units_of(costs, number)
    assert sorted(np.concatenate(units).tolist()) == list(range(costs.size))
    assert np.allclose([costs[unit].sum() for unit in units], totals, rtol=1e-6, atol=1e-3)
    step = costs.sum() / number
    assert len(units) <= number + 1
    for unit, total in zip(units, totals, strict=True):
        assert unit.size == 1 or total <= 2 * step * (1 + 1e-9)
        assert np.array_equal(unit, np.sort(unit))


def test_the_expensive_are_units_of_their_own():
    units, totals = units_of(np.array([1.0, 50, 1, 1, 40, 1, 1, 1]), 8)
    assert [unit.tolist() for unit in units] == [[1], [4], [0, 2, 3, 5, 6, 7]]
    assert totals == [50, 40, 6]


@given(costs_of_items, st.integers(1, 6))
def test_packing_is_complete_and_even(costs, workers):
    shares = packed(costs, workers)
    assert len(shares) == workers
    assert sorted(unit for share in shares for unit in share) == list(range(len(costs)))
    loads = [sum(costs[unit] for unit in share) for share in shares]
    for share, load in zip(shares, loads, strict=True):
        assert [costs[unit] for unit in share] == sorted((costs[u] for u in share), reverse=True)
        # greedily: without its last unit it had no more than anybody
        assert not share or load - costs[share[-1]] <= min(loads) * (1 + 1e-9)


@given(costs_of_items, st.integers(1, 5), st.integers(0, 2**60))
def test_mixed_units_hold_every_item_once(costs, workers, together):
    costs = np.array(costs)
    if not costs.size:
        return
    together = np.array([together >> i & 1 for i in range(costs.size)], dtype=bool)
    units, totals, early = mixed_units(costs, together, workers, 5.0, 3.0)
    assert sorted(np.concatenate(units).tolist()) == list(range(costs.size))
    expected = [costs[unit].sum() for unit in units]
    expected[:early] = [5 + 3 * cost for cost in expected[:early]]
    assert np.allclose(expected, totals)
    assert early <= workers
    assert len(units) <= early + 2 * workers
    for place, unit in enumerate(units):
        assert np.array_equal(unit, np.sort(unit))
        assert together[unit].all() if place < early else not together[unit].any()


def misjudged_costs():
    rng = np.random.default_rng(5)
    costs, misjudged = rng.pareto(1.5, 50_000) + 1, rng.choice([0.2, 1, 3], 50_000)
    costs[:20_000] *= 3  # the first came first
    return costs, costs * misjudged


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("hubs", [0.9999, 0.9, 0])
def test_workers_get_the_same_mixture(workers, hubs):
    costs, true = misjudged_costs()
    together = costs > np.quantile(costs, hubs)
    if not hubs:
        together[:] = False
    units, totals, early = mixed_units(costs, together, workers, costs.sum() / 100, 2)
    assert early == (0 if not hubs else 1 if hubs > 0.99 else workers)
    true = [true[unit].sum() * (1 + (u < early)) for u, unit in enumerate(units)]
    shares = packed(totals, workers, early)
    loads = np.array([sum(totals[unit] for unit in share) for share in shares])
    true = np.array([sum(true[unit] for unit in share) for share in shares])
    assert loads.max() < 1.06 * loads.mean()
    assert true.max() < 1.1 * true.mean()
    for share in shares:
        assert not any(unit < early for unit in share[1:]), "hubs are not begun first"
        assert totals[share[-1]] == pytest.approx(loads.mean() / PARTS, rel=0.3)


# Of all vertices of social, k = 4, on an H200: the costs of those worked on together and of the
# others; milliseconds of the former, of any other unit, of 10 ** 9 costs, and of one call for all.
MEASURED = {
    "component": (4.94e7, 3.016e9, 4.2, 1.5, 21.7, 70.9),
    "core": (4.94e7, 3.016e9, 7.8, 1.6, 24.9, 82.8),
    "truss": (8.97e7, 3.758e9, 19.8, 3.0, 27.9, 126.0),
}


@pytest.mark.parametrize("model", MEASURED)
def test_two_gpus_would_be_nearly_twice_as_fast(model):
    hubs, others, hubs_ms, unit_ms, cost_ms, alone = MEASURED[model]
    costs = np.random.default_rng(6).pareto(2, 400_000) + 1
    together = np.arange(costs.size) % 4000 == 7
    costs[together] *= hubs / costs[together].sum()
    costs[~together] *= others / costs[~together].sum()
    _, totals, early = mixed_units(costs, together, 2, *TOGETHER[model])
    assert early == 1
    took = [hubs_ms, *(unit_ms + cost_ms * total / 1e9 for total in totals[1:])]
    busy = [sum(took[unit] for unit in share) for share in packed(totals, 2, early)]
    assert max(busy) < 1.03 * np.mean(busy)
    assert alone / (max(busy) + 1.5) > 1.75  # what comes before and after takes a millisecond


def test_packing_is_greedy():
    assert packed([2, 5, 3, 4, 3], 2) == [[1, 4], [3, 2, 0]]
    assert packed([7], 3) == [[0], [], []]
    assert packed([], 2) == [[], []]
    assert packed([2, 5, 3, 4, 3], 2, 3) == [[1, 4], [2, 0, 3]]


def test_own_units_come_first_and_the_last_of_the_most_loaded_is_stolen():
    shares = Shares([9, 1, 4, 4, 3], [[0, 1], [], [2, 3, 4]])
    assert shares.take(0) == (0, False)
    assert shares.take(1) == (4, True)
    assert shares.take(1) == (3, True)
    assert shares.take(0) == (1, False)
    assert shares.take(0) == (2, True)
    assert [shares.take(worker) for worker in range(3)] == [None] * 3


def test_units_that_cost_nothing_are_stolen_too():
    shares = Shares([0, 0], [[], [0, 1]])
    assert [shares.take(0), shares.take(0), shares.take(0)] == [(1, True), (0, True), None]


def test_nothing_is_stolen_where_that_is_off():
    shares = Shares([1, 1], [[], [0, 1]], steal=False)
    assert [shares.take(0), shares.take(1), shares.take(1), shares.take(1)] == [
        None,
        (0, False),
        (1, False),
        None,
    ]


# ---------------------------------------------------------------- working


@pytest.mark.parametrize("workers", [1, 2, 3, 7])
@pytest.mark.parametrize("steal", [True, False])
def test_every_unit_is_done_once(workers, steal):
    engines = [Engine(name) for name in "abcdefg"[:workers]]
    costs = np.random.default_rng(1).random(40).tolist()
    done, found = do(engines, costs, steal=steal)
    assert sorted(unit for engine in engines for unit in engine.units) == list(range(40))
    assert [int(result[1:]) for result in found] == list(range(40))
    for engine, worker in zip(engines, done, strict=True):
        assert worker.units == len(engine.units)
        assert len(engine.threads) <= 1
    if not steal:
        assert [engine.units for engine in engines] == packed(costs, workers)
        assert not any(worker.stolen for worker in done)


def test_a_worker_that_is_done_takes_what_another_cannot_get_to():
    begun, others_done = threading.Event(), threading.Event()
    remaining = set(range(1, 10))

    def does(unit):
        if unit == 0:
            begun.set()
        remaining.discard(unit)
        if not remaining:
            others_done.set()

    slow = Engine("slow", waits={0: others_done}, does=does)
    quick = Engine("quick", waits={1: begun}, does=does)
    # by their costs, 0 is the first unit of the slow one and 1 that of the quick one
    workers, found = do([slow, quick], [100, 99, *[50] * 8])
    assert slow.units == [0]
    assert sorted(quick.units) == list(range(1, 10))
    assert workers[1].stolen == 4
    assert workers[0].stolen == 0
    assert found == ["slow0", *(f"quick{unit}" for unit in range(1, 10))]


def test_the_thief_goes_to_the_most_loaded():
    begun = threading.Semaphore(0)
    ready, finished = threading.Event(), threading.Event()
    costs = [90, 80, 70, 30, 25, 21, 15, 9, 8, 4, 1]
    shares = packed(costs, 3)
    assert [share[0] for share in shares] == [0, 1, 2]

    def thief(unit):
        if unit == 2:  # both others have theirs in hand, and keep it to the end
            assert begun.acquire(timeout=PATIENCE)
            assert begun.acquire(timeout=PATIENCE)
            ready.set()
        if len(engines[2].units) == len(costs) - 2:
            finished.set()

    engines = [
        Engine("a", waits={0: finished}, does=lambda unit: begun.release()),
        Engine("b", waits={1: finished}, does=lambda unit: begun.release()),
        Engine("c", waits={2: ready}, does=thief),
    ]
    left = [share[1:] for share in shares]
    expected = list(shares[2])
    while left[0] or left[1]:
        loads = [sum(costs[unit] for unit in left[i]) for i in (0, 1)]
        expected.append(left[int(loads[1] > loads[0])].pop())
    workers, _ = do(engines, costs)
    assert engines[2].units == expected
    assert workers[2].stolen == len(expected) - len(shares[2]) > 0


@pytest.mark.parametrize("error", [ValueError("bad"), MemoryError("full"), KeyboardInterrupt()])
def test_what_a_worker_raises_is_raised(error):
    failed = threading.Event()

    def fails(unit):
        failed.set()

    engines = [
        Engine("a", raises={0: error}, does=fails),
        Engine("b", waits=dict.fromkeys(range(30), failed)),
    ]
    with pytest.raises(type(error)) as caught:
        do(engines, [1.0] * 30)
    assert caught.value is error
    units = engines[0].units + engines[1].units
    assert engines[0].units == [0]
    assert len(set(units)) == len(units)


def test_who_is_told_is_told_in_the_thread_of_the_caller():
    told = []
    do([Engine("a"), Engine("b")], [1] * 9, tell=lambda n: told.append((n, threading.get_ident())))
    assert told == [(1, threading.get_ident())] * 9


def test_what_the_teller_raises_ends_the_work():
    def tell(items):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        do([Engine("a"), Engine("b")], [1] * 9, tell=tell)


def test_a_device_is_made_current_in_the_thread_that_works_on_it():
    current = threading.local()

    @contextlib.contextmanager
    def scope(name):
        current.name = name
        yield
        del current.name

    def seen_by(name):
        def does(unit):
            assert current.name == name

        return does

    settled = []
    workers = [
        Worker(
            name,
            Engine(name, does=seen_by(name)),
            lambda name=name: scope(name),
            lambda name=name: settled.append(name),
        )
        for name in "abc"
    ]
    work(workers, Engine.call, [[np.array([i]) for i in range(12)]] * 3, [1.0] * 12)
    assert not hasattr(current, "name")
    assert {name: settled.count(name) for name in "abc"} == {w.name: w.units for w in workers}
    assert sum(worker.units for worker in workers) == 12


def test_a_worker_gets_its_own_copy_of_a_unit_even_of_a_stolen_one():
    begun, others_done = threading.Event(), threading.Event()
    units = [[np.array([i]) for i in range(4)] for _ in "ab"]
    given = {"a": [], "b": []}

    def call(engine, unit):
        given[engine.name].append(unit)
        engine.call(unit)

    def does(unit):
        if unit == 0:
            begun.set()
        if len(given["b"]) == 3:
            others_done.set()

    engines = [
        Engine("a", waits={0: others_done}, does=does),
        Engine("b", waits={1: begun}, does=does),
    ]
    workers = [Worker(engine.name, engine) for engine in engines]
    work(workers, call, units, [100, 60, 50, 40])
    assert workers[1].stolen == 1
    for own, engine in zip(units, engines, strict=True):
        assert all(unit is own[int(unit[0])] for unit in given[engine.name])


# ---------------------------------------------------------------- what a vertex costs


def test_costs_grow_with_what_there_is_to_do():
    pairs = [(0, i) for i in range(1, 40)] + [(i, i + 1) for i in range(1, 39)] + [(50, 51)]
    graph = as_graph(**edges(pairs, vertices=[99]), device="cpu")
    csr = simple(graph, False)
    for model in ("component", "core", "truss"):
        costs = costs_by_model(graph, csr, np.arange(graph.number_of_vertices), model).each
        assert costs[0] == costs.max()
        assert (costs > 0).all()
        assert costs[-1] == costs.min()
