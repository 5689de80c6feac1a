"""`compress` and `CompressedGraph`: the same graph, codes by measurement, orders, statistics."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from graphs import GRAPHS, edge_frames, edges, power_law_pairs
from hypothesis import given, settings
from test_compressed_file import assert_same

from glp_rapids import CompressedGraph, as_graph, compress
from glp_rapids.compressed import choose_codes
from glp_rapids.compressed import weights as edge_weights
from glp_rapids.compressed.encode import encode
from glp_rapids.compressed.file import verify
from glp_rapids.compressed.format.layout import CODES, Codes, Layout
from glp_rapids.compressed.options import DEFAULTS
from glp_rapids.compressed.weights import CodedWeights, EqualWeights
from glp_rapids.device import device_of, to_device, to_host
from glp_rapids.graph.graph import Graph

SCHEMES = ("cgr", "packed", "entropy")
OPTIONS = [
    {},
    {"order": "degree", "segment": 4, "min_interval": 2, "raw_below": 3},
    {"order": "bfs", "segment": 1, "min_interval": 0},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("name", GRAPHS)
def test_the_graph_comes_back(name, options, device):
    graph = as_graph(**GRAPHS[name](), device=device)
    scheme = SCHEMES[(len(name) + len(options)) % 3]
    compressed = compress(graph, scheme, **options)
    assert_same(compressed.to_graph(), graph)
    assert compressed.device == graph.device
    assert len(compressed.vertices) == compressed.number_of_vertices == graph.number_of_vertices
    assert compressed.number_of_edges == graph.number_of_edges
    assert compressed.index_dtype == graph.indices.dtype
    assert to_host(compressed.degree).tolist() == to_host(graph.degree).tolist()
    assert_same(compressed.transpose().to_graph(), graph.transpose())
    assert_same(as_graph(compressed), graph)
    assert_same(compress(compressed, "cgr").to_graph(), graph)
    verify.check(compressed.lists)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("scheme", SCHEMES)
def test_lists_of_some_vertices_are_read(scheme, options, device):
    graph = as_graph(**GRAPHS["power law"](), device="cpu")
    rows = compress(graph, scheme, device="cpu", **options).to(device).rows()
    for few in (0, 1, 7, graph.number_of_vertices):
        some = np.random.default_rng(few).permutation(graph.number_of_vertices)[:few]
        lists = [graph.indices[slice(*graph.indptr[[v, v + 1]])] for v in some]
        expected = sorted(u for entries in lists for u in entries.tolist())
        vertices = to_device(some.astype(np.int32), device)
        found = rows.neighbours_of(vertices, most=len(expected))
        assert device_of(found) == device
        assert sorted(to_host(found).tolist()) == expected
        assert not expected or rows.neighbours_of(vertices, most=len(expected) - 1) is None


@settings(max_examples=15)
@given(edge_frames())
def test_any_graph_comes_back(options):
    graph = as_graph(**options, device="cpu")
    order = np.random.default_rng(graph.number_of_edges).permutation(graph.number_of_vertices)
    compressed = compress(graph, "packed", order=order, segment=4, min_interval=2)
    assert_same(compressed.to_graph(), graph)


def test_what_as_graph_takes_is_taken():
    frame = pd.DataFrame({"a": ["x", "y"], "b": ["y", "z"], "eur": [1.5, 2.5]})
    columns = {"source": "a", "destination": "b", "weight": "eur", "vertices": ["w"]}
    compressed = compress(frame, directed=True, device="cpu", **columns)
    assert repr(compressed) == (
        "CompressedGraph(4 vertices, 2 entries, directed, float64 weights, packed, cpu)"
    )
    assert compressed.external().tolist() == ["w", "x", "y", "z"]
    assert compressed.vertex_index(["z", "w"]).tolist() == [3, 0]
    assert compressed.frame({"degree": compressed.degree})["degree"].tolist() == [0, 1, 1, 0]
    with pytest.raises(ValueError, match="no vertex of the graph: 'v'"):
        compressed.vertex_index(["v"])


@pytest.mark.parametrize(("goal", "scheme"), [("speed", "packed"), ("size", "entropy")])
def test_auto_is_for_a_goal(goal, scheme):
    assert compress(**GRAPHS["path"](), for_=goal, device="cpu").layout.scheme == scheme


@pytest.mark.parametrize(
    ("scheme", "min_interval", "segment"),
    [("cgr", 4, 128), ("packed", 4, 128), ("entropy", 4, 128)],
)
def test_what_is_not_said_is_what_suits_the_scheme(scheme, min_interval, segment):
    layout = compress(**GRAPHS["path"](), scheme=scheme, device="cpu").layout
    assert (layout.min_interval, layout.segment) == (min_interval, segment)
    layout = compress(
        **GRAPHS["path"](), scheme=scheme, device="cpu", min_interval=0, segment=8
    ).layout
    assert (layout.min_interval, layout.segment) == (0, 8)


class Unlooked:
    """No graph; whoever looks at it has begun to work."""


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"scheme": "zip"}, ValueError, "must be one of auto, cgr, packed, entropy, not 'zip'"),
        ({"codes": {"gap": "zeta3"}}, ValueError, "codes are those of scheme='cgr'; 'packed'"),
        ({"scheme": ["cgr"]}, ValueError, r"must be one of auto, .*, not \['cgr'\]"),
        ({"for_": "fun"}, ValueError, "for_ must be 'speed' or 'size', not 'fun'"),
        ({"min_interval": -1}, ValueError, "min_interval must be from 0"),
        ({"raw_below": 1.5}, ValueError, "raw_below must be an integer, not 1.5"),
        ({"segment": 100}, ValueError, "segment must be a power of two, not 100"),
        ({"codes": "zeta3"}, TypeError, "codes must be a dict such as"),
        ({"codes": {"gaps": "zeta3"}}, ValueError, "'gaps' is none of them"),
        ({"codes": {"gap": "zeta9"}}, ValueError, "code of gap must be one of delta, gamma"),
        ({"codes": {"gap": []}}, ValueError, "code of gap must be one of delta, gamma"),
        ({"order": "random"}, ValueError, "order must be 'llp', 'degree', 'bfs', None or"),
        ({"order": 3}, ValueError, "order must be"),
        ({"progress": "yes"}, TypeError, "progress must be a bool or a function, not 'yes'"),
        ({"order": pd.DataFrame({"vertex": [0]})}, ValueError, "not a frame; 'llp' is what"),
        ({"shceme": "cgr"}, TypeError, "unknown option 'shceme' of compress"),
    ],
)
def test_bad_options_are_refused_before_any_work(options, error, words):
    with pytest.raises(error, match=words.replace("(", r"\(")):
        compress(Unlooked(), **options)


@pytest.mark.parametrize(
    ("order", "error", "words"),
    [
        ([0, 1, 2], ValueError, "order must name all 5 vertices, not 3"),
        ([0, 1, 2, 3, 3], ValueError, "order leaves out vertex 4; it must name every vertex"),
        ([0, 1, 2, 3, 5], ValueError, "order holds 5 at place 4"),
        ([0, 1, 2, 3, -1], ValueError, "order holds -1 at place 4"),
        ([0.0, 1.0, 2.0, 3.0, 4.0], TypeError, "order must hold vertex indices, integers"),
        ([0, 1, 2, 3, None], ValueError, "order holds nulls"),
        ({0: 1}, TypeError, "order must be one column of values, not {0: 1}"),
    ],
)
def test_bad_orders_are_refused(order, error, words):
    with pytest.raises(error, match=words):
        compress(**edges([(i, i + 1) for i in range(4)]), order=order, device="cpu")


def test_the_callers_order_is_the_order(device):
    graph = as_graph(**GRAPHS["power law"](), device=device)
    n = graph.number_of_vertices
    order = np.random.default_rng(1).permutation(n)
    compressed = compress(graph, order=pd.Series(order))
    assert to_host(compressed.order).tolist() == order.tolist()
    assert compressed.order.dtype == graph.indices.dtype
    assert_same(compressed.to_graph(), graph)
    assert compress(graph, order=list(range(n))).order is None
    with pytest.raises(ValueError, match="order must have one dimension, and its values are"):
        compress(graph, order=[[0] * n] * n)


def test_orders_of_the_library(device):
    pairs = power_law_pairs(300, 1500, 7)
    graph = as_graph(**edges(pairs, directed=True), device=device)
    both = graph.rows("both")
    degree = compress(graph, order="degree").order
    falling = to_host(both.degree)[to_host(degree)]
    assert (np.diff(falling) <= 0).all()
    found = to_host(compress(graph, order="bfs").order).tolist()
    assert found == breadth_first(to_host(both.indptr), to_host(both.indices))
    ordered = compress(graph, order="llp")
    assert_same(ordered.to_graph(), graph)
    assert_same(ordered.to("cpu").to_graph(), graph)


@pytest.mark.parametrize("weight", [[2**62] * 3, [1e-300] * 3, [1, 1e300, 1]])
def test_weights_do_not_count_for_an_order(weight, device):
    # of which no sum of votes would be right, or some count as nothing
    edges = [0, 1, 2], [1, 2, 3]
    graph = as_graph((*edges, weight), directed=True, device=device)
    found = compress(graph, order="llp")
    assert_same(found.to_graph(), graph)
    without = compress(as_graph(edges, directed=True, device=device), order="llp")
    one, other = (None if g.order is None else to_host(g.order).tolist() for g in (found, without))
    assert one == other


def breadth_first(indptr, indices):
    found, seen = [], set()
    for start in range(indptr.size - 1):
        queue = [] if start in seen else [start]
        seen.add(start)
        while queue:
            vertex = queue.pop(0)
            found.append(vertex)
            for neighbour in indices[indptr[vertex] : indptr[vertex + 1]].tolist():
                if neighbour not in seen:
                    seen.add(neighbour)
                    queue.append(neighbour)
    return found


def test_layered_label_propagation_brings_neighbours_together():
    rng = np.random.default_rng(2)
    shuffled = rng.permutation(600)
    pairs = [(shuffled[20 * i + a], shuffled[20 * i + b])
             for i in range(30) for a in range(20) for b in range(a)]  # fmt: skip
    graph = as_graph(**edges(pairs), device="cpu")
    compressed = [compress(graph, "cgr", order=order) for order in (None, "llp")]
    sizes = [one.stats()["bits_of_lists"] for one in compressed]
    assert sizes[1] < sizes[0] / 4


@pytest.mark.parametrize(
    "settings", [{}, {"segment": 8, "raw_below": 3}, {"min_interval": 0}], ids=str
)
def test_the_best_codes_are_the_best(settings):
    graph = as_graph(**GRAPHS["power law"](), device="cpu")
    layout = Layout("cgr", **DEFAULTS["cgr"] | settings)
    chosen = choose_codes.best_codes(graph, layout)
    least = encode(graph, replace(layout, codes=chosen)).nbytes
    assert compress(graph, "cgr", **settings).layout.codes == chosen
    for kind in Codes._fields:
        for code in CODES:
            other = replace(layout, codes=chosen._replace(**{kind: code}))
            # blocks are filled up to whole bytes
            assert encode(graph, other).nbytes >= least - 4 * graph.number_of_vertices // 32


def test_codes_are_the_same_on_samples_and_devices(device):
    pairs = power_law_pairs(3000, 20000, 3)
    graph = as_graph(**edges(pairs), device=device)
    layout = Layout("cgr")
    assert choose_codes.best_codes(graph, layout) == choose_codes.best_codes(
        graph.to("cpu"), layout
    )
    some = choose_codes.histograms(graph, layout, sample=5000)
    every = choose_codes.histograms(graph, layout)
    entries = sum(int(every[kind].sum()) for kind in ("first", "gap"))
    assert 0.1 < sum(int(some[kind].sum()) for kind in ("first", "gap")) / entries < 0.3
    blocks = graph.number_of_edges // 5000
    vertices = np.arange(graph.number_of_vertices)
    assert some["degree"].sum() == np.count_nonzero(vertices // 32 % blocks == 0)


def test_named_codes_are_kept():
    graph = as_graph(**GRAPHS["random"](), device="cpu")
    best = compress(graph, "cgr").layout.codes
    chosen = compress(graph, "cgr", codes={"first": "zeta7"}).layout.codes
    assert chosen == best._replace(first="zeta7")
    assert compress(graph, "cgr", codes=Codes()).layout.codes == Codes()


@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.float64])
@pytest.mark.parametrize("values", [1, 3, 300, 70_000])
def test_few_weights_become_codes(dtype, values, device):
    rng = np.random.default_rng(values)
    weights = (rng.permutation(100_000) % values).astype(dtype) * dtype(3) / dtype(2)
    weights = weights.astype(dtype)
    plain = edge_weights.moved(weights, device)
    coded = edge_weights.coded(plain)
    if values > 1 << 16:
        assert coded is plain
        return
    if values == 1:
        assert isinstance(coded, EqualWeights)
    else:
        assert isinstance(coded, CodedWeights)
        assert coded.codes.dtype == (np.uint8 if values <= 256 else np.uint16)
    assert (coded.dtype, coded.size, coded.device) == (dtype, weights.size, device)
    assert coded.nbytes < weights.nbytes
    np.testing.assert_array_equal(to_host(edge_weights.decoded(coded)), weights)
    np.testing.assert_array_equal(to_host(edge_weights.part_of(coded, 7, 999)), weights[7:999])


def test_weights_are_looked_at_in_chunks_and_kept_to_the_bit(monkeypatch):
    monkeypatch.setattr(edge_weights, "CHUNK", 1000)
    weights = np.tile(np.array([0.0, -0.0, 1e-310, np.pi, 1e300]), 2000)
    decoded = edge_weights.coded(weights).decoded()
    assert decoded.tobytes() == weights.tobytes()
    few = np.arange(10, dtype=np.float32)  # a table would take more than they do
    assert edge_weights.coded(few) is few


def test_moving_is_kept_and_exact(device):
    graph = compress(**GRAPHS["integer weights"](), order="degree", device="cpu")
    moved = graph.to(device)
    assert moved.device == device
    assert graph.to(device) is moved
    assert moved.to("cpu") is graph
    assert_same(moved.to_graph(), graph.to_graph())


@pytest.mark.gpu
@pytest.mark.parametrize("scheme", SCHEMES)
def test_devices_agree_to_the_bit(scheme, device):
    graph = as_graph(**GRAPHS["power law"](), device="cpu")
    one = compress(graph, scheme, order="degree", segment=16)
    other = compress(graph.to(device), scheme, order="degree", segment=16)
    assert one.layout == other.layout
    for name in ("words", "block_bytes", "tables"):
        array, expected = (to_host(getattr(each.lists, name)) for each in (other, one))
        np.testing.assert_array_equal(array, expected)
    assert one.stats() == other.stats()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("name", ["power law", "hub", "weighted", "empty", "only isolated"])
def test_statistics_add_up(name, scheme, device):
    graph = as_graph(**GRAPHS[name](), device=device)
    compressed = compress(graph, scheme, raw_below=2, order="degree", segment=64)
    stats = compressed.stats()
    lists, entries = compressed.lists, max(graph.number_of_edges, 1)
    assert sum(stats["parts"].values()) == pytest.approx(stats["bits_of_lists"])
    whole = stats["bits_of_lists"] + sum(stats["beside"].values())
    assert stats["bits_per_edge"] == pytest.approx(whole)
    tables = lists.tables.nbytes if scheme != "cgr" else 0
    size = (lists.stream_bits + 7) // 8 + lists.block_bytes.nbytes + tables
    assert stats["bytes"] == size
    assert stats["bits_of_lists"] == pytest.approx(8 * size / entries)
    plain = 4 * graph.number_of_edges + 8 * (graph.number_of_vertices + 1)
    assert stats["csr_bytes"] == plain
    assert stats["ratio"] == pytest.approx(plain / max(size, 1 / 8))
    degree = to_host(graph.degree)
    assert sum(row["lists"] for row in stats["histogram"]) == graph.number_of_vertices
    assert sum(row["entries"] for row in stats["histogram"]) == graph.number_of_edges
    for row in stats["histogram"]:
        low, high = row["degree"]
        assert row["lists"] == ((degree >= low) & (degree <= high)).sum()
    bits = round(sum(row["bits_per_entry"] * row["entries"] for row in stats["histogram"]))
    beside = 8 * (lists.block_bytes.nbytes + tables)
    empty = sum(row["lists"] for row in stats["histogram"] if not row["entries"])
    assert 0 <= 8 * size - beside - bits <= 7 * lists.block_bytes.size + 8 * empty
    assert json.dumps(stats)


def test_statistics_are_found_once_and_are_the_callers_own(monkeypatch):
    graph = compress(**GRAPHS["power law"](), device="cpu")
    mine = graph.stats()
    expected = json.dumps(mine)
    mine["parts"]["raw"] = mine["histogram"][0]["lists"] = -1
    mine["histogram"].pop()
    del mine["bytes"]
    monkeypatch.setattr(verify, "walk", None)
    assert json.dumps(graph.stats()) == expected


def test_parts_of_a_list_by_hand():
    # the list of 0 is an interval and 9; all others are empty
    arcs = np.zeros(5, int), np.array([1, 2, 3, 4, 9])
    gammas = Codes(*["gamma"] * 6)
    graph = compress(arcs, "cgr", directed=True, vertices=range(10), codes=gammas, device="cpu")
    assert {name: round(bits * 5) for name, bits in graph.stats()["parts"].items()} == {
        "degrees": 5 + 9,  # of 5, and of nine zeros
        "interval counts": 3,
        "intervals": 3 + 1,  # 1 - 0, folded; 4 - 4
        "residuals": 9,  # 9 - 0, folded
        "raw": 0,
        "directories": 0,
        "blocks": 32 + 2,  # the rest of the last byte
        "tables": 0,
    }


def test_progress_tells_the_steps(capsys):
    for scheme, between in (("cgr", ["codes"]), ("packed", []), ("entropy", [])):
        steps = []
        compress(**GRAPHS["path"](), scheme=scheme, progress=steps.append, device="cpu")
        assert [step["step"] for step in steps] == ["order", *between, "encode"]
    compress(**GRAPHS["path"](), progress=True, device="cpu")
    assert "compress" in capsys.readouterr().err


def test_memory_that_is_missing_is_said(monkeypatch):
    def no_room(*_):
        raise MemoryError("Unable to allocate 1 PiB")

    monkeypatch.setattr("glp_rapids.compressed.graph.encode", no_room)
    with pytest.raises(
        MemoryError, match="too little memory to compress its 32 entries on the cpu"
    ):
        compress(**GRAPHS["path"](), device="cpu")


def test_it_is_no_graph_but_has_its_methods():
    compressed = compress(**GRAPHS["path"](), device="cpu")
    assert isinstance(compressed, CompressedGraph)
    assert not isinstance(compressed, Graph)
    assert compressed.keep("x", lambda: 1) == compressed.keep("x", lambda: 2) == 1
    assert compressed.nbytes == compressed.lists.nbytes


def test_edges_are_those_of_the_plain_graph():
    graph = as_graph(([0, 2, 2], [1, 1, 0], [3, 1, 2]), device="cpu")
    pd.testing.assert_frame_equal(compress(graph, device="cpu").edges(), graph.edges())
