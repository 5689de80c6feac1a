"""The name of a kernel that is shipped says all that it depends on."""

import os
import subprocess
import sys
from collections import namedtuple

import pytest
from test_shipped import ROOT, names, numba_cuda

import glp_rapids
from glp_rapids.cli import ship as shipping
from glp_rapids.jit import fingerprint, ship, shipped_kernels
from glp_rapids.jit.cache import text_of_types
from glp_rapids.jit.shipped_kernels import name_of
from glp_rapids.jit.target import made_of
from glp_rapids.propagation.kernels.gpu.arguments import Rows


@pytest.fixture(scope="module")
def classic():
    """What a call launches, the large kernel last."""
    return shipping.launches(shipping.KERNELS["classic"])


def test_every_kernel_of_the_table_can_be_shipped_and_has_a_name_of_its_own():
    last = [names(shipping.launches(shipped))[-1] for shipped in shipping.KERNELS.values()]
    assert None not in last
    assert len(set(last)) == len(shipping.KERNELS)


@pytest.mark.exhaustive
def test_names_are_the_same_in_every_process(classic):
    script = (
        "from glp_rapids.cli import ship; from glp_rapids.jit.shipped_kernels import name_of\n"
        "for one in ship.launches(ship.KERNELS['classic']):\n"
        "    print(name_of(one.kernel.recipe, one.signature))"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
        assert done.stdout.split() == names(classic)


def rebuilt_names():
    from glp_rapids.propagation.engines import gpu as engine

    engine._built.clear()
    return names(shipping.launches(shipping.KERNELS["classic"]))


# Of the large kernel: a global of its own, of a function that it calls, a closure's value.
@pytest.mark.parametrize(
    ("module", "name", "value"),
    [
        ("persistent", "LANES", 16),
        ("persistent", "MOMENTS", 7),
        ("update", "LANES", 16),
        ("shared_memory", "CLOCKED", 7),
        ("shared_memory", "TABLE_SLOTS", 2048),
    ],
)
def test_another_value_is_another_name(classic, monkeypatch, module, name, value):
    from importlib import import_module

    module = import_module(f"glp_rapids.propagation.kernels.gpu.{module}")
    assert getattr(module, name) != value
    before = rebuilt_names()
    assert before == names(classic)
    monkeypatch.setattr(module, name, value)
    assert rebuilt_names()[-1] != before[-1]
    monkeypatch.undo()
    assert rebuilt_names() == before


@pytest.mark.parametrize(
    "file",
    [
        "propagation/kernels/gpu/persistent.py", "propagation/kernels/gpu/votes.py",
        "propagation/program.py", "jit/cuda.py", "jit/launch.py", "common/hashing.py",
    ],
)  # fmt: skip
def test_another_source_is_another_name(classic, monkeypatch, file):
    digest = fingerprint.file_digest
    before = names(classic)

    def edited(path):
        return "edited" if path.as_posix().endswith(f"glp_rapids/{file}") else digest(path)

    for module in (fingerprint, shipped_kernels):
        monkeypatch.setattr(module, "file_digest", edited)
    assert names(classic)[-1] != before[-1]


def test_options_and_versions_are_in_the_name(classic, monkeypatch):
    large = classic[-1]
    recipe = large.kernel.recipe
    before = name_of(recipe, large.signature)
    assert "launch_bounds" in recipe.options
    assert name_of(recipe._replace(options={}), large.signature) != before
    assert name_of(recipe._replace(digest=f"{recipe.digest} 1"), large.signature) != before
    assert name_of(recipe, large.signature[:-1]) != before
    assert numba_cuda.__version__.split(".")[:2] == shipped_kernels.VERSION
    monkeypatch.setattr(shipped_kernels, "VERSION", ["99", "0"])
    assert name_of(recipe, large.signature) != before


@pytest.mark.parametrize("switch", ["BOUNDSCHECK", "CUDA_DEBUGINFO_DEFAULT"])
def test_what_a_developer_switches_on_is_in_the_name_and_in_caches(classic, monkeypatch, switch):
    from numba.core import config

    large = classic[-1]
    before = name_of(large.kernel.recipe, large.signature), made_of(ship.texts_of)
    monkeypatch.setattr(config, switch, 1)
    after = name_of(large.kernel.recipe, large.signature), made_of(ship.texts_of)
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_the_order_of_fields_is_in_the_name(classic):
    """Numba's text of a named tuple leaves their names out, and a kernel reads them by name."""
    from numba import typeof

    def text(*fields):
        pair = namedtuple("Pair", fields)
        return str(kind := typeof((pair(1, 2), pair(pair(1, 2), 2.0)))), text_of_types((kind,))

    first, second = text("a", "b"), text("b", "a")
    assert first[0] == second[0]
    assert first[1] != second[1]
    large = classic[-1]
    rows = next(kind for kind in large.signature if getattr(kind, "instance_class", None) is Rows)
    swapped = type(rows)(rows.types, namedtuple("Rows", ["indices", "indptr", "weights"]))
    assert str(swapped) == str(rows)
    signature = tuple(swapped if kind is rows else kind for kind in large.signature)
    assert name_of(large.kernel.recipe, signature) != names(classic)[-1]


def test_a_program_of_the_users_is_not_looked_for(classic):
    class Own(glp_rapids.Program):
        def label_score(v, label, freq, state):
            return freq * 2

    def call(graph):
        glp_rapids.propagate(graph, Own(), max_iter=1)

    found = shipping.launches(shipping.Shipped(call, None))
    assert names(found)[-1] is None
    assert names(found)[:-1] == names(classic)[:-1]
    with pytest.raises(ValueError, match="not this package's own"):
        ship.ship(found[-1].kernel, found[-1].signature)


def test_lambdas_and_unreadable_files_have_no_name(monkeypatch):
    def nothing():
        pass

    nothing = fingerprint.source_fingerprint(nothing)
    assert nothing is None  # of this test
    own = fingerprint.digest_of
    assert fingerprint.source_fingerprint(own) is not None
    moved = own.__code__.replace(co_filename=str(fingerprint.PACKAGE / "gone.py"))
    copy = type(own)(moved, own.__globals__, own.__name__)
    assert fingerprint.source_fingerprint(copy) is None
    unnamed = type(own)(own.__code__.replace(co_name="<lambda>"), own.__globals__)
    assert fingerprint.source_fingerprint(unnamed) is None
