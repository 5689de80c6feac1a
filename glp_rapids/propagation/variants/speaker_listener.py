"""Speaker-listener label propagation, SLPA (Xie, Szymanski, Liu, ICDMW 2011)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import check_integer, check_share
from glp_rapids.common.hashing import random_below
from glp_rapids.common.types import Frame
from glp_rapids.device import module_on
from glp_rapids.propagation.call import prepare, refuse, refuse_warm, results
from glp_rapids.propagation.options import Options, SweepOptions
from glp_rapids.propagation.program import Program
from glp_rapids.propagation.run import Run, run

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph


class SpeakerListener(Program):
    """Every vertex remembers what it heard, and says a label drawn from that (Xie et al. 2011).

    The memory is the list of all labels heard, so a draw in proportion to frequency is one read
    at a random place, and remembering is one write.
    """

    _gives_state = all_sweeps = True

    def __init__(self, sweeps: int):
        self.sweeps = int(sweeps)

    def _bytes_a_vertex(self, index_dtype: Any) -> int:
        return index_dtype.itemsize * (self.sweeps + 1) + 4

    def initial_state(self, graph: BaseGraph) -> Mapping[str, Any]:
        """Start every memory with the vertex itself."""
        xp = module_on(graph.device)
        shape = (graph.number_of_vertices, self.sweeps + 1)
        memory = xp.full(shape, -1, dtype=graph.index_dtype)
        memory[:, 0] = xp.arange(shape[0], dtype=memory.dtype)
        return {"memory": memory, "heard": xp.ones(shape[0], dtype=np.int32)}

    @staticmethod
    def pick_label(v, sweep, state):
        """Draw a label from the memory."""
        return state.memory[v, random_below(v, sweep, state.seed, state.heard[v])]

    @staticmethod
    def update_vertex(v, label, score, state):
        """Remember the label that most neighbours said."""
        state.memory[v, state.heard[v]] = label
        state.heard[v] += 1


@guarded
def speaker_listener(
    graph: Any,
    *,
    max_labels: int = 5,
    threshold: float = 0.1,
    max_iter: int = 20,
    **options: Unpack[SweepOptions],
) -> Frame:
    """Find overlapping communities: vertices remember what they heard, and say what they remember.

    Parameters
    ----------
    graph : frame, tuple of arrays, sparse matrix, networkx, cugraph or glp_rapids graph
        Whatever `as_graph` takes, with its keywords.
    max_labels : int
        Communities a vertex can belong to, at the most.
    threshold : float
        A label counts if it fills at least this share of the memory; the most frequent one always
        does.
    max_iter : int
        How many sweeps are made; there is no earlier end.
    **options
        ``classes``, ``update``, ``direction``, ``seed``, ``memory_limit``, ``way``,
        ``devices``, ``progress`` as in `label_propagation`.

    Returns
    -------
    frame
        ``vertex``, ``partition``, ``frequency``: a row for each community of a vertex, the
        strongest first. Communities count from 0 by their smallest vertex.

    Raises
    ------
    ValueError, TypeError
        An option is out of range or has no meaning here, or as in `label_propagation`.

    Notes
    -----
    SLPA (Xie, Szymanski, Liu, ICDMW 2011). A speaker says one label a sweep, drawn from its
    memory by (seed, sweep, vertex) alone; a listener keeps the one that most neighbours said, ties
    in a random order. There is no warm start (``initial=`` is refused): what a vertex says is drawn
    from a memory of all sweeps, of which the result holds only the shares of the strongest labels.
    O(m) time a sweep; the memory takes 4 (max_iter + 1) bytes a vertex.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import speaker_listener
    >>> edges = pd.DataFrame({"src": [0, 0, 1], "dst": [1, 2, 2]})
    >>> list(speaker_listener(edges).columns)
    ['vertex', 'partition', 'frequency']
    """
    check(options, max_labels, threshold, max_iter)
    prepared, run_options = prepare(graph, options, **DEFAULTS)
    return cover(prepared, run_options, run, max_labels, threshold)


# Every sweep explores, however many there are.
DEFAULTS = {"explore": 1 << 31}


def check(options: SweepOptions, max_labels: int, threshold: float, max_iter: int) -> None:
    """Raise if an option is out of range or has no meaning here; note the number of sweeps."""
    check_integer("max_labels", max_labels, 1)
    check_share("threshold", threshold, "a share in [0, 1]")
    refuse_warm(
        options, "speaker_listener",
        "its communities are counted in memories of max_iter sweeps, which a result does not hold; "
        "begin anew, with the same seed for the same draws",
    )  # fmt: skip
    refuse(options, "speaker_listener", "explore", "tol", "tie_break", "retain", "skip_inactive")
    options["max_iter"] = max_iter


def cover(
    graph: BaseGraph, options: Options, run: Run, max_labels: int, threshold: float
) -> Frame:
    """Return ``vertex, partition, frequency`` of a run."""
    outcome = run(graph, SpeakerListener(options.max_iter), options)
    return results().cover(outcome, int(max_labels), float(threshold))
