"""A GPU beside the host's cores changes how label propagation runs, and nothing else."""

from itertools import product

import graphs
import numpy as np
import pytest
from memory_limits import (
    EVERY,
    SELECTED,
    assert_an_interrupt_gives_memory_back,
    assert_same,
    bare,
    directions,
    large,
    least,
    reported,
)
from programs import PROGRAMS

import glp_rapids
from glp_rapids import as_graph, compress, label_propagation
from glp_rapids.outofcore import both_ends, pinned
from glp_rapids.propagation.gpu_memory import gpu_bytes_of

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
from head_start import giving

from glp_rapids.propagation.engines import gpu_streamed, hybrid

HYBRID = {"device": "gpu", "way": "hybrid"}
# A kernel is compiled for each program and type of weights, and for readers apart from rows.
KERNELS = {
    "unit": [name for name in SELECTED if "directed" not in name and "weights" not in name],
    "doubles": ["uneven weights", "weighted"],
    "directed": ["directed", "directed reciprocal"],
    "directed doubles": ["directed weighted"],
}
CASES = [
    *product(["classic"], KERNELS), ("layered", "unit"), ("speakers", "directed"),
    ("seeded", "doubles"), ("wavering", "directed"), ("counting", "directed doubles"),
]  # fmt: skip


def of_kernel(cases):
    """Cases that say which kernel they compile, so that one process runs all of it."""
    return [
        pytest.param(*case, marks=[pytest.mark.gpu, pytest.mark.xdist_group(" ".join(case))])
        for case in cases
    ]


@pytest.fixture
def shared(monkeypatch):
    """Let the host take rows of the smallest graph, and strips hold a row."""

    def give(share, size=1):
        monkeypatch.setattr(hybrid.HybridEngine, "_tell_host", giving(share))
        monkeypatch.setattr(both_ends, "UNIT", size)
        monkeypatch.setattr(hybrid, "COPY", 0.0)
        for name in ("MOST", "LEAST"):
            monkeypatch.setattr(gpu_streamed, name, size)

    return give


@pytest.mark.usefixtures("full_of_old")
@pytest.mark.parametrize(("program", "kernel"), of_kernel(CASES))
def test_any_program_in_strips_of_a_row(shared, program, kernel):
    run = EVERY[program]
    for name in KERNELS[kernel]:
        graph = as_graph(**graphs.GRAPHS[name](), device="cpu")
        for direction in directions(graph)[:2]:
            expected = run(graph, direction=direction, device="cpu")
            for share in (0.3, 1.0):
                print(program, name, direction, share)
                shared(share)
                found = run(graph, direction=direction, **HYBRID)
                assert_same(found, expected)
                assert reported(found)["way"] == "hybrid"


@pytest.mark.usefixtures("pool_of_cupy")
@pytest.mark.parametrize(("program", "kernel"), of_kernel(CASES))
def test_a_limit_holds(shared, program, kernel):
    weighted, directed = kernel.endswith("doubles"), kernel.startswith("directed")
    graph = large(40_000, 1_000_000, weighted=weighted, directed=directed)
    run = EVERY[program]
    expected = run(bare(graph), device="cpu")
    shared(0.4, 1 << 15)
    low, high = least(run, graph, **HYBRID), gpu_bytes_of(graph)
    shares = []
    for share in (0, 10, 50):
        limit = low + (high - low) * share // 100
        found = run(graph, memory_limit=limit, **HYBRID)
        assert_same(found, expected)
        report = reported(found)
        assert report["peak"] <= limit
        assert abs(report["predicted"] - report["peak"]) <= 0.1 * report["peak"]
        shares.append(report["share_of_host"])
    if not directed:  # most entries of those are of hubs
        assert max(shares) > 0.05, shares


plain_unit = [pytest.mark.gpu, pytest.mark.xdist_group("classic unit")]


def of_plain_votes(test):
    """Mark a test of the kernel of plain votes."""
    for mark in plain_unit:
        test = mark(test)
    return test


@of_plain_votes
@pytest.mark.parametrize("how", [{}, {"update": "sync"}, {"explore": 0}, {"skip_inactive": False}])
def test_larger_graphs_without_a_head_start(how):
    graph = large(200_000, 4_000_000)
    expected = label_propagation(graph, device="cpu", **how)
    for _ in range(3):
        assert_same(label_propagation(graph, **HYBRID, **how), expected)


@of_plain_votes
def test_what_is_gathered_is_for_the_gpu_alone(monkeypatch):
    graph = large()
    monkeypatch.setattr(pinned, "room_for", lambda size: False)
    found = label_propagation(bare(graph), **HYBRID)
    assert_same(found, label_propagation(graph, device="cpu"))
    assert found.attrs["glp"]["share_of_host"] == 0


@of_plain_votes
def test_an_interrupt_gives_memory_back(shared):
    shared(0.5, 1 << 12)
    assert_an_interrupt_gives_memory_back(large(), **HYBRID)


@of_plain_votes
def test_a_stream_of_the_callers_and_a_warm_start(shared):
    import cupy

    graph = large()
    shared(0.5, 1 << 12)
    initial = label_propagation(graph, device="cpu", max_iter=2)
    expected = label_propagation(graph, initial=initial, device="cpu")
    with cupy.cuda.Stream(non_blocking=True):
        found = label_propagation(graph, initial=initial, **HYBRID)
    assert_same(found, expected)


@pytest.mark.gpu
def test_what_fails_on_the_host_is_said(shared):
    class Loud(glp_rapids.Program):
        largest_amount = 1000.0

        @staticmethod
        def load_neighbor(v, u, weight, state):
            return state.labels[u], (1e6 if v == 7 else weight)

    pairs = np.array(graphs.power_law_pairs(300, 3000, 5)).T
    graph = as_graph((*pairs, np.ones(3000)), vertices=np.arange(300), device="cpu")
    said = []
    for how in ({"device": "cpu"}, HYBRID):
        shared(1.0)
        with pytest.raises(ValueError, match="vertex 7") as error:
            glp_rapids.propagate(graph, Loud(), **how)
        said.append(str(error.value))
    assert said[0] == said[1]


@of_plain_votes
def test_compressed_graphs_are_not_shared():
    packed = compress(large(), "packed", segment=128, device="cpu")
    with pytest.raises(ValueError, match="hybrid"):
        label_propagation(packed, **HYBRID)


def test_a_cpu_alone_has_no_part():
    for name in PROGRAMS:
        if name != "ordering":
            with pytest.raises(ValueError, match=r"not 'hybrid'; a CPU alone .*device='gpu'"):
                PROGRAMS[name](large(), device="cpu", way="hybrid")
