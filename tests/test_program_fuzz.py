"""Random programs, drawn from a grammar: right labels or a clear error, as in plain Python.

GLP_RAPIDS_FUZZ_PROGRAMS=16 in the environment draws that many sources, each with 800 draws of its
numbers: some 10,000 programs.
"""

import ast
import os
import subprocess
import sys
from pathlib import Path

SOURCES = int(os.environ.get("GLP_RAPIDS_FUZZ_PROGRAMS", "0"))


def test_random_programs_do_what_their_python_does(tmp_path):
    sources, draws = (SOURCES, 800) if SOURCES else (1, 40)
    folder = Path(__file__).parent
    run = subprocess.run(
        [sys.executable, folder / "fuzz_programs.py", "0", str(sources), str(draws)],
        capture_output=True, text=True, cwd=folder, timeout=60 + 120 * sources,
        env={**os.environ, **({"NUMBA_CACHE_DIR": str(tmp_path)} if SOURCES else {}),
             "PYTHONPATH": os.pathsep.join([str(folder.parent), *sys.path])},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr[-3000:]
    ended = ast.literal_eval(run.stdout)
    assert ended["labels"] > draws // 2
    assert ended["error"] > 0
