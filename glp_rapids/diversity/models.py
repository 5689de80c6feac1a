"""The three models of a social context, and the fewest members of one: hence an upper bound.

Contexts of one ego-network have no member in common, so there are at most as many as its members
are enough for. Tighter bounds were tried and lost: members who know at least as many others as one
in a context must (common neighbours of every edge), members in the core of the whole graph that
holds every context, edges enough. With com-dblp and a made-up social network of 200,000, the 100
best and k = 4, they leave 0.28 to 0.71 of all work instead of 0.37 to 0.76, and take a third of the
time of all work themselves, or, cores, gain half of that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from glp_rapids.common.checks import check_choice


@dataclass(frozen=True)
class Model:
    """The least k that makes sense, and the fewest members of a context for k."""

    least_k: int
    fewest_members: Callable[[int], int]


MODELS: dict[str, Model] = {
    "component": Model(1, lambda k: k),  # connected components of at least k members
    "core": Model(1, lambda k: k + 1),  # connected k-cores, the smallest a clique of k + 1
    "truss": Model(2, lambda k: k),  # connected k-trusses, the smallest a clique of k
}


def model_of(name: Any) -> Model:
    """Look a model up by its name, or say which there are."""
    check_choice("model", name, MODELS)
    return MODELS[name]
