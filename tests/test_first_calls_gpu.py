"""What a process compiles at first on a GPU: nothing with CUB, and no kernel that is in git."""

import os
import subprocess
import sys

import pytest

from glp_rapids.cli import ship

pytestmark = pytest.mark.gpu

# CuPy asks for each of its kernels here, once a process, whether its cache has it or not.
SCRIPT = """
import traceback
import cupy
import numpy as np, pandas as pd
from cupy.cuda import compiler
from numba import cuda
from numba.cuda import dispatcher

asked, ask = [], compiler._compile_module_with_cache


def noted(source, *arguments, **options):
    asked.append((source, "".join(traceback.format_stack(limit=12))))
    return ask(source, *arguments, **options)


compiler._compile_module_with_cache = noted
made, make = [], dispatcher._Kernel.__init__


def making(kernel, function, *arguments, **options):
    made.append(function.__name__)
    make(kernel, function, *arguments, **options)


dispatcher._Kernel.__init__ = making
import glp_rapids as lp
from glp_rapids import fraud
from glp_rapids.datasets import blacklist, fraud_rings, transactions

frame, truth = transactions(6_000, accounts=900, merchants=100, rings=4, towns=10)
seeds = blacklist(truth)
columns = {"source": "source", "destination": "destination", "device": "gpu"}
%s
assert asked, "CuPy compiles elsewhere now: mend this test"
slow = [stack for source, stack in asked if "cub/block" in source]
assert not slow, "\\n".join(slow)


@cuda.jit
def shipped_by_nobody(array):
    array[0] = 1


shipped_by_nobody[1, 1](cupy.zeros(1))
print("made", *made)
"""

CALLS = {
    "label_propagation":
        "lp.modularity(frame, lp.label_propagation(frame, **columns), **columns)",
    "seeded": "lp.seeded_label_propagation(frame, {int(one): 'bad' for one in seeds}, **columns)",
    "clusters": "fraud.find_clusters(frame, seeds, **columns)",
    "monitor": """
window = fraud.SlidingWindow(20, device="gpu")
watch = fraud.Monitor(window, seeds)
days = (frame["time"] - frame["time"].min()) // pd.Timedelta(days=8)
for _, batch in frame.groupby(days):
    watch.update(batch)
""",
    "bfs": "lp.bfs(lp.as_graph(frame, **columns), int(frame['source'].iloc[0]))",
    "diversity": "lp.structural_diversity(frame, 2, **columns)",
    "compressed":
        "lp.label_propagation(lp.compress(lp.as_graph(frame, **columns)))",
    "multilevel": "lp.multilevel_label_propagation(frame, **columns)",
    "contract": """
found = lp.label_propagation(frame, **columns)
lp.nmi(found, found)
lp.contract(lp.as_graph(frame, **columns), found)
""",
    "cohesion": "lp.core_number(frame, **columns), lp.triangle_count(frame, **columns)",
    "sssp": """
graph = lp.as_graph(frame, weight="amount", **columns)
lp.sssp(graph, int(frame["source"].iloc[0]))
""",
    "speakers": "lp.speaker_listener(frame, **columns)",
    "layers": "lp.layered_label_propagation(frame, gammas=[1], **columns)",
    "warm": """
found = lp.label_propagation(frame, tol=0, **{**columns, "device": "cpu"})
lp.label_propagation(frame, initial=found, touched=frame["source"][:2].tolist(), **columns)
""",
    "streamed": """
graph = lp.as_graph(frame, **{**columns, "device": "cpu"})
lp.label_propagation(graph, way="streamed plain", device="gpu")
""",
    "streamed packed": """
graph = lp.compress(frame, **{**columns, "device": "cpu"})
lp.label_propagation(graph, way="streamed packed", device="gpu")
""",
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_no_reduction_is_compiled_with_cub(call):
    done = subprocess.run([sys.executable, "-c", SCRIPT % call], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


# Names of kernels in git, by what launches them; `all_items` is the name of many.
IN_GIT = {
    "label_propagation": "classic", "clusters": "scores", "compressed": "packed",
    "seeded": "seeded", "speakers": "speaker-listener", "multilevel": "multilevel",
    "layers": "layered", "warm": "warm", "streamed": "streamed",
    "streamed packed": "streamed packed", "bfs": "breadth-first", "sssp": "shortest paths",
}  # fmt: skip


@pytest.mark.parametrize("call", IN_GIT)
def test_what_is_in_git_is_not_compiled(call, tmp_path):
    from glp_rapids.jit import shipped_kernels

    if not shipped_kernels.IN_GIT.is_dir():
        pytest.skip(f"git has no kernels of {shipped_kernels.IN_GIT.name}")
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT % CALLS[call]], capture_output=True, text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    made = set(done.stdout.splitlines()[-1].split()[1:])
    assert "shipped_by_nobody" in made
    launched = ship.launches(ship.KERNELS[IN_GIT[call]])
    assert not made & ({one.kernel.py_func.__name__ for one in launched} - {"all_items"})
