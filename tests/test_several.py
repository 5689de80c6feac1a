"""Several ranks share a graph: the labels, and the changes of every sweep, are those of one."""

import _thread
import json
import signal
import threading
import time
from functools import partial
from itertools import pairwise

import graphs
import numpy as np
import pandas as pd
import pytest
from cases import exhaustive, turns
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_limits import EVERY, assert_same, directions, large

import glp_rapids
from glp_rapids import as_graph, bench, compress, label_propagation
from glp_rapids.cli import main
from glp_rapids.device import gpu_available
from glp_rapids.ingest import shuffle
from glp_rapids.multigpu.exchange import RankFailed, as_ranks, exchanges
from glp_rapids.multigpu.partition import AT_ONCE, ranges_of, readers_in_range, rows_of_range
from glp_rapids.propagation.engines import partitioned, rank_cpu

FEW = ["only isolated", "power law", "directed weighted", "several columns"]


def on(ranks):
    return ["cpu"] * ranks


# ---------------------------------------------------------------- the same answer


@pytest.mark.parametrize(
    ("program", "ranks"), [*turns(EVERY, [3]), *exhaustive(("classic", 1), *turns(EVERY, [5, 2]))]
)
def test_any_program_on_any_graph(program, ranks):
    for name in FEW if ranks == 3 else graphs.GRAPHS:
        graph = as_graph(**graphs.GRAPHS[name](), device="cpu")
        for direction in directions(graph):
            expected = EVERY[program](graph, direction=direction, device="cpu")
            found = EVERY[program](graph, direction=direction, devices=on(ranks))
            if program == "ordering":
                assert found.equals(expected)
            else:
                assert_same(found, expected)


@settings(max_examples=15)
@given(graphs.edge_frames(), st.integers(1, 7), st.sampled_from(["semi", "sync"]), st.booleans())
def test_drawn_graphs(edges, ranks, update, skip):
    graph = as_graph(**edges, device="cpu")
    options = {"seed": ranks, "update": update, "skip_inactive": skip, "classes": 3}
    found = label_propagation(graph, devices=on(ranks), **options)
    assert_same(found, label_propagation(graph, **options, device="cpu"))


def test_a_graph_worth_several_threads_and_a_run_that_goes_on():
    """A rank has many chunks; those who are settled are so on several, and for the next run."""
    graph = large(20_000, 300_000)
    first = label_propagation(graph, device="cpu", max_iter=12)
    found = label_propagation(graph, devices=on(3), max_iter=12)
    assert_same(found, first)
    assert found.attrs["glp"]["pending"] == first.attrs["glp"]["pending"]
    ranks = found.attrs["glp"]["ranks"]
    assert sum(rank["vertices"] for rank in ranks) == graph.number_of_vertices
    assert all(rank["bytes_sent"] > 0 and rank["seconds_waiting"] >= 0 for rank in ranks)
    again = {"initial": first, "touched": np.arange(40), "connected": True}
    expected = label_propagation(graph, device="cpu", **again)
    seen = []
    found = label_propagation(graph, devices=on(2), progress=seen.append, **again)
    assert_same(found, expected)
    assert len(seen) == found.attrs["glp"]["sweeps"]
    assert found.attrs["glp"]["evaluated"] == expected.attrs["glp"]["evaluated"]


def test_ranks_share_the_threads_that_the_caller_has_set(monkeypatch):
    """Numba's number is one of each thread: those of the ranks do not know the caller's."""
    asked = []

    def threads():
        asked.append(threading.current_thread())
        return 2

    monkeypatch.setattr(partitioned, "threads_available", threads)
    label_propagation(large(200, 600), devices=on(2))
    assert asked == [threading.current_thread()]


# ---------------------------------------------------------------- parts


@pytest.mark.parametrize("ranks", [1, 2, 5, 40])
def test_parts_are_the_whole(ranks):
    graph = large(300, 4_000, weighted=True, directed=True)
    readers = graph.transpose()
    bounds = ranges_of(graph.indptr, ranks)
    assert (bounds[0], bounds[-1], len(bounds)) == (0, graph.number_of_vertices, ranks + 1)
    assert bounds == sorted(bounds)
    entries = []
    for first, last in pairwise(bounds):
        rows = rows_of_range(graph, first, last)
        entries.append(rows.number_of_edges)
        assert (rows.degree[first:last] == graph.degree[first:last]).all()
        assert not rows.degree[:first].any()
        assert not rows.degree[last:].any()
        begin, end = graph.indptr[[first, last]]
        assert (rows.indices == graph.indices[begin:end]).all()
        assert (rows.weights == graph.weights[begin:end]).all()
        at_once = 50 * (ranks - 1) or AT_ONCE
        inside = readers_in_range(readers, first, last, rows.number_of_edges, at_once=at_once)
        for v in range(graph.number_of_vertices):
            row = readers.indices[readers.indptr[v] : readers.indptr[v + 1]]
            found = inside.indices[inside.indptr[v] : inside.indptr[v + 1]]
            assert found.tolist() == [u for u in row.tolist() if first <= u < last]
    assert sum(entries) == graph.number_of_edges
    longest = int(graph.degree.max())
    assert max(entries) <= graph.number_of_edges / ranks + longest + 4 * 300 / ranks + 4


def test_a_hub_is_one_rank_and_others_may_have_nothing():
    star = as_graph((np.zeros(50, int), np.arange(1, 51)), directed=True, device="cpu")
    assert ranges_of(star.indptr, 4)[0] == 0
    alone = np.array([0, 1000, 1000, 1000])
    bounds = ranges_of(alone, 3)
    assert (bounds[0], bounds[-1]) == (0, 3)
    assert 0 in np.diff(bounds)


# ---------------------------------------------------------------- the exchange


def test_what_threads_exchange():
    def work(end):
        number = end.rank
        counts = [np.full(number * to, 10 * number + to) for to in range(3)]
        rooms = []

        def into(size):
            rooms.append(np.empty(size + 2, np.int64))
            return rooms

        gathered = end.allgather([np.full(number, number)], into)
        assert np.shares_memory(gathered[0], rooms[0])
        end.barrier()
        return (
            end.tell(chr(97 + number)), gathered[0].tolist(),
            [part.tolist() for part in end.alltoall(counts)], end.sum(number), end.bytes,
        )  # fmt: skip

    ends = exchanges(3)
    found = as_ranks([lambda end=end: work(end) for end in ends], ends[0].abort)
    for rank, (told, gathered, parts, total, sent) in enumerate(found):
        assert told == ["a", "b", "c"]
        assert gathered == [1, 2, 2]
        assert parts == [[10 * other + rank] * (other * rank) for other in range(3)]
        assert total == 3
        assert sent == 8 * (2 * rank + sum(rank * to for to in range(3) if to != rank))


def test_a_rank_that_fails_ends_all_with_its_own_error():
    stopped = []

    def waits(end):
        try:
            for _ in range(1000):
                end.barrier()
        except RankFailed as error:
            stopped.append(str(error))
            raise

    def fails(end):
        end.barrier()
        raise KeyError("lost")

    ends = exchanges(3)
    works = [lambda: waits(ends[0]), lambda: fails(ends[1]), lambda: waits(ends[2])]
    with pytest.raises(KeyError, match="lost"):
        as_ranks(works, ends[0].abort)
    assert len(stopped) == 2
    assert all("another one failed: KeyError: 'lost'" in said for said in stopped)
    with pytest.raises(RankFailed):
        ends[0].barrier()


def test_nobody_waits_for_ever():
    ends = exchanges(2, patience=0.01)
    with pytest.raises(RankFailed, match=r"waited 0\.01 seconds for others that did not come"):
        ends[0].barrier()


@pytest.fixture
def heeds_interrupts():
    """A process in the background of a shell ignores them, and all that it starts."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_interrupts")
def test_an_interrupt_stops_all_ranks():
    ends = exchanges(2)
    begun = threading.Barrier(2)

    def work(end):
        begun.wait()
        if end.rank:
            _thread.interrupt_main()
        while True:
            end.barrier()
            time.sleep(0.001)

    before = threading.active_count()
    with pytest.raises(KeyboardInterrupt):
        as_ranks([lambda end=end: work(end) for end in ends], ends[0].abort)
    assert threading.active_count() == before


def test_ranks_that_disagree_say_so(monkeypatch):
    report = rank_cpu.CpuRankEngine.report

    def miscounted(engine):
        engine._changed += engine._range[0] > 0
        return report(engine)

    monkeypatch.setattr(rank_cpu.CpuRankEngine, "report", miscounted)
    with pytest.raises(RuntimeError, match=r"counted .* changes in one sweep"):
        label_propagation(**graphs.GRAPHS["two cliques"](), devices=on(2))


# ---------------------------------------------------------------- bad input


class Wrong(glp_rapids.Program):
    def update_vertex(v, label, score, state):
        state.labels[v] = 99 if v > 6 else label


class Loud(glp_rapids.Program):
    largest_amount = 1.0

    def load_neighbor(v, u, weight, state):
        return state.labels[u], 2.5 if v > 7 else 0.5


@pytest.mark.parametrize("program", [Wrong(), Loud()])
def test_what_a_program_gets_wrong_is_said_as_on_one_device(program):
    graph = graphs.GRAPHS["two cliques"]()
    said = []
    for how in ({"device": "cpu"}, {"devices": on(3)}):
        with pytest.raises(ValueError, match="in sweep 1, at vertex") as info:
            glp_rapids.propagate(**graph, program=program, **how)
        said.append(str(info.value))
    assert said[0] == said[1]


def test_bad_devices():
    graph = as_graph(**graphs.GRAPHS["two cliques"](), device="cpu")
    for devices, error, match in (
        ("cpu", TypeError, "devices must be a list"),
        (3, TypeError, "devices must be a list"),
        ([], ValueError, "must name one at least"),
        ([1.5], TypeError, "must be numbers of GPUs, or 'cpu', not 1.5"),
        (["gpu"], TypeError, "or 'cpu', not 'gpu'"),
        ([True, "cpu"], TypeError, "not True"),
        ([0, "cpu"], ValueError, "all be GPUs or all be 'cpu'"),
    ):
        with pytest.raises(error, match=match):
            label_propagation(graph, devices=devices)
    for options, match in (
        ({"device": "gpu"}, "device='gpu' is none of devices="),
        ({"memory_limit": 1 << 20}, "memory_limit=1048576 is what each GPU of devices= may take"),
        ({"strategy": "sort"}, "strategy='sort' is for a run on one device"),
        ({"way": "packed"}, "way must be 'auto' or 'plain' with devices="),
    ):
        if options.get("device") == "gpu" and gpu_available():
            continue
        with pytest.raises(ValueError, match=match):
            label_propagation(graph, devices=on(2), **options)
    with pytest.raises(ValueError, match=r"pass graph\.to_graph"):
        label_propagation(compress(graph), devices=on(2))
    if not gpu_available():
        with pytest.raises(ValueError, match="no GPU can be used"):
            label_propagation(graph, devices=[0, 1])


def test_the_bench_compares_with_one_device(capsys):
    bench.main(["several", "--graphs", "large-8", "--devices", "cpu", "cpu", "--json"])
    ((title, rows),) = json.loads(capsys.readouterr().out).items()
    assert title == "One device beside 2: cpu, cpu"
    assert [row["run"] for row in rows] == ["defaults", "3 synchronous"]
    assert all(row["same"] and row["MB sent"] > 0 for row in rows)


def test_the_command_line(tmp_path, capsys):
    graphs.GRAPHS["two cliques"]()["graph"].to_csv(tmp_path / "edges.csv", index=False)
    printed = []
    for how in (["--device", "cpu"], ["--devices", "cpu", "cpu"]):
        assert main(["label-propagation", str(tmp_path / "edges.csv"), *how]) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != ""


@pytest.mark.parametrize("directed", [False, True])
def test_edges_come_to_their_owners_in_rounds(monkeypatch, directed):
    monkeypatch.setattr(shuffle, "A_ROUND", 7)
    draws = np.random.default_rng(0)
    frames = [
        pd.DataFrame(draws.integers(0, 40, (size, 3)), columns=["src", "dst", "w"])
        for size in (0, 50, 9)
    ]
    graph = glp_rapids.as_graph(pd.concat(frames), weight="w", directed=directed, device="cpu")
    rows = graph.rows("in")
    how = shuffle.readers.Options("src", "dst", "w", directed, None)
    given = zip(exchanges(3), frames, strict=True)
    works = [
        partial(shuffle.part_of, exchange, [frame], how, "merge", "in") for exchange, frame in given
    ]
    parts = as_ranks(works, works[0].args[0].abort)
    assert [part.first for part in parts[1:]] == [part.last for part in parts[:-1]]
    for part in parts:
        begin, end = rows.indptr[part.first], rows.indptr[part.last]
        assert np.diff(part.rows.indptr).sum() == end - begin
        np.testing.assert_array_equal(part.rows.indices, rows.indices[begin:end])
        np.testing.assert_array_equal(part.rows.weights, rows.weights[begin:end])
