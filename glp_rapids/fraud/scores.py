"""How suspicious accounts are: how strongly a blacklist reaches each through transactions."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np
import pandas as pd

from glp_rapids.common.calls import guarded, warn_caller
from glp_rapids.common.checks import check_integer, check_share
from glp_rapids.common.progress import Progress, Report
from glp_rapids.common.sizes import as_bytes
from glp_rapids.device import any_true, memory_in_use, module_on, to_device
from glp_rapids.frames import kinds
from glp_rapids.frames.facts import set_attributes
from glp_rapids.frames.kinds import Frame
from glp_rapids.fraud.known import Known, known_accounts
from glp_rapids.fraud.placing import prepared, telling, told_of, where_it_fits
from glp_rapids.fraud.score_state import ScoreState
from glp_rapids.fraud.system import Fixed
from glp_rapids.fraud.tables import Table
from glp_rapids.graph.graph import Graph
from glp_rapids.ingest.options import EdgeOptions
from glp_rapids.jit.interrupts import interruptible

Array = Any
A_KIND = 60  # bytes a vertex that each further kind of seeds takes


class Rule(NamedTuple):
    """What makes scores of a graph and a blacklist; checked."""

    damping: float
    tol: float
    max_iter: int


@guarded
def account_scores(
    graph: Any,
    seeds: Any,
    *,
    damping: float = 0.85,
    tol: float = 1e-4,
    max_iter: int = 1000,
    good: Any = None,
    hubs: int | None = None,
    previous: Frame | None = None,
    absent: str = "raise",
    memory_limit: int | str | None = None,
    progress: Progress = False,
    **edges: Unpack[EdgeOptions],
) -> Frame:
    """Score every account by how strongly a blacklist reaches it through transactions.

    Parameters
    ----------
    graph : SlidingWindow, or whatever `as_graph` takes, with its keywords
        An edge weighs the number of its transactions, unless ``weight=`` names a column. The
        graph must be undirected.
    seeds : list, array or Series of ids, or dict
        The blacklist; a frame of the id columns if ids have several. A dict of id to kind (all
        strings, or all integers) is several blacklists in one, whose scores are kept apart.
    damping
        What is left of a score at each step away from the seeds, above 0 and at most 1.
    tol
        How far the score of an account may be off the exact one that trades no more than accounts
        do on average (those that are neither seeds, good nor hubs), above 0 and at most 1. Those of
        larger ones may be off by as much more as the root of what they trade is larger, as scores
        themselves may be: with a million times the average, by 1000 ``tol``.
    max_iter
        How many rounds are made at the most; a warning says when that was too few for ``tol``.
    good : list, array or Series of ids, optional
        Accounts known to be honest: their score is 0, and nothing reaches others through them.
    hubs : int, optional
        The same of accounts with more than so many partners, such as payment providers, unless
        they are seeds. None: there is no such limit.
    previous : frame, optional
        An earlier result, of a slightly different graph or blacklist: whence to start. What comes
        out is as near the exact scores, so within twice that of what it would be without.
        Accounts may have come and gone. Needs a ``damping`` below 1.
    absent : {"raise", "drop"}
        What becomes of seeds that are no vertex: an error, or nothing, with a warning if no seed is
        left. Seeds of another type than the vertices are an error in any case.
    memory_limit : int or str, optional
        Bytes, or a text such as "8GB", that the call may take where the graph is, the graph
        included, a window not. What may take more on a GPU is done in host memory instead, with the
        same result; on a CPU it is refused before it begins. None: what is free.
    progress : bool or callable
        Show a bar, or call the function with a dict every few rounds and after every sweep:
        ``step`` ("scores"), ``round``, the entries ``pushed`` and the ``error`` so far, with kinds
        also the ``kind``. While the graph is read in chunks the dicts are those of `as_graph`.

    Returns
    -------
    frame
        ``vertex``; ``score``: 1 for seeds, 0 where they do not reach (with ``previous``, at most
        what it may be off) and where, more than a step away, it would be less than it may be off,
        in between for all others (above 1 only where many seeds meet); ``is_seed``. With kinds also
        ``kind``, that whose part is the largest (null where all are 0, the first in their order if
        several are), and a column ``score_<kind>`` for each: the part of the score that its seeds
        make; parts add up. Every vertex once, sorted by id. ``.attrs["glp"]``: ``damping``,
        ``sweeps``, rounds that were made, ``pushed``, entries that they read, ``error``, how far
        scores may be off of accounts that trade ``mean_weight``, the average, or less (infinite if
        ``damping`` is 1), ``converged``, whether that is as near as was asked, ``seeds`` and
        ``good``, how many vertices are known (hubs among the good), ``absent``, how many ids of the
        blacklist are no vertex, ``device``, ``seconds``, ``peak_memory``.

    Raises
    ------
    ValueError
        The window is empty, the graph directed, a seed is no vertex or both bad and good, an option
        out of range, or ``previous`` holds a vertex twice or a score that is none.
    TypeError
        A type is not as described.
    MemoryError
        On the CPU it may take more than ``memory_limit``, or than is free; it says by how much.

    Notes
    -----
    The rule is that of Zhou et al., Learning with Local and Global Consistency (NIPS 2003), section
    2, with clamped seeds: a score is the damped sum, over the neighbours, of their scores times
    ``w / sqrt(d d')``, w being the weight of the edge and d, d' what the edges of either end
    weigh, self-loops left out. Scores are the fixed point of that rule, as near as ``tol`` says.
    They are found in 64-bit integers by pushing residuals and, where these are everywhere, by
    Chebyshev's method: bit-identical in any order of rows, on any number of threads. For each
    kind that reads as many entries as 9 to 12 sweeps of O(edges), with ``previous`` as many fewer
    as less has changed, in more rounds, as pushes read few; 116 bytes a vertex (on a GPU: 140, and
    44 an entry whose weight is no integer), and at most 60 for each kind after the first. A GPU
    that has too little memory leaves it to the CPU, where scores are the same; ``device`` says
    which it was. A compressed graph is decompressed for it.
    With a fifth of the fraudsters as seeds, means of ten draws, in the AMLSim sets cycle200 and
    fanin200cycle200 (4.7% and 9% of the accounts are fraud): of the 200 highest scored other
    accounts 82% and 94% are fraud (personalised PageRank on the same weights: 75% and 85%); average
    precision .41 and .45 (.38 and .44); AUC .85 and .83, where PageRank has more, .87 and .85. For
    AUC counts what is far from all seeds, and there fraudsters have more transactions than others:
    their number alone has .83 and .82, and PageRank multiplies by it. So does a ``damping`` near 1,
    in the end: .94 is above PageRank in all three, with 80% and 88%, .405 and .457, .872 and .851.
    Best is both, one after the other: the 600 highest of .85, then all others by the scores of .94,
    have 82% and 94%, .43 and .48, .872 and .851.

    Examples
    --------
    >>> import pandas as pd
    >>> from glp_rapids.fraud import account_scores
    >>> transfers = pd.DataFrame({"src": ["a", "a", "b"], "dst": ["b", "b", "c"]})
    >>> account_scores(transfers, ["a"])["score"].round(2).tolist()
    [1.0, 0.91, 0.45]
    """
    rule, limit = checked(damping, tol, max_iter), as_bytes("memory_limit", memory_limit)
    with telling(progress, "account_scores") as tell:
        transfers = prepared(graph, edges, "account_scores", limit, more_of(seeds), tell)
        known = known_accounts(transfers.graph, seeds, good, absent, hubs)
        return where_it_fits(
            transfers,
            lambda there: score_frame(there.graph, known.to(there.graph), rule, previous, tell),
        )


def checked(damping: Any, tol: Any, max_iter: Any) -> Rule:
    """Return the numbers that make scores, or raise."""
    check_share("damping", damping, "above 0 and at most 1", zero=False)
    check_share("tol", tol, "above 0 and at most 1", zero=False)
    check_integer("max_iter", max_iter, 0)
    return Rule(float(damping), float(tol), min(int(max_iter), 1 << 62))


def more_of(seeds: Any) -> int:
    """Count the bytes of a vertex that seeds of several kinds take besides."""
    different = {str(kind) for kind in seeds.values()} if isinstance(seeds, dict) else ()
    return A_KIND * max(len(different) - 1, 0)


def score_frame(
    graph: Graph, known: Known, rule: Rule, previous: Any = None, tell: Report | None = None
) -> Frame:
    """Score the accounts of a graph by those that are known."""
    begin = time.perf_counter()
    xp = module_on(graph.device)
    is_seed = xp.zeros(graph.number_of_vertices, dtype=bool)
    is_seed[known.fixed.seeds] = True
    if known.kinds is None:
        start = _earlier(graph, previous, rule, "score")
        states = [solved(graph, known.fixed, rule, start, tell)]
        columns = {"score": states[0].scores, "is_seed": is_seed}
    else:
        states = _of_kinds(graph, known, rule, previous, tell)
        columns = {"score": xp.zeros(graph.number_of_vertices), "is_seed": is_seed}
        columns |= _kind_columns(graph, known.kinds, states)
        for state in states:
            columns["score"] += state.scores
    facts = {
        "damping": rule.damping,
        "sweeps": sum(state.effort.rounds for state in states),
        "pushed": sum(state.effort.entries for state in states),
        **how_far_off(states),
        "converged": all(_as_asked(state, rule) for state in states),
        "seeds": int(known.fixed.seeds.size),
        "good": int(known.fixed.good.size),
        "absent": known.absent,
        "device": graph.device,
        "seconds": time.perf_counter() - begin,
        "peak_memory": memory_in_use(graph.device),
    }
    return set_attributes(graph.frame(columns), facts)


def how_far_off(states: Sequence[ScoreState]) -> dict[str, float]:
    """Say how far the scores may be off that states add up to, and what the mean trades."""
    return {
        "error": sum(state.error for state in states),
        "mean_weight": min((state.system.mean for state in states), default=0.0),
    }


def _of_kinds(
    graph: Graph, known: Known, rule: Rule, previous: Any, tell: Report | None
) -> list[ScoreState]:
    """Solve for the part of every kind: its own seeds at 1, those of others at 0.

    The equation is linear, so the parts add up to the scores of all seeds together.
    """
    seeds, good = known.fixed
    xp = module_on(graph.device)
    share = rule._replace(tol=rule.tol / max(len(known.kinds), 1))
    states = []
    for name, own in known.kinds.items():
        others = seeds[~xp.isin(seeds, own)]
        start = _earlier(graph, previous, rule, f"score_{name}")
        fixed = Fixed(own, xp.concatenate([good, others]))
        states.append(solved(graph, fixed, share, start, told_of(tell, kind=name)))
    return states


def _kind_columns(graph: Graph, names: dict[Any, Array], states: list[ScoreState]) -> dict:
    """Make the columns of the strongest kind, null where there is none, and of each kind's part."""
    xp = module_on(graph.device)
    if not names:
        return {}
    parts = [state.scores for state in states]
    strongest = xp.argmax(xp.stack(parts), axis=0)
    kind = graph.vertices.kind
    values = kinds.taken(kinds.to_series(pd.Series(list(names)), kind), strongest)
    columns = {"kind": kinds.null_where(xp.max(xp.stack(parts), axis=0) == 0, values, kind)}
    return columns | {f"score_{name}": part for name, part in zip(names, parts, strict=True)}


def solved(
    graph: Graph, fixed: Fixed, rule: Rule, start: Array | None = None, tell: Report | None = None
) -> ScoreState:
    """Solve for scores, and warn where they are not as near the exact ones as was asked."""
    # who is told of rounds is called by the caller's thread, which notices signals between them
    solve = interruptible(ScoreState, graph.device) if tell is None else ScoreState
    state = solve(graph, fixed, *rule, start, tell)
    _warn(state, rule)
    return state


def _as_asked(state: ScoreState, rule: Rule) -> bool:
    """Tell whether scores are as near the exact ones as was asked, where that can be said."""
    return state.converged and (rule.damping == 1 or state.error <= rule.tol)


def _warn(state: ScoreState, rule: Rule) -> None:
    """Warn where scores are not as near the exact ones as was asked."""
    if not state.converged:
        warn_caller(
            f"scores are within {state.error:.1e} and not {rule.tol:g} of the exact ones, of "
            "accounts that trade no more than the average, after "
            f"max_iter={rule.max_iter} rounds; raise max_iter, or tol"
        )
    elif not _as_asked(state, rule):
        warn_caller(
            f"scores are within {state.error:.1e} and not {rule.tol:g} of the exact ones, of "
            "accounts that trade no more than the average: with such weights and damping, 64 bits "
            "give no more; raise tol"
        )


def _earlier(graph: Graph, previous: Any, rule: Rule, column: str) -> Array | None:
    """Return the scores that an earlier result gives to the vertices; 0 for those it lacks."""
    if previous is None:
        return None
    if rule.damping == 1:
        raise ValueError("previous needs a damping below 1: else nothing that is wrong would fade")
    names, device = graph.vertices.names(), graph.device
    table = Table(previous, "previous", column, keys=names, device=device)
    index, score = table.places(graph.vertices), table.numbers(column)
    if any_true(~((score >= 0) & (score < np.inf))):
        raise ValueError("previous holds scores that are null, infinite or negative; drop the rows")
    start = module_on(device).zeros(graph.number_of_vertices + 1)  # the last is of -1
    start[index] = score
    return start[:-1]


def column(frame: Frame, name: str, graph: Graph) -> Array:
    """Return a column of a result as an array where the graph lives."""
    values = kinds.without_proxy(frame)[0][name]
    return to_device(kinds.to_array(values), graph.device)
