"""Cores, trusses and triangles of the whole graph, beside the twins and other libraries."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import reference_diversity as reference
from cases import exhaustive, some
from graphs import GRAPHS, clique, edge_frames, edges, path, power_law_pairs
from hypothesis import given
from pandas.testing import assert_frame_equal
from scipy import sparse

from glp_rapids import (
    as_graph,
    core_number,
    datasets,
    k_core,
    k_truss,
    structural_diversity,
    triangle_count,
    trussness,
)
from glp_rapids.cohesion import memory as whole_memory
from glp_rapids.cohesion.kernels import cpu
from glp_rapids.graph import call_memory

FUNCTIONS = {
    "core_number": core_number,
    "k_core": k_core,
    "trussness": trussness,
    "k_truss": lambda graph, **options: k_truss(graph, 3, **options),
    "triangle_count": triangle_count,
}
functions = pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS)
# a clique of 7, one of 5 and one of 4 in a chain, with a tail
CHAIN = edges(
    [*clique(range(7)), *clique(range(6, 11)), *clique(range(10, 14)), (13, 14), (14, 15)]
)


def edge_frame(graph, pairs, columns=None):
    """Edges of vertex indices, u < v, as the library should give them."""
    u, v = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    ends = graph.external_columns(u, "src") | graph.external_columns(v, "dst")
    found = graph.frame(ends | (columns or {}), u)
    return found[[*ends, *(columns or {})]]


def weights_of(graph, pairs):
    """The weight of every edge, of a directed graph that of both directions; {} without weights."""
    if graph.weights is None:
        return {}
    graph, entry = graph.to("cpu"), {}
    for u in range(graph.number_of_vertices):
        for i in range(graph.indptr[u], graph.indptr[u + 1]):
            pair = int(graph.indices[i]), u
            pair = pair if graph.directed and pair[0] < u else pair[::-1]
            entry[pair] = entry.get(pair, 0) + graph.weights[i]
    weights = [entry[pair] for pair in pairs]
    return {"weight": np.array(weights, dtype=graph.weights.dtype)}


def check(given, device):
    graph = as_graph(**given, device=device)
    options = {**given, "symmetrize": graph.directed, "device": device}
    host = graph.to("cpu")
    neighbours = reference.neighbour_sets(host.indptr, host.indices)
    numbers = reference.core_numbers(neighbours)
    whole = dict(enumerate(neighbours))
    of_edges = dict(sorted(reference.trussness(neighbours).items()))

    found = core_number(**options)
    expected = graph.frame({"core_number": np.array(numbers, dtype=np.int64)})
    assert_frame_equal(found, expected, check_dtype=False)
    counts = np.array(reference.triangle_counts(neighbours), dtype=np.int64)
    expected = graph.frame({"counts": counts})
    assert_frame_equal(triangle_count(**options), expected, check_dtype=False)
    found = trussness(**options)
    expected = edge_frame(graph, list(of_edges), {"trussness": np.array([*of_edges.values()], int)})
    assert_frame_equal(found, expected, check_dtype=False)

    for k in [None, *range(6), 10**12]:
        left = reference.core(whole, max(numbers, default=0) if k is None else k)
        pairs = [pair for pair in of_edges if pair[0] in left and pair[1] in left]
        expected = edge_frame(graph, pairs, weights_of(graph, pairs))
        assert_frame_equal(k_core(**options, k=k), expected, check_dtype=False)
    for k in [*range(2, 7), 10**12]:
        pairs = [pair for pair, t in of_edges.items() if t >= k]
        expected = edge_frame(graph, pairs, weights_of(graph, pairs))
        assert_frame_equal(k_truss(**options, k=k), expected, check_dtype=False)


@pytest.mark.parametrize("name", GRAPHS)
def test_all_is_as_the_twins_say(name, device):
    check(GRAPHS[name](), device)


@given(edge_frames() | edge_frames(8, 90))
def test_all_is_as_the_twins_say_on_any_graph(device, given):
    check(given, device)


def test_cliques_in_a_chain(device):
    found = core_number(**CHAIN, device=device)
    assert found["core_number"].tolist() == [6] * 7 + [4] * 4 + [3] * 3 + [1] * 2
    found = trussness(**CHAIN, device=device)
    assert found["trussness"].value_counts().to_dict() == {7: 21, 5: 10, 4: 6, 2: 2}
    assert len(k_core(**CHAIN, device=device)) == 21
    assert len(k_truss(**CHAIN, k=4, device=device)) == 37
    expected = [15] * 6 + [15 + 6] + [6] * 3 + [6 + 3] + [3] * 3 + [0] * 2
    assert triangle_count(**CHAIN, device=device)["counts"].tolist() == expected


def hub_pairs():
    """A hub of degree 5000, one of 700 beside it, dense groups below them, and a long path."""
    rng = np.random.default_rng(3)
    pairs = [(0, i) for i in range(1, 5001)] + [(1, i) for i in range(2, 701)] + path(700)
    for start, size in [(10, 20), (200, 60), (650, 100)]:
        dense = np.argwhere(np.triu(rng.random((size, size)) < 0.3, 1)) + start
        pairs += dense.tolist()
    names = rng.permutation(5500)
    return [(int(names[u]), int(names[v])) for u, v in pairs]


def almost_clique_pairs():
    """A clique of 70 of which a tenth is missing, and a hub of 1200 that knows all of it."""
    rng = np.random.default_rng(4)
    dense = np.argwhere(np.triu(rng.random((70, 70)) < 0.9, 1))
    return dense.tolist() + [(70, i) for i in range(1270) if i != 70]


LARGER = {
    "hub": hub_pairs(),
    "core": power_law_pairs(3000, 30000, 7),
    "almost a clique": almost_clique_pairs(),
    "clique": list(clique(range(80))),
}


@pytest.mark.parametrize("pairs", LARGER.values(), ids=LARGER)
def test_all_of_larger_graphs_is_as_the_twins_say(pairs, device):
    check(edges(pairs), device)


REAL = ["com-dblp", "facebook_combined", "email-Enron", "ca-CondMat", "wiki-Vote"]
LARGE = ["cnr-2000", "web-NotreDame", "uk-2007-100k", "road-usa"]


@pytest.mark.parametrize("name", some([*REAL, *LARGE], "ca-CondMat", "wiki-Vote"))
def test_real_graphs_are_as_others_say(name, data, device):
    igraph, networkit = map(pytest.importorskip, ("igraph", "networkit"))
    igraph, networkit = (pytest.importorskip(peer) for peer in ("igraph", "networkit"))
    graph = as_graph(datasets.load(name)[["src", "dst"]], device=device)
    host, n = graph.to("cpu"), graph.number_of_vertices
    rows = np.repeat(np.arange(n), np.diff(host.indptr))
    pairs = np.column_stack([rows, host.indices])[rows < host.indices]
    numbers = np.array(igraph.Graph(n=n, edges=pairs).coreness())
    assert np.array_equal(core_number(graph, device=device)["core_number"], numbers)
    for k in (None, 2, 7):
        inside = (numbers >= (numbers.max() if k is None else k))[pairs].all(axis=1)
        expected = pd.DataFrame(
            {
                name: graph.external(end[inside])
                for name, end in zip(["src", "dst"], pairs.T, strict=True)
            }
        )
        assert_frame_equal(k_core(graph, k, device=device), expected)
    theirs = networkit.GraphFromCoo(tuple(np.ascontiguousarray(pairs.T)), n=n)
    coefficient = networkit.centrality.LocalClusteringCoefficient(theirs, turbo=True).run().scores()
    degree = np.bincount(pairs.ravel(), minlength=n)
    expected = np.rint(coefficient * degree * (degree - 1) / 2)
    assert np.array_equal(triangle_count(graph, device=device)["counts"], expected)


@pytest.mark.parametrize("name", ["wiki-Vote", *exhaustive("facebook_combined", "ca-CondMat")])
def test_trusses_of_real_graphs_are_those_of_the_twin(name, data, device):
    graph = as_graph(datasets.load(name)[["src", "dst"]], device=device)
    found = trussness(graph, device=device)
    host, n = graph.to("cpu"), graph.number_of_vertices
    ones = np.ones(host.indices.size, dtype=np.float32)
    matrix = sparse.csr_array((ones, host.indices, host.indptr), (n, n))
    matrix.setdiag(0)
    matrix.eliminate_zeros()
    for k in (3, 4, 6, 11, 20):
        matrix = reference.matrix_truss(matrix, k)
        u, v = sparse.triu(matrix).tocsr().nonzero()
        expected = edge_frame(graph, np.column_stack([u, v]))
        assert_frame_equal(k_truss(graph, k, device=device), expected)
        kept = found[found["trussness"] >= k].drop(columns="trussness")
        assert_frame_equal(kept.reset_index(drop=True), expected)


@pytest.mark.gpu
@pytest.mark.parametrize("name", [*REAL, *LARGE, "email-Eu-core"])
@functions
def test_a_gpu_gives_what_a_cpu_gives(function, name, data):
    pytest.importorskip("cupy")
    frame = datasets.load(name)[["src", "dst"]]
    expected = function(as_graph(frame, device="cpu"), device="cpu")
    found = function(as_graph(frame, device="gpu"), device="gpu")
    assert_frame_equal(found, expected)


@pytest.mark.gpu
def test_rows_that_no_table_of_a_gpu_holds_are_cut():
    from glp_rapids.cohesion.kernels import gpu_triangles

    size = gpu_triangles.HEAVY[2] // 2 + 300
    pairs = np.argwhere(np.triu(np.ones((size, size), dtype=bool), 1))
    graph = as_graph((pairs[:, 0], pairs[:, 1]), device="gpu")
    counts = triangle_count(graph, device="gpu")["counts"]
    assert (counts == (size - 1) * (size - 2) // 2).all()
    assert (trussness(graph, device="gpu")["trussness"] == size).all()


@functions
def test_order_and_duplicates_of_rows_do_not_show(function, device):
    pairs = power_law_pairs(200, 1500, 4)
    frame = edges(pairs)["graph"]
    expected = function(frame, device=device)
    shuffled = pd.concat([frame, frame[::2]]).sample(frac=1, random_state=3)
    assert_frame_equal(function(shuffled, device=device), expected)
    assert function(frame, device=device).attrs["glp"]["device"] == device


@functions
def test_directed_graphs_are_symmetrized_only_when_asked(function, device):
    frame = CHAIN["graph"]
    expected = function(frame, device=device)
    options = {"directed": True, "device": device}
    assert_frame_equal(function(frame, symmetrize=True, **options), expected)
    with pytest.raises(ValueError, match=r"directed.*symmetrize=True"):
        function(frame, **options)


@pytest.mark.parametrize(
    ("call", "wrong", "error", "words"),
    [
        (k_core, -1, ValueError, "k must.*not -1"),
        (k_core, 2.5, (ValueError, TypeError), r"k must.*integer.*2\.5"),
        (k_core, "3", TypeError, "k must.*integer.*'3'"),
        (k_truss, 1, ValueError, "k must.*2.*not 1"),
        (k_truss, -5, ValueError, "k must.*not -5"),
        (k_truss, None, (ValueError, TypeError), "k must.*integer.*None"),
        (k_truss, 3.0, (ValueError, TypeError), r"k must.*integer.*3\.0"),
        (k_truss, True, (ValueError, TypeError), "k must.*integer.*True"),
    ],
)
def test_a_wrong_k_is_refused(call, wrong, error, words):
    with pytest.raises(error, match=words):
        call(**CHAIN, k=wrong, device="cpu")


@pytest.mark.gpu
@functions
def test_cudf_in_cudf_out(function):
    cudf = pytest.importorskip("cudf")
    for name in ("several columns", "strings", "beyond int32", "weighted"):
        given = GRAPHS[name]()
        expected = function(**given, device="cpu")
        given["graph"] = cudf.from_pandas(given["graph"])
        found = function(**given)
        assert isinstance(found, cudf.DataFrame)
        assert_frame_equal(found.to_pandas(), expected, check_dtype=False)


def test_all_engines_of_a_graph_on_a_cpu_share_one_orientation(monkeypatch):
    orient, asked = cpu.orient, []
    monkeypatch.setattr(cpu, "orient", lambda *rows: asked.append(rows) or orient(*rows))
    graph = as_graph(**GRAPHS["two cliques"](), device="cpu")
    trussness(graph)
    structural_diversity(graph, 2, "truss")
    triangle_count(graph)
    assert len(asked) == 1


@pytest.mark.parametrize("limited", [False, True])
def test_what_does_not_fit_is_refused_with_the_bytes_it_lacks(limited, monkeypatch):
    source, destination = np.random.default_rng(1).integers(0, 300, (2, 4000))
    given = as_graph((source, destination), device="cpu")
    monkeypatch.setattr(whole_memory, "LITTLE", 0)
    for name, call in FUNCTIONS.items():
        graph = replace(given, _derived={})
        said = rf"([\d,]+) too little for {name} of its 300 vertices"
        limit = {"memory_limit": 1_000} if limited else {}
        monkeypatch.setattr(call_memory, "memory_free", lambda device: 1_000)
        with pytest.raises(MemoryError, match=said) as error:
            call(graph, **limit)
        enough = 1_000 + int(re.search(said, str(error.value))[1].replace(",", ""))
        monkeypatch.setattr(call_memory, "memory_free", lambda device, free=enough: free)
        call(graph, **({"memory_limit": enough} if limited else {}))
        with pytest.raises(ValueError, match="memory_limit must be"):
            call(graph, memory_limit="40XB")
    if not limited:
        monkeypatch.setattr(call_memory, "memory_free", lambda device: 1_000)
        with pytest.raises(MemoryError, match="too little for structural_diversity"):
            structural_diversity(replace(given, _derived={}), 2)
