"""Kernels that hand parts of their work to threads."""

import ctypes
import importlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numba
import numpy as np
import pytest

import glp_rapids
from glp_rapids.jit import cache, fingerprint
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


@ParallelKernel
def _added_again(team, values, sums, calls):
    for _ in range(60):
        together(team, _add, (team.threads, (values, (sums, calls)), 2, None))


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


def test_one_thread_goes_on_alone_where_others_are_waited_for():
    pointer = ctypes.c_void_p
    region = ctypes.CFUNCTYPE(None, *[pointer] * 4)
    calls = []

    @ctypes.CFUNCTYPE(None, *[pointer] * 5, *[ctypes.c_long] * 3)
    def crowded(part, first, count, step, data, *_):
        """Stand for Numba's function where a thread is held up: far longer than there is to do."""
        calls.append(threading.get_ident())
        time.sleep(0.01)
        region(part)(first, count, step, data)

    team = Team(3, ctypes.cast(crowded, pointer).value)
    sums, parts = np.zeros((2, 3), np.int64)
    _added_again.compiled(team, np.arange(1001), sums, parts)
    assert sums.sum() == 60 * 2 * 500_500
    assert parts.tolist() == [60] * 3
    assert 1 <= len(calls) <= 5  # of 60 regions


def test_whoever_calls_keeps_the_number_of_threads():
    def added(team, values, sums, calls):
        together(team, _add, (team.threads, (values, (sums, calls)), 2, None))

    before = numba.get_num_threads()
    sums, calls = np.zeros((2, 5), np.int64)
    ParallelKernel(added)(5, np.arange(1001), sums, calls)  # its first region is never one thread's
    assert sums.sum() == 2 * 500_500
    assert numba.get_num_threads() == before


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


def test_a_constant_is_compiled_as_the_number_that_it_becomes():
    @compiled(error_model="numpy")
    def added(place, values):
        return place + values[place]

    @compiled(error_model="numpy")
    def last(values):
        place = 0
        while place < 5:
            place = added(place, values=values)
        return place

    assert last(np.array([2, 0, 9])) == 11
    [signature] = added.linked.overloads
    assert signature[0] == numba.int64


def made(size):
    return np.empty(size)


def added_up(size):
    return np.zeros(size).sum()


def given(values):
    return values


def rest(values):
    return values, values[1:]


def rest_or_none(values):
    if values.size < 2:
        return None
    return values[1:]


@pytest.mark.parametrize(
    ("function", "argument", "said"),
    [*((one, 3, "passed into the function") for one in (made, added_up)),
     *((one, np.arange(3), "need `allocates`") for one in (given, rest, rest_or_none))],
)  # fmt: skip
def test_who_makes_or_returns_arrays_says_so(function, argument, said):
    with pytest.raises((TypeError, numba.core.errors.NumbaError), match=said):
        compiled(function)(argument)
    result = compiled(function, allocates=True)(argument)
    if function is made:
        assert result.shape == (3,)
    else:
        np.testing.assert_equal(result, function(argument))


@pytest.mark.parametrize("counts", [False, True])
def test_arrays_go_from_one_that_counts_to_another(counts):
    of_rest = compiled(rest, allocates=counts)

    def last(values):
        _, after = of_rest(values)
        return after[after.size - 1]

    assert compiled(last, allocates=counts)(np.arange(3)) == 2
    with pytest.raises(numba.TypingError, match="need `allocates`"):
        compiled(last, allocates=not counts)(np.arange(3))


def test_linked_functions_have_their_constants_and_raise_what_they_say(capfd):
    @compiled(allocates=True)
    def spoken(value):
        print("heard", value)
        if value > 3:
            raise ValueError(value)
        return value

    @compiled(allocates=True)
    def outer(value):
        return spoken(value)

    assert outer(3) == 3
    assert "heard 3" in capfd.readouterr().out
    with pytest.raises(ValueError, match=r"^5$"):
        outer(5)


def test_kept_code_depends_on_the_files_of_intrinsics(monkeypatch):
    """An intrinsic is no dispatcher: a change of one would else load what was made before."""
    seen, read = set(), Path.read_bytes

    def noted(path):
        seen.add(path.name)
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", noted)
    for module, needed in (("kernels.cpu.unit_votes", "short_rows.py"),
                           ("kernels.cpu.strips", "atomics.py")):  # fmt: skip
        seen.clear()
        name = f"glp_rapids.propagation.{module}"
        importlib.import_module(name)
        fingerprint.file_digest.cache_clear()
        for value in vars(sys.modules[name]).values():
            kept = getattr(getattr(value, "compiled", value), "_cache", None)
            if isinstance(kept, cache.SourceCache):
                kept._source()
        assert needed in seen


def test_kept_code_depends_on_how_regions_are_called():
    """No function names what makes a region of it, so the files themselves are in the key."""
    assert cache.MACHINERY in cache.VERSIONS
    folder = os.path.dirname(cache.__file__)
    assert all(os.path.exists(os.path.join(folder, name)) for name in ("cpu.py", "parallel.py"))


RUN = """
import numpy as np, pandas as pd, glp_rapids

class Beyond(glp_rapids.Program):
    def load_neighbor(v, u, weight, state):
        return state.owner[u + FURTHER], weight

    def initial_state(self, graph):
        return {"owner": np.arange(graph.number_of_vertices)}

edges = pd.DataFrame({"src": [0, 0, 1, 3, 3, 4], "dst": [1, 2, 2, 4, 5, 5]})
if FURTHER:
    glp_rapids.propagate(edges, Beyond(), device="cpu")
print(glp_rapids.label_propagation(edges, device="cpu")["partition"].tolist())
ends = np.random.default_rng(1).integers(0, 60, (2, 200))
many = glp_rapids.label_propagation((ends[0], ends[1]), device="cpu")
print(many.attrs["glp"]["changed"], many["partition"].tolist())
"""


def run_with(tmp_path, further, **environment):
    kept = {"NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": os.path.dirname(PACKAGE)}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", f"FURTHER = {further}\n{RUN}"],
        env={**os.environ, **kept, **environment}, capture_output=True, text=True,
    )  # fmt: skip


PACKAGE = os.path.dirname(glp_rapids.__file__)


def test_a_check_of_indices_is_heard_from_within_a_region(tmp_path):
    """Numba's means to find mistakes in one's own program."""
    done = run_with(tmp_path, 1_000_000, NUMBA_BOUNDSCHECK="1")
    assert done.returncode != 0
    assert "IndexError: index is out of bounds" in done.stderr


def test_regions_without_compilation(tmp_path):
    done = run_with(tmp_path, 0, NUMBA_DISABLE_JIT="1")
    few, many = done.stdout.splitlines() or ("", "")
    assert few == "[0, 0, 0, 1, 1, 1]", done.stderr
    ends = np.random.default_rng(1).integers(0, 60, (2, 200))
    found = glp_rapids.label_propagation((ends[0], ends[1]), device="cpu")
    assert many == f"{found.attrs['glp']['changed']} {found['partition'].tolist()}"
