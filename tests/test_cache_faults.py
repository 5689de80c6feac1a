"""Compiled code that cannot be kept, or read again: one warning, and the same result."""

import errno
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import glp_rapids
from glp_rapids.jit import cache
from glp_rapids.jit.target import DigestCache

# A kernel of each kind: sequential, parallel, of a program, and what was learned of a program.
SCRIPT = """
import warnings
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import numpy as np, pandas as pd
    import glp_rapids
    ends = np.random.default_rng(1).integers(0, 50, (200, 2))
    graph = glp_rapids.as_graph(pd.DataFrame(ends, columns=["src", "dst"]), device="cpu")
    class Own(glp_rapids.Program):
        @staticmethod
        def label_score(v, label, freq, state):
            return freq * 2.0
    found = glp_rapids.propagate(graph, Own())
assert glp_rapids.__file__.startswith({package!r}), glp_rapids.__file__
print(int(found["partition"].sum()), [str(one.message) for one in said])
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A copy of the package without anything compiled."""
    folder = tmp_path_factory.mktemp("installed")
    source = Path(glp_rapids.__file__).parent
    shutil.copytree(source, folder / "glp_rapids", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def run(package, tmp_path, **environment):
    """Run the script with that package; give what it printed: a sum and the warnings."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.format(package=str(package)))
    known = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    path = os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-B", script], capture_output=True, text=True, timeout=120,
        env={**known, "PYTHONPATH": path, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    total, said = done.stdout.split(" ", 1)
    return int(total), eval(said)


@pytest.mark.exhaustive
def test_an_install_that_cannot_be_written_without_a_home(package, tmp_path):
    # a file in the place of each folder stops root too, whom no mode stops
    folders = [folder for folder in (package / "glp_rapids").rglob("*") if folder.is_dir()]
    for folder in [package / "glp_rapids", *folders]:
        (folder / "__pycache__").touch()
    home = tmp_path / "home"
    home.touch()
    nowhere = {"HOME": str(home), "XDG_CACHE_HOME": str(home / "cache")}
    total, said = run(package, tmp_path, **nowhere)
    assert len(said) == 1
    assert "NUMBA_CACHE_DIR" in said[0]
    folder = tmp_path / "cache"
    assert run(package, tmp_path, **nowhere, NUMBA_CACHE_DIR=str(folder)) == (total, [])
    assert [*folder.rglob("*.nbc")]
    # a file of every kind is damaged in its own way, and mended
    ways = [b"", b"garbage" * 100, None]
    for number, file in enumerate(sorted(folder.rglob("*.nbc"))):
        way = ways[number % 3]
        file.write_bytes(file.read_bytes()[:-50] if way is None else way)
    mended, said = run(package, tmp_path, **nowhere, NUMBA_CACHE_DIR=str(folder))
    assert mended == total
    assert len(said) == 1
    assert "damaged" in said[0]
    assert run(package, tmp_path, **nowhere, NUMBA_CACHE_DIR=str(folder)) == (total, [])


@pytest.fixture
def unsaid(monkeypatch):
    monkeypatch.setattr(cache, "_complaint", [])


def kept(number):
    def function(x):
        return x + number

    compiled = njit(function)
    return cache.keep_on_disk(compiled, DigestCache, function, f"a fault {number}")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr("numba.core.config.CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_a_disk_that_is_full(folder, unsaid, monkeypatch):
    def full(path, content):
        path.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.warns(RuntimeWarning, match="No space left on device.*NUMBA_CACHE_DIR"):
        assert kept(1)(1) == 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert kept(2)(1) == 3  # it is said once
    assert not [file for file in folder.rglob("*") if file.is_file()]


@pytest.mark.parametrize("damage", [b"", b"\x80", b"\0" * 4096, "cut", "folder"])
def test_a_file_that_is_damaged(folder, unsaid, damage):
    assert kept(3)(1) == 4
    (file,) = folder.rglob("*.nbc")
    content = file.read_bytes()
    if damage == "folder":
        file.unlink()
        file.mkdir()
    else:
        file.write_bytes(content[: len(content) // 2] if damage == "cut" else damage)
    with pytest.warns(RuntimeWarning, match="damaged|Is a directory"):
        assert kept(3)(1) == 4
    if damage != "folder":
        again = kept(3)
        assert again(1) == 4
        assert again.stats.cache_hits  # mended


def test_signatures_have_files_of_their_own(folder):
    one = kept(4)
    one(1), one(1.5), one(np.float32(1))
    assert len([*folder.rglob("*.nbc")]) == 3
    other = kept(4)
    assert (other(1), other(1.5)) == (5, 5.5)
    assert sum(other.stats.cache_hits.values()) == 2
