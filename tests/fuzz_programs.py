"""Run random programs, and compare each with its own functions in plain Python.

Run by test_program_fuzz.py in a process of its own: ``fuzz_programs.py FIRST SOURCES DRAWS``. A
source is drawn from a grammar and compiled once for each of two states of a module that it reads;
the numbers in it are scalars of its state, drawn anew each time. Prints what it is at, so that a
crash has a name, and in the end how many programs ended how.
"""

import collections
import math
import random
import re
import sys
import types

import graphs
import numpy as np
import reference
from numba import njit
from reference_program import Failed, interpreted

import glp_rapids
from glp_rapids.propagation.kernels.cpu import hash_votes
from glp_rapids.propagation.program import traits_of

settings = types.ModuleType("settings")
settings.sub = types.ModuleType("sub")
settings.f = njit(lambda x: 2 * x + 1)


def helper(value, by=3):
    return value * by - 1


GRAPHS = [
    glp_rapids.as_graph(**graphs.edges(graphs.random_pairs(n, m, seed)), device="cpu")
    for n, m, seed in ((2, 3, 0), (7, 12, 1), (13, 30, 2), (24, 60, 3))
]
FUNCTIONS = {
    "pick_label": ("v, sweep, state", ("v", "sweep", "state.labels[v]")),
    "load_neighbor": ("v, u, weight, state", ("v", "u", "weight", "state.labels[u]")),
    "label_score": ("v, label, freq, state", ("v", "label", "label")),
    "update_vertex": ("v, label, score, state", ("v", "label", "state.labels[v]")),
}
CONSTANTS = (
    "2", "5", "state.k0", "state.k1", "state.sweep", "settings.K", "settings.T[0]",
    "int(settings.ARR[1])", "settings.sub.K", "ENCLOSED", "TABLE[state.k2 % 4]",
    "state.mass[{v}]", "state.count[{v}]",
)  # fmt: skip
RAISES = (
    "if {e} % 3 == 7:\n        raise ValueError('no')",
    "assert {e} != 12345, 'no'",
    "n = WEIGHTS[{e} % 5]",
    "n = [1, 2][{e} % 2]",
    "for n in range(0, 3, {e}):\n        n += 1",
    "n = {e} ** {e}",
)


class Grammar:
    """Draw the text of a program."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def number(self, names, depth=3):
        """Draw an expression of whole numbers, below 2**40 whatever the numbers in it."""
        draw = self.random
        if depth == 0 or draw.random() < 0.25:
            return draw.choice([*names, draw.choice(CONSTANTS).format(v=names[0])])
        one, other = self.number(names, depth - 1), self.number(names, depth - 1)
        return draw.choice([
            f"({one} + {other})", f"({one} - {other})", f"({one} % 97 * ({other} % 89))",
            f"({one} // (1 + abs({other})))", f"min({one}, {other})", f"max({one}, {other})",
            f"abs({one})", f"({one} if {other} % 3 == 1 else {other})", f"({one} & {other})",
            f"helper({one} % 1000)", f"settings.f({one} % 1000)", f"({one} % (1 + abs({other})))",
        ])  # fmt: skip

    def label(self, names):
        """Draw a label: mostly of a vertex, sometimes silence, out of range as `state` has it."""
        anything = f"{self.number(names)} % (state.n + state.beyond) - state.below"
        return self.random.choice([names[-1], names[-1], anything])

    def body(self, name):
        """Draw the body of a function."""
        draw, names = self.random, FUNCTIONS[name][1]
        if name == "pick_label":
            return f"return {self.label(names)}"
        if name == "load_neighbor":
            amount = draw.choice([
                "weight", f"1 + abs({self.number(names)}) % 9",
                f"state.huge if {self.number(names)} % 5 == 1 else {self.number(names)} % 9",
                f"0.25 * ({self.number(names)} % 64)",
                f"state.bad if {self.number(names)} % 7 == 1 else 0.5 * ({self.number(names)} % 9)",
            ])  # fmt: skip
            return f"return {self.label(names)}, {amount}"
        if name == "label_score":
            return draw.choice([
                f"return freq + {self.number(names)} % 5",
                f"return freq * 0.5 - {self.number(names)} % 9 / 4",
                f"return state.bad if {self.number(names)} % 5 == 1 else freq / 3.0",
                f"return freq / ({self.number(names)} % 3 + state.tenth)",
            ])  # fmt: skip
        # What it writes itself wraps around in 32 bits, as NumPy's arrays do.
        label = self.label(names).replace("state.beyond", "min(state.beyond, 1000)")
        write = f"state.count[v] += 1\n    state.labels[v] = {label}"
        return draw.choice([write, f"if score > 0:\n        {write.replace('    ', '        ')}"])

    def program(self):
        """Draw a program: its text, and whether it holds what is to be refused."""
        draw = self.random
        chosen = draw.sample(sorted(FUNCTIONS), draw.randint(1, 4))
        bodies = {name: self.body(name) for name in chosen}
        raising = draw.random() < 0.2
        if raising:
            name = draw.choice(chosen)
            text = draw.choice(RAISES).replace("{e}", self.number(FUNCTIONS[name][1][:1], 1))
            bodies[name] = f"{text}\n    {bodies[name]}"
        text = "".join(
            f"def {name}({FUNCTIONS[name][0]}):\n    {body}\n" for name, body in bodies.items()
        )
        return text, chosen, raising


def enclosed_in(text, chosen, value):
    """Give the functions of a program's text, closed over a number."""
    places = {
        **vars(sys.modules[__name__]), "WEIGHTS": (0.5, 1.5, 2.5), "TABLE": np.array([3, 1, 4, 1]),
    }  # fmt: skip
    inner = "".join(f"    {line}\n" for line in text.splitlines())
    exec(f"def make(ENCLOSED):\n{inner}    return {', '.join(chosen)},", places)
    return dict(zip(chosen, places["make"](value), strict=True))


def program_of(functions, draw):
    """Make a program of functions, and of numbers drawn for its state."""
    numbers = {
        **{f"k{i}": draw.choice([0, 1, 3, 10, -7, 1000, draw.randrange(100)]) for i in range(3)},
        "beyond": draw.choice([0, 0, 0, 0, 1, 1000, 2**33]),
        "below": draw.choice([0, 0, 1, 2, 2**20]),
        "huge": draw.choice([1, 5, 2**40, 2**58, 2**62, -(2**62), -(2**63)]),
        "bad": draw.choice([1.0, 2.5, -3.0, math.nan, math.inf, -math.inf, 1025.0, 1e300]),
        "tenth": draw.choice([0.1, 0.5, 10.0]),
    }

    class Mine(glp_rapids.Program):
        count_volumes = False

        def initial_state(self, graph):
            n = graph.number_of_vertices
            arrays = {"mass": np.arange(n) % 5, "count": np.zeros(n, np.int64)}
            return {**arrays, **numbers, "n": n}

    for name, function in functions.items():
        setattr(Mine, name, staticmethod(function))
    return Mine()


def outcome(program, graph, options):
    """Run a program; give what came out of it, or the error in the words of the reference."""
    try:
        result = glp_rapids.propagate(graph, program, tol=0.0, **options)
    except ValueError as error:
        return said(str(error))
    except TypeError as error:  # from here on it has to be expected
        return str(re.fullmatch(r"Mine\.\w+ may raise .*", str(error))[0])
    return result["partition"].tolist(), result.attrs["glp"]["changed"]


def said(message):
    """Take an error apart: (sweep, vertex, what was wrong)."""
    found = re.search(r" in sweep (\d+), at vertex (\d+)[;:]", message)
    kind = "amount" if "returned an amount" in message else (
        "heard" if "load_neighbor returned a label" in message else "said"
    )  # fmt: skip
    return int(found[1]), int(found[2]), kind


def expected(program, graph, options):
    """Do the same in plain Python."""
    traits, limit = traits_of(program, weighted=False), None
    if not traits.default_load:
        u = program.load_neighbor(0, 0, 1, twin_state(program, graph))[1]
        largest_degree = int(graph.degree.max())
        limit = 1024.0 if isinstance(u, float) else 2.0**62 / largest_degree
    try:
        state, changed = interpreted(program, graph, limit=limit, **options)
    except Failed as failed:
        sweep, place, kind = failed.args
        return sweep, int(graph.external()[place]), kind
    return reference.renumbered(state.labels.tolist()), changed


def twin_state(program, graph):
    """Give the state as a function sees it before the first sweep."""
    labels = np.arange(graph.number_of_vertices)
    return types.SimpleNamespace(labels=labels, sweep=0, seed=0, **program.initial_state(graph))


def main(first, sources, draws):
    ended = collections.Counter()
    for seed in range(first, first + sources):
        text, chosen, raising = Grammar(seed).program()
        draw = random.Random(-seed - 1)
        threads = 2 if seed % 4 == 1 else 1
        hash_votes.threads_for = lambda _, threads=threads: threads
        for number in range(1 if raising else draws):
            if number % (draws // 2 + 1) == 0:  # the module changes, and what was compiled with it
                settings.K, settings.T = draw.randrange(-9, 9), (draw.randrange(9), "text")
                settings.ARR, settings.sub.K = np.arange(3.0) * draw.randrange(9), draw.randrange(9)
                functions = enclosed_in(text, chosen, draw.randrange(-9, 9))
            program, graph = program_of(functions, draw), draw.choice(GRAPHS)
            options = {
                "max_iter": draw.choice([1, 2, 5]), "explore": draw.choice([0, 0, 2]),
                "classes": draw.choice([1, 3, 32]), "tie_break": draw.choice(["min", "max"]),
                "seed": draw.randrange(99),
            }  # fmt: skip
            print(f"source {seed}, draw {number}", file=sys.stderr, flush=True)
            found = outcome(program, graph, options)
            if raising and isinstance(found, str):
                ended["refused"] += 1
                continue
            with np.errstate(all="ignore"):
                right = expected(program, graph, options)
            assert found == right, f"{seed} {number}: {found} is not {right} {options}\n{text}"
            ended["error" if isinstance(right[0], int) else "labels"] += 1
    print(dict(ended))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
