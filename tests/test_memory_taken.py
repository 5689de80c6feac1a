"""Label propagation takes the memory that was predicted, and no more than its limit."""

import gc
import tracemalloc
from functools import partial

import numpy as np
import pytest
from cases import exhaustive, some
from memory_limits import LARGE, STREAMED, assert_same, bare, large, least, reported
from programs import PROGRAMS

from glp_rapids import CompressedGraph, Graph, compress, label_propagation
from glp_rapids.device import memory_taken
from glp_rapids.propagation import ways
from glp_rapids.propagation.options import Options
from glp_rapids.propagation.run import run
from glp_rapids.propagation.variants.classic import Classic

# ---------------------------------------------------------------- what it takes


# what a graph takes and what its way takes are added up: every way once, every kind of graph once
@pytest.mark.parametrize(
    ("kind", "update", "way"),
    [
        *(("weighted", "semi", way) for way in (None, "plain", "packed", *STREAMED)),
        ("weighted", "sync", "streamed packed"),
        *exhaustive(
            *(("directed, weighted", "semi", way) for way in (None, "packed", *STREAMED)),
            ("undirected", "sync", "streamed plain"),
            ("directed", "sync", "streamed packed"),
            ("directed", "sync", "plain"),
        ),
    ],
)
def test_a_run_takes_what_was_predicted_and_no_more_than_the_limit(way, update, kind):
    graph = large(20_000, 200_000, **LARGE[kind])
    if way is not None and ways.WAYS[way].form == "compressed":
        graph = compress(graph)
    how = {"update": update, "max_iter": 4, "way": way or "auto"}

    def call(**limit):
        return run(bare(graph), Classic(), Options(**how, **limit))

    fewest = least(call)
    for limit in (fewest, int(1.1 * fewest), 1 << 30):
        gc.collect()  # which empties the lists of tuples that Python keeps; a call fills them again
        call(memory_limit=limit)
        subject = bare(graph)
        taken = memory_taken(*subject.rows("out").arrays())
        tracemalloc.start()
        report = run(subject, Classic(), Options(**how, memory_limit=limit)).report
        peak = taken + tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        # tuples that Python keeps of the calls for many strips, up to some hundred KB in a process
        tuples = 1 << 16 if limit == fewest else 0
        assert peak <= limit + tuples
        assert 0.9 * report["predicted"] <= peak <= report["predicted"] + tuples


@pytest.mark.parametrize("kind", ["directed, compressed", "packed", "both"])
def test_what_is_made_of_the_graph_first_is_predicted_without_a_limit_too(kind):
    graph = large(20_000, 200_000, directed=kind != "packed")
    if kind == "directed, compressed":
        graph = compress(graph)
    how = {"packed": {"way": "packed"}, "both": {"direction": "both"}}.get(kind, {})
    call = partial(label_propagation, device="cpu", max_iter=2, **how)
    call(bare(graph))
    subject, taken = bare(graph), memory_taken(*graph.rows("out").arrays())
    gc.collect()
    tracemalloc.start()
    predicted = call(subject).attrs["glp"]["predicted"]
    peak = taken + tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 1.02 * predicted + (1 << 16)
    assert predicted == call(bare(graph), memory_limit=1 << 30).attrs["glp"]["predicted"]
    assert call(subject).attrs["glp"]["predicted"] < predicted  # it is kept


@pytest.mark.parametrize("program", some(PROGRAMS, "layered", "speakers", "seeded"))
def test_state_counts(program):
    graph = large(20_000, 200_000)
    call = partial(PROGRAMS[program], device="cpu", way="streamed plain")
    limit = int(1.05 * least(lambda **given: call(bare(graph), **given)))
    gc.collect()
    call(bare(graph), memory_limit=limit)
    subject, taken = bare(graph), memory_taken(*graph.arrays())
    tracemalloc.start()
    found = call(subject, memory_limit=limit)
    peak = taken + tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert reported(found)["way"] == "streamed plain"
    # frames are made when the run is over: covers and layers of several rows a vertex, and orders
    of_rows = 3 * int(found.memory_usage().sum())
    beside = of_rows if program in ("layered", "ordering", "speakers") else 1 << 15
    assert peak <= limit + beside


def test_rows_of_the_other_direction_count():
    graph = large(directed=True)
    one, other = (
        least(lambda **given: label_propagation(bare(graph), way="streamed plain", **given),
              direction=direction, skip_inactive=False, max_iter=2)
        for direction in ("out", "in")
    )  # fmt: skip
    assert other - one > 4 * graph.number_of_edges


# ---------------------------------------------------------------- graphs in mapped files


def mapped(graph, folder):
    """The same graph, its arrays in files."""
    arrays = []
    for name in ("indptr", "indices", "weights"):
        array = getattr(graph, name)
        if array is not None:
            np.save(folder / f"{name}.npy", array)
            array = np.load(folder / f"{name}.npy", mmap_mode="r")
        arrays.append(array)
    return Graph(*arrays, graph.directed, graph.vertices)


@pytest.mark.parametrize("kind", some(LARGE, "undirected", "directed, weighted"))
def test_mapped_graphs_take_no_memory(kind, tmp_path):
    graph = large(**LARGE[kind])
    there = mapped(graph, tmp_path)
    options = {"max_iter": 5, "direction": "out"}
    expected = label_propagation(graph, **options)
    for way in ways.ON_CPU:
        assert_same(label_propagation(there, **options, way=way), expected)
    one, other = (
        least(lambda **given: label_propagation(bare(of), **given), **options)  # noqa: B023
        for of in (graph, there)
    )
    assert one - other == pytest.approx(memory_taken(*graph.arrays()), rel=0.03)
    found = label_propagation(bare(there), **options, memory_limit=other)
    assert_same(found, expected)
    assert found.attrs["glp"]["way"] == "streamed plain"


def test_compressed_graphs_in_files_take_no_memory(tmp_path):
    graph = compress(large(weighted=True))
    graph.save(tmp_path / "graph.glp")
    there = CompressedGraph.open(tmp_path / "graph.glp", device="cpu")
    one, other = (
        least(lambda **given: label_propagation(bare(of), **given), max_iter=3)  # noqa: B023
        for of in (graph, there)
    )
    assert one - other == pytest.approx(graph.nbytes, rel=0.03)
    expected = label_propagation(graph)
    found = label_propagation(bare(there), memory_limit=int(1.02 * other))
    assert_same(found, expected)
    assert found.attrs["glp"]["way"] == "streamed packed"
