import argparse
import dataclasses
import json
import weakref
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from glp_rapids import as_graph, bench, bfs, label_propagation
from glp_rapids.bench import (
    agreement,
    diversity,
    large,
    multilevel,
    overlap,
    quality,
    subjects,
    table,
    timing,
    traversal,
    warm,
    window,
)
from glp_rapids.bench.large_graph import large_graph
from glp_rapids.device import gpu_available
from glp_rapids.metrics import cover_f1, modularity
from glp_rapids.propagation.ways import ON_CPU


def tables_of(*arguments):
    parser = argparse.ArgumentParser()
    bench.add_benches(parser)
    return json.loads(bench.run(parser.parse_args([*arguments, "--json"])))


def test_markdown_pads_and_aligns():
    rows = [{"graph": "a", "seconds": 1.25, "ok": True}, {"graph": "long", "seconds": 0.001}]
    assert table.as_markdown({"Speed": rows}) == (
        "### Speed\n\n"
        "| graph | seconds | ok  |\n"
        "| ----- | ------: | --- |\n"
        "| a     |   1.250 | yes |\n"
        "| long  |   0.001 |     |"
    )


def test_quality_compares_with_networkit(data):
    found = tables_of("quality", "--graphs", "football", "rmat-6-4", "--seeds", "2")
    [rows] = found.values()
    assert [row["graph"] for row in rows] == ["football", "rmat-6-4"]
    assert rows[0]["vertices"] == 115
    assert rows[0]["entries"] == 2 * 613
    for row in rows:
        assert {"modularity", "NMI", "sweeps", "NetworKit modularity", "verdict"} <= row.keys()
    assert rows[0]["modularity"] > 0.4


def test_a_peers_partition_by_index_is_told_by_ids():
    graph = as_graph(([30, 10, 70], [10, 30, 70]), device="cpu")  # 70 has a loop only
    others = pd.DataFrame({"vertex": [1, 0], "partition": [4, 4]})
    found = multilevel._by_index(graph, others).set_index("vertex")["partition"]
    assert found[10] == found[30] != found[70]
    assert modularity(graph, multilevel._by_index(graph, others)) > 0


def test_multilevel_compares_with_networkit_and_igraph(data):
    [rows] = tables_of("multilevel", "--graphs", "football", "--repeats", "2").values()
    found = {row["which"]: row["modularity"] for row in rows}
    assert list(found)[1] == "default"
    assert {"label_propagation", "refine=False", "NetworKit PLM", "igraph Leiden"} < found.keys()
    assert found["default"] > found["NetworKit PLM"] - 0.002


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_shuffled_ids_leave_the_graph_as_it_is(directed, weighted):
    random = np.random.default_rng(0)
    edges = (*random.integers(0, 30, (2, 99)), *([random.integers(1, 9, 99)] if weighted else []))
    graph = as_graph(edges, directed=directed, vertices=range(33), device="cpu")
    shuffled, number = subjects.with_shuffled_ids(graph, 1)
    assert shuffled.directed == directed
    assert sorted(number) == list(range(33)) != list(number)
    matrix, other = (
        sparse.csr_array(
            (np.ones(one.indices.size) if one.weights is None else one.weights, one.indices,
             one.indptr),
            shape=(33, 33),
        ).toarray()
        for one in (graph, shuffled)
    )  # fmt: skip
    np.testing.assert_array_equal(other[np.ix_(number, number)], matrix)


def test_quality_draws_classes():
    [[row]] = tables_of("quality", "--graphs", "web-300", "--seeds", "1", "--draws", "3",
                        "--alone").values()  # fmt: skip
    graph = subjects.load("web-300")
    found = []
    for seed in range(3):
        shuffled, number = subjects.with_shuffled_ids(graph, seed)
        labels = label_propagation(shuffled, seed=seed)["partition"].to_numpy()
        found.append(modularity(graph, graph.frame({"partition": labels[number]})))
    assert len(set(found)) == 3
    assert row["drawn median"] == sorted(found)[1]
    assert row["drawn mean"] == pytest.approx(np.mean(found))
    assert row["deviation"] == pytest.approx(np.std(found))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, "ok"),
        ({"modularity": 0.4}, "modularity below 0.500"),
        ({"NMI": 0.1}, "NMI below 0.200"),
        ({"largest share": 0.95}, "collapsed"),
        ({"communities": 1}, "collapsed"),
        ({"settled": False}, "no end within 60 sweeps"),
        ({"sweeps": 61}, "no end within 60 sweeps"),
    ],
)
def test_verdict_names_what_is_broken(change, words):
    row = {
        "vertices": 9, "modularity": 0.6, "NMI": 0.3, "communities": 3, "largest share": 0.2,
        "settled": True, "sweeps": 9, "NetworKit modularity": 0.5, "NetworKit NMI": 0.2,
    }  # fmt: skip
    assert quality.verdict(row | change, "football") == words
    assert (
        quality.verdict({**row, "modularity": 0.87, "NetworKit modularity": 0.89}, "cnr-2000")
        == "ok"
    )


def test_warm_runs_stand_beside_cold_ones():
    options = "--shares", "0.01", "--repeats", "1", "--device", "cpu"
    [rows] = tables_of("warm", "--graphs", "rmat-12-8", *options).values()
    assert [row["begins"] for row in rows] == ["cold", "initial=", "initial=, touched="]
    cold, everybody, few = rows
    assert few["evaluated"] < everybody["evaluated"] == 1 << 12
    assert few["modularity"] == everybody["modularity"]
    assert few["churn"] == everybody["churn"]
    assert cold["times (run)"] == cold["times (call)"] == 1


def test_warm_scores_stand_beside_cold_ones():
    options = "--rows", "3000", "--shares", "0", "0.1", "--repeats", "1", "--device", "cpu"
    [rows] = tables_of("scores", *options).values()
    same, changed = rows
    assert same["warm pushed"] < same["cold pushed"]
    assert 0 < changed["apart"] <= 2  # each within tol of the exact ones
    assert all(row["entries"] > 1_000 and row["times"] > 0 for row in rows)


def test_edges_go_at_random():
    graph = subjects.load("rmat-8-4", "cpu")
    after, touched = warm.without_some(graph, 0.2)
    assert after.external().equals(graph.external())
    assert 0.7 < after.number_of_edges / graph.number_of_edges < 0.9
    changed = np.flatnonzero(graph.degree != after.degree)
    assert graph.external()[changed].tolist() == touched.tolist()


@pytest.mark.parametrize(
    ("after", "share"),
    [([0, 0, 0, 1, 1, 1], 0), ([2, 2, 2, 0, 0, 0], 0), ([0, 0, 1, 1, 1, 1], 1 / 6),
     ([0] * 6, 1 / 2), ([0, 1, 2, 3, 4, 5], 2 / 3)],
)  # fmt: skip
def test_churn_is_who_left_or_came(after, share):
    assert warm.churn(np.array([0, 0, 0, 1, 1, 1]), np.array(after)) == pytest.approx(share)


def test_parameters_make_a_row_each():
    grid = ("--classes", "2", "4", "--explore", "0", "2", "--tol", "0", "0.1")
    [rows] = tables_of("parameters", "--graphs", "web-200", *grid).values()
    assert [(row["classes"], row["explore"]) for row in rows[::2]] == [
        (2, 0),
        (2, 2),
        (4, 0),
        (4, 2),
    ]
    assert max(row["of the best"] for row in rows) == 1


@pytest.mark.exhaustive
def test_cpu_times_everything():
    speed, programs, ingest = tables_of(
        "cpu", "--graphs", "rmat-6-4", "--rows", "1000", "--repeats", "1"
    ).values()
    assert [row["mode"] for row in speed] == ["defaults", "explore=0"]
    assert all(row["NetworKit seconds"] > 0 for row in speed)
    assert [row["program"] for row in programs] == ["word for word", "reworded"]
    assert ingest[0]["rows"] == 1000


def test_overlap_beats_a_random_cover():
    slpa, layered = tables_of(
        "overlap", "--vertices", "600", "--size", "30", "--overlap", "0.2", "--graph", "rmat-8-4"
    ).values()
    assert slpa[0]["SLPA"] > 2 * slpa[0]["random cover"]
    assert [row["gamma"] for row in layered] == [2.0**i for i in range(10)]
    assert all(row["communities"] >= 1 for row in layered)


def test_planted_cover_is_as_asked():
    edges, cover = overlap.planted_cover(200, 20, 0.25, seed=1)
    memberships = cover.groupby("vertex").size()
    assert memberships.index.tolist() == list(range(200))
    assert (memberships > 1).sum() <= 50
    assert len(cover) == 250
    assert edges.to_numpy().max() < 200
    again, _ = overlap.planted_cover(200, 20, 0.25, seed=1)
    pd.testing.assert_frame_equal(edges, again)
    shuffled = overlap.random_cover(cover)
    assert sorted(shuffled["partition"]) == sorted(cover["partition"])
    assert cover_f1(shuffled, cover) < 0.5


def test_networkit_gets_the_same_graph():
    graph = subjects.load("rmat-7-4", "cpu")
    peer = subjects.networkit(1)
    other = subjects.networkit_graph(peer, graph)
    assert other.numberOfNodes() == graph.number_of_vertices == 128
    assert 2 * other.numberOfEdges() == graph.number_of_edges
    degrees = [other.degree(v) for v in range(128)]
    np.testing.assert_array_equal(degrees, graph.degree)


def test_without_networkit_the_mend_is_named(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "networkit", None)
    with pytest.raises(ImportError, match=r"pip install networkit.*--alone"):
        tables_of("quality", "--graphs", "rmat-6-4")


def test_ingest_reads_the_edges_it_made():
    found = tables_of("ingest", "--graphs", "rmat-6-4", "--repeats", "1", "--device", "cpu")
    rows, from_files = found.values()
    graph = subjects.load("rmat-6-4", "cpu")
    assert [row["read"] for row in from_files] == ["in chunks", "whole"]
    assert from_files[0]["reached"]
    assert all(row["seconds"] > 0 and row["entries"] == rows[0]["entries"] for row in from_files)
    assert [row["from"] for row in rows] == ["pandas"]
    assert rows[0]["entries"] == graph.number_of_edges == 2 * rows[0]["rows"]
    # who has no edge is in no row of a frame
    assert rows[0]["vertices"] == np.count_nonzero(graph.degree)


def test_diversity_times_all_the_best_devices_and_the_whole_graph():
    options = ("--k", "2", "4", "--top", "5", "--repeats", "1", "--devices", "0", "1", "--no-steal")
    scores, shared, whole = tables_of(
        "diversity", "--graphs", "social-1000", "--device", "cpu", *options
    ).items()
    assert [title for title, _ in (scores, shared, whole)] == [
        "Structural diversity, cpu", "Several devices, cpu", "Whole graphs, cpu"
    ]  # fmt: skip
    models = [(model, k) for model in ("component", "core", "truss") for k in (2, 4)]
    assert [(row["model"], row["k"]) for row in scores[1]] == models
    for row in scores[1]:
        assert row["same"]
        assert row["best"] > 0
        assert 0 <= row["pruned"] < 1000
        assert min(row["ms"], row["top-5 ms"], row["unpruned ms"]) > 0
    assert [(row["devices"], row["stealing"]) for row in shared[1][:3]] == [
        (1, True), (2, True), (2, False)
    ]  # fmt: skip
    assert len(shared[1]) == 3 * len(models)
    assert all(row["balance"] >= 1 for row in shared[1])
    assert not any(row["stolen"] for row in shared[1] if not row["stealing"])
    whats = ["core_number", "k_truss", "triangle_count", "trussness"]
    assert [row["what"] for row in whole[1]] == whats


def test_diversity_leaves_out_what_is_not_asked_for():
    options = ("--models", "core", "--top", "0", "--no-whole", "--repeats", "1")
    found = tables_of("diversity", "--graphs", "social-200", "--device", "cpu", *options)
    [rows] = found.values()
    assert [row["model"] for row in rows] == ["core"]
    assert "same" not in rows[0]


def test_compressed_compares_with_the_plain_graph():
    options = ("--schemes", "packed", "cgr", "--sweeps", "4", "--repeats", "1", "--device", "cpu")
    found = tables_of("compressed", "--graphs", "web-500", *options)
    sizes, sweeps, runs = found.values()
    assert [title.split(",")[0] for title in found] == [
        "Size and encoding", "Synchronous sweeps", "To convergence"
    ]  # fmt: skip
    cases = [("packed", 0), ("packed", 32), ("cgr", 0), ("cgr", 32)]
    assert [(row["scheme"], row["raw up to"]) for row in sizes] == cases
    assert all(row["exact"] and row["decode ms"] > 0 for row in sizes)
    assert sizes[0]["bits an entry"] < sizes[1]["bits an entry"] < 32
    for rows in (sweeps, runs):
        assert [row["scheme"] for row in rows] == ["packed", "cgr"]
        assert all(row["same labels"] and row["ms"] > 0 for row in rows)


def test_large_makes_compresses_and_runs(monkeypatch):
    alive = []

    def watched(*arguments):
        graph = large_graph(*arguments)
        alive.append(weakref.ref(graph.indices))
        return graph

    seen = []

    def propagated(*arguments):
        seen.append(alive[-1]())
        return rows_of(*arguments)

    rows_of = large.propagated
    monkeypatch.setattr(large, "large_graph", watched)
    monkeypatch.setattr(large, "propagated", propagated)
    fits, made, runs = tables_of("large", "--bits", "11", "--device", "cpu").values()
    assert seen == [None, None]  # the small one's and the large one's plain form
    assert [row["raw fits"] for row in fits] == [True, True, True, True, False]
    assert fits[-1]["raw GB"] == pytest.approx(4 * 23.2 + 56 * 1.01)
    assert fits[-1]["8 bits: GB"] == pytest.approx(1.1 * 23.2 + 60 * 1.01)
    assert fits[-1]["fits with"] == "4, 8, 12, 16, 20"
    most = fits[-1]["fits up to, bits"]
    assert 1.1 * 23.2 * most / 8 + 60 * 1.01 == pytest.approx(139)
    assert made[0]["vertices"] == 2048
    assert made[0]["entries"] == 2 * made[0]["edges"] > 12 * 2048
    assert 0 < made[0]["bits an entry"] < 16
    assert runs[0]["sweeps"] == 3
    assert runs[1]["converged"]
    assert all(1 < row["communities"] < 2048 and row["ms"] > 0 for row in runs)


@pytest.mark.exhaustive
def test_large_makes_and_compresses_in_pieces():
    options = "--bits", "11", "--device", "cpu", "--max-iter", "5", "--pieces"
    _, [whole], runs = tables_of("large", *options, "1").values()
    _, [made], found = tables_of("large", *options, "3").values()
    for name in ("vertices", "entries", "plain GB", "bits an entry", "compressed GB"):
        assert made[name] == pytest.approx(whole[name], rel=0.01), name
    assert [row["communities"] for row in found] == [row["communities"] for row in runs]
    _, [more], _ = tables_of("large", *options, "3", "--share", "61").values()
    assert more["entries"] == pytest.approx(1.4 * made["entries"], rel=0.15)


def test_what_is_too_large_fits_nowhere():
    assert large.what_fits(24)[-1]["fits with"] == "none of them"
    assert large.what_fits(24)[-1]["fits up to, bits"] == 0


def test_a_large_graph_is_a_graph_and_the_same_again():
    graph = large_graph(10, 3, "cpu")
    arrays = np.ones(graph.number_of_edges), graph.indices, graph.indptr
    matrix = sparse.csr_array(arrays, shape=(1024, 1024))
    assert matrix.has_canonical_format  # rows ascend, nothing twice
    assert (matrix != matrix.T).nnz == 0
    assert not matrix.diagonal().any()
    assert graph.indices.dtype == np.int32
    again, other = large_graph(10, 3, "cpu"), large_graph(10, 4, "cpu")
    np.testing.assert_array_equal(again.indices, graph.indices)
    np.testing.assert_array_equal(again.indptr, graph.indptr)
    assert not np.array_equal(other.indptr, graph.indptr)


class Truss:
    """A result as cuGraph gives it."""

    def __init__(self, edges):
        self.edges = edges

    def view_edge_list(self):
        return self.edges


def test_results_are_compared_with_those_of_cugraph():
    ours = pd.DataFrame({"vertex": [1, 2, 3], "core_number": [2, 2, 0]})
    theirs = pd.DataFrame({"core_number": [2, 2], "vertex": np.array([2, 1], np.int32)})
    assert diversity.same_facts(ours, theirs)
    assert not diversity.same_facts(ours, theirs.replace({"core_number": 2}, 1))
    assert not diversity.same_facts(ours, theirs[:1])
    edges = pd.DataFrame({"src": [1, 1], "dst": [2, 3]})
    assert diversity.same_facts(
        edges, Truss(edges.rename(columns={"src": "dst", "dst": "src"})[::-1])
    )
    assert not diversity.same_facts(edges, Truss(edges[:1]))


SMALL = ("agreement", "--graphs", "football", "web-300")


def test_agreement_runs_everything_in_every_place(data):
    [rows] = tables_of(*SMALL).values()
    places = [place for place, (device, _) in agreement.PLACES.items()
              if device == "cpu" or gpu_available()]  # fmt: skip
    assert [(row["graph"], row["run"]) for row in rows] == [
        (graph, run) for graph in SMALL[2:] for run in agreement.RUNS
    ]
    assert {(row["places"], row["same"]) for row in rows} == {(len(places), "yes")}
    # runs differ in their labels, as far as they can on a small graph
    assert len({row["digest"] for row in rows}) > len(rows) / 2


def test_agreement_tells_who_differs(monkeypatch):
    def others(graph):
        return dataclasses.replace(graph, indices=graph.indices[::-1].copy(), _derived={})

    monkeypatch.setitem(agreement.PLACES, "elsewhere", ("cpu", others))
    options = "--graphs", "web-300", "--runs", "defaults", "layered"
    for row in tables_of("agreement", *options)[agreement.TITLE]:
        assert row["same"] == "no: elsewhere"


def test_agreement_with_an_earlier_run(monkeypatch, tmp_path):
    before = tmp_path / "before.json"
    options = "agreement", "--graphs", "web-300", "--runs", "defaults", "seeded"
    before.write_text(json.dumps(found := tables_of(*options)))
    digests = [row["digest"] for row in found[agreement.TITLE]]
    again = tables_of(*options, "--against", str(before))[agreement.TITLE]
    assert [row["as before"] for row in again] == ["yes", "yes"]
    call = partial(label_propagation, seed=1)
    monkeypatch.setitem(agreement.RUNS, "defaults", (call, False))
    again = tables_of(*options, "--against", str(before))[agreement.TITLE]
    assert [row["as before"] for row in again] == [f"no, {digests[0]}", "yes"]
    before.write_text("{}")
    with pytest.raises(ValueError, match="is not what `bench agreement --json` prints"):
        tables_of(*options, "--against", str(before))


def test_digests_are_of_values_and_order():
    frame = pd.DataFrame({"vertex": ["a", "b"], "score": [0.1, 0.2]})
    others = (frame[::-1], frame.assign(score=[0.1, 0.2 + 1e-16]), frame.assign(vertex=["a", "c"]),
              frame.rename(columns={"score": "hop"}))  # fmt: skip
    assert agreement.digest(frame) == agreement.digest(frame.astype({"vertex": object}))
    numbers = pd.DataFrame({"vertex": [1, 2]})
    assert agreement.digest(numbers) == agreement.digest(numbers.astype(np.int32))
    assert len({agreement.digest(one) for one in (frame, *others)}) == 5


def test_beyond_memory_runs_each_way_in_a_process_of_its_own():
    options = "--graphs", "rmat-9-16", "--repeats", "1", "--threads", "1", "--mapped"
    ways = "--limits", "0", "50", "--ways", "plain", "streamed plain"
    found = tables_of("beyond-memory", *options, *ways)
    [(title, rows)] = found.items()
    assert "in a mapped file, 1 threads" in title
    assert [(row["limit %"], row["way"]) for row in rows] == [
        (0, "plain"), (0, "streamed plain"), (50, "plain"), (50, "streamed plain"),
    ]  # fmt: skip
    for row in rows[::2]:
        assert row["seconds"] is None
        assert row["MB too little"] > 0
    for row in rows[1::2]:
        assert row["labels equal"]
        assert row["predicted MB"] <= row["limit MB"]
        assert row["times in memory"] > 0
    # of so small a graph Python's own objects are a good part
    assert rows[3]["peak MB"] < rows[3]["limit MB"] + 0.1


@pytest.mark.exhaustive
def test_what_runs_take_is_held_against_estimates():
    found = tables_of("beyond-memory", "--estimates", "--graphs", "rmat-14-16")
    [rows] = found.values()
    assert [row["way"] for row in rows] == list(ON_CPU)
    for row in rows:
        assert abs(row["estimated / peak"] - 1) < 0.1


@pytest.mark.exhaustive
def test_a_parquet_folder_becomes_labels_in_one_command():
    [[row]] = tables_of("beyond-memory", "--parquet", "--graphs", "rmat-16-64").values()
    assert row["labels equal"]
    # what tables are read by takes some 50 MB, of a graph of any size
    assert row["CSR MB"] < row["peak host MB"] < row["limit MB"] + 80


@pytest.mark.gpu
def test_traversal_is_measured_in_a_pool_of_rmm():
    pytest.importorskip("cudf")
    rmm = pytest.importorskip("rmm")
    usual = rmm.mr.get_current_device_resource()
    with timing.memory_pool():
        assert isinstance(rmm.mr.get_current_device_resource(), rmm.mr.PoolMemoryResource)
    asked = "--graphs", "road-20", "--repeats", "1", "--searches", "bfs", "--pool", "--peers"
    [(title, [row])] = tables_of("traversal", "--device", "gpu", *asked, "cuGraph").items()
    assert "in a pool of RMM" in title
    assert row["here"] > 0
    assert rmm.mr.get_current_device_resource() is usual


def test_traversal_is_measured_beside_scipy_and_networkit():
    [rows] = tables_of(
        "traversal", "--graphs", "road-20", "--repeats", "2", "--device", "cpu"
    ).values()
    assert [row["search"] for row in rows] == ["bfs", "sssp", "many", "layers"]
    assert all(row["fresh"] > 0 for row in rows)
    for row in rows[:2]:
        assert row["times SciPy"] == row["SciPy"] / row["ours"]
        assert row["times NetworKit"] == row["NetworKit"] / row["ours"]
    [[row]] = tables_of(
        "traversal", "--graphs", "road-20", "--repeats", "1", "--device", "cpu", "--searches",
        "bfs", "--peers",
    ).values()  # fmt: skip
    assert row["ours"] > 0
    assert not row.keys() & set(traversal.PEERS)  # without a name nobody is beside
    graph = traversal.with_whole_weights(subjects.load("road-20", "cpu"))
    matrix = sparse.csr_array((graph.weights, graph.indices, graph.indptr))
    assert (matrix != matrix.T).nnz == 0
    assert 1 <= graph.weights.min() < 40 < 200 < graph.weights.max() <= 255
    known = [bfs(graph, start, device="cpu")["distance"].tolist() for start in (0, 7)]
    peers = traversal._networkit(1, graph)
    assert [[*map(int, peers["bfs"](start).getDistances())] for start in (0, 7)] == [
        [2**63 - 1 if one == 2**31 - 1 else one for one in of_start] for of_start in known
    ]


def test_layers_are_measured_beside_near_far(device):
    options = ["--graphs", "road-20", "kron-10-64", "--repeats", "1", "--device", device]
    (_, (row, _)), (_, (small, dense)) = tables_of("layers", *options).items()
    assert row["equal"]
    assert row["passes"] > 0
    if device == "cpu":  # in a pass of a GPU all blocks go on at once, and it may take more of them
        assert row["passes"] < row["layers"]
    assert small["way"] in ("refused", "streamed")
    assert dense["way"] == "streamed"
    assert dense["equal"]
    assert dense["copied MB"] > 0


@pytest.mark.parametrize("flags", [[], ["--strings", "--ids"]])
def test_a_window_stays_full(flags, device):
    options = ["--rows", "2000", "--repeats", "1", "--device", device]
    [(title, rows)] = tables_of("window", *options, *flags).items()
    assert "2,000 rows" in title
    assert [row["batch"] for row in rows] == ["1", "3500", "100000", "a day", "all of it"]
    assert all(row["append ms"] > 0 for row in rows)
    assert not any("wanted below" in row for row in rows)
    stream = window.Stream(1000, False, True, device)
    held = stream.window()
    assert held.append(stream.batch(1000)).added == 1000
    assert held.append(stream.batch(30)) == (30, 30, 0, 0)


def test_a_monitor_sees_rings(device):
    options = ["--rows", "60000", "--every", "2D", "--ticks", "6", "--device", device]
    [(title, [row])] = tables_of("monitor", *options).items()
    assert "a window of 30 days" in title
    assert row["ticks"] == 6
    assert 1800 < row["rows a tick"] < 2200
    assert row["p99 ms"] >= row["median ms"] > row["scores ms"] > 0
    assert 0 <= row["cluster id changed"] <= 0.2
    assert row["alerts"] > 0


def test_a_soak_tells_of_memory_and_latencies(monkeypatch):
    monkeypatch.setattr("glp_rapids.bench.monitor.SOAK", 12)
    monkeypatch.setattr("glp_rapids.bench.monitor.SETTLED", 4)
    tables = tables_of("monitor", "--rows", "30000", "--soak", "--device", "cpu")
    [(title, [row])] = tables.items()
    assert title.startswith("Soak, a window of 30 days with")
    assert row["ticks"] == 12
    assert 0 < row["median ms"] <= row["p99 ms"] <= row["longest ms"]
    assert row["MiB after 4"] > 0
    assert row["largest growth"] >= 0
