"""The ordering of layered label propagation: a twin, its properties, and what it saves."""

import graphs
import numpy as np
import pandas as pd
import pytest
from cases import exhaustive
from hypothesis import given
from hypothesis import strategies as st

from glp_rapids import as_graph, layered_label_propagation
from glp_rapids.bench import subjects
from glp_rapids.common.segments import segment_ids
from glp_rapids.device import to_device, to_host
from glp_rapids.graph import vertex_order
from glp_rapids.graph.rows import CSR
from glp_rapids.graph.sort_cpu import merged_entries
from glp_rapids.propagation.options import Options
from glp_rapids.propagation.run import run
from glp_rapids.propagation.variants.layered import ORDERING_GAMMAS, Layered

FEW = {"gammas": [1, 0.125, 0], "max_iter": 10}


# ---------------------------------------------------------------- the twin


def twin_order(degrees, layers):
    """Order the vertices by degree, then layer by layer: clusters by the vertex of their label."""
    order = sorted(range(len(degrees)), key=lambda v: (-degrees[v], v))
    for labels in layers:
        members = {}
        for v in order:
            members.setdefault(labels[v], []).append(v)
        order = [v for leader in order for v in members.get(leader, [])]
    return order


def assert_is_twin(edges, device, direction="both", **options):
    graph = as_graph(**edges, device=device)
    options = {**options, "direction": direction}
    result = layered_label_propagation(graph, order=True, device=device, **options)
    gammas = sorted(options.pop("gammas", ORDERING_GAMMAS), reverse=True)
    runs = [run(graph, Layered(gamma), Options(**options, merges=False)) for gamma in gammas]
    labels = [to_host(outcome.labels).tolist() for outcome in runs]
    order = twin_order(to_host(graph.rows(direction).degree).tolist(), labels)
    position = result["position"].to_numpy()
    assert position[order].tolist() == list(range(graph.number_of_vertices))
    assert list(result.columns) == [*graph.vertices.names(), "position"]
    assert position.dtype == graph.indices.dtype
    pd.testing.assert_frame_equal(result.iloc[:, :-1], graph.frame({}))
    assert [layer["gamma"] for layer in result.attrs["glp"]["layers"]] == gammas


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_ordering_is_its_twin(name, device):
    assert_is_twin(graphs.GRAPHS[name](), device, **FEW)


@pytest.mark.parametrize("direction", ["in", "out", "both"])
def test_ordering_follows_the_direction(direction, device):
    assert_is_twin(graphs.GRAPHS["directed weighted"](), device, direction, **FEW)


def test_default_layers(device):
    assert_is_twin(graphs.GRAPHS["power law"](), device)


@given(
    edges=graphs.edge_frames(),
    gammas=st.lists(st.sampled_from([0, 0.01, 0.5, 1, 7]), max_size=4, unique=True),
    seed=st.integers(0, 2**32 - 1),
)
def test_ordering_is_its_twin_on_any_graph(device, edges, gammas, seed):
    assert_is_twin(edges, device, gammas=gammas, seed=seed, max_iter=5)


@given(
    st.integers(1, 30).flatmap(
        lambda n: st.tuples(
            st.lists(st.integers(0, 9), min_size=n, max_size=n),
            st.lists(st.lists(st.integers(0, n - 1), min_size=n, max_size=n), max_size=4),
        )
    )
)
def test_layers_of_any_labels(device, drawn):
    degrees, layers = drawn
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    rows = CSR(to_device(indptr, device), to_device(np.empty(0, np.int32), device), None)
    order = vertex_order.by_degree(rows)
    for labels in layers:
        order = vertex_order.with_layer(order, to_device(np.array(labels, np.int32), device))
    expected = twin_order(degrees, layers)
    assert to_host(order).tolist() == expected
    place = to_host(vertex_order.positions(order, np.int64))
    assert place.dtype == np.int64
    assert place[expected].tolist() == list(range(len(degrees)))


# ---------------------------------------------------------------- properties


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_every_position_once(name, device):
    result = layered_label_propagation(**graphs.GRAPHS[name](), order=True, device=device)
    assert sorted(result["position"].tolist()) == list(range(len(result)))


def test_ids_come_back_as_they_went_in(device):
    numbers = graphs.edges(graphs.two_cliques())
    named = graphs.GRAPHS["strings"]()  # the same graph, its names in the order of the numbers
    result = layered_label_propagation(**named, order=True, device=device)
    expected = layered_label_propagation(**numbers, order=True, device=device)
    assert result["vertex"].tolist() == [f"acc{i:02d}" for i in range(10)]
    assert result["position"].tolist() == expected["position"].tolist()


def test_neither_rows_nor_layers_need_an_order(device):
    edges = graphs.GRAPHS["power law"]()
    frame = edges["graph"]
    expected = layered_label_propagation(frame, order=True, device=device, gammas=[2, 0.25, 0])
    mixed = frame.sample(frac=1, random_state=4).rename(columns={"src": "dst", "dst": "src"})
    before = mixed.copy()
    result = layered_label_propagation(mixed, order=True, device=device, gammas=[0.25, 0, 2])
    pd.testing.assert_frame_equal(result, expected)
    pd.testing.assert_frame_equal(mixed, before)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["power law", "directed weighted", "uneven weights", "strings"])
def test_a_gpu_gives_the_order_of_a_cpu(name):
    results = [
        layered_label_propagation(**graphs.GRAPHS[name](), order=True, device=device)
        for device in ("cpu", "gpu")
    ]
    pd.testing.assert_frame_equal(*results)


def test_shuffled_cliques_lie_together(device):
    cliques, size = 40, 9
    ids = np.random.default_rng(5).permutation(cliques * size)
    members = ids.reshape(cliques, size)
    pairs = [pair for clique in members.tolist() for pair in graphs.clique(clique)]
    pairs += list(zip(members[:-1, 0].tolist(), members[1:, 1].tolist(), strict=True))
    result = layered_label_propagation(**graphs.edges(pairs), order=True, device=device)
    place = result["position"].to_numpy()[members]
    assert (np.ptp(place, axis=1) == size - 1).all()


def test_no_layers_leave_the_order_of_degrees(device):
    star = graphs.edges([(7, i) for i in range(7)])
    result = layered_label_propagation(**star, gammas=[], order=True, device=device)
    assert result["position"].tolist() == [1, 2, 3, 4, 5, 6, 7, 0]


# ---------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"order": "llp"}, TypeError, "order must be True or False, not 'llp'"),
        ({"order": 1}, TypeError, "order must be True or False, not 1"),
        ({"order": True, "renumber": False}, ValueError, "renumber=False has no meaning with"),
        ({"order": True, "gammas": [-1]}, ValueError, "gammas must be finite and at least 0"),
        ({"order": True, "gammas": None}, TypeError, "gammas must be a sequence of numbers"),
        ({"order": True, "sweeps": 3}, TypeError, "unknown option 'sweeps'"),
    ],
)
def test_bad_options(options, error, words):
    with pytest.raises(error, match=words):
        layered_label_propagation(graphs.GRAPHS["path"]()["graph"], **options)


# ---------------------------------------------------------------- what it is good for


def bits_per_entry(indptr, indices, min_interval=4):
    """Size an entry of plain CGR: degree, intervals and residual gaps of each list in zeta_3."""
    indices = indices.astype(np.int64)
    degree = np.diff(indptr)
    row = np.repeat(np.arange(degree.size), degree)
    starts = np.ones(indices.size, dtype=bool)
    starts[1:] = (np.diff(indices) != 1) | (np.diff(row) != 0)
    first = np.flatnonzero(starts)
    length = np.diff(np.append(first, indices.size))
    interval = length >= min_interval
    residual = ~np.repeat(interval, length)
    intervals = np.bincount(row[first[interval]], minlength=degree.size)
    size = zeta3_bits(degree) + zeta3_bits(intervals[degree > 0])
    size += zeta3_bits(length[interval] - min_interval)
    size += gap_bits(row[first[interval]], indices[first[interval]], length[interval] + 1)
    size += gap_bits(row[residual], indices[residual], np.ones(residual.sum(), dtype=np.int64))
    return size / indices.size


def gap_bits(row, value, width):
    """Size the gaps of sorted values in each row, the first one relative to the row itself."""
    begins = np.ones(row.size, dtype=bool)
    begins[1:] = row[1:] != row[:-1]
    ahead = value[begins] - row[begins]
    folded = np.where(ahead >= 0, 2 * ahead, -2 * ahead - 1)
    return zeta3_bits(folded) + zeta3_bits((value[1:] - value[:-1] - width[:-1])[~begins[1:]])


def zeta3_bits(values):
    """Size numbers from 0 in the zeta code with k = 3 (Boldi, Vigna 2004)."""
    block = (np.frexp(values + 1)[1] - 1) // 3  # values + 1 lies in [8**block, 8**(block + 1))
    short = values + 1 < 2 * (1 << 3 * block)
    return int((4 * block + 4 - short).sum())


def permuted(graph, place):
    place = np.asarray(place, dtype=graph.indices.dtype)
    rows = graph.row_indices()
    return merged_entries(place[rows], place[graph.indices], graph.number_of_vertices, False)


def test_the_size_of_codes():
    assert [zeta3_bits(np.array([x])) for x in (0, 1, 6, 7, 14, 15, 62, 63)] == [
        3, 4, 4, 7, 7, 8, 8, 11,
    ]  # fmt: skip
    indptr, indices = np.array([0, 6, 6]), np.array([1, 2, 3, 4, 9, 11])
    # degree 6 and 0, one interval from 0 + 1 of length 4 + 0, residuals 0 + 9, then gap 1
    sizes = [zeta3_bits(np.array([x])) for x in (6, 0, 1, 2, 0, 18, 1)]
    assert bits_per_entry(indptr, indices) * 6 == pytest.approx(sum(sizes))


@pytest.mark.parametrize(
    ("name", "shuffled_size", "factor"),
    [
        ("web-5000", 11, 1.02),
        *exhaustive(("cnr-2000", 16.5, 1.08), ("uk-2007-100k", 12.5, 0.98)),
    ],
)
def test_a_shuffled_graph_comes_back(data, device, name, shuffled_size, factor):
    graph = subjects.load(name, "cpu")
    published = bits_per_entry(graph.indptr, graph.indices)
    shuffle = np.random.default_rng(0).permutation(graph.number_of_vertices)
    indptr, indices = permuted(graph, shuffle)
    assert bits_per_entry(indptr, indices) > shuffled_size
    shuffled = as_graph((segment_ids(indptr, indices.dtype), indices), device="cpu")
    result = layered_label_propagation(shuffled, order=True, device=device)
    # vertices without an edge take no part, and take no bits but those of their degree
    place = np.arange(graph.number_of_vertices)
    named = result["vertex"].to_numpy()
    place[named] = np.sort(named)[result["position"].to_numpy()]
    compressed = bits_per_entry(*permuted(graph, place[shuffle]))
    assert compressed <= factor * published
