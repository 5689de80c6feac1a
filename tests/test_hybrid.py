"""A GPU and the host's cores share the rows of a class: the labels are those of either alone."""

import dataclasses
import gc
import threading
import weakref
from itertools import pairwise, product

import cuda_offline
import numpy as np
import pytest
import reference
from cases import exhaustive, turns
from hypothesis import given
from hypothesis import strategies as st
from memory_limits import assert_same
from simulator import simulated
from streamed_model import StreamedModel, cut_into

from glp_rapids import as_graph, label_propagation, speaker_listener
from glp_rapids.outofcore import both_ends
from glp_rapids.outofcore.both_ends import BothEnds, Piece, take_from_rear, units_of
from glp_rapids.propagation import engines

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
from head_start import giving

from glp_rapids.propagation.engines import gpu_streamed, hybrid
from glp_rapids.propagation.kernels.cpu import hash_votes
from glp_rapids.propagation.kernels.cpu.hybrid import put
from glp_rapids.propagation.kernels.gpu import host_rows, volumes

# ---------------------------------------------------------------- a queue with two ends


def queue_of(degrees, cuts, lowest, unit):
    """Positions of rows of some degrees, cut into pieces, of which the host may take the rear."""
    starts = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    bounds = sorted({0, len(degrees), *(cut % (len(degrees) + 1) for cut in cuts)})
    pieces = [Piece(i, *ends) for i, ends in enumerate(pairwise(bounds))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(both_ends, "UNIT", unit)
        units = units_of(starts, pieces, lowest % (len(degrees) + 1), len(degrees))
    return BothEnds(pieces, units)


queues = st.builds(
    queue_of, st.lists(st.integers(1, 50), min_size=1, max_size=40),
    st.lists(st.integers(0, 99), max_size=6), st.integers(0, 99), st.integers(1, 200),
)  # fmt: skip


def take_all(queue, taken):
    """What a thread of the host does: take units until there is none."""
    while (unit := take_from_rear(queue.word)) >= 0:
        taken[queue.units[unit + 1] : queue.units[unit]] += 1


@given(queues, st.lists(st.booleans(), max_size=60))
def test_every_row_is_taken_once(queue, turns):
    rows, lowest = int(queue.units[0]), queue.units[-1]
    taken = np.zeros(rows, int)
    for front in [*turns, *[True] * (rows + 1)]:
        if front:
            piece = queue.from_front()
            if piece is not None:
                taken[piece.first : piece.last] += 1
            assert queue.over or piece is not None
        elif (unit := take_from_rear(queue.word)) >= 0:
            assert queue.units[unit + 1] >= lowest
            taken[queue.units[unit + 1] : queue.units[unit]] += 1
    assert queue.over
    assert (taken == 1).all()
    assert take_from_rear(queue.word) == -1


@given(queues)
def test_units_are_cut_where_pieces_are(queue):
    lowest, rear = queue.units[-1], queue.units[0]
    assert (np.diff(queue.units) < 0).all()
    edges = {edge for piece in queue.pieces for edge in piece[1:] if lowest < edge < rear}
    assert edges <= set(queue.units.tolist())


def test_threads_take_every_row_once():
    queue = queue_of([3] * 20_000, range(0, 20_000, 7), 0, 30)
    taken = np.zeros(20_000, int)
    threads = [threading.Thread(target=take_all, args=(queue, taken)) for _ in range(2)]
    for thread in threads:
        thread.start()
    while (piece := queue.from_front()) is not None:
        taken[piece.first : piece.last] += 1
    for thread in threads:
        thread.join()
    assert (taken == 1).all()


def test_what_is_closed_is_for_nobody():
    queue = queue_of([1] * 100, [50], 0, 10)
    assert take_from_rear(queue.word) == 0
    queue.close()
    assert queue.over
    assert queue.from_front() is None
    assert take_from_rear(queue.word) == -1


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
        monkeypatch.setattr(both_ends, "UNIT", 1)
        monkeypatch.setattr(hybrid, "COPY", 0.0)
        yield model


def planted():
    """Communities of 25 with a third of the edges outside, so that few are active after a while."""
    rng = np.random.default_rng(2)
    source = np.repeat(np.arange(500), 4)
    inside = source // 25 * 25 + rng.integers(0, 25, source.size)
    target = np.where(rng.random(source.size) < 0.33, rng.integers(0, 500, source.size), inside)
    hub = np.zeros(200, int), np.arange(1, 201)
    return as_graph(
        (np.append(source, hub[0]), np.append(target, hub[1])), vertices=np.arange(500),
        device="cpu",
    )  # fmt: skip


RUNS = [
    {}, {"update": "sync", "max_iter": 9}, {"explore": 0, "classes": 5}, {"skip_inactive": False},
    {"retain": False, "tie_break": "max", "classes": 7},
]  # fmt: skip


@pytest.mark.parametrize(
    ("how", "share"), [*turns(RUNS, [0.05]), *exhaustive(*turns(RUNS, [0.0, 0.5, 1.0]))], ids=str
)
def test_labels_are_those_of_a_cpu(modelled, monkeypatch, how, share):
    graph = planted()
    how = {"seed": 3, "tol": 0.0, "max_iter": 25, **how}
    expected = label_propagation(graph, **how)
    monkeypatch.setattr(hybrid.HybridEngine, "_tell_host", giving(share))
    # the first two: from how many changes on everybody is evaluated, and what stays on the GPU
    # and how long strips are
    for few, stays, size in product((1, gpu_streamed.FEW), (0.0, 0.3), (400, 1 << 20)):
        model = modelled(graph)
        monkeypatch.setattr(gpu_streamed, "FEW", few)
        cut_into(monkeypatch, int(stays * graph.number_of_edges), size, by_class=size > 400)
        found = label_propagation(graph, way="streamed plain", **how)
        assert_same(found, expected)
        report = found.attrs["glp"]
        assert report["changed"] == expected.attrs["glp"]["changed"]
        assert model.launched
        if share:
            assert 0 < report["share_of_host"] < 1
        if few == 1 and "update" not in how:  # of those that are, all stay active
            assert (model.left_out > 0) == how.get("skip_inactive", True)


def test_kernels_between_host_and_gpu_in_the_simulator():
    assert simulated("simulate_host_rows.py") == "0"


@pytest.mark.parametrize("capability", [(9, 0), *exhaustive(((7, 5),), ((8, 6),), ((10, 0),))])
@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
def test_kernels_between_host_and_gpu_compile(capability, dtype):
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVIDIA's compilers are not installed")
    from numba import cuda, typeof, types

    vertices, values, counts = (
        typeof(np.zeros(1, kind)) for kind in (np.int32, dtype, np.int64)
    )
    ends = types.int64, types.int64
    for kernel, signature in (
        (host_rows.take_rows, (vertices, *ends, types.int64, values, values)),
        (host_rows.put_rows, (vertices, *ends, values, values)),
        (volumes.count_labels, (vertices, counts)),
    ):
        code, _ = cuda.compile_ptx(kernel, signature, device=False, cc=capability)
        assert kernel.__name__ in code


# ---------------------------------------------------------------- what stays with the graph


@pytest.fixture
def in_short_strips(modelled, monkeypatch):
    """Let the host take a third of runs on a graph whose strips are short."""
    graph = planted()
    modelled(graph)
    monkeypatch.setattr(hybrid.HybridEngine, "_tell_host", giving(0.3))
    cut_into(monkeypatch, 0, 400)
    return graph


def test_only_the_lists_that_were_laid_out_last_stay_pinned(in_short_strips):
    graph = in_short_strips
    for classes in (5, 6, 7, 6):
        label_propagation(graph, way="streamed plain", classes=classes, max_iter=3)
        kept = graph.keep(("kept", None), dict)
        _, share = kept["hybrid"]
        assert share.layout is kept["strips"][1]
    again = kept["hybrid"]
    label_propagation(graph, way="streamed plain", classes=6, seed=5)
    assert kept["hybrid"][1] is again[1]


def test_a_graph_that_is_dropped_lets_go_of_its_lists(in_short_strips):
    graph = dataclasses.replace(in_short_strips, _derived={})
    found = label_propagation(graph, way="streamed plain", classes=5, max_iter=3)
    assert found.attrs["glp"]["share_of_host"] > 0
    lists = weakref.ref(graph.keep(("kept", None), dict)["strips"][1].entries.array)
    gc.collect()
    gc.disable()
    try:
        assert lists() is not None
        del graph, found
        assert lists() is None  # nothing holds itself
    finally:
        gc.enable()


def test_state_of_another_shape_has_a_part_of_its_own(in_short_strips):
    for sweeps in (4, 6):  # each vertex remembers so many labels
        speaker_listener(in_short_strips, way="streamed plain", classes=5, max_iter=sweeps)
        _, share = in_short_strips.keep(("kept", None), dict)["hybrid"]
        assert share._fields["memory"].shape == (500, sweeps + 1)


def test_without_room_on_the_host_the_gpu_does_all(in_short_strips, monkeypatch):
    graph = in_short_strips
    expected = label_propagation(graph, classes=5)
    room_for = hybrid.pinned.room_for
    asked = []

    def room(size):
        asked.append(size)
        return room_for(size) and len(asked) < 2  # the lists come first

    monkeypatch.setattr(hybrid.pinned, "room_for", room)
    found = label_propagation(graph, classes=5, way="streamed plain")
    assert_same(found, expected)
    assert len(asked) == 2
    assert found.attrs["glp"]["share_of_host"] == 0


def test_threads_are_those_of_the_run(in_short_strips, monkeypatch):
    used = []
    for threads in (1, 2, 1):
        for module in (hybrid, hash_votes):
            monkeypatch.setattr(module, "threads_for", lambda _, threads=threads: threads)
        label_propagation(in_short_strips, classes=5, way="streamed plain", max_iter=2)
        used.append(in_short_strips.keep(("kept", None), dict)["hybrid"][1]._threads)
    assert used == [1, 2, 1]


def test_rows_of_several_values_are_put_in_their_places():
    rng = np.random.default_rng(4)
    vertices = rng.permutation(40)[:25].astype(np.int32)
    for width in (1, 3):
        values, into = rng.random((25, width)), np.zeros((40, width))
        expected = into.copy()
        expected[vertices] = values
        put(2, vertices, width, values.reshape(-1), into.reshape(-1))
        assert np.array_equal(into, expected)


def test_the_hosts_part_takes_what_is_counted(in_short_strips, monkeypatch):
    count, counted = hybrid.bytes_of_share, []
    monkeypatch.setattr(
        hybrid, "bytes_of_share", lambda *how: counted.append(count(*how)) or counted[-1]
    )
    label_propagation(in_short_strips, way="streamed plain", classes=5, max_iter=2)
    _, share = in_short_strips.keep(("kept", None), dict)["hybrid"]
    made = [*share._fields.values(), *share.staged.values(), *share.known, *share.outcome]
    made += [*share._winners, share._old, share._counts, *share._tables, share._slack, share._tied]
    taken = sum(array.nbytes for array in made if isinstance(array, np.ndarray))
    assert taken <= counted[0] <= 1.3 * taken
