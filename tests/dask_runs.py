"""Frames for runs on Dask clusters, and what two results of runs have in common."""

import numpy as np
import pandas as pd

import glp_rapids


def large_frame(rows=20_000):
    draws = np.random.default_rng(0).random((rows, 2))
    return pd.DataFrame((rows / 7 * draws**2).astype(np.int64), columns=["src", "dst"])


def assert_same(found, expected):
    parts = [part.compute() for part in found.to_delayed()]
    together = pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(together, expected, check_dtype=False)
    reports = found.attrs["glp"]["ranks"]
    assert [part.attrs["glp"] for part in parts] == reports
    for part in parts:
        assert part.attrs["glp"]["changed"] == expected.attrs["glp"]["changed"]


class Loud(glp_rapids.Program):
    """The workers import this file, or get its code."""

    result_columns = ("volume_heard",)

    def initial_state(self, graph):
        return {"degree": graph.degree, "volume_heard": np.zeros(graph.number_of_vertices)}

    def load_neighbor(v, u, weight, state):
        return state.labels[u], weight * state.degree[u]

    def update_vertex(v, label, score, state):
        state.labels[v] = label
        state.volume_heard[v] = score


# of glp_rapids and of glp_rapids.dask alike
VARIANTS = {
    "label_propagation": {"update": "sync", "explore": 0, "max_iter": 7},
    "layered_label_propagation": {"gammas": [1, 0.25]},
    "speaker_listener": {"max_iter": 8, "threshold": 0.2},
    "seeded_label_propagation": {"seeds": {"v3": "red", "v10": "blue", "v250": "red"}},
    "propagate": {"program": Loud()},
}


def case_of(name, direction):
    """Edges, and the options of a variant; who asks may change them."""
    frame = large_frame(3_000)
    frame = ("v" + (frame % 400).astype(str)).assign(w=1 + frame["src"] % 5)
    how = {"weight": "w", "directed": True, "direction": direction, **VARIANTS[name]}
    if (name, direction) == ("propagate", "both"):
        how["program"] = glp_rapids.Program()
    return frame, how
