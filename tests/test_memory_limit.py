"""A limit of memory changes how label propagation runs on a CPU, and nothing else."""

import itertools
from functools import partial

import graphs
import numpy as np
import pandas as pd
import pytest
from cases import some
from hypothesis import given
from hypothesis import strategies as st
from memory_limits import (
    EVERY,
    LARGE,
    SELECTED,
    STREAMED,
    assert_same,
    bare,
    directions,
    lack,
    large,
    least,
    reported,
)
from programs import Counting

import glp_rapids
from glp_rapids import as_graph, compress, device, label_propagation
from glp_rapids.device import LackOfMemory, memory_taken
from glp_rapids.propagation import memory, ways
from glp_rapids.propagation.engines import cpu_arrays
from glp_rapids.propagation.kernels.cpu import class_lists, hash_votes, tables
from glp_rapids.propagation.schedule import class_lists as class_lists_of_arrays


@pytest.fixture
def short_strips(monkeypatch):
    """Let the buffer hold the longest row and no more, and small graphs be streamed, too."""
    monkeypatch.setattr(cpu_arrays, "BUFFER", 1)
    monkeypatch.setattr(cpu_arrays, "BUFFER_A_VERTEX", 0)
    monkeypatch.setattr(cpu_arrays, "SMALL", 0)


# ---------------------------------------------------------------- the same answer


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_any_graph_in_strips_of_a_row(short_strips, name):
    graph = as_graph(**graphs.GRAPHS[name](), device="cpu")
    for direction in directions(graph):
        expected = label_propagation(graph, direction=direction)
        found = label_propagation(graph, direction=direction, way="streamed plain")
        assert_same(found, expected)
        assert found.attrs["glp"]["way"] == "streamed plain"


@pytest.mark.parametrize("way", STREAMED)
@pytest.mark.parametrize("program", EVERY)
@pytest.mark.parametrize("name", some(SELECTED, "hub", "uneven weights", "directed weighted"))
def test_any_program_in_strips_of_a_row(short_strips, name, program, way):
    graph = as_graph(**graphs.GRAPHS[name](), device="cpu")
    for direction in directions(graph):
        if direction == "both" and way == "streamed packed":
            continue
        expected = EVERY[program](graph, direction=direction)
        found = EVERY[program](graph, direction=direction, way=way)
        assert_same(found, expected)
        assert reported(found)["way"] == way


@given(
    graphs.edge_frames(), st.integers(0, 9), st.sampled_from(ways.ON_CPU), st.integers(1, 5),
    st.sampled_from(["semi", "sync"]),
)  # fmt: skip
def test_drawn_graphs(edges, seed, way, room, update):
    graph = as_graph(**edges, device="cpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_arrays, "BUFFER", room)
        patch.setattr(cpu_arrays, "BUFFER_A_VERTEX", 0)
        patch.setattr(cpu_arrays, "SMALL", 0)
        for direction in directions(graph):
            if direction == "both" and ways.WAYS[way].form == "compressed":
                continue
            options = {"direction": direction, "seed": seed, "classes": 3, "update": update,
                       "max_iter": 12}  # fmt: skip
            expected = label_propagation(graph, **options)
            assert_same(label_propagation(graph, **options, way=way), expected)


@pytest.mark.parametrize("kind", some(LARGE, "undirected", "directed, weighted"))
@pytest.mark.parametrize("packed", [False, True])
def test_limits_of_a_share_of_what_it_takes(kind, packed):
    plain = large(**LARGE[kind])
    graph = compress(plain) if packed else plain
    options = {"max_iter": 8}
    expected = label_propagation(plain, **options)
    label_propagation(graph, max_iter=1)  # to decode a graph and reverse it takes more than a run
    for way in ("auto", STREAMED[packed]):
        needed = label_propagation(graph, **options, memory_limit="1GB")
        needed = needed.attrs["glp"]["predicted"]
        fewest = least(lambda **given: label_propagation(graph, **given), way=way, **options)
        assert fewest < needed
        seen = set()
        for share in (0.05, 0.1, 0.25, 0.5, 1.0):
            limit = int(share * needed)
            if limit < fewest:
                assert lack(label_propagation, graph, way=way, memory_limit=limit)
                limit = int(fewest + share * (needed - fewest))  # of what may be more or less
            found = label_propagation(graph, way=way, memory_limit=limit, **options)
            assert_same(found, expected)
            report = found.attrs["glp"]
            assert report["memory_limit"] == limit
            assert report["predicted"] <= limit
            seen.add(report["way"])
        assert STREAMED[packed] in seen
        if way == "auto":
            assert report["way"] == ("packed" if packed else "plain")


@pytest.mark.parametrize("packed", [False, True])
def test_layers_that_do_not_fit_are_refused_before_the_first(packed):
    graph = compress(large()) if packed else large()
    gammas, seen = [0, 0.5, 1, 2, 4, 8, 16, 32], []
    call = partial(glp_rapids.layered_label_propagation, gammas=gammas, max_iter=4)
    expected = call(graph)
    fewest = least(call, graph)
    for limit in (fewest - 100, fewest - 4 * graph.number_of_vertices):
        lacking = lack(call, graph, memory_limit=limit, progress=seen.append)
        assert lacking == fewest - limit
        assert not seen
    found = call(graph, memory_limit=fewest)
    assert_same(found, expected)
    held = [layer["predicted"] for layer in found.attrs["glp"]["layers"]]
    assert max(held) <= fewest
    told = partial(
        glp_rapids.estimate_memory, graph, "layered_label_propagation", device="cpu", gammas=gammas
    )
    of_form = told(memory_limit=fewest)["way"].isin(["packed", "streamed packed"]) == packed
    assert told(memory_limit=fewest)["fits"][of_form].any()
    assert not told(memory_limit=fewest - 100)["fits"][of_form].any()


def test_every_kind_of_table_gives_the_same_labels(monkeypatch):
    graph = large()
    expected = label_propagation(graph)
    kinds = tables.kinds_for(graph.number_of_vertices, graph.rows().largest_degree(), True)
    assert kinds == [tables.STAMPED, tables.DIRECT, tables.HASHED]
    for kind in kinds:
        monkeypatch.setattr(tables, "kinds_for", lambda *sizes, kind=kind: [kind])
        for way in ("plain", "streamed plain"):
            assert_same(label_propagation(graph, way=way), expected)


def test_a_memory_of_less_takes_slower_tables_and_then_shorter_strips():
    sizes = cpu_arrays.Sizes(
        1 << 20, 1 << 24, 1000, np.int32, None, classes=32, threads=2, unit_votes=True
    )
    taken = partial(cpu_arrays.streamed_arrays, sizes, largest_class=1 << 18)
    bytes_of = lambda layout: sum(one.nbytes for one in taken(layout).values())  # noqa: E731
    free = cpu_arrays.streamed_layout(sizes, 1 << 18, None)
    assert free.tables == tables.STAMPED
    assert free.room == 1 << 22
    before = free
    for memory_there in range(bytes_of(free), 0, -(1 << 20)):
        layout = cpu_arrays.streamed_layout(sizes, 1 << 18, memory_there)
        if layout.room < sizes.longest_row:
            break
        assert bytes_of(layout) <= memory_there
        if (layout.tables, layout.threads) == (before.tables, before.threads):
            assert layout.room <= before.room
        else:
            assert before.room < cpu_arrays.ENOUGH + (1 << 18)
        before = layout
    assert (before.tables, before.threads) == (tables.HASHED, 1)


@pytest.mark.parametrize("classes", [1, 2, 3, 32, 300, 65536])
@pytest.mark.parametrize("ids", ["range", "strings"])
def test_classes_by_counting_are_those_by_sorting(classes, ids):
    n = 700
    names = np.arange(n) if ids == "range" else [f"v{i}" for i in range(n)]
    graph = as_graph(([], []), vertices=names, device="cpu")
    words = graph.id_words()
    indptr, expected = class_lists_of_arrays(words, n, classes)
    offsets = class_lists.class_offsets(words, n, classes)
    found = np.empty(n, np.int32)
    class_lists.vertices_by_class(words, offsets, found)
    np.testing.assert_array_equal(offsets, indptr)
    np.testing.assert_array_equal(found, expected)
    assert class_lists.largest_class(offsets, 1) == np.diff(indptr).max()


# ---------------------------------------------------------------- what the limit is


def test_the_error_says_by_how_much_and_what_to_do(monkeypatch):
    # one thread alone has room for all of them at once under the least of classes
    monkeypatch.setattr(hash_votes, "threads_for", lambda entries: 2)
    graph = large()
    fewest = least(lambda **given: label_propagation(bare(graph), **given))
    label_propagation(bare(graph), memory_limit=fewest)
    for below in (100, 10_000):
        lacking = lack(label_propagation, bare(graph), memory_limit=fewest - below)
        assert lacking == pytest.approx(below, abs=1 + below // 32)
    for lines, words in (
        (
            {},
            r"the longest row, [\d,]+ entries: .*; raise memory_limit, let the graph lie in a",
        ),
        ({"way": "plain"}, r"'plain' takes .*tables and a copy of lists.* leave way='auto'"),
        ({"update": "sync"}, r"update='semi'"),
    ):
        with pytest.raises(LackOfMemory, match=words) as caught:
            label_propagation(bare(graph), memory_limit=fewest - 100, **lines)
        assert "\n" not in str(caught.value)


def test_the_error_names_the_way_that_takes_the_least():
    # strips of a small graph take more for Python's own objects than they save
    edges = pd.DataFrame({"src": [0, 1, 2, 3], "dst": [1, 2, 3, 4]})
    with pytest.raises(LackOfMemory, match=r"'plain' takes [\d,]+ at the least"):
        label_propagation(edges, device="cpu", memory_limit=5_000)
    lacking = lack(label_propagation, edges, device="cpu", memory_limit=5_000)
    label_propagation(edges, device="cpu", memory_limit=5_000 + lacking)


def test_a_limit_below_labels_is_refused_before_anything_is_made(monkeypatch):
    monkeypatch.setattr(glp_rapids.propagation.run, "initial_state", None)
    graph = large(directed=True)
    with pytest.raises(
        LackOfMemory, match=r"before the engine's own arrays \(the graph, .*rows in"
    ):
        label_propagation(graph, memory_limit=memory_taken(*graph.arrays()) + 100)
    assert "transpose" not in graph._derived


def test_what_is_free_is_the_limit_where_none_is_given(monkeypatch):
    graph = large()
    report = label_propagation(graph).attrs["glp"]
    assert (report["way"], report["memory_limit"]) == ("plain", None)
    monkeypatch.setattr(memory, "LITTLE", 0)
    taken = memory_taken(*graph.arrays(), graph.id_words().words)
    for free, way in ((1 << 30, "plain"), (report["predicted"] - taken, "streamed plain")):
        monkeypatch.setattr(memory, "memory_free", lambda device, free=free: free)
        found = label_propagation(graph).attrs["glp"]
        assert (found["way"], found["memory_limit"]) == (way, free + taken)
    monkeypatch.setattr(memory, "memory_free", lambda device: 1000)
    with pytest.raises(LackOfMemory, match=r"bytes that are free, or held by the graph, are"):
        label_propagation(graph)


@pytest.mark.parametrize("direction", ["in", "out", "both"])
@pytest.mark.parametrize("packed", [False, True])
def test_what_is_kept_from_runs_before_counts_once(packed, direction, monkeypatch):
    edges = pd.DataFrame(np.array(graphs.power_law_pairs(1_000, 20_000, 1)), columns=["src", "dst"])
    graph = as_graph(edges.astype(str), directed=True, device="cpu")
    graph = compress(graph) if packed else graph

    def free(device):
        rows = [graph.rows("out")]
        if graph.has("transpose"):
            rows.append(graph.rows("in"))
        if graph.has("both"):
            rows.append(graph.rows("both"))
        words = [graph.id_words().words] if graph.has("id words") else []
        arrays = itertools.chain(words, *(one.arrays() for one in rows))
        return (64 << 20) - memory_taken(*arrays)

    monkeypatch.setattr(memory, "LITTLE", 0)
    monkeypatch.setattr(memory, "memory_free", free)
    limits = {
        label_propagation(graph, direction=direction).attrs["glp"]["memory_limit"] for _ in range(3)
    }
    assert limits == {64 << 20}


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize(
    ("limit", "usage", "inactive", "left"),
    [
        (1_000_000, 400_000, 0, 600_000),
        (1_000_000, 900_000, 500_000, 600_000),
        (1_000_000, 1_100_000, 0, 0),
        ("max", 400_000, 0, None),
        (2**63 - 4096, 400_000, 0, None),  # no limit, as version 1 says it
    ],
)
def test_limits_of_a_control_group(version, limit, usage, inactive, left, tmp_path, monkeypatch):
    group = device.CONTROL_GROUPS[version]
    stat = f"cache 7\nactive_file 9\n{group.inactive} {inactive}\nunevictable 0\n"
    for name, said in (("limit", limit), ("usage", usage), ("stat", stat)):
        (tmp_path / name).write_text(f"{said}\n")
    there = group._replace(**{name: str(tmp_path / name) for name in ("limit", "usage", "stat")})
    absent = group._replace(limit=str(tmp_path / "absent"))
    monkeypatch.setattr(device, "_free_of_machine", lambda: 1 << 30)
    monkeypatch.setattr(device, "CONTROL_GROUPS", [absent, there])
    assert device.memory_free("cpu") == (1 << 30 if left is None else left)
    monkeypatch.setattr(device, "_free_of_machine", lambda: 500)
    assert device.memory_free("cpu") == min(500, 500 if left is None else left)


# ---------------------------------------------------------------- strips


def test_a_programs_mistake_is_found_in_strips(short_strips):
    program = Counting()
    program.largest_amount = 1e-9
    edges = graphs.edges(graphs.two_cliques())
    with pytest.raises(ValueError, match="load_neighbor returned an amount"):
        glp_rapids.propagate(**edges, device="cpu", program=program, way="streamed plain")


def test_one_thread_and_many_give_the_same_in_strips(monkeypatch):
    graph = large()
    for threads, room in itertools.product((1, 3), (1, 1 << 14)):
        monkeypatch.setattr(hash_votes, "threads_for", lambda entries, threads=threads: threads)
        monkeypatch.setattr(cpu_arrays, "BUFFER", room)
        monkeypatch.setattr(cpu_arrays, "BUFFER_A_VERTEX", 0)
        found = label_propagation(graph, way="streamed plain", max_iter=4)
        assert_same(found, label_propagation(graph, way="plain", max_iter=4))
