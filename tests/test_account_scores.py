"""Scores are the fixed point of their rule, within ``tol``, from wherever they start."""

import warnings
from dataclasses import replace
from types import SimpleNamespace

import numba
import numpy as np
import pandas as pd
import pytest
from cases import exhaustive, some
from exact_scores import as_near, exact_scores
from graphs import GRAPHS
from hypothesis import given, settings
from hypothesis import strategies as st
from simulator import simulated
from test_scores import decades

from glp_rapids.datasets import blacklist, transactions
from glp_rapids.device import to_device, to_host
from glp_rapids.fraud import account_scores, explain, totals
from glp_rapids.fraud.kernels import cpu_pushes, gpu_traded
from glp_rapids.fraud.residual_engines import ArrayEngine, CpuEngine, GpuEngine
from glp_rapids.fraud.score_state import ScoreState, settle
from glp_rapids.fraud.system import Fixed, System
from glp_rapids.ingest.read import as_graph

HYPOTHESIS = settings(max_examples=60, deadline=None)
MONEY = {"source": "source", "destination": "destination", "multigraph": "keep"}


def undirected(name):
    options = GRAPHS[name]()
    return as_graph(**{**options, "directed": False}, device="cpu")


def some_vertices(n, number, seed=0):
    return np.random.default_rng(seed).permutation(n)[:number].astype(np.int64)


@pytest.mark.parametrize("tol", [1e-2, 1e-7])
@pytest.mark.parametrize("damping", some([0.5, 0.85, 0.99], 0.85))
def test_scores_are_within_tol_of_a_direct_solution(tol, damping):
    for name in GRAPHS:
        graph = undirected(name)
        if not graph.number_of_vertices:
            continue
        seeds = some_vertices(graph.number_of_vertices, 1 + graph.number_of_vertices // 7)
        frame = account_scores(graph, graph.external(seeds), damping=damping, tol=tol)
        exact = exact_scores(graph, seeds, damping=damping)
        assert as_near(frame["score"], exact, tol, graph, seeds), name
        facts = frame.attrs["glp"]
        assert as_near(frame["score"], exact, facts["error"], graph, seeds, mean=facts), name
        assert facts["error"] <= tol
        assert (frame["score"][exact == 0] == 0).all()


@pytest.mark.parametrize("ids", some([[0], [5], [*range(1, 2000, 20)]], [0]))
def test_amounts_over_nine_decades_around_a_hub(ids, device):
    graph = as_graph(decades(), weight="w", device=device)
    found = account_scores(graph, ids)
    host = graph.to("cpu")
    seeds = host.vertex_index(ids)
    score = to_host(found["score"].to_numpy())
    assert as_near(score, exact_scores(host, seeds), 1e-4, host, seeds)


def test_who_deals_with_a_seed_has_a_score_however_large(device):
    """Of 100,000 partners of the hub one is a seed; nobody is pushed to for so little."""
    hub = pd.DataFrame({"src": 0, "dst": np.arange(1, 100_001)})
    found = account_scores(hub, [1], device=device)
    facts, score = found.attrs["glp"], to_host(found["score"].to_numpy())
    assert facts["pushed"] == 0
    assert score[0] == pytest.approx(0.85 / 100_000**0.5)
    assert (score[2:] == 0).all()
    assert len(explain(hub, found, 0, device=device)) == 1
    exact = exact_scores(as_graph(hub, device="cpu"), [1])
    assert as_near(score, exact, 1e-4, as_graph(hub, device="cpu"), [1])


def engines(system):
    return CpuEngine(system), ArrayEngine(system)


weighted_pairs = st.lists(
    st.tuples(st.integers(0, 12), st.integers(0, 12), st.sampled_from([1, 2, 7, 1000])),
    min_size=1, max_size=40,
)  # fmt: skip


def graph_of(pairs, vertices=13):
    source, destination, weight = np.array(pairs).T
    return as_graph((source, destination, weight), vertices=range(vertices), device="cpu")


@HYPOTHESIS
@given(pairs=weighted_pairs, seeds=st.sets(st.integers(0, 12), min_size=1, max_size=4))
def test_loops_and_whole_arrays_do_the_same(pairs, seeds):
    graph = graph_of(pairs)
    fixed = Fixed(np.array(sorted(seeds)), np.array([], np.int64))
    system = System(graph, fixed, 0.85, 1e-6)
    outcomes = []
    for engine in engines(system):
        numbers = system.numbers(np.zeros(13))
        residual = engine.residuals(numbers)
        outcomes.append(settle(system, engine, numbers, residual, 1000))
    for one, other in zip(*outcomes, strict=True):
        assert np.all(one == other)
    numbers, residual, _ = outcomes[0]
    for engine in engines(system):
        assert np.array_equal(engine.residuals(numbers), residual)
        rows = np.array([0, 3, 12])
        assert np.array_equal(engine.residuals_of(rows, numbers), residual[rows])


def test_the_simulator_gives_the_residuals_of_a_cpu():
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    assert simulated("simulate_residuals.py") == "0 of 18 differ"


@pytest.mark.parametrize("capability", [(9, 0), *exhaustive(((7, 5),), ((10, 0),))])
def test_the_kernel_of_residuals_compiles(capability, monkeypatch):
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVIDIA's compilers are not installed")
    from numba import cuda, typeof
    from numba.cuda import dispatcher

    current = SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: current)
    launched = []

    def compile_instead(kernel, blocks, threads, *arguments):
        types = tuple(typeof(argument) for argument in arguments)
        code, _ = cuda.compile_ptx(kernel.py_func, types, device=False, cc=capability)
        launched.append(code)

    for name in ("launch.launch", "launch.launch_together", "items.launch"):
        monkeypatch.setattr(f"glp_rapids.jit.{name}", compile_instead)
    monkeypatch.setattr("glp_rapids.jit.cuda.multiprocessors", lambda: 1)
    for dtype in (np.int64, np.float32):
        graph = graph_of([(0, 1, 2), (1, 2, 1)])
        graph = replace(graph, weights=graph.weights.astype(dtype), _derived={})
        system = System(graph, Fixed(np.array([0]), np.array([], np.int64)), 0.8, 1e-6)
        GpuEngine(system).residuals(system.clamp)
        GpuEngine(system).push(system.clamp, system.clamp, 0, 1, 1)
        if dtype == np.int64:
            totals._by_a_gpu(graph)
            gpu_traded.traded_inside(graph, np.arange(3), np.zeros(3, np.int64))
    assert len(launched) == 6
    assert all(f".target sm_{capability[0]}{capability[1]}" in code for code in launched)
    assert not any("fma.rn.f64" in code for code in launched)


@HYPOTHESIS
@given(
    worlds=st.lists(
        st.tuples(weighted_pairs, st.sets(st.integers(0, 12), min_size=1, max_size=3)),
        min_size=2,
        max_size=5,
    )
)
def test_a_state_follows_its_graph_as_if_all_were_read_again(worlds):
    """Vertices come and go, weights change, and so do the seeds; the error stays what it was."""
    state = ids = before = None
    for pairs, seeds in worlds:
        now = sorted({end for source, destination, _ in pairs for end in (source, destination)})
        graph = as_graph(tuple(np.array(pairs).T), device="cpu")
        assert to_host(graph.external().to_numpy()).tolist() == now
        index = {vertex: i for i, vertex in enumerate(now)}
        fixed = Fixed(np.array([index[v] for v in sorted(seeds) if v in index], np.int64),
                      np.array([], np.int64))  # fmt: skip
        rows = {
            v: (graph.indices[graph.indptr[i] : graph.indptr[i + 1]],
                graph.weights[graph.indptr[i] : graph.indptr[i + 1]])
            for v, i in index.items()
        }  # fmt: skip
        rows = {v: [(now[u], w) for u, w in zip(*row, strict=True)] for v, row in rows.items()}
        if state is None:
            state = ScoreState(graph, fixed, 0.85, 1e-5, 1000)
        else:
            place = np.array([index.get(v, -1) for v in ids])
            touched = np.array([i for v, i in index.items() if rows[v] != before.get(v)], np.int64)
            full = state.follow(graph, fixed, 1000, place=place)
            state = state.follow(graph, fixed, 1000, place=place, touched=touched)
            assert np.array_equal(state.numbers, full.numbers)
            assert np.array_equal(state.residual, full.residual)
        ids, before = now, rows
        exact = exact_scores(graph, fixed.seeds)
        assert state.error <= 1e-5
        assert as_near(state.scores, exact, state.error, graph, fixed.seeds)
        assert np.array_equal(state.residual, CpuEngine(state.system).residuals(state.numbers))


@pytest.fixture(scope="module")
def month():
    frame, truth = transactions(30_000, accounts=3_000, merchants=300, rings=6, towns=10, seed=2)
    return frame.sort_values("time", ignore_index=True), blacklist(truth, 0.3, seed=2)


@pytest.mark.gpu
@pytest.mark.parametrize("entries", [0, 1 << 24])
def test_a_gpu_follows_as_a_cpu_does(month, entries, monkeypatch):
    """Whether it reads all rows or some, and whether vertices move; a seed goes as well."""
    monkeypatch.setattr("glp_rapids.fraud.score_state.ALL_OF_GPU", entries)
    some, of_some = [], GpuEngine.residuals_of
    monkeypatch.setattr(
        GpuEngine, "residuals_of", lambda *given: some.append(given) or of_some(*given)
    )
    frame, seeds = month
    ids = np.unique(frame[["source", "destination"]])
    ends = np.unique(frame[["source", "destination"]][-50:])
    one = as_graph(frame, device="cpu", **MONEY)
    honest = np.array([], np.int64)
    for others, place in ((ids, None), (np.append(-1, ids), np.arange(ids.size) + 1)):
        other = as_graph(frame[:-50], vertices=others, device="cpu", **MONEY)
        touched, before, now = (
            np.searchsorted(all_of, np.sort(some_of))
            for all_of, some_of in ((others, ends), (ids, seeds), (others, seeds[1:]))
        )
        states = []
        for device in ("cpu", "gpu"):
            fixed, of_now, moved, changed = (
                None if array is None else to_device(array, device)
                for array in (before, now, place, touched)
            )
            good = to_device(honest, device)
            state = ScoreState(one.to(device), Fixed(fixed, good), 0.85, 1e-5, 1000)
            state = state.follow(
                other.to(device), Fixed(of_now, good), 1000, place=moved, touched=changed
            )
            states.append([to_host(state.numbers), to_host(state.residual), state.effort])
        assert all(map(np.array_equal, *states))
    assert len(some) == (0 if entries else 2)


def test_neither_rows_nor_threads_show(month, device):
    frame, seeds = month
    expected = account_scores(frame, seeds, absent="drop", device=device, **MONEY)
    shuffled = frame.sample(frac=1, random_state=0)
    before = numba.get_num_threads()
    for threads in {1, before}:
        numba.set_num_threads(threads)
        try:
            found = account_scores(shuffled, seeds[::-1], absent="drop", device=device, **MONEY)
        finally:
            numba.set_num_threads(before)
        pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize("dtype", [None, np.int64, np.float32])
def test_threads_that_push_together_lose_nothing(dtype):
    """Rounds of more entries than one thread takes, a hub that many others push to among them."""
    random = np.random.default_rng(0)
    ends = random.integers(0, 60_000, (2, 300_000))
    ends[1, :20_000] = 7
    weights = () if dtype is None else (random.integers(1, 9, ends.shape[1]).astype(dtype),)
    graph = as_graph((*ends, *weights), device="cpu")
    system = System(graph, Fixed(np.arange(0, 9_000, 9), np.array([], np.int64)), 0.85, 1e-4)
    engine = CpuEngine(system)
    start = system.clamped(np.zeros(graph.number_of_vertices, np.int64))
    given = engine.residuals(start)
    results = []
    for threads in (1, 2, 3):
        numbers, residual = start.copy(), given.copy()
        made = cpu_pushes.push(
            threads, *engine._arrays, system.damping, numbers, residual, np.int64(1 << 40),
            np.int64(graph.number_of_edges), np.int64(9), np.zeros(1, np.uint8),
        )  # fmt: skip
        assert made[1] > 8 * cpu_pushes.ALONE_BELOW
        assert np.array_equal(residual, engine.residuals(numbers))
        results.append((made, numbers, residual))
    for made, numbers, residual in results[1:]:
        assert made == results[0][0]
        assert np.array_equal(numbers, results[0][1])
        assert np.array_equal(residual, results[0][2])


def test_whole_arrays_sweep_as_compiled_loops_do(month, monkeypatch):
    frame, seeds = month
    expected = account_scores(frame, seeds, absent="drop", device="cpu", **MONEY)
    monkeypatch.setattr("glp_rapids.fraud.score_state.engine_of", ArrayEngine)
    monkeypatch.setattr("glp_rapids.fraud.residual_engines.AT_ONCE", 5_000)
    found = account_scores(frame, seeds, absent="drop", device="cpu", **MONEY)
    pd.testing.assert_frame_equal(found, expected)
    assert found.attrs["glp"]["pushed"] == expected.attrs["glp"]["pushed"]


def test_warm_is_as_near_as_cold_and_cheaper(month):
    frame, seeds = month
    earlier = account_scores(frame[:25_000], seeds, absent="drop", device="cpu", **MONEY)
    # a call that ends at once: all is as it was
    again = account_scores(
        frame[:25_000], seeds, absent="drop", previous=earlier, device="cpu", **MONEY
    )
    assert again.attrs["glp"]["sweeps"] <= 2
    graph = as_graph(frame[10:25_010], **MONEY, device="cpu")
    cold = account_scores(graph, seeds, absent="drop")
    warm = account_scores(graph, seeds, absent="drop", previous=earlier.sample(frac=1))
    assert warm.attrs["glp"]["pushed"] < cold.attrs["glp"]["pushed"] / 2
    index = graph.vertices.lookup(seeds, "seeds", absent=True)
    seeds = np.unique(index[index >= 0])
    exact = exact_scores(graph, seeds)
    for found in (warm, cold):
        error = found.attrs["glp"]["error"]
        assert error <= 1e-4
        assert as_near(found["score"], exact, error, graph, seeds)
    assert as_near(warm["score"], cold["score"], 2e-4, graph, seeds)


def test_a_unit_that_no_longer_fits_is_changed():
    """The lightest seed decides what a unit is; here it grows from a cent to millions and back."""
    state = None
    for weight in (1, 10**12, 1):
        graph = as_graph((np.array([0, 1, 2]), np.array([1, 2, 3]), np.array([weight] * 3)),
                         device="cpu")  # fmt: skip
        fixed = Fixed(np.array([0]), np.array([], np.int64))
        if state is None:
            state = ScoreState(graph, fixed, 0.85, 1e-6, 1000)
        else:
            state = state.follow(graph, fixed, 1000, touched=np.arange(4))
        assert state.error <= 1e-6
        assert as_near(state.scores, exact_scores(graph, [0]), state.error, graph, [0])


def test_too_few_rounds_and_weights_too_far_apart_warn(month):
    frame, seeds = month
    with pytest.warns(UserWarning, match=r"after max_iter=3 rounds; raise max_iter, or tol"):
        found = account_scores(frame, seeds, absent="drop", max_iter=3, device="cpu", **MONEY)
    assert not found.attrs["glp"]["converged"]
    graph = as_graph(frame, **MONEY, device="cpu")
    index = graph.vertices.lookup(seeds, "seeds", absent=True)
    seeds = np.unique(index[index >= 0])
    error = found.attrs["glp"]["error"]
    assert as_near(found["score"], exact_scores(graph, seeds), error, graph, seeds)
    edges = pd.DataFrame({"src": [0, 1, 1], "dst": [1, 2, 3], "w": [1e-30, 1.0, 1e30]})
    with pytest.warns(UserWarning, match="64 bits give no more; raise tol"):
        account_scores(edges, [0], weight="w", device="cpu")


@pytest.mark.parametrize("damping", [5e-324, 1e-300, 1e-9])
def test_a_damping_of_next_to_nothing_leaves_next_to_nothing(damping):
    path = as_graph((np.arange(4), np.arange(1, 5)), device="cpu")
    for tol in (1e-4, 5e-324):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # 64 bits give no more
            found = account_scores(path, [0], damping=damping, tol=tol)
        assert np.allclose(found["score"], [1, 0, 0, 0, 0], atol=1e-8)


def test_a_damping_of_one_gives_harmonic_scores():
    path = as_graph((np.arange(4), np.arange(1, 5)), device="cpu")
    found = account_scores(path, [0], damping=1)
    # the root of the weights at a vertex, times one constant
    assert np.allclose(found["score"], [1, 2**0.5, 2**0.5, 2**0.5, 1], atol=1e-3)
    assert found.attrs["glp"]["error"] == np.inf


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tol": 0}, ValueError, "tol must be"),
        ({"tol": None}, ValueError, "tol must be"),
        ({"max_iter": -1}, ValueError, "max_iter"),
        ({"max_iter": 1.5}, TypeError, "max_iter"),
        *exhaustive(
            ({"previous": [1, 2]}, TypeError, "previous must be a frame"),
            ({"previous": {"vertex": [1]}}, ValueError, "one column 'score'"),
            ({"previous": {"vertex": [1], "score": [np.nan]}}, ValueError, "null, infinite or neg"),
            ({"previous": {"vertex": [1], "score": [-1.0]}}, ValueError, "null, infinite or neg"),
            ({"previous": {"vertex": [1], "score": ["a"]}}, TypeError, "previous"),
            ({"previous": {"vertex": ["1"], "score": [1.0]}}, TypeError, "previous"),
            ({"previous": {"vertex": [1, 1], "score": [1.0, 0.5]}}, ValueError, "vertex twice"),
            ({"previous": {"vertex": [1], "score": [1.0]}, "damping": 1}, ValueError, "below 1"),
        ),
    ],
)
def test_bad_options_of_scores_are_refused(options, error, message):
    if isinstance(options.get("previous"), dict):
        options = {**options, "previous": pd.DataFrame(options["previous"])}
    with pytest.raises(error, match=message):
        account_scores(pd.DataFrame({"src": [1], "dst": [2]}), [1], device="cpu", **options)


def test_a_series_of_kinds_by_id_is_told_how_to_be_given():
    edges = pd.DataFrame({"src": ["a", "b"], "dst": ["b", "c"]})
    kinds = pd.Series(["red", "blue"], index=["a", "c"])
    with pytest.raises(ValueError, match=r"of kinds by id, pass dict\(series\)"):
        account_scores(edges, kinds, device="cpu")
    assert "kind" in account_scores(edges, dict(kinds), device="cpu").columns


def test_scores_that_64_bits_cannot_bring_nearer_have_not_converged():
    edges = pd.DataFrame({"src": [1, 2, 3, 4, 5, 6], "dst": [2, 3, 4, 5, 6, 1]})
    with pytest.warns(UserWarning, match="64 bits give no more"):
        report = account_scores(edges, [1], tol=1e-16, device="cpu").attrs["glp"]
    assert report["error"] > 1e-16
    assert not report["converged"]
    assert account_scores(edges, [1], device="cpu").attrs["glp"]["converged"]
