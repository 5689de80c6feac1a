"""What compiled code is kept under: everything that it reads, and nothing else."""

import dis
import enum
import inspect
import math
import os
import subprocess
import sys
import types
from collections import namedtuple

import numpy as np
import pytest
from numba import njit, vectorize

import glp_rapids
from glp_rapids.jit import fingerprint as fingerprints
from glp_rapids.jit.fingerprint import fingerprint
from glp_rapids.jit.target import made_of

# A module of the name `settings` by its text, and what reads it; K is a number that changes.
READ = {
    "number": ("K = {}", "return label * settings.K"),
    "tuple": ("K = ({}, 2)", "return label * settings.K[0]"),
    "named tuple": (
        "import collections\nK = collections.namedtuple('K', 'a b')({}, 2)",
        "return label * settings.K.a",
    ),
    "array": ("import numpy as np\nK = np.array([{}])", "return label * settings.K[0]"),
    "module": ("inner.K = {}", "return label * settings.inner.K"),
    "enum": ("import enum\nclass K(enum.Enum):\n    A = {}", "return settings.K.A.value"),
    "compiled function": (
        "from numba import njit\n@njit\ndef f(x):\n    return x * {}", "return settings.f(label)",
    ),
    "what that reads": (
        "import numpy as np\nfrom numba import njit\nK = np.array([{}])\n"
        "@njit\ndef f(x):\n    return x * K[0]",
        "return settings.f(label)",
    ),
    "another name": ("K = ({}, 2)", "place = settings; return label * place.K[0]"),
    "handed on": ("K = {}", "return label * first(settings)"),
    "inner function": ("K = ({}, 2)", "return (lambda x: x * settings.K[0])(label)"),
    "default": (
        "from numba import njit\n@njit\ndef f(x, by={}):\n    return x * by",
        "return settings.f(label)",
    ),
    "keyword default": (
        "from numba import njit\n@njit\ndef f(x, *, by={}):\n    return x * by",
        "return settings.f(label)",
    ),
}  # fmt: skip


def reader(module, body, number):
    """Give a function that reads a module of which one number varies."""
    settings = types.ModuleType("settings")
    settings.inner = types.ModuleType("inner")
    exec(module.format(number), vars(settings))
    own = {"settings": settings}
    exec(f"def first(place): return place.K\ndef f(label, labels): {body}", own)
    return own["f"]


@pytest.mark.parametrize("read", READ)
def test_whatever_a_function_reads_of_a_module_counts(read):
    digests = [fingerprint(reader(*READ[read], number)) for number in (1, 1, -1, 1.0)]
    assert digests[0] == digests[1]
    assert len(set(digests)) == 3


def test_what_a_function_does_not_read_does_not_count():
    module, body = READ["tuple"]
    before = fingerprint(reader(module, body, 1))
    assert fingerprint(reader(f"'''A docstring.'''\nOTHER = 5\n{module}", body, 1)) == before
    assert fingerprint(reader(module, f"'''A docstring.'''; {body}", 1)) == before


def test_values_of_every_kind():
    def of(value):
        return lambda: value

    class Kind(enum.Enum):
        A = (1, 2)

    Pair = namedtuple("Pair", "a b")
    one_more = vectorize(["int64(int64)"])(lambda x: x + 1)
    two_more = vectorize(["int64(int64)"])(lambda x: x + 2)
    record = np.zeros(2, [("a", int), ("b", float)])
    values = [
        1, 1.0, True, "1", b"1", None, 1j, np.int32(1), np.float32(1), (1, 2), [1, 2], {1: 2},
        range(3), np.zeros(3), np.zeros(3, np.float32), np.zeros((3, 1)), record, record[0],
        np.datetime64("2020-01-01"), Kind.A, Kind, Pair, Pair(1, 2), np, math, np.sin, math.sin,
        len, np.int32, np.dtype("i4"), one_more, two_more, njit(lambda x: x), njit(lambda x: x - 1),
    ]  # fmt: skip
    digests = [fingerprint(of(value)) for value in values]
    assert digests == [fingerprint(of(value)) for value in values]
    assert len(set(digests)) == len(values)


def test_what_cannot_be_told_apart_is_refused():
    from numba.typed import List

    numbers = List([1, 2])

    class Mine(glp_rapids.Program):
        def label_score(v, label, freq, state):
            return freq * numbers[0]

    with pytest.raises(TypeError, match="'numbers' is a List, whose content cannot be told"):
        glp_rapids.propagate(([0], [1]), Mine(), device="cpu")


def test_a_function_that_refers_to_what_is_not_there_yet():
    def score(v, label, freq, state):
        return freq * later

    with pytest.raises(TypeError, match="refers to 'later', which has no value"):
        fingerprint(score)
    later = 1


def test_a_kernel_is_known_by_what_it_is_compiled_from():
    def kernel_of(factor, text):
        """Make a kernel as the engines do: around compiled functions."""
        own = {}
        exec(f"def inner(x):\n    {text}\n    return x * factor", {"factor": factor}, own)
        inner = njit(own["inner"])

        def kernel(x):
            return inner(x)

        return kernel

    digest = made_of(kernel_of(2, "'''One.'''"), "program", 3)
    assert digest == made_of(kernel_of(2, "'''Other words.'''\n    # a comment"), "program", 3)
    assert digest != made_of(kernel_of(2, "x += 1"), "program", 3)
    assert digest != made_of(kernel_of(3, "'''One.'''"), "program", 3)
    assert digest != made_of(kernel_of(2, "'''One.'''"), "program", 4)


RUN = """
import pandas as pd
import glp_rapids
import settings

class Mine(glp_rapids.Program):
    def label_score(v, label, freq, state):
        return settings.f(label) * settings.K[0] * settings.inner.K

edges = pd.DataFrame({"src": [0, 0, 3, 3, 0], "dst": [1, 2, 4, 5, 3]})
result = glp_rapids.propagate(edges, Mine(), device="cpu", explore=0, max_iter=1, update="sync")
print(result["partition"].tolist())
"""


def test_an_edited_module_is_compiled_anew(tmp_path):
    (tmp_path / "script.py").write_text(RUN)
    (tmp_path / "inner.py").write_text("K = 1.0\n")
    (tmp_path / "settings.py").write_text(
        "import inner\nimport numpy as np\nfrom numba import njit\n"
        "K = np.ones(1)\n@njit\ndef f(x):\n    return x * inner.K\n"
    )
    found = []
    for sign in ("", "-"):
        text = (tmp_path / "settings.py").read_text()
        (tmp_path / "settings.py").write_text(text.replace("np.ones", f"{sign}np.ones"))
        run = subprocess.run(
            [sys.executable, "script.py"], capture_output=True, text=True, cwd=tmp_path,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )  # fmt: skip
        assert run.returncode == 0, run.stderr
        found.append(run.stdout)
    assert found[0] != found[1]


def test_fingerprints_tell_meanings_apart():
    def doubled(v, label, freq, state):
        """Twice."""
        return freq * 2

    def doubled_too(a, b, c, d):
        return c * 2

    def tripled(v, label, freq, state):
        return freq * 3

    def other_place(v, label, freq, state):
        return label * 2

    assert fingerprint(doubled) == fingerprint(doubled_too)
    assert len({fingerprint(one) for one in (doubled, tripled, other_place)}) == 3

    def scaled(factor):
        def score(v, label, freq, state):
            return freq * factor

        return score

    assert fingerprint(scaled(2)) == fingerprint(scaled(2))
    assert fingerprint(scaled(2)) != fingerprint(scaled(2.0)) != fingerprint(scaled(3.0))
    table = np.arange(5000)
    changed = table.copy()
    changed[2500] = -1
    assert fingerprint(scaled(table)) == fingerprint(scaled(table.copy()))
    assert fingerprint(scaled(table)) != fingerprint(scaled(changed))
    assert fingerprint(scaled(doubled)) == fingerprint(scaled(doubled_too))
    assert fingerprint(scaled(doubled)) != fingerprint(scaled(tripled))
    assert fingerprint(scaled((table, 1))) == fingerprint(scaled((table.copy(), 1)))
    assert fingerprint(scaled((table, 1))) != fingerprint(scaled((changed, 1)))

    def with_default(number):
        def helper(value, factor=number):
            return value * factor

        return helper

    assert fingerprint(with_default(2)) == fingerprint(with_default(2))
    assert fingerprint(with_default(2)) != fingerprint(with_default(3))


FACTOR = 0.25


class Kind(enum.IntEnum):
    PLAIN = 1


def test_only_what_a_function_looks_up_in_its_module_counts(monkeypatch):
    def of_kind(v, label, freq, state):
        return freq * state.FACTOR + Kind.PLAIN

    def nested(v, label, freq, state):
        def twice(value):
            return FACTOR * value

        return twice(freq)

    before = fingerprint(of_kind), fingerprint(nested)
    assert (fingerprint(of_kind), fingerprint(nested)) == before
    monkeypatch.setitem(globals(), "FACTOR", -2.0)
    assert fingerprint(of_kind) == before[0]  # a field of the state, by chance of the same name
    assert fingerprint(nested) != before[1]
    monkeypatch.setitem(globals(), "Kind", enum.IntEnum("Kind", {"PLAIN": 2}))
    assert fingerprint(of_kind) != before[0]


def looked_up(code):
    """The names that `dis` says a function, and those inside it, look up in its module."""
    names = set()
    for step in dis.get_instructions(code):
        if isinstance(step.argval, types.CodeType):
            names |= looked_up(step.argval)
        elif step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            names.add(step.argval)
    return names


@pytest.mark.parametrize("module", [dis, enum, inspect, subprocess], ids=lambda one: one.__name__)
def test_operations_and_names_are_those_that_dis_finds(module):
    """Some of these functions have more than 256 constants or names, classes, and jumps far."""
    whole = compile(inspect.getsource(module), module.__name__, "exec")
    codes = [whole]
    for code in codes:
        codes += [one for one in code.co_consts if isinstance(one, types.CodeType)]
        steps = [step for step in dis.get_instructions(code) if step.opname != "EXTENDED_ARG"]
        read = list(fingerprints._steps(code))
        assert [operation for operation, _ in read] == [step.opcode for step in steps]
        assert [number for _, number in read if number] == [step.arg for step in steps if step.arg]
        assert fingerprints.global_names(code) == tuple(sorted(looked_up(code)))
    assert len(codes) > 40


def test_docstrings_and_names_of_parameters_do_not_count():
    def plain(label, votes):
        return label if votes > 300 else None

    def renamed(one, other):
        """Say something."""
        return one if other > 300 else None

    def different(label, votes):
        return label if votes > 301 else None

    assert fingerprint(plain) == fingerprint(renamed) != fingerprint(different)
