"""A GPU and the host's cores share the rows of a class: the labels are those of either alone."""

import threading
from itertools import pairwise

import cuda_offline
import graphs
import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from memory_limits import assert_same
from streamed_model import StreamedModel

from glp_rapids import as_graph, label_propagation
from glp_rapids.outofcore import both_ends
from glp_rapids.outofcore.both_ends import BothEnds, Strip
from glp_rapids.propagation import engines

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
from glp_rapids.propagation.engines import gpu_streamed, hybrid

# ---------------------------------------------------------------- a queue with two ends


def queue_of(degrees, cuts, lowest):
    """Positions of rows of some degrees, cut into strips, of which the host may take the rear."""
    starts = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    bounds = sorted({0, len(degrees), *(cut % (len(degrees) + 1) for cut in cuts)})
    strips = [Strip(i, *ends) for i, ends in enumerate(pairwise(bounds))]
    return BothEnds(strips, starts, lowest % (len(degrees) + 1), len(degrees))


queues = st.builds(
    queue_of, st.lists(st.integers(1, 50), min_size=1, max_size=40),
    st.lists(st.integers(0, 99), max_size=6), st.integers(0, 99),
)  # fmt: skip


@given(queues, st.lists(st.tuples(st.booleans(), st.floats(0.01, 1.0)), max_size=60))
def test_every_row_is_taken_once(queue, turns):
    rows, lowest = queue.rear, queue.lowest
    both_ends.LEAST, least = 1, both_ends.LEAST
    taken = np.zeros(rows, int)
    try:
        for front, share in [*turns, *[(True, 0.0)] * (rows + 1)]:
            if front:
                strip = queue.from_front()
                if strip is not None:
                    taken[strip.first : strip.last] += 1
                assert queue.over or strip is not None
            elif (some := queue.from_rear(share)) is not None:
                assert some[0] >= lowest
                taken[slice(*some)] += 1
    finally:
        both_ends.LEAST = least
    assert queue.over
    assert (taken == 1).all()
    assert queue.from_rear(1.0) is None


def test_two_threads_take_every_row_once():
    queue = queue_of([3] * 20_000, range(0, 20_000, 7), 0)
    taken = np.zeros(20_000, int)

    def host():
        while (some := queue.from_rear(0.01)) is not None:
            taken[slice(*some)] += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(both_ends, "LEAST", 30)
        thread = threading.Thread(target=host)
        thread.start()
        while (strip := queue.from_front()) is not None:
            taken[strip.first : strip.last] += 1
        thread.join()
    assert (taken == 1).all()


def test_the_host_takes_nothing_that_the_gpu_has_done_before():
    queue = queue_of([1] * 100, [50], 0)
    assert queue.from_rear(0.5) is None  # fewer than it is called for
    queue.close()
    assert queue.over
    assert queue.from_front() is None


# ---------------------------------------------------------------- whole runs


@pytest.fixture
def modelled(monkeypatch):
    """Let runs on host arrays go to the hybrid engine, whose kernels are modelled in NumPy."""
    engine_of = engines.engine_of
    found = engines.engine_of("gpu", "hybrid")
    monkeypatch.setattr(
        engines, "engine_of",
        lambda _, way, *more: found if way == "streamed plain" else engine_of("cpu", way),
    )  # fmt: skip

    def model(graph):
        ids = graph.external(np.arange(graph.number_of_vertices)).tolist()
        made = StreamedModel([reference.id_word(one) for one in ids])
        for module in (gpu_streamed, hybrid):
            monkeypatch.setattr(module, "launch", made.launch)
        monkeypatch.setattr(gpu_streamed, "prepared_together", made.prepared_together)
        return made

    with cuda_offline.compiling(monkeypatch, (9, 0)):
        monkeypatch.setattr(both_ends, "LEAST", 1)
        monkeypatch.setattr(hybrid, "LEAST", 1)
        yield model


def power_law(**how):
    pairs = np.array(graphs.power_law_pairs(300, 3000, 5)).T
    return as_graph((*pairs,), vertices=np.arange(300), device="cpu", **how)


@pytest.mark.parametrize("share", [None, 0.05, 0.5, 1.0])
@pytest.mark.parametrize(
    "how",
    [{}, {"update": "sync", "max_iter": 8}, {"explore": 0, "classes": 5}, {"skip_inactive": False}],
    ids=str,
)
def test_labels_are_those_of_a_cpu(modelled, monkeypatch, how, share):
    graph = power_law()
    expected = label_propagation(graph, seed=3, **how)
    model = modelled(graph)
    monkeypatch.setattr(hybrid, "SHARE", share)
    for stays in (0.0, 0.3):
        monkeypatch.setattr(
            hybrid.StreamedGpuEngine, "_sizes_of_strips",
            lambda self, fixed, an_entry, stays=stays: (int(stays * graph.number_of_edges), 400),
        )  # fmt: skip
        found = label_propagation(graph, seed=3, way="streamed plain", **how)
        assert_same(found, expected)
        report = found.attrs["glp"]
        assert report["changed"] == expected.attrs["glp"]["changed"]
        if share is not None:
            assert 0 < report["share_of_host"] < 1
    assert model.launched
