"""What tables are read in chunks with: rows sorted in place, ids looked up, distinct ids."""

from itertools import pairwise
from unittest.mock import patch

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glp_rapids.frames import chunks
from glp_rapids.graph import sort_rows
from glp_rapids.ingest import distinct, lookup
from glp_rapids.ingest.string_lookup import StringLookup

ROWS = st.lists(st.lists(st.integers(0, 40), max_size=90), max_size=8)


@given(rows=ROWS, weighted=st.booleans(), long=st.sampled_from([8, 1 << 10]))
@settings(max_examples=100)
def test_rows_are_sorted_in_place(rows, weighted, long):
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([index for row in rows for index in row], np.int32)
    weights = np.arange(indices.size) / 8 if weighted else None
    expected = [sorted(row) for row in rows]
    before = None if weights is None else sorted(zip(_rows(indptr), indices, weights, strict=True))
    with patch.object(sort_rows, "LONG", long):
        sort_rows.sort_rows(indptr, indices, weights, 0, len(rows))
    assert [indices[a:b].tolist() for a, b in pairwise(indptr)] == expected
    if weighted:
        assert sorted(zip(_rows(indptr), indices, weights, strict=True)) == before


def _rows(indptr):
    return np.repeat(np.arange(indptr.size - 1), np.diff(indptr))


HARD = {
    "sorted": np.arange(5_000),
    "falling": np.arange(5_000)[::-1],
    "equal": np.zeros(5_000),
    "two values": np.arange(5_000) % 2,
    "organ pipe": np.minimum(np.arange(5_000), np.arange(5_000)[::-1]),
    "random": np.random.default_rng(0).integers(0, 2**31 - 1, 100_000),
}


def worst_for_median_of_three(size):
    """Give an order in which the median of first, middle and last is small again and again."""
    order = list(range(size))
    values = np.zeros(size, np.int64)
    largest = size
    while len(order) > 2:
        middle = order[len(order) // 2]
        values[order[-1]], values[middle] = largest, largest - 1
        largest -= 2
        order.pop(len(order) // 2)
        order.pop()
    return values


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [*HARD, "worst"])
def test_long_rows(name, weighted, monkeypatch):
    monkeypatch.setattr(sort_rows, "LONG", 1 << 30)
    values = worst_for_median_of_three(20_000) if name == "worst" else HARD[name]
    indices = values.astype(np.int32)
    weights = indices * 2.0 if weighted else None
    sort_rows.sort_rows(np.array([0, indices.size]), indices, weights, 0, 1)
    assert np.array_equal(indices, np.sort(values))
    if weighted:
        assert np.array_equal(weights, indices * 2.0)


def test_heapsort_ends_what_is_cut_unevenly():
    keys, values = np.random.default_rng(0).permutation(999), np.arange(999)
    expected = values[np.argsort(keys[5:990])] + 5
    sort_rows._heapsort(keys, values, 5, 990)
    assert np.array_equal(keys[5:990], np.sort(keys[5:990]))
    assert np.array_equal(values[5:990], expected)


INTEGERS = {
    "dense": np.arange(1_000),
    "few missing": np.delete(np.arange(-500, 500), [3, 64, 65, 700]),
    "sparse": np.sort(np.random.default_rng(0).integers(-(2**62), 2**62, 500)),
    "one": np.array([7]),
    "far apart": np.array([-(2**63), 0, 1, 2, 2**63 - 1]),
    "negative int32": np.arange(-900, 0, 7, dtype=np.int32),
    "int8": np.arange(-128, 128, 5).astype(np.int8),
    "unsigned": np.array([5, 2**63, 2**64 - 1], np.uint64),
    "clustered": np.concatenate([np.arange(400), 2**60 + np.arange(400)]),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_integers_are_looked_up(name):
    values = INTEGERS[name]
    find = lookup.IntegerLookup(values)
    order = np.random.default_rng(0).permutation(values.size)
    assert np.array_equal(find.find(values[order]), order)
    around = np.concatenate([values - values.dtype.type(1), values + values.dtype.type(1)])
    there = {value: rank for rank, value in enumerate(values.tolist())}
    assert find.find(around).tolist() == [there.get(value, -1) for value in around.tolist()]


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["int8", "int32", "int64", "uint16", "uint64"]),
            st.lists(st.integers(0, 127) | st.integers(0, 2**40), max_size=20),
            st.integers(-100, 100) | st.just(-(2**40)) | st.just(10**6),
        ),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=200)
def test_distinct_integers(arrays):
    arrays = [
        np.array([value + shift for value in values], dtype=object) for _, values, shift in arrays
    ]
    arrays = [array.astype(np.int64) for array in arrays]
    if not sum(map(len, arrays)):
        return
    for few in (0, 1 << 16):
        with patch.object(distinct, "FEW", few), patch.object(chunks, "CHUNK", 5):
            found = distinct.DistinctIntegers()
            for array in arrays:
                found.add(array, "ids")
            assert found.sorted().tolist() == np.unique(np.concatenate(arrays)).tolist()


def test_sparse_integers_that_become_dense(monkeypatch):
    monkeypatch.setattr(distinct, "FEW", 0)
    monkeypatch.setattr(chunks, "CHUNK", 100)
    found, values = distinct.DistinctIntegers(), np.random.default_rng(0).permutation(20_000)
    for part in np.array_split(values, 40):
        found.add(part - 700, "ids")
    assert found._bits is not None
    assert np.array_equal(found.sorted(), np.arange(20_000) - 700)


def test_strings_are_looked_up():
    values = sorted(["", "a", "aa", "é", "日本", "x" * 70, *(f"user {i}" for i in range(5_000))])
    find = StringLookup.of(pd.Series(values))
    asked = [*values[::-1], "b", "user 5000", "x" * 71]
    expected = [*range(len(values))[::-1], -1, -1, -1]
    for column in (pd.Series(asked), pd.Series(asked, dtype=object), pd.Series(asked)[:]):
        assert find(column, "ids").tolist() == expected
    assert find(pd.Series(asked)[10:20], "ids").tolist() == expected[10:20]
    assert StringLookup.of(pd.Series(["\ud800"], dtype=object)) is None
