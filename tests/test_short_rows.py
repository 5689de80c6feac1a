"""Rows counted in vector registers, beside the same in plain Python; and rows copied by steps."""

import dataclasses
from collections import Counter

import numba
import numpy as np
import pytest

import glp_rapids
from glp_rapids.propagation.kernels.cpu import short_rows
from glp_rapids.propagation.kernels.cpu.unit_votes import rows_in_order, starts_in_order

KINDS = {
    short_rows.FEW: short_rows.leaders_of_few,
    short_rows.SOME: short_rows.leaders_of_some,
    short_rows.MANY: short_rows.leaders_of_many,
}


def found_by(leaders):
    @numba.njit
    def found(buffer, begin, size, current, largest):
        return leaders(buffer, np.uint64(begin), np.int64(size), current, largest)

    return found


def expected(labels, current, largest):
    votes = Counter(labels)
    most = max(votes.values())
    best = [label for label in votes if votes[label] == most]
    places = sum((votes[label] == most) << place for place, label in enumerate(labels))
    holders = sum(votes[label] == most for label in labels)
    return most, max(best) if largest else min(best), places, holders, current in best


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("lanes", KINDS)
def test_leaders_are_those_of_plain_counting(lanes, dtype):
    found, rng = found_by(KINDS[lanes]), np.random.default_rng(lanes)
    for number in range(60 * lanes):
        size, distinct = 1 + number % lanes, rng.integers(1, 2 * lanes)
        # what stands beside the row must not count, the same labels least of all
        buffer = rng.integers(0, distinct, 3 * lanes).astype(dtype)
        if number % 3 == 0:
            buffer[buffer == 1] = np.iinfo(np.int32).max  # the largest label there may be
        begin, current = rng.integers(0, lanes), buffer.dtype.type(rng.integers(-1, distinct))
        labels = buffer[begin : begin + size].tolist()
        for largest in (False, True):
            *most, own = found(buffer, begin, size, current, largest)
            assert (*most, own != 0) == expected(labels, current, largest)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float64])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_rows_are_copied_in_any_order(threads, dtype):
    rng = np.random.default_rng(threads)
    degrees = rng.integers(0, 40, 5000)
    degrees[rng.integers(0, 5000, 20)] = 1000
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    entries = rng.integers(0, 1 << 30, indptr[-1]).astype(dtype)
    order = rng.permutation(5000).astype(np.int32)
    starts, copy = np.empty(order.size + 1, np.int64), np.empty_like(entries)
    starts_in_order(order, indptr, starts)
    rows_in_order(order, indptr, starts, entries, copy, threads)
    rows = [entries[indptr[v] : indptr[v + 1]] for v in order]
    np.testing.assert_array_equal(copy, np.concatenate(rows))
    np.testing.assert_array_equal(np.diff(starts), degrees[order])


def test_rows_of_arrays_with_gaps():
    """A graph may be put together of views; copying knows no strides."""
    rng = np.random.default_rng(3)
    graph = glp_rapids.as_graph(tuple(rng.integers(0, 4000, (2, 60_000))), device="cpu")
    assert graph.indices.size > 1 << 16
    apart = np.empty((graph.indices.size, 2), graph.indices.dtype)[:, 0]
    apart[:] = graph.indices
    found, expected = (
        glp_rapids.label_propagation(one, max_iter=4)["partition"].to_numpy()
        for one in (dataclasses.replace(graph, indices=apart, _derived={}), graph)
    )
    assert np.array_equal(found, expected)
