"""Code of a CPU that comes with the package: found, right, kept; stale and damaged code is not."""

import json
import lzma
import os
import pickle
import subprocess
import sys
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import config

from glp_rapids.cli import ship_cpu
from glp_rapids.jit import shipped_code
from glp_rapids.jit.cache import kept
from glp_rapids.propagation import results

ROOT = Path(__file__).parents[1]
MODULE = results.__name__
# What compiles in a process that does what `warmup` does: a program's functions, by themselves, to
# find out what they return.
PROGRAMS = "glp_rapids.propagation.variants."
COMPILED = """
import json
from numba.core import event

class Listener(event.Listener):
    found, depth = [], 0
    def on_start(self, one):
        function = one.data["dispatcher"].py_func
        if self.depth == 0:  # not called by another that is being compiled
            self.found.append(f"{function.__module__}.{function.__qualname__}")
        self.depth += 1
    def on_end(self, one):
        self.depth -= 1

event.register("numba:compile", Listener())
"""
WARMUP = """
from glp_rapids.cli.warmup import WORK
for work in WORK.values():
    work("cpu")
print(json.dumps(Listener.found))
"""


def values():
    return np.array([7, 3, -1, 7, 0, 3], np.int32), np.full(8, -1, np.int32)


def number(function):
    given, numbers = values()
    found = np.empty_like(given)
    return [function(given, numbers, 0, found), *found.tolist()]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder, an empty cache; give the folder."""
    monkeypatch.setattr(shipped_code, "FOLDER", tmp_path / "shipped")
    another_cache(monkeypatch, tmp_path / "cache")
    return tmp_path / "shipped"


def another_cache(monkeypatch, path):
    monkeypatch.setattr(config, "CACHE_DIR", str(path))
    shipped_code.entries_of.cache_clear()


def fresh():
    """Give a function that compiles in a moment, as another process has it."""
    return kept(results._number.py_func)


def ship():
    with shipped_code.recording() as recorded:
        expected = number(fresh())
    assert ship_cpu.write(recorded.entries, shipped_code.FOLDER) == 1
    return expected


def compiled(monkeypatch, function):
    """Call it; give the result and how often it was compiled."""
    noted = []
    of_numba = numba.core.compiler.CompilerBase.compile_extra

    def compile_extra(self, given):
        noted.append(given)
        return of_numba(self, given)

    with monkeypatch.context() as patch:
        patch.setattr(numba.core.compiler.CompilerBase, "compile_extra", compile_extra)
        return number(function), len(noted)


def test_what_is_shipped_is_loaded_and_then_kept(folder, monkeypatch, tmp_path):
    expected = ship()
    assert expected == [3, 0, 1, -1, 0, 2, 1]
    another_cache(monkeypatch, tmp_path / "empty")
    assert compiled(monkeypatch, fresh()) == (expected, 0)
    (path,) = folder.rglob("*.xz")
    path.unlink()
    assert compiled(monkeypatch, fresh()) == (expected, 0)  # from the cache
    another_cache(monkeypatch, tmp_path / "another")
    assert compiled(monkeypatch, fresh()) == (expected, 1)


def test_nothing_is_written_twice_and_what_is_stale_goes(folder):
    ship()
    (path,) = folder.rglob("*.xz")
    assert path == folder / numba.__version__ / "propagation.results.xz"
    entries = {MODULE: shipped_code.entries_of(path)}
    (folder / "0.1").mkdir()
    (folder / "0.1" / "propagation.results.xz").touch()
    assert ship_cpu.write(entries, folder) == 1
    assert list(folder.rglob("*.xz")) == [path]
    assert ship_cpu.write(entries, folder) == 0
    assert shipped_code.entries_of(path) == entries[MODULE]


def test_recording_again_keeps_the_same_bytes(folder, monkeypatch, tmp_path):
    ship()
    (path,) = folder.rglob("*.xz")
    another_cache(monkeypatch, tmp_path / "empty")
    with shipped_code.recording() as recorded:
        number(fresh())
    assert recorded.entries == {MODULE: shipped_code.entries_of(path)}


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [(config, "LOOP_VECTORIZE", 0), (config, "DEBUGINFO_DEFAULT", 1),
     ("glp_rapids.jit.cache.VERSIONS", None, ("another",)),
     ("glp_rapids.jit.cache._digest_of_files", None, lambda module: "edited")],
)  # fmt: skip
def test_what_was_made_otherwise_is_not_loaded(folder, monkeypatch, tmp_path, place, name, value):
    expected = ship()
    another_cache(monkeypatch, tmp_path / "empty")
    if name is None:
        monkeypatch.setattr(place, value)
    else:
        monkeypatch.setattr(place, name, value)
    assert compiled(monkeypatch, fresh()) == (expected, 1)


@pytest.mark.parametrize("damage", ["cut", "garbage", "entry"])
def test_a_damaged_file_is_a_warning(folder, monkeypatch, tmp_path, damage):
    expected = ship()
    (path,) = folder.rglob("*.xz")
    content = path.read_bytes()
    ((digest, entry),) = shipped_code.entries_of(path).items()
    path.write_bytes(
        {
            "cut": content[: len(content) // 2],
            "garbage": b"garbage" * 100,
            "entry": lzma.compress(pickle.dumps({digest: entry[: len(entry) // 2]})),
        }[damage]
    )
    another_cache(monkeypatch, tmp_path / "empty")
    with pytest.warns(RuntimeWarning, match="came with glp_rapids and cannot be used"):
        assert compiled(monkeypatch, fresh()) == (expected, 1)


def test_what_other_versions_of_python_may_not_have_is_refused(folder, monkeypatch):
    monkeypatch.setattr(shipped_code, "KNOWN", ("builtins",))
    with shipped_code.recording(), pytest.raises(ValueError, match=r"may not hold numba\."):
        number(fresh())


def test_nothing_is_said_where_nothing_was_shipped(folder, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(monkeypatch, fresh())[1] == 1


def test_what_comes_with_the_package_is_of_its_sources(tmp_path):
    # A failure: run `python -m glp_rapids.cli.ship_cpu`, and commit what it wrote.
    codegen = results._number.targetdescr.target_context.codegen()
    triple, *_ = codegen.magic_tuple()
    if not (shipped_code.FOLDER / numba.__version__).is_dir():
        pytest.skip(f"nothing is shipped for Numba {numba.__version__}")
    if triple != "x86_64-unknown-linux-gnu":
        pytest.skip(f"nothing is shipped for {triple}")
    done = subprocess.run(
        [sys.executable, "-c", COMPILED + WARMUP], capture_output=True, text=True, check=True,
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    found = {one for one in json.loads(done.stdout) if not one.startswith(PROGRAMS)}
    assert found == set()
