"""GPUs that share a graph in host memory: what none of them holds alone, within a limit each."""

import numpy as np
import one_gpu
import pytest
from cases import some
from memory_limits import EVERY, assert_same, bare, directions, large, least, reported
from test_several_gpu import needs_two

from glp_rapids import label_propagation
from glp_rapids.multigpu.exchange import RankFailed
from glp_rapids.propagation import call, part_memory
from glp_rapids.propagation import run as run_of_programs
from glp_rapids.propagation.engines import rank_gpu
from glp_rapids.propagation.gpu_memory import gpu_bytes_of

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("pool_of_cupy")]


def within(program, graph, devices):
    for direction in directions(graph):
        run = EVERY[program]
        expected = run(bare(graph), direction=direction, device="cpu")
        limit = least(run, graph, direction=direction, devices=devices, way="plain")
        for _ in range(2):  # again with what the first left there
            found = run(graph, direction=direction, devices=devices, memory_limit=limit)
            if program == "ordering":
                assert found.equals(expected)
                continue
            assert_same(found, expected)
            report = reported(found)
            assert report["way"] == "plain"
            assert report["peak"] <= report["predicted"] == limit
            assert len(report["ranks"]) == len(devices)


@pytest.mark.parametrize("program", some(EVERY, "classic", "seeded", "wavering"))
def test_ranks_that_share_a_gpu(program, monkeypatch):
    one_gpu.patched(monkeypatch)
    for graph in (large(20_000, 300_000), large(9_000, 90_000, weighted=True, directed=True)):
        within(program, graph, [0, 0, 0])


@needs_two
@pytest.mark.parametrize("devices", [[0, 1], [1, 0], [1]])
@pytest.mark.parametrize("program", some(EVERY, "classic", "counting"))
def test_two_gpus(program, devices):
    for graph in (large(20_000, 300_000), large(9_000, 90_000, weighted=True, directed=True)):
        within(program, graph, devices)


@needs_two
def test_a_graph_that_fits_no_single_gpu_runs_on_two_in_memory():
    graph = large(40_000, 2_000_000)
    limit = least(label_propagation, graph, devices=[0, 1], way="plain")
    assert limit < 0.7 * gpu_bytes_of(graph)
    expected = label_propagation(graph, device="cpu")
    alone = label_propagation(graph, device="gpu", memory_limit=limit)
    assert alone.attrs["glp"]["way"] == "streamed plain"
    found = label_propagation(graph, devices=[0, 1], memory_limit=limit)
    assert_same(found, expected)
    assert_same(alone, expected)
    again = label_propagation(graph, devices=[0, 1], memory_limit=limit, initial=expected,
                              touched=np.arange(9))  # fmt: skip
    assert_same(again, label_propagation(graph, device="cpu", initial=expected))


@needs_two
def test_without_devices_two_share_what_one_cannot_hold(monkeypatch):
    graph = large(40_000, 2_000_000)
    expected = label_propagation(graph, device="cpu")
    monkeypatch.setattr(call, "LITTLE", 0)
    monkeypatch.setattr(call, "free_on_gpu", lambda: gpu_bytes_of(graph) // 2)
    found = label_propagation(graph, device="gpu")
    assert_same(found, expected)
    assert [rank["device"] for rank in found.attrs["glp"]["ranks"]] == [0, 1]
    monkeypatch.setattr(part_memory, "free_on_gpu", lambda: 1 << 20)
    found = label_propagation(bare(graph), device="gpu")
    assert_same(found, expected)
    assert found.attrs["glp"]["way"] == "streamed plain"


@needs_two
def test_without_devices_two_share_what_is_large(monkeypatch):
    graph = large(40_000, 2_000_000)
    expected = label_propagation(graph, device="cpu")
    monkeypatch.setattr(run_of_programs, "SHARED_FROM", graph.number_of_edges)
    found = label_propagation(graph.to("gpu"))
    assert_same(found, expected)
    assert [rank["device"] for rank in found.attrs["glp"]["ranks"]] == [0, 1]
    assert "ranks" not in label_propagation(graph.to("gpu"), way="plain").attrs["glp"]


@needs_two
def test_a_rank_that_fails_leaves_its_gpu_usable(monkeypatch):
    graph = large(20_000, 300_000)
    limit = least(label_propagation, graph, devices=[0, 1], way="plain")

    def failing(engine, *arguments):
        if engine._exchange.rank:
            raise OSError("no more")
        return begin(engine, *arguments)

    begin = rank_gpu.GpuRankEngine._begin
    with monkeypatch.context() as patch:
        patch.setattr(rank_gpu.GpuRankEngine, "_begin", failing)
        with pytest.raises((OSError, RankFailed), match="no more"):
            label_propagation(graph, devices=[0, 1], memory_limit=limit)
    found = label_propagation(graph, devices=[0, 1], memory_limit=limit)
    assert_same(found, label_propagation(bare(graph), device="cpu"))
