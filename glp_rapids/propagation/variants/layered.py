"""Layered label propagation (Boldi, Rosa, Santini, Vigna, WWW 2011)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from glp_rapids.common.calls import guarded
from glp_rapids.common.checks import as_float, check_truth, is_number, is_sequence, shown
from glp_rapids.common.types import Frame
from glp_rapids.propagation.call import prepare, results, settling, warm
from glp_rapids.propagation.memory import budget_of
from glp_rapids.propagation.options import Options, SweepOptions
from glp_rapids.propagation.program import Program
from glp_rapids.propagation.run import Outcome, Run, run

if TYPE_CHECKING:
    from glp_rapids.graph.graph import BaseGraph
    from glp_rapids.propagation.warm_start import Start


# The layers of `layered_label_propagation` unless the caller says: to look at, and for an order.
GAMMAS = tuple(2**i for i in range(10))
ORDERING_GAMMAS = (0, *(2.0**-i for i in (11, 9, 7, 5, 3)))


class Layered(Program):
    """Votes count gamma + 1, what the label has elsewhere costs gamma (Boldi et al. 2011, eq. 1).

    A vertex is taken out of its own label before it is scored: otherwise its own presence would
    count against its label, and every vertex would leave its community.
    """

    count_volumes = True

    def __init__(self, gamma: float):
        self.gamma = float(gamma)

    def initial_state(self, graph: BaseGraph) -> Mapping[str, Any]:
        """Return gamma."""
        return {"gamma": self.gamma}

    @staticmethod
    def label_score(v, label, freq, state):
        """Score a label by the votes inside the neighbourhood less gamma times those outside."""
        others = state.volume[label]
        if state.labels[v] == label:
            others -= 1
        return freq - state.gamma * (others - freq)


@guarded
def layered_label_propagation(
    graph: Any,
    *,
    gammas: Sequence[float] = GAMMAS,
    order: bool = False,
    renumber: bool = True,
    initial: Any = None,
    touched: Any = None,
    **options: Unpack[SweepOptions],
) -> Frame:
    """Find communities at several resolutions, or the vertex ordering that they add up to.

    Large labels are charged for what they hold, so a larger gamma finds smaller communities.

    Parameters
    ----------
    graph : frame, tuple of arrays, sparse matrix, networkx, cugraph or glp_rapids graph
        Whatever `as_graph` takes, with its keywords.
    gammas : sequence of float
        The resolutions, each at least 0; one result a gamma. 0 is classic label propagation;
        the larger, the finer. Default: 1, 2, 4, ... 512; with ``order=True`` 0, 1/2048, 1/512,
        1/128, 1/32, 1/8, which compress best, in whatever order they are given.
    order : bool
        Return an ordering instead of communities: those of the coarsest of its layers (its own, in
        which classes never merge) side by side, in each those of the next finer one, and so on; by
        falling degree in the finest. Neighbours come to lie close together, so the graph compresses
        and its rows read nearby memory.
    renumber : bool
        As in `label_propagation`, which describes all further options; without a meaning, and
        refused if False, with ``order=True``.
    initial : frame, optional
        An earlier result, as in `label_propagation`. With a column ``gamma`` each layer goes on
        from its own, which must be there; without, all from the same. Refused with ``order=True``.
    touched : list, array, Series or frame of ids, optional
        As in `label_propagation`, but that everybody is evaluated: what a label is charged for what
        it holds elsewhere changes around everybody who has it.

    Returns
    -------
    frame
        ``vertex``, ``gamma``, ``partition``: every vertex once a gamma, in the order of
        ``gammas``. ``.attrs["glp"]["layers"]`` holds the report of each run, in whose
        ``predicted`` the layers before it count.
        With ``order=True``: ``vertex``, ``position``: every vertex once, sorted by its id, and its
        place 0..n-1 in the ordering.

    Raises
    ------
    ValueError, TypeError
        A gamma is negative or not a number, or as in `label_propagation`.
    MemoryError
        As in `label_propagation`; on a CPU also before the first layer if the last, for which the
        labels of all others are held, would not fit.

    Notes
    -----
    The score of a label with k votes around a vertex and v holders in the graph is
    ``k - gamma * (v - k)`` (Boldi, Rosa, Santini, Vigna, WWW 2011, section 4), where the scored
    vertex itself is not counted in v. Volumes count as they stand before each class. O(m) time a
    sweep and gamma. The ordering is that of section 5, from an order by degree instead of a random
    one; a directed graph is read in both directions unless ``direction`` says otherwise. A
    shuffled cnr-2000 takes 16.6 bits an entry, so ordered 3.6, in its published order 3.4.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids import layered_label_propagation
    >>> chain = pd.DataFrame({"src": range(8), "dst": range(1, 9)})
    >>> layers = layered_label_propagation(chain, gammas=[0, 64])
    >>> layers.groupby("gamma")["partition"].nunique().tolist()
    [1, 3]

    Two triangles whose members come in turn lie side by side:

    >>> edges = pd.DataFrame({"src": [0, 0, 2, 1, 1, 3], "dst": [2, 4, 4, 3, 5, 5]})
    >>> layered_label_propagation(edges, order=True)["position"].tolist()
    [0, 3, 1, 4, 2, 5]
    """
    check_truth(order=order, renumber=renumber)
    if order and not renumber:
        raise ValueError("renumber=False has no meaning with order=True; leave it out")
    if order and gammas is GAMMAS:
        gammas = ORDERING_GAMMAS
    gammas = checked_gammas(gammas)
    if order and (initial is not None or touched is not None):
        raise ValueError(
            "initial= and touched= have no meaning with order=True: an ordering is made of layers "
            "that each begin anew; leave them out"
        )
    if order:
        return _ordering(*prepare(graph, options, direction="both"), sorted(gammas, reverse=True))
    prepared, run_options = prepare(graph, options, **settling(initial))
    start = partial(warm, prepared, initial, touched)
    return layers(prepared, run_options, run, gammas, renumber, start)


def checked_gammas(gammas: Any) -> list[float]:
    """Return the resolutions as a list; raise if some are none."""
    if not is_sequence(gammas):
        raise TypeError(f"gammas must be a sequence of numbers, not {shown(gammas)}")
    gammas = list(gammas)
    for gamma in gammas:
        if not is_number(gamma):
            raise TypeError(f"gammas must be numbers, not {shown(gamma)}")
        if not 0 <= as_float(gamma) < np.inf:
            raise ValueError(f"gammas must be finite and at least 0, not {shown(gamma)}")
    for i, gamma in enumerate(gammas):
        if gamma in gammas[:i]:
            raise ValueError(f"gammas holds {shown(gamma)} twice, of which the layers are the same")
    return gammas


def layers(
    graph: BaseGraph, options: Options, run: Run, gammas: list[float], renumber: bool = True,
    start: Callable[..., Start | None] = lambda gamma: None, initial: Any = None,
) -> Frame:  # fmt: skip
    """Return ``vertex, gamma, partition`` of a run for each resolution.

    ``start``: where the run of a ``gamma=`` begins. ``initial``: on a rank, the rows that it has of
    a result to go on from, if any, in frames.
    """
    if initial is not None:
        from glp_rapids.propagation.rank_warm_start import start_on_rank

        start = partial(start_on_rank, graph, initial)
    outcomes: list[Outcome] = []
    a_layer = graph.number_of_vertices * graph.index_dtype.itemsize  # what its labels take
    for gamma in gammas:
        held = sum(outcome.labels.nbytes for outcome in outcomes)
        later = 0 if outcomes else a_layer * (len(gammas) - 1)
        outcome = run(graph, Layered(gamma), options, held, start(gamma=gamma), later)
        outcomes.append(replace(outcome, state={}))  # which takes more than the labels
        options = replace(options, warns=False)
    return results().layers(graph, gammas, outcomes, renumber)


def _ordering(graph: BaseGraph, run_options: Options, gammas: list[float]) -> Frame:
    """Order the vertices: every layer, the finest first, puts its communities together."""
    from glp_rapids.graph import vertex_order

    budget_of(graph, Layered(0), run_options)  # raises before rows of both directions are made
    vertices, reports = vertex_order.by_degree(graph.rows(run_options.direction)), []
    # With merged classes lists took 4% more bits in this order.
    run_options = replace(run_options, merges=False)
    for gamma in gammas:
        outcome = run(graph, Layered(gamma), run_options, held=vertices.nbytes)
        run_options = replace(run_options, warns=False)
        vertices = vertex_order.with_layer(vertices, outcome.labels)
        reports.append(outcome.report)
    place = vertex_order.positions(vertices, graph.index_dtype)
    return results().ordering(graph, gammas, place, reports)
