"""Sparse matrices as graphs: those that are a CSR already are taken as they are, uncopied."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import GRAPHS, power_law_pairs, random_pairs
from hypothesis import given
from hypothesis import strategies as st

from glp_rapids import as_graph
from glp_rapids.graph import build, check_rows
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.symmetrize import symmetrized
from glp_rapids.ingest import matrices
from glp_rapids.jit import interrupts


# under 64-bit starts SciPy would widen the indices
def csr_of(graph):
    data = np.ones(graph.number_of_edges, bool) if graph.weights is None else graph.weights
    arrays = data, graph.indices, graph.indptr.astype(np.int32)
    return sp.csr_array(arrays, shape=(graph.number_of_vertices,) * 2)


DTYPES = ("bool", "int8", "int32", "int64", "uint64", "float32", "float64")
FORMATS = ("csr", "csc", "coo", "lil", "bsr")


def built(graph, **options):
    return as_graph(graph, device="cpu", **options)


def same(one, other):
    assert (one.directed, one.number_of_vertices) == (other.directed, other.number_of_vertices)
    assert one.external().equals(other.external())
    assert one.vertices.columns[0].dtype == other.vertices.columns[0].dtype
    for name in ("indptr", "indices", "weights"):
        mine, its = getattr(one, name), getattr(other, name)
        assert (mine is None) == (its is None)
        if mine is not None:
            assert mine.dtype == its.dtype
            assert mine.tobytes() == its.tobytes()


def by_edges(matrix, directed=False, multigraph="merge"):
    """What a matrix means: an edge an entry; if they are not symmetric, both ways."""
    entries = matrix.tocoo()
    pairs = tuple(end.astype(np.int64) for end in (entries.row, entries.col))
    values = () if entries.data.dtype == bool else (entries.data,)
    options = {"vertices": np.arange(matrix.shape[0]), "multigraph": multigraph}
    graph = built((*pairs, *values), directed=True, **options)
    if directed:
        return graph
    rows = np.repeat(np.arange(graph.number_of_vertices), graph.degree)
    weights = graph.indices if graph.weights is None else graph.weights
    known = dict(zip(zip(rows, graph.indices, strict=True), weights, strict=True))
    if graph.weights is None:
        known = dict.fromkeys(known, 1)
    if all(known.get((v, u)) == weight for (u, v), weight in known.items()):
        return Graph(graph.indptr, graph.indices, graph.weights, False, graph.vertices)
    return built((*pairs, *values), **options)


@st.composite
def sparse_matrices(draw):
    """Small matrices of any format and dtype; rows may be unsorted and hold an entry twice."""
    n = draw(st.integers(1, 7))
    numbers = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(numbers, numbers), max_size=24))
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    size = len(pairs)
    values = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))  # zeros stay
    if draw(st.booleans()):
        pairs, values = pairs + [pair[::-1] for pair in pairs], values * 2
    if draw(st.booleans()):  # without duplicates
        kept = dict(zip(pairs, values, strict=True))
        pairs, values = list(kept), list(kept.values())
    by = draw(st.sampled_from((0, 1)))
    if draw(st.booleans()):
        both = sorted(
            zip(pairs, values, strict=True), key=lambda one: one[0][by] * n + one[0][1 - by]
        )
    else:
        both = sorted(zip(pairs, values, strict=True), key=lambda one: one[0][by])
    ends = np.array([pair for pair, _ in both], dtype=np.int32).reshape(-1, 2)
    data = np.array([value for _, value in both]).astype(dtype)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(ends[:, by], minlength=n))])
    make = (sp.csr_array, sp.csc_array)[by]
    indptr = indptr.astype(draw(st.sampled_from((np.int32, np.int64))))
    matrix = make((data, ends[:, 1 - by], indptr), shape=(n, n))
    others = ("csr", "csc", "coo") if draw(st.booleans()) else FORMATS
    if draw(st.booleans()):
        matrix = matrix.asformat(draw(st.sampled_from(others)))
    return matrix


@given(sparse_matrices(), st.booleans(), st.sampled_from(["merge", "keep"]))
def test_any_matrix_is_its_edges(matrix, directed, multigraph):
    arrays = {
        name: value.copy() for name, value in vars(matrix).items() if isinstance(value, np.ndarray)
    }
    options = {"directed": directed, "multigraph": multigraph}
    same(built(matrix, **options), by_edges(matrix, **options))
    for name, array in arrays.items():
        assert np.array_equal(getattr(matrix, name), array)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_matrix_of_a_graph_is_that_graph(name):
    graph = built(**GRAPHS[name]())
    n = graph.number_of_vertices
    matrix = csr_of(graph)
    for made in (matrix, matrix.tocsc(), sp.csr_matrix(matrix), matrix.tocoo()):
        same(built(made, directed=graph.directed), by_edges(made, graph.directed))
    taken = built(matrix, directed=graph.directed)
    assert taken.indices.tobytes() == graph.indices.tobytes()
    if n and not graph.directed:  # one half of it is all of it
        upper = sp.triu(matrix).tocsr()
        same(built(upper), by_edges(upper))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(0, 0), (1, 1), (5, 5)])
def test_empty_matrices(shape, dtype):
    for make in (sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix):
        for directed in (False, True):
            matrix = make(shape, dtype=dtype)
            same(built(matrix, directed=directed), by_edges(matrix, directed))


def symmetric(n, m, seed=3):
    pairs = np.array(random_pairs(n, m, seed))
    graph = built((pairs[:, 0], pairs[:, 1]))
    return csr_of(graph).astype(float)


def test_what_is_a_csr_already_is_shared():
    matrix = symmetric(50, 300)
    for directed in (False, True):
        graph = built(matrix, directed=directed)
        assert np.shares_memory(graph.indices, matrix.indices)
        assert np.shares_memory(graph.weights, matrix.data)
    for dtype, shared in (("uint64", True), ("float32", True), ("int8", False), ("int64", True)):
        other = matrix.astype(dtype)
        assert np.shares_memory(built(other).weights, other.data) == shared
    wide = matrix.copy()
    wide.indptr = wide.indptr.astype(np.int64)
    assert np.shares_memory(built(wide).indptr, wide.indptr)
    assert np.shares_memory(built(matrix.tocsc()).indices, matrix.indices) is False
    columns = matrix.tocsc()
    assert np.shares_memory(built(columns).indices, columns.indices)


def test_indices_wider_than_needed_are_narrowed():
    matrix = symmetric(50, 300)
    expected = built(matrix)
    matrix.indices, matrix.indptr = matrix.indices.astype(np.int64), matrix.indptr.astype(np.int64)
    same(built(matrix), expected)


def test_arrays_that_are_longer_than_the_entries():
    matrix = symmetric(50, 300)
    expected = built(matrix)
    for name in ("indices", "data"):
        array = getattr(matrix, name)
        setattr(matrix, name, np.concatenate([array, np.full(9, -1, array.dtype)]))
    same(built(matrix), expected)


def test_arrays_with_gaps_of_other_byte_order_or_read_only():
    matrix = symmetric(50, 300)
    expected = built(matrix)
    changes = (
        lambda array: array.astype(array.dtype.newbyteorder()),
        lambda array: np.repeat(array, 2)[::2],
        lambda array: np.frombuffer(array.tobytes(), array.dtype),
    )
    for change in changes:
        other = matrix.copy()
        for name in ("indptr", "indices", "data"):
            setattr(other, name, change(getattr(other, name)))
        same(built(other), expected)


def _with(name, change):
    def changed():
        matrix = sp.csr_array(np.ones((3, 3)))
        array = getattr(matrix, name)
        setattr(matrix, name, change(array))
        return matrix

    return changed


def _put(place, value):
    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


BAD = {
    "too few starts": (_with("indptr", lambda a: a[:-1]), r"of a matrix of 3 rows must be 4"),
    "starts with gaps": (_with("indptr", lambda a: a / 1), r"must be 4 integers.*float64"),
    "first start": (_with("indptr", _put(0, 1)), r"must begin with 0 .* is 1 and 3 at row 0"),
    "negative start": (_with("indptr", _put(0, -1)), r"must begin with 0 .* is -1 and 3 at row 0"),
    "falls": (_with("indptr", _put(1, 8)), r"never fall, but is 8 and 6 at row 1"),
    "ends too late": (_with("indptr", _put(3, 99)), r"99 entries by its indptr, but its indices"),
    "too few indices": (_with("indices", lambda a: a[:-1]), r"its indices have the shape \(8,\)"),
    "too few values": (_with("data", lambda a: a[:-1]), r"its data have the shape \(8,\)"),
    "two dimensions": (_with("indices", lambda a: a.reshape(3, 3)), r"shape \(3, 3\)"),
    "real indices": (_with("indices", lambda a: a / 1), r"indices .* integers, not float64"),
    "index too large": (_with("indices", _put(4, 3)), r"indices .* hold 3, but it has 3"),
    "index negative": (_with("indices", _put(4, -1)), r"indices of the matrix hold -1"),
    "index huge": (
        _with("indices", lambda a: _put(8, 2**40)(a.astype(np.int64))), r"hold 1099511627776"
    ),
    "negative value": (_with("data", _put(5, -2)), r"values .* holds 1 negative .* row 5"),
    "infinite": (_with("data", _put(5, np.inf)), r"values of the matrix holds 1 infinite"),
    "NaN": (_with("data", _put(5, np.nan)), r"values of the matrix holds 1 null"),
    "beyond int64": (
        _with("data", lambda a: _put(5, 2**63)(a.astype(np.uint64))), r"1 too large .* at row 5"
    ),
}  # fmt: skip


@pytest.mark.parametrize(("make", "message"), BAD.values(), ids=BAD)
def test_bad_matrices(make, message):
    for directed in (False, True):
        with pytest.raises(ValueError, match=message):
            built(make(), directed=directed)
        matrix = make()
        columns = sp.csc_array(matrix.shape)
        columns.indptr, columns.indices = matrix.indptr, matrix.indices
        columns.data = matrix.data
        with pytest.raises(ValueError, match=message):
            built(columns, directed=directed)


def test_values_that_are_no_numbers():
    with pytest.raises(TypeError, match="values of the matrix holds complex128"):
        built(sp.csr_array(np.ones((3, 3), complex)))


def peak_of(call):
    call()  # compiled by now
    tracemalloc.start()
    try:
        made = call()
        return made, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", ["bool", "float64", "uint64"])
def test_a_csr_takes_memory_for_its_vertices_only(dtype):
    n = 4000
    matrix = symmetric(n, 300_000).astype(dtype)
    for directed in (False, True):
        graph, peak = peak_of(
            lambda matrix=matrix, directed=directed: built(matrix, directed=directed)
        )
        assert graph.indices.nbytes > 2_000_000
        assert peak < 40 * n + 100_000


@pytest.mark.parametrize("dtype", ["bool", "float32", "int64"])
def test_what_is_not_symmetric_takes_little_more_than_the_result(dtype):
    n = 4000
    matrix = sp.triu(symmetric(n, 300_000)).tocsr().astype(dtype)
    graph, peak = peak_of(lambda: built(matrix))
    kept = sum(a.nbytes for a in (graph.indptr, graph.indices, graph.weights) if a is not None)
    assert peak < 1.1 * kept + 200_000


@pytest.mark.parametrize("at_once", [1, 50, 1 << 24])
def test_symmetrized_rows_are_the_pairs_both_ways(monkeypatch, at_once):
    monkeypatch.setattr(interrupts, "A_CALL", at_once)
    rng = np.random.default_rng(5)
    for pairs in (
        random_pairs(40, 300, 1),
        power_law_pairs(200, 900, 2),
        random_pairs(3, 9, 3),
        [],
    ):
        ends = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        n = int(ends.max(initial=0)) + 2
        for weights in (None, *(rng.integers(0, 99, ends.shape[1]).astype(t) for t in "qfd")):
            options = {}
            given = build.csr_of_pairs(*ends, weights, n, symmetric=False, **options)
            rows = np.repeat(np.arange(n), np.diff(given[0]))
            expected = build.csr_of_pairs(rows, given[1], given[2], n, symmetric=True, **options)
            copies = [None if array is None else array.copy() for array in given]
            for found in (symmetrized(*given), symmetrized(*copies, in_place=True)):
                for one, other in zip(found, expected, strict=True):
                    assert (one is None) == (other is None)
                    if one is not None:
                        assert one.dtype == other.dtype
                        assert one.tolist() == other.tolist()
            assert check_rows.is_symmetric(*expected)
            half = build.csr_of_pairs(
                *np.sort(ends, axis=0), weights, n, symmetric=False, **options
            )
            loops = bool((np.repeat(np.arange(n), np.diff(half[0])) == half[1]).all())
            assert check_rows.is_symmetric(*half) == loops


@pytest.mark.parametrize(("dtype", "most"), [("int64", 2**63 - 1), ("f4", None), ("f8", None)])
def test_sums_of_both_directions_that_are_too_large(dtype, most):
    most = np.finfo(dtype).max if most is None else most
    values = np.array([most, most]).astype(dtype)
    one, other = values[0] - values[0] // 2, values[0] // 2

    def matrix(a, b):
        made = sp.csr_array((3, 3))
        made.indptr, made.indices = np.array([0, 1, 2, 2]), np.array([1, 0], np.int32)
        made.data = np.array([a, b], dtype=dtype)
        return made

    if dtype == "int64":
        assert built(matrix(one, other)).weights.tolist() == [most, most]
    with pytest.raises(ValueError, match=r"weights of the duplicates of an edge add up to more"):
        built(matrix(values[0], other))


def test_one_entry_that_differs_is_noticed():
    matrix = symmetric(60, 500)
    graph = built(matrix)
    arrays = graph.indptr, graph.indices
    weights = np.ones(graph.number_of_edges)
    assert check_rows.is_symmetric(*arrays, weights)
    rows = np.repeat(np.arange(60), graph.degree)
    for at in np.flatnonzero(rows != graph.indices)[::17]:
        changed = weights.copy()
        changed[at] = 2
        assert not check_rows.is_symmetric(*arrays, changed)
        kept = np.arange(rows.size) != at
        indptr = np.concatenate([[0], np.cumsum(np.bincount(rows[kept], minlength=60))])
        assert not check_rows.is_symmetric(indptr, graph.indices[kept], None)


def test_looking_through_values_by_parts(monkeypatch):
    monkeypatch.setattr(matrices, "AT_ONCE", 4)
    matrix = sp.csr_array(np.ones((3, 3)))
    same(built(matrix), by_edges(matrix))
    for place in range(9):
        matrix.data = _put(place, np.nan)(np.ones(9))
        with pytest.raises(ValueError, match="1 null"):
            built(matrix)
