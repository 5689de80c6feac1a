"""Strips of lists that are streamed to a GPU: how they are cut, and that each comes in time.

The kernel is stood in for by a check that what it would read is where it would read it. Copies are
done here when they are asked for, the earliest that could be.
"""

from dataclasses import replace
from functools import partial
from itertools import pairwise, product

import cuda_offline
import graphs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import Counting
from streamed_model import unpacked

import glp_rapids
from glp_rapids import as_graph, label_propagation
from glp_rapids.outofcore.double_buffer import DoubleBuffer
from glp_rapids.outofcore.pinned import HostArray
from glp_rapids.propagation import engines
from glp_rapids.propagation.engines import strips, strips_within
from glp_rapids.propagation.kernels.gpu.plan import ENDS, HUBS, RANGES
from glp_rapids.propagation.workload import TooLittleMemory

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
from glp_rapids.propagation.engines import fetched_rows, gpu_streamed


def layout_of(degrees, classes, seed):
    """A layout of rows of some degrees, in classes drawn at random."""
    degrees = np.sort(np.asarray(degrees, np.int32))[::-1]
    of_class = np.sort(np.random.default_rng(seed).integers(0, classes, degrees.size))
    bounds = np.searchsorted(of_class, np.arange(classes + 1))
    for first, last in pairwise(bounds):
        degrees[first:last] = np.sort(degrees[first:last])[::-1]
    begins = np.repeat(bounds[:-1, None], RANGES, axis=1)
    ends = begins.copy()
    begins[:, 1:] = ends[:, 1:] = bounds[1:, None]
    ends[:, 0] = bounds[1:]
    starts = np.concatenate([[0], np.cumsum(degrees)]).astype(np.int64)
    entries = HostArray(np.arange(max(starts[-1], 1), dtype=np.int32), pinned=True)
    vertices = np.arange(degrees.size, dtype=np.int32)
    longest = int(degrees.max(initial=0))
    return strips.Layout(vertices, degrees, starts, longest, begins, ends, entries, None)


@given(
    st.lists(st.integers(1, 90), max_size=60), st.integers(1, 5), st.integers(0, 3),
    st.integers(0, 3000), st.integers(0, 200), st.booleans(),
)  # fmt: skip
def test_strips_hold_whole_rows_and_have_room(degrees, classes, seed, stays, longest, by_class):
    layout = layout_of(degrees, classes, seed)
    total = int(layout.starts[-1])
    longest = max(longest, layout.longest_row, 1)
    found = strips.cut(layout, min(stays, total), longest, by_class=by_class)
    sizes = np.diff(found.entries)
    assert found.place.size == classes * found.a_class
    assert found.positions[:: found.a_class].tolist() == layout.bounds.tolist()
    assert (layout.starts[found.positions] == found.entries).all()
    assert sizes[found.place < 0].max(initial=0) <= longest
    resident = sizes[found.place >= 0].sum()
    assert resident <= stays
    assert not stays >= total > 0 or resident == total
    # nothing overlaps
    taken = np.zeros(found.room, int)
    for place, first, size in zip(found.place, found.entries[:-1], sizes, strict=True):
        if place >= 0:
            assert place % strips.LINE == first % strips.LINE
            begin = place // strips.LINE * strips.LINE  # whole lines are copied
            taken[begin : -(-(place + size) // strips.LINE) * strips.LINE] += 1
    for slot in found.slots:
        in_slots = (found.place < 0) & (sizes > 0)
        for first, size in zip(found.entries[:-1][in_slots], sizes[in_slots], strict=True):
            end = slot + first % strips.LINE + size
            assert end <= found.room
            assert not taken[slot : -(-end // strips.LINE) * strips.LINE].any()
    assert taken.max() <= 1
    assert not np.any(np.array([found.room, *found.slots]) % strips.LINE)
    if sizes[found.place < 0].any():
        assert found.slots[1] - found.slots[0] >= sizes[found.place < 0].max()


def test_whole_classes_stay_and_are_spread_over_a_sweep():
    layout = layout_of([9] * 400, 8, 0)
    sizes = np.diff(layout.starts[layout.bounds])
    cut = partial(strips.cut, layout, int(sizes.sum()) // 2)
    found = cut(int(sizes.max()), by_class=True)
    assert found.a_class == 1
    stays = found.place >= 0
    assert 3 <= stays.sum() <= 4
    gaps = np.diff(np.flatnonzero(stays))
    assert gaps.min() >= 2
    # a class that is longer than a strip may be has a front that stays
    for cut_up in (cut(int(sizes.max()) - 1, by_class=True), cut(int(sizes.max()))):
        assert cut_up.a_class > 1
        assert (cut_up.place.reshape(8, -1)[:, 0] >= 0).all()


@pytest.mark.parametrize("classes", [8, 32])
@pytest.mark.parametrize("room", [0.3, 0.5, 0.7, 0.9, 0.99])
@pytest.mark.parametrize("scale", [1 << 6, 1 << 20])
def test_whole_classes_stay_where_strips_take_longer_than_the_bus(classes, room, scale):
    """However much fits, a sweep waits no longer than with fronts of all classes."""
    small = layout_of([3] * 100 * classes, classes, 0)
    layout = replace(small, starts=scale * small.starts, longest_row=3 * scale, cuts={})
    total = int(layout.starts[-1])
    memory = int(layout.bytes_an_entry * (room * total + 4 * classes * strips.LINE))
    a_strip = strips.A_ROW // 4

    def sizes(fixed):
        entries = int((memory - fixed) / layout.bytes_an_entry)
        return layout.sizes_of_strips(entries, True, a_strip, total, total, total)

    def beside(found):
        return 0 if found is None else found.place.size * strips.A_ROW

    given = layout, memory, True, strips.ALONE, sizes, beside
    found, taken = strips_within.cut_within(*given, ())
    assert taken <= memory
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strips_within, "_by_class", lambda *_: ())
        layout.cuts.clear()
        fronts, _ = strips_within.cut_within(*given, ())
    seconds = strips_within.seconds_a_sweep
    assert seconds(layout, found) <= seconds(layout, fronts)
    if (classes, room) == (32, 0.5):  # a strip is copied in less than a launch, or in much more
        assert (fronts.a_class, found.a_class) == (2, 1 if scale == 1 << 6 else 2)


def test_what_is_asked_for_comes_in_turns():
    host = HostArray(np.arange(100), pinned=True)
    there = np.full(40, -1)
    ring = DoubleBuffer([(host, there)], np)
    ring.ask((0, 10), 20, 25)
    ring.ask((0, 10), 50, 55)
    ring.ask_for_good(30, 90, 95)
    assert ring.waiting == 3
    assert [ring.take(), ring.take(), ring.take()] == [0, 1, None]
    ring.ask((0, 10), 7, 7)
    assert ring.take() == 0
    assert there[[0, 4, 10, 14, 30, 34]].tolist() == [20, 24, 50, 54, 90, 94]
    assert ring.moved == 15 * host.array.itemsize


class Checking:
    """Stands for the streamed kernel: looks where it would, and lets some labels change."""

    def __init__(self, draw, vertices):
        self.draw, self.vertices = draw, vertices
        self.launches, self.evaluated = 0, []

    def launch(self, kernel, blocks, threads, *arguments):
        """Stand for the census."""
        costs = arguments[5]
        costs[:] = self.draw.integers(0, 60, costs.size)

    def prepared_together(self, kernel, wanted, threads, arguments, last):
        """Return what checks a launch."""
        return lambda step: self.check(*arguments, step)

    def check(self, *arguments):
        """Check a launch."""
        plan, run, rows, lists = (arguments[i] for i in (0, 4, 5, 7))
        schedule, step = arguments[9], arguments[11]
        self.launches += 1
        self.slack = run.slack.size
        number = lists.place.size
        first, end = (0, number) if step.first < 0 else (int(step.first), int(step.end))
        assert first == (self.evaluated[-1] if self.evaluated else 0)
        self.evaluated.append(end % number)
        in_slots = 0
        for strip in range(first, end):
            begin, last = plan.groups[strip, HUBS], plan.groups[strip, ENDS + RANGES - 1]
            if begin == last:
                continue
            start = int(plan.starts[begin])
            stop = int(plan.starts[last - 1] + plan.degrees[last - 1])
            assert start == lists.first[strip]
            shift = int(lists.place[strip]) - start
            if lists.place[strip] < 0:
                in_slots += 1
                shift = int(lists.slots[step.slot]) - start // strips.LINE * strips.LINE
                if not step.filled:
                    continue
            there = unpacked(rows.indices, start + shift, stop + shift)
            # what is not pinned is not shown to the kernel
            if lists.entries.words.size > 1:
                assert np.array_equal(there, unpacked(lists.entries, start, stop))
        assert in_slots <= 1 or step.first < 0
        if step.last:
            for _ in range(int(schedule.sweeps)):
                changed = int(self.vertices * self.draw.choice([0.9, 0.2, 0.01]))
                run.changed[int(run.control[0] - schedule.forgotten)] += changed
                run.control[0] += 1
            run.control[2] = self.draw.integers(0, 2)


@pytest.fixture
def streaming(monkeypatch):
    """Give what makes runs on host arrays go to the engine, with a stand-in for its kernels."""
    engine_of = engines.engine_of
    monkeypatch.setattr(engines, "engine_of", lambda _, *choice: engine_of("gpu", *choice))

    def stand_in(seed=0, a_launch=0.0):
        monkeypatch.setattr(gpu_streamed.StreamedGpuEngine, "_a_launch", a_launch)
        check = Checking(np.random.default_rng(seed), 300)
        monkeypatch.setattr(gpu_streamed, "launch", check.launch)
        monkeypatch.setattr(gpu_streamed, "prepared_together", check.prepared_together)
        return check

    with cuda_offline.compiling(monkeypatch, (9, 0)):
        yield stand_in


def power_law(**how):
    pairs = np.array(graphs.power_law_pairs(300, 6000, 5)).T
    return as_graph((*pairs,), vertices=np.arange(300), device="cpu", **how)


streamed = partial(label_propagation, way="streamed plain", max_iter=6, tol=0.0)


def test_nothing_is_asked_for_after_the_last_sweep(streaming):
    streaming()
    graph = power_law()
    report = streamed(graph, skip_inactive=False).attrs["glp"]
    a_sweep = report["bytes_over_bus"] / 6  # whole lines of 32 entries, of 300 vertices: 9 bits
    assert 0 <= a_sweep - graph.number_of_edges * 9 / 8 < 9 * 32 * strips.LINE


@pytest.mark.parametrize("first", [0, 3])
@pytest.mark.parametrize("directed", [False, True])
def test_of_what_is_not_pinned_nobody_is_skipped(streaming, monkeypatch, directed, first):
    pinned, made = gpu_streamed.pinned, []
    empty = pinned.empty

    def some(size, dtype, device="gpu"):
        # vertices, degrees and lists are made before the lists of readers
        made.append(empty(size, dtype, "cpu"))
        made[-1].pinned = len(made) <= first
        return made[-1]

    monkeypatch.setattr(pinned, "empty", some)
    check, graph = streaming(), power_law(directed=directed)
    skips = first == 3 and not directed
    report = streamed(graph).attrs["glp"]
    assert check.launches
    assert check.slack == (300 if skips else 1)
    assert report["pinned"] == (first == 3)
    if not skips:
        made.clear()
        with pytest.raises(MemoryError, match="cannot be pinned"):
            glp_rapids.propagate(power_law(directed=directed), Counting(), way="streamed plain")


def test_no_more_sweeps_than_asked_for(streaming, monkeypatch):
    advance, done = gpu_streamed.StreamedGpuEngine.advance, []

    def by_threes(engine, schedule, sweeps):
        while not schedule.over:
            advance(engine, schedule, 3)
            done.append(len(schedule.changed))

    monkeypatch.setattr(gpu_streamed.StreamedGpuEngine, "advance", by_threes)
    for a_launch in (0.0, 1.0):
        streaming(a_launch=a_launch)
        done.clear()
        streamed(power_law(), max_iter=10)
        assert done == [3, 6, 9, 10]


def test_strips_are_copied_unless_rows_or_launches_cost_less():
    sizes, costs = np.array([100, 100, 0, 100]), np.array([10, 300, 0, 49])
    chosen = partial(fetched_rows.chosen, [0, 1, 3], costs, sizes, 11.0)
    seconds = 300 * 11 / fetched_rows.BUS  # of the dense one
    assert chosen(0.0) == chosen(0.99 * seconds / 3) == {0, 3}
    assert chosen(1.01 * seconds / 3) == {0, 1, 3}
    assert fetched_rows.chosen([1], sizes, sizes, 1.0, 0.0) == set()


def test_what_is_kept_stays_if_a_run_does_not_begin(streaming, monkeypatch):
    def lacks(self, limits):
        raise TooLittleMemory(5, {})

    streaming()
    graph = power_law()
    kept = graph.keep(("kept", None), dict)
    kept["of another"] = 1
    with monkeypatch.context() as patch:
        patch.setattr(gpu_streamed.StreamedGpuEngine, "_cut", lacks)
        with pytest.raises(MemoryError, match="is 5 too little"):
            streamed(graph, memory_limit="1GB")
    layout = kept["strips"]
    streamed(graph)
    assert kept["strips"] is layout
    assert kept["of another"] == 1


@pytest.mark.parametrize("update", ["semi", "sync"])
@pytest.mark.parametrize("size", [1, 400, None])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("by_class", [False, True])
def test_every_strip_comes_in_time(streaming, monkeypatch, by_class, share, size, update):
    graph = power_law()
    monkeypatch.setattr(strips, "cut", partial(strips.cut, by_class=by_class))

    def sizes_of_strips(self, fixed):
        total, longest = graph.number_of_edges, self._layout.longest_row
        return int(share * total), max(longest, size or total)

    monkeypatch.setattr(gpu_streamed.StreamedGpuEngine, "_sizes_of_strips", sizes_of_strips)
    # 1e-8 seconds: of five strips, in which a bus brings 300 entries
    for seed, a_launch in product(range(3), (0.0, 1e-8, 1.0)):
        check = streaming(seed, a_launch)
        report = streamed(graph, update=update, max_iter=12, seed=seed).attrs["glp"]
        assert report["sweeps"] == 12
        assert check.evaluated[-1] == 0
        if a_launch == 1.0:
            assert check.launches == 1  # who is active is no question, so nobody is counted
        assert (report["share_cached"] == share) == (share in (0, 1))
