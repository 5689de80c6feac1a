"""Programs do what their Python does, and are compiled again only where something changed."""

import json
import math
import os
import subprocess
import sys

import graphs
import numpy as np
import pandas as pd
import pytest
import reference
from cases import exhaustive
from graphs import TRIANGLES
from reference_program import interpreted

from glp_rapids import Program, as_graph, label_propagation, propagate, random_below
from glp_rapids.device import array_module, module_on, to_host
from glp_rapids.jit.target import cpu_target
from glp_rapids.propagation.compile_program import compile_program
from glp_rapids.propagation.options import Options
from glp_rapids.propagation.program import traits_of
from glp_rapids.propagation.run import run
from glp_rapids.propagation.variants.speaker_listener import SpeakerListener

OPTIONS = [
    {},
    {"explore": 0, "update": "sync", "retain": False, "direction": "out"},
    {"explore": 3, "classes": 4, "tie_break": "max", "seed": 9, "direction": "both"},
]


def assert_as_interpreted(program, edges, device, **options):
    graph = as_graph(**edges, device="cpu")
    with np.errstate(over="ignore"):  # the hash of random_below wraps around
        state, changed = interpreted(program, graph, **options)
    result = propagate(
        **edges, program=program, device=device, **{"tol": 0.0, "max_iter": 20, **options}
    )
    assert result["partition"].tolist() == reference.renumbered(state.labels.tolist()), options
    assert result.attrs["glp"]["changed"] == changed, options
    for name in program.result_columns:
        np.testing.assert_array_equal(result[name].to_numpy(), getattr(state, name))
    return result


# ---------------------------------------------------------------- what a program may say


FACTOR = 0.25
PENALTY = 3


def squared(value):
    return value * value


def worth(votes, label):
    total = squared(votes) + PENALTY
    for bit in range(3):
        if label >> bit & 1:
            total -= bit
    return total


class WithHelpers(Program):
    def label_score(v, label, freq, state):
        return -worth(freq, label)


class RealScore(Program):
    def label_score(v, label, freq, state):
        return math.nan if label % 5 == 4 else FACTOR * freq - (label % 7) / 3.0


class IntegerAmounts(Program):
    skip_inactive = True

    def load_neighbor(v, u, weight, state):
        return state.labels[u], weight * (u % 4 - 1)


class RealAmounts(Program):
    def load_neighbor(v, u, weight, state):
        return min(state.labels[u], u), weight * 0.5 * (u % 4)


class Crowded(Program):
    count_volumes = True

    def label_score(v, label, freq, state):
        return 10 * freq - state.volume[label]


class Remembers(Program):
    """Count how often every vertex was told each of some kinds of label."""

    result_columns = ("best", "evaluated")

    def __init__(self, kinds):
        self.kinds = kinds

    def initial_state(self, graph):
        n = graph.number_of_vertices
        xp = array_module(graph.indptr)
        self.given = {
            "heard": xp.zeros((n, self.kinds), dtype=np.int32),
            "best": xp.full(n, -1.0),
            "evaluated": xp.zeros(n, dtype=np.int64),
            "labels": xp.arange(n, dtype=np.int32),
        }
        return {**self.given, "kinds": self.kinds, "limit": 4.5}

    def update_vertex(v, label, score, state):
        state.heard[v, label % state.kinds] += 1
        state.evaluated[v] += 1
        state.best[v] = max(state.best[v], score)
        if state.heard[v, label % state.kinds] < state.limit:
            state.labels[v] = label


class Speaks(Program):
    """Say something else than one holds, or nothing."""

    result_columns = ("held",)

    def initial_state(self, graph):
        return {"held": array_module(graph.indptr).arange(graph.number_of_vertices)}

    def pick_label(v, sweep, state):
        if (v % 4 == 3 and sweep < 2) or (v % 4 == 1 and sweep > 3):
            return -1
        return state.held[v] // (1 + random_below(v, sweep, state.seed, 2))

    def update_vertex(v, label, score, state):
        if label < state.held[v]:
            state.held[v] = label


PROGRAMS = (
    WithHelpers(), RealScore(), IntegerAmounts(), Remembers(3), Speaks(),
    *exhaustive(RealAmounts(), Crowded(), Remembers(2)),
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: type(program).__name__)
def test_programs_do_what_their_python_does(program, device):
    for name in ("random", "directed", "self-loops", "isolated", "power law"):
        for options in OPTIONS[:2] if name == "power law" else OPTIONS:
            assert_as_interpreted(program, graphs.GRAPHS[name](), device, **options)


@pytest.mark.parametrize(
    ("program", "name"),
    [(RealAmounts(), "weighted"), *exhaustive((IntegerAmounts(), "integer weights"))],
)
def test_programs_on_weights(program, name, device):
    for options in OPTIONS:
        assert_as_interpreted(program, graphs.GRAPHS[name](), device, **options)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: type(program).__name__)
def test_skipping_is_only_done_where_it_is_exact(program, device):
    edges = graphs.GRAPHS["random"]()
    with_, without = (
        propagate(**edges, program=program, device=device, skip_inactive=skip, tol=0.0, max_iter=20)
        for skip in (True, False)
    )
    pd.testing.assert_frame_equal(with_, without)
    assert traits_of(program, weighted=False).skip_inactive == isinstance(program, IntegerAmounts)


def test_state_given_is_not_written_to(device):
    program = Remembers(3)
    result = propagate(**TRIANGLES, program=program, device=device)
    assert (result["evaluated"] > 0).all()
    assert not program.given["heard"].any()
    assert not program.given["evaluated"].any()
    assert program.given["labels"].tolist() == list(range(6))


def test_silent_vertices_have_no_partition(device):
    edges = graphs.edges([("a", "b"), ("b", "c")], vertices=["x", "y"])

    class OnlyOne(Program):
        def initial_state(self, graph):
            index = array_module(graph.indptr).arange(graph.number_of_vertices)
            return {"labels": (index == 0) * 1 - 1}

    numbered = propagate(**edges, program=OnlyOne(), device=device)
    assert numbered["partition"].tolist() == [0, 0, 0, -1, -1]
    named = propagate(**edges, program=OnlyOne(), device=device, renumber=False)
    assert named["partition"].tolist()[:3] == ["a", "a", "a"]
    assert named["partition"].isna().tolist() == [False, False, False, True, True]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, np.int32, "Int64"])
def test_whole_numbers_stay_such_beside_silent_vertices(dtype, device):
    class OnlyLast(Program):
        def initial_state(self, graph):
            index = array_module(graph.indptr).arange(graph.number_of_vertices)
            return {"labels": (index == 2) * 4 - 1}

    largest = 2**31 - 1 if dtype is np.int32 else 2**60 + 3
    source, destination = (pd.Series(ids, dtype=dtype) for ids in ([5, 6], [7, largest]))
    named = propagate(
        pd.DataFrame({"src": source, "dst": destination}), OnlyLast(), device=device,
        renumber=False, max_iter=0,
    )  # fmt: skip
    assert str(named["partition"].dtype).lower() == np.dtype(str(source.dtype).lower()).name
    assert named["partition"].isna().tolist() == [True, True, False, True]
    assert named["partition"].iloc[2] == largest


def test_a_changed_constant_of_the_module_counts(monkeypatch, device):
    edges = graphs.GRAPHS["random"]()
    assert_as_interpreted(RealScore(), edges, device)
    before = propagate(**edges, program=RealScore(), device=device)
    monkeypatch.setitem(globals(), "FACTOR", -2.0)
    after = assert_as_interpreted(RealScore(), edges, device)
    assert before["partition"].tolist() != after["partition"].tolist()


def test_an_empty_graph_runs_nothing(device):
    result = propagate(**graphs.GRAPHS["empty"](), program=Remembers(3), device=device)
    assert list(result.columns) == ["vertex", "partition", "best", "evaluated"]
    assert len(result) == 0
    assert result["best"].dtype == np.float64


# ---------------------------------------------------------------- compiled once, kept on disk


def test_a_program_is_compiled_again_only_where_something_changed(monkeypatch):
    fields = {"labels": np.empty(0, np.int32), "sweep": np.int64(0), "seed": np.int64(0)}

    def compiled(program, weights=None, **further):
        return compile_program(program, cpu_target(), {**fields, **further}, weights)

    first = compiled(RealScore())
    assert compiled(RealScore()) is first
    others = [
        compiled(RealScore(), np.ones(1)),
        compiled(RealScore(), np.ones(1, np.int64)),
        compiled(RealScore(), trust=np.empty(0)),
        compiled(RealScore(), labels=np.empty(0, np.int64)),
    ]
    monkeypatch.setattr(RealScore, "skip_inactive", True)
    others.append(compiled(RealScore()))
    monkeypatch.undo()
    monkeypatch.setitem(globals(), "FACTOR", -2.0)
    others.append(compiled(RealScore()))
    assert len({one.digest for one in [first, *others]}) == 7
    monkeypatch.undo()
    assert compiled(RealScore()) is first


RUN_TWICE = """
import json, sys
import pandas as pd
import glp_rapids
from glp_rapids.propagation import compile_program as compilation
from glp_rapids.propagation.kernels.cpu import hash_votes as cpu

STEP = 2

class Mine(glp_rapids.Program):
    def label_score(v, label, freq, state):
        return freq * freq + label % STEP

checks = []
check = compilation._check
compilation._check = lambda *given: checks.append(1) or check(*given)
edges = pd.DataFrame({"src": [0, 0, 1, 3], "dst": [1, 2, 2, 2]})
partitions = [
    glp_rapids.propagate(edges, Mine(), device="cpu")["partition"].tolist(),
    glp_rapids.speaker_listener(edges, device="cpu")["partition"].tolist(),
]
stats = [kernel.compiled.stats for kernel in cpu.sweep_kernel.built.values()]
hits = sum(sum(one.cache_hits.values()) for one in stats)
misses = sum(sum(one.cache_misses.values()) for one in stats)
json.dump([partitions, hits, misses, sum(checks)], sys.stdout)
"""


@pytest.mark.exhaustive
def test_a_second_process_compiles_nothing(tmp_path):
    folder = tmp_path / "cache"
    script = tmp_path / "script.py"
    script.write_text(RUN_TWICE)

    def run(*command):
        output = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, check=True,
            env={**os.environ, "NUMBA_CACHE_DIR": str(folder)}, cwd=tmp_path,
        )  # fmt: skip
        files = {file: file.stat().st_mtime_ns for file in folder.rglob("*.nb?")}
        return json.loads(output.stdout), files

    (partitions, hits, misses, checks), files = run(script)
    # of the built-in program the code may have come with the package
    assert hits + misses == checks == 2
    assert misses >= 1
    assert files
    # The same program without a file, as in a notebook, is the same program.
    for command in ([script], ["-c", RUN_TWICE]):
        again, files_again = run(*command)
        assert again == [partitions, 2, 0, 0]
        assert files_again == files


# ---------------------------------------------------------------- how many sweeps there are


class Listens(Program):
    """SLPA as a user would write it."""

    all_sweeps = True
    result_columns = ("heard",)

    def __init__(self, sweeps):
        self.sweeps = sweeps

    def initial_state(self, graph):
        xp, n = module_on(graph.device), graph.number_of_vertices
        memory = xp.full((n, self.sweeps + 1), -1, np.int32)
        memory[:, 0] = xp.arange(n)
        return {"memory": memory, "heard": xp.ones(n, np.int32)}

    def pick_label(v, sweep, state):
        return state.memory[v, random_below(v, sweep, state.seed, state.heard[v])]

    def update_vertex(v, label, score, state):
        state.memory[v, state.heard[v]] = label
        state.heard[v] += 1


@pytest.mark.parametrize("name", ["empty", "only isolated", "one edge", "power law"])
def test_a_program_may_ask_for_all_sweeps(name, device):
    graph = as_graph(**graphs.GRAPHS[name](), device=device)
    options = Options(explore=12, max_iter=12, seed=3)
    mine, built_in = (run(graph, kind(12), options) for kind in (Listens, SpeakerListener))
    assert to_host(mine.state["memory"]).tolist() == to_host(built_in.state["memory"]).tolist()
    assert mine.report["changed"] == built_in.report["changed"]
    found = propagate(graph, Listens(12), explore=12, max_iter=12, seed=3)
    assert found["heard"].tolist() == to_host(built_in.state["heard"]).tolist()
    assert found.attrs["glp"]["sweeps"] == (12 if graph.number_of_vertices else 0)


class Patient(Program):
    all_sweeps = True


def test_all_sweeps_are_made_when_nothing_changes_any_more(device):
    usual = label_propagation(**TRIANGLES, device=device)
    found = propagate(**TRIANGLES, program=Patient(), max_iter=30, explore=4, device=device)
    assert found["partition"].tolist() == usual["partition"].tolist()
    report = found.attrs["glp"]
    assert (report["sweeps"], report["explored"]) == (30, 4)
    assert report["changed"][-1] == 0
    assert report["converged"]
    exploring = propagate(**TRIANGLES, program=Patient(), max_iter=5, explore=9, device=device)
    assert exploring.attrs["glp"]["explored"] == 5
    assert not exploring.attrs["glp"]["converged"]
