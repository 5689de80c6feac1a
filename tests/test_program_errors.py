"""A mistake in a program gets one clear error, which names it."""

import random  # noqa: F401 (for the text of a program)
import re
import sys
import textwrap

import numpy as np
import pandas as pd  # noqa: F401 (for the text of a program)
import programs  # noqa: F401 (for the text of a program)
import pytest
from graphs import TRIANGLES

import glp_rapids  # noqa: F401 (for the text of a program)
from glp_rapids import Program, propagate

LISTED = [1, 2, 3]
TABLE = {1: 2}
LOUD = False


def broken(value):
    return value.nothing


def talkative(value):
    print("here")
    return value


def endless(value):
    return endless(value - 1)


def score(body):
    """Make a program out of the text of a label_score."""
    return source(f"def label_score(v, label, freq, state):\n{textwrap.indent(body, '    ')}")


def source(text):
    body = textwrap.indent(text, "    ")
    places = globals().copy()
    exec(compile(f"class Mine(Program):\n{body}", "mine.py", "exec"), places)
    return places["Mine"]()


MISTAKES = {
    "misspelt field": (
        score("return freq * state.gama"),
        "label_score", "state has no field 'gama'; there are labels, sweep, seed (mine.py, line 3)",
    ),
    "undefined name": (score("return totl + freq"), "label_score", "name 'totl' is not defined"),
    "nothing on a path": (
        score("if freq > 1:\n    return freq"),
        "label_score", "must return a number, but returns nothing on some path",
    ),
    "nothing at all": (score("freq + 1"), "label_score", "but returns nothing"),
    "label returned": (
        source("def update_vertex(v, label, score, state): return label"),
        "update_vertex", "returns something, which nobody reads; write state.labels[v] = label",
    ),
    "label alone": (
        source("def load_neighbor(v, u, weight, state): return state.labels[u]"),
        "load_neighbor", "must return (label, amount), but returns int32",
    ),
    "nothing loaded": (
        source("def load_neighbor(v, u, weight, state):\n    if u > v: return u, weight"),
        "load_neighbor", "must return (label, amount), but returns nothing on some path",
    ),
    "amount is text": (
        source("def load_neighbor(v, u, weight, state): return u, 'x'"),
        "load_neighbor", "(label, amount) with a number as amount, but returns 'x'",
    ),
    "label is real": (
        source("def load_neighbor(v, u, weight, state): return u * 0.5, weight"),
        "load_neighbor", "(label, amount) with an integer label, but returns float64",
    ),
    "real label said": (
        source("def pick_label(v, sweep, state): return state.labels[v] / 2"),
        "pick_label", "must return an integer label, but returns float64",
    ),
    "list of the module": (
        score("return LISTED[label] + freq"), "label_score", "the global 'LISTED' is no number",
    ),
    "dict of the module": (
        score("return TABLE[label]"), "label_score", "the global 'TABLE', a dict, is no number",
    ),
    "random numbers of NumPy": (
        score("return freq * np.random.random()"),
        "label_score", "draws random numbers, which would be others in every run; write `from",
    ),
    "random numbers of Python": (
        source(
            "def load_neighbor(v, u, weight, state):\n    return state.labels[u], random.random()"
        ),
        "load_neighbor", "random_below(v, state.sweep, state.seed, bound)",
    ),
    "print": (
        source("def pick_label(v, sweep, state):\n    print(v)\n    return v"),
        "pick_label", "calls print (mine.py, line 3), which a program's functions cannot; to look",
    ),
    "print of a text": (
        score("print('here')\nreturn freq"), "label_score", "calls print (mine.py, line 3), which",
    ),
    "print with an end": (
        score("print(freq, end='')\nreturn freq"),
        "label_score", "does not compile: print is not for a program's functions; name arrays of",
    ),
    "print in an inner function": (
        score("def told(x):\n    print(x)\n    return x\nreturn told(freq)"),
        "label_score", "calls print (mine.py, line 4), which",
    ),
    "print in a helper": (
        score("return talkative(freq)"),
        "label_score", "calls print (test_program_errors.py, line",
    ),
    "misspelt function": (
        source("def load_neighbour(v, u, weight, state):\n    return state.labels[u], weight"),
        "load_neighbour", "would never be called; did you mean load_neighbor?",
    ),
    "text": (score("return f'{freq}'"), "label_score", "must return a number, but returns str"),
    "text into an array": (
        source("def update_vertex(v, label, score, state): state.labels[v] = 'x'"),
        "update_vertex", "indexing does not fit: setitem(1-d array of int32, int64, 'x')",
    ),
    "array index": (
        score("return state.labels[v, 1]"),
        "label_score", "indexing does not fit: getitem(1-d array of int32",
    ),
    "array returned": (
        score("return state.labels"), "label_score", "a number, but returns 1-d array of int32",
    ),
    "unsupported NumPy": (
        score("return np.linalg.svd(freq)"), "label_score", "svd(int64) is not supported",
    ),
    "no such NumPy": (score("return np.nosuch(freq)"), "label_score", "there is no numpy.nosuch"),
    "pandas": (score("return pd.isna(freq)"), "label_score", "pandas.isna is not supported"),
    "function of a module": (
        score("return freq * glp_rapids.random_below(v, state.sweep, state.seed, 2)"),
        "label_score", "through its module; write `from glp_rapids import random_below` above the",
    ),
    "function of the user's module": (
        score("return freq * programs.seeded(freq)"),
        "label_score", "write `from programs import seeded` above the class, and seeded(...) in it",
    ),
    "function of Python's library": (
        score("return textwrap.dedent('x')"), "label_score", "textwrap.dedent is not supported",
    ),
    "wrong types": (score("return freq + None"), "label_score", "add(int64, none) is not"),
    "two types": (
        score("x = freq if freq > 1 else 'no'\nreturn x"),
        "label_score",
        "paths give different types, 'no', int64 (mine.py, line 4)"
        if sys.version_info >= (3, 12)
        else "one path gives int64, another 'no' (mine.py, line 3)",
    ),
    "import inside": (
        score("import math\nreturn math.sqrt(freq)"), "label_score", "import at the top",
    ),
    "field replaced": (
        source("def update_vertex(v, label, score, state): state.labels = label"),
        "update_vertex", "write into it, as state.labels[v] = ...",
    ),
    "mistake in a helper": (
        score("return broken(freq)"),
        "label_score", "int64 has no attribute 'nothing' (test_program_errors.py, line",
    ),
    "file opened": (
        score("with open('x') as file:\n    return 1"), "label_score", "construct is not supported",
    ),
    "generator": (score("yield freq"), "label_score", "must return, not yield or await"),
    "self": (
        source("def label_score(self, v, label, freq, state): return freq"),
        "label_score", "takes 5 parameters, not 4: write `def label_score(v, label, freq, state)`",
    ),
    "too few": (
        source("def pick_label(v, state): return v"),
        "pick_label", "takes 2 parameters, not 3: write `def pick_label(v, sweep, state)`",
    ),
    "unsigned score": (
        score("return np.uint64(freq)"),
        "label_score", "must return int64 or a float, as np.int64(...) of it, but returns uint64",
    ),
    "misspelt attribute": (
        source("skip_inactiv = True"),
        "skip_inactiv", "would never be read; did you mean skip_inactive? If not, choose another",
    ),
    "another one": (
        source("all_sweep = True"), "all_sweep", "would never be read; did you mean all_sweeps?",
    ),
    "one of an instance": (
        source("def __init__(self): self.largest_amout = 3.0"),
        "largest_amout", "would never be read; did you mean largest_amount?",
    ),
    "initial_state without self": (
        source("def initial_state(graph): return {}"),
        "initial_state", "must take a graph: write `def initial_state(self, graph)`",
    ),
    "no function": (source("label_score = 3"), "label_score", "a plain Python function, not int"),
    "class method": (
        source("@classmethod\ndef pick_label(v, sweep, state): return v"),
        "pick_label", "a plain Python function, not classmethod",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_one_clear_error(name):
    program, function, words = MISTAKES[name]
    with pytest.raises(TypeError) as caught:
        propagate(**TRIANGLES, program=program, device="cpu")
    message = str(caught.value)
    assert message.startswith(f"Mine.{function} ")
    assert words in message
    assert "\n" not in message
    assert len(message) < 320
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_a_print_that_never_runs_is_left_out():
    text = "if LOUD:\n    print(v)\nreturn freq"
    found = propagate(**TRIANGLES, program=score(text), device="cpu")
    assert found["partition"].tolist() == [0, 0, 0, 1, 1, 1]


def test_a_helper_that_calls_itself():
    with pytest.raises(TypeError, match="endless calls itself; write a loop instead"):
        propagate(**TRIANGLES, program=score("return endless(freq)"), device="cpu")


@pytest.mark.parametrize(
    ("state", "error", "words"),
    [
        (None, TypeError, "initial_state must return a dict of arrays and numbers, not NoneType"),
        ([1], TypeError, "must return a dict of arrays and numbers, not list"),
        ({"sweep": 1}, ValueError, "names a field 'sweep'; choose an identifier other than"),
        ({"a b": 1}, ValueError, "names a field 'a b'"),
        ({1: 1}, ValueError, "names a field 1"),
        ({"_x": 1}, ValueError, "names a field '_x'; choose an identifier other than"),
        ({"class": 1}, ValueError, "names a field 'class'"),
        ({"x": np.array(3.0)}, TypeError, "gives 'x' as an array without dimensions; use a number"),
        ({"x": "text"}, TypeError, "gives 'x' as str; use a number, or an array"),
        ({"x": [1, 2]}, TypeError, "gives 'x' as list"),
        ({"x": None}, TypeError, "gives 'x' as NoneType"),
        ({"labels": np.zeros(3, int)}, ValueError, "initial labels must be 6 integers"),
        ({"labels": np.zeros(6)}, ValueError, "initial labels must be 6 integers"),
        ({"labels": np.full(6, 6)}, ValueError, "must be vertex indices below 6 or negative"),
        ({}, ValueError, "result_columns names 'wanted', which is not an array"),
        ({"wanted": 3}, ValueError, "result_columns names 'wanted'"),
        ({"wanted": np.zeros(5)}, ValueError, "the first axis must be the 6 vertices"),
        ({"wanted": np.zeros((6, 2))}, ValueError, "with one value a vertex in initial_state"),
    ],
)
def test_state_out_of_order(state, error, words, device):
    class Mine(Program):
        result_columns = ("wanted",) if state == {} or "wanted" in (state or ()) else ()

        def initial_state(self, graph):
            return state

    with pytest.raises(error, match=re.escape(words)):
        propagate(**TRIANGLES, program=Mine(), device=device)


def test_attributes_of_its_own_and_other_signatures_are_allowed():
    class Mine(Program):
        gamma = 2
        volumes = sweeps = columns = amounts = (1, 2)

        def __init__(self):
            self.labels = self.counts = self.weight = [3]

        def initial_state(self, graph, more=4):
            return {"gamma": self.gamma, "more": more, "byte": np.zeros(6, np.uint64)}

        def label_score(v, label, freq, state):
            return np.uint32(freq * state.gamma + state.byte[v])

    found = propagate(**TRIANGLES, program=Mine(), device="cpu")
    assert found["partition"].tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("program", [Program, None, "classic", lambda v: v])
def test_no_program(program):
    with pytest.raises(TypeError, match=r"program must be an instance of glp_rapids.Program"):
        propagate(**TRIANGLES, program=program)
