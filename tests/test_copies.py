"""Copies of everything public, by pickle and copy, after all that is derived was derived."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from programs import Distances

import glp_rapids
from glp_rapids import fraud

EDGES = pd.DataFrame({"src": ["a", "a", "b", "d", "d", "e", "c"], "dst": list("bccefff")})
COPIES = {
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


def used(graph):
    """Everything that leaves something on a graph."""
    glp_rapids.label_propagation(graph)
    glp_rapids.speaker_listener(graph)
    glp_rapids.core_number(graph)
    glp_rapids.trussness(graph)
    glp_rapids.structural_diversity(graph, 2)
    glp_rapids.top_structural_diversity(graph, 1, 2, "core")
    graph.to(graph.device)
    return graph


def window(device="cpu"):
    rows = {"source": ["a", "a", "b"], "destination": ["b", "c", "c"], "amount": [1, 2, 3]}
    window = glp_rapids.SlidingWindow(days=2, device=device)
    window.append(pd.DataFrame({**rows, "time": pd.to_datetime(["2026-01-01"] * 3)}))
    glp_rapids.core_number(window.graph())
    return window


@pytest.mark.parametrize("made", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("compressed", [False, True])
def test_a_graph_that_was_used(made, compressed, device):
    graph = glp_rapids.as_graph(EDGES.assign(w=1.5), weight="w", device=device)
    graph = used(glp_rapids.compress(graph) if compressed else graph)
    if not compressed:
        glp_rapids.label_propagation(made(graph.transpose()))
    again = made(graph)
    for call in (glp_rapids.label_propagation, glp_rapids.core_number, glp_rapids.trussness):
        assert call(again).equals(call(graph))


@pytest.mark.parametrize("made", COPIES.values(), ids=COPIES)
def test_a_directed_graph_whose_transpose_is_kept(made, device):
    graph = glp_rapids.as_graph(EDGES, directed=True, device=device)
    graph.rows("both")
    again = made(glp_rapids.as_graph(graph.transpose())).transpose()
    assert np.array_equal(
        glp_rapids.label_propagation(again, device=device)["partition"],
        glp_rapids.label_propagation(graph, device=device)["partition"],
    )


@pytest.mark.parametrize("made", COPIES.values(), ids=COPIES)
def test_an_opened_graph(made, tmp_path):
    glp_rapids.compress(EDGES, device="cpu").save(tmp_path / "graph.glp")
    graph = used(glp_rapids.CompressedGraph.open(tmp_path / "graph.glp", device="cpu"))
    assert glp_rapids.label_propagation(made(graph)).equals(glp_rapids.label_propagation(graph))


@pytest.mark.parametrize("made", COPIES.values(), ids=COPIES)
def test_a_window_goes_on(made, device):
    one, other = window(device), made(window(device))
    later = pd.DataFrame({"source": ["c"], "destination": ["d"], "amount": [5.0]})
    later["time"] = pd.to_datetime(["2026-01-02"])
    assert one.append(later) == other.append(later) == (1, 0, 0, 0)
    assert one.edges().equals(other.edges())
    assert repr(one) == repr(other)


@pytest.mark.parametrize("made", COPIES.values(), ids=COPIES)
def test_results_findings_and_programs(made):
    found = glp_rapids.label_propagation(EDGES, device="cpu")
    again = made(found)
    assert again.equals(found)
    assert again.attrs == found.attrs
    findings = fraud.find_clusters(window(), ["a"])
    for one, other in zip(made(findings), findings, strict=True):
        assert one.equals(other)
    graph = glp_rapids.as_graph(EDGES, device="cpu")
    expected = glp_rapids.propagate(graph, Distances())
    assert glp_rapids.propagate(graph, made(Distances())).equals(expected)
    assert made(glp_rapids.Program) is glp_rapids.Program


def test_joblib_and_dask_send_a_graph_to_processes():
    # what both do: cloudpickle or pickle there, a result back
    cloudpickle = pytest.importorskip("cloudpickle")
    graph = used(glp_rapids.as_graph(EDGES, device="cpu"))
    sent = cloudpickle.loads(cloudpickle.dumps((glp_rapids.trussness, graph)))
    assert sent[0](sent[1]).equals(glp_rapids.trussness(graph))
