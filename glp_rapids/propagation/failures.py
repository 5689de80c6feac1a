"""What a program's functions got wrong while they ran: how kernels note it, and what is said.

Kernels keep two words. The first is 0 until something goes wrong. The second tells what did: the
smallest vertex and the first of the failures there, so that every engine says the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from glp_rapids.device import module_on
from glp_rapids.propagation.program import Program, Traits

AMOUNT, HEARD, SAID = 0, 1, 2
WORDS = 2
LOWEST = -(1 << 31)  # below 0 are labels of silence, as far down as 32 bits go
_LOW, _BASE = 2, 1 << 62


def failure(vertex, kind):
    """Return the second word, negative: it ascends with the vertex, then with the kind."""
    return ((np.int64(vertex) << 2) | np.int64(kind)) - np.int64(1 << 62)


def explain_failure(
    word: int, program: Program, traits: Traits, graph: Any, largest_amount: float, sweep: int
) -> str:
    """Return the message of a failure: what went wrong where, and how to mend it."""
    place, kind = word + _BASE >> _LOW, word & (1 << _LOW) - 1
    columns = graph.vertices.take(module_on(graph.device).asarray([place]), kind="pandas")
    vertex = tuple(ids.tolist()[0] for ids in columns.values())
    where = f"in sweep {sweep}, at vertex {vertex if len(vertex) > 1 else vertex[0]!r}"
    name, labels = type(program).__name__, graph.number_of_vertices - 1
    if kind == AMOUNT and traits.real_amounts:
        return (
            f"{name}.load_neighbor returned an amount that is not a number or exceeds "
            f"{largest_amount:g} {where}; set `largest_amount` on the program if amounts may be "
            "that large"
        )
    if kind == AMOUNT:
        return (
            f"{name}.load_neighbor returned an amount that exceeds {largest_amount:g} {where}: "
            "votes could add up to more than 64 bits hold; return less, or real numbers"
        )
    if kind == HEARD:
        said = "load_neighbor returned"
    elif traits.default_pick:
        said = "update_vertex wrote"
    else:
        said = "pick_label returned"
    return (
        f"{name}.{said} a label that is no vertex {where}; labels are indices of vertices, 0 to "
        f"{labels}, or negative for silence"
    )
