"""The variants of label propagation as programs: classic, layered, speaker-listener, seeded.

Each is an ordinary `Program`, written as a user would write one (GLP, SIGMOD'21, section 3.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.compressed.csr import heaviest
from glp_rapids.device import module_on
from glp_rapids.propagation.program import Program
from glp_rapids.propagation.scalar import random_below

if TYPE_CHECKING:
    from glp_rapids.graph import Graph


class Classic(Program):
    """The label with the most votes among the neighbours wins (Raghavan et al. 2007)."""

    skip_inactive = True


class Layered(Program):
    """Votes count gamma + 1, what the label has elsewhere costs gamma (Boldi et al. 2011, eq. 1).

    A vertex is taken out of its own label before it is scored: otherwise its own presence speaks
    against staying, and everybody leaves.
    """

    count_volumes = True

    def __init__(self, gamma: float):
        self.gamma = float(gamma)

    def initial_state(self, graph: Graph) -> Mapping[str, Any]:
        """Give gamma."""
        return {"gamma": self.gamma}

    @staticmethod
    def label_score(v, label, freq, state):
        """Score a label by the votes inside the neighbourhood less gamma times those outside."""
        others = state.volume[label]
        if state.labels[v] == label:
            others -= 1
        return freq - state.gamma * (others - freq)


class SpeakerListener(Program):
    """Every vertex remembers what it heard, and says a label drawn from that (Xie et al. 2011).

    The memory is the list of all labels heard, so a draw in proportion to frequency is one read
    at a random place, and remembering is one write.
    """

    def __init__(self, sweeps: int):
        self.sweeps = int(sweeps)

    def initial_state(self, graph: Graph) -> Mapping[str, Any]:
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


class Seeded(Program):
    """Seeds keep their labels, and what they say weakens on its way (Zhou et al. 2004).

    What u says is its strength over the root of the weight of all edges that carry it; the
    strength that v takes from the winning label is the damped sum of what it hears, over the root
    of the weight of all edges that it hears over.
    """

    result_columns = ("strength", "hop")

    def __init__(
        self, labels: Any, heard_weight: Any, said_weight: Any, damping: float, max_hops: int,
        sweeps: int,
    ):
        self.labels, self.heard_weight, self.said_weight = labels, heard_weight, said_weight
        self.damping, self.max_hops, self.sweeps = float(damping), int(max_hops), int(sweeps)

    def initial_state(self, graph: Graph) -> Mapping[str, Any]:
        """Give the seeds strength 1 and hop 0, and silence to everyone else."""
        xp = module_on(graph.device)
        is_seed = self.labels >= 0
        # A weight of 0 has nothing to divide: who hears or says nothing has no use for a norm.
        heard_norm = xp.sqrt(xp.where(self.heard_weight > 0, self.heard_weight, 1.0))
        said_norm = xp.sqrt(xp.where(self.said_weight > 0, self.said_weight, 1.0))
        # The normalized matrix has norm 1, so the strengths stay below a geometric series.
        growth = self.sweeps + 1.0
        if self.damping < 1:
            growth = min(growth, 1 / (1 - self.damping))
        strongest = np.sqrt(float(is_seed.sum())) * growth
        loudest = strongest / (float(said_norm.min()) if said_norm.size else 1.0)
        self.largest_amount = max(2 * heaviest(graph.weights) * loudest, np.finfo(np.float64).tiny)
        return {
            "labels": self.labels,
            "heard_norm": heard_norm,
            "said_norm": said_norm,
            "spoken": xp.where(is_seed, 1.0 / said_norm, 0.0),
            "strength": is_seed.astype(np.float64),
            "hop": xp.where(is_seed, 0, -1).astype(np.int32),
            "damping": self.damping,
            "max_hops": self.max_hops,
        }

    @staticmethod
    def load_neighbor(v, u, weight, state):
        """Hear the neighbour's label, as loud as the edge is heavy and the neighbour is strong."""
        if u == v:  # a self-loop is no evidence
            return -1, 0.0
        return state.labels[u], weight * state.spoken[u]

    @staticmethod
    def update_vertex(v, label, score, state):
        """Take the label and the strength, unless v is a seed or too far away."""
        if state.hop[v] == 0 or (state.hop[v] < 0 and state.sweep > state.max_hops):
            return
        if state.hop[v] < 0:
            state.hop[v] = state.sweep
        state.labels[v] = label
        strength = state.damping * score / state.heard_norm[v]
        state.strength[v] = strength
        state.spoken[v] = strength / state.said_norm[v]
