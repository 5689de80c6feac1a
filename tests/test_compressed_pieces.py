"""Rows that are compressed piece by piece are those that are compressed at once."""

import graphs
import numpy as np
import pytest
from cases import exhaustive
from memory_limits import large

from glp_rapids import as_graph
from glp_rapids.bench.large_graph import large_graph, rows_of_large_graph
from glp_rapids.compressed.encode import encode
from glp_rapids.compressed.options import layout_of
from glp_rapids.compressed.pieces import Piece, encode_pieces
from glp_rapids.graph.rows import CSR

LAYOUT = layout_of("packed", "speed", None, 0, None)


def in_pieces(rows, size):
    def pieces():
        for first in range(0, rows.number_of_vertices, size):
            starts = rows.indptr[first : first + size + 1]
            yield Piece(first, CSR(starts - starts[0], rows.indices[starts[0] : starts[-1]], None))

    return pieces


def assert_same_lists(found, expected):
    for name in ("words", "block_bytes", "tables"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)
    assert found.number_of_edges == expected.number_of_edges
    assert found.number_of_vertices == expected.number_of_vertices
    assert found.layout == expected.layout


@pytest.mark.parametrize("raw_below", [0, 3])
@pytest.mark.parametrize("size", [4_032, *exhaustive(32, 96)])
def test_pieces_are_the_whole_bit_for_bit(size, raw_below):
    layout = layout_of("packed", "speed", None, raw_below, None)
    for graph in (
        large(), large(directed=True), as_graph(**graphs.GRAPHS["hub"](), device="cpu"),
        as_graph(([], []), vertices=range(70), device="cpu"), large_graph(11, 1, "cpu"),
    ):  # fmt: skip
        rows = CSR(graph.indptr, graph.indices, None)
        expected = encode(rows, layout)
        n = rows.number_of_vertices
        assert_same_lists(encode_pieces(in_pieces(rows, size), n, layout), expected)


def test_rows_of_a_large_graph_are_made_apart():
    whole = large_graph(12, 3, "cpu")
    for first, last in ((0, 4096), (64, 65), (1000, 3000), (4096, 4096)):
        rows = rows_of_large_graph(12, 3, "cpu", first, last)
        begin, end = whole.indptr[[first, last]]
        np.testing.assert_array_equal(rows.indices, whole.indices[begin:end])
        np.testing.assert_array_equal(rows.indptr, whole.indptr[first : last + 1] - begin)


@pytest.mark.parametrize("cut", [slice(1, None), slice(None, -1), slice(None, None, -1)])
def test_pieces_that_do_not_follow_one_another_are_refused(cut):
    graph = large(300, 2_000)
    rows = CSR(graph.indptr, graph.indices, None)
    some = list(in_pieces(rows, 96)())[cut]
    with pytest.raises(ValueError, match="piece"):
        encode_pieces(lambda: some, rows.number_of_vertices, LAYOUT)


def test_other_schemes_are_refused():
    with pytest.raises(ValueError, match="not 'cgr'"):
        encode_pieces(list, 3, layout_of("cgr", "size", None, 0, None))
