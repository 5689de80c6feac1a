"""Multilevel label propagation under the names of cuGraph: `louvain` and `leiden`."""


import graphs
import pandas as pd
import pytest

from glp_rapids import (
    as_graph,
    leiden,
    louvain,
    multilevel_label_propagation,
)


def test_names_of_cugraph():
    graph = as_graph(**graphs.GRAPHS["power law"](), device="cpu")
    found, modularity = louvain(graph, 2, resolution=0.5, threshold=0.0, seed=4)
    same = multilevel_label_propagation(
        graph, refine=False, max_level=2, resolution=0.5, tol=0.0, seed=4
    )
    assert found.equals(same)
    assert modularity == same.attrs["glp"]["modularity"]
    found, modularity = leiden(graph, 3, 2.0, 9, iterations=1)
    same = multilevel_label_propagation(graph, max_level=3, resolution=2.0, seed=9, iterations=1)
    assert found.equals(same)
    assert modularity == same.attrs["glp"]["modularity"]
    assert found.equals(leiden(graph, 3, 2.0, 9, 1.0, iterations=1)[0])
    with pytest.warns(UserWarning, match=r"theta=0\.5 has no effect"):
        leiden(graph, max_iter=1, theta=0.5)
    expected, _ = louvain(graph, 2, threshold=0.1)
    assert louvain(graph, None, 2, 1.0, 0.1)[0].equals(expected)


@pytest.mark.parametrize(
    ("function", "options", "error", "words"),
    [
        (louvain, {"threshold": -1}, ValueError, "^threshold must be a finite number"),
        (louvain, {"threshold": "1"}, TypeError, "^threshold must be a number"),
        (louvain, {"max_level": 0}, ValueError, "^max_level must be at least 1"),
        (louvain, {"max_level": 1.5}, TypeError, "^max_level must be an integer or None"),
        (leiden, {"random_state": -1}, ValueError, "^random_state must be in 0..4294967295"),
        (leiden, {"max_iter": 0}, ValueError, "^max_iter must be at least 1"),
        (leiden, {"theta": "1"}, TypeError, "^theta must be a number"),
        (leiden, {"reslution": 1}, TypeError, r"unknown option 'reslution'.*mean resolution\?"),
        (louvain, {"max_iter": 0}, ValueError, "^max_iter must be at least 1"),
        (louvain, {"max_level": 1, "max_iter": 1}, ValueError, "^max_iter is another name"),
        (louvain, {"treshold": 1}, TypeError, r"unknown option 'treshold'.*mean threshold\?"),
        (leiden, {"max_iter": None}, TypeError, "^max_iter must be an integer"),
    ],
)
def test_names_of_cugraph_in_messages(function, options, error, words):
    with pytest.raises(error, match=words):
        function(pd.DataFrame({"src": [0], "dst": [1]}), **options)
