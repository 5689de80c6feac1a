"""Searches on a GPU find what those on a CPU find, value for value."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pandas as pd
import pytest
from graphs import GRAPHS, edges, path, power_law_pairs, random_pairs
from pandas.testing import assert_frame_equal

from glp_rapids import as_graph, betweenness_centrality, bfs, layered_edges, sssp
from glp_rapids.device import LackOfMemory, to_host
from glp_rapids.traversal.engines import Lists, cpu, largest, order_by_level

pytestmark = pytest.mark.gpu

DIRECTIONS = ("out", "in", "both")
LARGER = {
    "power law": edges(power_law_pairs(5000, 30000, 7), vertices=range(5300)),
    "dense": edges(power_law_pairs(3000, 300_000, 9)),
    "random": edges(random_pairs(3000, 9000, 5)),
    "long": edges([*path(2000), *random_pairs(300, 900, 6)]),
    "directed": edges(power_law_pairs(4000, 20000, 8), directed=True),
    "star": edges([(0, i) for i in range(1, 20_000)] + path(300)),
    "grid": edges(
        [(i, i + 1) for i in range(40_000) if i % 200 < 199 and i % 7]
        + [(i, i + 200) for i in range(39_800) if i % 5]
    ),
}


def engines(given, direction, transposed):
    from glp_rapids.traversal.engines.gpu import GpuEngine

    host, device = (as_graph(**given, device=name) for name in ("cpu", "gpu"))
    if transposed:
        device.transpose()
    engine = GpuEngine(device, direction)
    engine.keeps = device  # as a caller does
    return cpu.CpuEngine(host, direction), engine


def assert_same(expected, found):
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, None if other is None else to_host(other))


# One block alone, many with one or several levels each, wide levels, pulled ones, and in turns.
WAYS = {
    "as it is": {},
    "alone": {"CHUNK": 512, "PULL": (0, 0)},
    "hops": {"CHUNK": 1, "HOPS": 32, "PULL": (0, 0)},
    "two hops": {"CHUNK": 2, "HOPS": 2, "PULL": (0, 0), "PENALTY": 1},
    "wide": {"MOST_CHUNK": 0, "PULL": (0, 0)},
    "pull": {"PULL": (1 << 20, 1 << 20)},
    "turns": {"CHUNK": 4, "PULL": (4, 4), "LEVELS_A_LAUNCH": 3},
}


@pytest.mark.parametrize("way", WAYS)
def test_every_way_of_a_search_finds_the_same(way, monkeypatch):
    import cupy

    from glp_rapids.traversal.engines import gpu_pace

    for name, value in WAYS[way].items():
        monkeypatch.setattr(gpu_pace, name, value)
    for given in LARGER.values():
        for direction in DIRECTIONS if given.get("directed") else DIRECTIONS[:1]:
            for transposed in (False, True):
                host, device = engines(given, direction, transposed)
                for starts in ([3], [0, 5, 99, 200]):
                    starts = np.array(starts, np.int32)
                    for depth in (1 << 40, 2):
                        expected = host.bfs(starts, depth, True)
                        assert_same(expected, device.bfs(cupy.asarray(starts), depth, True))


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_searches_of_awkward_graphs_are_as_on_a_cpu(direction):
    for name, make in GRAPHS.items():
        given = make()
        host, device = (as_graph(**given, device=one) for one in ("cpu", "gpu"))
        n = host.number_of_vertices
        if n == 0:
            continue
        for starts in ([0], [n - 1], sorted({0, n // 2, n - 1})):
            for limit in (None, 0, 2):
                for search, bound in ((bfs, "depth_limit"), (sssp, "cutoff")):
                    for unreachable in ("max", "null", "drop") if limit is None else ("max",):
                        options = {"direction": direction, bound: limit}
                        results = [
                            search(
                                one, one.external(np.array(starts)), unreachable=unreachable,
                                **options,
                            )
                            for one in (host, device)
                        ]  # fmt: skip
                        assert_frame_equal(*results, obj=name)
                        about = [result.attrs["glp"] for result in results]
                        assert about[1]["device"] == "gpu"
                        assert about[0]["reached"] == about[1]["reached"]
                        assert search is sssp or about[0]["levels"] == about[1]["levels"]


NEAR_WAYS = {
    "as it is": {},
    "alone": {"NEAR_CHUNK": 256},
    "steps": {"NEAR_CHUNK": 2, "NEAR_HOPS": 3, "STEP": 16.0},
    "wide": {"MOST_CHUNK": 0},
    "one limit": {"STEP": 1e9},
    "small limits": {"STEP": 8.0, "LEVELS_A_LAUNCH": 20},
}
KINDS = {
    "1 to 255": np.arange(1, 256),
    "zero or one": np.array([0, 1]),
    "all zero": np.array([0.0]),
    "huge": np.array([0.0, 1e300, 3e299, 1.0]),
    "tiny": np.array([5e-324, 1e-310, 0.0, 1e-300]),
    "absorbed": np.array([1.0, 1e-17, 2e-16, 1e-30, 0.0]),
    "absorbed in float32": np.array([1, 1e-9, 6e-8, 16777216, 0], np.float32),
    "large integers": np.array([2**40, 2**40 + 1, 1, 0]),
    "of all sizes": 10.0 ** np.arange(-12, 13, 3),
}


@pytest.mark.parametrize("way", NEAR_WAYS)
def test_every_way_to_shortest_paths_finds_the_same(way, monkeypatch):
    import cupy

    from glp_rapids.traversal.engines import gpu_pace

    for name, value in NEAR_WAYS[way].items():
        monkeypatch.setattr(gpu_pace, name, value)
    for number, given in enumerate(LARGER.values()):
        for kind, values in list(KINDS.items()) if way == "as it is" else [*KINDS.items()][:3]:
            weights = values[np.random.default_rng(number).integers(0, values.size, 400_000)]
            frame = given["graph"].assign(weight=weights[: len(given["graph"])])
            options = {**given, "graph": frame, "weight": "weight", "multigraph": "min"}
            host, device = engines(options, "out", number % 2)
            starts, ends = np.array([3, 77], np.int32), np.array([100], np.int32)
            most = largest(values.dtype)
            for cutoff, targets in ((most, ends[:0]), (most, ends), (300, ends[:0])):
                expected = host.sssp(starts, cutoff, targets, True)
                found = device.sssp(cupy.asarray(starts), cutoff, cupy.asarray(targets), True)
                for one, other in zip(expected[:2], found[:2], strict=True):
                    np.testing.assert_array_equal(one, to_host(other), f"{kind} {cutoff}")


@pytest.mark.parametrize("alpha", [0, 8, 1 << 20])
def test_searches_from_many_at_once_are_as_on_a_cpu(alpha, monkeypatch):
    import cupy

    from glp_rapids.traversal.engines import gpu_pace

    monkeypatch.setattr(gpu_pace, "PULL_TOGETHER", alpha)
    for number, given in enumerate(LARGER.values()):
        host, device = engines(given, "out", number % 2)
        for size, depth in ((130, 1 << 40), (1, 1 << 40), (64, 2)):
            starts = np.arange(size, dtype=np.int32)
            expected = list(host.bfs_of_each(starts, depth, True))
            for wanted in (True, False):
                found = list(device.bfs_of_each(cupy.asarray(starts), depth, wanted))
                for (distance, summary), (their_distance, their_summary) in zip(
                    expected, found, strict=True
                ):
                    np.testing.assert_array_equal(summary, to_host(their_summary))
                    if wanted:
                        np.testing.assert_array_equal(distance, to_host(their_distance))


def test_components_are_as_on_a_cpu():
    given = [*(make() for make in GRAPHS.values()), *LARGER.values()]
    for one in given:
        host, device = engines(one, "out", False)
        np.testing.assert_array_equal(host.components(), to_host(device.components()))


def test_blocks_that_do_not_ask_ahead_find_the_same(monkeypatch):
    import cupy

    from glp_rapids.traversal.kernels import gpu_frontier

    monkeypatch.setattr(gpu_frontier, "ASKS_AHEAD", not gpu_frontier.ASKS_AHEAD)
    for name in ("grid", "long"):
        given = LARGER[name]
        weights = np.arange(len(given["graph"])) % 19
        options = {**given, "graph": given["graph"].assign(weight=weights), "weight": "weight"}
        host, device = engines({**options, "multigraph": "min"}, "out", False)
        starts = np.array([5], np.int32)
        expected = host.bfs(starts, 1 << 40, True)
        assert_same(expected, device.bfs(cupy.asarray(starts), 1 << 40, True))
        expected = host.sssp(starts, 1 << 40, starts[:0], True)
        found = device.sssp(cupy.asarray(starts), 1 << 40, cupy.asarray(starts[:0]), True)
        assert_same(expected[:2], found[:2])


@pytest.mark.parametrize("directed", [False, True])
def test_real_graphs_are_as_on_a_cpu(directed, data):
    import cupy

    from glp_rapids import datasets

    frame = pd.read_csv(data / "graphalytics-p2p-31.e.gz", sep=" ", names=["src", "dst", "weight"])
    given = [{"graph": frame, "weight": "weight"}]
    given += [{"graph": datasets.load(name)[["src", "dst"]]} for name in ("wiki-Vote", "road-usa")]
    for one in given:
        options = {**one, "directed": directed, "multigraph": "min"}
        host, device = engines(options, "out", False)
        starts = np.array([6], np.int32)
        expected = host.bfs(starts, 1 << 40, True)
        assert_same(expected, device.bfs(cupy.asarray(starts), 1 << 40, True))
        if "weight" in one:
            most = largest(np.dtype(np.int64))
            expected = host.sssp(starts, most, starts[:0], True)
            found = device.sssp(cupy.asarray(starts), most, cupy.asarray(starts[:0]), True)
            assert_same(expected[:2], found[:2])


@pytest.mark.parametrize("hops", [1, 32])
@pytest.mark.parametrize("blocks", [1, 132])
def test_any_number_of_blocks_and_hops_gives_the_references_of_ldbc(
    blocks, hops, data, monkeypatch
):
    from glp_rapids.traversal.engines import gpu, gpu_breadth_first, gpu_layers, gpu_pace

    launch, prepare = gpu.launch_together, gpu_breadth_first.prepared_together
    for module in (gpu, gpu_layers):
        monkeypatch.setattr(
            module, "launch_together", lambda kernel, _, *rest: launch(kernel, blocks, *rest)
        )
    monkeypatch.setattr(
        gpu_breadth_first, "prepared_together",
        lambda kernel, _, *rest: prepare(kernel, blocks, *rest),
    )  # fmt: skip
    monkeypatch.setattr(gpu_pace, "HOPS", hops)
    monkeypatch.setattr(gpu_pace, "NEAR_HOPS", hops)
    frame = pd.read_csv(data / "graphalytics-p2p-31.e.gz", sep=" ", names=["src", "dst", "weight"])
    vertices = pd.read_csv(data / "graphalytics-p2p-31.v.gz", sep=" ", header=None)[0]
    for directed, end in ((False, ""), (True, "-directed")):
        options = {"weight": "weight", "directed": directed, "vertices": vertices}
        host, device = (
            as_graph(frame, multigraph="min", **options, device=one) for one in ("cpu", "gpu")
        )
        for search, name in ((bfs, "BFS"), (sssp, "SSSP")):
            file = data / f"graphalytics-p2p-31.{name}{end}.gz"
            known = pd.read_csv(file, sep=" ", names=["vertex", "distance"], index_col="vertex")
            known = pd.to_numeric(known["distance"].replace("infinity", np.inf))
            known = known[known < 2.0**62]
            found = search(device, 6)
            assert_frame_equal(search(host, 6), found)
            assert found.attrs["glp"]["device"] == "gpu"
            distance = found.set_index("vertex")["distance"]
            distance = distance[distance != largest(distance.dtype)]
            assert set(distance.index) == set(known.index)
            assert np.allclose(distance, known[distance.index], rtol=1e-12, atol=0)
        layers = layered_edges(device, 6)
        assert_frame_equal(sssp(host, 6, return_predecessors=False), layers.sssp())
        assert_frame_equal(layered_edges(host, 6).path_counts(), layers.path_counts())


def test_a_star_of_many_targets_and_a_step_that_must_grow():
    import cupy

    leaves = np.arange(40_000)
    for dtype in ("float32", "float64", "int64"):
        weights = 2.0 ** (leaves / leaves.size * (60 if dtype == "int64" else 110))
        frame = pd.DataFrame({"src": 0, "dst": leaves + 1, "w": weights.astype(dtype)})
        frame.loc[::2, "w"] = 1
        given = {"graph": frame, "weight": "w", "directed": True}
        host, device = engines(given, "out", True)
        starts, most = np.array([0], np.int32), largest(np.dtype(dtype))
        expected = host.sssp(starts, most, starts[:0], True)
        for targets in (starts[:0], leaves.astype(np.int32)[:3000]):
            found = device.sssp(cupy.asarray(starts), most, cupy.asarray(targets), True)
            if not targets.size:
                assert_same(expected[:2], found[:2])
                assert found.rounds < 3000
            else:
                assert_same(host.sssp(starts, most, targets, True)[:2], found[:2])


def test_layers_are_as_on_a_cpu():
    kinds = [np.arange(19, dtype=dtype) for dtype in (np.int64, np.float32, np.float64)]
    kinds += [KINDS[name] for name in ("absorbed", "absorbed in float32", "huge", "tiny")]
    for number, given in enumerate(LARGER.values()):
        values = kinds[number]
        weights = values[np.arange(len(given["graph"])) * 7 % values.size]
        options = {**given, "graph": given["graph"].assign(weight=weights), "weight": "weight"}
        host, device = (as_graph(**options, device=name) for name in ("cpu", "gpu"))
        start = host.external(np.array([3]))
        expected, found = layered_edges(host, start), layered_edges(device, start)
        assert_frame_equal(expected.edges(), found.edges())
        assert_frame_equal(expected.path_counts(), found.path_counts())
        for cutoff in (None, 20):
            assert_frame_equal(expected.sssp(cutoff=cutoff), found.sssp(cutoff=cutoff))
        assert found.about["device"] == "gpu"


def test_streamed_layers_are_as_on_a_cpu():
    from glp_rapids.traversal.engines import gpu_layers

    for given in LARGER.values():
        weights = np.arange(len(given["graph"])) * 7 % 19
        options = {**given, "graph": given["graph"].assign(weight=weights), "weight": "weight"}
        host, device = engines(options, "out", False)
        starts = np.array([3, 5], np.int32)
        level, deepest = host.bfs(starts, 1 << 40, False)[::2]
        order, first_row = order_by_level(level, deepest)
        lists = Lists(order, *host.rows_in_order(order), first_row)
        longest = np.diff(lists.offsets).max()
        distance = host.relax(lists, starts, 99).distance
        for room in (2 * longest, max(2 * longest, 9000), lists.indices.size):
            streamed = lists._replace(memory=int(12 * room + gpu_layers.OF_RELAXING * level.size))
            found = device.relax(streamed, starts, 99)
            np.testing.assert_array_equal(distance, to_host(found.distance))
            assert found.moved >= 12 * lists.indices.size
            assert (found.streamed == 0) == (room >= lists.indices.size)
        short = lists._replace(memory=gpu_layers.OF_RELAXING * level.size)
        with pytest.raises(LackOfMemory, match="too little for what there is by vertex"):
            device.relax(short, starts, 99)


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_searches_of_what_does_not_fit_are_as_on_a_cpu(direction):
    for name in ("power law", "directed", "grid"):
        given = LARGER[name]
        weights = np.arange(len(given["graph"])) * 7 % 19
        options = {**given, "graph": given["graph"].assign(weight=weights), "weight": "weight"}
        graph = as_graph(**options, device="cpu")
        rows = graph.rows(direction)
        lists, n = rows.indices.nbytes + rows.weights.nbytes, graph.number_of_vertices
        limit = max(lists + 16 * n, 72 * n)
        start = graph.external(np.array([3, 5]))
        how, there = {"direction": direction}, {"memory_limit": limit, "device": "gpu"}
        for search in (bfs, sssp, partial(sssp, strategy="wolfpath")):
            expected = search(graph, start, device="cpu", **how)
            found = search(graph, start, **how, **there)
            assert_frame_equal(expected, found)
        expected = layered_edges(graph, start, device="cpu", **how)
        found = layered_edges(graph, start, **how, **there)
        assert found._search.streams == limit
        assert_frame_equal(expected.edges(), found.edges())
        assert_frame_equal(expected.bfs(), found.bfs())
        assert_frame_equal(expected.path_counts(), found.path_counts())
        assert_frame_equal(expected.sssp(), found.sssp())
        with pytest.raises(LackOfMemory, match=r"too little to search .* on the gpu"):
            layered_edges(graph, start, memory_limit=1000, device="gpu", **how)
        with pytest.raises(LackOfMemory, match=r"or pass graph.to\('cpu'\)"):
            bfs(graph.to("gpu"), start, memory_limit=limit, device="gpu", **how)


@pytest.mark.parametrize("endpoints", [False, True])
def test_betweenness_is_as_on_a_cpu(endpoints):
    for given in [*(make() for make in GRAPHS.values()), *LARGER.values()]:
        host, device = (as_graph(**given, device=name) for name in ("cpu", "gpu"))
        if host.number_of_vertices:
            k = min(host.number_of_vertices, 3)
            both = [betweenness_centrality(one, k, endpoints=endpoints) for one in (host, device)]
            assert_frame_equal(*both)
            assert both[1].attrs["glp"]["device"] == "gpu"


def test_searches_by_several_threads_are_as_by_one():
    import cupy

    _, device = engines(LARGER["random"], "out", False)
    starts = [cupy.array([v], np.int32) for v in range(24)]
    expected = [device.bfs(start, 1 << 40, True) for start in starts]

    def search(start):
        with cupy.cuda.Stream(non_blocking=True) as stream:
            found = device.bfs(start, 1 << 40, True)
            stream.synchronize()
            return found

    cupy.cuda.Device().synchronize()
    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(expected, pool.map(search, starts), strict=True):
            assert_same([to_host(part) for part in one[:2]], other[:2])


def test_cross_fitted_starts_on_the_host_are_taken():
    host, device = engines(LARGER["random"], "out", False)
    starts = np.array([1, 2], np.int32)
    assert_same(host.bfs(starts, 1 << 40, False), device.bfs(starts, 1 << 40, False))
