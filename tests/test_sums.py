"""Sums are exact, rounded once, and the same everywhere: an oracle of Python's own fractions."""

from fractions import Fraction
from itertools import pairwise

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from glp_rapids import sssp
from glp_rapids.common.segments import segment_sums
from glp_rapids.device import to_device, to_host
from glp_rapids.fraud import totals
from glp_rapids.ingest.read import as_graph

NUMBERS = {
    "integers": (np.int64, st.integers(0, 2**63 - 1)),
    "few integers": (np.int64, st.sampled_from([0, 1, 2**53 - 1, 2**60, 2**63 - 1])),
    "floats": (np.float64, st.floats(0, 1e300)),
    "nine decades": (np.float64, st.floats(1, 1e9)),
    "halves of an ulp": (np.float64, st.sampled_from([0, 1, 2.0**-53, 2.0**-106, 5e-324, 1e300])),
    "short floats": (np.float32, st.floats(0, 2.0**126, width=32, allow_subnormal=False)),
}
OF_A_CPU = {"subnormal": (np.float32, st.floats(0, 2.0**-120, width=32))}  # no graph has them


def exact(values):
    return float(sum((Fraction(value.item()) for value in values), Fraction(0)))


@pytest.mark.parametrize("numbers", [*NUMBERS, *OF_A_CPU])
def test_sums_are_exact_and_rounded_once(numbers, device):
    if device == "gpu" and numbers in OF_A_CPU:
        pytest.skip("CuPy takes subnormal float32 for 0; weights that are so are refused")
    dtype, one = (NUMBERS | OF_A_CPU)[numbers]

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(segments=st.lists(st.lists(one, max_size=20), max_size=6))
    def check(segments):
        values = np.array([value for segment in segments for value in segment], dtype)
        offsets = np.cumsum([0, *map(len, segments)])
        found = segment_sums(to_device(values, device), to_device(offsets, device))
        expected = [exact(values[start:end]) for start, end in pairwise(offsets)]
        assert to_host(found).tolist() == expected

    check()


def test_a_sum_beyond_float64_is_infinite():
    found = segment_sums(np.array([1e308, 1.0, 1e308]), np.array([0, 1, 3, 3]))
    assert found.tolist() == [1e308, 1e308, 0]
    assert segment_sums(np.full(2, 1e308), np.array([0, 2])).tolist() == [np.inf]


def test_weights_of_a_row_and_of_duplicates_do_not_suffer_from_heavier_ones(device):
    light = [(0, 1, 1e-9), (0, 1, 2e-9), (1, 2, 3e-9)]
    heavy = [(3, 4 + i % 2, 1e12 + i) for i in range(2000)]
    source, destination, weight = map(np.array, zip(*light, *heavy, strict=True))
    graph = as_graph((source, destination, weight), device=device)
    pair = exact(weight[:2])
    sums = to_host(graph.row_weights())
    assert sums[:3].tolist() == [pair, exact(np.array([pair, 3e-9])), 3e-9]
    odd, even = exact(weight[3::2]), exact(weight[4::2])
    assert sums[3] == exact(np.array([odd, even]))


@pytest.mark.parametrize("weights", ["none", *NUMBERS])
@pytest.mark.parametrize("alone", [True, False])
def test_sums_of_rows_leave_self_loops_out(weights, alone, device, monkeypatch):
    monkeypatch.setattr(totals, "PARALLEL_FROM", 1 << 62 if alone else 0)
    pair = st.tuples(st.integers(0, 5), st.integers(0, 5))

    @settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
    @given(data=st.data(), pairs=st.sets(pair, min_size=1, max_size=15))
    def check(data, pairs):
        source, destination = np.array(sorted(pairs)).T
        columns = (source, destination)
        if weights != "none":
            dtype, one = NUMBERS[weights]
            columns += (np.array(data.draw(st.lists(one, min_size=len(pairs), max_size=len(pairs)))
                                 ).astype(dtype),)  # fmt: skip
        graph = as_graph(columns, directed=True, device=device)
        host = graph.to("cpu")
        owner = np.repeat(np.arange(host.number_of_vertices), host.degree)
        values = np.ones(owner.size) if host.weights is None else host.weights
        other = owner != host.indices
        expected = [exact(values[other & (owner == v)]) for v in range(host.number_of_vertices)]
        assert to_host(totals.row_weights(graph)).tolist() == expected
        assert to_host(graph.row_weights()).tolist() == expected

    check()


@given(st.data())
def test_lengths_of_paths_are_exact_or_refused(data):
    """A path takes an edge once, and a search looks one edge farther, also the way it came."""
    pairs = data.draw(st.lists(st.tuples(*[st.integers(0, 4)] * 2), min_size=1, max_size=9))
    heavy = st.sampled_from([0, 1, 2**60, 2**61 - 1, 2**62 - 1, 2**62, 2**63 - 2, 2**63 - 1])
    weights = [data.draw(heavy) for _ in pairs]
    directed, both = data.draw(st.booleans()), data.draw(st.booleans())
    frame = pd.DataFrame(pairs, columns=["src", "dst"]).assign(w=np.array(weights, np.int64))
    how = {"directed": directed, "direction": "both" if both else "out", "vertices": [0]}
    how["strategy"] = data.draw(st.sampled_from(["near-far", "wolfpath"]))
    twin, lightest = nx.DiGraph() if directed and not both else nx.Graph(), {}
    twin.add_node(0)
    for (u, v), weight in zip(pairs, weights, strict=True):
        edge = (u, v) if directed else (min(u, v), max(u, v))
        lightest[edge] = min(weight, lightest.get(edge, weight))
        twin.add_edge(u, v, w=min(weight, twin.get_edge_data(u, v, {"w": weight})["w"]))
    heaviest = max(lightest.values())
    if directed and not both:
        longest = sum(lightest.values())
    else:
        longest = sum(weight for (u, v), weight in lightest.items() if u != v) + heaviest
    if min(longest, heaviest * len(twin)) >= 2**63 - 1:
        with pytest.raises(ValueError, match="add up to more than int64"):
            sssp(frame, 0, weight="w", device="cpu", **how)
        return
    found = sssp(frame, 0, weight="w", unreachable="drop", device="cpu", **how)
    expected = nx.single_source_dijkstra_path_length(twin, 0, weight="w")
    assert dict(zip(found["vertex"], found["distance"], strict=True)) == expected


@pytest.mark.parametrize("strategy", ["near-far", "wolfpath"])
@pytest.mark.parametrize("dtype", [np.int64, np.float64])
def test_both_entries_of_an_edge_are_not_one_path(dtype, strategy):
    most = 2**63 - 1 if dtype == np.int64 else np.finfo(dtype).max / 2
    heavy = dtype(most // 6 + most // 1000)
    # a ring of four edges, whose eight entries would be too much, and a loop
    pairs = [(0, 1), (1, 2), (2, 3), (3, 0), (2, 2)]
    frame = pd.DataFrame(pairs, columns=["src", "dst"]).assign(w=heavy)
    how = {"weight": "w", "strategy": strategy, "vertices": range(9)}
    found = sssp(frame, 0, **how)
    assert found["distance"].tolist()[:4] == [0, heavy, 2 * heavy, heavy]
    more = pd.concat([frame, pd.DataFrame({"src": [0], "dst": [2], "w": [heavy]})])
    with pytest.raises(ValueError, match="as the length of a path and of one edge more"):
        sssp(more, 0, **how)
