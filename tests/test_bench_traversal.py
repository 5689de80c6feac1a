"""Bench traversal and bench layers, beside other libraries."""

import pytest
from bench_tables import tables_of
from scipy import sparse

from glp_rapids import bfs
from glp_rapids.bench import subjects, timing, traversal


@pytest.mark.gpu
def test_traversal_is_measured_in_a_pool_of_rmm():
    pytest.importorskip("cudf")
    rmm = pytest.importorskip("rmm")
    usual = rmm.mr.get_current_device_resource()
    with timing.memory_pool():
        assert isinstance(rmm.mr.get_current_device_resource(), rmm.mr.PoolMemoryResource)
    asked = "--graphs", "road-20", "--repeats", "1", "--searches", "bfs", "--pool", "--peers"
    [(title, [row])] = tables_of("traversal", "--device", "gpu", *asked, "cuGraph").items()
    assert "in a pool of RMM" in title
    assert row["here"] > 0
    assert rmm.mr.get_current_device_resource() is usual


def test_traversal_is_measured_beside_scipy_and_networkit():
    [rows] = tables_of(
        "traversal", "--graphs", "road-20", "--repeats", "2", "--device", "cpu"
    ).values()
    assert [row["search"] for row in rows] == ["bfs", "sssp", "many", "layers"]
    assert all(row["fresh"] > 0 for row in rows)
    for row in rows[:2]:
        assert row["times SciPy"] == row["SciPy"] / row["ours"]
        assert row["times NetworKit"] == row["NetworKit"] / row["ours"]
    [[row]] = tables_of(
        "traversal", "--graphs", "road-20", "--repeats", "1", "--device", "cpu", "--searches",
        "bfs", "--peers",
    ).values()  # fmt: skip
    assert row["ours"] > 0
    assert not row.keys() & set(traversal.PEERS)  # without a name nobody is beside
    graph = traversal.with_whole_weights(subjects.load("road-20", "cpu"))
    matrix = sparse.csr_array((graph.weights, graph.indices, graph.indptr))
    assert (matrix != matrix.T).nnz == 0
    assert 1 <= graph.weights.min() < 40 < 200 < graph.weights.max() <= 255
    known = [bfs(graph, start, device="cpu")["distance"].tolist() for start in (0, 7)]
    peers = traversal._networkit(1, graph)
    assert [[*map(int, peers["bfs"](start).getDistances())] for start in (0, 7)] == [
        [2**63 - 1 if one == 2**31 - 1 else one for one in of_start] for of_start in known
    ]


def test_layers_are_measured_beside_near_far(device):
    options = ["--graphs", "road-20", "kron-10-64", "--repeats", "1", "--device", device]
    (_, (row, _)), (_, (small, dense)) = tables_of("layers", *options).items()
    assert row["equal"]
    assert row["passes"] > 0
    if device == "cpu":  # in a pass of a GPU all blocks go on at once, and it may take more of them
        assert row["passes"] < row["layers"]
    assert small["way"] in ("refused", "streamed")
    assert dense["way"] == "streamed"
    assert dense["equal"]
    assert dense["copied MB"] > 0
