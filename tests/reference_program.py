"""A program in plain Python: its own functions, vertex after vertex, with every check spelt out."""

from types import SimpleNamespace

import numpy as np
import reference

from glp_rapids.propagation.program import functions_of

KINDS = AMOUNT, HEARD, SAID = "amount", "heard", "said"


class Failed(Exception):
    """What went wrong in which sweep, at the smallest vertex."""


def interpreted(
    program, graph, *, max_iter=20, explore=10, classes=32, update="semi", direction="in",
    retain=True, tie_break="min", seed=0, limit=None,
):  # fmt: skip
    """Run a program's own functions in plain Python: (state, changed labels of each sweep).

    ``limit``: the largest amount; None takes any.
    """
    rows = graph.rows(direction)
    n = graph.number_of_vertices
    weights = np.ones(rows.indices.size, int) if rows.weights is None else rows.weights
    pick, load, score_of, write = functions_of(program).values()
    given = {
        name: value.copy() if isinstance(value, np.ndarray) else value
        for name, value in {"labels": np.arange(n), **program.initial_state(graph)}.items()
    }
    state = SimpleNamespace(sweep=0, seed=seed, **given)
    failures = []

    def say(v):
        label = pick(v, state.sweep, state)
        if not -(2**31) <= label < n:
            failures.append((v, KINDS.index(SAID)))
            label = -1
        state.labels[v] = label

    def check():
        if failures:
            v, kind = min(failures)
            raise Failed(state.sweep, v, KINDS[kind])

    for v in range(n):
        say(v)
    check()
    words = [reference.id_word(identity) for identity in graph.vertices.take(None)["vertex"]]
    changed = []
    explored = None if explore else 0
    for state.sweep in range(1, max_iter + 1):
        exploring = explored is None
        turns = reference.turns_of(words, classes, update, changed, exploring)
        changed.append(0)
        for turn in turns:
            state.volume = np.bincount(state.labels[state.labels >= 0], minlength=n)
            best = {}
            for v in turn:
                votes = {}
                for j in range(int(rows.indptr[v]), int(rows.indptr[v + 1])):
                    label, amount = load(v, int(rows.indices[j]), weights[j].item(), state)
                    if limit is not None and not abs(amount) <= limit:
                        failures.append((v, KINDS.index(AMOUNT)))
                    elif label >= n:
                        failures.append((v, KINDS.index(HEARD)))
                    elif label >= 0:
                        votes[int(label)] = votes.get(int(label), 0) + amount
                scores = {label: score_of(v, label, votes[label], state) for label in votes}
                scores = {label: score for label, score in scores.items() if score == score}
                if scores:
                    label = reference.winner(
                        scores, state.labels[v], sweep=state.sweep, exploring=exploring,
                        tie_break=tie_break, retain=retain, seed=seed, words=words,
                    )  # fmt: skip
                    best[v] = label, scores[label]
            before = state.labels.copy()
            for v, (label, points) in best.items():
                write(v, label, points, state)
                say(v)
            changed[-1] += int((state.labels != before).sum())
        check()
        flooding = len(changed) > 1 and 25 * changed[-1] > 24 * changed[-2]
        if exploring and (state.sweep == explore or flooding or changed[-1] == 0):
            explored = state.sweep
        if not exploring and changed[-1] == 0:
            break
    return state, changed
