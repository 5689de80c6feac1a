"""The CUDA kernels without a GPU: they compile for every generation, and run in the simulator."""

import lzma
from dataclasses import replace
from functools import partial

import cuda_offline
import numpy as np
import pytest
from cases import some
from simulator import simulated

import glp_rapids
from glp_rapids.compressed.rows import CompressedCSR
from glp_rapids.jit import shipped_kernels
from glp_rapids.propagation import engines

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

KERNELS = {
    "subwarp8", "subwarp32", "block", "insert", "search", "decide", "table_warp", "table_block",
    "gather", "best_of_rows1", "best_of_rows128", "update",
}  # fmt: skip


class Scored(glp_rapids.Program):
    """Scores with a product and a sum, which a GPU would like to contract."""

    def label_score(v, label, freq, state):
        return freq * state.slope - state.volume[label]

    count_volumes = True

    def initial_state(self, graph):
        return {"slope": 2.5}


class Squared(glp_rapids.Program):
    """Scores what may be skipped where nothing changes."""

    skip_inactive = True

    def label_score(v, label, freq, state):
        return freq * freq


def seeded(graph, **options):
    return glp_rapids.seeded_label_propagation(graph, {0: "a"}, max_iter=1, **options)


RUNS = {
    "classic": partial(glp_rapids.label_propagation, max_iter=2),
    "layered": partial(glp_rapids.layered_label_propagation, gammas=[2], max_iter=1),
    "speaker": partial(glp_rapids.speaker_listener, max_iter=1),
    "seeded": seeded,
    "program": partial(glp_rapids.propagate, program=Scored(), max_iter=1),
}


def compile_run(monkeypatch, run, graph, capability, strategies=None):
    """Give the PTX of every kernel of these strategies, or of all baselines."""
    try:
        from cuda.bindings import nvrtc  # noqa: F401
    except ImportError:
        pytest.skip("NVIDIA's compilers are not installed (numba-cuda[cu13] brings them)")
    from glp_rapids.propagation.baselines import engine

    engine_of = engines.engine_of
    monkeypatch.setattr(engines, "engine_of", lambda _, *choice: engine_of("gpu", *choice))
    with cuda_offline.compiling(monkeypatch, capability) as ptx:
        for strategy in strategies or engine.STRATEGIES:
            RUNS[run](graph, strategy=strategy)
    return ptx


def assert_target(ptx, capability):
    target = f".target sm_{capability[0]}{capability[1]}"
    assert all(target in code for code in ptx.values())


def edges(weighted, dtype=np.float64):
    source, destination = cuda_offline.every_degree_class()
    weights = (np.linspace(0.5, 2, len(source)).astype(dtype),) if weighted else ()
    return glp_rapids.as_graph((source, destination, *weights), device="cpu")


CAPABILITIES = [(7, 5), (8, 0), (8, 9), (9, 0), (10, 0)]


# Nothing in these depends on the generation: the ends of the range do.
@pytest.mark.exhaustive
@pytest.mark.parametrize("capability", [CAPABILITIES[0], CAPABILITIES[-1]])
def test_classic_compiles_for_every_generation(monkeypatch, capability):
    ptx = compile_run(monkeypatch, "classic", edges(weighted=False), capability)
    assert {name for name, _ in ptx} == {*KERNELS, "activate"}
    assert_target(ptx, capability)


@pytest.mark.parametrize("run", some(RUNS, "program"))
def test_every_variant_compiles_and_rounds_as_a_cpu_does(monkeypatch, run):
    ptx = compile_run(monkeypatch, run, edges(weighted=True), (9, 0))
    assert {name for name, _ in ptx} >= KERNELS
    assert not any("fma.rn" in code for code in ptx.values())


def test_what_is_shipped_rounds_as_a_cpu_does():
    if not shipped_kernels.IN_GIT.is_dir():
        pytest.skip(f"git has no kernels of {shipped_kernels.IN_GIT.name}")
    paths = sorted(shipped_kernels.IN_GIT.glob("*.ptx.xz"))
    assert {"propagate", "propagate_strips", "move_vertices", "push_residuals"} <= {
        path.name.split(".")[0] for path in paths
    }
    for path in paths:
        text = lzma.decompress(path.read_bytes()).decode()
        assert "fma.rn.f" not in text, path.name
        assert not path.name.startswith("propagate.") or ".maxntid 256" in text, path.name


def compile_persistent(monkeypatch, run, graph, capability):
    """Compile the persistent engine's kernels, and give the signature of `propagate`."""
    ptx = compile_run(monkeypatch, run, graph, capability, strategies=["auto"])
    names = [name for name, _ in ptx]
    assert names.count("propagate") == 1
    assert set(names) <= {"propagate", "start"}
    assert_target(ptx, capability)
    assert not any("fma.rn" in code for code in ptx.values())
    signature = next(signature for name, signature in ptx if name == "propagate")
    code = ptx["propagate", signature]
    assert ".maxntid 256" in code
    assert ".minnctapersm 3" in code
    # a graph holds the arrays of one kind of run, not of all that there ever were
    assert len(graph.keep(("kept", None), dict)) == 1
    return signature


# With weights and without; neighbours of 32 and 64 bits; the oldest generation and the newest. A
# compile takes some 20 s, so these three; the classic one is shipped (above).
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("run", "weights", "index_type", "capability"),
    [
        ("program", np.float64, np.int32, CAPABILITIES[0]),
        ("layered", None, np.int32, CAPABILITIES[-1]),
        ("speaker", np.float32, np.int64, (9, 0)),
    ],
)
def test_every_variant_of_the_persistent_kernel_compiles(
    monkeypatch, run, weights, index_type, capability
):
    graph = edges(weighted=weights is not None, dtype=weights)
    graph = replace(graph, indices=graph.indices.astype(index_type), _derived={})
    signature = compile_persistent(monkeypatch, run, graph, capability)
    plan, rows = signature[0], signature[5]
    assert plan.types[0].dtype.name == rows.types[1].dtype.name == np.dtype(index_type).name


# The oldest generation and the newest; votes that are counted, and a program's scores of weights.
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("function", "weights", "capability"),
    [
        (glp_rapids.label_propagation, None, CAPABILITIES[0]),
        (partial(glp_rapids.propagate, program=Squared()), np.float64, CAPABILITIES[-1]),
    ],
    ids=["classic", "squared"],
)
def test_the_kernel_of_few_active_vertices_compiles(monkeypatch, function, weights, capability):
    graph = edges(weighted=weights is not None, dtype=weights)
    warm = partial(function, initial=function(graph, tol=0.0, max_iter=30), touched=[5])
    monkeypatch.setitem(RUNS, "warm", warm)
    ptx = compile_run(monkeypatch, "warm", graph, capability, strategies=["auto"])
    assert [name for name, _ in ptx] == ["propagate_frontier"]
    assert_target(ptx, capability)
    (code,) = ptx.values()
    assert ".minnctapersm 2" in code
    assert "fma.rn" not in code


# Of 64 bits are the neighbours of graphs of 2**31 vertices, which no test can hold. What packed
# lists of others launch is shipped (above).
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("scheme", "weights", "index_type"),
    [("packed", None, np.int64), ("cgr", 2.5, np.int32)],
)
def test_the_persistent_kernel_compiles_for_compressed_lists(
    monkeypatch, scheme, weights, index_type
):
    graph = edges(weighted=False)
    if weights is not None:  # one of all entries
        weights = np.full(graph.number_of_edges, weights)
        graph = replace(graph, weights=weights, _derived={})
    graph = glp_rapids.compress(graph, scheme, device="cpu")
    monkeypatch.setattr(CompressedCSR, "index_dtype", property(lambda _: np.dtype(index_type)))
    signature = compile_persistent(monkeypatch, "classic", graph, (9, 0))
    assert signature[5].types[1].dtype.name == np.dtype(index_type).name


@pytest.mark.exhaustive
def test_kernels_without_warp_intrinsics_agree_in_the_simulator():
    assert simulated("simulate.py") == "0 differ"


# As most runs are, and with all that makes them differ: weights, a program, readers apart.
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("run", "directed", "weights", "index_type", "capability"),
    [
        ("program", True, np.float64, np.int32, CAPABILITIES[0]),
        ("classic", False, None, np.int64, CAPABILITIES[-1]),
    ],
)
def test_the_streamed_kernels_compile(monkeypatch, run, directed, weights, index_type, capability):
    graph = edges(weighted=weights is not None, dtype=weights)
    indices = graph.indices.astype(index_type)
    graph = replace(graph, indices=indices, directed=directed, _derived={})
    monkeypatch.setitem(RUNS, run, partial(RUNS[run], way="streamed plain"))
    ptx = compile_run(monkeypatch, run, graph, capability, strategies=["auto"])
    names = [name for name, _ in ptx]
    assert names.count("propagate_strips") == 1
    assert set(names) <= {"propagate_strips", "start", "census"}
    assert_target(ptx, capability)
    assert not any("fma.rn" in code for code in ptx.values())


@pytest.mark.exhaustive
@pytest.mark.parametrize("kernel", ["propagate_part", "propagate_with_peers"])
def test_the_kernels_of_a_rank_compile(monkeypatch, kernel):
    from glp_rapids.jit.cuda import gpu_target
    from glp_rapids.multigpu.exchange import Meeting, exchanges
    from glp_rapids.propagation.engines import gpu, rank_gpu, rank_peers

    class HostMeeting(Meeting):
        def word(self):
            return np.zeros(1, np.int64)

    def engine(workload, compiled, fields):
        number = workload.rows.number_of_vertices
        if kernel == "propagate_part":
            return rank_gpu.GpuRankEngine(workload, compiled, fields, *exchanges(1), 0, number)
        exchange = rank_peers.PeerExchange(HostMeeting(1), 0)
        return rank_peers.PeerRankEngine(workload, compiled, fields, exchange, 0, number)

    with cuda_offline.compiling(monkeypatch, CAPABILITIES[0]) as ptx:
        together = gpu.launch_together
        monkeypatch.setattr(rank_gpu, "bound", lambda array: array)
        monkeypatch.setattr(rank_gpu, "_built", {})
        monkeypatch.setattr(rank_peers, "settle", lambda: None)
        monkeypatch.setattr(rank_peers, "plain_memory", np.empty)
        monkeypatch.setattr(rank_peers, "address_of", lambda array: array.ctypes.data)
        for module in (rank_gpu, rank_peers):
            monkeypatch.setattr(module, "multiprocessors", lambda: 1)
            monkeypatch.setattr(
                module, "prepared_together",
                lambda kernel, wanted, threads, given, last: lambda last: together(
                    kernel, wanted, threads, *given, last
                ),
            )  # fmt: skip
        monkeypatch.setattr(engines, "engine_of", lambda *_: (engine, gpu_target()))
        RUNS["program"](edges(weighted=True))
    assert [name for name, _ in ptx] == [kernel]
    if kernel == "propagate_with_peers":
        (code,) = ptx.values()
        assert all(order in code for order in ("st.release.sys", "ld.acquire.sys", "membar.sys"))
    assert_target(ptx, CAPABILITIES[0])
    assert not any("fma.rn" in code for code in ptx.values())


@pytest.mark.exhaustive
def test_the_streamed_kernels_compile_for_packed_lists(monkeypatch):
    graph = glp_rapids.compress(edges(weighted=False), "packed", device="cpu")
    monkeypatch.setitem(RUNS, "classic", partial(RUNS["classic"], way="streamed packed"))
    ptx = compile_run(monkeypatch, "classic", graph, (9, 0), strategies=["auto"])
    assert [name for name, _ in ptx].count("propagate_strips") == 1
