"""Undirected lists hold every edge at both ends: what does not is refused when it is opened."""

from dataclasses import replace

import numpy as np
import pytest
from compressed_files import changed
from graphs import GRAPHS, edges, random_pairs

from glp_rapids import CompressedGraph, as_graph, compress
from glp_rapids.compressed import symmetry
from glp_rapids.compressed.rows import CompressedCSR
from glp_rapids.device import to_device, to_host
from glp_rapids.graph.graph import Graph, is_symmetric

SCHEMES = ("cgr", "packed", "entropy")
SAID = r"damaged in section words \(.* not all at both ends"


@pytest.fixture
def path(tmp_path):
    return tmp_path / "graph.glp"


def undirected(indptr, indices, weights, like, device):
    arrays = [None if part is None else to_device(part, device)
              for part in (indptr, indices, weights)]  # fmt: skip
    return Graph(*arrays, False, like.vertices)


@pytest.mark.parametrize("name", [name for name in GRAPHS if "directed" in name])
def test_a_directed_graph_cannot_pass_for_an_undirected_one(name, path, device):
    graph = as_graph(**GRAPHS[name](), device=device)
    assert not is_symmetric(graph)
    compress(graph, SCHEMES[len(name) % 3], order="bfs" if len(name) % 2 else None).save(path)
    changed(path, directed=False)
    with pytest.raises(ValueError, match=SAID):
        CompressedGraph.open(path, device=device)
    assert not CompressedGraph.open(path, device=device, verify=False).directed
    changed(path, directed=True)
    assert CompressedGraph.open(path, device=device).directed


def test_every_undirected_graph_passes(monkeypatch, device):
    monkeypatch.setattr(symmetry, "ENTRIES_AT_ONCE", 300)
    for number, (name, make) in enumerate(GRAPHS.items()):
        graph = as_graph(**make(), device=device)
        rows = compress(graph, SCHEMES[number % 3], order="degree" if number % 2 else None)
        rows = CompressedCSR(rows.lists, rows.weights, rows.order)
        assert symmetry.is_symmetric(rows) != graph.directed, name


# With weights of each form: none, one for all, codes, and as they are.
WEIGHTS = {"none": 0, "equal": 1, "codes": 9, "plain": 10**6}


@pytest.mark.parametrize("values", WEIGHTS.values(), ids=WEIGHTS)
def test_one_entry_that_is_elsewhere_is_noticed(values, path, device):
    rng = np.random.default_rng(3)
    pairs = random_pairs(70, 400, 5)
    graph = as_graph(**edges(np.unique(np.sort(pairs), axis=0).tolist()), device="cpu")
    rows = np.repeat(np.arange(graph.number_of_vertices), graph.degree)
    loop = rows == graph.indices
    weights = None
    if values:
        low, high = np.minimum(rows, graph.indices), np.maximum(rows, graph.indices)
        weights = 0.5 + (low * 131 + high * 7) % values
    whole = undirected(graph.indptr, graph.indices, weights, graph, device)
    compress(whole, order="bfs").save(path)
    assert CompressedGraph.open(path, device=device).number_of_edges == graph.number_of_edges
    for change in ("an entry less", "another neighbour", "another weight"):
        indices, mine, kept = graph.indices.copy(), weights, np.ones(rows.size, bool)
        at = int(rng.choice(np.flatnonzero(~loop)))
        if change == "an entry less":
            kept[at] = False
        elif change == "another weight":
            if values < 2:
                continue
            mine = weights.copy()
            mine[at] = mine[at] % 8 + 1
        else:
            own = set(indices[rows == rows[at]].tolist())
            indices[at] = next(v for v in range(70) if v not in own)
            order = np.lexsort([indices, rows])
            indices = indices[order]
        counts = np.bincount(rows[kept], minlength=graph.number_of_vertices)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        mine = None if mine is None else mine[kept]
        other = undirected(indptr, indices[kept], mine, graph, device)
        assert not is_symmetric(replace(other, directed=True, _derived={}))
        compress(other, "cgr").save(path)
        with pytest.raises(ValueError, match=SAID):
            CompressedGraph.open(path, device=device)


def test_edges_that_cross_over_do_not_cancel_out(path):
    # 1 - 3 and 2 - 4 upwards, 1 - 4 and 2 - 3 downwards: a sum over ends would be the same
    like = as_graph(**edges([(1, 3), (2, 4)], vertices=[0]), device="cpu")
    crossed = undirected(like.indptr, np.array([3, 4, 2, 1], np.int32), None, like, "cpu")
    compress(crossed).save(path)
    with pytest.raises(ValueError, match=SAID):
        CompressedGraph.open(path, device="cpu")


def test_a_negative_zero_weighs_as_much_as_zero(path, device):
    graph = as_graph(**edges([(0, 1), (1, 2)], [0.0, 1.0]), device="cpu")
    weights = graph.weights.copy()
    weights[np.flatnonzero(weights == 0)[0]] = -0.0
    signs = undirected(graph.indptr, graph.indices, weights, graph, device)
    compress(signs).save(path)
    found = to_host(CompressedGraph.open(path, device=device).to_graph().weights)
    assert found.tobytes() == weights.tobytes()
