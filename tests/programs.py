"""Programs that label propagation is tested with, on plain and on compressed graphs."""

from functools import partial

import numpy as np

import glp_rapids
from glp_rapids.device import to_device


class Counting(glp_rapids.Program):
    """Counts how often a vertex was updated, so that one evaluation too many shows."""

    skip_inactive = True
    result_columns = ("updates",)

    def initial_state(self, graph):
        return {"updates": 0 * graph.degree}

    @staticmethod
    def load_neighbor(v, u, weight, state):
        return (-1 if u % 7 == 3 else state.labels[u]), 0.5 * weight

    @staticmethod
    def update_vertex(v, label, score, state):
        state.updates[v] += 1
        state.labels[v] = label


class Distances(glp_rapids.Program):
    """Hears those with near numbers loudest; no vertex may be taken for a neighbour of its own."""

    @staticmethod
    def load_neighbor(v, u, weight, state):
        return state.labels[u], 1.0 / abs(u - v)


def seeded(graph, **options):
    first = np.arange(min(3, graph.number_of_vertices))
    seeds = graph.frame({"label": first % 2}, vertex=to_device(first, graph.device))
    return glp_rapids.seeded_label_propagation(graph, seeds, **options)


PROGRAMS = {
    "classic": glp_rapids.label_propagation,
    "synchronous": partial(glp_rapids.label_propagation, update="sync", explore=2, tie_break="max"),
    "layered": partial(glp_rapids.layered_label_propagation, gammas=[0.5, 8]),
    "ordering": partial(glp_rapids.layered_label_propagation, order=True, gammas=[0, 1]),
    "speakers": glp_rapids.speaker_listener,
    "seeded": seeded,
    "counting": partial(glp_rapids.propagate, program=Counting()),
}
