"""A graph, and the same a little later."""

import numpy as np

from glp_rapids import as_graph


def few_edges_changed(seed, weighted=False, directed=False, device="cpu"):
    """A graph of some thousand vertices, the same a little later, and who was touched."""
    random = np.random.default_rng(seed)
    pairs = np.unique((4000 * random.random((11000, 2)) ** 2).astype(int), axis=0)
    pairs = pairs[pairs[:, 0] < pairs[:, 1]]
    weights = random.integers(1, 9, len(pairs)) / 8
    kept = random.random(len(pairs)) > 0.002
    new = np.array([[3900, 100], [1, 2], [4004, 4005]])
    after = np.concatenate([pairs[kept], new])
    later = np.concatenate([weights[kept], np.full(len(new), 0.125)])
    options = {"directed": directed, "device": device}
    before = as_graph((*pairs.T, weights)[: 2 + weighted], **options)
    after = as_graph((*after.T, later)[: 2 + weighted], **options)
    return before, after, np.unique(np.concatenate([pairs[~kept], new]))


def neighbours_lost():
    """A graph, the same where three vertices have lost all neighbours, and who was touched."""
    _, before, _ = few_edges_changed(3)
    ids = before.external().to_numpy()
    pairs = ids[np.stack([before.row_indices(), before.indices])]
    lost = ids[[100, 200, 300]]
    at_lost = np.isin(pairs, lost).any(axis=0)
    touched = np.union1d(pairs[:, at_lost], lost)
    pairs = pairs[:, ~at_lost & (pairs[0] < pairs[1])]
    return before, as_graph(tuple(pairs), vertices=ids, device="cpu"), touched
