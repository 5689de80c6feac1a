"""The variants of label propagation as programs: classic, layered, speaker-listener, seeded.

Each is an ordinary `Program`, written as a user would write one (GLP, SIGMOD'21, section 3.2).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.common.hashing import random_below
from glp_rapids.device import device_of, module_on
from glp_rapids.propagation.program import Program

if TYPE_CHECKING:
    from glp_rapids.graph.graph import Graph


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
    Every vertex hears in a unit of its own, a power of two above the most that it can ever hear,
    so that 61 bits are left to what is faint there.
    """

    result_columns = ("strength", "hop")
    largest_amount = _largest_sum = 1.0 + 2.0**-20  # in units; rounding may exceed 1

    def __init__(
        self,
        labels: Any,
        heard_weight: Any,
        said_weight: Any,
        damping: float,
        max_hops: int,
        steps: int,
    ):
        self.labels, self.heard_weight, self.said_weight = labels, heard_weight, said_weight
        self.damping, self.max_hops, self.steps = float(damping), int(max_hops), int(steps)

    def initial_state(self, graph: Graph) -> Mapping[str, Any]:
        """Give the seeds strength 1 and hop 0, and silence to everyone else."""
        xp = module_on(graph.device)
        is_seed = self.labels >= 0
        # A weight of 0 has nothing to divide: who hears or says nothing has no use for a norm.
        heard_norm = xp.sqrt(xp.where(self.heard_weight > 0, self.heard_weight, 1.0))
        said_norm = xp.sqrt(xp.where(self.said_weight > 0, self.said_weight, 1.0))
        exponent = xp.frexp(self._most(is_seed, heard_norm, said_norm, graph.directed))[1]
        return {
            "labels": self.labels,
            "gain": xp.ldexp(1.0 / heard_norm, -exponent),
            "unit": xp.ldexp(xp.ones(heard_norm.size), exponent),
            "said_norm": said_norm,
            "spoken": xp.where(is_seed, 1.0 / said_norm, 0.0),
            "strength": is_seed.astype(np.float64),
            "hop": xp.where(is_seed, 0, -1).astype(np.int32),
            "damping": self.damping,
            "max_hops": self.max_hops,
        }

    def _most(self, is_seed: Any, heard_norm: Any, said_norm: Any, directed: bool) -> Any:
        """Bound what each vertex can hear, whatever the weights are and whoever is updated first.

        The normalized matrix has norm 1, so all strengths together stay below a geometric series.
        If it is symmetric, strength over norm is a weighted mean of that of the neighbours, and no
        larger than at the seeds.
        """
        xp = module_on(device_of(is_seed))
        growth = self.steps + 1.0
        if self.damping < 1:
            growth = min(growth, 1 / (1 - self.damping))
        most = xp.full(is_seed.size, np.sqrt(max(float(is_seed.sum()), 1.0)) * growth)
        heard = is_seed & (self.said_weight > 0)
        if not directed and bool(heard.any()):
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
