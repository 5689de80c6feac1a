"""What most of several runs of label propagation put together, as `clusters` says and cites."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from glp_rapids.common.progress import Report
from glp_rapids.device import any_true, array_module
from glp_rapids.graph.call_memory import RUNS, copies_at_once
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.subgraph import copies, without
from glp_rapids.propagation.call import prepare
from glp_rapids.propagation.run import run
from glp_rapids.propagation.variants.classic import Classic

Array = Any


def agreed(graph: Graph, tell: Report | None = None) -> Array:
    """Mark the entries whose ends most of several runs of label propagation put together.

    What an account pays to itself has no vote: it could keep itself out of its ring with that.
    """
    row = graph.row_indices()
    xp = array_module(row)
    votes = xp.zeros(row.size, dtype=np.int64)
    loops = row == graph.indices
    trades = without(graph, loops) if any_true(loops) else graph
    # a run is bound by its steps, not by its entries: so several are one, of as many copies
    most, seed, made = copies_at_once(graph.number_of_vertices, row.size), 0, 0
    while made < RUNS:
        number = min(most, RUNS - made)
        # what `label_propagation` does, without a frame for each
        prepared, options = prepare(copies(trades, number), {"device": graph.device})
        labels = run(prepared, Classic(), replace(options, seed=seed, warns=not made)).labels
        own = labels.reshape(number, graph.number_of_vertices)
        # a run after the other on a CPU, whose cache does not hold more
        for some in own if graph.device == "cpu" else (own,):
            votes += xp.atleast_2d(some[..., row] == some[..., graph.indices]).sum(axis=0)
        seed, made = seed + 1, made + number
        if tell is not None:
            tell({"step": "clusters", "run": made, "of": RUNS})
    return 2 * votes > RUNS
