"""The kernels of ego-networks without a GPU: they compile everywhere, and run in the simulator."""

from types import SimpleNamespace

import numpy as np
import pytest
from simulator import simulated

from glp_rapids import as_graph

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

KERNELS = {"ego_bitmap", "intersect", "unite_ends", "find_edges", "peel_core", "peel_truss",
           "pick_edges", "list_by_degree", "find_rows", "look_at_members", "peel_members",
           "count_words", "mark_members", "list_members", "unite_members", "look_at_edges",
           "peel_edges", "unite_edges", "mark_hubs", "unite_by_hubs", "find_roots", "count_roots",
           "mark_kept", "fill_kept", "oriented_starts", "count_light", "count_heavy",
           "place_values"}  # fmt: skip


@pytest.fixture
def compiled(monkeypatch):
    """Give a function that compiles, for a capability, whatever an engine would launch."""
    try:
        from cuda.bindings import nvrtc  # noqa: F401
    except ImportError:
        pytest.skip("NVIDIA's compilers are not installed (numba-cuda[cu13] brings them)")
    from numba import cuda, typeof
    from numba.cuda import dispatcher

    from glp_rapids.cohesion.engines import gpu as cohesion
    from glp_rapids.diversity.engines import gpu as diversity
    from glp_rapids.diversity.engines import gpu_batches
    from glp_rapids.diversity.kernels import gpu_contexts

    def run(capability, graph):
        ptx = {}

        def compile_instead(kernel, blocks, threads, *arguments):
            signature = tuple(typeof(argument) for argument in arguments)
            if (id(kernel), signature) not in ptx:
                options = {
                    name: value
                    for name, value in kernel.targetoptions.items()
                    if name == "launch_bounds"
                }
                code, _ = cuda.compile_ptx(
                    kernel.py_func, signature, device=False, cc=capability, **options
                )
                ptx[id(kernel), signature] = kernel.py_func.__name__, code

        current = SimpleNamespace(compute_capability=capability)
        monkeypatch.setattr(dispatcher, "get_current_device", lambda: current)
        for engine_module in (cohesion, diversity, gpu_batches):
            monkeypatch.setattr(engine_module, "launch", compile_instead)
        monkeypatch.setattr(cohesion, "launch_together", compile_instead)
        monkeypatch.setattr(diversity, "launch_together", compile_instead)
        for engine_module in (cohesion, diversity):
            monkeypatch.setattr(engine_module, "multiprocessors", lambda: 1)
        engine = diversity.GpuEgoEngine(graph.indptr, graph.indices, memory_limit=1 << 30)
        vertices = np.arange(graph.number_of_vertices)
        for model in diversity.MODELS:
            hubs = engine.hubs_for(vertices, "component")
            nobody = engine.hubs_for(vertices, "truss")
            engine._small(vertices, 3, model, diversity.SCORE, nobody)
            batch = engine._with_words(engine._nodes(vertices, vertices.astype(np.int32), hubs))
            batch.words[1:] = 2  # nothing was launched that would have counted
            batch = engine._with_marks(batch)
            batch.indptr[1:] = 2
            _, size = engine._contexts(batch, 3, model, 2)
            counted = size, np.int64(2), batch.ego_of, batch.listed, size
            compile_instead(gpu_contexts.build_count(gpu_contexts.THREADS), 1, 1, *counted)
        engine.ego_rows(vertices)
        engine.edges(3, ends=vertices.astype(np.int32))
        rows, edge = engine.rows_and_edges()
        edge[:] = 0  # nothing was launched that would have filled it
        engine.peel_trusses(rows, edge, None)
        engine.peel_cores(None)
        engine.triangle_counts()
        parent = vertices.astype(np.int32)
        united = rows, graph.indices, vertices, parent, parent, vertices, np.int64(2), parent
        compile_instead(gpu_contexts.build_ends(gpu_contexts.THREADS), 1, 1, *united)
        return list(ptx.values())

    return run


# Nothing in these kernels depends on the generation, so the ends of the range do.
@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("capability", "index_type"), [((7, 5), np.int32), ((10, 0), np.int64)]
)
def test_kernels_compile(compiled, capability, index_type):
    star = np.array([(0, i) for i in range(1, 600)])
    graph = as_graph((star[:, 0], star[:, 1]), device="cpu")
    graph = SimpleNamespace(
        indptr=graph.indptr,
        indices=graph.indices.astype(index_type),
        number_of_vertices=graph.number_of_vertices,
    )
    found = compiled(capability, graph)
    names = [name for name, _ in found]
    assert set(names) == KERNELS
    assert names.count("ego_bitmap") == 6
    assert all(f".target sm_{capability[0]}{capability[1]}" in code for _, code in found)


@pytest.mark.exhaustive
def test_the_simulator_gives_the_results_of_a_cpu():
    assert simulated("simulate_diversity.py") == "0 of 27 differ"


def test_what_is_worked_on_with_others_depends_on_hubs():
    from glp_rapids.diversity.engines.gpu import MOST_WITHOUT_HUBS, GpuEgoEngine
    from glp_rapids.diversity.kernels.gpu_bitmap import SIZES

    few = (MOST_WITHOUT_HUBS, MOST_WITHOUT_HUBS, SIZES[-1][1])  # trusses ask no hubs
    every = (SIZES[-1][1],) * 3
    star, path = [(0, i) for i in range(1, 600)], [(i, i + 1) for i in range(600)]
    # hubs that nobody knows are none, and so are those there is no memory for
    for pairs, limit, expected in ((star, 1 << 20, few), (path, 1 << 20, every), (star, 99, every)):
        rows = as_graph(tuple(np.array(pairs).T), device="cpu")
        engine = GpuEgoEngine(rows.indptr, rows.indices, memory_limit=limit)
        assert tuple(map(engine.most_alone, ("component", "core", "truss"))) == expected
