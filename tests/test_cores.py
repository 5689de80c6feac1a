"""Cores of communities by a kernel, and graphs cut out by all cores, against plain twins."""

import os
import signal
import threading
import time
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from glp_rapids import as_graph
from glp_rapids.device import to_device, to_host
from glp_rapids.fraud import cores
from glp_rapids.fraud.kernels import cpu_cores
from glp_rapids.fraud.totals import traded_inside
from glp_rapids.graph import subgraph, subgraph_cpu

WEIGHTS = (None, np.int64, np.float32)


def drawn(random, vertices, edges, dtype):
    """A graph with self-loops and vertices without edges, weighted or not."""
    ends = random.integers(0, vertices, (2, edges))
    weights = () if dtype is None else (random.integers(1, 9, edges).astype(dtype),)
    return as_graph((*ends, *weights), vertices=range(vertices + 2), device="cpu")


def test_integers_go_to_the_kernel_and_floats_do_not():
    random = np.random.default_rng(0)
    answers = [cores._for_kernel(drawn(random, 5, 9, dtype)) for dtype in WEIGHTS]
    assert answers == [True, True, False]
    empty = as_graph((np.empty(0, int), np.empty(0, int)), vertices=range(3), device="cpu")
    assert not cores._for_kernel(empty)


@given(
    seed=st.integers(0, 2**32), dtype=st.sampled_from(WEIGHTS), groups=st.integers(1, 4),
    share=st.sampled_from([0.0, 0.25, 0.5]), partners=st.integers(1, 4),
)  # fmt: skip
def test_cores_are_those_of_whole_arrays(seed, dtype, groups, share, partners):
    random = np.random.default_rng(seed)
    graph = drawn(random, 20, 45, dtype)
    total, group = graph.row_weights(), random.integers(0, groups, graph.number_of_vertices)
    agreed = group[graph.row_indices()] == group[graph.indices]
    inner, left = cores.largest_core(graph, total, share, partners)
    expected, expected_left = subgraph.largest_core(graph, total, share, partners)
    assert left.tolist() == expected_left.tolist()
    assert inner.indices.tolist() == expected.indices.tolist()

    found, number, trade = cores.connected_core(graph, agreed, total, share, partners)
    same = subgraph.inside(graph, found) & (found >= 0)[graph.row_indices()]
    weights = np.ones(same.size) if graph.weights is None else graph.weights
    for inside, counted in ((number, same), (trade, same * weights)):
        sums = np.bincount(graph.row_indices(), counted, minlength=found.size)
        assert np.allclose(inside[found >= 0], sums[found >= 0], rtol=1e-12)
    assert found.tolist() == subgraph.connected_core(graph, agreed, total, share, partners).tolist()
    edges = zip(graph.row_indices()[agreed], graph.indices[agreed], strict=True)
    whole = nx.Graph(list(edges))
    for name in set(found[found >= 0]):
        members = np.flatnonzero(found == name)
        assert name == members[0]
        assert len(members) == 1 or nx.is_connected(whole.subgraph(members.tolist()))


def test_ctrl_c_ends_a_search_for_cores(monkeypatch):
    """The kernel is told, whoever calls it, and leaves."""
    graph = drawn(np.random.default_rng(0), 900, 5_000, None)
    given = graph, np.ones(graph.indices.size, bool), graph.row_weights(), 0.0, 2
    expected = cores.connected_core(*given)  # compiled
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    kernel, seen = cpu_cores.cut_cores, []

    def for_long(*arguments):
        end = time.monotonic() + 60
        while not arguments[-1][0] and time.monotonic() < end:
            kernel(*arguments)
        seen.append(arguments[-1][0])

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # may be ignored here
    try:
        with monkeypatch.context() as patch:
            patch.setattr(cpu_cores, "cut_cores", for_long)
            timer.start()
            with pytest.raises(KeyboardInterrupt):
                cores.connected_core(*given)
    finally:
        signal.signal(signal.SIGINT, before)
    assert seen == [1]
    for one, other in zip(cores.connected_core(*given), expected, strict=True):
        assert np.array_equal(one, other)
    stopped = np.full(graph.number_of_vertices, 1)
    cpu_cores.cut_cores(
        graph.indptr, graph.indices, np.empty(0, np.int64), np.int64(999), given[2], given[1],
        stopped, *np.empty((2, stopped.size), np.int64), np.ones(1, np.uint8),
    )  # fmt: skip
    assert (stopped == 1).all()


@pytest.mark.parametrize("dtype", WEIGHTS)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 1.0])
def test_what_is_cut_out_is_what_a_matrix_slices(dtype, share):
    random = np.random.default_rng(1)
    graph = drawn(random, 9_000, 60_000, dtype)
    size = graph.number_of_vertices
    kept = np.flatnonzero(random.random(size) < share)
    assert share < 0.5 or kept.size > subgraph_cpu.WORTH_THREADS  # several threads
    weights = np.ones(graph.indices.size) if dtype is None else graph.weights
    matrix = sparse.csr_array((weights, graph.indices, graph.indptr), (size, size))
    found, expected = subgraph.induced(graph, kept), matrix[kept][:, kept]
    assert found.indptr.tolist() == expected.indptr.tolist()
    assert found.indices.tolist() == expected.indices.tolist()
    assert found.indices.dtype == graph.indices.dtype
    if dtype is None:
        assert found.weights is None
    else:
        assert found.weights.dtype == dtype
        assert found.weights.tolist() == expected.data.tolist()


@given(
    seed=st.integers(0, 2**32), groups=st.integers(1, 3), number=st.integers(0, 20),
    index=st.sampled_from([np.int32, np.int64]),
)  # fmt: skip
def test_what_is_traded_inside_groups(device, seed, groups, number, index):
    random = np.random.default_rng(seed)
    graph = drawn(random, 20, 60, np.int64)
    graph = replace(graph, indices=graph.indices.astype(index), _derived={})
    rows = np.sort(random.permutation(graph.number_of_vertices)[:number])
    group = random.integers(0, groups, rows.size)
    of = dict(zip(rows.tolist(), group.tolist(), strict=True))
    expected = dict.fromkeys(of, 0)
    for v, u, weight in zip(graph.row_indices(), graph.indices, graph.weights, strict=True):
        if u != v and v in of and of[v] == of.get(u):
            expected[v] += weight
    given = (to_device(values, device) for values in (rows, group))
    found = traded_inside(graph.to(device), *given)
    assert to_host(found).tolist() == list(expected.values())
