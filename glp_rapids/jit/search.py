"""Binary searches, written once as plain functions: each processor's code compiles them.

A CPU takes them with `glp_rapids.jit.cache.kept`, a GPU from `glp_rapids.jit.primitives`.
"""


def lower_bound(values, first, last, value):
    """Return the first place in ``values[first:last]``, which ascends, of no less than a value."""
    while first < last:
        middle = (first + last) >> 1
        if values[middle] < value:
            first = middle + 1
        else:
            last = middle
    return first


def upper_bound(values, first, last, value):
    """Return the first place in ``values[first:last]``, which ascends, of more than a value."""
    while first < last:
        middle = (first + last) >> 1
        if values[middle] <= value:
            first = middle + 1
        else:
            last = middle
    return first
