"""`read_webgraph` against an obvious encoder of bit strings, and by hand."""

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import webgraph_twin
from graphs import random_pairs
from hypothesis import given
from hypothesis import strategies as st
from webgraph_twin import (
    BY_HAND,
    DEFAULTS,
    HAND_LISTS,
    HAND_PROPERTIES,
    Encoder,
    delta,
    gamma,
    hand,
    lists_of,
    packed,
    write,
    zeta,
)

from glp_rapids import as_graph, datasets, read_webgraph
from glp_rapids.bench import subjects
from glp_rapids.cli import main
from glp_rapids.ingest.webgraph import read

folder = webgraph_twin.folder  # a fixture


def check_round_trip(folder, lists, **options):
    encoder = Encoder(lists, **options)
    base = write(folder / "graph", encoder.properties(), packed(encoder.bits()))
    graph = read_webgraph(base, device="cpu")
    assert lists_of(graph) == lists
    assert graph.indptr.dtype == np.int64
    assert graph.indices.dtype == np.int32
    return graph


@st.composite
def successor_lists(draw, max_nodes=14):
    n = draw(st.integers(1, max_nodes))
    fresh = st.sets(st.integers(0, n - 1)).map(sorted)
    lists = []
    for node in range(n):
        if node and draw(st.booleans()):  # like one before, so that copying is worth it
            like = set(lists[node - draw(st.integers(1, min(node, 7)))])
            lists.append(sorted(like ^ set(draw(st.sets(st.integers(0, n - 1), max_size=3)))))
        else:
            lists.append(draw(fresh))
    return lists


@given(
    lists=successor_lists(),
    window=st.integers(0, 9),
    min_interval=st.sampled_from([0, 1, 2, 3, 4]),
    k=st.integers(1, 6),
    codes=st.fixed_dictionaries(
        {field: st.sampled_from(["GAMMA", "DELTA", "UNARY", "ZETA"]) for field in DEFAULTS}
    ),
    data=st.data(),
)
def test_round_trip(folder, lists, window, min_interval, k, codes, data):
    def choose(ways):
        return data.draw(st.sampled_from(ways))

    check_round_trip(
        folder, lists, window=window, min_interval=min_interval, k=k, max_references=99,
        choose=choose, **codes,
    )  # fmt: skip


@pytest.fixture(scope="module")
def web(data):
    """The first vertices of a crawl."""
    edges = datasets.load("cnr-2000")
    edges = edges[(edges["src"] < 3000) & (edges["dst"] < 3000)]
    lists = [[] for _ in range(3000)]
    for source, destination in zip(edges["src"], edges["dst"], strict=True):
        lists[source].append(destination)
    return list(map(sorted, lists))


@pytest.mark.parametrize(
    ("window", "min_interval", "codes"),
    [
        (7, 4, {}),
        (0, 4, {}),
        (1, 2, {"RESIDUALS": "DELTA", "BLOCKS": "DELTA"}),
        (3, 0, {"RESIDUALS": "GAMMA", "REFERENCES": "GAMMA", "OUTDEGREES": "DELTA"}),
        (70, 4, {"REFERENCES": "DELTA", "BLOCK_COUNT": "UNARY"}),
    ],
)
def test_round_trip_of_a_crawl(folder, web, window, min_interval, codes):
    choose = max if window == 70 else None
    check_round_trip(folder, web, window=window, min_interval=min_interval, choose=choose, **codes)


@pytest.mark.parametrize("k", range(1, 8))
def test_long_gaps(folder, k):
    lists = [[0, 2**14, 2**14 + 1, 2**15 - 1], *[[] for _ in range(2**15 - 2)], [0, 5, 2**13]]
    for code in ("ZETA", "DELTA", "GAMMA", "UNARY"):
        check_round_trip(folder, lists, k=k, RESIDUALS=code)


@pytest.mark.parametrize(
    "lists", [[], [[]], [[0]], [[], [], []], [list(range(300))] * 300], ids=str
)
def test_small_and_full(folder, lists):
    graph = check_round_trip(folder, lists)  # the full one has far more arcs than bits
    assert graph.number_of_vertices == len(lists)


def test_codes_by_hand():
    # from section 4 of the paper: gamma and zeta codes of 1 to 4, there counted from 1
    assert [gamma(x) for x in range(4)] == ["1", "010", "011", "00100"]
    assert [delta(x) for x in range(4)] == ["1", "0100", "0101", "01100"]
    assert [zeta(x, 2) for x in range(4)] == ["10", "110", "111", "01000"]
    assert [zeta(x, 3) for x in range(8)] == [
        "100", "1010", "1011", "1100", "1101", "1110", "1111", "0100000"
    ]  # fmt: skip
    assert [zeta(x, 1) for x in range(9)] == [gamma(x) for x in range(9)]


def test_by_hand(folder):
    assert lists_of(read_webgraph(hand(folder), device="cpu")) == HAND_LISTS


@pytest.mark.parametrize("ending", ["", ".graph", ".properties"])
@pytest.mark.parametrize("kind", [str, lambda path: path])
def test_names(folder, ending, kind):
    base = folder / "uk-2007-05@100000.v2"
    for end, text in ((".graph", packed("".join(BY_HAND))), (".properties", None)):
        (folder / (base.name + end)).write_bytes(
            text or "\n".join(f"{k} = {v}" for k, v in HAND_PROPERTIES.items()).encode()
        )
    graph = read_webgraph(kind(folder / (base.name + ending)), device="cpu")
    assert lists_of(graph) == HAND_LISTS


def test_undirected(folder, device):
    graph = read_webgraph(hand(folder), directed=False, device=device)
    pairs = [(u, v) for u, row in enumerate(HAND_LISTS) for v in row]
    frame = pd.DataFrame(pairs, columns=["src", "dst"])
    other = as_graph(frame, vertices=np.arange(10), device=device)
    assert not graph.directed
    assert graph.device == device
    assert graph.indptr.tolist() == other.indptr.tolist()
    assert graph.indices.tolist() == other.indices.tolist()
    assert graph.external().to_list() == list(range(10))


@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_undirected_is_as_any_graph(folder, share):
    """Whatever share of the arcs goes both ways."""
    pairs = np.array(random_pairs(60, 500, 7))
    pairs = np.concatenate([pairs, pairs[: int(share * len(pairs)), ::-1]])
    lists = [sorted(set(pairs[pairs[:, 0] == v, 1].tolist())) for v in range(60)]
    encoder = Encoder(lists)
    base = write(folder / "random", encoder.properties(), packed(encoder.bits()))
    graph = read_webgraph(base, directed=False, device="cpu")
    other = as_graph((pairs[:, 0], pairs[:, 1]), vertices=np.arange(60), device="cpu")
    for name in ("indptr", "indices"):
        mine, its = getattr(graph, name), getattr(other, name)
        assert mine.dtype == its.dtype
        assert mine.tobytes() == its.tobytes()


def test_reading_takes_little_more_than_the_graph(folder):
    rng = np.random.default_rng(3)
    starts = rng.integers(0, 3000, 4000)
    lists = [list(range(start, start + 300)) for start in starts.tolist()]
    encoder = Encoder(lists, window=1)
    base = write(folder / "runs", encoder.properties(), packed(encoder.bits()))
    for directed in (True, False):
        options = {"directed": directed, "device": "cpu"}
        read_webgraph(base, **options)  # so that all is compiled
        tracemalloc.start()
        try:
            graph = read_webgraph(base, **options)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        kept = graph.indptr.nbytes + graph.indices.nbytes
        assert kept > 4_500_000
        assert peak < kept + kept // 30 + 40 * 4000 + 100_000


@pytest.mark.parametrize("piece", [8, 16, 72])
def test_a_file_is_read_in_pieces_of_any_size(folder, web, piece, monkeypatch):
    monkeypatch.setattr(read, "PIECE", piece)
    test_by_hand(folder)
    test_long_gaps(folder, 3)
    near = [[vertex for vertex in row if vertex < 300] for row in web[:300]]
    check_round_trip(folder, near, window=7, min_interval=4)
    assert lists_of(read_webgraph(hand(folder), device="cpu")) == HAND_LISTS


def test_a_file_in_pieces_is_opened_once_and_closed(folder, monkeypatch):
    monkeypatch.setattr(read, "PIECE", 8)
    encoder = Encoder([list(range(node % 3, 50, 1 + node % 4)) for node in range(50)])
    base = write(folder / "graph", encoder.properties(), packed(encoder.bits()))
    opened, plain = [], Path.open

    def counted(path, *arguments, **options):
        opened.append(plain(path, *arguments, **options))
        return opened[-1]

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", counted)
        read_webgraph(base, device="cpu")
    with base.with_suffix(".graph").open("r+b") as file:
        file.truncate(40)  # of some hundreds
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", counted)
        with pytest.raises(ValueError, match="truncated"):
            read_webgraph(base, device="cpu")
    assert [Path(stream.name).suffix for stream in opened].count(".graph") == 2
    assert all(stream.closed for stream in opened)


def test_directed_is_as_any_graph(folder, device):
    graph = read_webgraph(hand(folder), device=device)
    assert graph.directed
    assert graph.device == device
    assert graph.vertex_index([9, 2]).tolist() == [9, 2]
    frame = graph.frame({"degree": graph.degree})
    assert frame["vertex"].to_list() == list(range(10))
    assert frame["degree"].to_list() == [len(row) for row in HAND_LISTS]


@pytest.mark.parametrize(
    "graphclass",
    ["it.unimi.dsi.big.webgraph.BVGraph", "class it.unimi.dsi.webgraph.BVGraph", "BVGraph"],
)
def test_other_names_of_the_class(folder, graphclass):
    assert lists_of(read_webgraph(hand(folder, graphclass=graphclass), device="cpu")) == HAND_LISTS


def test_properties_in_any_form_that_java_reads(folder):
    text = (
        "! a comment\r\n  # another\r\n\r\nnodes : 10\r\narcs\t14\nwindowsize=\\\n   7\n"
        "graphclass=it.unimi.dsi.webgraph\\u002eBVGraph\nminintervallength   =4  \n"
        "compressionflags= OFFSETS_DELTA | RESIDUALS_ZETA\nlength=12.5\\: bits\nempty\n"
    )
    base = write(folder / "java", text, packed("".join(BY_HAND)))
    assert lists_of(read_webgraph(base, device="cpu")) == HAND_LISTS


def test_the_command_line_and_the_bench_read_it(folder, capsys):
    base = hand(folder)
    file = os.fspath(base.with_suffix(".graph"))
    assert main(["label-propagation", file, "--device", "cpu"]) == 0
    out, err = capsys.readouterr()
    assert "10 vertices, 12 edges, on the cpu" in err
    assert len(out.splitlines()) == 11
    assert main(["diversity", file, "--k", "1", "--device", "cpu"]) == 0
    assert main(["label-propagation", file, "--weight", "w", "--device", "cpu"]) == 2
    assert "has its own weights, if any; leave --weight out" in capsys.readouterr().err
    graph = subjects.load(file, "cpu")
    assert not graph.directed
    assert graph.number_of_vertices == 10
