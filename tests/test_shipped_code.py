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
from numba.core.errors import NumbaWarning

from glp_rapids.cli import ship_cpu
from glp_rapids.jit import cache, fingerprint, ship_code, shipped_code
from glp_rapids.jit.cache import kept
from glp_rapids.propagation import results

ROOT = Path(__file__).parents[1]
MODULE = results.__name__
# What compiles in a process that does what `warmup` does: a program's functions, by themselves, to
# find out what they return.
PROGRAMS = "glp_rapids.propagation.variants."
# Prints what is compiled, and what is loaded of what is shipped.
WARMUP = """
import json
from numba.core import event
from glp_rapids.cli.warmup import WORK
from glp_rapids.jit import shipped_code

class Listener(event.Listener):
    found, depth = [], 0
    def on_start(self, one):
        function = one.data["dispatcher"].py_func
        if self.depth == 0:  # not called by another that is being compiled
            self.found.append(f"{function.__module__}.{function.__qualname__}")
        self.depth += 1
    def on_end(self, one):
        self.depth -= 1

loaded = []
event.register("numba:compile", Listener())
shipped_code.listeners.append(lambda module, digest, code: loaded.append((module, digest)))
for work in WORK.values():
    work("cpu")
print(json.dumps([Listener.found, loaded]))
"""
# Prints a digest of what several functions find.
RESULTS = """
import hashlib, json
import numpy as np
import glp_rapids as lp

ends = np.random.default_rng(3).integers(0, 900, (2, 9_000))
weights = np.random.default_rng(4).random(9_000)
graph = lp.as_graph((*ends, weights), device="cpu")
found = {
    "classic": lp.label_propagation(graph),
    "levels": lp.multilevel_label_propagation(graph),
    "scores": lp.account_scores(graph, [1, 2, 3]),
    "sssp": lp.sssp(graph, 1),
}
print(json.dumps({name: hashlib.sha256(frame.to_csv().encode()).hexdigest()
                  for name, frame in found.items()}))
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
    with ship_code.recording() as found:
        expected = number(fresh())
    assert ship_cpu.write(found) == 1
    return expected


def run(script, cache, *options):
    """Give what a script prints in a process of its own."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    done = subprocess.run(
        [sys.executable, *options, "-c", script], capture_output=True, text=True, check=True,
        env={**others, "NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    return json.loads(done.stdout)


def skip_where_nothing_is_shipped():
    triple, *_ = results._number.targetdescr.target_context.codegen().magic_tuple()
    if triple != "x86_64-unknown-linux-gnu" or not shipped_code.path_of(MODULE).exists():
        pytest.skip(f"nothing is shipped for {shipped_code.VERSIONS} on {triple}")


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
    assert path == folder / shipped_code.VERSIONS / "propagation.results.xz"
    entries = {MODULE: shipped_code.entries_of(path)}
    (folder / "numba-0.1").mkdir()
    (folder / "numba-0.1" / "propagation.results.xz").touch()
    assert ship_cpu.write(entries) == 1
    assert list(folder.rglob("*")) == [path.parent, path]
    assert ship_cpu.write(entries) == 0
    assert shipped_code.entries_of(path) == entries[MODULE]


def test_recording_again_keeps_the_same_bytes(folder, monkeypatch, tmp_path):
    ship()
    (path,) = folder.rglob("*.xz")
    another_cache(monkeypatch, tmp_path / "empty")
    with ship_code.recording() as found:
        number(fresh())
    assert found == {MODULE: shipped_code.entries_of(path)}


@pytest.mark.parametrize(
    ("place", "name", "value"),
    [(config, "LOOP_VECTORIZE", 0), (config, "DEBUGINFO_DEFAULT", 1),
     ("glp_rapids.jit.cache.VERSIONS", None, ("another",)),
     ("glp_rapids.jit.shipped_code.FORMAT", None, 1),
     ("glp_rapids.jit.fingerprint.file_digest", None, lambda file: "edited")],
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
    with ship_code.recording(), pytest.raises(ValueError, match=r"may not hold numba\."):
        number(fresh())


def test_nothing_is_said_where_nothing_was_shipped(folder, monkeypatch):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert compiled(monkeypatch, fresh())[1] == 1


def test_what_is_of_one_process_is_refused(folder):
    large = np.arange(1 << 18)  # too large to be copied into code

    def first(place):
        return large[place]

    compiled = kept(first)
    with pytest.warns(NumbaWarning, match="uses dynamic globals"):  # Numba keeps it neither
        compiled(0)
    (found,) = compiled.overloads.values()
    assert found.library.has_dynamic_globals
    with pytest.raises(ValueError, match="it is of this process alone"):
        ship_code.content_of(found)


def test_constants_that_another_module_has_by_name_are_in_the_digest(monkeypatch):
    from glp_rapids.common import hashing
    from glp_rapids.communities.kernels import moving, refining

    before = moving.sweep.compiled._cache._source(), refining.sweep.compiled._cache._source()
    monkeypatch.setattr(refining, "JOINED", 7)
    assert refining.sweep.compiled._cache._source() != before[1]
    whose = fingerprint.file_digest

    def edited(file):
        return "edited" if file == Path(hashing.__file__) else whose(file)

    monkeypatch.setattr(fingerprint, "file_digest", edited)
    assert moving.sweep.compiled._cache._source() != before[0]


def test_a_file_that_is_newer_than_the_process_is_not_trusted(monkeypatch):
    monkeypatch.setattr(fingerprint, "BEGUN", Path(results.__file__).stat().st_mtime - 1)
    fingerprint.file_digest.cache_clear()
    assert fingerprint.source_fingerprint(results._number.py_func) is None


def test_code_is_loaded_where_nothing_can_be_kept(folder, monkeypatch, tmp_path):
    expected = ship()

    def nowhere(self, function):
        raise RuntimeError("no locator available")

    monkeypatch.setattr(numba.core.caching.CacheImpl, "__init__", nowhere)
    monkeypatch.setattr(cache, "_complaint", ["said before"])
    function = fresh()
    assert compiled(monkeypatch, function) == (expected, 0)
    assert function.stats.cache_path is None
    (path,) = folder.rglob("*.xz")
    path.unlink()
    shipped_code.entries_of.cache_clear()
    assert compiled(monkeypatch, fresh()) == (expected, 1)


def test_a_python_that_reads_no_such_files_compiles(folder, monkeypatch, tmp_path):
    expected = ship()
    another_cache(monkeypatch, tmp_path / "empty")
    monkeypatch.setitem(sys.modules, "lzma", None)
    assert compiled(monkeypatch, fresh()) == (expected, 1)


def test_what_comes_with_the_package_is_of_its_sources(tmp_path):
    # A failure: run `python -m glp_rapids.cli.ship_cpu`, and commit what it wrote.
    skip_where_nothing_is_shipped()
    compiled, loaded = run(WARMUP, tmp_path)
    assert {one for one in compiled if not one.startswith(PROGRAMS)} == set()
    there = {(f"glp_rapids.{path.stem}", digest)
             for path in shipped_code.FOLDER.rglob("*.xz")
             for digest in shipped_code.entries_of(path)}  # fmt: skip
    assert set(map(tuple, loaded)) == there


@pytest.mark.exhaustive
def test_results_are_those_of_code_that_is_compiled_here(tmp_path):
    skip_where_nothing_is_shipped()
    # nothing is shipped for -O
    assert run(RESULTS, tmp_path / "shipped") == run(RESULTS, tmp_path / "compiled", "-O")
