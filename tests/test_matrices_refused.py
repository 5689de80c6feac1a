"""Matrices whose arrays do not fit each other, or hold no numbers, are refused."""

import numpy as np
import pytest
import scipy.sparse as sp
from matrix_graphs import built, by_edges, same

from glp_rapids.ingest import matrices


def _with(name, change):
    def changed():
        matrix = sp.csr_array(np.ones((3, 3)))
        array = getattr(matrix, name)
        setattr(matrix, name, change(array))
        return matrix

    return changed


def _without_rows(start):
    matrix = sp.csr_array((0, 0))
    matrix.indptr = np.array([start])
    return matrix


def _put(place, value):
    def change(array):
        array = array.copy()
        array[place] = value
        return array

    return change


def _entries(**arrays):
    def changed():
        matrix = sp.coo_array(np.ones((3, 3)))
        row, column = (arrays.get(name, getattr(matrix, name)) for name in ("row", "col"))
        matrix.coords, matrix.data = (row, column), arrays.get("data", matrix.data)
        return matrix

    return changed


def _blocks(**arrays):
    def changed():
        matrix = sp.bsr_array(np.ones((4, 4)), blocksize=(2, 2))
        for name, array in arrays.items():
            setattr(matrix, name, array)
        return matrix

    return changed


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
    "negative value": (_with("data", _put(5, -2)), r"values .* hold 1 negative .* at row [12]"),
    "infinite": (_with("data", _put(5, np.inf)), r"values of the matrix hold 1 infinite"),
    "NaN": (_with("data", _put(5, np.nan)), r"values of the matrix hold 1 null"),
    "beyond int64": (
        _with("data", lambda a: _put(5, 2**63)(a.astype(np.uint64))), r"1 too large .* at row [12]"
    ),
    "no rows": (lambda: _without_rows(5), r"must begin with 0 .* is 5 at row 0; it is damaged"),
    "less than no rows": (lambda: _without_rows(-5), r"must begin with 0 .* is -5 at row 0"),
    "entries: too many values": (_entries(data=np.ones(99)), r"row of a matrix of 99 values .*dam"),
    "entries: too few values": (_entries(data=np.ones(8)), r"row .* 8 values .* shape \(9,\)"),
    "entries: too few flags": (_entries(data=np.ones(8, bool)), r"row .* 8 values .* \(9,\)"),
    "entries: too few rows": (_entries(row=np.zeros(8, int)), r"row .* 9 values .* \(8,\)"),
    "entries: too few columns": (_entries(col=np.zeros(8, int)), r"col .* 9 values .* \(8,\)"),
    "entries: real rows": (_entries(row=np.zeros(9)), r"row .* integers, not .* float64; it is da"),
    "entries: real columns": (_entries(col=np.zeros(9)), r"col .* integers, not .* float64"),
    "entries: row too large": (_entries(row=np.full(9, 3)), r"row of the matrix hold 3, but"),
    "entries: column negative": (_entries(col=np.full(9, -1)), r"col of the matrix hold -1"),
    "entries: two dimensions": (_entries(data=np.ones((3, 3))), r"data .* the shape \(3, 3\); it"),
    "entries: no dimension": (_entries(row=np.array(1)), r"row .* of shape \(\)"),
    "blocks: starts": (_blocks(indptr=np.array([0, 4])), r"matrix of 2 rows must be 3 .* damaged"),
    "blocks: ends": (_blocks(indptr=np.array([0, 2, 9])), r"9 entries .* indices .* damaged"),
    "blocks: falls": (_blocks(indptr=np.array([0, 5, 4])), r"is 5 and 4 at row 1; it is damaged"),
    "blocks: outside": (
        _blocks(indices=np.array([0, 1, 0, 2])), r"hold 2, but it has 2 columns of blocks; it is da"
    ),
    "blocks: real": (_blocks(indices=np.zeros(4)), r"must be integers, not float64; it is damaged"),
    "blocks: too few": (_blocks(data=np.ones((3, 2, 2))), r"data have the shape \(3, 2, 2\); it"),
    "blocks: size": (_blocks(data=np.ones((4, 3, 2))), r"\(4, 3, 2\), which are no blocks .* dam"),
    "blocks: empty": (_blocks(data=np.ones((4, 0, 2))), r"\(4, 0, 2\), which are no blocks of it"),
    "blocks: flat": (_blocks(data=np.ones(4)), r"shape \(4,\), which are no blocks of it"),
}  # fmt: skip


@pytest.mark.parametrize(("make", "message"), BAD.values(), ids=BAD)
def test_bad_matrices(make, message):
    for directed in (False, True):
        with pytest.raises(ValueError, match=message):
            built(make(), directed=directed)
        matrix = make()
        if matrix.format != "csr":
            continue
        columns = sp.csc_array(matrix.shape)
        columns.indptr, columns.indices = matrix.indptr, matrix.indices
        columns.data = matrix.data
        with pytest.raises(ValueError, match=message):
            built(columns, directed=directed)


def test_values_that_are_no_numbers():
    with pytest.raises(TypeError, match="values of the matrix hold complex128"):
        built(sp.csr_array(np.ones((3, 3), complex)))


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dok"])
@pytest.mark.parametrize("value", [-2.5, np.nan])
def test_where_a_bad_value_stands(form, value):
    matrix = sp.coo_array(([1.0, value, 1.0, 1.0], ([0, 2, 2, 3], [1, 0, 3, 2])), (4, 4))
    unsorted = sp.csr_array(matrix)
    unsorted.indices, unsorted.data = unsorted.indices[[0, 2, 1, 3]], unsorted.data[[0, 2, 1, 3]]
    words = r"hold 1 .*the first (-2\.5 )?at row 2, column 0; (weights|fill them, or set them to 0)"
    for directed in (False, True):
        for one in (matrix.asformat(form), unsorted):
            with pytest.raises(ValueError, match=words):
                built(one, directed=directed)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr"])
def test_attributes_that_are_no_arrays(form):
    names = ("data", "coords") if form == "coo" else ("data", "indices", "indptr")
    for name in names:
        matrix = sp.csr_array(np.ones((3, 3))).asformat(form)
        array = getattr(matrix, name)
        setattr(matrix, name, [list(array[0]), array[1]] if name == "coords" else array.tolist())
        word = "row" if name == "coords" else name
        with pytest.raises(TypeError, match=f"the {word} of the matrix must be an array .* a list"):
            built(matrix)


def test_looking_through_values_by_parts(monkeypatch):
    monkeypatch.setattr(matrices, "AT_ONCE", 4)
    matrix = sp.csr_array(np.ones((3, 3)))
    same(built(matrix), by_edges(matrix))
    for place in range(9):
        matrix.data = _put(place, np.nan)(np.ones(9))
        with pytest.raises(ValueError, match="1 null"):
            built(matrix)
