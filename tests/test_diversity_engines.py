"""The engines of structural diversity, on ego-networks of every size and on real graphs.

A GPU takes ego-networks of at most 128 members by warps, of at most 512 by blocks, and larger ones
together, and packs members by 32; so here are some on either side of those numbers.
"""

import functools
from itertools import product

import numpy as np
import pytest
import reference_diversity as reference
from cases import exhaustive, turns
from graphs import GRAPHS, edges
from pandas.testing import assert_frame_equal
from scipy import sparse

from glp_rapids import as_graph, datasets, structural_diversity, top_structural_diversity
from glp_rapids.device import array_module, to_host
from glp_rapids.diversity.engines import engine_of
from glp_rapids.graph.simple import simple

MODELS = ("component", "core", "truss")
models = pytest.mark.parametrize("model", MODELS)
BOUNDARIES = (1, 2, 31, 32, 33, 63, 64, 65, 127, 128, 129, 511, 512, 513, 600)
HUBS = (700, 1025, 2000, 5000)


def engine(graph, device, **options):
    return engine_of(simple(graph, graph.directed), device, **options)


def blocks(rng, start, size):
    """Groups of random size and density among ``size`` vertices, some joined, some alone."""
    pairs, here = [], 0
    while here < size:
        width = int(min(rng.integers(1, 60), size - here))
        dense = np.triu(rng.random((width, width)) < rng.choice([0.1, 0.3, 0.6, 1.0]), 1)
        pairs += (np.argwhere(dense) + start + here).tolist()
        here += width
    some = rng.integers(0, size, (size // 20, 2)) + start
    return pairs + some.tolist()


@functools.cache
def graph_of_hubs(degrees, seed):
    """Per degree a hub over groups of its own; and the indices of the hubs and of some others."""
    rng = np.random.default_rng(seed)
    pairs, start, hubs = [], 0, []
    for degree in degrees:
        hubs.append(start)
        pairs += [(start, start + i) for i in range(1, degree + 1)]
        pairs += blocks(rng, start + 1, degree)
        start += degree + 1
    # the members of an ego-network lie all over the graph
    names = rng.permutation(start)
    some = rng.choice(start, 60, replace=False)
    chosen = np.unique(np.concatenate([names[hubs], some]))
    return edges(names[np.array(pairs)].tolist()), rng.permutation(chosen)


@functools.cache
def dense_graph(degree, density, seed):
    """A hub over a random graph, and a hub over half of that and the first hub."""
    rng = np.random.default_rng(seed)
    pairs = np.argwhere(np.triu(rng.random((degree, degree)) < density, 1)).tolist()
    pairs += [(degree, i) for i in range(degree)]
    pairs += [(degree + 1, i) for i in range(degree // 2, degree - 1)]
    names = rng.permutation(degree + 2)
    return edges(names[np.array(pairs)].tolist()), np.concatenate([names[-2:], names[:2]])


@functools.cache
def real_graph(name, device):
    frame = datasets.load(name)
    return as_graph(frame[["src", "dst"]], directed=frame.attrs["directed"], device=device)


def expectations(graph, vertices, model, largest):
    """Per vertex the `matrix_contexts` of its ego-network."""
    rows = simple(graph, graph.directed)
    indptr, indices = to_host(rows.indptr), to_host(rows.indices)
    ones = np.ones(indices.size, dtype=np.float32)
    matrix = sparse.csr_array((ones, indices, indptr), (indptr.size - 1,) * 2)
    found = []
    for v in map(int, vertices):
        members = indices[indptr[v] : indptr[v + 1]]
        ego = matrix[members][:, members]
        found.append(reference.matrix_contexts(ego, largest, model))
    return found


def check(graph, vertices, model, ks, device):
    """Scores, every score and members of the chosen ego-networks, all at once."""
    found = engine(graph, device)
    asked = found.xp.asarray(vertices)
    expected = expectations(graph, vertices, model, ks[-1])
    scores = np.array([[(a == np.arange(len(a))).sum() for a in firsts] for firsts in expected])
    offsets, every = (to_host(array) for array in found.every_score(asked, model))
    degrees = [len(firsts[0]) for firsts in expected]
    assert np.array_equal(np.diff(offsets), degrees)
    for k in range(1, ks[-1] + 1):
        there = np.array(degrees) >= k
        assert np.array_equal(every[offsets[:-1][there] + k - 1], scores[there, k - 1]), k
        assert not scores[~there, k - 1].any()
    for k in ks:
        if k > 1 or model != "truss":
            assert np.array_equal(to_host(found.scores(asked, k, model)), scores[:, k - 1]), k
            members = np.concatenate([firsts[k - 1] for firsts in expected])
            assert np.array_equal(to_host(found.members(asked, k, model)), members), k


@models
@pytest.mark.parametrize("seed", [0, 1])
def test_ego_networks_of_every_size(model, seed, device):
    given, vertices = graph_of_hubs(BOUNDARIES, seed)
    check(as_graph(**given, device=device), vertices, model, range(1, 13), device)


@models
@pytest.mark.parametrize(
    ("degree", "density"),
    [(31, 0.9), (32, 0.7), (33, 0.95), (127, 0.5), (128, 0.6), (129, 0.7), (512, 0.15), (513, 0.2)],
)
def test_dense_ego_networks(model, degree, density, device):
    given, vertices = dense_graph(degree, density, degree)
    graph = as_graph(**given, device=device)
    critical = int(degree * density**2) + 2
    check(graph, vertices, model, range(max(1, critical - 12), critical + 9, 3), device)


@models
def test_ego_networks_of_hubs(model, device):
    given, vertices = graph_of_hubs(HUBS, 2)
    check(as_graph(**given, device=device), vertices, model, range(1, 9), device)


def strips(width, rng):
    """A hub over strips in which everybody knows the next three, with a few edges left out.

    What falls to pieces there does so from the gaps on, in many rounds.
    """
    place = np.arange(width - 3)
    along = np.concatenate([np.column_stack([place, place + step]) for step in (1, 2, 3)])
    along = along[rng.random(len(along)) < 0.98] + 1
    names = rng.permutation(width + 1)
    pairs = [*along.tolist(), *((0, i) for i in range(1, width + 1))]
    return edges(names[np.array(pairs)].tolist()), names[:1]


@models
@pytest.mark.parametrize("limits", [(32, 512, 1024), (0, 1, 0), (1, 2, 3), (2, 3, 10**6)])
def test_large_ego_networks_by_small_steps(model, limits, device, monkeypatch):
    if device == "gpu":
        from glp_rapids.diversity.kernels import gpu_bitmap, gpu_lazy

        monkeypatch.setattr(gpu_bitmap, "SIZES", ())
        monkeypatch.setattr(gpu_lazy, "LIMITS", gpu_lazy.Limits(*limits))
    for given, vertices in (
        graph_of_hubs(BOUNDARIES, 3),
        dense_graph(150, 0.3, 5),
        strips(1300, np.random.default_rng(8)),
    ):
        check(as_graph(**given, device=device), vertices, model, range(1, 8), device)


SOCIAL = (
    "ca-CondMat", "com-dblp", "facebook_combined", "email-Eu-core", "email-Enron", "wiki-Vote"
)  # fmt: skip


@pytest.mark.parametrize(
    ("name", "model"),
    [*product(["ca-CondMat"], MODELS), *exhaustive(*turns(SOCIAL[1:], MODELS))],
)
def test_random_vertices_of_social_graphs(name, model, data, device):
    graph = real_graph(name, device)
    n = graph.number_of_vertices
    vertices = np.random.default_rng(17).choice(n, min(500, n), replace=False)
    check(graph, vertices, model, range(1, 9), device)


@models
@pytest.mark.parametrize("name", ["email-Eu-core", *exhaustive("ca-CondMat")])
def test_the_best_of_social_graphs_however_found(name, model, data, device):
    graph = real_graph(name, device)
    options = {"model": model, "symmetrize": graph.directed, "device": device}
    several = [0, 1] if device == "cpu" else [0]
    for k in (2, 4):
        every = structural_diversity(graph, k, **options)
        assert_frame_equal(structural_diversity(graph, k, devices=several, **options), every)
        ranked = every.sort_values("score", ascending=False, kind="stable", ignore_index=True)
        for t in (1, 10, 300):
            found = top_structural_diversity(graph, t, k, **options)
            assert_frame_equal(found[0], ranked[:t])
            counts = found[1].drop_duplicates(["vertex", "context"])["vertex"].value_counts()
            positive = found[0][found[0]["score"] > 0].set_index("vertex")["score"]
            assert counts.to_dict() == positive.to_dict()
            for other in ({"prune": False}, {"devices": several}):
                for one, same in zip(
                    top_structural_diversity(graph, t, k, **options, **other), found, strict=True
                ):
                    assert_frame_equal(one, same)


@models
def test_any_vertices_in_any_order_and_any_batches(model, device):
    given, _ = graph_of_hubs(BOUNDARIES, 1)
    graph = as_graph(**given, device=device)
    n = graph.number_of_vertices
    whole = engine(graph, device)
    every = whole.xp.arange(n)
    offsets, of_all_k = map(to_host, whole.every_score(every, model))
    scores, members = (to_host(ask(every, 3, model)) for ask in (whole.scores, whole.members))
    assert np.array_equal(offsets, to_host(whole.indptr))
    rng = np.random.default_rng(5)
    worked = []
    for size, limit in [(1, None), (n // 2, None), (n, None), (n, 2**22), (n, 2**24), (n, 2**32)]:
        vertices = rng.permutation(n)[:size]
        asked = whole.xp.asarray(vertices)
        part = engine(graph, device, memory_limit=limit)
        try:
            found, found_members = part.scores(asked, 3, model), part.members(asked, 3, model)
            found_offsets, found_of_all_k = part.every_score(asked, model)
        except MemoryError as error:
            assert "memory_limit" in str(error)  # noqa: PT017
            assert limit is not None
            continue
        assert found.dtype == found_members.dtype == found_of_all_k.dtype == np.int32
        assert found_offsets.dtype == np.int64
        rows = np.concatenate([np.arange(*offsets[v : v + 2]) for v in vertices])
        assert np.array_equal(to_host(found), scores[vertices])
        assert np.array_equal(to_host(found_members), members[rows])
        assert np.array_equal(to_host(found_of_all_k), of_all_k[rows])
        assert np.array_equal(np.diff(to_host(found_offsets)), np.diff(offsets)[vertices])
        worked.append(limit)
    assert worked[-1] == 2**32  # with a limit, too


@pytest.mark.parametrize("step", [4, *exhaustive(1)])
@models
def test_batches_change_nothing(model, step, device):
    given, _ = graph_of_hubs((*range(514, 640, 9), 90), 4)
    graph = as_graph(**given, device=device)

    def results(**options):
        options |= {"model": model, "device": device}
        return (
            structural_diversity(graph, 3, **options),
            structural_diversity(graph, None, **options),
            *top_structural_diversity(graph, 30, 3, **options),
        )

    expected, batches = results(), []
    for exponent in range(13, 27, step):
        try:
            found = results(memory_limit=2**exponent)
        except MemoryError as error:
            assert "memory_limit" in str(error)  # noqa: PT017
            continue
        for frame, other in zip(found, expected, strict=True):
            assert_frame_equal(frame, other)
        batches.append(found[0].attrs["glp"]["batches"])
    assert batches
    assert device == "cpu" or step > 1 or batches[0] > 3


@models
def test_an_ego_network_beyond_memory_is_refused(model, device):
    given, _ = graph_of_hubs((600,), 4)
    options = {"model": model, "memory_limit": 1, "device": device}
    for k in (3, None):
        with pytest.raises(MemoryError, match="memory_limit"):
            structural_diversity(**given, k=k, **options)
    with pytest.raises(MemoryError, match="memory_limit"):
        top_structural_diversity(**given, t=1, k=3, **options)


WITH_EDGES = set(GRAPHS) - {"empty", "one vertex", "only isolated", "one self-loop"}


@pytest.mark.parametrize("name", [*sorted(WITH_EDGES), "hubs"])
def test_ego_rows_and_numbers_of_entries(name, device):
    given = graph_of_hubs(BOUNDARIES[:-3], 0)[0] if name == "hubs" else GRAPHS[name]()
    graph = as_graph(**given, device=device)
    found = engine(graph, device)
    indptr, indices = to_host(found.indptr), to_host(found.indices)
    neighbours = reference.neighbour_sets(indptr, indices)
    n = len(neighbours)
    rows = np.repeat(np.arange(n), np.diff(indptr)).tolist()
    entries = list(zip(rows, indices.tolist(), strict=True))
    assert entries == [(u, v) for u in range(n) for v in sorted(neighbours[u])]
    common = [len(neighbours[u] & neighbours[v]) for u, v in entries]
    assert to_host(found.common_neighbors()).tolist() == common
    if name != "hubs":
        numbers, of_edges = reference.core_numbers(neighbours), reference.trussness(neighbours)
        of_edges = [of_edges[min(edge), max(edge)] for edge in entries]
        assert to_host(found.core_number()).tolist() == numbers
        assert to_host(found.trussness()).tolist() == of_edges
        for k in (2, 3, 5):
            clamped = to_host(found.core_number(k))
            assert np.array_equal(clamped >= k, np.array(numbers, dtype=int) >= k)
            inside = np.array(of_edges, int) >= k
            assert np.array_equal(to_host(found.trussness(k)) >= k, inside)
            source = np.array(rows, dtype=int)
            upper = source < indices
            for part in (
                found.edges(k, entries=found.trussness(k, once=True), place=True),
                found.edges(k, entries=found.xp.asarray(np.array(of_edges, int)), place=True),
            ):
                expected = source[upper & inside], indices[upper & inside]
                assert np.array_equal(list(map(to_host, part[:2])), expected)
                assert np.array_equal(to_host(part[2]), np.flatnonzero(upper & inside))
    vertices = np.random.default_rng(2).permutation(n)[: n // 2 + 1]
    ego_indptr, ego_indices = found.ego_rows(found.xp.asarray(vertices))
    expected, start = [], 0
    for v in map(int, vertices):
        place = {u: start + i for i, u in enumerate(sorted(neighbours[v]))}
        start += len(place)
        expected += [sorted(place[w] for w in neighbours[u] & neighbours[v]) for u in place]
    assert np.array_equal(
        to_host(ego_indptr), [0, *np.cumsum([len(row) for row in expected], dtype=int)]
    )
    assert to_host(ego_indices).tolist() == [node for row in expected for node in row]
    assert array_module(ego_indices) is found.xp


@models
def test_k_beyond_every_degree(model, device):
    found = engine(as_graph(**GRAPHS["clique"](), device=device), device)
    vertices = found.xp.arange(12)
    for k in (11, 12, 13, 10**6):
        scores, members = found.scores(vertices, k, model), found.members(vertices, k, model)
        inside = k <= {"component": 11, "core": 10, "truss": 11}[model]
        assert to_host(scores).tolist() == [int(inside)] * 12
        assert set(to_host(members).tolist()) == ({0} if inside else {-1})


@pytest.mark.gpu
@models
@pytest.mark.parametrize("name", [*SOCIAL, "cnr-2000"])
def test_a_gpu_gives_what_a_cpu_gives(name, model, data):
    pytest.importorskip("cupy")
    on_cpu, on_gpu = (engine(real_graph(name, where), where) for where in ("cpu", "gpu"))
    degrees = np.diff(on_cpu.indptr)
    # the largest ego-networks of a web take a CPU minutes
    vertices = np.flatnonzero(degrees <= 2000 if name == "cnr-2000" else degrees >= 0)
    for k in (2, 4, 6):
        expected = on_cpu.scores(vertices, k, model)
        assert np.array_equal(on_gpu.scores(on_gpu.xp.asarray(vertices), k, model).get(), expected)
    expected = on_cpu.members(vertices, 4, model)
    assert np.array_equal(on_gpu.members(on_gpu.xp.asarray(vertices), 4, model).get(), expected)
