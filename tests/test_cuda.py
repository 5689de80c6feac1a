"""The CUDA kernels without a GPU: they compile for every generation, and run in the simulator."""

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import cuda_offline
import numpy as np
import pytest

import glp_rapids
from glp_rapids.propagation import kernels

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

KERNELS = {
    "narrow8", "narrow32", "block", "insert", "search", "decide", "table_warp", "table_block",
    "gather", "best_of_rows1", "best_of_rows128", "update",
}  # fmt: skip


class Scored(glp_rapids.Program):
    """Scores with a product and a sum, which a GPU would like to contract."""

    def label_score(v, label, freq, state):
        return freq * state.slope - state.volume[label]

    count_volumes = True

    def initial_state(self, graph):
        return {"slope": 2.5}


def seeded(graph, **options):
    return glp_rapids.seeded_label_propagation(graph, {0: "a"}, max_iter=1, **options)


RUNS = {
    "classic": partial(glp_rapids.label_propagation, max_iter=2),
    "layered": partial(glp_rapids.layered_label_propagation, gammas=[2], max_iter=1),
    "speaker": partial(glp_rapids.speaker_listener, max_iter=1),
    "seeded": seeded,
    "program": partial(glp_rapids.propagate, program=Scored(), max_iter=1),
}


def compile_run(monkeypatch, run, graph, capability):
    """Give the PTX of every kernel of every strategy of the baselines."""
    try:
        from cuda.bindings import nvrtc  # noqa: F401
    except ImportError:
        pytest.skip("NVIDIA's compilers are not installed (numba-cuda[cu13] brings them)")
    from glp_rapids.propagation.kernels import baselines

    engine_of = kernels.engine_of
    monkeypatch.setattr(kernels, "engine_of", lambda device, strategy: engine_of("gpu", strategy))
    with cuda_offline.compiling(monkeypatch, capability) as ptx:
        for strategy in baselines.STRATEGIES:
            RUNS[run](graph, strategy=strategy)
    return ptx


def edges(weighted):
    source, destination = cuda_offline.every_degree_class()
    weights = (np.linspace(0.5, 2, len(source)),) if weighted else ()
    return glp_rapids.as_graph((source, destination, *weights), device="cpu")


@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (8, 9), (9, 0), (10, 0)])
def test_classic_compiles_for_every_generation(monkeypatch, capability):
    ptx = compile_run(monkeypatch, "classic", edges(weighted=False), capability)
    assert {name for name, _ in ptx} == {*KERNELS, "wake"}
    target = f".target sm_{capability[0]}{capability[1]}"
    assert all(target in code for code in ptx.values())


@pytest.mark.parametrize("run", RUNS)
def test_every_variant_compiles_and_rounds_as_a_cpu_does(monkeypatch, run):
    ptx = compile_run(monkeypatch, run, edges(weighted=True), (9, 0))
    assert {name for name, _ in ptx} >= KERNELS
    assert not any("fma.rn" in code for code in ptx.values())


def test_kernels_without_warp_intrinsics_agree_in_the_simulator(tmp_path):
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("simulate.py"))],
        env={**os.environ, "NUMBA_ENABLE_CUDASIM": "1"},
        capture_output=True,
        text=True,
    )
    assert run.stdout.strip() == "0 differ", run.stdout + run.stderr[-2000:]
