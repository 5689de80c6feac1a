"""The keywords of `compress`: checked before any work, and what they mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from glp_rapids.common.checks import check_choice, shown
from glp_rapids.compressed.format.layout import SCHEMES, Codes, Layout

Scheme = Literal["auto", "cgr", "packed", "entropy"]

# What "auto" means.
SCHEME_FOR = {"speed": "packed", "size": "entropy"}

# What is best for a scheme. A warp reads parts of 128 at once; shorter ones take more room.
DEFAULTS = {
    "cgr": {"min_interval": 4, "segment": 128},
    "packed": {"min_interval": 4, "segment": 128},
    "entropy": {"min_interval": 4, "segment": 128},  # it has runs of its own: no intervals
}


def layout_of(
    scheme: str,
    goal: str,
    min_interval: int | None,
    raw_below: int,
    segment: int | None,
    codes: Mapping[str, str] | None = None,
) -> Layout:
    """Make the layout that is meant, or raise what is wrong with it."""
    check_choice("for_", goal, SCHEME_FOR, "'speed' or 'size'")
    choices = ("auto", *SCHEMES)
    check_choice("scheme", scheme, choices, f"one of {', '.join(choices)}")
    scheme = SCHEME_FOR[goal] if scheme == "auto" else scheme
    given = {"min_interval": min_interval, "segment": segment}
    numbers = DEFAULTS[scheme] | {k: v for k, v in given.items() if v is not None}
    layout = Layout(scheme, raw_below=raw_below, codes=Codes(**(codes or {})), **numbers)
    if codes and scheme != "cgr":
        raise ValueError(
            f"codes are those of scheme='cgr'; {scheme!r} makes its own, as they suit the graph"
        )
    return layout


def checked_codes(codes: Any) -> dict[str, str]:
    """Check the codes that are named; return them by kind of number."""
    if codes is None:
        return {}
    if isinstance(codes, Codes):
        return codes._asdict()
    if not isinstance(codes, Mapping):
        raise TypeError(
            f"codes must be a dict such as {{'gap': 'zeta3'}}, Codes or None, not {shown(codes)}"
        )
    if unknown := [name for name in codes if name not in Codes._fields]:
        known = ", ".join(Codes._fields)
        raise ValueError(f"codes are of {known}; {unknown[0]!r} is none of them")
    return dict(codes)
