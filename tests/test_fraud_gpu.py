"""Kernels of scores and of clusters on a GPU, against what the CPU finds on the same graphs."""

from dataclasses import replace

import numpy as np
import pytest

from glp_rapids import as_graph
from glp_rapids.common import segments
from glp_rapids.device import to_device, to_host
from glp_rapids.fraud import account_scores, cores
from glp_rapids.fraud.residual_engines import engine_of
from glp_rapids.fraud.system import Fixed, System
from glp_rapids.graph import subgraph

pytestmark = pytest.mark.gpu


def world(seed, size):
    """A graph of which the first vertices are hubs, in every second world: with weights or not."""
    random = np.random.default_rng(seed)
    edges = size * int(random.choice([2, 3, 6]))
    source = random.integers(0, size, edges)
    near = (source + random.integers(1, 9, edges)) % size
    hub = random.random(edges) < 0.2
    destination = np.where(hub, random.integers(0, 3, edges), near)
    if seed % 2:
        destination = random.integers(0, size, edges)
    weights = () if seed % 3 == 0 else (random.integers(1, 9, edges),)
    graph = as_graph((source, destination, *weights), vertices=range(size), device="cpu")
    return graph, random


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("size", [33, 4000])
def test_cores_and_their_pieces_are_those_of_a_cpu(seed, size):
    graph, random = world(seed, size)
    total = graph.row_weights() * random.choice([1, 1.3], size)
    there, total_there = graph.to("gpu"), to_device(total, "gpu")
    group = random.integers(0, 3, size) if seed % 4 else np.arange(size) // 9
    agreed = group[graph.row_indices()] == group[graph.indices]
    for limits in ((0.2, 2), (0.5, 1), (0.7, 2), (0.3, 3)):
        expected, left = subgraph.largest_core(graph, total, *limits)
        found, left_there = cores.largest_core(there, total_there, *limits)
        assert np.array_equal(to_host(left_there), left)
        assert np.array_equal(to_host(found.indices), expected.indices)
        expected = cores.connected_core(graph, agreed, total, *limits)
        found = cores.connected_core(there, to_device(agreed, "gpu"), total_there, *limits)
        members = expected.community >= 0
        assert np.array_equal(to_host(found.community), expected.community)
        for one, other in zip(found[1:], expected[1:], strict=True):
            assert np.array_equal(to_host(one)[members], other[members])


@pytest.mark.parametrize("searched", [0, segments.SEARCHED])
def test_segments_of_elements_are_those_of_a_cpu(searched, monkeypatch):
    monkeypatch.setattr(segments, "SEARCHED", searched)
    for sizes in ([], [0, 0], [3], np.random.default_rng(0).integers(0, 4, 3000)):
        offsets = segments.segment_offsets(np.array(sizes, np.int64))
        for dtype in (np.int32, np.int64):
            found = segments.segment_ids(to_device(offsets, "gpu"), dtype)
            assert found.dtype == dtype
            assert np.array_equal(to_host(found), segments.segment_ids(offsets, dtype))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("entries", [2000, 10**9])
def test_pushes_are_those_of_a_cpu(seed, entries):
    graph, _ = world(seed, 4000)
    for tol in (1e-3, 1e-7):
        outcomes = []
        for one in (graph, graph.to("gpu")):
            seeds, none = (to_device(np.array(ids, int), one.device) for ids in ([0, 2, 7], []))
            system = System(one, Fixed(seeds, none), 0.85, tol)
            engine, numbers = engine_of(system), system.clamped(system.clamp)
            residual = engine.residuals(numbers)
            made = engine.push(numbers, residual, system.allowed, entries, 500)
            outcomes.append((tuple(made), to_host(numbers), to_host(residual)))
        assert all(map(np.array_equal, *outcomes))


WAIT = """
extern "C" __global__ void wait(long long ticks) {
    long long begin = clock64();
    while (clock64() - begin < ticks) {}
}"""


@pytest.mark.parametrize("seed", [0, 1])
def test_a_solver_works_on_the_stream_it_is_called_on(seed):
    import cupy

    graph, _ = world(seed, 4000)
    expected = account_scores(graph, [0, 2, 7])["score"].to_numpy()
    there = graph.to("gpu")
    wait = cupy.RawKernel(WAIT, "wait")
    for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
        with stream:
            # what ran on another stream would read arrays that this one has not written yet
            wait((1,), (1,), (100_000_000,))
            found = account_scores(replace(there, _derived={}), [0, 2, 7])
            assert np.array_equal(to_host(found["score"].to_numpy()), expected)
