"""The awkward graphs that every algorithm is run through, small enough for brute force.

``GRAPHS[name]()`` gives the keywords of `as_graph`, the graph itself among them, so a test says
``as_graph(**GRAPHS["star"](), device=device)`` or hands them to any public function.
"""

from itertools import combinations

import numpy as np
import pandas as pd
from hypothesis import strategies as st


def edges(pairs, weights=None, **options):
    """Make the keywords of as_graph from a list of pairs."""
    pairs = list(pairs)
    frame = pd.DataFrame(
        {
            "src": pd.Series([source for source, _ in pairs], dtype=None if pairs else np.int64),
            "dst": pd.Series([end for _, end in pairs], dtype=None if pairs else np.int64),
        }
    )
    if weights is not None:
        frame["weight"] = np.asarray(weights)
        options["weight"] = "weight"
    return {"graph": frame, **options}


TRIANGLES = edges([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (3, 5)])  # two, and a bridge


def clique(vertices):
    return list(combinations(vertices, 2))


def path(n):
    return [(i, i + 1) for i in range(n - 1)]


def two_cliques():
    return [*clique(range(5)), *clique(range(5, 10)), (4, 5)]


def random_pairs(n, m, seed):
    return np.random.default_rng(seed).integers(0, n, (m, 2)).tolist()


def power_law_pairs(n, m, seed):
    draws = np.random.default_rng(seed).random((m, 2))
    return (n * draws**3).astype(np.int64).tolist()


def _named(pairs, name):
    return [(name(source), name(end)) for source, end in pairs]


def _several_columns():
    pairs = np.array(two_cliques())
    frame = pd.DataFrame(
        {
            "from_bank": pairs[:, 0] % 3,
            "from_name": [f"acc{i}" for i in pairs[:, 0]],
            "to_bank": pairs[:, 1] % 3,
            "to_name": [f"acc{i}" for i in pairs[:, 1]],
        }
    )
    return {
        "graph": frame,
        "source": ["from_bank", "from_name"],
        "destination": ["to_bank", "to_name"],
    }


GRAPHS = {
    "empty": lambda: edges([]),
    "one vertex": lambda: edges([], vertices=[7]),
    "only isolated": lambda: edges([], vertices=[3, 1, 2]),
    "one edge": lambda: edges([(0, 1)]),
    "one self-loop": lambda: edges([(4, 4)]),
    "self-loops": lambda: edges([(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 2)]),
    "isolated": lambda: edges([*clique(range(4)), (10, 11)], vertices=[5, 6, 12, 0]),
    "multi-edges": lambda: edges([(0, 1), (1, 0), (0, 1), (1, 2), (2, 0), (2, 0)]),
    "multi-edges kept": lambda: edges(
        [(0, 1), (1, 0), (0, 1), (1, 2), (2, 0), (2, 0), (3, 3), (3, 3)], multigraph="keep"
    ),
    "star": lambda: edges([(0, i) for i in range(1, 40)]),
    "hub": lambda: edges([*[(0, i) for i in range(1, 700)], *path(300)]),
    "clique": lambda: edges(clique(range(12))),
    "two cliques": lambda: edges(two_cliques()),
    "bipartite": lambda: edges([(i, 10 + j) for i in range(4) for j in range(5)]),
    "disconnected": lambda: edges([*clique(range(4)), *clique(range(20, 25)), (40, 41)]),
    "path": lambda: edges(path(17)),
    "cycle": lambda: edges([*path(11), (10, 0)]),
    "tree": lambda: edges([((i - 1) // 2, i) for i in range(1, 31)]),
    "random": lambda: edges(random_pairs(60, 200, 1)),
    "power law": lambda: edges(power_law_pairs(400, 2500, 2)),
    "weighted": lambda: edges(two_cliques(), [0.25 * (1 + i % 7) for i in range(21)]),
    "float32 weights": lambda: edges(two_cliques(), np.linspace(0.1, 3, 21, dtype=np.float32)),
    "integer weights": lambda: edges([*two_cliques(), (0, 1), (3, 3)], [*range(1, 22), 5, 2]),
    "zero weights": lambda: edges(path(6), [0.0, 1.0, 0.0, 0.0, 2.0]),
    "uneven weights": lambda: edges(
        [*two_cliques(), *two_cliques()], [10.0 ** (i % 13 - 6) for i in range(42)]
    ),
    "directed": lambda: edges([(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (5, 3)], directed=True),
    "directed reciprocal": lambda: edges(
        [(0, 1), (1, 0), (1, 2), (2, 2), (3, 1), (1, 3), (3, 1)], directed=True
    ),
    "directed weighted": lambda: edges(
        random_pairs(30, 120, 3), [0.5 * (i % 5) for i in range(120)], directed=True
    ),
    "directed kept": lambda: edges(random_pairs(9, 60, 4), directed=True, multigraph="keep"),
    "directed star": lambda: edges([(0, i) for i in range(1, 40)], directed=True),
    "strings": lambda: edges(_named(two_cliques(), "acc{:02d}".format)),
    "unicode": lambda: edges(_named(two_cliques(), lambda i: "zéß日𝄞"[i % 5] * (1 + i // 5))),
    "beyond int32": lambda: edges(_named(two_cliques(), lambda i: 2**31 + 7 * i)),
    "beyond int63": lambda: edges(_named(two_cliques(), lambda i: 2**63 + 2**60 * (i % 5) + i)),
    "negative": lambda: edges(_named(two_cliques(), lambda i: (-(10**12)) * i + 3)),
    "several columns": _several_columns,
}


@st.composite
def edge_frames(draw, max_vertices=12, max_edges=40):
    """Draw the keywords of as_graph for a small random graph, perhaps weighted or directed."""
    n = draw(st.integers(1, max_vertices))
    ids = st.integers(0, n - 1)
    pairs = draw(st.lists(st.tuples(ids, ids), max_size=max_edges))
    size = len(pairs)
    weights = draw(
        st.none()
        | st.lists(st.integers(0, 9), min_size=size, max_size=size).map(
            lambda values: np.array(values, dtype=np.int64)
        )
        | st.lists(st.integers(0, 999), min_size=size, max_size=size).map(
            lambda values: np.array(values) / 64
        )
        | st.lists(st.integers(0, 99), min_size=size, max_size=size).map(
            lambda values: np.array(values, dtype=np.float32) / 8
        )
    )
    options = {
        "directed": draw(st.booleans()),
        "multigraph": draw(st.sampled_from(["merge", "keep"])),
    }
    if draw(st.booleans()):
        options["vertices"] = draw(st.lists(st.integers(-3, n + 3), max_size=5))
    return edges(pairs, weights, **options)
