"""What GPUs take that share a graph in host memory, and what is said where it is too much."""

import contextlib
from itertools import pairwise

import pytest
from memory_limits import bare, large
from programs import Counting

from glp_rapids import Graph, compress
from glp_rapids.device import LackOfMemory
from glp_rapids.ingest import read
from glp_rapids.multigpu.partition import ranges_of, readers_in_range, rows_of_range
from glp_rapids.propagation import call, memory, options, part_memory
from glp_rapids.propagation import run as run_of_programs
from glp_rapids.propagation.options import Options
from glp_rapids.propagation.program import Program
from glp_rapids.propagation.variants.classic import Classic
from glp_rapids.propagation.variants.layered import Layered
from glp_rapids.propagation.variants.speaker_listener import SpeakerListener


@pytest.fixture
def two_gpus(monkeypatch):
    """Let ``devices=[0, 1]`` pass, with so many bytes free on each as the list says."""
    free, current = [1 << 30, 1 << 30], []

    @contextlib.contextmanager
    def current_gpu(number):
        current.append(number)
        yield
        current.pop()

    monkeypatch.setattr(options, "devices_of", lambda devices: devices and tuple(devices))
    monkeypatch.setattr(part_memory, "how_of", lambda devices: "peer stores")
    monkeypatch.setattr(part_memory, "current_gpu", current_gpu)
    monkeypatch.setattr(part_memory, "free_on_gpu", lambda: free[current[-1]])
    return free


def shared(**how):
    return Options(devices=[0, 1], streams_to="gpu", **how)


@pytest.mark.parametrize("how", ["nccl", "peer stores"])
@pytest.mark.parametrize("program", [Classic(), Layered(1.0)])
@pytest.mark.parametrize("direction", ["in", "out", "both"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_part_counts_its_lists(program, direction, weighted, how, two_gpus, monkeypatch):
    monkeypatch.setattr(part_memory, "how_of", lambda devices: how)
    graph = large(3_000, 40_000, weighted=weighted, directed=True)
    parts = part_memory.parts_of(graph, program, shared(direction=direction)).parts
    rows, readers = graph.rows(direction), graph.readers(direction)
    bounds = ranges_of(rows.indptr, 2)
    for part, (first, last) in zip(parts, pairwise(bounds), strict=True):
        own = rows_of_range(rows, first, last)
        arrays = (own.indptr, own.indices, *([] if own.weights is None else [own.weights]))
        assert part["its rows"] == sum(array.nbytes for array in arrays)
        inside = readers_in_range(readers, first, last, own.number_of_edges)
        if how == "peer stores":
            inside = rows_of_range(readers, first, last)
        skips = isinstance(program, Classic)  # who counts volumes skips nobody
        apart = skips and (how == "nccl" or readers is not rows)
        of_readers = inside.indptr.nbytes + inside.indices.nbytes
        assert part["who reads its vertices"] == apart * of_readers
        assert part[part_memory.STATE] == 3_000 * (8 if skips else 12)
    everybody = shared(direction=direction, skip_inactive=False)
    without = part_memory.parts_of(graph, program, everybody).parts
    assert {part["who reads its vertices"] for part in without} == {0}


def test_a_part_that_does_not_fit_is_named_with_what_lacks(two_gpus):
    graph = large()
    parts = part_memory.parts_of(graph, Classic(), shared())
    needed = [sum(part.values()) for part in parts.parts]
    most = max(needed)
    enough = shared(memory_limit=most)
    assert part_memory.parts_of(graph, Classic(), enough).check() == most
    with pytest.raises(LackOfMemory, match=r" 5 too little"):
        part_memory.parts_of(graph, Classic(), enough).check(state=parts.state + 5)
    worst = needed.index(most)
    for limit in (1, most - 7):
        with pytest.raises(LackOfMemory) as budget:
            memory.budget_of(graph, Classic(), shared(memory_limit=limit, way="plain"))
        lacking = most - limit
        assert budget.match(rf"memory_limit={limit:,} bytes is {lacking:,} too little on GPU")
        assert budget.match(rf"GPU {worst} for its part .*its rows: .*name more GPUs")
    two_gpus[:] = [16 * needed[0], 16]
    with pytest.raises(LackOfMemory, match=r"the 15 bytes that are free.* GPU 1 .*free some"):
        memory.budget_of(graph, Classic(), shared(way="plain"))


def test_what_they_do_not_hold_together_is_streamed_to_them(two_gpus):
    graph = large()
    most = part_memory.parts_of(graph, Classic(), shared()).check()
    for limit, way in ((most, "plain"), (most - 1, "streamed plain")):
        budget = memory.budget_of(graph, Classic(), shared(memory_limit=limit))
        assert budget.ways == (way,)
        assert (budget.parts is None) == (way == "streamed plain")
    assert budget.limit == most - 1
    two_gpus[:] = [1 << 30, 320_000]  # of which one part in 16 is left to others
    budget = memory.budget_of(graph, Classic(), shared(way="streamed plain"))
    assert (budget.ways, budget.limit) == (("streamed plain",), 300_000)
    with pytest.raises(LackOfMemory, match="labels and state"):
        memory.budget_of(graph, Classic(), shared(memory_limit=1))
    with pytest.raises(ValueError, match=r"'auto' or 'plain' with devices=, not 'streamed plain'"):
        Options(devices=["cpu", "cpu"], way="streamed plain")


def test_all_programs_are_streamed_to_several_gpus(two_gpus):
    for weighted, program in ((False, SpeakerListener(3)), (False, Counting()), (True, Layered(1))):
        for how in ({"way": "streamed plain"}, {"memory_limit": 300_000}):
            budget = memory.budget_of(large(weighted=weighted), program, shared(**how))
            assert budget.ways == ("streamed plain",)


def test_rows_in_another_direction_have_to_fit_host_memory(two_gpus, monkeypatch):
    graph = large(directed=True)
    monkeypatch.setattr(part_memory, "LITTLE", 0)
    monkeypatch.setattr(part_memory, "memory_free", lambda device: 9)
    with pytest.raises(LackOfMemory, match=r"rows in another direction .* of host memory"):
        part_memory.parts_of(graph, Classic(), shared())
    assert part_memory.parts_of(large(), Classic(), shared()).check()


def prepared(monkeypatch, graph, free=1 << 40, **how):
    monkeypatch.setattr(call, "LITTLE", 0)
    monkeypatch.setattr(call, "free_on_gpu", lambda: free)
    monkeypatch.setattr(call, "choose", lambda device: device or "gpu")
    monkeypatch.setattr(Options, "check_limit", lambda *_: None)
    moved = []

    def as_any_graph(graph, device):
        moved.append(device)
        return graph

    monkeypatch.setattr(Graph, "to", as_any_graph)
    monkeypatch.setattr(read, "as_any_graph", as_any_graph)
    return call.prepare(graph, {"devices": [0, 1], **how})[1], moved


def test_gpus_get_their_parts_from_host_memory_where_one_does_not_hold_the_whole(
    two_gpus, monkeypatch
):
    graph = large()
    found, moved = prepared(monkeypatch, graph)
    assert (found.streams_to, moved) == (None, ["gpu"])
    found, moved = prepared(monkeypatch, graph, free=1_000_000)
    assert (found.streams_to, moved) == ("gpu", ["cpu"])
    found, moved = prepared(monkeypatch, graph, memory_limit="1GB")
    assert (found.streams_to, found.memory_limit, moved) == ("gpu", 10**9, ["cpu"])
    found, _ = prepared(monkeypatch, compress(graph), memory_limit="1GB")
    assert (found.streams_to, found.way) == ("gpu", "auto")
    with pytest.raises(ValueError, match=r"compressed graph are cut for several GPUs where"):
        prepared(monkeypatch, compress(graph), way="plain")


@pytest.mark.parametrize("program", [Layered(1.0), SpeakerListener(3), Counting()])
def test_packed_lists_are_streamed_to_several_gpus_by_label_propagation_alone(program, two_gpus):
    packed = compress(large(), device="cpu")
    budget = memory.budget_of(packed, Classic(), shared())
    assert (budget.ways, budget.limit) == (("streamed packed",), min(two_gpus) * 15 // 16)
    said = f"by label_propagation alone, not by {type(program).__name__}"
    with pytest.raises(ValueError, match=said):
        memory.budget_of(packed, program, shared())


class Wide(Program):
    def _bytes_a_vertex(self, index_dtype):
        return 1 << 20


def test_without_devices_all_share_what_one_cannot_hold(two_gpus, monkeypatch):
    graph, alone = large(), Options(streams_to="gpu")
    monkeypatch.setattr(part_memory, "gpus_there", lambda: (0, 1))
    assert part_memory.shared_by_all(graph, Classic(), alone).devices == (0, 1)
    assert part_memory.shared_by_all(graph, Wide(), alone).devices is None
    two_gpus[1] = 16
    assert part_memory.shared_by_all(bare(graph), Classic(), alone).devices is None
    monkeypatch.setattr(part_memory, "gpus_there", lambda: (0,))
    two_gpus[1] = 1 << 30
    assert part_memory.shared_by_all(graph, Classic(), alone).devices is None


def test_who_says_nothing_may_have_several_gpus(monkeypatch):
    graph, alone = large(), Options(streams_to="gpu")
    assert run_of_programs.may_be_shared(graph, alone)
    assert not run_of_programs.may_be_shared(compress(graph), alone)
    assert not run_of_programs.may_be_shared(graph, Options())
    monkeypatch.setattr(Graph, "device", "gpu")
    assert not run_of_programs.may_be_shared(graph, Options())
    monkeypatch.setattr(run_of_programs, "SHARED_FROM", graph.number_of_edges)
    assert run_of_programs.may_be_shared(graph, Options())
    for how in ({"memory_limit": 1 << 20}, {"way": "plain"}, {"strategy": "sort"}):
        assert not run_of_programs.may_be_shared(graph, Options(**how))
