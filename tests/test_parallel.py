"""Kernels that hand parts of their work to threads."""

import numpy as np
import pytest

from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import ParallelKernel, Team, together


@compiled(error_model="numpy")
def _add(thread, threads, arrays, factor, nothing):
    values, (sums, calls) = arrays
    calls[thread] += 1
    for i in range(values.size * thread // threads, values.size * (thread + 1) // threads):
        sums[thread] += factor * values[i]


@ParallelKernel
def _added(team, values, sums, calls, factor, nothing):
    for _ in range(3):
        together(team, _add, (team.threads, (values, (sums, calls)), factor, nothing))
    total = 0
    for thread in range(team.threads):
        total += sums[thread]
    return total


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_every_thread_does_its_part_once_a_region(threads):
    values = np.arange(1001)
    sums, calls = np.zeros((2, threads), np.int64)
    assert _added(threads, values, sums, calls, 2, None) == 3 * 2 * 500_500
    assert calls.tolist() == [3] * threads


def test_one_thread_does_the_work_of_all():
    sums, calls = np.zeros((2, 5), np.int64)
    found = _added.compiled(Team(5, 0), np.arange(1001), sums, calls, 1, None)
    assert (found, calls.tolist()) == (3 * 500_500, [3] * 5)


def test_a_function_is_called_from_python_and_from_compiled_code():
    @compiled(error_model="numpy")
    def half(value):
        return value // 2

    @compiled
    def quarter(value):
        return half(half(value))

    assert (quarter(9), half(9)) == (2, 4)
    assert quarter.overloads
    assert half.linked.overloads
