"""What a program returns or is given out of bounds ends in one clear error, never in a crash."""

import math
import os
import re
import subprocess
import sys
import tracemalloc

import graphs
import numpy as np
import pandas as pd
import pytest
from cases import exhaustive, some
from graphs import TRIANGLES

import glp_rapids
from glp_rapids import Program, as_graph, label_propagation, propagate
from glp_rapids.device import array_module
from glp_rapids.propagation.kernels.cpu import hash_votes
from glp_rapids.propagation.options import Options
from glp_rapids.propagation.program import initial_state
from glp_rapids.propagation.run import run

CHAIN = graphs.edges([("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "f")])


class Hears(Program):
    """Hears a label of the state, wrong ones from vertex 2 on."""

    def __init__(self, label):
        self.label = label

    def initial_state(self, graph):
        xp = array_module(graph.degree)
        own = xp.arange(graph.number_of_vertices).astype(np.asarray(self.label).dtype)
        label = own.copy()
        label[2:] = self.label
        return {"own": own, "label": label}

    def load_neighbor(v, u, weight, state):
        return state.label[v], weight


class Says(Hears):
    def pick_label(v, sweep, state):
        return state.label[v] if sweep == 1 else state.own[v]

    load_neighbor = Program.load_neighbor


class SaysAtFirst(Says):
    def pick_label(v, sweep, state):
        return state.label[v]


class Writes(Says):
    def update_vertex(v, label, score, state):
        state.labels[v] = state.label[v]

    pick_label = Program.pick_label


WRONG = {
    "heard": (Hears, "load_neighbor returned a label that is no vertex in sweep 1, at vertex 'c'"),
    "said": (Says, "pick_label returned a label that is no vertex in sweep 1, at vertex 'c'"),
    "said first": (SaysAtFirst, "pick_label returned a label that is no vertex in sweep 0, at "),
    "written": (Writes, "update_vertex wrote a label that is no vertex in sweep 1, at vertex 'c'"),
}


@pytest.mark.parametrize("label", [6, 2**31 - 1])
@pytest.mark.parametrize("case", some(WRONG, "heard", "said", "said first"))
def test_labels_that_are_no_vertices(case, label, device):
    program, words = WRONG[case]
    with pytest.raises(ValueError, match=re.escape(f"{program.__name__}.{words}")) as caught:
        propagate(**CHAIN, program=program(label), device=device)
    assert "labels are indices of vertices, 0 to 5, or negative for silence" in str(caught.value)


@pytest.mark.parametrize(
    ("case", "label"),
    [
        ("heard", np.int64(2**32)),
        ("said", np.int64(2**32)),
        *exhaustive(("heard", np.uint64(2**64 - 1)), ("said", np.uint64(2**64 - 1))),
    ],
)
def test_labels_that_would_wrap_around(case, label, device):
    program, words = WRONG[case]
    with pytest.raises(ValueError, match=re.escape(words)):
        propagate(**CHAIN, program=program(label), device=device)


def test_labels_far_below_zero(device):
    silent = propagate(**CHAIN, program=Hears(-(2**40)), device=device, max_iter=1)
    assert len(silent) == 6
    with pytest.raises(ValueError, match="pick_label returned a label that is no vertex"):
        propagate(**CHAIN, program=Says(-(2**31) - 1), device=device)


def test_several_columns_of_ids_name_the_vertex():
    edges = pd.DataFrame({"a": [1, 1], "b": ["x", "y"], "c": [1, 1], "d": ["y", "z"]})
    with pytest.raises(ValueError, match=re.escape("at vertex (1, 'z')")):
        propagate(edges, Hears(9), source=["a", "b"], destination=["c", "d"], device="cpu")


@pytest.mark.parametrize("case", ["heard"])
def test_the_smallest_vertex_is_named_by_every_engine(case, monkeypatch):
    monkeypatch.setattr(hash_votes, "threads_for", lambda _: 2)
    edges = graphs.GRAPHS["random"]()
    graph = glp_rapids.as_graph(**edges, device="cpu")
    program, words = WRONG[case]
    with pytest.raises(ValueError) as caught:
        propagate(graph, program(10**6))
    with pytest.raises(ValueError) as of_compressed:
        propagate(glp_rapids.compress(graph, device="cpu"), program(10**6))
    assert str(caught.value) == str(of_compressed.value)
    assert words.split(", at")[0] in str(caught.value)
    assert "at vertex 2;" in str(caught.value)


class Whole(Program):
    """Returns whole amounts."""

    def __init__(self, amount):
        self.amount = amount

    def initial_state(self, graph):
        return {"amount": np.int64(self.amount)}

    def load_neighbor(v, u, weight, state):
        return state.labels[u], state.amount


@pytest.mark.parametrize("amount", [2**62, -(2**62), 2**61 + 2**54, -(2**63)])
def test_whole_amounts_that_would_wrap_around(amount, device):
    words = "Whole.load_neighbor returned an amount that exceeds 2.30584e+18 in sweep 1"
    with pytest.raises(ValueError, match=re.escape(words)):
        propagate(**CHAIN, program=Whole(amount), device=device)


def test_whole_amounts_as_large_as_can_be(device):
    large = propagate(**CHAIN, program=Whole(2**61), device=device)
    small = propagate(**CHAIN, program=Whole(1), device=device)
    assert large["partition"].tolist() == small["partition"].tolist()


@pytest.mark.parametrize(
    ("state", "columns", "words"),
    [
        ({"x": np.zeros(5)}, (), "gives 'x' of shape (5,); the first axis must be the 6 vertices"),
        ({"x": np.zeros((7, 2))}, (), "gives 'x' of shape (7, 2); the first axis must be the 6"),
        ({"x": np.zeros(0)}, (), "gives 'x' of shape (0,)"),
        ({"vertex": np.zeros(6)}, ("vertex",), "result_columns names 'vertex', which the result"),
        ({"partition": np.zeros(6)}, ("partition",), "names 'partition', which the result holds"),
        ({"x": np.zeros(6)}, ("x", "x"), "names 'x', which the result holds already"),
        ({"labels": np.full(6, -(2**31) - 1)}, (), "negative (down to -2**31), not -2147483649"),
        ({"labels": np.full(6, -(2**32) + 1)}, (), "negative (down to -2**31), not -4294967295"),
        ({"labels": np.full(6, 2**64 - 1, np.uint64)}, (), "not 18446744073709551615"),
    ],
)
def test_state_out_of_bounds(state, columns, words, device):
    class Mine(Program):
        result_columns = columns

        def initial_state(self, graph):
            return state

    with pytest.raises(ValueError, match=re.escape(words)):
        propagate(**CHAIN, program=Mine(), device=device)


def test_result_columns_as_text():
    class Mine(Program):
        result_columns = "best"

    with pytest.raises(TypeError, match=re.escape("tuple of names, not 'best'; write ('best',)")):
        propagate(**CHAIN, program=Mine(), device="cpu")


def test_initial_labels_as_far_below_zero_as_can_be(device):
    class Silent(Program):
        def initial_state(self, graph):
            return {"labels": np.full(graph.number_of_vertices, -(2**31))}

    result = propagate(**CHAIN, program=Silent(), device=device)
    assert result["partition"].tolist() == [-1] * 6


# What used to end the process: labels and amounts far out of bounds, by all threads.
MANY = """
import sys
import numpy as np
import glp_rapids

class Mine(glp_rapids.Program):
    def load_neighbor(v, u, weight, state):
        return u * 10**9 if state.far == 1 else u, weight

    def update_vertex(v, label, score, state):
        state.labels[v] = 2**30 + label if state.far == 2 else label

    def pick_label(v, sweep, state):
        return v * 10**6 if state.far == 3 else state.labels[v]

    def initial_state(self, graph):
        return {"far": self.far}

n = 70_000
edges = np.arange(n), (np.arange(n) * 7 + 1) % n
for far in (1, 2, 3):
    mine = Mine()
    mine.far = far
    try:
        glp_rapids.propagate(edges, mine, device="cpu", max_iter=2)
    except ValueError as error:
        print(error)
"""


def test_labels_far_out_of_bounds_do_not_end_the_process(tmp_path):
    (tmp_path / "mine.py").write_text(MANY)
    run = subprocess.run(
        [sys.executable, tmp_path / "mine.py"], capture_output=True, text=True, timeout=200,
        env={**os.environ, "NUMBA_NUM_THREADS": "2"},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("a label that is no vertex in sweep") == 3


class Wild(Program):
    def __init__(self, value, largest_amount=None, first=3):
        self.value, self.largest_amount, self.first = value, largest_amount, first

    def initial_state(self, graph):
        return {"value": self.value, "first": self.first}

    def load_neighbor(v, u, weight, state):
        return state.labels[u], state.value if v >= state.first else 1.0


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 1025.0, -1025.0])
def test_amounts_out_of_bounds(value, device):
    with pytest.raises(ValueError, match="not a number or exceeds 1024 in sweep 1") as caught:
        propagate(**TRIANGLES, program=Wild(value), device=device)
    assert "Wild.load_neighbor" in str(caught.value)
    assert "set `largest_amount`" in str(caught.value)


def test_amounts_and_a_declared_bound(device):
    with pytest.raises(ValueError, match="exceeds 8 in sweep 1"):
        propagate(**TRIANGLES, program=Wild(8.5, 8), device=device)
    large = propagate(**TRIANGLES, program=Wild(1e300, 1e300, first=0), device=device)
    classic = label_propagation(**TRIANGLES, device=device)
    assert large["partition"].tolist() == classic["partition"].tolist()


@pytest.mark.parametrize("bound", [0, -1, math.inf, math.nan])
def test_a_bound_out_of_range(bound, device):
    with pytest.raises(ValueError, match="largest_amount must be positive and finite"):
        propagate(**TRIANGLES, program=Wild(1.0, bound), device=device)


# ---------------------------------------------------------------- whose arrays the state is


class Gives(Program):
    """Gives one array, made as ``make`` does, and keeps what that returns besides."""

    def __init__(self, make):
        self.make = make

    def initial_state(self, graph):
        array, self.kept = self.make(graph.number_of_vertices)
        self.place = array.ctypes.data
        return {"mine": array}

    def update_vertex(v, label, score, state):
        state.mine[v] += 1
        state.labels[v] = label


def twice(n):
    array = np.zeros(n)
    return array, array


def viewed(n):
    array = np.zeros(n)
    return array, array[1:]


def a_part(n):
    array = np.zeros(2 * n)
    return array[::2], array


def read_only(n):
    array = np.zeros(n)
    array.flags.writeable = False
    return array, None


GIVEN = {
    "alone": (lambda n: (np.zeros(n), None), True),
    "held": (twice, False), "a view of it held": (viewed, False), "a part": (a_part, False),
    "read-only": (read_only, False),
    "by columns": (lambda n: (np.zeros((n, 3), order="F"), None), False),
    "of bytes": (lambda n: (np.frombuffer(bytearray(8 * n)), None), False),
    "turned around": (lambda n: (np.zeros(n, ">f8"), None), False),
}  # fmt: skip


@pytest.mark.parametrize("name", GIVEN)
def test_a_state_is_taken_over_only_if_nobody_else_has_it(name):
    make, taken_over = GIVEN[name]
    program, graph = Gives(make), as_graph(**TRIANGLES, device="cpu")
    array = initial_state(program, graph, lambda array: array)["mine"]
    assert (array.ctypes.data == program.place) == taken_over
    assert array.flags.owndata
    assert array.flags.carray
    if name != "by columns":
        assert run(graph, program, Options()).state["mine"].sum() > 0
        assert program.kept is None or not program.kept.any()


def test_a_large_state_is_not_held_twice():
    graph = as_graph((np.arange(1 << 16), np.arange(1 << 16) + 1), device="cpu")
    program = Gives(lambda n: (np.zeros((n, 32)), None))
    tracemalloc.start()
    try:
        state = initial_state(program, graph, lambda array: array)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert state["mine"].nbytes <= peak < 1.1 * state["mine"].nbytes


class Halved(Program):
    """Amounts that are real numbers of its own making."""

    def load_neighbor(v, u, weight, state):
        return state.labels[u], weight * 0.5 + 1.0


class Counted(Program):
    """Amounts that are whole numbers."""

    def load_neighbor(v, u, weight, state):
        return state.labels[u], 1


@pytest.mark.parametrize("weights", [[0.0, 0.0], [0, 0], [1e306, 1e306]])
@pytest.mark.parametrize("program", [Halved, Counted])
def test_weights_of_nothing_and_of_nearly_all_there_is(program, weights):
    edges = pd.DataFrame({"src": ["a", "b"], "dst": ["b", "c"], "w": weights})
    found = propagate(edges, program(), weight="w", device="cpu")
    unweighted = propagate(edges[["src", "dst"]], program(), device="cpu")
    assert found["partition"].tolist() == unweighted["partition"].tolist()


def test_what_is_too_small_is_the_weight_if_that_was_given():
    edges = pd.DataFrame({"src": ["a"], "dst": ["b"], "w": [1e-300]})
    with pytest.raises(ValueError, match="weight: the largest weight, 1e-300, is so small that"):
        propagate(edges, Halved(), weight="w", device="cpu")
