"""Graphs, and the files that their arrays lie in."""

import numpy as np
import scipy.sparse as sp
from graphs import GRAPHS, edges, power_law_pairs, random_pairs

from glp_rapids.ingest.npz import open_npz

OURS = ("indptr", "indices", "weights")


def matrix_of(graph):
    """The matrix of a graph; without weights of truth values."""
    matrix = sp.csr_array((graph.number_of_vertices,) * 2)
    data = np.ones(graph.number_of_edges, bool) if graph.weights is None else graph.weights
    matrix.indptr, matrix.indices, matrix.data = graph.indptr, graph.indices, data
    return matrix


def through_npz(matrix, folder):
    for name in ("indptr", "indices"):  # SciPy writes one dtype for both
        setattr(matrix, name, getattr(matrix, name).astype(np.int32))
    sp.save_npz(folder / "matrix.npz", matrix, compressed=False)
    return open_npz(folder / "matrix.npz")


SUBJECTS = {
    "power law": GRAPHS["power law"],
    "weighted": lambda: edges(random_pairs(80, 500, 1), [0.5 * (i % 7) for i in range(500)]),
    "integers": lambda: edges(power_law_pairs(90, 600, 2), [i % 9 for i in range(600)]),
    "directed": lambda: edges(random_pairs(60, 300, 3), directed=True),
}
