"""Before lists are streamed to a GPU: which are, how they are laid out, and what it will take."""

import re
from contextlib import nullcontext
from functools import cache, partial
from itertools import product
from types import SimpleNamespace

import graphs
import numpy as np
import pandas as pd
import pytest
from memory_limits import large
from programs import Counting

from glp_rapids import Graph, as_graph, compress, estimate_memory
from glp_rapids.jit.cuda import DeviceArray, gpu_target
from glp_rapids.outofcore import gathered, pinned
from glp_rapids.propagation import call, memory, ways
from glp_rapids.propagation import run as run_of_programs
from glp_rapids.propagation.engines import (
    gpu,
    gpu_streamed,
    gpu_streamed_packed,
    launched,
    packed_strips,
    strips,
)
from glp_rapids.propagation.gpu_memory import bytes_on_gpu, gpu_bytes_of
from glp_rapids.propagation.kernels.gpu import packed_numbers, votes, warp_reductions
from glp_rapids.propagation.making_memory import bytes_of_csr, bytes_to_make
from glp_rapids.propagation.memory import budget_of
from glp_rapids.propagation.options import Options
from glp_rapids.propagation.variants.classic import Classic


@pytest.mark.parametrize("ordered", [False, True])
def test_packed_lists_are_laid_out_bit_for_bit(ordered):
    graph = large(3_000, 60_000)
    order = np.random.default_rng(1).permutation(3_000) if ordered else None
    rows = compress(graph, "packed", order=order, segment=128, device="cpu").rows("out")
    laid_out = packed_strips.laid_out(rows, 4, graph.id_words(), ([0, 32, 128], [2, 1, 0]), np)
    bits, moved = (
        np.unpackbits(words.view(np.uint8), bitorder="little")
        for words in (rows.lists.words, laid_out.entries.array)
    )
    ends = np.append(rows.lists.offsets[1:], rows.lists.stream_bits)
    assert np.array_equal(np.sort(laid_out.vertices), np.flatnonzero(graph.degree))
    assert laid_out.number_of_entries == graph.number_of_edges
    for position, vertex in enumerate(laid_out.vertices.tolist()):
        place = vertex if rows.order is None else int(rows.place[vertex])
        start = 32 * int(laid_out.starts[position])
        listed = bits[int(rows.lists.offsets[place]) : ends[place]]
        (degree,) = packed_numbers.behind_degrees(rows.lists.tables, graph.degree[[vertex]], np)
        listed = listed[degree:]
        assert np.array_equal(moved[start : start + listed.size], listed)
        assert 32 * int(laid_out.starts[position + 1]) - start < listed.size + 32


class OnGpu(Graph):
    """A graph that says it is on a GPU."""

    device = "gpu"


def on_gpu(graph):
    return OnGpu(graph.indptr, graph.indices, graph.weights, graph.directed, graph.vertices)


def test_who_is_built_in_host_memory():
    graph, limited = large(), Options(memory_limit=1 << 20)
    # columns of a frame are its attributes, too
    frame = pd.DataFrame({"src": [0], "dst": [1], "device": ["gpu"], "scheme": ["packed"]})
    for options in (limited, Options(way="streamed plain"), Options()):
        for on_host in (graph, frame, (graph.indices, graph.indices)):
            assert call._may_stream(on_host, "gpu", options)
            assert not call._may_stream(on_host, "cpu", options)
        assert not call._may_stream(on_gpu(graph), "gpu", options)
        assert not call._may_stream((graph.indices, on_gpu(graph)), "gpu", options)
    assert not call._may_stream(graph, "gpu", Options(strategy="sort"))
    packed = compress(graph, "packed", segment=128, device="cpu")
    assert call._may_stream(packed, "gpu", limited)
    assert not call._may_stream(packed, "gpu", Options(way="streamed plain"))
    assert not call._may_stream(graph, "gpu", Options(way="streamed packed"))
    for other in (
        compress(graph, "cgr", device="cpu"),
        compress(graph, "packed", order="degree", device="cpu"),
        compress(large(directed=True), "packed", device="cpu"),
        compress(large(weighted=True), "packed", device="cpu"),
    ):
        assert not call._may_stream(other, "gpu", limited)


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("free", [None, 0, 1 << 40])
def test_what_others_hold_counts(monkeypatch, free, limited):
    graph = large()
    monkeypatch.setattr(call, "LITTLE", 0)
    monkeypatch.setattr(call, "choose", lambda device: "gpu")
    monkeypatch.setattr(call, "free_on_gpu", lambda: free)
    monkeypatch.setattr(Graph, "to", lambda graph, device: graph if device == "cpu" else "moved")
    monkeypatch.setattr(Options, "check_limit", lambda *_: None)
    limit = {"memory_limit": "1GB"} if limited else {}
    if free == 0 or limited:
        made, options = call.prepare(graph, limit)
        assert (options.streams_to == "gpu") == (free == 0)
        assert (made is graph) == (free == 0)
    elif free is None:  # another allocator: only an error tells
        assert call._fits(1 << 60)


class Planned(Exception):
    """An engine is made, and would begin."""


def planned(monkeypatch, graph, program, options):
    """Give what an engine on a GPU says that a run will take, and whether rows are hubs there."""

    def start(engine):
        # where whole classes stay, nearly as much as one of them takes may be left
        layout, stays = engine._layout, engine._strips.place >= 0
        left = layout.largest_class * layout.bytes_an_entry
        left *= engine._strips.a_class == 1 and 0 < stays.sum() < stays.size
        raise Planned(engine._predicted, int(engine._workspace.plan.number_of_hubs), left)

    def kernels(engine):
        index_type = engine._workload.rows.index_dtype.type
        return None, None, votes.build(engine._compiled, index_type, gpu_target())

    monkeypatch.setattr(warp_reductions.instructions, "reduces_lanes", lambda: True)
    for module in (gpu, gpu_streamed):
        monkeypatch.setattr(module, "multiprocessors", lambda: 132)
    for module in (gpu, gpu_streamed, gpu_streamed_packed, launched, strips, packed_strips):
        monkeypatch.setattr(module, "bound", lambda array: array)
    monkeypatch.setattr(gpu_streamed.StreamedGpuEngine, "_kernels", kernels)
    monkeypatch.setattr(gpu_streamed.StreamedGpuEngine, "start", start)
    monkeypatch.setattr(run_of_programs, "module_on", lambda device: np)
    monkeypatch.setattr(run_of_programs, "to_device", lambda array, device: array)
    monkeypatch.setattr(run_of_programs, "watched", lambda device: nullcontext())
    monkeypatch.setattr(memory, "free_on_gpu", lambda: None)
    with pytest.raises(Planned) as found:
        run_of_programs.run(graph, program, options)
    predicted, hubs, left = found.value.args
    item = graph.index_dtype.itemsize
    state = graph.number_of_vertices * (item + program._bytes_a_vertex(graph.index_dtype))
    return state + predicted, hubs, left


@cache
def many_pairs():
    return np.array(graphs.power_law_pairs(30_000, 1_000_000, 3)).T


@pytest.mark.parametrize(
    ("share", "way"),
    [*product([0, 30, 90, 200], ["streamed plain"]), (10, "streamed packed")],
)
def test_an_estimate_is_what_an_engine_says(monkeypatch, share, way):
    step = 1 if share == 90 else 7  # ids without a gap, or whose words are kept
    edges = step * many_pairs()
    weights = (np.ones(edges.shape[1]),) if share == 30 else ()
    graph = as_graph((*edges, *weights), vertices=step * np.arange(30_000), device="cpu")
    limit = 30_000 * 45 + 1_000_000 + bytes_of_csr(graph) * share // 100
    bits = None
    if way == "streamed packed":
        graph = compress(graph, "packed", segment=128, device="cpu")
    else:
        bits = 8
    estimates = estimate_memory(graph, device="gpu", memory_limit=limit, bits_per_entry=bits)
    estimated = estimates.set_index("way")["device_bytes"][way]
    options = Options(streams_to="gpu", memory_limit=limit)
    predicted, hubs, left = planned(monkeypatch, graph, Classic(), options)
    assert hubs
    assert predicted <= limit
    off = estimated - predicted
    assert -0.05 * predicted <= off <= max(0.05 * predicted, left), (estimated, predicted)


class OnDevice(np.ndarray):
    """An array that says where its memory is, as CuPy's do."""

    @property
    def data(self):
        whole = self if self.base is None or not isinstance(self.base, OnDevice) else self.base
        return SimpleNamespace(mem=SimpleNamespace(ptr=whole.ctypes.data, size=whole.nbytes))


def test_what_an_earlier_call_left_on_the_gpu_is_free_for_the_next(monkeypatch):
    graph = large()
    indptr, indices, workspace = (
        np.zeros(size, np.uint8).view(OnDevice) for size in (30_000, 900_000, 70_000)
    )
    moved = Graph(indptr, indices, None, False, graph.vertices)
    moved._derived["kept"] = {"run": (workspace[:5], DeviceArray.__new__(DeviceArray))}
    bound = moved._derived["kept"]["run"][1]
    bound.array, bound.kind, bound.packed, bound._numba_type_ = workspace[5:], "", b"", None
    graph._derived["gpu"] = moved
    assert bytes_on_gpu(moved) == 1_000_000
    monkeypatch.setattr(call, "LITTLE", 0)
    monkeypatch.setattr(call, "choose", lambda device: "gpu")
    monkeypatch.setattr(Graph, "to", lambda graph, device: graph if device == "cpu" else moved)
    for limit in ({}, {"memory_limit": "1GB"}):
        for enough in (0, 1):
            free = gpu_bytes_of(graph) - 1_000_001 + enough
            monkeypatch.setattr(call, "free_on_gpu", lambda free=free: free)
            monkeypatch.setattr(Options, "check_limit", lambda *_: None)
            assert (call.prepare(graph, limit)[1].streams_to is None) == bool(enough)


def test_a_limit_is_what_is_free_at_the_most(monkeypatch):
    graph, to_gpu = large(), partial(Options, streams_to="gpu")
    budget = partial(budget_of, graph, Classic())
    monkeypatch.setattr(memory, "free_on_gpu", lambda: 16 << 20)
    assert budget(to_gpu()).limit == 15 << 20
    assert budget(to_gpu(way="streamed plain")).limit == 15 << 20
    assert budget(to_gpu(memory_limit="1GB")).limit == 15 << 20
    assert budget(to_gpu(memory_limit=9 << 20)).limit == 9 << 20
    monkeypatch.setattr(memory, "free_on_gpu", lambda: None)
    assert budget(to_gpu()).limit is None
    assert budget(to_gpu(memory_limit=9 << 20)).limit == 9 << 20


@pytest.mark.parametrize("directed", [False, True])
def test_lists_that_are_read_have_to_fit_host_memory_once_more(monkeypatch, directed):
    graph, options = large(directed=directed), Options(streams_to="gpu")
    monkeypatch.setattr(memory, "free_on_gpu", lambda: 1 << 30)
    monkeypatch.setattr(memory, "LITTLE", 0)
    lists, made = graph.number_of_edges * 12 // 8, 0  # 4,000 vertices: 12 bits each
    if directed:  # and the readers; and the transpose, whose rows are read
        made = bytes_to_make(graph, options, "plain", readers=True)
        lists += graph.number_of_edges * 4
    monkeypatch.setattr(memory, "memory_free", lambda device: made + lists)
    budget_of(graph, Counting(), options)
    monkeypatch.setattr(memory, "memory_free", lambda device: made + lists - 5)
    with pytest.raises(MemoryError, match=r"host memory .*, 5 more than are free .*device='cpu'"):
        budget_of(graph, Counting(), options)
    monkeypatch.setattr(memory, "memory_free", lambda device: made)
    budget_of(graph, Classic(), options)  # whose lists are gathered
    # Lists of an earlier run are there, unless that was a hybrid one, whose lists are not packed.
    kept = graph.keep(("kept", options.direction if directed else None), dict)
    kept["strips"] = None, SimpleNamespace(bytes_an_entry=12 / 8)
    budget_of(graph, Counting(), options)
    kept["strips"] = None, SimpleNamespace(bytes_an_entry=4.0)
    with pytest.raises(MemoryError, match="host memory"):
        budget_of(graph, Counting(), options)


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_are_gathered_are_those_that_are_laid_out(monkeypatch, weighted):
    monkeypatch.setattr(gathered, "PIECE", 4_000)
    graph = large(3_000, 60_000, weighted=weighted)
    how = graph.rows("out"), 4, graph.id_words(), ([0, 32, 128], [2, 1, 0]), np
    whole = strips.laid_out(*how, packs=False)
    monkeypatch.setattr(pinned, "room_for", lambda size: False)
    layout = strips.laid_out(*how)
    assert whole.pinned
    assert not layout.pinned
    assert (layout.weights is None) == (not weighted)
    total, first = layout.number_of_entries, layout.starts[layout.bounds[1]]
    for host, expected in ((layout.entries, whole.entries), (layout.weights, whole.weights)):
        if host is None:
            continue
        for begin, end in ((0, total), (first, total), (first, first), (0, layout.starts[1])):
            found, run = np.zeros(total, host.array.dtype), host.of_a_run()
            pieces = [(at, values.copy()) for at, values in run.copies(0, begin, end)]
            for at, values in pieces:
                found[at : at + values.size] = values
            assert np.array_equal(found[begin:end], expected.array[begin:end])
            assert not found[end:].any()
            assert len(pieces) > 5 or end - begin < total // 2
            run.let_go()


def test_ways_of_a_graph_that_is_streamed_to_a_gpu(monkeypatch):
    graph = large()
    monkeypatch.setattr(memory, "free_on_gpu", lambda: 1 << 30)
    to_gpu = partial(Options, streams_to="gpu")
    assert ways.ways_of(graph, to_gpu()) == ("streamed plain",)
    assert ways.ways_of(graph, to_gpu(way="streamed plain")) == ("streamed plain",)
    said = r"memory_limit=1,000 bytes is at least ([\d,]+) too little .* on the gpu"
    with pytest.raises(MemoryError, match=said) as error:
        budget_of(graph, Classic(), to_gpu(memory_limit=1_000))
    lacking = int(re.search(said, str(error.value))[1].replace(",", ""))
    budget_of(graph, Classic(), to_gpu(memory_limit=1_000 + lacking))
