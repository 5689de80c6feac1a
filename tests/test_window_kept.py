"""What a window gave away, and what it held before an append that was stopped, stay."""

import itertools
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
import window_twin
from cases import some
from transfers import batch
from window_twin import MAKERS, table

from glp_rapids.fraud import SlidingWindow
from glp_rapids.fraud.engines import buckets

place = window_twin.place  # a fixture


def test_marks_that_are_none_are_refused(place):
    window = SlidingWindow(5, source=["a", "b"], destination=["c", "d"], device=place)
    assert list(window.changed_since(window.mark()).columns) == ["0_vertex", "1_vertex"]
    with pytest.raises(ValueError, match="marks are from 0 to 0"):
        window.changed_since(1)
    for bad in (None, True, 0.0):
        with pytest.raises(TypeError, match="mark must be"):
            window.changed_since(bad)
    ends = {"a": [1, 2], "b": ["x", "y"], "c": [1, 2], "d": ["y", "y"]}
    frame = pd.DataFrame({**ends, "amount": 1, "time": 1.0})
    window.append(frame)
    mark = window.mark()
    window.append(frame.assign(a=5)[:1])
    changed = window.changed_since(mark)
    assert changed.to_numpy().tolist() == [[1, "y"], [5, "x"]]


class Stop(BaseException):
    """As a Ctrl-C is: no exception that a library would catch."""


@pytest.mark.parametrize("kind", some(("strings", "integers"), "strings"))
def test_an_append_that_is_stopped_anywhere_leaves_the_window_as_it_was(kind, place, monkeypatch):
    """The line at which it stops is later and later, up to the end.

    When nothing is left to do but to give the lock back, the append has happened.
    """
    monkeypatch.setattr(buckets, "SPARE", 0)
    make, random = MAKERS[kind], np.random.default_rng(0)

    def rows(begin):
        ends = [[make(int(end)) for end in random.integers(0, 20, 30)] for _ in range(2)]
        return table(list(zip(*ends, random.integers(1, 9, 30), begin + random.random(30) * 2,
                              random.integers(0, 99, 30), strict=True)))  # fmt: skip

    window, twin = (SlidingWindow(5, id="tx", device=place) for _ in range(2))
    for begin in (0, 2, 4):
        frame = rows(begin)
        assert window.append(frame) == twin.append(frame)
    more, mark = rows(6), window.mark()
    before = window.edges(), window.newest, len(window), window.graph()
    for line in itertools.count(0, 23):
        left = [line]

        def stop(frame, event, _, left=left):
            if "glp_rapids/fraud" not in frame.f_code.co_filename:
                return None
            left[0] -= event == "line"
            if left[0] < 0:
                raise Stop
            return stop

        sys.settrace(stop)
        try:
            change = window.append(more)
        except Stop:
            sys.settrace(None)
            found = window.edges(), window.newest, len(window), window.graph()
            if window.newest != before[1]:
                change = None
                break
            assert found[0].equals(before[0])
            assert found[1:] == before[1:]
            assert window.changed_since(mark).empty
        else:
            break
        finally:
            sys.settrace(None)
    assert line > 100
    appended = twin.append(more)
    assert change in (appended, None)
    assert window.edges().equals(twin.edges())


def test_graphs_that_are_kept_stay_as_they_are(monkeypatch):
    monkeypatch.setattr(buckets, "SPARE", 0)
    window, random = SlidingWindow(5, device="cpu"), np.random.default_rng(0)
    kept = []
    for step in range(30):
        ends = random.integers(0, 30, (2, 40))
        window.append(pd.DataFrame({"source": ends[0], "destination": ends[1], "amount": 1.0,
                                    "time": step / 2 + random.random(40)}))  # fmt: skip
        graph = window.graph()
        if step % 3:
            array = graph.indices[3:9] if step % 2 else graph.weights
            kept.append((array, array.copy()))
        del graph
        kept = kept[-4:]
        assert all(np.array_equal(array, copy) for array, copy in kept)
    # and memory that nobody has is used again
    window._graphs = (None, {})
    kept.clear()
    arrays = set()
    for step in range(30, 40):
        window.append(batch([step / 10 + 12.0], first=step % 2))
        arrays.add(window.graph().weights.base.ctypes.data)
    assert len(arrays) < 10


def test_memory_that_a_pickle_brings_is_not_written_to(monkeypatch):
    monkeypatch.setattr(buckets, "SPARE", 0)
    window = SlidingWindow(5, device="cpu")
    for step in range(6):
        window.append(batch([step / 2], first=step % 2))
        window.graph()
    buffers = []
    text = pickle.dumps(window, protocol=5, buffer_callback=buffers.append)
    lent = [bytearray(buffer.raw()) for buffer in buffers]
    copies = [bytes(buffer) for buffer in lent]
    one, other = (pickle.loads(text, buffers=lent) for _ in range(2))
    for step in range(6, 12):
        one.append(batch([step / 2], first=step % 2))
        one.graph()
    assert [bytes(buffer) for buffer in lent] == copies
    pd.testing.assert_frame_equal(other.edges(), window.edges())
