"""What of reading a cugraph.Graph needs no GPU: what is asked of cuGraph, and the errors.

cuGraph does not import without a GPU, so a class of the same name stands in for its graph; the
graphs themselves are read in test_ingest_cugraph_gpu.py.
"""

import sys
import types

import numpy as np
import pandas as pd
import pytest
from built_graphs import rows_of

from glp_rapids.ingest.cugraph import as_put_in
from glp_rapids.ingest.read import as_graph

PAIRS = np.array([(5, 3), (3, 9), (3, 5), (9, 3), (9, 9)])


class Graph:
    """Shows what it is made of as cugraph.Graph 26.10 does, by attributes of something behind."""

    def __init__(self, directed=False, **implementation):
        self._directed = directed
        self._implementation = implementation

    def __getattr__(self, name):
        implementation = self.__dict__["_implementation"]
        if name not in implementation:
            raise AttributeError(f"no attribute {name!r}")
        return implementation[name]

    def is_directed(self):
        return self._directed


@pytest.fixture(autouse=True)
def cugraph(monkeypatch):
    module = types.ModuleType("cugraph")
    module.Graph, module.__version__ = Graph, "26.10.00"
    library = types.ModuleType("pylibcugraph")
    library.ResourceHandle = object
    monkeypatch.setitem(sys.modules, "cugraph", module)
    monkeypatch.setitem(sys.modules, "pylibcugraph", library)
    return library


def single(**further):
    return Graph(_plc_graph="an SGGraph", edgelist=None, adjlist=None, renumbered=False, **further)


@pytest.mark.parametrize("weighted", [False, True])
def test_edges_and_vertices_are_those_that_pylibcugraph_gives(weighted, cugraph):
    weights = np.array([1.0, 2.0, 1.0, 2.0, 0.5], np.float32) if weighted else None

    def decompress_to_edgelist(resource_handle, graph, do_expensive_check):
        assert graph == "an SGGraph"
        return PAIRS[:, 0], PAIRS[:, 1], weights, None, None

    cugraph.decompress_to_edgelist = decompress_to_edgelist
    cugraph.extract_vertex_list = lambda **_: np.array([9, 7, 5, 3])
    graph = as_graph(single(), device="cpu")
    a, b, loop = (1.0, 2.0, 0.5) if weighted else (None, None, None)
    assert rows_of(graph) == [[(1, a), (3, b)], [(0, a)], [], [(0, b), (3, loop)]]
    assert graph.vertices.columns[0].values.tolist() == [3, 5, 7, 9]
    assert graph.vertices.kind == "cudf"


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_graph_over_several_gpus_is_gathered(partitions):
    dask = pytest.importorskip("dask.dataframe")
    frame = pd.DataFrame({"dst": PAIRS[:, 1], "src": PAIRS[:, 0], "edge_ids": 0})
    parts = dask.from_pandas(frame, npartitions=partitions)
    graph = Graph(_plc_graph={"worker": None}, decompress_to_edgelist=lambda: parts)
    got = as_graph(graph, device="cpu")
    assert rows_of(got) == [[(1, None), (2, None)], [(0, None)], [(0, None), (2, None)]]
    assert got.vertices.columns[0].values.tolist() == [3, 5, 9]
    several = frame.rename(columns={"src": "0_src", "dst": "0_dst"})
    several = several.assign(**{"1_src": 0, "1_dst": 0, "weight": 2.0})
    parts = dask.from_pandas(several, npartitions=partitions)
    graph = Graph(True, _plc_graph={"worker": None}, decompress_to_edgelist=lambda: parts)
    got = as_graph(graph, device="cpu")
    assert got.directed
    assert [column.values.tolist() for column in got.vertices.columns] == [[3, 5, 9], [0] * 3]
    assert rows_of(got) == [[(1, 2.0), (2, 2.0)], [(0, 2.0)], [(0, 2.0), (2, 2.0)]]


def fail(error):
    def raising(**_):
        raise error

    return raising


def test_errors(cugraph):
    with pytest.raises(ValueError, match=r"never filled, or was cleared; .*from_cudf_edgelist"):
        as_graph(Graph(), device="cpu")
    for options in ({"vertices": [1]}, {"weight": "w"}, {"source": "a"}):
        with pytest.raises(ValueError, match=r"does not apply to a cugraph\.Graph"):
            as_graph(single(), device="cpu", **options)
    with pytest.raises(ValueError, match="the graph given is undirected"):
        as_graph(single(), directed=True, device="cpu")
    with pytest.raises(TypeError, match=r"cuGraph 26.10.00 .*decompress_to_edgelist.* update it"):
        as_graph(single(), device="cpu")
    cugraph.decompress_to_edgelist = fail(RuntimeError("std::bad_alloc: out_of_memory: CUDA error"))
    with pytest.raises(MemoryError, match=r"on the host .*: std::bad_alloc: .*free some"):
        as_graph(single(), device="cpu")
    cugraph.decompress_to_edgelist = fail(RuntimeError("CUGRAPH_UNKNOWN_ERROR"))
    with pytest.raises(RuntimeError, match="CUGRAPH_UNKNOWN_ERROR"):
        as_graph(single(), device="cpu")


@pytest.mark.parametrize("reciprocal", [0, 20, 200])
def test_edges_come_back_the_way_round_they_went_in(reciprocal):
    rng = np.random.default_rng(reciprocal)
    pairs = {tuple(pair) for pair in rng.integers(0, 2**40, (20, 2)).tolist()}
    both_ways = {tuple(pair) for pair in rng.integers(2**40, 2**41, (reciprocal, 2)).tolist()}
    both_ways |= {(v, u) for u, v in both_ways} | {(7, 7)}
    # the first ones do not tell which way round they are
    raw = np.array([*both_ways, *pairs]).T
    source, destination = np.array(sorted(both_ways | pairs)).T
    for given in ((source, destination), (destination, source)):
        got = as_put_in(*given, lambda number: raw[:, :number])
        assert [array.tolist() for array in got] == [source.tolist(), destination.tolist()]


def test_edges_that_all_go_both_ways_stay():
    source, destination = np.array([(0, 1), (1, 0), (2, 2)]).T
    got = as_put_in(source, destination, lambda number: (source[:number], destination[:number]))
    assert got == (source, destination)
