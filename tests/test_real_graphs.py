"""Real graphs: a GPU gives the labels of a CPU, for every variant."""

import functools

import pandas as pd
import pytest

from glp_rapids import as_graph, datasets
from glp_rapids.bench.agreement import RUNS
from glp_rapids.bench.gpu import weighted


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
    compared(name, run, [{"device": "gpu"}])


def compared(name, run, places):
    call, with_weights = RUNS[run]
    given = weighted_graph_of if with_weights else graph_of
    try:
        expected = call(given(name, "cpu"), device="cpu")
    except FileNotFoundError as error:
        pytest.skip(f"not among the graphs here: {error}")
    for place in places:
        found = call(given(name, "gpu"), **place)
        pd.testing.assert_frame_equal(found, expected, check_exact=True)
        assert found.attrs["glp"].get("changed") == expected.attrs["glp"].get("changed")
