"""The first labels of a warm run on a GPU: two launches, and one look at what they have found."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.device import to_host
from glp_rapids.graph.id_search import FIND


class Found(NamedTuple):
    """Labels by vertex; the community of each, -2 for none; and whether there are some of a kind.

    ``beyond``: communities that are no such numbers; ``twice``: vertices that have two;
    ``silent``: communities of -1; ``new``: vertices that have none.
    """

    labels: Any
    held: Any
    beyond: bool
    twice: bool
    silent: bool
    new: bool


def labels_of_rows(
    known: Any, is_range: bool, asked: Any, communities: Any, most: int, dtype: Any
) -> Found:
    """Label every vertex with the smallest member of its community, or with itself.

    ``known``: the ids of the graph, ascending, each its index if ``is_range``. ``asked``,
    ``communities``: rows of a result, of ids that need not be there; communities are numbers from
    -1 (silent) to ``most``, or nothing of what is found means anything but ``beyond``.
    """
    import cupy

    number = known.size
    held, first = cupy.full(number, -2), cupy.full(most + 1, number)
    facts = cupy.zeros(4, np.int32)
    hold, label = _kernels()
    hold(asked, communities, known, number, is_range, most, held, first, facts)
    labels = cupy.empty(number, dtype)
    label(held, first, labels, facts)
    return Found(labels, held, *map(bool, to_host(facts)))


@functools.cache
def _kernels() -> tuple[Any, Any]:
    import cupy

    # Most members of a large community find a smaller one there, and spare the atomic.
    hold = f"""
        long long sought = asked, own = community; {FIND}
        if (own < -1 || own > most) {{
            facts[0] = 1;
        }} else {{
            if (own < 0) facts[2] = 1;
            if (place >= 0) {{
                long long before = (long long)atomicCAS(
                    (unsigned long long*)&held[place], (unsigned long long)-2LL,
                    (unsigned long long)own);
                if (before != -2 && before != own) facts[1] = 1;
                if (own >= 0 && first[own] > place) atomicMin(&first[own], place);
            }}
        }}
    """
    label = """
        if (held == -2) facts[3] = 1;
        label = held >= 0 ? (L)first[held] : held == -1 ? (L)-1 : (L)i;
    """
    return (
        cupy.ElementwiseKernel(
            "A asked, C community, raw V known, int64 number, bool range, int64 most",
            "raw int64 held, raw int64 first, raw int32 facts", hold, "glp_hold_communities",
        ),
        cupy.ElementwiseKernel(
            "int64 held, raw int64 first", "L label, raw int32 facts", label, "glp_first_labels"
        ),
    )  # fmt: skip
