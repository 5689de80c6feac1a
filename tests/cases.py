"""Which cases of a test README's command leaves to `.ci/run`: those marked exhaustive."""

import pytest


def exhaustive(*values):
    """The values as cases that are marked exhaustive."""
    return [_marked(value) for value in values]


def some(values, *kept):
    """All values as cases, marked exhaustive but for those kept."""
    values = list(values)
    assert all(value in values for value in kept)
    return [value if value in kept else _marked(value) for value in values]


def turns(values, others):
    """Pairs of each value with one of the others, which take turns: all, but not all pairs."""
    others = list(others)
    return [(value, others[place % len(others)]) for place, value in enumerate(values)]


def _marked(value):
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.exhaustive)
