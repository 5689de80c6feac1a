"""Threads, forked and fresh processes, and interrupts: nothing hangs, dies or comes out different.

GLP_RAPIDS_MANY=1 runs 16 threads or processes with 50 calls each in the place of a few.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import exhaustive

import glp_rapids
from glp_rapids import compression
from glp_rapids.common.cached_property import cached_property
from glp_rapids.ingest.webgraph import read
from glp_rapids.jit import interrupts
from glp_rapids.propagation.engines import cpu

MANY = bool(os.environ.get("GLP_RAPIDS_MANY"))
HERE = Path(__file__).parent


def run(*arguments, limit=120, **environment):
    """Run the script to its end; if it hangs, end it and all that it started."""
    limit = 3600 if MANY else limit
    process = subprocess.Popen(
        [sys.executable, HERE / "many_calls.py", *map(str, arguments)],
        env={**os.environ, "NUMBA_NUM_THREADS": "2", **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGUSR1)  # who waits, and where
        time.sleep(2)
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail(f"{arguments} went on for more than {limit} s: {process.communicate()[1]}")
    assert process.returncode == 0, (process.returncode, errors[-2000:])
    return output


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("kind", ["fork", "fork_of_a_fork", "cold_fork", "fork_amid_threads"])
def test_forked_processes(kind):
    assert "as expected" in run(kind, *((8, 50) if MANY else (2, 5)))


@pytest.mark.parametrize("layer", ["omp", "workqueue"])
def test_threads(layer):
    found = run("threads", *((16, 50) if MANY else (8, 5)), NUMBA_THREADING_LAYER=layer)
    assert "5 as expected" in found


@pytest.mark.skipif(not MANY, reason="compiles everything many times; GLP_RAPIDS_MANY=1")
def test_threads_forks_and_fresh_processes_on_one_cold_cache(tmp_path):
    assert "as expected" in run("everything", 8, 50, NUMBA_CACHE_DIR=str(tmp_path))
    assert not [*tmp_path.rglob("*.tmp.*")]


@pytest.mark.parametrize(
    "names",
    [("trussness", "items"), *exhaustive((("sweeps", "every truss", "best", "egos"),))],
    ids=", ".join,
)
def test_a_ctrl_c_need_not_wait_for_the_end(names):
    lines = run("ctrl_c", *names).splitlines()
    assert len(lines) == len(names)
    for line in lines:
        assert float(line.split()[-1]) < 10, line  # of minutes; on a busy machine


def small_calls(monkeypatch):
    for module in (interrupts, cpu, compression, read):
        monkeypatch.setattr(module, "A_CALL", 256)


@pytest.mark.parametrize("options", [{}, {"update": "sync"}, {"classes": 2, "explore": 0}])
def test_what_is_done_in_parts_comes_out_the_same(monkeypatch, options):
    ends = np.random.default_rng(1).integers(0, 900, (4000, 2))
    edges = pd.DataFrame({"src": ends[:, 0] ** 2 // 900, "dst": ends[:, 1], "w": 1.5})

    def results():
        found = []
        for kind in ({}, {"directed": True}, {"weight": "w"}):
            graph = glp_rapids.as_graph(edges, device="cpu", **kind)
            found += [graph.transpose().indices, graph.transpose().indptr, graph.weights]
            found.append(glp_rapids.label_propagation(graph, **options))
            found.append(glp_rapids.layered_label_propagation(graph, gammas=[1], **options))
            found.append(compression.breadth_first(graph))
        return [np.asarray(one, dtype=object) for one in found]

    whole = results()
    small_calls(monkeypatch)
    for one, other in zip(results(), whole, strict=True):
        assert np.array_equal(one, other)


FORK_AMID_AN_IMPORT = """
import multiprocessing, sys, threading, time
import glp_rapids

def load():
    import slow_module

def answer(results):
    import slow_module
    results.put(slow_module.answer)

if __name__ == "__main__":
    thread = threading.Thread(target=load)
    thread.start()
    while "slow_module" not in sys.modules:
        time.sleep(0.001)
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    child = context.Process(target=answer, args=(results,))
    child.start()
    print(results.get())
    child.join()
    thread.join()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_module_may_fork_while_it_is_imported(tmp_path):
    (tmp_path / "forks.py").write_text(
        "import os\nimport glp_rapids\n"
        "if child := os.fork():\n    os.waitpid(child, 0)\n    print('back')\n"
        "else:\n    os._exit(0)\n"
    )
    path = os.pathsep.join([str(HERE.parent), str(tmp_path), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        [sys.executable, "-c", "import forks"], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert found.stdout == "back\n"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_waits_for_what_another_thread_imports(tmp_path):
    (tmp_path / "slow_module.py").write_text("import time\ntime.sleep(0.5)\nanswer = 42\n")
    (tmp_path / "script.py").write_text(FORK_AMID_AN_IMPORT)
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        [sys.executable, "-W", "ignore", tmp_path / "script.py"],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert found.stdout == "42\n"


FORK_AMID_CALLS_OF_LLVM = """
import os, threading
import glp_rapids.jit.parallel
from llvmlite import binding

def call():
    binding.parse_assembly("define i32 @f() { ret i32 1 }")

def busy():
    while True:
        call()

threading.Thread(target=busy, daemon=True).start()
for _ in range(20):
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0
    else:
        call()
        os._exit(0)
print("back")
"""

FORK_AMID_A_PROPERTY = """
import os, threading, time
from glp_rapids.common.cached_property import cached_property

class Slow:
    @cached_property
    def value(self):
        entered.set()
        over.wait()
        return 42

entered, over = threading.Event(), threading.Event()
thread = threading.Thread(target=lambda: Slow().value)
thread.start()
entered.wait()
time.sleep(0.1)  # it waits, and holds no lock of the event
child = os.fork()
over.set()
if child:
    assert os.waitpid(child, 0)[1] == 0
    thread.join()
    print("back")
else:
    assert Slow().value == 42
    os._exit(0)
"""

FORK_AMID_MANY_IMPORTS = """
import importlib, importlib.util, os, random, sys, threading, time
import glp_rapids

class Loader:
    def find_spec(self, name, path=None, target=None):
        return importlib.util.spec_from_loader(name, self) if name.startswith("made_") else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        time.sleep(1e-4)  # others run meanwhile
        module.answer = 42

def busy(of):
    for number in range(1 << 30):
        at[of] = number
        importlib.import_module(f"made_{of}_{number}")
        time.sleep(random.random() * 1e-3)

sys.meta_path.append(Loader())
sys.setswitchinterval(1e-5)
at = [0, 0]
for of in range(2):
    threading.Thread(target=busy, args=(of,), daemon=True).start()
for _ in range(300):
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0
    else:
        for of in range(2):
            for number in range(at[of] - 1, at[of] + 2):
                assert importlib.import_module(f"made_{of}_{number}").answer == 42
        os._exit(0)
print("back")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize(
    "script", [FORK_AMID_MANY_IMPORTS, FORK_AMID_CALLS_OF_LLVM, FORK_AMID_A_PROPERTY]
)
def test_a_fork_leaves_no_lock_behind(script):
    path = os.pathsep.join([str(HERE.parent), os.environ.get("PYTHONPATH", "")])
    found = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert found.stdout == "back\n"


def test_a_cached_property_is_computed_once_an_object():
    class Counted:
        calls = 0

        @cached_property
        def value(self):
            """What it is."""
            self.calls += 1
            return [self.calls]

    one, other = Counted(), Counted()
    assert one.value is one.value
    assert (one.value, other.value) == ([1], [1])
    assert one.value is not other.value
    assert Counted.value.__doc__ == "What it is."
