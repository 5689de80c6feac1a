"""Lists streamed from host memory to a GPU: the same answer, however they are copied."""

import graphs
import numpy as np
import pytest
from cases import exhaustive
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_limits import EVERY, SELECTED, assert_same, directions, large, reported
from streamed_cases import BY_KERNEL, OF_KERNEL, STREAMED, UNIT, by_kernel, needs_gpu

from glp_rapids import as_graph, compress, label_propagation
from glp_rapids.propagation.engines import fetched_rows, gpu_streamed

# Every strip is copied as a whole, or fetched row by row, or what the census says; or classes are;
# and what a launch is said to take: if any time at all, all is fetched in one.
CHOICES = {
    "copied": (0.0, 0.0), "fetched": (np.inf, 0.0), "chosen": (fetched_rows.SPARSE, 0.0),
    "at once": (fetched_rows.SPARSE, 1.0), "classes": (np.inf, 0.0),
}  # fmt: skip


def in_strips_of_a_row(choice, patch):
    """Let a strip hold the longest row and no more."""
    patch.setattr(gpu_streamed, "MOST", 1)
    patch.setattr(gpu_streamed, "LEAST", 1)
    if choice != "classes":
        patch.setattr(gpu_streamed, "MOST_OF_CLASS", 1)
    sparse, a_launch = CHOICES[choice]
    patch.setattr(fetched_rows, "SPARSE", sparse)
    patch.setattr(gpu_streamed.StreamedGpuEngine, "_a_launch", a_launch)


def assert_streamed_alike(program, name, directions, packed=False):
    graph, run = as_graph(**graphs.GRAPHS[name](), device="cpu"), EVERY[program]
    given, way = graph, "streamed plain"
    if packed:
        given = compress(graph, "packed", segment=128, device="cpu")
        way = "streamed packed"
    for direction in directions(graph):
        expected = run(graph, direction=direction, device="cpu")
        for choice in CHOICES:
            print(program, name, direction, choice)
            with pytest.MonkeyPatch.context() as patch:
                in_strips_of_a_row(choice, patch)
                found = run(given, direction=direction, device="gpu", way=way)
            assert_same(found, expected)
            if program != "ordering":
                report = reported(found)
                assert (report["way"], report["device"]) == (way, "gpu")


@pytest.mark.usefixtures("full_of_old")
@by_kernel("program, kernel", ["classic", "layered", "speakers", "seeded", "counting", "wavering"])
def test_any_program_on_any_graph_in_strips_of_a_row(program, kernel):
    names, both = BY_KERNEL[kernel], slice(None)
    if program != "classic":
        names, both = [name for name in names if name in SELECTED], slice(2)
    for name in names:
        for same in OF_KERNEL.get(program, (program,)):
            assert_streamed_alike(same, name, lambda graph: directions(graph)[both])


@pytest.mark.gpu
@pytest.mark.xdist_group("packed")
@pytest.mark.usefixtures("full_of_old")
def test_packed_lists_in_strips_of_a_row():
    for name in UNIT:
        for same in OF_KERNEL["classic"]:
            assert_streamed_alike(same, name, directions, packed=True)


@needs_gpu
def test_packed_lists_are_streamed_by_label_propagation_alone():
    graph, way = large(), {"device": "gpu", "way": "streamed packed"}
    packed = compress(graph, "packed", segment=128, device="cpu")
    for program in ("layered", "speakers", "counting"):
        with pytest.raises(MemoryError, match="only by label_propagation"):
            EVERY[program](packed, **way)


@needs_gpu
@pytest.mark.parametrize("weighted", [False, *exhaustive(True)])
@settings(max_examples=10)
@given(graphs.edge_frames(), st.integers(0, 9), st.sampled_from(["semi", "sync"]), st.data())
def test_drawn_graphs(weighted, edges, seed, update, draw):
    if not weighted:  # each type of weights has a kernel of its own, and so have directed graphs
        edges = {**edges, "directed": False, "multigraph": "merge"}
        edges.pop("weight", None)
    graph = as_graph(**edges, device="cpu")
    options = {"seed": seed, "update": update, "skip_inactive": draw.draw(st.booleans())}
    with pytest.MonkeyPatch.context() as patch:
        for name in ("MOST", "MOST_OF_CLASS", "LEAST"):
            patch.setattr(gpu_streamed, name, draw.draw(st.sampled_from([1, 40, 400])))
        patch.setattr(fetched_rows, "SPARSE", draw.draw(st.sampled_from([0.0, 0.5, np.inf])))
        a_launch = draw.draw(st.sampled_from([0.0, 1.0]))
        patch.setattr(gpu_streamed.StreamedGpuEngine, "_a_launch", a_launch)
        found = label_propagation(graph, **options, **STREAMED)
    assert_same(found, label_propagation(graph, **options, device="cpu"))


@needs_gpu
def test_a_stream_of_the_callers():
    import cupy

    graph = large()
    with cupy.cuda.Stream(non_blocking=True):
        found = label_propagation(graph, **STREAMED)
    assert_same(found, label_propagation(graph, device="cpu"))


@needs_gpu
def test_a_warm_start():
    graph = large()
    initial = label_propagation(graph, device="cpu", max_iter=2)
    expected = label_propagation(graph, initial=initial, device="cpu")
    found = label_propagation(graph, initial=initial, **STREAMED)
    assert_same(found, expected)
