"""GPUs that share a graph in host memory which they do not hold: its lists come strip by strip."""

from functools import partial

import numpy as np
import one_gpu
import pytest
from cases import some
from memory_limits import EVERY, assert_same, bare, directions, large, least, reported
from test_several_gpu import needs_two

from glp_rapids import Program, compress, label_propagation, propagate
from glp_rapids.propagation.engines import gpu_streamed, partitioned_streams

pytestmark = [pytest.mark.gpu, pytest.mark.usefixtures("pool_of_cupy")]
WAY = {"way": "streamed plain"}


class Patient(Program):
    """Its update looks at scores, which without weights are of four bytes."""

    result_columns = ("heard",)

    def initial_state(self, graph):
        return {"heard": 0 * graph.degree}

    @staticmethod
    def update_vertex(v, label, score, state):
        state.heard[v] += score
        if score != 3:
            state.labels[v] = label


RUNS = {**EVERY, "patient": partial(propagate, program=Patient(), max_iter=6)}


@pytest.fixture(autouse=True)
def short_strips(monkeypatch):
    monkeypatch.setattr(gpu_streamed, "MOST", 1 << 17)
    monkeypatch.setattr(gpu_streamed, "LEAST", 1 << 15)


def streamed(program, graph, devices, of_each=True):
    for direction in directions(graph):
        run, how = RUNS[program], {"direction": direction, "devices": devices, **WAY}
        expected = run(bare(graph), direction=direction, device="cpu")
        low = least(run, graph, **how)
        for limit in (low, low + graph.number_of_edges, 1 << 30):
            found = run(graph, memory_limit=limit, **how)
            if program == "ordering":
                assert found.equals(expected)
                continue
            assert_same(found, expected)
            report = reported(found)
            assert report["way"] == "streamed plain"
            assert report["peak"] <= limit or not of_each
            assert report["predicted"] <= limit
            evaluated = sum(rank["vertices"] for rank in report["ranks"])
            assert evaluated == np.count_nonzero(np.diff(graph.rows(direction).indptr))


@pytest.mark.usefixtures("full_of_old")
@pytest.mark.parametrize("how", ["peer stores", "copies"])
@pytest.mark.parametrize(
    "program", some(RUNS, "classic", "synchronous", "seeded", "wavering", "patient")
)
def test_ranks_that_share_a_gpu(program, how, monkeypatch):
    one_gpu.patched(monkeypatch)
    monkeypatch.setattr(partitioned_streams, "how_of", lambda devices: how)
    for graph in (large(20_000, 300_000), large(9_000, 90_000, weighted=True, directed=True)):
        streamed(program, graph, [0, 0, 0], of_each=False)  # each counts what all take


def packed_streamed(devices, of_each=True):
    graph = large(20_000, 300_000)
    packed = compress(graph, "packed", segment=128, device="cpu")
    for how in ({}, {"update": "sync", "max_iter": 5}, {"explore": 0, "classes": 3}):
        expected = label_propagation(graph, device="cpu", **how)
        low = least(label_propagation, packed, devices=devices, **how)
        for limit in (low, low + packed.nbytes // 4, None):
            found = label_propagation(packed, devices=devices, memory_limit=limit, **how)
            assert_same(found, expected)
            report = found.attrs["glp"]
            assert (report["way"], report["changed"]) == (
                "streamed packed", expected.attrs["glp"]["changed"]
            )  # fmt: skip
            assert limit is None or not of_each or report["peak"] <= limit
    if of_each:  # nobody said how much may stay; with another allocator nobody knows
        assert report["share_cached"] == pytest.approx(1.0)


@pytest.mark.usefixtures("full_of_old")
@pytest.mark.parametrize("how", ["peer stores", "copies"])
def test_packed_lists_of_ranks_that_share_a_gpu(how, monkeypatch):
    one_gpu.patched(monkeypatch)
    monkeypatch.setattr(partitioned_streams, "how_of", lambda devices: how)
    packed_streamed([0, 0, 0], of_each=False)


@needs_two
def test_packed_lists_on_two_gpus():
    packed_streamed([0, 1])


def test_compressed_graphs_that_cannot_be_cut(monkeypatch):
    one_gpu.patched(monkeypatch)
    graph = large(2_000, 9_000)
    packed = compress(graph, "packed", segment=128, device="cpu")
    weighted = compress(large(2_000, 9_000, weighted=True), device="cpu")
    for given, how in (
        (packed.to("gpu"), {}), (weighted, {}), (packed, {"way": "plain"}),
        (packed, {"way": "streamed plain"}),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="cut for several GPUs where they are streamed"):
            label_propagation(given, devices=[0, 0], **how)
    with pytest.raises(ValueError, match=r"pass glp_rapids\.compress"):
        label_propagation(graph, devices=[0, 0], way="streamed packed")


@needs_two
@pytest.mark.parametrize("devices", [[0, 1], [1, 0]])
@pytest.mark.parametrize(
    "program", some(RUNS, "classic", "synchronous", "counting", "speakers", "patient")
)
def test_two_gpus(program, devices):
    for graph in (large(20_000, 300_000), large(9_000, 90_000, weighted=True, directed=True)):
        streamed(program, graph, devices)


@needs_two
def test_what_two_do_not_hold_comes_to_both():
    graph = large(40_000, 2_000_000)
    low = least(label_propagation, graph, devices=[0, 1], **WAY)
    assert low < least(label_propagation, graph, devices=[0, 1], way="plain")
    expected = label_propagation(graph, device="cpu")
    for _ in range(2):
        found = label_propagation(graph, devices=[0, 1], memory_limit=low)
        assert_same(found, expected)
        assert found.attrs["glp"]["way"] == "streamed plain"
    moved = [rank["bytes_over_bus"] for rank in found.attrs["glp"]["ranks"]]
    assert min(moved) > 0.3 * sum(moved)
