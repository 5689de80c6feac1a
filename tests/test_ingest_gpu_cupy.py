"""CuPy arrays and matrices in, cuDF frames out, of every function."""

import numpy as np
import pandas as pd
import pytest
from gpu_graphs import MARKS, same
from graphs import random_pairs

import glp_rapids
from glp_rapids.device import to_host
from glp_rapids.frames import kinds
from glp_rapids.ingest.read import as_graph

pytestmark = MARKS


def test_sparse_ids_are_ranked_on_the_device(cupy):
    ids = np.random.default_rng(1).integers(-(2**60), 2**60, 5000)
    pairs = [ids[np.array(column)] for column in zip(*random_pairs(5000, 20000, 2), strict=True)]
    graph = as_graph(tuple(cupy.asarray(column) for column in pairs), device="gpu")
    expected = as_graph(tuple(pairs), device="cpu")
    same(graph, expected)
    assert to_host(graph.external().values).tolist() == expected.external().tolist()


PAIRS = random_pairs(60, 300, 4)
VARIANTS = {
    "classic": glp_rapids.label_propagation,
    "ids": lambda graph: glp_rapids.label_propagation(graph, renumber=False),
    "layered": lambda graph: glp_rapids.layered_label_propagation(graph, gammas=[0, 2]),
    "ordering": lambda graph: glp_rapids.layered_label_propagation(graph, gammas=[1], order=True),
    "listener": glp_rapids.speaker_listener,
    "seeded": lambda graph: glp_rapids.seeded_label_propagation(graph, {1: "a", 7: "b"}),
    "core_number": glp_rapids.core_number,
    "trussness": glp_rapids.trussness,
    "ego_networks": lambda graph: glp_rapids.ego_networks(graph, [1, 7]),
    "diversity": lambda graph: glp_rapids.structural_diversity(graph, 2),
    "best": lambda graph: glp_rapids.top_structural_diversity(graph, 3, 2)[1],
    "clusters": lambda graph: glp_rapids.cluster_members(
        graph, [1, 7], minimum_size=2, minimum_partners=1
    ),
    "compressed": lambda graph: glp_rapids.label_propagation(glp_rapids.compress(graph)),
}


def of_cupy(cupy, form):
    source, destination = (np.array(ends) for ends in zip(*PAIRS, strict=True))
    if form == "matrix":
        sparse = pytest.importorskip("cupyx.scipy.sparse")
        ones = cupy.ones(source.size)
        pairs = cupy.asarray(source), cupy.asarray(destination)
        return sparse.coo_matrix((ones, pairs), shape=(60, 60))
    arrays = cupy.asarray(source), cupy.asarray(destination)
    if form == "one of two":
        return arrays[0], destination
    return (*arrays, cupy.ones(source.size)) if form == "weighted" else arrays


def of_the_host(form):
    source, destination = (np.array(ends) for ends in zip(*PAIRS, strict=True))
    if form == "matrix":
        sparse = pytest.importorskip("scipy.sparse")
        return sparse.coo_array((np.ones(source.size), (source, destination)), shape=(60, 60))
    arrays = source, destination
    return (*arrays, np.ones(source.size)) if form == "weighted" else arrays


@pytest.mark.parametrize("form", ["arrays", "weighted", "one of two", "matrix"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_cupy_gives_cudf(variant, form, cupy, cudf):
    call = VARIANTS[variant]
    found, expected = call(of_cupy(cupy, form)), call(of_the_host(form))
    assert isinstance(found, cudf.DataFrame)
    assert type(expected) is pd.DataFrame
    assert list(found.columns) == list(expected.columns)
    host = found.to_pandas()
    for name in expected.columns:
        got, wanted = host[name].astype("object"), expected[name].astype("object")
        assert got.where(got.notna(), None).tolist() == wanted.where(wanted.notna(), None).tolist()
    assert found.attrs.get("glp", {}).keys() == expected.attrs.get("glp", {}).keys()


def test_cupy_gives_cudf_of_a_graph_on_the_host(cupy, cudf):
    graph = as_graph(of_cupy(cupy, "arrays"), device="cpu")
    assert isinstance(graph.indices, np.ndarray)
    assert isinstance(graph.frame({"degree": graph.degree}), cudf.DataFrame)
    assert to_host(graph.vertex_index(cupy.asarray([7, 1]))).tolist() == [7, 1]
    assert to_host(graph.vertex_index([])).tolist() == []


def test_cupy_without_cudf_gives_pandas(cupy, monkeypatch):
    monkeypatch.setattr(kinds, "_cudf_imports", lambda: False)
    for form in ("arrays", "matrix"):
        found = glp_rapids.label_propagation(of_cupy(cupy, form))
        assert type(found) is pd.DataFrame
        expected = glp_rapids.label_propagation(of_the_host(form))
        pd.testing.assert_frame_equal(found, expected)


def test_cupy_results_share_no_memory_with_the_graph(cupy, cudf):
    source, destination = of_cupy(cupy, "arrays")
    graph = as_graph((source, destination))
    found = graph.frame({"indices": graph.indices[:60]})
    found["vertex"].to_cupy(copy=False)[:] = 77
    found["indices"].to_cupy(copy=False)[:] = 77
    assert graph.external().to_pandas().tolist() == list(range(60))
    assert int(graph.indices.max()) == 59
    assert int(source.max()) < 60


@pytest.mark.parametrize("kind", [">i4", ">i8", ">f8"])
def test_big_endian_state_goes_to_the_device(kind, cupy):
    class Stated(glp_rapids.Program):
        result_columns = ("mine",)

        def initial_state(self, graph):
            return {"mine": np.array([1, 2, 3], dtype=kind)}

    frame = pd.DataFrame({"src": [0, 1], "dst": [1, 2]})
    found = glp_rapids.propagate(frame, Stated(), device="gpu")
    assert found["mine"].tolist() == [1, 2, 3]


def test_cupy_sparse_matrices(cupy):
    cusparse = pytest.importorskip("cupyx.scipy.sparse")
    scipy_sparse = pytest.importorskip("scipy.sparse")
    dense = np.array([[0, 1, 0, 0], [0, 0, 2, 0], [4.0, 0, 8, 0], [0, 0, 0, 0]])
    for directed in (True, False):
        graph = as_graph(cusparse.csr_matrix(cupy.asarray(dense)), directed=directed, device="gpu")
        same(graph, as_graph(scipy_sparse.csr_array(dense), directed=directed, device="cpu"))
        assert graph.number_of_vertices == 4
    ends, lengths = [[0, 0, 1, 2, 2], [1, 1, 0, 0, 2]], [1.0, 2.0, 2.0, 1.0, 5.0]
    there = cusparse.coo_matrix((cupy.asarray(lengths), tuple(map(cupy.asarray, ends))), (3, 3))
    here = scipy_sparse.coo_array((lengths, ends), (3, 3))
    for multigraph in ("merge", "keep", "min"):  # what is stored twice adds up first
        options = {"directed": multigraph == "keep", "multigraph": multigraph}
        graph = as_graph(there, device="gpu", **options)
        same(graph, as_graph(here, device="cpu", **options))
    assert glp_rapids.sssp(there, 0, directed=True)["distance"].to_pandas().tolist()[:2] == [0, 3]
