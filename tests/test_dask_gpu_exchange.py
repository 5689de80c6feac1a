"""The exchange of the GPUs of Dask workers without any: one rank of two, beside a made-up NCCL."""

import ctypes
import sys
import threading
import time
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from as_on_gpu import OnGpu, empty, on_gpu

pytest.importorskip("distributed", reason="dask.distributed is not installed")

from glp_rapids.multigpu import dask_exchange, dask_gpu_exchange
from glp_rapids.multigpu.dask_exchange import NAME, ExchangePlugin
from glp_rapids.multigpu.dask_gpu_exchange import DaskGpuExchange
from glp_rapids.multigpu.exchange import RankFailed

ADDRESSES = ("tcp://here", "tcp://there")


class NcclError(RuntimeError):
    pass


class Communicator:
    """The other rank says and sends what this one does, and another one after it."""

    hangs = fails = False
    made = 0

    def __init__(self, ranks, identifier, rank):
        type(self).made += 1
        self.aborted = threading.Event()

    def allGather(self, sent, place, count, kind, stream):
        if self.fails:
            raise NcclError("remote")
        ctypes.memmove(place, sent, 8 * count)
        ctypes.memmove(place + 8 * count, sent, 8 * count)

    def send(self, place, size, kind, to, stream):
        self.sent = ctypes.string_at(place, size)

    def recv(self, place, size, kind, rank, stream):
        ctypes.memmove(place, self.sent, size)

    def abort(self):
        while self.hangs:
            time.sleep(0.01)
        self.aborted.set()


@pytest.fixture
def rank(monkeypatch):
    """A function that makes the first rank of a run."""
    nccl = SimpleNamespace(
        NcclCommunicator=Communicator, NcclError=NcclError, NCCL_INT8=0, NCCL_INT64=1,
        get_unique_id=lambda: b"id", groupStart=lambda: None, groupEnd=lambda: None,
    )  # fmt: skip
    runtime = SimpleNamespace(
        memcpyDeviceToDevice=0,
        memcpyAsync=lambda to, place, size, *_: ctypes.memmove(to, place, size),
    )
    cupy, cuda = ModuleType("cupy"), ModuleType("cupy.cuda")
    cuda.nccl, cuda.runtime = nccl, runtime
    cuda.get_current_stream = lambda: SimpleNamespace(ptr=0)
    cupy.cuda, cupy.asarray, cupy.empty = cuda, on_gpu, empty
    for name, module in (("cupy", cupy), ("cupy.cuda", cuda)):
        monkeypatch.setitem(sys.modules, name, module)
    where = lambda array: "gpu" if isinstance(array, OnGpu) else "cpu"  # noqa: E731
    monkeypatch.setattr(dask_gpu_exchange, "device_of", where)
    monkeypatch.setattr(dask_gpu_exchange, "_kept", {})
    monkeypatch.setattr(dask_gpu_exchange, "GRACE", 0.1)
    for name, value in (("hangs", False), ("fails", False), ("made", 0)):
        monkeypatch.setattr(Communicator, name, value)
    worker = SimpleNamespace(handlers={}, plugins={NAME: ExchangePlugin()})
    worker.plugins[NAME].setup(worker)
    monkeypatch.setattr(dask_exchange, "get_worker", lambda: worker)
    monkeypatch.setattr(DaskGpuExchange, "tell", lambda end, value: [value, value])

    def make(run="run", addresses=ADDRESSES):
        return DaskGpuExchange(run, 0, addresses)

    make.plugin = worker.plugins[NAME]
    return make


def test_what_goes_by_nccl(rank):
    end = rank()
    assert end.numbers((5, -1)) == [[5, -1]] * 2
    assert end.sum(7) == 14
    numbers, names = on_gpu([3, 4, 5]), on_gpu([1, 2, 3], np.int32)
    together = end.allgather([numbers, names])
    assert [one.tolist() for one in together] == [[3, 4, 5] * 2, [1, 2, 3] * 2]
    room = [on_gpu(np.zeros(9)), on_gpu(np.zeros(9), np.int32)]
    end.allgather_first(on_gpu([2]), [numbers, names], lambda size: room[: 2 + 0 * size])
    assert room[0].tolist() == [3, 4, 3, 4, 0, 0, 0, 0, 0]
    assert room[1].tolist() == [1, 2, 1, 2, 0, 0, 0, 0, 0]
    # the made-up rank sends what this one sends it, as many as this one has for itself
    told = end.alltoall([on_gpu([1, 2]), on_gpu([8, 9])])
    assert [one.tolist() for one in told] == [[1, 2], [8, 9]]
    assert end.allgather([np.array([1])])[0].tolist() == [1, 1]  # of the host: over Dask
    assert end.bytes > 0
    assert end.waiting > 0


def test_communicators_are_kept_for_the_same_ranks(rank):
    first = rank()
    assert rank("again")._end is first._end
    other = rank("others", (*ADDRESSES, "tcp://third"))
    assert other._end is not first._end
    assert first._end._end.aborted.is_set()
    assert Communicator.made == 2
    with pytest.raises(RankFailed, match="was aborted"):
        first.numbers([1])


def test_nobody_waits_for_the_end_of_nccl(rank, monkeypatch):
    monkeypatch.setattr(Communicator, "hangs", True)
    first, begin = rank(), time.monotonic()
    rank("others", (*ADDRESSES, "tcp://third"))
    rank.plugin.fail("others", "why")
    assert time.monotonic() - begin < 2
    monkeypatch.setattr(Communicator, "hangs", False)
    assert first._end._end.aborted.wait(5)


def test_a_run_that_fails_aborts_its_communicator(rank):
    end = rank()
    rank.plugin.fail("run", "why")
    assert end._end._end.aborted.wait(5)
    for ask in (lambda: end.numbers([1]), lambda: end.allgather([on_gpu([1])])):
        with pytest.raises(RankFailed, match="why"):
            ask()
    assert rank("next")._end is not end._end
    rank.plugin.fail("next", "why")
    with pytest.raises(RankFailed, match="why"):
        rank("next")  # it has failed before it begins
    assert not rank.plugin._when_failed


def test_errors_of_nccl_are_those_of_other_ranks(rank, monkeypatch):
    end = rank()
    monkeypatch.setattr(Communicator, "fails", True)
    with pytest.raises(RankFailed, match=r"NCCL failed.*remote"):
        end.numbers([1])


def test_a_rank_alone_needs_no_nccl(rank):
    end = rank("alone", ADDRESSES[:1])
    assert end.numbers((3, 4)) == [(3, 4)]
    assert [one.tolist() for one in end.allgather([on_gpu([1, 2])])] == [[1, 2]]
    assert [one.tolist() for one in end.alltoall([on_gpu([5])])] == [[5]]
    assert Communicator.made == 0


def test_a_worker_that_goes_lets_all_go(rank):
    end = rank()
    rank.plugin.teardown(SimpleNamespace(handlers={}))
    assert end._end._end.aborted.is_set()
    assert not dask_gpu_exchange._kept
