"""Real graphs: a GPU gives the labels of a CPU, for every variant."""

import functools

import numpy as np
import pandas as pd
import pytest

import glp_rapids
from glp_rapids import as_graph, datasets
from glp_rapids.bench.gpu import weighted
from glp_rapids.bench.programs import Reworded

FEW = {"max_iter": 6}
SYNC = {"update": "sync", "explore": 0, "tol": 0.0, "max_iter": 4}


def seeded(graph, **options):
    seeds = dict.fromkeys(np.asarray(graph.external())[:: max(len(graph.vertices) // 50, 1)], "a")
    return glp_rapids.seeded_label_propagation(graph, seeds, max_iter=4, **options)


# What runs, and whether on weights of our own where the graph has none.
RUNS = {
    "defaults": (glp_rapids.label_propagation, False),
    "synchronous": (functools.partial(glp_rapids.label_propagation, **SYNC), False),
    "weighted": (functools.partial(glp_rapids.label_propagation, **FEW), True),
    "weighted, synchronous": (functools.partial(glp_rapids.label_propagation, **SYNC), True),
    "layered": (
        functools.partial(glp_rapids.layered_label_propagation, gammas=[1], **FEW),
        False,
    ),
    "speaker-listener": (functools.partial(glp_rapids.speaker_listener, max_iter=4), False),
    "seeded": (seeded, False),
    "reworded": (functools.partial(glp_rapids.propagate, program=Reworded(), **FEW), False),
    "reworded, weighted": (
        functools.partial(glp_rapids.propagate, program=Reworded(), **FEW),
        True,
    ),
}


@functools.cache
def graph_of(name, device):
    edges = datasets.load(name)
    ends = {"source": edges.columns[0], "destination": edges.columns[1]}
    return as_graph(edges[list(ends.values())], **ends, device=device)


@functools.cache
def weighted_graph_of(name, device):
    return weighted(graph_of(name, device))


@pytest.mark.gpu
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", datasets.NAMES)
def test_a_gpu_gives_the_labels_of_a_cpu(name, run, data):
    call, with_weights = RUNS[run]
    given = weighted_graph_of if with_weights else graph_of
    try:
        expected = call(given(name, "cpu"), device="cpu")
    except FileNotFoundError as error:
        pytest.skip(f"not among the graphs here: {error}")
    found = call(given(name, "gpu"), device="gpu")
    pd.testing.assert_frame_equal(found, expected, check_exact=True)
    assert found.attrs["glp"].get("changed") == expected.attrs["glp"].get("changed")
