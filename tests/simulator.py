"""Numba's simulator of CUDA, for kernels without warp intrinsics."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def simulated(script, *arguments):
    """Run a script of this folder in a process whose kernels are simulated; what it prints."""
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(HERE.parent), environment.get("PYTHONPATH", "")]
    )
    done = subprocess.run(
        [sys.executable, HERE / script, *map(str, arguments)], env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    return done.stdout.strip()
