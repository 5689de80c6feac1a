"""What the host's cores do around their rows of a class, besides evaluating them.

Positions are places in the order of the GPU's plan, by which it notes winners; the sweep of the CPU
notes them chunk by chunk, one after the other.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled as compiled_for_cpu
from glp_rapids.jit.parallel import ParallelKernel, together


@compiled_for_cpu(error_model="numpy")
def _put_some(thread, threads, vertices, values, into):
    for i in range(vertices.size * thread // threads, vertices.size * (thread + 1) // threads):
        into[np.uint64(vertices[np.uint64(i)])] = values[np.uint64(i)]


@ParallelKernel
def put(team, vertices, values, into):
    """Write the value of each vertex to its place."""
    together(team, _put_some, (team.threads, vertices, values, into))


@kept(error_model="numpy")
def recount(vertices, labels, before, volume):
    """Move vertices from the volume of the label before to that of the label they have now."""
    for i in range(vertices.size):
        old, new = before[np.uint64(vertices[i])], labels[i]
        if old != new:
            if old >= 0:
                volume[np.uint64(old)] -= 1
            if new >= 0:
                volume[np.uint64(new)] += 1


@compiled_for_cpu(error_model="numpy")
def _spread_some(
    thread, threads, chunk, vertices, counts, winners, slack, tied, spread_labels, spread_scores,
    spread_slack, spread_tied,
):  # fmt: skip
    winner_vertex, winner_label, winner_score = winners
    chunks = (vertices.size + chunk - 1) // chunk
    scored = spread_scores.size > 0
    for number in range(thread, chunks, threads):
        low = number * chunk
        listed, behind = low, low + counts[number]
        for position in range(low, min(low + chunk, vertices.size)):
            place = np.uint64(position)
            v = vertices[place]
            spread_labels[place] = -1
            if listed < behind and winner_vertex[np.uint64(listed)] == v:  # both in one order
                spread_labels[place] = winner_label[np.uint64(listed)]
                if scored:
                    spread_scores[place] = winner_score[np.uint64(listed)]
                listed += 1
            spread_slack[place] = slack[np.uint64(v)]
            spread_tied[place] = tied[np.uint64(v)]


@ParallelKernel
def spread(
    team, chunk, vertices, counts, winners, slack, tied, spread_labels, spread_scores,
    spread_slack, spread_tied,
):  # fmt: skip
    """Write the outcome of each position to its place: its winner, or -1, slack, and ties.

    ``spread_scores`` is empty where nobody asks for them.
    """
    together(team, _spread_some, (
        team.threads, chunk, vertices, counts, winners, slack, tied, spread_labels, spread_scores,
        spread_slack, spread_tied,
    ))  # fmt: skip
