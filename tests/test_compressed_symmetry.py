"""Undirected lists hold every edge at both ends: what does not is refused when it is opened."""

import numpy as np
import pandas as pd
import pytest
from compressed_files import changed, put_together, taken_apart
from graphs import GRAPHS

from glp_rapids import CompressedGraph, as_graph, compress
from glp_rapids.device import to_device
from glp_rapids.graph import is_symmetric

SCHEMES = ("cgr", "packed", "entropy")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "graph.glp"


@pytest.mark.parametrize("name", [name for name in GRAPHS if "directed" in name])
def test_a_directed_graph_cannot_pass_for_an_undirected_one(name, path, device):
    graph = as_graph(**GRAPHS[name](), device=device)
    assert not is_symmetric(graph)
    compress(graph, SCHEMES[len(name) % 3], order="bfs" if len(name) % 2 else None).save(path)
    changed(path, directed=False)
    with pytest.raises(ValueError, match=r"section words \(.* both ends"):
        CompressedGraph.open(path, device=device)
    changed(path, directed=True)
    assert CompressedGraph.open(path, device=device).directed
