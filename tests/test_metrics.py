import itertools
import tracemalloc

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from glp_rapids import as_graph, contract, label_propagation
from glp_rapids.ingest import read
from glp_rapids.metrics import ari, cover_f1, coverage, cpm, modularity, nmi

LABELLINGS = {
    "same": ([0, 0, 1, 1, 2], [5, 5, 3, 3, 9]),
    "finer": ([0, 0, 1, 1, 1], [0, 1, 2, 3, 3]),
    "independent": ([0, 0, 1, 1], [0, 1, 0, 1]),
    "one against many": ([0] * 5, [0, 1, 2, 3, 4]),
    "both one": ([0] * 4, [1] * 4),
    "all apart": ([0, 1, 2, 3], [3, 2, 1, 0]),
    "one vertex": ([0], [0]),
    "strings": (["x", "y", "y", "z"], ["b", "b", "a", "a"]),
    "far apart": ([-(2**62), 2**62, 2**62, 0], [0.5, 0.5, 1.5, 1.5]),
}


def frame(labels, vertices=None):
    vertices = range(len(labels)) if vertices is None else vertices
    return pd.DataFrame({"vertex": vertices, "partition": labels})


def graph_of(n, edges_per_vertex, *, directed, weighted, seed, loops=True):
    """A random networkx graph with isolated vertices, and a random partition of it."""
    rng = np.random.default_rng(seed)
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(n))
    for u, v in rng.integers(0, n, (n * edges_per_vertex, 2)).tolist():
        if loops or u != v:
            graph.add_edge(u, v, weight=rng.random() * 10 if weighted else 1)
    return graph, rng.integers(0, max(1, n // 5), n).tolist()


def edges_of(graph, weighted):
    rows = [(u, v, data["weight"]) for u, v, data in graph.edges(data=True)]
    edges = pd.DataFrame(rows, columns=["src", "dst", "weight"])
    options = dict(directed=graph.is_directed(), vertices=list(graph))
    return edges, options | ({"weight": "weight"} if weighted else {})


def communities(labels):
    members = {}
    for vertex, label in enumerate(labels):
        members.setdefault(label, set()).add(vertex)
    return list(members.values())


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("resolution", [1, 0.3])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_modularity_is_that_of_networkx(directed, weighted, resolution, seed):
    graph, labels = graph_of(40, 3, directed=directed, weighted=weighted, seed=seed)
    edges, options = edges_of(graph, weighted)
    found = modularity(edges, frame(labels), resolution=resolution, **options)
    expected = nx.community.modularity(graph, communities(labels), resolution=resolution)
    assert found == pytest.approx(expected, rel=1e-12, abs=1e-14)


@pytest.mark.parametrize("directed", [False, True])
def test_coverage_is_that_of_networkx(directed):
    graph, labels = graph_of(40, 3, directed=directed, weighted=False, seed=3)
    edges, options = edges_of(graph, weighted=False)
    expected, _ = nx.community.partition_quality(graph, communities(labels))
    assert coverage(edges, frame(labels), **options) == pytest.approx(expected, rel=1e-14)


def test_coverage_counts_weight():
    edges = pd.DataFrame({"src": [0, 1, 2], "dst": [1, 2, 2], "weight": [3, 4, 1]})
    assert coverage(edges, frame([0, 0, 1]), weight="weight") == 0.5


def test_order_of_rows_and_names_of_communities_do_not_show():
    graph, labels = graph_of(200, 4, directed=False, weighted=True, seed=4)
    edges, options = edges_of(graph, weighted=True)
    expected = modularity(edges, frame(labels), **options)
    for seed in range(5):
        names = np.random.default_rng(seed).permutation(10**6)[labels]
        shuffled = frame(names).sample(frac=1, random_state=seed)
        rows = edges.sample(frac=1, random_state=seed)
        assert modularity(rows, shuffled, **options) == expected


def test_rows_cut_in_ranges_change_nothing(monkeypatch):
    graph, labels = graph_of(60, 4, directed=True, weighted=True, seed=5)
    edges, options = edges_of(graph, weighted=True)
    expected = modularity(edges, frame(labels), **options)
    for entries in (1, 7, 50):
        few = lambda rows, entries=entries: entries  # noqa: E731
        monkeypatch.setattr("glp_rapids.graph.rows.Rows.few_at_once", few)
        assert modularity(edges, frame(labels), **options) == expected


def test_many_entries_of_few_vertices_take_little_memory():
    ends = np.random.default_rng(2).integers(0, 1_000, (2, 200_000))
    graph = as_graph(tuple(ends), device="cpu")
    found = label_propagation(graph, max_iter=2)
    modularity(graph, found)
    tracemalloc.start()
    modularity(graph, found)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < graph.indices.nbytes


def test_names_of_communities_with_gaps_change_nothing():
    ends = np.random.default_rng(3).integers(0, 300, (2, 900))
    graph = as_graph(tuple(ends), device="cpu")
    found = label_propagation(graph)
    first = found.groupby("partition")["vertex"].transform("min")
    named = found.assign(partition=first)  # below the number of vertices, most not used
    for measure in (modularity, coverage, cpm):
        assert measure(graph, named) == measure(graph, found)
        assert measure(graph, found.assign(partition=-1 - first)) == measure(graph, found)


def test_a_long_row_before_vertices_without_an_edge(monkeypatch):
    edges = pd.DataFrame({"src": [2, 2], "dst": [0, 1]})
    monkeypatch.setattr("glp_rapids.graph.rows.Rows.few_at_once", lambda rows: 1)
    assert modularity(edges, frame([0, 0, 0, 1, 2]), vertices=[3, 4], device="cpu") == 0


@pytest.mark.parametrize("size", [1e-310, 1e-200, 1e200, 2**55])
def test_weights_of_any_size(size):
    edges = pd.DataFrame({"src": [0, 1, 2, 2], "dst": [1, 2, 3, 0], "weight": [size] * 4})
    plain = edges.drop(columns="weight")
    labels = frame([0, 0, 0, 1])
    assert modularity(edges, labels, weight="weight") == pytest.approx(modularity(plain, labels))


def test_ids_of_several_columns():
    edges = pd.DataFrame({"s": [0, 0, 0], "sk": list("aab"), "d": [0, 0, 1], "dk": list("bba")})
    ids = dict(source=["s", "sk"], destination=["d", "dk"])
    labels = pd.DataFrame({"0_vertex": [1, 0, 0], "1_vertex": list("aab"), "partition": [1, 0, 0]})
    assert coverage(edges, labels, **ids) == 0.5


@pytest.mark.parametrize("measure", [modularity, cpm, coverage])
def test_a_graph_is_judged_where_it_lies(monkeypatch, measure):
    """A GPU that is there may not hold it."""
    graph = as_graph(EDGES, device="cpu")
    found = frame([0, 0, 1], [10, 20, 30])
    expected = measure(graph, found, device="cpu")
    monkeypatch.setattr(read, "choose", lambda device: device or "gpu")
    monkeypatch.setattr(type(graph), "_copied", None)
    assert measure(graph, found) == expected


def test_nothing_to_measure_is_nan():
    edges = pd.DataFrame({"src": [0, 1], "dst": [1, 2], "weight": [0.0, 0.0]})
    for edgeless, options in (
        (edges, {"weight": "weight"}),
        (edges[:0], {"vertices": [0, 1, 2]}),
    ):
        assert np.isnan(modularity(edgeless, frame([0, 1, 1]), **options))
        assert np.isnan(coverage(edgeless, frame([0, 1, 1]), **options))


EDGES = pd.DataFrame({"src": [10, 20], "dst": [20, 30]})


@pytest.mark.parametrize(
    ("partition", "error", "words"),
    [
        (frame([0, 0], [10, 30]), ValueError, r"lacks 1 vert.*20"),
        (frame([0, 0, 1, 1], [10, 20, 30, 30]), ValueError, "several rows.*30"),
        (frame([0, 0, 1, 1], [10, 20, 30, 40]), ValueError, "partition.*40"),
        (frame([0, 0, None], [10, 20, 30]), ValueError, "partition holds a null"),
        (pd.DataFrame({"vertex": [10, 20, 30]}), ValueError, "no column 'partition'"),
        (pd.DataFrame({"node": [1], "partition": [1]}), ValueError, "no column 'vertex'"),
        ([0, 0, 1], TypeError, "partition must be a frame.*list"),
    ],
)
def test_a_partition_that_is_none_is_refused(partition, error, words):
    with pytest.raises(error, match=words):
        modularity(EDGES, partition)
    with pytest.raises(error, match=words):
        coverage(EDGES, partition)


@pytest.mark.parametrize("resolution", [-1, float("nan"), float("inf")])
def test_resolution_out_of_range_is_refused(resolution):
    with pytest.raises(ValueError, match="resolution"):
        modularity(EDGES, frame([0, 0, 1], [10, 20, 30]), resolution=resolution)


@pytest.mark.parametrize("name", LABELLINGS)
def test_agreement_is_that_of_scikit_learn(name):
    a, b = LABELLINGS[name]
    if name == "far apart":  # scikit-learn warns about floats
        a, b = [0, 1, 1, 2], [0, 0, 1, 1]
    for x, y in ((a, b), (b, a)):
        assert nmi(x, y) == pytest.approx(normalized_mutual_info_score(x, y), abs=1e-14)
        assert ari(x, y) == pytest.approx(adjusted_rand_score(x, y), abs=1e-14)
    x, y = LABELLINGS[name]
    assert (nmi(x, y), ari(x, y)) == (nmi(a, b), ari(a, b))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1))
def test_agreement_is_that_of_scikit_learn_on_any_labels(pairs):
    a, b = zip(*pairs, strict=True)
    assert nmi(a, b) == pytest.approx(normalized_mutual_info_score(a, b), abs=1e-12)
    assert ari(a, b) == pytest.approx(adjusted_rand_score(a, b), abs=1e-12)
    assert nmi(a, a) == 1
    assert ari(a, a) == 1
    assert nmi(a, b) == nmi(b, a)
    assert ari(a, b) == ari(b, a)


def test_frames_are_joined_on_the_vertex():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 5, (2, 50))
    ids = [f"v{i}" for i in range(50)]
    left, right = frame(a, ids), frame(b, ids).sample(frac=1, random_state=0)
    assert nmi(left, right) == nmi(a, b)
    assert ari(left, right) == ari(a, b)


def test_no_labels_agree():
    assert nmi([], []) == 1
    assert ari([], []) == 1


@pytest.mark.parametrize("measure", [nmi, ari])
def test_agreement_refuses_what_cannot_be_compared(measure):
    a = frame([0, 1, 1], [1, 2, 3])
    for other, error, words in (
        (frame([0, 1], [1, 2]), ValueError, "b lacks 1 vertices that a has, among them 3"),
        (frame([0, 1, 1, 0], [1, 2, 3, 4]), ValueError, "a lacks 1 vertices that b has.* 4"),
        (frame([0, 1, 1, 1], [1, 2, 3, 3]), ValueError, "b has several rows.* 3; .*cover_f1"),
        (frame([0, 1, None], [1, 2, 3]), ValueError, "b holds a null label"),
        (a.rename(columns={"vertex": "0_vertex"}), ValueError, "name their vertices differently"),
        ([0, 1, 1], TypeError, "both be frames"),
    ):
        with pytest.raises(error, match=words):
            measure(a, other)
    with pytest.raises(ValueError, match="3 and 2 labels"):
        measure([0, 1, 1], [0, 1])
    with pytest.raises(ValueError, match="one dimension"):
        measure([[0, 1]], [[0, 1]])
    with pytest.raises(ValueError, match="a holds a null"):
        measure([0, None], [0, 1])


def naive_cover_f1(a, b):
    """Average of best matches, on sets."""

    def f1(x, y):
        return 2 * len(x & y) / (len(x) + len(y))

    def one_way(xs, ys):
        return sum(max(f1(x, y) for y in ys) for x in xs) / len(xs)

    return (one_way(a, b) + one_way(b, a)) / 2


def cover(sets):
    rows = [(vertex, i) for i, members in enumerate(sets) for vertex in members]
    return pd.DataFrame(rows, columns=["vertex", "partition"])


covers = st.lists(st.sets(st.integers(0, 8), min_size=1), min_size=1, max_size=5)


@settings(max_examples=30, deadline=None)
@given(covers, covers)
def test_cover_f1_is_the_average_best_match(a, b):
    assert cover_f1(cover(a), cover(b)) == pytest.approx(naive_cover_f1(a, b))
    assert cover_f1(cover(a), cover(b)) == cover_f1(cover(b), cover(a))
    assert cover_f1(cover(a), cover(a)) == 1


@pytest.mark.parametrize("end", [{}, {"directed": True}])
def test_communities_may_be_ids_of_several_columns(end):
    edges = pd.DataFrame({
        "a": [1, 2, 1, 5, 6, 5], "b": ["x"] * 6, "c": [2, 3, 3, 6, 7, 7], "d": ["x"] * 5 + ["y"],
    })  # fmt: skip
    ends = {"source": ["a", "b"], "destination": ["c", "d"], **end}
    found = label_propagation(edges, renumber=False, device="cpu", **ends)
    numbers = label_propagation(edges, device="cpu", **ends)
    assert {"0_partition", "1_partition"} < set(found.columns)
    for measure in (modularity, coverage, cpm):
        assert measure(edges, found, **ends) == measure(edges, numbers, **ends)
    small = contract(edges, found, **ends)
    names = found[["0_partition", "1_partition"]].drop_duplicates().itertuples(index=False)
    assert list(small.external().itertuples(index=False, name=None)) == sorted(map(tuple, names))
    assert list(label_propagation(small)) == ["0_vertex", "1_vertex", "partition"]
    assert nmi(found, numbers) == nmi(numbers, found) == pytest.approx(1)
    assert cover_f1(found, numbers) == 1
    with pytest.raises(ValueError, match="partition holds a null label"):
        modularity(edges, found.assign(**{"1_partition": None}), **ends)


def test_cpm_beyond_float64_is_refused():
    edges = pd.DataFrame({"src": [0, 1, 2], "dst": [1, 2, 0], "w": 1e308})
    for how in ({"weight": "w"}, {"resolution": 1e308}):
        with pytest.raises(ValueError, match="beyond float64; divide the weights"):
            cpm(edges, [{0, 1, 2}], **how)


@pytest.mark.parametrize("device", ["cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def test_heavy_edges_elsewhere_do_not_hide_light_communities(device):
    ends = {"src": [0, 1, 3], "dst": [1, 2, 4]}
    found = [{0, 1, 2}, {3}, {4}]
    options = {"weight": "w", "device": device}
    for light, heavy in ((0.1, 1e18), (5e-324, 1.7e308), (1, 2**61), (2**61, 2**62)):
        edges = pd.DataFrame({**ends, "w": [light, light, heavy]})
        assert cpm(edges, found, resolution=0, **options) == 2 * light
        assert coverage(edges, found, **options) == 2 * light / (heavy + 2 * light)
    edges = pd.DataFrame({**ends, "w": [0.1, 0.1, 1e18]})
    assert cpm(edges, found, resolution=0.05, **options) == 0.05
    assert cpm(edges, found, resolution=0.05, directed=True, **options) == pytest.approx(-0.1)
    loop = pd.DataFrame({"src": [0, 1, 3, 2], "dst": [1, 2, 4, 2], "w": [0.1, 0.1, 1e18, 0.1]})
    assert cpm(loop, found, resolution=0, **options) == pytest.approx(0.3, rel=1e-15)


def test_cpm_is_refused_only_if_its_value_is_beyond_float64():
    edges = pd.DataFrame(
        {"src": [0] * 5, "dst": [1, 2, 3, 4, 5], "w": [1.7e308, 5e-324, 1, 1e-300, 1e300]}
    )
    assert cpm(edges, [{0, 1, 2}, {3, 4, 5}], weight="w") == 1.7e308


def test_cover_f1_counts_a_membership_once_and_refuses_no_cover():
    a = cover([{0, 1}, {1, 2}])
    assert cover_f1(pd.concat([a, a]), a) == 1
    with pytest.raises(ValueError, match=r"^a, b: b is an empty cover$"):
        cover_f1(a, a[:0])
    with pytest.raises(TypeError, match="a must be a frame"):
        cover_f1([0, 1], a)


def test_arguments_are_left_alone():
    edges, labels = EDGES.copy(), frame([0, 0, 1], [10, 20, 30])
    before = labels.copy()
    modularity(edges, labels)
    nmi(labels, labels)
    cover_f1(labels, labels)
    pd.testing.assert_frame_equal(edges, EDGES)
    pd.testing.assert_frame_equal(labels, before)


@pytest.mark.gpu
def test_gpu_gives_the_same_bits():
    cudf = pytest.importorskip("cudf")
    for directed, weighted in itertools.product([False, True], repeat=2):
        graph, labels = graph_of(500, 5, directed=directed, weighted=weighted, seed=6)
        edges, options = edges_of(graph, weighted)
        ours, theirs = frame(labels), frame(labels[::-1])
        on_gpu, their_gpu = cudf.from_pandas(ours), cudf.from_pandas(theirs)
        for measure in (modularity, coverage):
            expected = measure(edges, ours, device="cpu", **options)
            assert measure(edges, ours, device="gpu", **options) == expected
            assert measure(cudf.from_pandas(edges), on_gpu, device="gpu", **options) == expected
        for measure in (nmi, ari, cover_f1):
            assert measure(on_gpu, their_gpu) == measure(ours, theirs)
            assert measure(on_gpu, theirs) == measure(ours, theirs)
    cupy = pytest.importorskip("cupy")
    a, b = np.random.default_rng(0).integers(0, 5, (2, 50))
    assert nmi(cupy.asarray(a), cupy.asarray(b)) == nmi(a, b)
    assert nmi(cupy.asarray(a), b) == nmi(a, b)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.int64, int])
def test_modularity_is_a_float_of_64_bits_whatever_the_resolution_is(kind):
    edges = pd.DataFrame({"src": [0, 0, 1, 3, 3, 4, 2], "dst": [1, 2, 2, 4, 5, 5, 3]})
    for resolution in (1, 60_000):
        found = modularity(edges, [{0, 1, 2}, {3, 4, 5}], resolution=kind(resolution))
        assert type(found) is float
        assert found == modularity(edges, [{0, 1, 2}, {3, 4, 5}], resolution=float(resolution))
