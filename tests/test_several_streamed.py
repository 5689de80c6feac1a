"""Several GPUs to which lists come strip by strip: what all find together is what one CPU finds."""

import copy
from functools import partial

import cuda_offline
import graphs
import numpy as np
import pytest
import reference
from cases import exhaustive, turns
from memory_limits import assert_same
from streamed_model import PackedModel, StreamedModel, cut_into
from test_hybrid import RUNS, planted
from test_strips import layout_of

from glp_rapids import as_graph, compress, label_propagation
from glp_rapids.device import LackOfMemory
from glp_rapids.multigpu.nccl import in_turn
from glp_rapids.outofcore.peak import Peak
from glp_rapids.propagation import engines, run
from glp_rapids.propagation.engines import strips
from glp_rapids.propagation.engines.partitioned import PartitionedEngine

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from glp_rapids.propagation.engines import gpu_streamed, partitioned_streams, rank_streamed
from glp_rapids.propagation.engines.partitioned_streams import (
    PartitionedPackedStreamsEngine,
    PartitionedStreamsEngine,
)
from glp_rapids.propagation.workload import TooLittleMemory


class ModelledGpus(PartitionedStreamsEngine):
    """Ranks whose kernels are modelled on arrays of the host."""

    def __init__(self, *given, devices):
        self._home, self._peaks = None, [Peak() for _ in devices]
        self._find_parts(given[0], devices)
        PartitionedEngine.__init__(self, *given, devices)

    _scope = _leading = _launching = PartitionedEngine._scope
    advance = PartitionedEngine.advance

    def _works_on_given(self, rank):
        return rank == 0


class ModelledPackedGpus(ModelledGpus, PartitionedPackedStreamsEngine):
    """Likewise, to which packed lists come."""


@pytest.fixture
def modelled(monkeypatch):
    """Let runs on host arrays go to as many ranks, whose kernels are modelled in NumPy."""
    engine_of = engines.engine_of
    _, target = engine_of("gpu", "streamed plain")

    def model(graph, ranks, how="copies", packed=False):
        ids = graph.external(np.arange(graph.number_of_vertices)).tolist()
        words = [reference.id_word(one) for one in ids]
        made = PackedModel(words, graph) if packed else StreamedModel(words)
        monkeypatch.setattr(gpu_streamed, "launch", made.launch)
        for module in (gpu_streamed, rank_streamed):
            monkeypatch.setattr(module, "prepared_together", made.prepared_together)
        monkeypatch.setattr(partitioned_streams, "copied", copy.copy)
        monkeypatch.setattr(partitioned_streams, "how_of", lambda devices: how)
        modelled = ModelledPackedGpus if packed else ModelledGpus
        found = partial(modelled, devices=tuple(range(ranks))), target
        monkeypatch.setattr(
            engines, "engine_of",
            lambda _, way, *more: found if "streamed" in way else engine_of("cpu", way),
        )  # fmt: skip
        return made

    with cuda_offline.compiling(monkeypatch, (9, 0)):
        yield model


# From how many changes on everybody is evaluated; what stays on a GPU, and how long strips are: all
# pairs of settings.
SETTINGS = (
    (1, 0.0, 400), (1, 0.2, 1 << 20), (1, 1.0, 400), (gpu_streamed.FEW, 0.0, 1 << 20),
    (gpu_streamed.FEW, 0.2, 400), (gpu_streamed.FEW, 1.0, 1 << 20),
)  # fmt: skip


@pytest.mark.parametrize(
    ("how", "ranks"), [*turns(RUNS, [2]), *exhaustive((RUNS[0], 1), *turns(RUNS, [5, 3]))], ids=str
)
def test_labels_are_those_of_a_cpu(modelled, monkeypatch, how, ranks):
    graph = planted()
    how = {"seed": 3, "tol": 0.0, "max_iter": 25, **how}
    expected = label_propagation(graph, **how)
    for few, stays, size in SETTINGS:
        made = modelled(graph, ranks)
        monkeypatch.setattr(rank_streamed, "FEW", few)
        cut_into(monkeypatch, int(stays * graph.number_of_edges), size)
        found = label_propagation(graph, way="streamed plain", **how)
        assert_same(found, expected)
        report = found.attrs["glp"]
        assert report["changed"] == expected.attrs["glp"]["changed"]
        assert sum(rank["vertices"] for rank in report["ranks"]) == graph.number_of_vertices
        moved = sum(rank["bytes_over_bus"] for rank in report["ranks"])
        assert moved == report["bytes_over_bus"] > 0
        if stays == 1.0:  # all came once
            assert report["share_cached"] == pytest.approx(1.0)
        assert made.launched


@pytest.mark.parametrize("ranks", [2, *exhaustive(3)])
@pytest.mark.parametrize("how", [{}, *exhaustive({"update": "sync"}, {"explore": 0})])
def test_packed_lists_come_to_all(modelled, monkeypatch, how, ranks):
    graph = planted()
    how = {"seed": 3, "tol": 0.0, "max_iter": 25, **how}
    expected = label_propagation(graph, **how)
    packed = compress(graph, "packed", segment=128, device="cpu")
    for stays, size in ((0, 400), (400, 200), (1 << 20, 400)):
        modelled(graph, ranks, packed=True)
        cut_into(monkeypatch, stays, size)
        found = label_propagation(packed, way="streamed packed", **how)
        assert_same(found, expected)
        report = found.attrs["glp"]
        assert report["changed"] == expected.attrs["glp"]["changed"]
        assert sum(rank["vertices"] for rank in report["ranks"]) == graph.number_of_vertices


NAMES = ["only isolated", "isolated", "hub", "star", "clique", "path", "power law"]


@pytest.mark.parametrize("ranks", [2, *exhaustive(4)])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", ["peer stores", "nccl"])
def test_awkward_graphs(modelled, name, ranks, how):
    graph = as_graph(**graphs.GRAPHS[name](), device="cpu")
    modelled(graph, ranks, how)
    found = label_propagation(graph, way="streamed plain", seed=1)
    assert_same(found, label_propagation(graph, seed=1, device="cpu"))
    exchange = "peer loads" if how == "peer stores" else "copies"
    assert found.attrs["glp"]["exchange"] == exchange


def test_runs_led_sweep_by_sweep(modelled):
    graph, told = planted(), []
    expected = label_propagation(graph, seed=3)
    modelled(graph, 3)
    found = label_propagation(graph, way="streamed plain", seed=3, progress=told.append)
    assert_same(found, expected)
    assert [one["changed"] for one in told] == expected.attrs["glp"]["changed"]
    assert all("seconds_waiting" not in rank for rank in found.attrs["glp"]["ranks"])


class Mistaken(Exception):
    """An error in the middle of a sweep."""


@pytest.mark.parametrize("settles", [True, False])
def test_an_error_of_a_rank_ends_all_and_all_settle(modelled, monkeypatch, settles):
    modelled(planted(), 3)
    step, settle = rank_streamed.StreamedRankEngine._step, rank_streamed.StreamedRankEngine.settle
    steps, settled = [], []

    def fail(engine, *given, **how):
        assert in_turn._lock.locked()  # no other run's kernels may wait for one another meanwhile
        steps.append(engine._share.rank)
        if len(steps) == 20:
            raise Mistaken
        step(engine, *given, **how)

    def noted(engine):
        settled.append(engine._share.rank)
        settle(engine)
        if not settles and engine._share.rank == 1:
            raise RuntimeError("an error of the driver")

    monkeypatch.setattr(rank_streamed.StreamedRankEngine, "_step", fail)
    monkeypatch.setattr(rank_streamed.StreamedRankEngine, "settle", noted)
    with pytest.raises(Mistaken if settles else RuntimeError):
        label_propagation(planted(), way="streamed plain", seed=3)
    assert sorted(settled) == [0, 1, 2]
    assert not in_turn._lock.locked()


def test_a_failure_on_one_rank_is_that_of_the_run(modelled, monkeypatch):
    graph = planted()
    modelled(graph, 2)
    record = rank_streamed.StreamedRankEngine._record

    def failing(engine, schedule, before):
        record(engine, schedule, before)
        engine._failure = -2 if engine._share.rank and len(schedule.changed) == 2 else 0

    monkeypatch.setattr(rank_streamed.StreamedRankEngine, "_record", failing)
    monkeypatch.setattr(run, "explain_failure", lambda failure, *_: f"failure {failure}")
    with pytest.raises(ValueError, match="failure -2"):
        label_propagation(graph, way="streamed plain", seed=3, tol=0.0)


def test_what_is_lacking_is_that_of_the_rank_that_lacks_most(modelled, monkeypatch):
    modelled(planted(), 3)
    cut = gpu_streamed.StreamedGpuEngine._cut

    def lacking(engine, limits):
        cut(engine, limits)
        bytes_lacking = (5, 70, 0)[engine._share.rank]
        if bytes_lacking:
            raise TooLittleMemory(bytes_lacking, {"lists": bytes_lacking})

    monkeypatch.setattr(gpu_streamed.StreamedGpuEngine, "_cut", lacking)
    with pytest.raises(LackOfMemory, match=r"memory_limit=9,000,000 bytes is 70 too little"):
        label_propagation(planted(), way="streamed plain", memory_limit=9_000_000)


@pytest.mark.parametrize("ranks", [2, 3, 7])
def test_every_position_is_some_rank_s_own(ranks):
    for seed in range(6):
        degrees = np.random.default_rng(seed).integers(1, 80, 11 * seed)
        layout = layout_of(degrees, 3, seed)
        own = np.zeros(layout.vertices.size, int)
        entries = []
        for rank in range(ranks):
            share = strips.Share(rank, ranks)
            for stays, longest in ((0, 10), (50, 1 << 20), (1 << 20, 5)):
                found = strips.cut(layout, stays, max(longest, layout.longest_row), share)
                bounds = strips.own_bounds(layout, share)
                mine = np.zeros(layout.vertices.size, int)
                for strip in np.flatnonzero(found.own):
                    mine[slice(*found.positions[strip : strip + 2])] += 1
                assert mine.sum() == np.diff(bounds).sum()
                assert mine.max(initial=0) <= 1
                assert (np.diff(found.positions) >= 0).all()
                assert found.positions[-1] == layout.vertices.size
            own += mine
            entries.append(int(np.diff(layout.starts[bounds]).sum()))
        assert (own == 1).all()
        classes = layout.begins.shape[0]
        assert max(entries) <= sum(entries) / ranks + classes * layout.longest_row
