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
    """Pairs in which all values and all others come, the fewer of them in turn; not all pairs."""
    values, others = list(values), list(others)
    number = max(len(values), len(others))
    return [(values[i % len(values)], others[i % len(others)]) for i in range(number)]


def _marked(value):
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.exhaustive)
