"""Code that several processes kept on disk, loaded together by another."""

import os
import subprocess
import sys

# Two kernels whose inner functions have one name, each kept under a digest of its own.
SCRIPT = """
import sys
from numba import njit
from glp_rapids.jit.target import DigestCache

def build(number):
    @njit
    def inner(x):  # calls itself, so it stays a function
        return number if x < 2 else inner(x - 1) + inner(x - 2) + number
    def outer(x):
        return inner(x)
    kernel = njit(outer)
    kernel._cache = DigestCache(outer, f"test {number}")
    return kernel

print([build(int(number))(4) for number in sys.argv[1:]])
"""


def test_functions_of_one_name_stay_apart(tmp_path):
    (tmp_path / "kernels.py").write_text(SCRIPT)
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for numbers, expected in ((["1"], [9]), (["10"], [90]), (["1", "10"], [9, 90])):
        found = subprocess.run(
            [sys.executable, tmp_path / "kernels.py", *numbers],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert found.stdout.strip() == str(expected)
    assert len(list(tmp_path.rglob("*.nbc"))) == 2
