"""Graphs whose arrays lie in files: the same results, and the files stay as they were."""

import copy
import mmap
import os
import pickle
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from graphs import random_pairs
from mapped_files import OURS, SUBJECTS, matrix_of, through_npz
from numba import types

import glp_rapids
from glp_rapids import as_graph, compress
from glp_rapids.common import mapping
from glp_rapids.common.mapping import for_kernels
from glp_rapids.device import is_mapped, memory_total
from glp_rapids.graph import check_rows

ARRAYS = ("indptr", "indices", "data")


def saved(matrix, folder):
    """A file for each array."""
    for name in ARRAYS:
        np.save(folder / f"{name}.npy", getattr(matrix, name))
    return folder


def opened(folder, mode="r"):
    """A matrix whose arrays are memory maps."""
    arrays = {name: np.load(folder / f"{name}.npy", mmap_mode=mode) for name in ARRAYS}
    matrix = sp.csr_array((arrays["indptr"].size - 1,) * 2)
    for name, array in arrays.items():
        setattr(matrix, name, array)
    return matrix


def through_npy(matrix, folder):
    return opened(saved(matrix, folder))


WAYS = {"npy": through_npy, "npz": through_npz}


@pytest.fixture(params=WAYS.values(), ids=WAYS)
def way(request):
    return request.param


class Fading(glp_rapids.Program):
    """A neighbour's vote counts less, the more neighbours it has."""

    def load_neighbor(v, u, weight, state):
        return state.labels[u], weight / state.degree[u]

    def initial_state(self, graph):
        return {"degree": graph.degree + 1}


FUNCTIONS = {
    "label_propagation": glp_rapids.label_propagation,
    "synchronous": lambda graph: glp_rapids.label_propagation(graph, update="sync", max_iter=5),
    "layered_label_propagation": lambda graph: glp_rapids.layered_label_propagation(
        graph, gammas=[0, 1]
    ),
    "ordering": lambda graph: glp_rapids.layered_label_propagation(graph, order=True),
    "speaker_listener": glp_rapids.speaker_listener,
    "seeded_label_propagation": lambda graph: glp_rapids.seeded_label_propagation(graph, [0, 7]),
    "propagate": lambda graph: glp_rapids.propagate(graph, Fading()),
    "both directions": lambda graph: glp_rapids.label_propagation(graph, direction="both"),
    "modularity": lambda graph: glp_rapids.modularity(graph, glp_rapids.label_propagation(graph)),
    "coverage": lambda graph: glp_rapids.coverage(graph, glp_rapids.label_propagation(graph)),
    "to_graph": lambda graph: compress(graph, order="bfs").to_graph().frame({"d": graph.degree}),
    "compress": lambda graph: compress(graph, for_="size").stats(),
    "compressed run": lambda graph: glp_rapids.label_propagation(compress(graph)),
    "ego_networks": lambda graph: glp_rapids.ego_networks(graph, symmetrize=True),
    "structural_diversity": lambda graph: pd.concat(
        glp_rapids.structural_diversity(graph, 3, model, symmetrize=True)
        for model in ("component", "core", "truss")
    ),
    "top_structural_diversity": lambda graph: pd.concat(
        glp_rapids.top_structural_diversity(graph, 5, 2, symmetrize=True)
    ),
    "core_number": lambda graph: glp_rapids.core_number(graph, symmetrize=True),
    "k_core": lambda graph: glp_rapids.k_core(graph, 2, symmetrize=True),
    "trussness": lambda graph: glp_rapids.trussness(graph, symmetrize=True),
    "k_truss": lambda graph: glp_rapids.k_truss(graph, 3, symmetrize=True),
    "triangle_count": lambda graph: glp_rapids.triangle_count(graph, symmetrize=True),
}


def equal(one, other):
    return one.equals(other) if isinstance(one, pd.DataFrame) else one == other


@pytest.mark.parametrize("name", SUBJECTS)
def test_every_function_gives_the_same_and_writes_nothing(name, way, tmp_path):
    plain = as_graph(**SUBJECTS[name](), device="cpu")
    # ids as the rows of a matrix have them
    plain = as_graph(matrix_of(plain), directed=plain.directed, device="cpu")
    matrix = way(matrix_of(plain), tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    graph = as_graph(matrix, directed=plain.directed, device="cpu")
    assert is_mapped(graph.indices)
    assert graph.weights is None or is_mapped(graph.weights)
    for function in FUNCTIONS.values():
        assert equal(function(graph), function(plain)), function
    for array in OURS:
        mine, its = getattr(graph, array), getattr(plain, array)
        assert (mine is None and its is None) or mine.tobytes() == its.tobytes()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_nothing_is_compiled_anew_for_read_only_arrays(way, tmp_path):
    matrix = matrix_of(as_graph(**SUBJECTS["weighted"](), device="cpu"))
    graph = as_graph(way(matrix, tmp_path), device="cpu")
    for name in OURS:
        flags = getattr(graph, name).flags
        assert flags.writeable
        assert flags.c_contiguous
    for kernel in (check_rows._worst, check_rows._is_symmetric):
        for signature in kernel.signatures:
            arrays = [kind for kind in signature if isinstance(kind, types.Array)]
            assert len(arrays) >= 2
            assert all(kind.mutable for kind in arrays)


@pytest.mark.parametrize(
    "made", [lambda g: pickle.loads(pickle.dumps(g)), copy.copy, copy.deepcopy]
)
def test_copies_of_a_mapped_graph(made, way, tmp_path):
    graph = as_graph(way(matrix_of(as_graph(**SUBJECTS["integers"]())), tmp_path), device="cpu")
    expected = glp_rapids.label_propagation(graph)
    assert glp_rapids.label_propagation(made(graph)).equals(expected)
    assert graph.to("cpu") is graph
    assert as_graph(graph, device="cpu") is graph


def test_a_mapped_graph_on_any_device(way, tmp_path, device):
    plain = as_graph(**SUBJECTS["integers"](), device="cpu")
    graph = as_graph(way(matrix_of(plain), tmp_path), device=device)
    assert graph.device == device
    expected = glp_rapids.label_propagation(plain)["partition"].to_numpy()
    assert np.array_equal(glp_rapids.label_propagation(graph)["partition"].to_numpy(), expected)


FORKED = """
import multiprocessing, sys
import glp_rapids
from glp_rapids.ingest.npz import open_npz

graph = glp_rapids.as_graph(open_npz(sys.argv[1]), device="cpu")
expected = glp_rapids.label_propagation(graph)

def same(_):
    return glp_rapids.label_propagation(graph).equals(expected)

with multiprocessing.get_context("fork").Pool(2) as pool:
    print(pool.map(same, range(2)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forked_processes_share_a_mapped_graph(tmp_path):
    matrix = matrix_of(as_graph(**SUBJECTS["power law"](), device="cpu"))
    through_npz(matrix, tmp_path)
    command = [sys.executable, "-c", FORKED, tmp_path / "matrix.npz"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[True, True]", done.stderr


def large(folder, weights=None):
    """A mapped graph of 3000 vertices with neighbour lists of some hundreds."""
    pairs = np.array(random_pairs(3000, 400_000, 4))
    graph = as_graph((pairs[:, 0], pairs[:, 1]), device="cpu")
    matrix = matrix_of(graph)
    if weights is not None:
        matrix.data = np.full(graph.number_of_edges, 2, weights)
    return opened(saved(matrix, folder))


def peak_of(call):
    call()  # compiled by now
    tracemalloc.start()
    try:
        made = call()
        return made, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("weights", [None, np.float64])
def test_a_mapped_matrix_takes_memory_for_its_vertices_only(tmp_path, weights):
    matrix = large(tmp_path, weights)
    graph, peak = peak_of(lambda: as_graph(matrix, device="cpu"))
    assert graph.indices.nbytes > 3_000_000
    assert peak < 100_000 + 40 * 3000 + 2 * mapping.PART  # a part of each mapping is compared


def test_compressing_a_mapped_graph_takes_no_second_one(tmp_path):
    n = 20_000
    ends = np.random.default_rng(1).integers(0, n, (2, 4_000_000))
    graph = as_graph((ends[0], ends[1]), device="cpu")
    graph = as_graph(opened(saved(matrix_of(graph), tmp_path)), device="cpu")
    # "entropy" looks at no sample, but counts in several copies of a table: 15 MB for any graph
    made, peak = peak_of(lambda: compress(graph, "entropy"))
    parts = graph.number_of_edges // 128 + n
    assert peak < 16_000_000 + made.stats()["bytes"] + 16 * (n + parts) < graph.indices.nbytes


def test_what_is_mapped(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(9))
    for mode in ("r", "c", "r+"):
        array = np.load(tmp_path / "a.npy", mmap_mode=mode)
        assert is_mapped(array)
        assert is_mapped(np.asarray(array)[2:].view(np.uint8))
    assert not is_mapped(np.load(tmp_path / "a.npy"))
    assert not is_mapped(np.arange(9)[3:])
    assert not is_mapped(None)


def test_a_read_only_map_is_mapped_again(tmp_path):
    np.save(tmp_path / "a.npy", np.arange(100))
    whole = np.load(tmp_path / "a.npy", mmap_mode="r")
    for array in (whole, whole[7:90], np.asarray(whole)[3:], whole.view(np.int32)[5:9], whole[4:5]):
        again = for_kernels(array)
        assert again.tolist() == array.tolist()
        assert again.dtype == array.dtype
        assert is_mapped(again)
        again[0] = -1  # goes nowhere
    assert whole.tolist() == list(range(100))
    assert np.load(tmp_path / "a.npy").tolist() == list(range(100))
    writable = np.load(tmp_path / "a.npy", mmap_mode="c")
    assert np.shares_memory(for_kernels(writable), writable)


def test_a_map_whose_file_is_another_by_now_is_kept(tmp_path):
    path = tmp_path / "a.npy"
    for change in (
        lambda: path.unlink(),
        lambda: np.save(path, np.arange(100)[::-1]),
        lambda: np.save(path, np.arange(50)),
        lambda: path.write_bytes(b""),
    ):
        np.save(path, np.arange(100))
        whole = np.load(path, mmap_mode="r")
        path.rename(tmp_path / "b.npy")  # the map stays of this one
        path.touch()
        change()
        again = for_kernels(whole)
        assert again.tolist() == list(range(100))
        assert np.shares_memory(again, whole)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "arrays"])
@pytest.mark.parametrize("dtype", ["i4", "f2", "f4", "f8", "u8", ">i8"])
def test_arrays_of_graphs_are_no_memmaps(form, dtype, tmp_path):
    matrix = matrix_of(as_graph(**SUBJECTS["directed"](), device="cpu")).astype("i8")
    matrix = matrix.asformat("coo" if form == "arrays" else form)
    names = ("row", "col") if matrix.format == "coo" else ("indptr", "indices")
    maps = {}
    for name in (*names, "data"):
        array = getattr(matrix, name).astype("u4" if name == "indices" else "i4")
        np.save(tmp_path / f"{name}.npy", array.astype(dtype) if name == "data" else array)
        maps[name] = np.load(tmp_path / f"{name}.npy", mmap_mode="r")
    given = tuple(maps.values())
    if form == "coo":
        matrix.coords, matrix.data = given[:2], given[2]
    else:
        for name, array in maps.items() if form != "arrays" else ():
            setattr(matrix, name, array)
    for directed in (False, True):
        graph = as_graph(given if form == "arrays" else matrix, directed=directed, device="cpu")
        assert {type(getattr(graph, name)) for name in OURS} == {np.ndarray}
        again = compress(graph, "packed").to_graph()
        assert again.weights.tobytes() == graph.weights.tobytes()


def test_weights_in_a_file_stay_there_when_a_graph_is_compressed(tmp_path):
    size = 300  # squared it is more than what a table of weights holds
    matrix = sp.csr_array(np.arange(1.0, 1 + size * size).reshape(size, size))
    graph = as_graph(through_npz(matrix, tmp_path), directed=True, device="cpu")
    assert np.shares_memory(compress(graph).weights, graph.weights)


@pytest.fixture
def no_private_maps(monkeypatch):
    """A system that refuses them, as for a file larger than its memory."""
    monkeypatch.setattr(mapping, "PRIVATE", {"access": mmap.ACCESS_READ})


def test_what_cannot_be_mapped_privately_stays_read_only(no_private_maps, monkeypatch, tmp_path):
    np.save(tmp_path / "a.npy", np.arange(100))
    whole = np.load(tmp_path / "a.npy", mmap_mode="r")
    monkeypatch.setattr(np, "array_equal", lambda *_: pytest.fail("its bytes were compared"))
    for array in (whole, whole[7:90], np.asarray(whole)[3:], whole.view(np.int32)[5:9]):
        again = for_kernels(array)
        assert type(again) is np.ndarray
        assert again.tolist() == array.tolist()
        assert np.shares_memory(again, whole)
        assert not again.flags.writeable
    for array in (whole[::2], whole.view(">i8")):  # which compiled code cannot read
        assert for_kernels(array).tolist() == array.tolist()
        assert not is_mapped(for_kernels(array))


def test_graphs_where_there_are_no_private_maps(no_private_maps, way, tmp_path):
    matrix = large(tmp_path, np.float64)
    expected = as_graph(matrix_of(as_graph(matrix, device="cpu")), device="cpu")
    if way is through_npz:
        matrix = through_npz(matrix, tmp_path)
    graph, peak = peak_of(lambda: as_graph(matrix, device="cpu"))
    assert peak < 100_000 + 40 * 3000
    for name in OURS:
        assert type(getattr(graph, name)) is np.ndarray
        assert getattr(graph, name).tobytes() == getattr(expected, name).tobytes()
    assert not graph.indices.flags.writeable
    found = glp_rapids.label_propagation(graph)
    assert found.equals(glp_rapids.label_propagation(expected))


@pytest.mark.skipif(sys.platform != "linux", reason="how much may be mapped is Linux's to say")
def test_a_file_larger_than_all_memory_is_mapped_privately(tmp_path):
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(2 * memory_total("cpu"))  # of zeros, which take no room
        file.seek(12345)
        file.write(b"x")
    with path.open("rb") as file:
        content = mapping.mapped_bytes(file)
    assert content.flags.writeable
    content[0] = 7
    assert content[12343:12347].tolist() == [0, 0, ord("x"), 0]
    with path.open("rb") as file:
        assert file.read(1) == b"\0"


def test_processors_that_read_no_unaligned_numbers_get_copies(tmp_path, monkeypatch):
    monkeypatch.setattr(mapping, "READS_UNALIGNED", False)
    plain = as_graph(**SUBJECTS["weighted"](), device="cpu")
    graph = as_graph(through_npz(matrix_of(plain), tmp_path), device="cpu")
    for name in OURS:
        assert getattr(graph, name).flags.aligned
        assert getattr(graph, name).tobytes() == getattr(plain, name).tobytes()
