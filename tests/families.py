"""Every kind of work the library does, on graphs made on the spot, for tests of safety."""

import importlib.util

import numpy as np
import pandas as pd

import glp_rapids

VERTICES = 700
OPTIONS = {"max_iter": 12, "classes": 4, "explore": 2}


def edges(seed, weighted=False):
    """Give source, destination (and weights): rows of every length, one of them long."""
    rng = np.random.default_rng(seed)
    size = 4 * VERTICES
    source = np.r_[rng.integers(0, VERTICES, size), np.zeros(VERTICES // 2, np.int64)]
    destination = np.r_[rng.integers(0, VERTICES, size) // 8 * 8, np.arange(VERTICES // 2)]
    weights = (rng.random(source.size) + 0.5,) if weighted else ()
    return source, destination, *weights


def _graph(seed, device, weighted=False):
    everyone = np.arange(VERTICES)
    return glp_rapids.as_graph(edges(seed, weighted), vertices=everyone, device=device)


def _top(seed, device):
    best, contexts = glp_rapids.top_structural_diversity(_graph(seed, device), 20, 2, "core")
    return values(best), values(contexts)


def _rounds(seed, device):
    """Give the results of several runs on one graph, which keeps what the next can use."""
    graph = _graph(seed, device)
    return [values(glp_rapids.label_propagation(graph, seed=i, **OPTIONS)) for i in range(3)]


def _clusters(seed, device):
    graph = _graph(seed, device, weighted=True)
    return values(glp_rapids.account_scores(graph, [1, 2, 3]))


def _frame(seed, device):
    """Read a frame of strings and weights, of cuDF where that is the way to the GPU."""
    source, destination, weights = edges(seed, weighted=True)
    frame = pd.DataFrame({"src": source.astype(str), "dst": destination.astype(str), "w": weights})
    if device == "gpu" and importlib.util.find_spec("cudf"):
        import cudf

        frame = cudf.DataFrame(frame)
    options = {"weight": "w", "device": device}
    found = glp_rapids.seeded_label_propagation(frame, {"0": "a", "8": "b"}, **options)
    return values([found, glp_rapids.label_propagation(frame, **options, **OPTIONS)])


class Doubtful(glp_rapids.Program):
    """A program with a function and state of its own."""

    def load_neighbor(v, u, weight, state):
        return state.labels[u], weight * state.trust[u]

    def initial_state(self, graph):
        return {"trust": 1.0 + np.arange(graph.number_of_vertices) % 3}


FAMILIES = {
    "classic": lambda seed, device: glp_rapids.label_propagation(_graph(seed, device), **OPTIONS),
    "weighted": lambda seed, device: glp_rapids.label_propagation(
        _graph(seed, device, weighted=True), **OPTIONS
    ),
    "layered": lambda seed, device: glp_rapids.layered_label_propagation(
        _graph(seed, device), gammas=[0, 1], **OPTIONS
    ),
    "speaker": lambda seed, device: glp_rapids.speaker_listener(_graph(seed, device), max_iter=5),
    "seeded": lambda seed, device: glp_rapids.seeded_label_propagation(
        _graph(seed, device), {0: "a", 5: "b"}
    ),
    "program": lambda seed, device: glp_rapids.propagate(
        _graph(seed, device), Doubtful(), **OPTIONS
    ),
    "baseline": lambda seed, device: glp_rapids.label_propagation(
        _graph(seed, device), strategy="shared+warp", **OPTIONS
    ),
    "compressed": lambda seed, device: glp_rapids.label_propagation(
        glp_rapids.compress(_graph(seed, device)), **OPTIONS
    ),
    "cgr": lambda seed, device: glp_rapids.label_propagation(
        glp_rapids.compress(_graph(seed, device), "cgr"), **OPTIONS
    ),
    "one graph": _rounds,
    "frame": _frame,
    "scores": _clusters,
    "component": lambda seed, device: glp_rapids.structural_diversity(_graph(seed, device), 3),
    "truss": lambda seed, device: glp_rapids.structural_diversity(_graph(seed, device), 3, "truss"),
    "top": _top,
    "core_number": lambda seed, device: glp_rapids.core_number(_graph(seed, device)),
    "trussness": lambda seed, device: glp_rapids.trussness(_graph(seed, device)),
    "triangles": lambda seed, device: glp_rapids.triangle_count(_graph(seed, device)),
    "bfs": lambda seed, device: glp_rapids.bfs(_graph(seed, device), [0, 8]),
    "sssp": lambda seed, device: glp_rapids.sssp(_graph(seed, device, weighted=True), 0),
    "modularity": lambda seed, device: glp_rapids.modularity(
        _graph(seed, device, weighted=True),
        pd.DataFrame({"vertex": np.arange(VERTICES), "partition": np.arange(VERTICES) % 7}),
    ),
}


def values(found):
    """Give results as lists on the host, to be compared."""
    if isinstance(found, tuple | list):
        return [values(one) for one in found]
    if hasattr(found, "to_pandas"):
        found = found.to_pandas()
    if hasattr(found, "columns"):
        return [[_plain(one) for one in found[name].tolist()] for name in found]
    return found


def _plain(value):
    """Give a value as libraries agree on it: with nulls, pandas has integers where cuDF has not."""
    if pd.isna(value):
        return None
    return float(value) if isinstance(value, int | float) else value


def result(name, seed, device):
    """Do one kind of work; give what came out, comparable."""
    return repr(values(FAMILIES[name](seed, device)))
