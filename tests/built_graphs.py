"""Graphs as they are read from edges, and as the twin builds them."""

import networkx as nx
import pandas as pd
import pytest
from reference import adjacency

from glp_rapids.ingest.read import as_graph


def built(**options):
    return as_graph(**options, device="cpu")


def rows_of(csr):
    """Give per row the list of (neighbour, weight)."""
    weights = [None] * csr.indices.size if csr.weights is None else csr.weights.tolist()
    entries = list(zip(csr.indices.tolist(), weights, strict=True))
    return [
        entries[a:b] for a, b in zip(csr.indptr[:-1].tolist(), csr.indptr[1:].tolist(), strict=True)
    ]


def twin(options):
    """Build the same keywords with plain Python."""
    options = dict(options)
    frame, weight = options.pop("graph"), options.pop("weight", None)
    source, destination = options.pop("source", "src"), options.pop("destination", "dst")

    def ids(names):
        if isinstance(names, str):
            return frame[names].tolist()
        return list(zip(*(frame[name].tolist() for name in names), strict=True))

    pairs = list(zip(ids(source), ids(destination), strict=True))
    return adjacency(pairs, None if weight is None else frame[weight].tolist(), **options)


def same(one, other):
    assert one.indptr.tolist() == other.indptr.tolist()
    assert one.indices.tolist() == other.indices.tolist()
    assert (one.weights is None) == (other.weights is None)
    if one.weights is not None:
        assert one.weights.dtype == other.weights.dtype
        assert one.weights.tobytes() == other.weights.tobytes()


def check(options):
    graph = built(**options)
    ids, rows = twin(options)
    got = graph.external()
    columns = got.columns if isinstance(got, pd.DataFrame) else None
    shown = got.tolist() if columns is None else list(got.itertuples(index=False, name=None))
    assert shown == ids
    assert [[u for u, _ in row] for row in rows_of(graph)] == [list(row) for row in rows]
    for row, expected in zip(rows_of(graph), rows, strict=True):
        for (_, got_weight), weight in zip(row, expected.values(), strict=True):
            if weight is None:
                assert got_weight is None
            else:
                assert got_weight == pytest.approx(weight, rel=1e-6)
    return graph


def karate():
    return nx.karate_club_graph()
