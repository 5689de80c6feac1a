"""Graphs of cuGraph, made in all the ways it has, beside the same edges read on the CPU."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from gpu_graphs import MARKS, all_same, same
from graphs import GRAPHS

from glp_rapids import as_graph, label_propagation
from glp_rapids.device import to_host
from glp_rapids.graph.graph import is_symmetric

pytestmark = MARKS


@pytest.fixture
def cugraph():
    return pytest.importorskip("cugraph", reason="cuGraph is not installed")


PAIRS = {
    "plain": [(5, 3), (3, 9), (9, 5), (9, 9)],
    "beyond int32": [(2**40, 3), (3, 2**41)],
    "strings": [("b", "a"), ("a", "z"), ("z", "z")],
}
DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint32", "uint64"]


def frame_of(pairs, weighted=False):
    frame = pd.DataFrame(pairs, columns=["src", "dst"])
    if weighted:
        frame["w"] = np.arange(1, len(frame) + 1, dtype=np.float64)
    return frame


def from_cudf(cudf, graph, frame, **options):
    graph.from_cudf_edgelist(cudf.from_pandas(frame), source="src", destination="dst", **options)


def from_pandas(cudf, graph, frame, **options):
    graph.from_pandas_edgelist(frame, source="src", destination="dst", **options)


def from_dask_on_one_gpu(cudf, graph, frame, **options):
    parts = pytest.importorskip("dask_cudf").from_cudf(cudf.from_pandas(frame), npartitions=2)
    graph.from_cudf_edgelist(parts, source="src", destination="dst", **options)


def transposed(cudf, graph, frame, **options):
    from_cudf(cudf, graph, frame, store_transposed=True, **options)


MAKERS = [from_cudf, from_pandas, from_dask_on_one_gpu, transposed]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_edge_lists(name, directed, weighted, make, cudf, cugraph):
    frame = frame_of(PAIRS[name], weighted)
    options = {"weight": "w"} if weighted else {}
    graph = cugraph.Graph(directed=directed)
    make(cudf, graph, frame, **options)
    got = as_graph(graph, device="gpu")
    expected = as_graph(frame, directed=directed, device="cpu", **options)
    all_same(got, expected)
    assert got.external().to_pandas().tolist() == expected.external().tolist()
    found = label_propagation(graph, device="gpu")
    assert isinstance(found, cudf.DataFrame)
    wanted = label_propagation(frame, directed=directed, device="cpu", **options)
    assert found["partition"].to_pandas().tolist() == wanted["partition"].tolist()


@pytest.mark.parametrize("dtype", DTYPES)
def test_ids_keep_their_dtype(dtype, cudf, cugraph):
    frame = frame_of(PAIRS["plain"]).astype(dtype)
    graph = cugraph.Graph()
    from_cudf(cudf, graph, frame)
    got = as_graph(graph, device="gpu")
    same(got, as_graph(frame, device="cpu"))
    assert got.external().dtype == dtype
    assert got.external().to_pandas().tolist() == [3, 5, 9]


def test_several_columns(cudf, cugraph):
    options = GRAPHS["several columns"]()
    graph = cugraph.Graph()
    graph.from_cudf_edgelist(
        cudf.from_pandas(options["graph"]),
        source=options["source"],
        destination=options["destination"],
    )
    got, expected = as_graph(graph, device="gpu"), as_graph(**options, device="cpu")
    same(got, expected)
    assert list(got.frame({}).columns) == ["0_vertex", "1_vertex"]


@pytest.mark.parametrize("pairs", [[(1, 2), (2, 3)], [(3, 3)]])
def test_isolated_vertices_stay(pairs, cudf, cugraph):
    graph = cugraph.Graph()
    from_cudf(cudf, graph, frame_of(pairs), vertices=cudf.Series([1, 2, 3, 7, 9]))
    got = as_graph(graph, device="gpu")
    assert got.external().to_pandas().tolist() == [1, 2, 3, 7, 9]
    same(got, as_graph(frame_of(pairs), vertices=[1, 2, 3, 7, 9], device="cpu"))
    assert is_symmetric(got)


def test_without_renumbering_the_range_is_full(cudf, cugraph):
    frame = frame_of([(0, 1), (1, 4)])
    graph = cugraph.Graph()
    from_cudf(cudf, graph, frame, renumber=False)
    same(as_graph(graph, device="gpu"), as_graph(frame, vertices=range(5), device="cpu"))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("directed", [False, True])
def test_adjacency_lists(weighted, directed, cudf, cugraph):
    # 0-1, 0-2, 1-2, 4-4, and 3, which has no edge
    offsets, indices = [0, 2, 4, 6, 6, 7], [1, 2, 0, 2, 0, 1, 4]
    values = [1.0, 2.0, 1.0, 4.0, 2.0, 4.0, 8.0]
    graph = cugraph.Graph(directed=directed)
    graph.from_cudf_adjlist(
        cudf.Series(offsets, dtype="int32"),
        cudf.Series(indices, dtype="int32"),
        cudf.Series(values) if weighted else None,
    )
    rows = np.repeat(np.arange(5), np.diff(offsets))
    frame = pd.DataFrame({"src": rows, "dst": indices, "w": values})
    if not directed:
        frame = frame[frame["src"] <= frame["dst"]]
    options = {"weight": "w"} if weighted else {}
    same(
        as_graph(graph, device="gpu"),
        as_graph(frame, directed=directed, vertices=range(5), device="cpu", **options),
    )


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("multigraph", ["merge", "keep"])
@pytest.mark.parametrize("weighted", [False, True])
def test_multigraphs(directed, multigraph, weighted, cudf, cugraph):
    frame = frame_of([(0, 1), (0, 1), (1, 2), (2, 2), (0, 1)], weighted)
    graph = cugraph.MultiGraph(directed=directed)
    options = {"weight": "w"} if weighted else {}
    from_cudf(cudf, graph, frame, **options)
    got = as_graph(graph, multigraph=multigraph, device="gpu")
    expected = as_graph(frame, directed=directed, multigraph=multigraph, device="cpu", **options)
    all_same(got, expected)


def test_a_simple_graph_has_no_duplicates_left_to_count(cudf, cugraph):
    graph = cugraph.Graph(directed=True)
    from_cudf(cudf, graph, frame_of([(0, 1), (0, 1), (1, 0)]))
    got = as_graph(graph, multigraph="keep", device="gpu")
    assert to_host(got.weights).tolist() == [1, 1]


@pytest.mark.parametrize("weighted", [False, True])
def test_what_to_directed_makes(weighted, cudf, cugraph):
    frame = frame_of(PAIRS["plain"], weighted)
    options = {"weight": "w"} if weighted else {}
    graph = cugraph.Graph()
    from_cudf(cudf, graph, frame, **options)
    # of the edges as they were given, says cuGraph 26.10, whatever its docstring says
    got = as_graph(graph.to_directed(), device="gpu")
    same(got, as_graph(frame, directed=True, device="cpu", **options))


def test_a_graph_that_was_not_filled_or_was_cleared(cudf, cugraph):
    graph = cugraph.Graph()
    with pytest.raises(ValueError, match=r"the cugraph.Graph was never filled, or was cleared"):
        as_graph(graph, device="gpu")
    from_cudf(cudf, graph, frame_of([(0, 1)]))
    assert as_graph(graph, device="gpu").number_of_vertices == 2
    graph.clear()
    with pytest.raises(ValueError, match="was never filled, or was cleared"):
        as_graph(graph, device="gpu")


def test_nothing_of_the_graph_is_changed(cudf, cugraph):
    graph = cugraph.Graph()
    from_cudf(cudf, graph, frame_of(PAIRS["strings"], True), weight="w")
    before = graph.view_edge_list().to_pandas()
    label_propagation(graph, device="gpu")
    pd.testing.assert_frame_equal(graph.view_edge_list().to_pandas(), before)


SEVERAL_GPUS = """
import sys, warnings
warnings.simplefilter("ignore")
import cudf, pandas as pd

def main():
    from dask.distributed import Client
    from dask_cuda import LocalCUDACluster
    import cugraph, dask_cudf
    from cugraph.dask.comms import comms
    from glp_rapids import as_graph

    with LocalCUDACluster() as cluster, Client(cluster):
        comms.initialize(p2p=True)
        for ids in ([5, 3, 9, 2**40], ["x", "b", "y", "a"]):
            frame = pd.DataFrame(
                {"src": [ids[0], ids[1], ids[2], ids[3]], "dst": [ids[1], ids[2], ids[0], ids[3]],
                 "w": [1.0, 2.0, 3.0, 4.0]}
            )
            for directed in (False, True):
                graph = cugraph.Graph(directed=directed)
                parts = dask_cudf.from_cudf(cudf.from_pandas(frame), npartitions=2)
                graph.from_dask_cudf_edgelist(parts, source="src", destination="dst", weight="w")
                got = as_graph(graph, device="gpu")
                wanted = as_graph(frame, weight="w", directed=directed, device="cpu")
                assert isinstance(got.frame({}), cudf.DataFrame)
                assert got.external().to_pandas().tolist() == wanted.external().tolist()
                for name in ("indptr", "indices", "weights"):
                    one, other = getattr(got, name).get(), getattr(wanted, name)
                    assert one.tolist() == other.tolist(), (name, one, other)
        comms.destroy()

if __name__ == "__main__":
    main()
    print("gathered")
"""


def test_a_graph_over_several_gpus_is_gathered(tmp_path, cugraph):
    pytest.importorskip("dask_cuda", reason="dask-cuda is not installed")
    # one GPU will do: what matters is that the graph is in the hands of dask's workers
    script = tmp_path / "several.py"  # the workers import it
    script.write_text(SEVERAL_GPUS)
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=240)
    assert "gathered" in run.stdout, run.stderr[-3000:]
