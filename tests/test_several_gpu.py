"""Several GPUs share a graph, or ranks share a GPU: labels and changes are those of a CPU."""

import _thread
import threading
import time

import graphs
import numpy as np
import one_gpu
import pytest
from cases import some
from memory_limits import EVERY, SELECTED, assert_same, directions, large

from glp_rapids import as_graph, label_propagation
from glp_rapids.device import gpu_available
from glp_rapids.multigpu.exchange import RankFailed
from glp_rapids.multigpu.peers import reach_one_another
from glp_rapids.propagation.engines import partitioned_gpu, rank_peers
from glp_rapids.propagation.engines.rank_gpu import GpuRankEngine

pytestmark = pytest.mark.gpu


def gpus():
    if not gpu_available():
        return 0
    import cupy

    return cupy.cuda.runtime.getDeviceCount()


def needs_peer_access():
    if gpus() > 1 and not reach_one_another((0, 1)):
        pytest.skip("the GPUs cannot write to one another's memory")


@pytest.fixture(params=sorted(partitioned_gpu.EXCHANGES))
def exchange(request, monkeypatch):
    if request.param == "peer stores":
        needs_peer_access()
    monkeypatch.setattr(partitioned_gpu, "chosen", request.param)
    return request.param


def needs_two(test):
    # In one process: kernels of two that wait for their peers would take turns on both GPUs.
    skipping = pytest.mark.skipif(gpus() < 2, reason="there are no two GPUs")
    return pytest.mark.xdist_group("two GPUs")(skipping(test))


def compared(program, graph, devices):
    for direction in directions(graph):
        expected = EVERY[program](graph, direction=direction, device="cpu")
        found = EVERY[program](graph.to("gpu"), direction=direction, devices=devices)
        if program == "ordering":
            assert found.equals(expected)
        else:
            assert_same(found, expected)


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("program", some(EVERY, "classic", "seeded", "wavering"))
def test_ranks_that_share_a_gpu(program, ranks, monkeypatch):
    one_gpu.patched(monkeypatch)
    for name in SELECTED:
        compared(program, as_graph(**graphs.GRAPHS[name](), device="cpu"), [0] * ranks)
    compared(program, large(2_000, 60_000, weighted=True), [0] * ranks)


@pytest.mark.parametrize("program", some(EVERY, "classic", "seeded", "counting"))
def test_a_rank_stores_into_its_own_inbox(program, monkeypatch):
    monkeypatch.setattr(partitioned_gpu, "chosen", "peer stores")
    for name in SELECTED:
        compared(program, as_graph(**graphs.GRAPHS[name](), device="cpu"), [0])
    compared(program, large(2_000, 60_000, weighted=True), [0])


@needs_two
@pytest.mark.parametrize("devices", [[0, 1], [1, 0], [1]])
@pytest.mark.parametrize("program", some(EVERY, "classic", "counting"))
def test_two_gpus(program, devices, exchange):
    for name in SELECTED:
        compared(program, as_graph(**graphs.GRAPHS[name](), device="cpu"), devices)
    compared(program, large(2_000, 60_000), devices)


@needs_two
def test_runs_one_after_the_other_share_what_is_kept(exchange):
    graph = large(5_000, 100_000).to("gpu")
    expected = label_propagation(graph, device="gpu")
    for options in ({}, {"seed": 3}, {"update": "sync", "max_iter": 4}, {}):
        expected = label_propagation(graph, **options)
        found = label_propagation(graph, devices=[0, 1], **options)
        assert_same(found, expected)
        assert found.attrs["glp"]["exchange"] == exchange
    again = label_propagation(graph, devices=[0, 1], initial=expected, touched=np.arange(9))
    assert_same(again, label_propagation(graph, initial=expected, touched=np.arange(9)))


@needs_two
def test_a_run_that_hashes_nothing_leaves_the_ids_to_the_next(exchange):
    ends = np.random.default_rng(5).integers(0, 3_000, (2, 20_000))
    graph = as_graph(tuple(np.char.add("v", end.astype(str)) for end in ends), device="gpu")
    for options in ({"explore": 0, "tie_break": "min"}, {}):
        expected = label_propagation(graph, update="sync", max_iter=4, **options)
        found = label_propagation(graph, update="sync", max_iter=4, devices=[0, 1], **options)
        assert_same(found, expected)


@needs_two
def test_gpus_that_cannot_reach_one_another_use_nccl(monkeypatch):
    needs_peer_access()
    graph = large(2_000, 60_000).to("gpu")
    assert label_propagation(graph, devices=[0, 1]).attrs["glp"]["exchange"] == "peer stores"
    monkeypatch.setattr(partitioned_gpu, "reach_one_another", lambda devices: False)
    found = label_propagation(graph, devices=[0, 1])
    assert found.attrs["glp"]["exchange"] == "nccl"
    assert_same(found, label_propagation(graph))


@needs_two
def test_an_error_of_one_gpu_ends_the_run_and_the_next_one_works(monkeypatch, exchange):
    graph = large(2_000, 60_000).to("gpu")
    exchanged, prepared = GpuRankEngine._exchanged, rank_peers.prepared_together

    def failing(engine):
        if engine._exchange.rank == 1:
            raise KeyError("lost")
        return exchanged(engine)

    def failing_to_launch(*arguments):  # while the kernel of the other rank waits for this one's
        import cupy

        begin = prepared(*arguments)
        if cupy.cuda.runtime.getDevice() == 0:
            return begin

        def lost(_):
            time.sleep(0.5)
            raise KeyError("lost")

        return lost

    with monkeypatch.context() as patch:
        patch.setattr(GpuRankEngine, "_exchanged", failing)
        patch.setattr(rank_peers, "prepared_together", failing_to_launch)
        with pytest.raises(KeyError, match="lost"):
            label_propagation(graph, devices=[0, 1])
    assert_same(label_propagation(graph, devices=[0, 1]), label_propagation(graph))


@needs_two
def test_a_rank_that_never_comes_is_given_up(monkeypatch):
    needs_peer_access()
    graph = large(2_000, 60_000).to("gpu")
    monkeypatch.setattr(partitioned_gpu, "chosen", "peer stores")
    expected, prepared = label_propagation(graph), rank_peers.prepared_together

    def not_launching(*arguments):
        import cupy

        return prepared(*arguments) if cupy.cuda.runtime.getDevice() == 0 else (lambda _: None)

    with monkeypatch.context() as patch:
        patch.setattr("glp_rapids.multigpu.exchange.PATIENCE", 2.0)
        patch.setattr(rank_peers, "prepared_together", not_launching)
        with pytest.raises(RankFailed, match="did not come"):
            label_propagation(graph, devices=[0, 1])
    assert_same(label_propagation(graph, devices=[0, 1]), expected)


@needs_two
def test_ctrl_c_ends_the_run_of_all_gpus_and_the_next_one_works(exchange):
    graph = large(2_000, 60_000).to("gpu")
    label_propagation(graph, devices=[0, 1])  # compiles, and makes communicators

    def again_and_again():
        while True:
            label_propagation(graph, devices=[0, 1])

    timer = threading.Timer(2.0, _thread.interrupt_main)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        again_and_again()
    timer.join()
    assert_same(label_propagation(graph, devices=[0, 1]), label_propagation(graph))


def test_bad_gpus():
    graph = graphs.GRAPHS["two cliques"]()
    with pytest.raises(ValueError, match=r"must name each GPU once, not \[0, 0\]"):
        label_propagation(**graph, devices=[0, 0])
    with pytest.raises(ValueError, match=r"in 0\.\.\d+, not 99"):
        label_propagation(**graph, devices=[0, 99])
    with pytest.raises(ValueError, match="device='cpu' is none of devices="):
        label_propagation(**graph, devices=[0], device="cpu")
