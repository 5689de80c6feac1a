"""Strengths are right whatever the weights: integers beyond 64 bits, many decades, a hub."""

import numpy as np
import pandas as pd
import pytest

import glp_rapids
from glp_rapids.fraud import account_scores, find_clusters


def true_scores(graph, seeds, sweeps=10, damping=0.85):
    """One label everywhere: the damped matrix, time after time, in the longest floats there are."""
    n, indptr, indices = graph.number_of_vertices, graph.indptr, graph.indices
    owner = np.repeat(np.arange(n), np.diff(indptr))
    weights = np.ones(indices.size) if graph.weights is None else graph.weights
    weights = np.where(owner == indices, 0, weights).astype(np.longdouble)
    filled = np.flatnonzero(np.diff(indptr))

    def added(values):
        sums = np.zeros(n, np.longdouble)
        sums[filled] = np.add.reduceat(values, indptr[:-1][filled])
        return sums

    norm = np.sqrt(added(weights))
    norm[norm == 0] = 1
    score = np.zeros(n, np.longdouble)
    score[seeds] = 1
    for _ in range(sweeps):
        score = damping * added(weights * (score / norm)[indices]) / norm
        score[seeds] = 1
    return score


def strengths(graph, ids, **options):
    found = glp_rapids.seeded_label_propagation(graph, ids, device=graph.device, **options)
    return found["score"].to_numpy()


def worst_error(graph, ids, above=0.0, damping=0.85, **options):
    """The largest error in proportion to true scores above a bound; none exceeds the promised."""
    found = strengths(graph, ids, damping=damping, **options)
    known = graph if graph.device == "cpu" else graph.to("cpu")
    seeds = known.vertex_index(ids)
    expected = true_scores(known, seeds, damping=damping)
    assert (found[expected == 0] == 0).all()
    error = np.abs(found - expected)
    norm = np.sqrt(known.row_weights())
    promised = float(known.degree.max()) * norm / norm[seeds].min() / (1 - damping) * 2.0**-61
    assert (error <= promised + 1e-13 * expected).all()
    reached = expected > above
    return float((error[reached] / expected[reached]).max())


@pytest.mark.parametrize("edges", [17, 20, 200])
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("weight", [2**60, 2**62 + 1])
def test_integer_weights_may_add_up_to_more_than_64_bits(edges, seed, weight, device):
    star = pd.DataFrame({"src": 0, "dst": range(1, edges + 1), "w": weight})
    graph = glp_rapids.as_graph(star, weight="w", device=device)
    assert worst_error(graph, [seed]) < 1e-14
    first = strengths(graph, [1], max_iter=1)[0]
    assert first == pytest.approx(0.85 / edges**0.5, rel=1e-14)


def decades(n=6_000, hub=2_000, largest=1e9):
    rng = np.random.default_rng(0)
    source = np.concatenate([np.zeros(hub, np.int64), rng.integers(1, n, 2 * n)])
    destination = np.concatenate([np.arange(1, hub + 1), rng.integers(1, n, 2 * n)])
    return pd.DataFrame(
        {"src": source, "dst": destination, "w": largest ** rng.uniform(0, 1, source.size)}
    )


@pytest.mark.parametrize("ids", [[0], [5], range(1, 2000, 20)])
def test_amounts_over_nine_decades_around_a_hub(ids, device):
    graph = glp_rapids.as_graph(decades(), weight="w", device=device)
    assert worst_error(graph, list(ids), above=1e-12) < 1e-5
    assert worst_error(graph, list(ids)) < 0.1  # down to 1e-17


def test_a_hub_of_20000_as_it_was_reported(device):
    graph = glp_rapids.as_graph(decades(60_000, 20_000), weight="w", device=device)
    assert worst_error(graph, [0]) < 1e-7
    assert worst_error(graph, [5]) < 0.01


@pytest.mark.parametrize("factor", [2.0**-900, 2.0**900])
def test_the_unit_of_the_weights_does_not_matter(factor, device):
    edges = decades(500, 100, 1e6)
    scaled = edges.assign(w=edges["w"] * factor)
    for function in (account_scores, glp_rapids.seeded_label_propagation):
        one, other = (function(rows, [5], weight="w", device=device) for rows in (edges, scaled))
        pd.testing.assert_frame_equal(one, other)


def test_weights_that_add_up_to_more_than_a_float_holds_are_refused():
    star = pd.DataFrame({"src": 0, "dst": range(1, 21), "w": 1e308})
    for function in (account_scores, find_clusters):
        with pytest.raises(ValueError, match=r"weight.*float64.*divide"):
            function(star, [1], weight="w", device="cpu")


@pytest.mark.parametrize("damping", [0.5, 1.0])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("update", ["sync", "semi"])
def test_bounds_hold_for_many_seeds_whoever_is_updated_first(damping, directed, update, device):
    edges = decades(400, 300)
    seeds = {int(v): int(v) % 3 for v in edges["dst"][:150]}
    options = {"damping": damping, "directed": directed, "update": update, "max_iter": 40}
    found = glp_rapids.seeded_label_propagation(
        edges, seeds, weight="w", device=device, classes=8, **options
    )
    assert np.isfinite(found["score"]).all()
    assert (found["score"][found["label"].notna()] > 0).all()
