"""Ranks that stream their own rows, on a model of the kernels: the labels are those of one."""

import contextlib
from functools import partial
from itertools import product

import cuda_offline
import graphs
import numpy as np
import pytest
import reference
from cases import exhaustive
from memory_limits import assert_same, directions, large
from streamed_model import StreamedModel

from glp_rapids import as_graph, label_propagation
from glp_rapids.propagation import engines

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from glp_rapids.propagation.engines import (
    gpu_streamed,
    partitioned_gpu,
    partitioned_streamed,
    rank_streamed,
)

# The model counts votes of one, and does not look what a row says twice.
UNIT = ["only isolated", "one vertex", "self-loops", "two cliques", "hub", "power law", "directed",
        "directed reciprocal", "directed star", "strings"]  # fmt: skip


@pytest.fixture(scope="module")
def modelled():
    """Let runs on host arrays go to so many ranks, whose kernels are modelled in NumPy."""
    engine_of = engines.engine_of
    with pytest.MonkeyPatch.context() as patch, cuda_offline.compiling(patch, (9, 0)):
        _, target = engine_of("gpu", "streamed plain")
        patch.setattr(partitioned_gpu, "current_gpu", lambda number: contextlib.nullcontext())
        patch.setattr(partitioned_gpu, "watched", lambda *_: contextlib.nullcontext())
        patch.setattr(partitioned_gpu, "_copied", lambda value: np.copy(value)[()])
        patch.setattr(partitioned_streamed, "reach_one_another", lambda devices: True)

        def model(graph, ranks):
            ids = graph.external(np.arange(graph.number_of_vertices)).tolist()
            made = StreamedModel([reference.id_word(one) for one in ids])
            for module in (gpu_streamed, rank_streamed):
                patch.setattr(module, "launch", made.launch)
            patch.setattr(gpu_streamed, "prepared_together", made.prepared_together)
            several = partial(
                partitioned_streamed.PartitionedStreamedEngine, devices=tuple(range(ranks))
            )
            patch.setattr(
                engines, "engine_of",
                lambda _, way, *more: (
                    (several, target) if way == "streamed plain" else engine_of("cpu", way)
                ),
            )  # fmt: skip
            return made

        yield model


def cut(stays, size):
    """Let a share of the entries stay, and strips have so many."""

    def sizes(engine, *_):
        return int(stays * engine._layout.number_of_entries), max(size, engine._layout.longest_row)

    return sizes


RUNS = [
    {}, {"update": "sync", "max_iter": 9}, {"explore": 0, "classes": 5}, {"skip_inactive": False},
    {"retain": False, "tie_break": "max", "classes": 7},
]  # fmt: skip


@pytest.mark.parametrize("ranks", [2, 3, *exhaustive(1, 7)])
@pytest.mark.parametrize("how", RUNS, ids=str)
def test_labels_are_those_of_one_device(modelled, monkeypatch, how, ranks):
    graph = large(300, 1_500)
    how = {"seed": 3, "tol": 0.0, "max_iter": 25, **how}
    expected = label_propagation(graph, **how)
    # from how many changes on everybody is evaluated; what stays, and how long strips are
    choices = (0.0, 1), (0.3, 100), (0.3, 1 << 20), (1.0, 1)
    for few, (stays, size) in product((1, gpu_streamed.FEW), choices):
        model = modelled(graph, ranks)
        monkeypatch.setattr(gpu_streamed, "FEW", few)
        monkeypatch.setattr(
            gpu_streamed.StreamedGpuEngine, "_sizes_of_strips", cut(stays, size)
        )
        found = label_propagation(graph, way="streamed plain", **how)
        assert_same(found, expected)
        assert model.launched
        if few == 1 and "update" not in how:
            assert (model.left_out > 0) == how.get("skip_inactive", True)
        report = found.attrs["glp"]
        assert [rank["device"] for rank in report["ranks"]] == list(range(ranks))
        over_bus = [rank["bytes_over_bus"] for rank in report["ranks"]]
        assert report["bytes_over_bus"] == sum(over_bus) >= graph.indices.nbytes
        assert (report["share_cached"] == stays) == (stays in (0, 1))


@pytest.mark.parametrize("name", UNIT)
def test_awkward_graphs(modelled, monkeypatch, name):
    monkeypatch.setattr(gpu_streamed.StreamedGpuEngine, "_sizes_of_strips", cut(0.2, 9))
    graph = as_graph(**graphs.GRAPHS[name](), device="cpu")
    for direction in directions(graph):
        expected = label_propagation(graph, direction=direction)
        for ranks in (2, 3):
            modelled(graph, ranks)
            found = label_propagation(graph, direction=direction, way="streamed plain")
            assert_same(found, expected)


@pytest.mark.parametrize("directed", [False, True])
def test_single_rows_are_read_over_the_bus_where_few_are_active(modelled, monkeypatch, directed):
    monkeypatch.setattr(gpu_streamed.StreamedGpuEngine, "_sizes_of_strips", cut(0.0, 100))
    monkeypatch.setattr(gpu_streamed, "FEW", 1)
    graph, filled = large(300, 1_500, directed=directed), set()

    def cheap(engine, revisit_tied):  # which strips are fetched each rank decides alone
        return set(engine._coming[engine._exchange.rank :])

    def entries(model, strip, position, plan, rows, lists, step):
        filled.add(bool(step.filled))
        start = plan.starts[position]
        return lists.entries[start : start + plan.degrees[position]]

    monkeypatch.setattr(gpu_streamed.StreamedGpuEngine, "_cheap", cheap)
    monkeypatch.setattr(StreamedModel, "_entries", entries)
    expected = label_propagation(graph, tol=0.0)
    modelled(graph, 2)
    assert_same(label_propagation(graph, way="streamed plain", tol=0.0), expected)
    assert filled == {False, True}


def test_what_cannot_be_pinned_on_one_rank_is_skipped_on_none(modelled, monkeypatch):
    graph = large(300, 1_500)
    expected = label_propagation(graph, tol=0.0)
    monkeypatch.setattr(gpu_streamed, "FEW", 1)
    monkeypatch.setattr(gpu_streamed.StreamedGpuEngine, "_sizes_of_strips", cut(0.0, 100))
    engine = rank_streamed.StreamedRankEngine
    monkeypatch.setattr(
        engine, "_all",
        lambda self, holds: all(self._exchange.tell(holds and self._exchange.rank != 1)),
    )  # fmt: skip
    model = modelled(graph, 3)
    assert_same(label_propagation(graph, way="streamed plain", tol=0.0), expected)
    assert model.left_out == 0


def test_a_rank_that_fails_ends_all(modelled, monkeypatch):
    def failing(engine, schedule, before):
        if engine._exchange.rank:
            raise OSError("no more")
        return record(engine, schedule, before)

    graph, record = large(300, 1_500), rank_streamed.StreamedRankEngine._record
    modelled(graph, 2)
    with monkeypatch.context() as patch:
        patch.setattr(rank_streamed.StreamedRankEngine, "_record", failing)
        with pytest.raises(OSError, match="no more"):
            label_propagation(graph, way="streamed plain")
    found = label_propagation(graph, way="streamed plain")
    assert_same(found, label_propagation(graph))


def test_lists_stay_for_the_next_run_and_go_where_others_are_laid_out(modelled):
    graph = large(300, 1_500)
    kept = graph.keep(("kept", None), dict)
    modelled(graph, 2)
    laid = []
    for seed in (1, 2):
        label_propagation(graph, way="streamed plain", seed=seed)
        (parts,) = (value for key, value in kept.items() if key[0] == "parts")
        laid.append([own["strips"][1] for _, _, own in parts])
    assert all(one is other for one, other in zip(*laid, strict=True))
    label_propagation(graph, way="streamed plain", classes=3)
    assert sum(key[0] == "parts" for key in kept) == 1
