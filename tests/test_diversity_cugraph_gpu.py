"""Ego-networks, cores, trusses and triangles beside cuGraph's, on a GPU that has it."""

import numpy as np
import pytest
from graphs import clique, edges, power_law_pairs, random_pairs

import glp_rapids

pytestmark = pytest.mark.gpu

GRAPHS = {
    "random": random_pairs(60, 300, 1),
    "power law": power_law_pairs(900, 9000, 2),
    "cliques": [*clique(range(9)), *clique(range(7, 15)), (20, 21), (14, 20)],
    "beyond int32": [(2**33 + a, 2**33 + b) for a, b in random_pairs(40, 200, 3)],
}


@pytest.fixture(params=GRAPHS)
def both(request):
    """A graph without loops as cuGraph has it, and as our functions are given it: the same."""
    cudf = pytest.importorskip("cudf", reason="cuDF is not installed")
    cugraph = pytest.importorskip("cugraph", reason="cuGraph is not installed")
    frame = edges([(a, b) for a, b in GRAPHS[request.param] if a != b])["graph"]
    graph = cugraph.Graph()
    graph.from_cudf_edgelist(cudf.from_pandas(frame), source="src", destination="dst")
    return cugraph, graph


def rows(frame, columns):
    return sorted(frame[columns].to_pandas().itertuples(index=False, name=None))


def once(frame):
    """The edges of a frame, each as the pair of its smaller and its larger end."""
    ends = np.sort(frame[["src", "dst"]].to_pandas().to_numpy(), axis=1)
    return sorted({tuple(pair) for pair in ends.tolist()})


def test_ego_networks_are_ego_graphs_without_the_ego(both):
    cugraph, graph = both
    found = glp_rapids.ego_networks(graph)
    assert type(found).__module__.startswith("cudf")
    found = found.to_pandas()
    for ego in graph.nodes().to_pandas().tolist()[:40]:
        theirs = cugraph.ego_graph(graph, ego, radius=1).view_edge_list()
        ends = {tuple(theirs.columns)[i]: name for i, name in enumerate(("src", "dst"))}
        theirs = theirs.rename(columns=ends).to_pandas()
        theirs = theirs[(theirs["src"] != ego) & (theirs["dst"] != ego)]
        pairs = {tuple(sorted(pair)) for pair in zip(theirs["src"], theirs["dst"], strict=True)}
        mine = found[found["ego"] == ego]
        assert set(zip(mine["src"], mine["dst"], strict=True)) == pairs
        assert len(mine) == len(pairs)


def test_core_numbers_are_cugraphs(both):
    cugraph, graph = both
    columns = ["vertex", "core_number"]
    theirs = cugraph.core_number(graph, degree_type="incoming")
    assert rows(glp_rapids.core_number(graph), columns) == rows(theirs, columns)


def test_triangle_counts_are_cugraphs(both):
    cugraph, graph = both
    columns = ["vertex", "counts"]
    theirs = cugraph.triangle_count(graph)
    assert rows(glp_rapids.triangle_count(graph), columns) == rows(theirs, columns)


@pytest.mark.parametrize("k", [3, 4, 5])
def test_trusses_are_cugraphs(both, k):
    cugraph, graph = both
    assert once(glp_rapids.k_truss(graph, k)) == once(cugraph.k_truss(graph, k).view_edge_list())
