"""Memory on a GPU: reused within a call, given back, and one clear error where it lacks."""

import contextlib
import gc
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import glp_rapids
from glp_rapids.common import calls
from glp_rapids.common.reused_memory import _pools, give_back, reused_memory
from glp_rapids.datasets import social
from glp_rapids.device import LackOfMemory, free_on_gpu


def test_an_error_of_memory_says_what_to_do_and_holds_on_to_nothing():
    class Large:
        pass

    held = []

    @calls.guarded
    def call():
        import weakref

        large = Large()
        held.append(weakref.ref(large))
        raise MemoryError("Out of memory allocating 513,230,848 bytes")

    said = r"call: .* GiB are free .*513,230,848 .*compress"
    with pytest.raises(LackOfMemory, match=said) as info:
        call()
    assert info.value.__cause__ is info.value.__context__ is None
    assert held[0]() is None


def test_other_errors_pass():
    @calls.guarded
    def call():
        raise ValueError("another")

    with pytest.raises(ValueError, match=r"^another$"):
        call()


def test_a_run_that_lacks_memory_says_how_much_it_takes(monkeypatch):
    from glp_rapids.propagation import run as sweep

    def lack(*_):
        raise MemoryError("Out of memory allocating 513,230,848 bytes")

    monkeypatch.setattr(sweep, "_run", lack)
    with pytest.raises(
        LackOfMemory, match=r"3 vertices and 4 entries on the cpu: it takes about 0\.0 GiB.*513"
    ):
        glp_rapids.label_propagation(([0, 1], [1, 2]), device="cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["classic", "trussness", "component", "compressed", "layered"])
def test_too_little_memory_is_one_clear_error_and_the_memory_comes_back(name):
    import cupy

    work = {
        "classic": glp_rapids.label_propagation,
        "trussness": glp_rapids.trussness,
        "component": lambda graph: glp_rapids.structural_diversity(graph, 3),
        "compressed": glp_rapids.compress,
        "layered": lambda graph: glp_rapids.layered_label_propagation(graph, gammas=[1]),
    }[name]
    rng = np.random.default_rng(1)
    edges = tuple(rng.integers(0, 2_000_000, (2, 8_000_000)))
    graph = glp_rapids.as_graph(edges, device="gpu")
    pool = cupy.cuda.MemoryPool()  # where cuDF is loaded, CuPy's own is not what it takes from
    pool.set_limit(size=24 << 20)
    said = r"GiB are free.*(compress|memory_limit|device='cpu')"
    with cupy.cuda.using_allocator(pool.malloc):
        with pytest.raises(LackOfMemory, match=said):
            work(graph)
        assert pool.used_bytes() <= 8 << 20
        pool.set_limit(size=0)
        assert len(glp_rapids.label_propagation(graph, max_iter=2)) == graph.number_of_vertices


def counting():
    """Return an allocator that keeps nothing, and the list of what it is asked for."""
    import cupy

    asked = []

    def allocate(size):
        asked.append(size)
        return cupy.get_default_memory_pool().malloc(size)

    return asked, allocate


@pytest.mark.gpu
def test_memory_is_reused_within_a_call_whoever_allocates():
    import cupy

    asked, allocate = counting()
    edges = pd.DataFrame({"src": [0, 0, 1, 3, 3, 4, 2], "dst": [1, 2, 2, 4, 5, 5, 3]})
    expected = glp_rapids.multilevel_label_propagation(edges, device="gpu")
    with cupy.cuda.using_allocator(allocate):
        pd.testing.assert_frame_equal(
            expected, glp_rapids.multilevel_label_propagation(edges, device="gpu")
        )
        give_back()
        asked.clear()
        with reused_memory("gpu"):
            for _ in range(5):
                cupy.empty(1 << 20, cupy.uint8)
            assert len(asked) == 1
            kept = cupy.arange(1 << 20)
        cupy.empty(1 << 20, cupy.uint8)
        assert len(asked) == 3
        give_back()
        with reused_memory("gpu", 1 << 20):
            for _ in range(5):
                cupy.empty(1 << 10, cupy.uint8)
        assert asked[3:] == [1 << 20]
    assert int(kept[-1]) == (1 << 20) - 1  # what outlives the work is still there


@pytest.mark.gpu
def test_a_later_call_asks_for_hardly_more_memory_than_of_its_result():
    import cupy

    asked, allocate = counting()
    graph = glp_rapids.as_graph(social(3_000), device="gpu")
    with cupy.cuda.using_allocator(allocate):
        for _ in range(4):
            gc.collect()  # what was kept on the graph before
            asked.clear()
            found = glp_rapids.label_propagation(replace(graph, _derived={}))
    assert len(asked) <= 4  # two are of its columns, where frames are those of cuDF
    assert len(found) == 3_000
    give_back()


@pytest.mark.gpu
def test_what_a_caller_gets_is_in_no_pool():
    import cupy

    _, allocate = counting()
    with cupy.cuda.using_allocator(allocate):
        edges = social(3_000)
        for _ in range(2):
            graph = glp_rapids.as_graph(edges, device="gpu")
            found = [glp_rapids.label_propagation(graph), glp_rapids.core_number(graph)]
            del graph
            gc.collect()
            give_back()
            assert not _pools
            assert [len(one) for one in found] == [3_000, 3_000]
            del found


@pytest.mark.gpu
@pytest.mark.parametrize("fails", [False, True])
def test_memory_that_outlives_its_work_is_given_back_once_nobody_uses_it(fails):
    """An array that was carved out of a larger block, which no pool would give back without it."""
    import cupy

    narrow = cupy.cuda.MemoryPool()
    with cupy.cuda.using_allocator(narrow.malloc):
        for _ in range(3):
            with contextlib.suppress(KeyError), reused_memory("gpu"):
                cupy.empty(1 << 20, cupy.uint8)
                kept = cupy.full(1 << 10, 7, cupy.uint8)
                if fails:
                    raise KeyError
            cupy.zeros(1 << 20, cupy.uint8)
            assert int(kept.sum()) == 7 << 10
            del kept
            give_back()
            assert narrow.used_bytes() == 0
        glp_rapids.multilevel_label_propagation(social(3_000), device="gpu", levels=True)
        gc.collect()  # a first call makes objects that refer to one another, and to an array
        give_back()
        assert narrow.used_bytes() == 0
    assert not _pools


@pytest.mark.gpu
def test_memory_that_is_kept_for_reuse_is_given_back_before_there_is_a_lack():
    import cupy

    narrow = cupy.cuda.MemoryPool()
    narrow.set_limit(size=6 << 20)
    with cupy.cuda.using_allocator(narrow.malloc), reused_memory("gpu"):
        cupy.empty(4 << 20, cupy.uint8)
        assert narrow.used_bytes() == 4 << 20
        larger = cupy.empty(5 << 20, cupy.uint8)
        assert narrow.used_bytes() == 5 << 20
        with pytest.raises(MemoryError):
            cupy.empty(2 << 20, cupy.uint8)
    del larger
    give_back()
    assert narrow.used_bytes() == 0


@pytest.mark.gpu
def test_what_is_free_is_known_with_rmm_as_it_begins():
    rmm = pytest.importorskip("rmm")
    import cupy
    from rmm.allocators.cupy import rmm_cupy_allocator

    usual = rmm.mr.get_current_device_resource()
    resources = {
        "of CUDA": (rmm.mr.CudaMemoryResource(), True),
        "counted": (rmm.mr.StatisticsResourceAdaptor(rmm.mr.CudaMemoryResource()), True),
        "of a pool": (rmm.mr.PoolMemoryResource(rmm.mr.CudaMemoryResource(), 1 << 20), False),
    }
    with cupy.cuda.using_allocator(rmm_cupy_allocator):
        for name, (resource, known) in resources.items():
            rmm.mr.set_current_device_resource(resource)
            try:
                assert (free_on_gpu() is not None) is known, name
            finally:
                rmm.mr.set_current_device_resource(usual)


@pytest.mark.gpu
@pytest.mark.usefixtures("pool_of_cupy")
@pytest.mark.parametrize("how", [{}, {"update": "sync"}, {"skip_inactive": False}], ids=str)
@pytest.mark.parametrize("form", ["plain", "weighted", "packed"])
def test_a_run_takes_what_is_estimated(form, how):
    from glp_rapids.bench.gpu import weighted
    from glp_rapids.bench.memory import free_memory, peak_memory

    edges = np.random.default_rng(3).integers(0, 60_000, (2, 400_000))
    graph = glp_rapids.as_graph(tuple(edges), device="cpu")
    if form == "weighted":
        graph = weighted(graph)
    if form == "packed":
        graph = glp_rapids.compress(graph, "packed", segment=128, device="cpu")
    found = glp_rapids.estimate_memory(graph, device="gpu", **how).set_index("way")
    estimated = found["device_bytes"]["packed" if form == "packed" else "plain"]
    free_memory()
    with peak_memory() as water:
        before = water.live
        glp_rapids.label_propagation(graph, device="gpu", **how)
    assert water.peak - before == pytest.approx(estimated, rel=0.1)
