"""Classic label propagation as a user would write it: word for word, and in other words."""

from __future__ import annotations

from glp_rapids import Program


class WordForWord(Program):
    """The classic, copied."""

    skip_inactive = True

    def pick_label(v, sweep, state):
        return state.labels[v]

    def load_neighbor(v, u, weight, state):
        return state.labels[u], weight

    def label_score(v, label, freq, state):
        return freq

    def update_vertex(v, label, score, state):
        state.labels[v] = label


class Reworded(Program):
    """The classic in other words, so that no engine can recognise it by its code."""

    skip_inactive = True

    def load_neighbor(v, u, weight, state):
        heard = state.labels[u]
        return heard, weight

    def label_score(v, label, freq, state):
        return freq if label >= 0 else 0

    def update_vertex(v, label, score, state):
        if state.labels[v] != label:
            state.labels[v] = label
