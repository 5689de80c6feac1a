"""Errors that a program's functions could raise where nobody can catch them: they are refused."""

import math  # noqa: F401 (for the texts of programs)
import os
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numpy as np
import pytest
from numba import njit

import glp_rapids
from glp_rapids.jit import launch
from glp_rapids.propagation.compile_program import state_class

EDGES = np.arange(5), np.arange(1, 6)
WEIGHTS = (0.5, 1.5, 2.5)


@njit
def divided(value, by):
    return value // by


@njit
def checked(value):
    if value < 0:
        raise KeyError(3)
    return value


FUNCTIONS = {
    "load_neighbor": "v, u, weight, state",
    "label_score": "v, label, freq, state",
    "update_vertex": "v, label, score, state",
    "pick_label": "v, sweep, state",
}


def program(name, body, **fields):
    """Make a program of the text of one function."""
    places = globals().copy()
    text = f"def {name}({FUNCTIONS[name]}):\n{textwrap.indent(body, '    ')}"
    exec(compile(text, "mine.py", "exec"), places)
    initial_state = {"initial_state": lambda self, graph: fields}
    return type("Mine", (glp_rapids.Program,), {name: places[name], **initial_state})()


RAISING = {
    "raise": (
        "load_neighbor", "if u > 3:\n    raise ValueError('no')\nreturn u, weight",
        "ValueError: no (mine.py, line 3)",
    ),
    "assert": ("pick_label", "assert v < 9\nreturn v", "AssertionError (mine.py, line 2)"),
    "in update": (
        "update_vertex", "if score > 3:\n    raise RuntimeError\nstate.labels[v] = label",
        "RuntimeError (mine.py, line 3)",
    ),
    "in a helper": ("label_score", "return checked(freq)", "KeyError: 3 (test_raising.py, line"),
    "tuple": ("label_score", "return WEIGHTS[label] * freq", "tuple index out of range"),
    "step": (
        "label_score", "n = 0\nfor i in range(0, 9, label):\n    n += i\nreturn n",
        "ValueError: range() arg 3 must not be zero",
    ),
    "list": ("label_score", "return [freq, 1].pop()", "IndexError: pop from empty list"),
    "array": ("label_score", "return np.zeros(label)[0]", "MemoryError"),
    "power": ("label_score", "return freq ** label", "Error"),
    "unpacked": ("label_score", "return {1: freq}[label]", "Error"),
}  # fmt: skip


@pytest.mark.parametrize("name", RAISING)
def test_what_may_raise_is_refused(name):
    function, body, words = RAISING[name]
    with pytest.raises(TypeError) as caught:
        glp_rapids.propagate(EDGES, program(function, body), device="cpu")
    message = str(caught.value)
    assert message.startswith(f"Mine.{function} may raise ")
    assert words in message
    assert "\n" not in message


NOT_RAISING = (
    "return freq if label < 3 else np.nan",
    "assert 1 + 1 == 2\nreturn freq",
    "return freq // state.zero + freq % state.zero + freq / state.zero",
    "return divided(freq, state.zero)",
    "return WEIGHTS[1] * freq ** 2 + freq ** 0.5",
    "n = 0\nfor i in range(label):\n    n += i\nreturn n",
    "best, other = min(freq, label), max(freq, label)\nreturn best + other",
    "return math.sqrt(-freq) + np.log(freq - freq)",
)


def test_what_cannot_raise_is_not_refused(device):
    # all in one function, which takes as long to compile as each alone
    branches = [
        f"if v % 9 == {i}:\n{textwrap.indent(body, '    ')}"
        for i, body in enumerate(NOT_RAISING + (("return np.sqrt(-freq)",) * (device == "cpu")))
    ]
    mine = program("label_score", "\n".join([*branches, "return freq"]), zero=0)
    path = np.arange(17), np.arange(1, 18)
    with np.errstate(all="ignore"):
        result = glp_rapids.propagate(path, mine, device=device)
    assert len(result) == 18


def test_a_function_of_numpy_that_gpus_lack_is_named():
    mine = program("label_score", "return np.sqrt(freq)")

    def compile_as_numba_cuda_does(types):
        raise KeyError(np.sqrt)

    kernel = SimpleNamespace(
        compile=compile_as_numba_cuda_does,
        program=SimpleNamespace(name="Mine", state_type=state_class(("labels",))),
        py_func=mine.label_score,
    )
    with pytest.raises(TypeError, match=r"Mine does not compile for the GPU: numpy\.sqrt is not"):
        launch._compiled(kernel, ())
    kernel.program = None  # a kernel of ours: whoever wrote it wants to see all
    with pytest.raises(KeyError):
        launch._compiled(kernel, ())


@pytest.mark.gpu
def test_a_program_that_asks_a_gpu_for_it_says_so():
    mine = program("label_score", "return np.sqrt(freq)")
    with pytest.raises(TypeError, match=r"Mine does not compile for the GPU: numpy\.sqrt is not"):
        glp_rapids.propagate(EDGES, mine, device="gpu")


# Where so many entries are that threads share them, what is raised ends the process.
MANY = """
import numpy as np
import glp_rapids

class Mine(glp_rapids.Program):
    def label_score(v, label, freq, state):
        if v == 12345:
            raise ValueError("no")
        return freq

n = 70_000
edges = np.arange(n), (np.arange(n) * 7 + 1) % n
try:
    glp_rapids.propagate(edges, Mine(), device="cpu", max_iter=2)
except TypeError as error:
    print(error)
"""


def test_a_raise_does_not_end_the_process(tmp_path):
    (tmp_path / "mine.py").write_text(MANY)
    run = subprocess.run(
        [sys.executable, tmp_path / "mine.py"], capture_output=True, text=True, timeout=100,
        env={**os.environ, "NUMBA_NUM_THREADS": "2"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith("Mine.label_score may raise ValueError: no (mine.py, line 8)")
