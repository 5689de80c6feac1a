"""``glp-rapids warmup``: what it names, what it says, what it refuses."""

import os

import numpy as np
import pytest
from cases import some

from glp_rapids.cli import main, warmup
from glp_rapids.graph import check_rows, symmetrize


def test_all_work_is_done_once_in_order(monkeypatch, capsys):
    done = []
    names = list(warmup.WORK)
    for name in names:
        monkeypatch.setitem(
            warmup.WORK, name, lambda device, name=name: done.append((name, device))
        )
    assert main(["warmup"]) == 0
    assert done == [(name, "cpu") for name in names]
    done.clear()
    assert main(["warmup", "--gpu", names[2], names[0], names[2]]) == 0
    assert done == [(names[2], "gpu"), (names[0], "gpu")]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [*names, "for", names[2], names[0], "for"]


@pytest.mark.parametrize(
    "name", some(warmup.WORK, "window", "fraud", "streamed", "cohesion", "several")
)
def test_the_work_runs(name):
    warmup.WORK[name]("cpu")


@pytest.mark.gpu
def test_what_a_tick_launches_is_compiled():
    from glp_rapids.fraud.kernels import gpu_transactions
    from glp_rapids.graph import subgraph_gpu
    from glp_rapids.jit.items import ItemKernel

    warmup.WORK["fraud"]("gpu")
    made = [*vars(gpu_transactions).values(), *vars(subgraph_gpu).values()]
    kernels = [value for value in made if isinstance(value, ItemKernel)]
    assert len(kernels) > 9
    assert all(one.kernel.loaded for one in kernels)


def test_sparse_matrices_are_checked_and_symmetrized(monkeypatch):
    called = set()
    for module, name in (
        (check_rows, "_worst"), (check_rows, "_is_symmetric"), (symmetrize, "_match"),
        (symmetrize, "_add_weights"), (symmetrize, "_merge"),
    ):  # fmt: skip
        kernel = getattr(module, name)

        def noted(*arguments, name=name, kernel=kernel):
            arrays = [array for array in arguments if isinstance(array, np.ndarray)]
            called.update((name, array.dtype.name) for array in arrays)
            return kernel(*arguments)

        monkeypatch.setattr(module, name, noted)
    warmup.WORK["sparse-matrices"]("cpu")
    assert called >= {
        (name, dtype)
        for name in ("_is_symmetric", "_add_weights", "_merge")
        for dtype in ("int32", "int64", "float64")
    }
    assert called >= {("_worst", "int32"), ("_match", "int32")}


def test_what_was_compiled_is_in_the_cache(monkeypatch, capsys):
    assert main(["warmup", "metrics"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("metrics")
    assert "for the CPU, kept in" in said
    if place := os.environ.get("NUMBA_CACHE_DIR"):
        assert place in said


def test_unknown_work_is_refused_before_any_is_done(monkeypatch, capsys):
    monkeypatch.setitem(warmup.WORK, "metrics", lambda device: pytest.fail("ran"))
    assert main(["warmup", "metrics", "louvain"]) == 2
    assert "not 'louvain'" in capsys.readouterr().err


def test_no_place_for_the_cache_is_an_error(monkeypatch, capsys):
    import warnings

    def complain(device):
        warnings.warn("compiled code cannot be kept on disk: full", RuntimeWarning, stacklevel=1)

    monkeypatch.setitem(warmup.WORK, "metrics", complain)
    assert main(["warmup", "metrics"]) == 2
    assert "cannot be kept on disk: full" in capsys.readouterr().err
