"""GPUs that do not hold a graph together: each streams its part, and labels are the same."""

import graphs
import numpy as np
import one_gpu
import pytest
from cases import some
from memory_limits import EVERY, SELECTED, assert_same, bare, directions, large, least, reported
from test_several_gpu import needs_two

from glp_rapids import as_graph, label_propagation
from glp_rapids.multigpu.exchange import RankFailed
from glp_rapids.outofcore import pinned
from glp_rapids.propagation import call, part_memory
from glp_rapids.propagation.engines import gpu_streamed, rank_streamed
from glp_rapids.propagation.gpu_memory import gpu_bytes_of

pytestmark = pytest.mark.gpu
STREAMED = {"way": "streamed plain"}
REPORTING = [program for program in EVERY if program != "ordering"]


def in_short_strips(patch, sparse):
    """Let strips be short, and copied, fetched row by row, or what the census says."""
    patch.setattr(gpu_streamed, "MOST", 1 << 12)
    patch.setattr(gpu_streamed, "LEAST", 1 << 10)
    patch.setattr(gpu_streamed, "MOST_OF_CLASS", 1 << 12)
    patch.setattr(gpu_streamed, "SPARSE", sparse)


def compared(program, graph, devices):
    for direction in directions(graph):
        run = EVERY[program]
        expected = run(graph, direction=direction, device="cpu")
        for sparse in (0.0, gpu_streamed.SPARSE, np.inf):
            with pytest.MonkeyPatch.context() as patch:
                in_short_strips(patch, sparse)
                found = run(graph, direction=direction, devices=devices, **STREAMED)
            if program == "ordering":
                assert found.equals(expected)
                continue
            assert_same(found, expected)
            report = reported(found)
            assert (report["way"], report["exchange"]) == ("streamed plain", "copies")
            assert len(report["ranks"]) == len(devices)
            moved = [rank["bytes_over_bus"] for rank in report["ranks"]]
            assert report["bytes_over_bus"] == sum(moved)


@pytest.mark.parametrize("program", some(EVERY, "classic", "seeded", "wavering", "counting"))
def test_ranks_that_share_a_gpu(program, monkeypatch):
    one_gpu.patched(monkeypatch)
    for name in SELECTED:
        compared(program, as_graph(**graphs.GRAPHS[name](), device="cpu"), [0, 0, 0])
    compared(program, large(2_000, 60_000), [0, 0])


@needs_two
@pytest.mark.parametrize("devices", [[0, 1], [1, 0], [1]])
@pytest.mark.parametrize("program", some(EVERY, "classic", "counting"))
def test_two_gpus(program, devices):
    for name in SELECTED:
        compared(program, as_graph(**graphs.GRAPHS[name](), device="cpu"), devices)
    compared(program, large(20_000, 300_000), devices)
    compared(program, large(9_000, 90_000, weighted=True, directed=True), devices)


def within(run, graph, devices):
    """Run within limits from the least on; each GPU keeps to it."""
    expected = run(bare(graph), device="cpu")
    low, high = least(run, graph, devices=devices, **STREAMED), gpu_bytes_of(graph)
    moved = []
    for share in (0, 5, 20, 60):
        limit = low + (high - low) * share // 100
        for _ in range(2):  # again with what the first left pinned
            found = run(graph, devices=devices, memory_limit=limit, **STREAMED)
            assert_same(found, expected)
            report = reported(found)
            assert report["predicted"] <= limit
            # ranks that share a GPU share what is watched there, too
            if len(set(devices)) == len(devices):
                assert all(rank["peak"] <= limit for rank in report["ranks"])
        moved.append(report["bytes_over_bus"])
    assert moved == sorted(moved, reverse=True)


@needs_two
@pytest.mark.parametrize("program", some(REPORTING, "classic", "counting"))
def test_a_limit_holds_on_each(program, monkeypatch):
    monkeypatch.setattr(gpu_streamed, "MOST", 1 << 17)
    monkeypatch.setattr(gpu_streamed, "LEAST", 1 << 15)
    for how in ({}, {"weighted": True, "directed": True}):
        within(EVERY[program], large(40_000, 1_000_000, **how), [0, 1])


@needs_two
def test_what_parts_have_no_room_for_is_streamed_to_both():
    graph = large(40_000, 2_000_000)
    expected = label_propagation(graph, device="cpu")
    limit = least(label_propagation, graph, devices=[0, 1], way="plain")
    found = label_propagation(graph, devices=[0, 1], memory_limit=limit)
    assert found.attrs["glp"]["way"] == "plain"
    for _ in range(2):
        found = label_propagation(graph, devices=[0, 1], memory_limit=limit - 1)
        assert_same(found, expected)
        report = found.attrs["glp"]
        assert report["way"] == "streamed plain"
        assert [rank["device"] for rank in report["ranks"]] == [0, 1]
        assert all(rank["peak"] < limit for rank in report["ranks"])
        assert all(rank["bytes_over_bus"] > 0 for rank in report["ranks"])
    again = label_propagation(graph, devices=[0, 1], memory_limit=limit - 1, initial=expected)
    assert_same(again, label_propagation(graph, device="cpu", initial=expected))


@needs_two
def test_without_devices_it_is_streamed_to_both(monkeypatch):
    graph = large(40_000, 2_000_000)
    monkeypatch.setattr(call, "LITTLE", 0)
    monkeypatch.setattr(call, "free_on_gpu", lambda: gpu_bytes_of(graph) // 2)
    monkeypatch.setattr(part_memory, "free_on_gpu", lambda: 5_000_000)
    found = label_propagation(graph, device="gpu")
    assert_same(found, label_propagation(bare(graph), device="cpu"))
    report = found.attrs["glp"]
    assert report["way"] == "streamed plain"
    assert [rank["device"] for rank in report["ranks"]] == [0, 1]


@needs_two
def test_nothing_stays_on_either():
    import cupy

    graph = large()
    label_propagation(graph, devices=[0, 1], **STREAMED)
    used = []
    for _ in range(2):
        label_propagation(graph, devices=[0, 1], **STREAMED)
        for device in (0, 1):
            with cupy.cuda.Device(device):
                used.append(cupy.get_default_memory_pool().used_bytes())
    assert used[:2] == used[2:]


@needs_two
def test_memory_that_cannot_be_pinned(monkeypatch):
    def ordinary(size, dtype, device="gpu"):
        return pinned.HostArray(np.empty(max(int(size), 1), dtype), pinned=False)

    monkeypatch.setattr(pinned, "empty", ordinary)
    for directed in (False, True):
        graph = large(directed=directed)
        found = label_propagation(graph, devices=[0, 1], **STREAMED)
        assert_same(found, label_propagation(graph, device="cpu"))
        assert not found.attrs["glp"]["pinned"]
    with pytest.raises(MemoryError, match="cannot be pinned"):
        EVERY["counting"](graph, devices=[0, 1], **STREAMED)


@needs_two
def test_a_rank_that_fails_leaves_its_gpu_usable(monkeypatch):
    graph = large(20_000, 300_000)

    def failing(engine, schedule, before):
        if engine._exchange.rank:
            raise OSError("no more")
        return record(engine, schedule, before)

    record = rank_streamed.StreamedRankEngine._record
    with monkeypatch.context() as patch:
        patch.setattr(rank_streamed.StreamedRankEngine, "_record", failing)
        with pytest.raises((OSError, RankFailed), match="no more"):
            label_propagation(graph, devices=[0, 1], **STREAMED)
    found = label_propagation(graph, devices=[0, 1], **STREAMED)
    assert_same(found, label_propagation(bare(graph), device="cpu"))


@needs_two
def test_what_is_on_a_gpu_is_not_streamed():
    with pytest.raises(ValueError, match=r"pass graph.to\('cpu'\)"):
        label_propagation(large().to("gpu"), devices=[0, 1], **STREAMED)
