"""Scores by a direct solver, and how near them others have to be."""

import numpy as np
from scipy.sparse import csr_matrix, identity
from scipy.sparse.linalg import spsolve


def traded(graph):
    """Return what entries weigh, 0 if self-loops, the row of each, and what those of a row make."""
    weights = np.ones(graph.indices.size) if graph.weights is None else graph.weights
    row = np.repeat(np.arange(graph.number_of_vertices), np.diff(graph.indptr))
    weights = np.where(row == graph.indices, 0, weights).astype(float)
    return weights, row, np.bincount(row, weights, graph.number_of_vertices)


def exact_scores(graph, seeds, good=(), damping=0.85):
    """Solve Zhou's equation with clamped seeds by SciPy's direct solver."""
    n = graph.number_of_vertices
    weights, row, total = traded(graph)
    norm = np.sqrt(np.where(total > 0, total, 1))
    entries = damping * weights / norm[row] / norm[graph.indices]
    matrix = csr_matrix((entries, graph.indices, graph.indptr), (n, n))
    score = np.zeros(n)
    score[list(seeds)] = 1
    free = np.ones(n, dtype=bool)
    free[[*seeds, *good]] = False
    if free.any():
        inner = identity(int(free.sum()), format="csc") - matrix[free][:, free].tocsc()
        score[free] = spsolve(inner, (matrix[free] @ score))
    return score


def times_as_far(graph, known, mean=None):
    """Return how many times ``tol`` each score may be off.

    ``known``: the vertices whose scores are fixed. ``mean``: facts that hold what others trade on
    average, which is then not computed here.
    """
    total = traded(graph)[2]
    free = total > 0
    free[list(known)] = False
    usual = total[free].mean() if mean is None and free.any() else (mean or {}).get("mean_weight")
    return np.maximum(np.sqrt(total / (usual or 1)), 1)


def as_near(scores, others, error, graph, seeds, good=(), mean=None):
    """Tell whether scores are within ``error`` of others, larger accounts in proportion."""
    times = times_as_far(graph, [*seeds, *good], mean)
    return bool((np.abs(np.asarray(scores) - np.asarray(others)) <= error * times + 1e-12).all())
