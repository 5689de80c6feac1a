"""The CUDA kernels without a GPU: they compile for every generation, and run in the simulator."""

import os
import subprocess
import sys
from pathlib import Path

import cuda_offline
import numpy as np
import pytest

import glp_rapids
from glp_rapids.propagation import kernels

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

KERNELS = {"narrow8", "narrow32", "block", "insert", "search", "decide", "update"}


class Scored(glp_rapids.Program):
    """Scores with a product and a sum, which a GPU would like to contract."""

    def label_score(v, label, freq, state):
        return freq * state.slope - state.volume[label]

    count_volumes = True

    def initial_state(self, graph):
        return {"slope": 2.5}


RUNS = {
    "classic": lambda graph: glp_rapids.label_propagation(graph, max_iter=2),
    "layered": lambda graph: glp_rapids.layered_label_propagation(graph, gammas=[2], max_iter=1),
    "speaker": lambda graph: glp_rapids.speaker_listener(graph, max_iter=1),
    "seeded": lambda graph: glp_rapids.seeded_label_propagation(graph, {0: "a"}, max_iter=1),
    "program": lambda graph: glp_rapids.propagate(graph, Scored(), max_iter=1),
}


def compile_run(monkeypatch, run, graph, capability):
    from glp_rapids.propagation.kernels import gpu

    try:
        from cuda.bindings import nvrtc  # noqa: F401
    except ImportError:
        pytest.skip("NVIDIA's compilers are not installed (numba-cuda[cu13] brings them)")
    monkeypatch.setattr(kernels, "engine_of", lambda device: (gpu.GpuEngine, gpu.gpu_target()))
    with cuda_offline.compiling(monkeypatch, capability) as ptx:
        RUNS[run](graph)
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


@pytest.mark.parametrize("run", sorted(RUNS))
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
