"""The exchange by copies without a GPU: a made-up driver copies arrays of the host."""

import ctypes
import sys
import threading
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from as_on_gpu import empty, on_gpu

from glp_rapids.multigpu.copies import CopyExchange, CopyMeeting
from glp_rapids.multigpu.exchange import RankFailed, as_ranks


class Driver:
    """Streams of three GPUs, one a thread, on which all is done at once; it notes what."""

    def __init__(self):
        self.of_thread = threading.local()
        self.done = {}

    def note(self, *what):
        self.done.setdefault(self.gpu(), []).append(what)

    def gpu(self):
        return self.of_thread.gpu

    def copy(self, to, on, source, of, size, stream):
        assert on == self.gpu()
        self.note("copied", of)
        ctypes.memmove(to, source, size)


@pytest.fixture
def ranks(monkeypatch):
    """A function that lets three ranks, on GPUs 5, 6 and 7, do something."""
    driver = Driver()

    class Event:
        def __init__(self, disable_timing):
            assert disable_timing

        def record(self):
            self.gpu = driver.gpu()
            driver.note("recorded")

    stream = SimpleNamespace(ptr=0, wait_event=lambda event: driver.note("waited", event.gpu))
    cupy, cuda = ModuleType("cupy"), ModuleType("cupy.cuda")
    cuda.runtime = SimpleNamespace(getDevice=driver.gpu, memcpyPeerAsync=driver.copy)
    cuda.get_current_stream, cuda.Event = lambda: stream, Event
    cupy.cuda, cupy.empty = cuda, empty
    for name, module in (("cupy", cupy), ("cupy.cuda", cuda)):
        monkeypatch.setitem(sys.modules, name, module)

    def together(work):
        meeting = CopyMeeting((5, 6, 7))
        ends = [CopyExchange(meeting, rank) for rank in range(3)]

        def on(rank):
            driver.of_thread.gpu = 5 + rank
            return work(ends[rank])

        works = [lambda rank=rank: on(rank) for rank in range(3)]
        return as_ranks(works, meeting.abort), ends

    together.driver = driver
    return together


def test_all_get_what_all_have(ranks):
    def work(end):
        own = np.arange(end.rank) + 10 * end.rank  # the first has nothing
        return end.allgather([on_gpu(own), on_gpu(own % 7, np.uint8)])

    found, ends = ranks(work)
    expected = [10, 20, 21]
    for wide, narrow in found:
        assert wide.tolist() == expected
        assert narrow.tolist() == [one % 7 for one in expected]
    assert [end.bytes for end in ends] == [2 * 9 * size for size in range(3)]
    done = ranks.driver.done[6]
    assert set(done[1:3]) == {("waited", 5), ("waited", 7)}  # before it reads what they have
    assert set(done[-2:]) == {("waited", 5), ("waited", 7)}  # and before it writes again
    assert done[3:7] == [("copied", 6), ("copied", 7)] * 2
    assert done[7] == ("recorded",)


def test_arrays_go_into_rooms(ranks):
    room = [on_gpu(np.full(8, -1)) for _ in range(3)]
    ranks(lambda end: end.allgather_first(
        on_gpu([end.rank + 1]), [on_gpu([3, 4, 5])], lambda size: [room[end.rank][: size + 1]]
    ))  # fmt: skip
    assert [one.tolist() for one in room] == [[3, 3, 4, 3, 4, 5, -1, -1]] * 3


def test_each_gets_what_is_for_it(ranks):
    def work(end):
        return end.alltoall([on_gpu([100 * end.rank + to] * (to % 2 + 1)) for to in range(3)])

    found, _ = ranks(work)
    for rank, told in enumerate(found):
        expected = [[100 * other + rank] * (rank % 2 + 1) for other in range(3)]
        assert [one.tolist() for one in told] == expected


def test_whoever_fails_stops_all(ranks):
    def work(end):
        if end.rank == 1:
            raise KeyError("lost")
        with pytest.raises(RankFailed, match="lost"):
            end.allgather([on_gpu([1])])

    with pytest.raises(KeyError, match="lost"):
        ranks(work)
