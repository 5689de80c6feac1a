"""Sparse matrices as graphs: those that are a CSR already are taken as they are, uncopied."""

import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from graphs import GRAPHS, power_law_pairs, random_pairs
from hypothesis import given
from hypothesis import strategies as st
from matrix_graphs import built, by_edges, csr_of, same, symmetric

from glp_rapids import as_graph, compress
from glp_rapids.graph import build, check_rows
from glp_rapids.graph.graph import is_symmetric
from glp_rapids.graph.symmetrize import symmetrized
from glp_rapids.ingest import matrices, read
from glp_rapids.ingest.edges import Options
from glp_rapids.jit import interrupts

DTYPES = ("bool", "int8", "int32", "int64", "uint64", "float32", "float64")
FORMATS = ("csr", "csc", "coo", "lil", "bsr")


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
    if dtype.kind == "f":
        data[data == 3] = -0.0
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


@given(sparse_matrices(), st.booleans())
def test_what_a_matrix_holds_several_times_adds_up_whatever_becomes_of_duplicates(matrix, directed):
    """Only then may the least of both directions count, or of what is given as edges."""
    whole = matrix.tocoo().copy()
    if matrix.format == "bsr" and matrix.blocksize != (1, 1):  # zeros fill up its blocks
        whole.eliminate_zeros()
    whole.sum_duplicates()
    options = {"directed": directed, "multigraph": "min"}
    made = built(matrix, **options), by_edges(whole, **options)
    # of -0 and -0 SciPy's sum is -0, and 0 + 0 is 0
    same(*(one if one.weights is None else replace(one, weights=one.weights + 0) for one in made))


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
    columns = matrix.tocsc()
    assert np.shares_memory(built(columns).indices, columns.indices)
    assert not np.shares_memory(built(columns, directed=True).indices, columns.indices)


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_compressed_graph_shares_nothing_with_the_matrix(dtype):
    rng = np.random.default_rng(1)
    size = 300  # squared it is more than what a table of weights holds
    most = 2 ** (62 if np.dtype(dtype).itemsize > 4 else 8 * np.dtype(dtype).itemsize - 1)
    matrix = sp.csr_array(rng.integers(1, most, (size, size)).astype(dtype))
    for directed in (False, True):
        compressed = compress(matrix, directed=directed, device="cpu")
        before = compressed.to_graph()
        expected = None if before.weights is None else before.weights.tobytes()
        for name in ("data", "indices", "indptr"):
            for held in (compressed.weights, before.weights, before.indices, before.indptr):
                if isinstance(held, np.ndarray):
                    assert not np.shares_memory(held, getattr(matrix, name))
        matrix.data[:] = matrix.data[::-1].copy()
        after = compressed.to_graph().weights
        assert (None if after is None else after.tobytes()) == expected


def test_weights_that_the_library_made_are_not_copied_for_a_compressed_graph():
    ends = np.divmod(np.arange(300 * 300), 300)
    graph = built((*ends, np.arange(300 * 300) / 7), directed=True)
    assert compress(graph).weights is graph.weights


@pytest.mark.parametrize("n", [2, 40])
def test_the_rows_of_entries_have_a_type_that_holds_their_number(monkeypatch, n):
    monkeypatch.setattr(matrices, "index_dtype", lambda rows: np.int64 if rows > 9 else np.int32)
    matrix = sp.csr_array((n, n))
    matrix.indptr, matrix.data = np.full(n + 1, 2, np.int32), np.ones(2)
    matrix.indptr[0], matrix.indices = 0, np.array([1, 0], np.int32)  # do not ascend
    found = matrices.read(matrix, Options(None, None, None, True, None))
    assert found.source[0].dtype == matrices.index_dtype(n)
    same(built(matrix), by_edges(matrix))


def test_what_is_not_symmetric_is_not_asked_for_that_again(monkeypatch):
    upper = sp.triu(symmetric(50, 300)).tocsr()
    expected, asked = built(upper), []

    def counted(graph):
        asked.append(graph)
        return is_symmetric(graph)

    monkeypatch.setattr(read, "is_symmetric", counted)
    monkeypatch.setattr(read, "graph_of", lambda *_: None)  # as on a GPU
    same(built(upper), expected)
    assert not asked
    same(built(upper.tocoo()), expected)
    assert len(asked) == 1


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


@pytest.mark.parametrize("unused", [False, True])
def test_a_matrix_of_blocks_stays_as_it_is(unused):
    plain = sp.csr_array(symmetric(24, 60))
    matrix = plain.tobsr(blocksize=(2, 3))
    if unused:  # blocks behind the last
        matrix.indices = np.concatenate([matrix.indices, [99, -1]]).astype(np.int64)
        matrix.data = np.concatenate([matrix.data, np.full((2, 2, 3), np.nan)])
    before = {name: getattr(matrix, name) for name in ("data", "indices", "indptr")}
    copies = {name: array.copy() for name, array in before.items()}
    for directed in (False, True):
        same(built(matrix, directed=directed), by_edges(plain, directed))  # filling is no edge
    for name, array in before.items():
        assert getattr(matrix, name) is array
        assert np.array_equal(array, copies[name], equal_nan=name == "data")


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
        drawn = [rng.integers(0, 99, ends.shape[1]).astype(t) for t in "qfd"]
        for weights in (None, *drawn, np.full(ends.shape[1], -0.0), -0.0 * (drawn[2] < 50)):
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
                        assert one.tobytes() == other.tobytes()
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


@pytest.mark.parametrize("form", ["csr_array", "csc_array"])
def test_a_matrix_that_is_symmetric_but_for_rounding_is_told_of(form):
    matrix = np.array([[1, 0.9, 0.1], [0.9, 1, 0.1], [0.1, 0.1, 1]])
    make = getattr(sp, form)
    assert np.array_equal(as_graph(make(matrix), device="cpu").adjacency().toarray(), matrix)
    matrix[0, 1] = np.nextafter(0.9, 1)
    with pytest.warns(UserWarning, match=r"differs from its transpose by less than .*\(A \+"):
        graph = as_graph(make(matrix), device="cpu")
    assert graph.adjacency().toarray()[0, 2] == 0.2
    matrix[0, 1] = 0.8  # no rounding
    as_graph(make(matrix), device="cpu")
    matrix[0, 1] = 0  # no entry
    as_graph(make(matrix), device="cpu")
