"""Pools of calls: they last as long as anything of theirs is in use, on whichever GPU it lies."""

import contextlib
import os
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from stand_in_cupy import Array, Block, Gpu, stand_ins

from glp_rapids.common import calls
from glp_rapids.common import reused_memory as reused
from glp_rapids.frames import kinds


@pytest.fixture
def asked(monkeypatch):
    return stand_ins(monkeypatch)


def test_a_pool_lasts_as_long_as_what_is_used(asked):
    with reused.reused_memory("gpu"):
        asked.set_now[-1](100)
        (own,) = reused._pools
        assert (own.device, own.process) == (0, os.getpid())
        pool = own.pool
        reused.give_back()  # the work goes on
        assert reused._pools
    with Gpu(1):
        reused.give_back()  # from another GPU, where nothing of it is used
        assert Gpu.current == 1
    assert reused._pools == [own]
    pool.drop(60, 0)
    reused.give_back()
    assert reused._pools
    assert pool.kept == {0: 0}
    pool.drop(40, 0)
    reused.give_back()
    assert not reused._pools


def test_large_arrays_and_those_of_another_gpu_come_from_below(asked):
    asked.most.kept = 50
    with reused.reused_memory("gpu"):
        allocate = asked.set_now[-1]
        allocate(50)
        allocate(51)
        with Gpu(1):
            allocate(7)
        asked.lacking.append(60)
        allocate.pool.drop(50, 0)
        allocate(60)  # for which the pool gives way
        assert allocate.pool.kept == {0: 0}
    assert asked.sizes == [50, 51, 7, 60, 60]


@pytest.mark.parametrize("size", [40, 60])
def test_a_lack_that_cuda_tells_itself_is_met_by_what_is_kept_too(asked, size):
    """CuPy's functions without a pool, as that of managed memory, raise what CUDA says."""
    asked.most.kept = 50
    asked.lack[0] = RuntimeError("cudaErrorMemoryAllocation: out of memory")
    with reused.reused_memory("gpu"):
        allocate = asked.set_now[-1]
        allocate(30)
        allocate.pool.drop(30, 0)
        asked.lacking.append(size)
        allocate(size)
        assert allocate.pool.kept == {0: 0}
        asked.lack[0] = RuntimeError("cudaErrorIllegalAddress: an illegal memory access")
        asked.lacking.append(size)
        with pytest.raises(RuntimeError, match="illegal"):
            allocate(size)
    assert asked.sizes == [30, size, size, size]


def test_what_a_caller_gets_is_a_copy_for_which_the_pool_gives_way(asked):
    asked.most.kept = 5000
    theirs = Array(SimpleNamespace(size=70))
    assert reused.lasting(Array(Block(70))).data.mem.size == 70  # no call goes on
    with reused.reused_memory("gpu"):
        pool = asked.set_now[-1].pool
        pool.malloc(30)
        pool.drop(30, 0)
        asked.lacking.append(70)
        assert not isinstance(reused.lasting(Array(Block(70))).data.mem, Block)
        assert pool.kept == {0: 0}
        assert reused.lasting(theirs) is theirs
        large = Array(Block(6000))  # of a pool that the caller has set, as ours has none so large
        assert reused.lasting(large) is large
        assert reused.lasting(large, copy=True) is not large
    assert asked.sizes == [30, 70, 70, 6000]


def test_nothing_passes_between_streams_before_it_is_there_or_after_it_is_gone(monkeypatch):
    """CuDF works on the default stream, and what a pool has back is used again on the current."""
    done = []

    class Series:
        def __init__(self, values, nan_as_null):
            done.append("read")

        def take(self, index):
            done.append("read")
            return self

        def reset_index(self, drop):
            return self

    monkeypatch.setattr(kinds, "settle_with_default_stream", lambda: done.append("settle"))
    monkeypatch.setattr(kinds, "lasting", lambda values, copy: done.append("copy") or values)
    monkeypatch.setattr(kinds, "library", lambda kind: SimpleNamespace(Series=Series))
    monkeypatch.setattr(kinds, "_has_default_index", lambda made: True)
    made = kinds.to_series(SimpleNamespace(dtype=np.dtype(np.int64)), "cudf")
    assert done == ["copy", "settle", "read"]
    done.clear()
    kinds.taken(made, None)
    assert done == ["settle", "read", "settle"]


def test_with_a_limit_memory_comes_from_below(asked):
    below = asked.set_now[0]
    with reused.memory_of_call(limited=False):
        assert asked.set_now[-1] is not below
        with reused.memory_of_call(limited=True):
            assert asked.set_now[-1] is below
    with reused.memory_of_call(limited=True):
        assert asked.set_now[-1] is below
        assert not reused._pools


def test_an_error_ends_the_work_and_a_lack_of_memory_is_met_by_what_is_kept(asked):
    with contextlib.suppress(KeyError), reused.reused_memory("gpu"):
        asked.set_now[-1](100)
        raise KeyError
    outliving = reused._pools[0].pool
    outliving.drop(30, 0)
    asked.lacking.append(200)
    with reused.reused_memory("gpu"):
        asked.set_now[-1](200)
        assert outliving.kept == {0: 0}
        asked.lacking += [300, 300]
        with pytest.raises(MemoryError):
            asked.set_now[-1](300)
    assert asked.sizes == [100, 200, 200, 300, 300]


def test_a_little_is_kept_for_the_next_call(asked):
    def work(*sizes, gpu=0):
        with Gpu(gpu), reused.reused_memory("gpu"):
            own = next(one for one in reused._pools if one.at_work)
            for size in sizes:
                asked.set_now[-1](size)
                own.pool.drop(size, gpu)
        return own

    asked.most.kept = 50
    first = work(50)
    assert first.pool.kept == {0: 50}
    assert work(1) is first  # and now it has more than that
    assert first not in reused._pools
    assert first.pool.kept == {0: 0}
    second, third = work(30), work(30, gpu=1)
    assert reused._pools == [second, third]
    with reused.reused_memory("gpu"), Gpu(1), reused.reused_memory("gpu"):
        pass  # work within work
    assert reused._pools == [second, third]
    above = asked.set_now[0]
    asked.set_now[0] = lambda size: above(size)
    other = work(30)
    assert other is not second  # what lies below is another
    assert other not in reused._pools  # of one GPU one is kept
    reused.give_back()
    assert not reused._pools


@pytest.mark.parametrize(
    ("in_use", "unused", "stays"),
    [
        (90, 50, True), (10, 51, False), (30, 90, True), (30, 91, False),
        (900, 400, True), (900, 401, False),
    ],
)  # fmt: skip
def test_up_to_thrice_what_stays_in_use_is_kept(asked, in_use, unused, stays):
    """As the state of a window, which every tick makes anew; eight times as much at the most."""
    asked.most.kept = 50
    with reused.reused_memory("gpu"):
        (own,) = reused._pools
        for size in (in_use, unused):
            own.pool.malloc(size)
        own.pool.drop(unused, 0)
    assert own.pool.kept == {0: unused * stays}
    with reused.reused_memory("gpu"):
        assert asked.set_now[-1] is own
        own.pool.drop(in_use, 0)
    assert own.pool.free_bytes() <= 50


def test_what_is_kept_is_given_back_before_rmm_gets_other_resources(monkeypatch):
    ends, hooks = [], []
    monkeypatch.setattr(reused.atexit, "register", ends.append)
    monkeypatch.delitem(sys.modules, "rmm", raising=False)
    reused._registered.cache_clear()
    reused._give_back_in_the_end()
    stand_in = SimpleNamespace(register_reinitialize_hook=hooks.append)
    monkeypatch.setitem(sys.modules, "rmm", stand_in)  # imported after the first call
    for _ in range(2):
        reused._give_back_in_the_end()
    reused._registered.cache_clear()
    assert ends == hooks == [reused.give_back]


def test_where_a_call_within_another_lacks_memory_the_pool_of_both_gives_way(asked, monkeypatch):
    """What lacks it may be cuDF, or CUDA for a kernel, which ask nobody here."""
    monkeypatch.setattr(calls, "settle", lambda: None)
    monkeypatch.setattr(calls, "release", lambda: None)
    monkeypatch.setattr(calls, "memory_free", lambda device: 0)
    monkeypatch.setattr(calls, "gpu_available", lambda: False)

    @calls.guarded
    def inner():
        asked.set_now[-1](100)
        asked.set_now[-1].pool.drop(100, 0)
        raise RuntimeError("CUDA_ERROR_OUT_OF_MEMORY")

    @calls.guarded
    def outer():
        with pytest.raises(MemoryError, match="CUDA_ERROR_OUT_OF_MEMORY"):
            inner()
        return dict(asked.set_now[-1].pool.kept)

    assert outer() == {0: 0}


def test_pools_of_a_parent_are_left_alone_and_of_cupy_there_is_one_already(asked):
    with reused.reused_memory("cpu"):
        pass
    asked.set_now[0] = asked.cupy.get_default_memory_pool().malloc
    with reused.reused_memory("gpu"):
        asked.set_now[-1](100)
    assert not reused._pools
    reused._pools.append(reused._Pool(None, None, 0, os.getpid() - 1, 0))
    reused.give_back()
    assert len(reused._pools) == 1


def test_work_within_work_has_the_same_pool(asked):
    with reused.reused_memory("gpu"):
        outer = asked.set_now[-1]
        with reused.reused_memory("gpu"):
            assert asked.set_now[-1] == outer
        assert len(reused._pools) == 1
    with reused.reused_memory("gpu"):
        assert asked.set_now[-1] == outer  # nobody else has it
    assert len(reused._pools) == 1


def test_calls_at_once_have_pools_of_their_own(asked):
    with reused.reused_memory("gpu"):
        outer = asked.set_now[-1]
        asked.set_now.append(asked.set_now[0])  # as another thread finds it
        with reused.reused_memory("gpu"):
            assert asked.set_now[-1] != outer
            assert len(reused._pools) == 2
        asked.set_now.pop()
    assert len(reused._pools) == 1


@pytest.mark.parametrize(
    ("free", "lacking", "asked_for"),
    [(4000, False, [1000, 100]), (4000, True, [1000, 1000, 100]), (3999, False, [100])],
    ids=["there is room", "there is none after all", "it would be more than a quarter"],
)
def test_a_pool_asks_for_what_work_takes_at_once(asked, monkeypatch, free, lacking, asked_for):
    monkeypatch.setattr(reused, "memory_free", lambda device: free)
    if lacking:
        asked.lacking += [1000, 1000]
    with reused.reused_memory("gpu", 1000):
        asked.set_now[-1](100)
    assert asked.sizes == asked_for


def test_what_is_asked_for_at_once_serves_arrays_of_any_size(asked, monkeypatch):
    monkeypatch.setattr(reused, "memory_free", lambda device: 4000)
    asked.most.kept = 50
    with reused.memory_of_call(limited=False):
        allocate = asked.set_now[-1]
        with reused.reused_memory("gpu", 1000):
            assert asked.set_now[-1] is allocate
            assert allocate.largest == 1000
        assert allocate.largest == 50
