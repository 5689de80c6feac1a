"""Made-up graphs: the promised shape, the same bits whatever the chunk and the device."""

import numpy as np
import pytest
from scipy import sparse

from glp_rapids import as_graph, label_propagation, modularity
from glp_rapids.datasets import kronecker, rmat, road_grid, social, synthetic, web_like
from glp_rapids.device import to_host

MAKERS = {
    "rmat": lambda **options: rmat(9, 8, **options),
    "rmat of one level": lambda **options: rmat(1, 100, **options),
    "kronecker": lambda **options: kronecker(9, 8, **options),
    "road_grid": lambda **options: road_grid(30, 50, **options),
    "a road": lambda **options: road_grid(1, 50, **options),
    "web_like": lambda **options: web_like(3_000, **options),
    "a page": lambda **options: web_like(1, **options),
    "social": lambda **options: social(3_000, **options),
    "a hermit": lambda **options: social(1, **options),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_edges_are_a_function_of_the_seed_alone(make, monkeypatch):
    source, destination = make(seed=5, device="cpu")
    assert source.dtype == destination.dtype == np.int32
    monkeypatch.setitem(synthetic.CHUNK, "cpu", 97)
    again = make(seed=5, device="cpu")
    np.testing.assert_array_equal(again[0], source)
    np.testing.assert_array_equal(again[1], destination)
    other = make(seed=6, device="cpu")
    if source.size > 100:
        assert not np.array_equal(other[0], source) or not np.array_equal(other[1], destination)


@pytest.mark.gpu
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_gpu_makes_the_same_bits(make):
    for on_gpu, on_cpu in zip(make(seed=7, device="gpu"), make(seed=7, device="cpu"), strict=True):
        assert on_gpu.dtype == on_cpu.dtype
        np.testing.assert_array_equal(to_host(on_gpu), on_cpu)


@pytest.mark.parametrize("make", [rmat, kronecker])
def test_recursive_graphs_have_their_size_and_hubs(make):
    source, destination = make(12, 8, seed=5, device="cpu")
    assert len(source) == len(destination) == 8 << 12
    assert min(source.min(), destination.min()) >= 0
    assert max(source.max(), destination.max()) < 1 << 12
    degrees = np.sort(np.bincount(source, minlength=1 << 12))
    assert degrees[-1] > 50 * 8
    assert degrees[: 1 << 10].sum() < 100  # and there are many with hardly an edge


def test_kronecker_is_rmat_renamed():
    named, renamed = rmat(10, 4, seed=3, device="cpu"), kronecker(10, 4, seed=3, device="cpu")
    for one, other in zip(named, renamed, strict=True):
        np.testing.assert_array_equal(synthetic.permute(one, 10, 3), other)
    assert np.bincount(named[0]).argmax() == 0
    assert np.bincount(renamed[0]).argmax() != 0


@pytest.mark.parametrize("bits", [1, 2, 3, 7, 16])
def test_renaming_is_one_to_one(bits):
    index = np.arange(1 << bits)
    for seed in range(3):
        assert np.array_equal(np.sort(synthetic.permute(index, bits, seed)), index)
    if bits > 3:
        renamed = synthetic.permute(index, bits, 0).astype(np.int64)
        assert abs(np.corrcoef(index, renamed)[0, 1]) < 0.5
        assert np.abs(np.diff(renamed)).mean() > len(index) / 6


def test_rmat_quadrants_have_their_shares():
    source, destination = rmat(1, 100_000, a=0.5, b=0.2, c=0.2, device="cpu")
    shares = np.bincount(2 * source + destination, minlength=4) / len(source)
    assert np.allclose(shares, [0.5, 0.2, 0.2, 0.1], atol=0.01)


def test_quadrants_of_different_levels_are_independent():
    source, destination = rmat(4, 20_000, a=0.25, b=0.25, c=0.25, device="cpu")
    cells = np.bincount(16 * source + destination, minlength=256)
    expected = len(source) / 256
    assert ((cells - expected) ** 2 / expected).sum() < 2 * 256


def test_a_whole_grid_and_one_with_holes():
    source, destination = road_grid(3, 4, removed=0, device="cpu")
    pairs = set(zip(source.tolist(), destination.tolist(), strict=True))
    right = {(4 * r + c, 4 * r + c + 1) for r in range(3) for c in range(3)}
    down = {(4 * r + c, 4 * r + c + 4) for r in range(2) for c in range(4)}
    assert pairs == right | down
    assert len(road_grid(3, 4, removed=1, device="cpu")[0]) == 0
    some, _ = road_grid(200, 300, removed=0.1, device="cpu")
    assert abs(len(some) / (200 * 299 + 199 * 300) - 0.9) < 0.005


@pytest.fixture(scope="module")
def crawl():
    source, destination = web_like(20_000, device="cpu")
    proper = source != destination
    ends = source[proper], destination[proper]
    return as_graph(ends, vertices=np.arange(20_000), device="cpu")


def test_a_crawl_has_hubs_and_locality(crawl):
    assert crawl.number_of_vertices == 20_000
    assert 14 < crawl.number_of_edges / 20_000 < 20
    assert 7 <= np.median(crawl.degree) <= 12
    assert crawl.degree.max() > 500
    row = np.repeat(np.arange(20_000), crawl.degree)
    gap = np.abs(row - crawl.indices)
    assert np.median(gap) < 50
    assert 0.005 < (gap > 2_000).mean() < 0.2


@pytest.mark.parametrize("options", [{}, {"explore": 0}])
def test_a_crawl_has_communities(crawl, options):
    found = label_propagation(crawl, device="cpu", **options)
    assert modularity(crawl, found) > 0.85
    assert found["partition"].value_counts().max() < 4_000


def test_edges_per_vertex_are_as_asked():
    few, many = (len(web_like(5_000, number, device="cpu")[0]) for number in (4, 16))
    assert 2.5 < many / few < 5


@pytest.fixture(scope="module")
def friends():
    """Friendships of 50,000 people as a matrix of zeros and ones."""
    source, destination = social(50_000, device="cpu")
    proper = source != destination
    source, destination = source[proper], destination[proper]
    entries = np.ones(2 * source.size, np.int32)
    rows, columns = np.append(source, destination), np.append(destination, source)
    matrix = sparse.csr_matrix((entries, (rows, columns)), shape=(50_000, 50_000))
    matrix.data[:] = 1
    return matrix


def test_friendships_have_the_shape_of_livejournal(friends):
    degree = np.diff(friends.indptr)
    assert 16 < degree.mean() < 20
    assert 6 <= np.median(degree) <= 11
    assert (degree == 0).mean() < 0.001
    assert 500 < degree.max() < 2_000
    corners = friends.multiply(friends @ friends).sum(axis=1).A1 / 2
    assert 40 < corners.sum() / 3 / 50_000 < 80
    several = degree > 1
    clustering = corners[several] / (degree[several] * (degree[several] - 1) / 2)
    assert 0.25 < clustering.mean() < 0.32


def test_friends_fall_into_circles(friends):
    degree = np.diff(friends.indptr)
    circles = []
    for person in np.flatnonzero((degree >= 20) & (degree < 40))[::40]:
        known = friends.indices[friends.indptr[person] : friends.indptr[person + 1]]
        _, part = sparse.csgraph.connected_components(friends[known][:, known], directed=False)
        circles.append(np.count_nonzero(np.bincount(part) >= 4))
    assert 1.4 < np.mean(circles) < 2.4
    assert np.mean(np.array(circles) >= 2) > 0.4


@pytest.mark.parametrize(
    ("make", "options"),
    [
        (rmat, {"scale": 0}),
        (rmat, {"scale": 41}),
        (rmat, {"scale": 4, "a": 0.9}),
        (kronecker, {"scale": 4, "edge_factor": 0}),
        (kronecker, {"scale": 4, "seed": -1}),
        (road_grid, {"rows": 0}),
        (road_grid, {"removed": 1.5}),
        (web_like, {"vertices": 0}),
        (web_like, {"edges_per_vertex": 0}),
        (social, {"people": 0}),
        (social, {"people": (1 << 31) + 1}),
        (social, {"seed": -1}),
    ],
)
def test_impossible_graphs_are_refused(make, options):
    with pytest.raises(ValueError, match="must"):
        make(**options)


def test_a_scale_that_is_no_integer_is_a_type_error():
    with pytest.raises(TypeError, match="scale must be an integer"):
        rmat(4.0)
