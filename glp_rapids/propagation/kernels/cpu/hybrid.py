"""The host's part of a class that it shares with a GPU: units from the rear, until both meet.

Positions are places in the order of the GPU's plan, by which it notes winners; the sweep of the CPU
notes them chunk by chunk, one after the other. Each thread takes units by itself. Positions here
count from the first one that the host may take.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cache import kept
from glp_rapids.jit.cpu import compiled as compiled_for_cpu
from glp_rapids.jit.parallel import ParallelKernel, together
from glp_rapids.jit.target import DigestCache
from glp_rapids.outofcore.both_ends import take_from_rear
from glp_rapids.propagation.compile_program import Compiled, built_once
from glp_rapids.propagation.kernels.cpu.hash_votes import CHUNK, chunks_of


class Outcome(NamedTuple):
    """What comes of each position, or is known of it before."""

    winner: Any  # its label, or -1
    score: Any  # empty where nobody asks for them
    slack: Any
    tied: Any


@compiled_for_cpu(error_model="numpy")
def _put_some(thread, threads, vertices, width, values, into):
    for i in range(vertices.size * thread // threads, vertices.size * (thread + 1) // threads):
        place = np.int64(vertices[np.uint64(i)]) * width
        for column in range(width):
            into[np.uint64(place + column)] = values[np.uint64(i * width + column)]


@ParallelKernel
def put(team, vertices, width, values, into):
    """Write the ``width`` values of each vertex to their place."""
    together(team, _put_some, (team.threads, vertices, width, values, into))


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


@built_once
def share_kernel(compiled: Compiled, stamped: bool) -> Callable:
    """Compile the evaluation of units for one program; ``stamped``: see `hash_votes.chunks_of`."""
    State = compiled.state_type
    evaluate_chunk, _, scratch_of = chunks_of(compiled, stamped)
    jit = compiled_for_cpu(error_model="numpy")

    @jit
    def begin(low, high, vertices, everybody, known, slack, tied):
        """Take over who is active."""
        for position in range(low, high):
            place, v = np.uint64(position), np.uint64(vertices[np.uint64(position)])
            if everybody:
                slack[v] = -1
            else:
                slack[v] = known.slack[place]
                tied[v] = known.tied[place]

    @jit
    def spread(low, high, behind, vertices, winners, slack, tied, outcome):
        """Write the outcome of each position to its place; winners are listed from low."""
        winner_vertex, winner_label, winner_score = winners
        listed, scored = low, outcome.score.size > 0
        for position in range(low, high):
            place, v = np.uint64(position), vertices[np.uint64(position)]
            outcome.winner[place] = -1
            if listed < behind and winner_vertex[np.uint64(listed)] == v:  # both in one order
                outcome.winner[place] = winner_label[np.uint64(listed)]
                if scored:
                    outcome.score[place] = winner_score[np.uint64(listed)]
                listed += 1
            outcome.slack[place] = slack[np.uint64(v)]
            outcome.tied[place] = tied[np.uint64(v)]

    @jit
    def evaluate_units(
        thread, word, units, vertices, starts, indices, weights, fields, flags, everybody, rule,
        tables, slack, tied, known, winners, outcome, errors,
    ):  # fmt: skip
        """Evaluate units for as long as one thread gets any."""
        state, scratch = State(*fields), scratch_of(tables, thread)
        skip, _ = flags
        unit = take_from_rear(word)
        while unit >= 0:
            first, last = units[unit + 1], units[unit]
            for low in range(first, last, CHUNK):
                high = min(low + CHUNK, last)
                if skip:
                    begin(low, high, vertices, everybody, known, slack, tied)
                number = evaluate_chunk(
                    low, high, vertices, starts, indices, weights, state, flags, rule, scratch,
                    slack, tied, winners, errors[thread],
                )  # fmt: skip
                spread(low, high, low + number, vertices, winners, slack, tied, outcome)
            unit = take_from_rear(word)

    def share(
        team, word, units, vertices, starts, indices, weights, fields, flags, everybody, rule,
        tables, slack, tied, known, winners, outcome, errors,
    ):  # fmt: skip
        together(team, evaluate_units, (
            word, units, vertices, starts, indices, weights, fields, flags, everybody, rule,
            tables, slack, tied, known, winners, outcome, errors,
        ))  # fmt: skip

    return ParallelKernel(share, partial(DigestCache.of, beside=compiled))
