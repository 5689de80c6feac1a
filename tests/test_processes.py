"""Threads, forked and fresh processes, and interrupts: nothing hangs, dies or comes out different.

GLP_RAPIDS_MANY=1 runs 16 threads or processes with 50 calls each in the place of a few.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

MANY = bool(os.environ.get("GLP_RAPIDS_MANY"))
HERE = Path(__file__).parent


def run(*arguments, limit=120, **environment):
    """Run the script to its end; if it hangs, end it and all that it started."""
    process = subprocess.Popen(
        [sys.executable, HERE / "many_calls.py", *map(str, arguments)],
        env={**os.environ, "NUMBA_NUM_THREADS": "2", **environment},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        output, errors = process.communicate(timeout=3600 if MANY else limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        pytest.fail(f"{arguments} went on for more than {limit} s: {process.communicate()[1]}")
    assert process.returncode == 0, (process.returncode, errors[-2000:])
    return output


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("kind", ["fork", "fork_of_a_fork", "cold_fork", "fork_amid_threads"])
def test_forked_processes(kind):
    assert "as expected" in run(kind, *((8, 50) if MANY else (3, 5)))


@pytest.mark.parametrize("layer", ["omp", "workqueue"])
def test_threads(layer):
    found = run("threads", *((16, 50) if MANY else (8, 5)), NUMBA_THREADING_LAYER=layer)
    assert "5 as expected" in found


@pytest.mark.skipif(not MANY, reason="compiles everything many times; GLP_RAPIDS_MANY=1")
def test_threads_forks_and_fresh_processes_on_one_cold_cache(tmp_path):
    assert "as expected" in run("everything", 8, 50, NUMBA_CACHE_DIR=str(tmp_path))
    assert not [*tmp_path.rglob("*.tmp.*")]


@pytest.mark.parametrize("kind", ["trussness", "every truss", "best", "egos", "sweeps"])
def test_a_ctrl_c_need_not_wait_for_the_end(kind):
    seconds = float(run(f"ctrl_c {kind}", 1200).removeprefix("seconds"))
    assert seconds < (5 if os.environ.get("CI") else 2)
