"""Labels spread from seeds (Zhou et al., NIPS 2003, the winner taking all)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Unpack

import numpy as np

from glp_rapids.common.calls import guarded, warn_caller
from glp_rapids.common.checks import check_choice, check_integer, check_share
from glp_rapids.common.scans import number_where
from glp_rapids.common.types import Frame
from glp_rapids.device import any_true, device_of, module_on
from glp_rapids.propagation.call import prepare, refuse, refuse_warm, results
from glp_rapids.propagation.options import Direction, Options, SweepOptions
from glp_rapids.propagation.program import Program
from glp_rapids.propagation.run import Run, run

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph


class Seeded(Program):
    """Seeds keep their labels, and what they say weakens on its way (Zhou et al. 2004).

    What u says is its strength over the root of the weight of all edges that carry it; the
    strength that v takes from the winning label is the damped sum of what it hears, over the root
    of the weight of all edges that it hears over.
    Every vertex hears in a unit of its own, a power of two above the most that it can ever hear,
    so that 61 bits are left to what is faint there.
    """

    result_columns = ("strength", "hop")
    largest_amount = _largest_sum = 1.0 + 2.0**-20  # in units; rounding may exceed 1

    _gives_state = _asks_for_readers = all_sweeps = True

    def __init__(
        self, labels: Any, direction: Direction, damping: float, max_hops: int, steps: int
    ):
        self.labels, self.direction = labels, direction
        self.damping, self.max_hops, self.steps = float(damping), int(max_hops), int(steps)

    def _bytes_a_vertex(self, index_dtype: Any) -> int:
        return 5 * 8 + 4

    def initial_state(self, graph: BaseGraph) -> Mapping[str, Any]:
        """Return a state where seeds have strength 1 and hop 0, and all others are silent."""
        xp = module_on(graph.device)
        rows, readers = graph.rows(self.direction), graph.readers(self.direction)
        is_seed = self.labels >= 0
        heard = rows.row_weights()
        said = heard if readers is rows else readers.row_weights()
        spoken = said > 0
        # Where nothing is heard, or said, the norm is never used; 1 avoids a division by 0.
        heard_norm = xp.sqrt(xp.where(heard > 0, heard, 1.0))
        said_norm = heard_norm if said is heard else xp.sqrt(xp.where(spoken, said, 1.0))
        del heard, said
        most = self._most(is_seed, heard_norm, said_norm, spoken, graph.directed)
        exponent = xp.frexp(most)[1]
        del most, spoken
        gain = 1.0 / heard_norm
        del heard_norm
        # No unit is so small that the gain were infinite: what is fainter still rounds to 0.
        exponent = xp.maximum(exponent, xp.frexp(gain)[1] - 1024)
        gain = xp.ldexp(gain, -exponent)
        return {
            "labels": self.labels,
            "gain": gain,
            "unit": xp.ldexp(xp.ones(said_norm.size), exponent),
            "said_norm": said_norm,
            "spoken": xp.where(is_seed, 1.0 / said_norm, 0.0),
            "strength": is_seed.astype(np.float64),
            "hop": xp.where(is_seed, 0, -1).astype(np.int32),
            "damping": self.damping,
            "max_hops": self.max_hops,
        }

    def _most(
        self, is_seed: Any, heard_norm: Any, said_norm: Any, spoken: Any, directed: bool
    ) -> Any:
        """Bound what each vertex can hear, whatever the weights and the order of updates.

        The normalized matrix has norm 1, so all strengths together stay below a geometric series.
        If it is symmetric, strength over norm is a weighted mean of that of the neighbours, and no
        larger than at the seeds.
        """
        xp = module_on(device_of(is_seed))
        growth = self.steps + 1.0
        if self.damping < 1:
            growth = min(growth, 1 / (1 - self.damping))
        most = xp.full(is_seed.size, np.sqrt(max(float(number_where(is_seed)), 1.0)) * growth)
        heard = is_seed & spoken
        if not directed and any_true(heard):
            most = xp.minimum(most, heard_norm / said_norm[heard].min())
        return most

    @staticmethod
    def load_neighbor(v, u, weight, state):
        """Hear the neighbour's label, as loud as the edge is heavy and the neighbour is strong."""
        if u == v:  # a self-loop is no evidence
            return -1, 0.0
        return state.labels[u], weight * state.spoken[u] * state.gain[v]

    @staticmethod
    def update_vertex(v, label, score, state):
        """Take the label and the strength, unless v is a seed or too far away."""
        if state.hop[v] == 0 or (state.hop[v] < 0 and state.sweep > state.max_hops):
            return
        if state.hop[v] < 0:
            state.hop[v] = state.sweep
        state.labels[v] = label
        strength = state.damping * score * state.unit[v]
        state.strength[v] = strength
        state.spoken[v] = strength / state.said_norm[v]


@guarded
def seeded_label_propagation(
    graph: Any,
    seeds: Any,
    *,
    max_hops: int | None = None,
    damping: float = 0.85,
    max_iter: int = 10,
    absent: Literal["raise", "drop"] = "raise",
    **options: Unpack[SweepOptions],
) -> Frame:
    """Spread the labels of a few known vertices: who is close to which of them, and how strongly.

    Parameters
    ----------
    graph : frame, tuple of arrays, sparse matrix, networkx, cugraph or glp_rapids graph
        Whatever `as_graph` takes, with its keywords.
    seeds : frame, dict, or list, array or Series of ids
        A frame with the columns ``vertex`` (``0_vertex``, ... for ids of several columns) and
        ``label``, whose others are not looked at; a dict of id to label; or ids alone, which then
        all carry the label 1.
    max_hops : int, optional
        Vertices farther than this from every seed stay without a label; goes with the default
        ``update`` alone. None: no limit but ``max_iter``.
    damping : float
        What is left of the strength at each hop, above 0 and at most 1.
    max_iter : int
        How many sweeps are made, and so how many hops a label can get (with ``update="semi"``
        several a sweep). The order of strengths has
        all but settled after ten; what they lack then falls by ``damping`` a sweep, to about a
        thousandth of each after 50. With less than ``max_hops`` there is a warning.
    absent : {"raise", "drop"}
        What becomes of seeds that are no vertex: an error by default, or they are left out.
    **options
        ``update`` (default "sync", by which ``hop`` is the distance from the nearest seed),
        ``classes``, ``tie_break``, ``retain``, ``direction``, ``seed``, ``memory_limit``,
        ``way``, ``devices``, ``progress`` as in `label_propagation`.

    Returns
    -------
    frame
        ``vertex``; ``label``, null where no label came; ``score``: 1 for seeds, 0 where no label
        came, in between the strength of the label there (it passes 1 only where many seeds meet);
        ``hop``: the sweep in which the first label came, 0 for seeds, null where none came.
        ``.attrs["glp"]`` as in `label_propagation` (``converged`` is about labels), and ``seeds``:
        how many vertices are seeds, ``absent``: how many seeds were no vertex.

    Raises
    ------
    ValueError, TypeError
        A seed is no vertex, is null or carries two labels, or as in `label_propagation`.

    Notes
    -----
    Unlabelled vertices are silent, seeds never change. Vertex u with strength s and weight d (the
    sum of the edges that carry what it says, self-loops left out) gives ``w * s / sqrt(d)`` to a
    neighbour over an edge of weight w; the label with the largest sum wins there, and its strength
    is the damped sum over the root of the weight that the neighbour hears over (Zhou et al., NIPS
    2003, the winner taking all).
    Weights are added exactly, and of integers beyond 64 bits too. Votes are fixed point in a unit
    of each vertex: in an undirected graph a score is off by at most
    ``2**-61 / (1 - damping) * k * sqrt(d / least)``, k being the largest degree, d the weight of
    the vertex, least that of the lightest seed; and by 1e-13 of itself. A label that comes from
    afar over edges that are light among heavy ones can so have a score that rounds to 0.
    There is no warm start (``initial=`` is refused): labels would stay that came over edges which
    are gone since, as a vertex keeps its label where it hears none.
    O(m) time a sweep, 48 bytes a vertex more than `label_propagation`.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import seeded_label_propagation
    >>> edges = pd.DataFrame({"src": ["a", "b", "c"], "dst": ["b", "c", "d"]})
    >>> seeded_label_propagation(edges, {"a": "red", "d": "blue"})["label"].tolist()
    ['red', 'red', 'blue', 'blue']
    """
    check(options, max_hops, damping, max_iter, absent)
    prepared, run_options = prepare(graph, options, **DEFAULTS)
    return spread(prepared, run_options, run, seeds, max_hops, damping, absent)


DEFAULTS = {"explore": 0, "update": "sync"}


def check(
    options: SweepOptions, max_hops: int | None, damping: float, max_iter: int, absent: str
) -> None:
    """Raise if an option is out of range or has no meaning here; note the number of sweeps."""
    check_choice("absent", absent, ("raise", "drop"), "'raise' or 'drop'")
    if max_hops is not None:
        check_integer("max_hops", max_hops, 0, or_none=" or None")
        if options.get("update", DEFAULTS["update"]) != "sync":
            raise ValueError(
                f"max_hops={max_hops} counts sweeps, in which a label gets several hops far with "
                f"update={options['update']!r}; leave one of them out"
            )
    check_share("damping", damping, "above 0 and at most 1", zero=False)
    refuse_warm(
        options, "seeded_label_propagation",
        "a label that came over edges which are gone since would never leave, as it does from the "
        "seeds; begin from the seeds",
    )  # fmt: skip
    refuse(options, "seeded_label_propagation", "explore", "tol", "skip_inactive")
    options["max_iter"] = max_iter


def spread(
    graph: BaseGraph, options: Options, run: Run, seeds: Any, max_hops: int | None, damping: float,
    absent: str = "raise",
) -> Frame:  # fmt: skip
    """Return ``vertex, label, score, hop`` of a run from the seeds."""
    labels, names, lacking = results().seed_labels(graph, seeds, absent == "drop")
    # no label gets farther than there are sweeps
    max_iter = int(options.max_iter)
    reach = max_iter if max_hops is None else min(int(max_hops), max_iter)
    if max_hops is not None and max_iter < max_hops < graph.number_of_vertices:
        warn_caller(
            f"max_hops={max_hops} is more than max_iter={max_iter}, the sweeps: no label gets "
            f"further than {max_iter} hops; pass max_iter={max_hops}"
        )
    # whatever the order of updates, no label gets further in a class than by a step
    steps = max_iter * (options.classes if options.update == "semi" else 1)
    program = Seeded(labels, options.direction, damping, reach, steps)
    outcome = run(graph, program, options, held=labels.nbytes)
    return results().reached(outcome, names, lacking)
