"""Everything is compared with the twins; the twins answer to published and hand-made facts."""

import gzip
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
import reference
import reference_diversity as diversity
import reference_variants as variants
from scipy import sparse


def csr(n, edges, weights=None):
    """Undirected rows from a list of edges, a loop once."""
    rows = [[] for _ in range(n)]
    for i, (u, v) in enumerate(edges):
        weight = 1 if weights is None else weights[i]
        rows[u].append((v, weight))
        if u != v:
            rows[v].append((u, weight))
    entries = [entry for row in rows for entry in sorted(row)]
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    indices = np.array([u for u, _ in entries], np.int32)
    return indptr, indices, None if weights is None else np.array([w for _, w in entries])


TWO_TRIANGLES = (6, [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (3, 5)])


def test_mix_is_splitmix64():
    # the published first outputs of splitmix64 seeded with 1234567
    state, step = 1234567, 0x9E3779B97F4A7C15
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert [reference.mix(state + i * step, 0) for i in range(3)] == expected


def test_ldbc_cdlp_is_reproduced(data):
    def read(suffix):
        with gzip.open(data / f"graphalytics-p2p-31.{suffix}.gz", "rt") as file:
            return [line.split() for line in file]

    ids = sorted(int(row[0]) for row in read("v"))
    index = {vertex: i for i, vertex in enumerate(ids)}
    edges = [(index[int(u)], index[int(v)]) for u, v, _ in read("e")]
    indptr, indices, _ = csr(len(ids), edges)
    options = dict(update="sync", explore=0, tie_break="min", retain=False, max_iter=10)
    labels, changed = reference.label_propagation(indptr, indices, **options)
    assert len(changed) == 10
    expected = {int(vertex): int(label) for vertex, label in read("CDLP")}
    assert {vertex: ids[labels[index[vertex]]] for vertex in ids} == expected


def test_two_triangles_are_two_communities():
    indptr, indices, _ = csr(*TWO_TRIANGLES)
    labels, changed = reference.label_propagation(indptr, indices, classes=4, explore=0)
    assert changed[-1] == 0
    assert reference.renumbered(labels) == [0, 0, 0, 1, 1, 1]


def test_weights_decide_and_a_scaled_copy_decides_the_same():
    edges = [(0, 1), (1, 2), (2, 3)]
    labels = []
    for weights in ([0.1, 0.4, 0.1], [1, 4, 1]):
        found, _ = reference.label_propagation(*csr(4, edges, weights), explore=0, update="sync")
        labels.append(found)
    assert labels[0] == labels[1]
    assert labels[0][1] in (1, 2)


def test_scale_is_the_largest_power_of_two_that_fits():
    for weights in ([0.1, 0.3], [1.0, 2.0**-30], [3e300, 1.0], [5e-320, 1e-320]):
        indptr, _, weights = csr(3, [(0, 1), (1, 2)], weights)
        total = 2 * Fraction(float(max(weights)))
        assert 2**61 < total * reference.scale_of(indptr, weights) <= 2**62


def test_isolated_vertices_keep_their_labels():
    indptr, indices, _ = csr(3, [(0, 2)])
    labels, _ = reference.label_propagation(indptr, indices)
    assert labels[1] == 1
    kept = variants.speaker_listener(indptr, indices)
    assert kept[1] == {1: 1.0}


def test_layered_propagation_refines_with_gamma():
    indptr, indices, _ = csr(*TWO_TRIANGLES)
    found = variants.layered_label_propagation(indptr, indices, gammas=[0, 1, 1024], explore=0)
    sizes = [len(set(labels)) for labels, _ in found.values()]
    assert sizes == sorted(sizes)
    # without a price on volume the score is the number of votes
    assert found[0] == reference.label_propagation(indptr, indices, explore=0)


def test_memory_is_cut_by_count_then_threshold():
    memory = [7, 3, 3, 7, 5, 5, 9]
    assert variants.kept_of(memory, max_labels=2, threshold=0) == {3: 2 / 7, 5: 2 / 7}
    assert variants.kept_of(memory, max_labels=5, threshold=0.2) == {
        3: 2 / 7,
        5: 2 / 7,
        7: 2 / 7,
    }
    assert variants.kept_of(memory, max_labels=5, threshold=0.9) == {3: 2 / 7}


def test_covers_are_renumbered_by_smallest_vertex():
    kept = [{8: 1.0}, {8: 0.5, 2: 0.25, 1: 0.25}, {2: 1.0}]
    assert variants.renumbered_cover(kept) == [{0: 1.0}, {0: 0.5, 2: 0.25, 1: 0.25}, {2: 1.0}]


def test_seeds_spread_by_hops_and_fade():
    edges = [(0, 1), (1, 2), (2, 3), (3, 4), (5, 5)]
    labels, scores, hops, changed = variants.seeded_label_propagation(
        *csr(6, edges), seeds={0: 3}, max_iter=6
    )
    assert labels == [3, 3, 3, 3, 3, -1]
    assert hops == [0, 1, 2, 3, 4, -1]
    assert changed == [1, 1, 1, 1, 0, 0]
    assert scores[0] == 1.0
    assert scores[5] == 0.0
    assert scores[1] > scores[2] > scores[3] > 0
    labels, _, hops, _ = variants.seeded_label_propagation(*csr(6, edges), seeds={0: 3}, max_hops=2)
    assert labels == [3, 3, 3, -1, -1, -1]
    assert hops == [0, 1, 2, -1, -1, -1]


def test_seeded_scores_converge_to_the_linear_system():
    rng = np.random.default_rng(1)
    edges = [(u, v) for u in range(12) for v in range(u) if rng.random() < 0.4]
    weights = rng.random(len(edges)).tolist()
    indptr, indices, entries = csr(12, edges, weights)
    _, scores, _, _ = variants.seeded_label_propagation(
        indptr, indices, entries, seeds={0: 0, 5: 0}, max_iter=300
    )
    matrix = np.zeros((12, 12))
    for (u, v), weight in zip(edges, weights, strict=True):
        matrix[u, v] = matrix[v, u] = weight
    norms = np.sqrt(matrix.sum(axis=1))
    system = 0.85 * matrix / np.outer(norms, norms)
    known, free = [0, 5], [v for v in range(12) if v not in (0, 5)]
    rest = np.eye(10) - system[np.ix_(free, free)]
    expected = np.linalg.solve(rest, system[np.ix_(free, known)].sum(axis=1))
    np.testing.assert_allclose(np.array(scores)[free], expected, rtol=1e-9)


def as_subgraph(graph):
    """A subgraph of the twins as {vertex: its neighbours} that networkx answers to as well."""
    return {v: set(graph[v]) for v in graph}


@pytest.fixture(
    scope="module", params=[(1, 0), (9, 0.3), (14, 0.6), (24, 0.25), (24, 0.5), (40, 0.2)], ids=str
)
def two_forms(request):
    """A random graph as networkx has it and as lists of neighbour sets."""
    graph = nx.gnp_random_graph(*request.param, seed=5)
    return graph, [set(graph[v]) for v in graph]


def test_ego_networks_are_induced_subgraphs(two_forms):
    graph, neighbours = two_forms
    for v in graph:
        expected = as_subgraph(graph.subgraph(graph[v]))
        assert diversity.ego_network(neighbours, v) == expected
        assert expected == as_subgraph(nx.ego_graph(graph, v, center=False))


@pytest.mark.parametrize("model", ["component", "core", "truss"])
def test_contexts_are_those_of_networkx(two_forms, model):
    graph, neighbours = two_forms
    for v in graph:
        ego = graph.subgraph(graph[v]).copy()
        place = {u: i for i, u in enumerate(sorted(ego))}
        ones = nx.to_numpy_array(ego, nodelist=sorted(ego), dtype=np.float32)
        matrix = sparse.csr_array(ones)
        of_matrix = diversity.matrix_contexts(matrix, 9, model)
        for k in range(2 if model == "truss" else 1, 10):
            if model == "component":
                sets = [part for part in nx.connected_components(ego) if len(part) >= k]
            else:
                left = nx.k_core(ego, k) if model == "core" else nx.k_truss(ego, k)
                sets = nx.connected_components(left)
            found = diversity.social_contexts(diversity.ego_network(neighbours, v), k, model)
            assert found == sorted(map(sorted, sets))
            first = {u: place[context[0]] for context in found for u in context}
            assert of_matrix[k - 1].tolist() == [first.get(u, -1) for u in sorted(ego)]


def test_cores_trusses_and_triangles_are_those_of_networkx(two_forms):
    graph, neighbours = two_forms
    assert diversity.core_numbers(neighbours) == list(nx.core_number(graph).values())
    assert diversity.triangle_counts(neighbours) == list(nx.triangles(graph).values())
    trussness = diversity.trussness(neighbours)
    assert set(trussness) == {(min(edge), max(edge)) for edge in graph.edges}
    whole = dict(enumerate(neighbours))
    for k in range(2, 12):
        edges = {(min(edge), max(edge)) for edge in nx.k_truss(graph, k).edges}
        assert {edge for edge, t in trussness.items() if t >= k} == edges
        assert diversity.core(whole, k) == as_subgraph(nx.k_core(graph, k))


def test_entries_make_neighbour_sets_without_loops():
    indptr, indices, _ = csr(4, [(0, 0), (0, 1), (1, 2), (1, 2)])
    assert diversity.neighbour_sets(indptr, indices) == [{1}, {0, 2}, {1}, set()]
    one_way = np.array([0, 1, 2, 2]), np.array([1, 2])
    assert diversity.neighbour_sets(*one_way) == [{1}, {0, 2}, {1}]
