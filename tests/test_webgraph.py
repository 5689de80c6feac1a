"""`read_webgraph` against an obvious encoder of bit strings, by hand, and on broken files."""

import os
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import some
from graphs import random_pairs
from hypothesis import given
from hypothesis import strategies as st
from webgraph_twin import DEFAULTS, Encoder, delta, gamma, packed, unary, write, zeta

from glp_rapids import as_graph, datasets, read_webgraph
from glp_rapids.bench import subjects
from glp_rapids.cli import main
from glp_rapids.ingest.webgraph import read


def lists_of(graph):
    return [row.tolist() for row in np.split(graph.indices, graph.indptr[1:-1])][
        : graph.number_of_vertices
    ]


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("webgraph")


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


# Written by hand from the definitions, with the default codes, window 7 and intervals from 4 on.
BY_HAND = [
    "00110",  # node 0 has 5 successors: gamma of 5
    "1",  # no reference
    "010",  # one interval
    "011",  # from 1, which is 0 + 1, folded to 2
    "1",  # of length 4 = 4 + 0
    "01010011",  # the residual 9 = 0 + 9, folded to 18: 19 is 8 + 11, in six bits 8 + 11
    "00101",  # node 1 has 4 successors
    "01",  # copies from node 0: 1 2 3 4 9
    "00101",  # 4 blocks and the rest
    "1",  # copies none
    "1",  # skips one: 1
    "010",  # copies two: 2 3
    "1",  # skips one: 4; the rest is copied: 9
    "1",  # no interval
    "1010",  # the residual 0 = 1 - 1, folded to 1
    "1",  # node 2 has no successor
    "00110",  # node 3 has 5
    "0001",  # copies from node 0
    "1",  # 0 blocks and the rest: all
    *["1"] * 6,  # nodes 4 to 9
]
HAND_LISTS = [[1, 2, 3, 4, 9], [0, 2, 3, 9], [], [1, 2, 3, 4, 9], *[[] for _ in range(6)]]
HAND_PROPERTIES = {
    "graphclass": "it.unimi.dsi.webgraph.BVGraph", "version": 0, "nodes": 10, "arcs": 14,
    "windowsize": 7, "maxrefcount": 3, "minintervallength": 4, "zetak": 3, "compressionflags": "",
}  # fmt: skip


def hand(folder, content=None, **changes):
    properties = {k: v for k, v in (HAND_PROPERTIES | changes).items() if v is not None}
    return write(
        folder / "hand", properties, packed("".join(BY_HAND) if content is None else content)
    )


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


@pytest.mark.parametrize("piece", some([8, 40], 40))
def test_bad_files_in_pieces(folder, piece, monkeypatch):
    monkeypatch.setattr(read, "PIECE", piece)
    test_mutated_files_are_refused_or_are_graphs(folder)


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


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"graphclass": None}, "has no graphclass"),
        ({"graphclass": "it.unimi.dsi.webgraph.EFGraph"}, "only a BVGraph can be read$"),
        (
            {"graphclass": "it.unimi.dsi.webgraph.labelling.X", "underlyinggraph": "y"},
            "read the graph it names as underlyinggraph",
        ),
        ({"version": 1}, "version=1, and only 0"),
        ({"endianness": "little"}, "endianness=little, and only big"),
        ({"nodes": None}, "has no nodes"),
        ({"arcs": "many"}, "arcs=many; it must be an integer from 0 on"),
        ({"arcs": -1}, "arcs=-1; it must be"),
        ({"arcs": 101}, "arcs=101, more than 10 nodes can have"),
        ({"nodes": 10**17}, "has 64 bits, too few for the 100,000,000,000,000,000 nodes"),
        ({"nodes": 10**30}, "nodes=10{30}; it must be"),
        ({"windowsize": None}, "has no windowsize"),
        ({"minintervallength": -1}, "minintervallength=-1; it must"),
        ({"zetak": 0}, "zetak=0; it must be from 1 to 61"),
        ({"compressionflags": "RESIDUALS_NIBBLE"}, "RESIDUALS_NIBBLE is named twice or cannot"),
        ({"compressionflags": "BLOCKS_GAMMA | BLOCKS_DELTA"}, "BLOCKS_DELTA is named twice"),
        ({"compressionflags": "GAMMA"}, "GAMMA is named twice or cannot"),
        # and properties that are not those of the file
        ({"arcs": 15}, "has 14 arcs up to its last node 9, but hand.properties says 15"),
        ({"arcs": 13}, r"node 3 of 10 cannot be read: .* more than the 13 arcs"),
        ({"nodes": 9}, "node 0 of 9 cannot be read: a successor is not one of the 9 nodes"),
        ({"nodes": 11}, "node 10 of 11 cannot be read: the file ends in the middle of its list"),
        ({"windowsize": 2}, "node 3 of 10 .* before the window of 2 or the first node"),
    ],
)
def test_bad_properties(folder, changes, message):
    base = hand(folder, **changes)
    with pytest.raises(ValueError, match=message) as caught:
        read_webgraph(base, device="cpu")
    assert str(base) in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "has 0 bits, too few for the 10 nodes"),
        ("".join(BY_HAND) + "1" * 9, "goes on behind the list of its last node 9"),
        ("".join(BY_HAND) + "0" * 200, "goes on behind the list of its last node 9"),
        ("1" * 10, "has 0 arcs up to its last node 9, but hand.properties says 14"),
        ("".join(BY_HAND[:12]), "node 1 of 10 cannot be read: the file ends in the middle"),
        ("0" * 400, "node 0 of 10 cannot be read: the file ends in the middle"),
        ("0" * 63 + "1" * 90, "node 0 of 10 cannot be read: a code is longer than"),
        (gamma(11) + "1" * 20, "node 0 of 10 .* more successors than there are nodes"),
        (gamma(1) + unary(1) + "1" * 20, "node 0 of 10 .* before the window of 7"),
        # one interval of four from 8 on, and from -1 on
        (gamma(4) + "1" + gamma(1) + gamma(16) + "1" * 20, "node 0 .* not one of the 10 nodes"),
        (gamma(4) + "1" + gamma(1) + gamma(1) + "1" * 20, "node 0 .* not one of the 10 nodes"),
        (gamma(4) + "1" + gamma(1) + gamma(0) + gamma(1) + "1" * 20, "node 0 .* its intervals"),
        (gamma(1) + "1" + "1" + zeta(20, 3) + "1" * 20, "node 0 .* not one of the 10 nodes"),
        (gamma(1) + "1" + "1" + zeta(1, 3) + "1" * 20, "node 0 .* not one of the 10 nodes"),
        # interval 0 to 3, and residual 3
        (gamma(5) + "1" + gamma(1) + "1" + "1" + zeta(6, 3) + "1" * 20, "node 0 .* twice"),
        # 0 -> 4, and 1 copies two of that, or one too many for it
        (gamma(1) + "11" + zeta(8, 3) + gamma(3) + "01" + gamma(1) + gamma(2) + "1" * 9,
         "node 1 .* copy blocks are longer"),
        (gamma(2) + "11" + zeta(8, 3) + "100" + gamma(1) + "01" + gamma(0) + "1" * 9,
         "node 1 .* copy blocks are longer"),
    ],
)  # fmt: skip
def test_bad_files(folder, content, message):
    base = hand(folder, content)
    with pytest.raises(ValueError, match=message) as caught:
        read_webgraph(base, device="cpu")
    assert str(base) in str(caught.value)


def test_missing_files_and_wrong_arguments(folder):
    base = hand(folder)
    with pytest.raises(FileNotFoundError, match=r"nothing\.properties: there is no such file"):
        read_webgraph(folder / "nothing")
    (folder / "alone.properties").write_text("nodes=1")
    with pytest.raises(FileNotFoundError, match=r"alone\.graph: there is no such file"):
        read_webgraph(folder / "alone")
    with pytest.raises(TypeError, match="directed must be True or False, not 'yes'"):
        read_webgraph(base, directed="yes")
    with pytest.raises(ValueError, match="device must be"):
        read_webgraph(base, device="tpu")
    with pytest.raises(TypeError, match="path"):
        read_webgraph(3)


def read_or_refuse(base):
    """Read a file that may be broken; tell whether it was read, and check what was."""
    graph = None
    try:
        graph = read_webgraph(base, device="cpu")
    except ValueError as error:
        message = str(error)
    if graph is None:
        assert str(base) in message
        return False
    n, indptr, indices = graph.number_of_vertices, graph.indptr, graph.indices
    assert indptr[0] == 0
    assert indptr[-1] == indices.size
    assert (np.diff(indptr) >= 0).all()
    assert ((indices >= 0) & (indices < n)).all()
    inside = np.ones(indices.size, bool)
    inside[indptr[:-1][indptr[:-1] < indices.size]] = False
    assert (np.diff(indices) > 0)[inside[1:]].all()
    return True


def test_mutated_files_are_refused_or_are_graphs(folder):
    rng = np.random.default_rng(6)
    lists = [sorted(set((rng.random(size) ** 3 * 80).astype(int).tolist()) | set(range(size % 6)))
             for size in rng.integers(0, 20, 80)]  # fmt: skip
    encoders = [
        Encoder(lists), Encoder(lists, window=3, min_interval=2, RESIDUALS="DELTA"),
        Encoder(lists, window=0, min_interval=0, RESIDUALS="GAMMA"),
    ]  # fmt: skip
    originals = [np.frombuffer(packed(encoder.bits()), np.uint8) for encoder in encoders]
    read = 0
    for case in range(4000):
        encoder, content = encoders[case % 3], originals[case % 3].copy()
        properties = encoder.properties()
        kind = case // 3 % 5
        if kind == 0:
            content = content[: rng.integers(content.size)]
        elif kind == 1:
            content[rng.integers(content.size)] ^= 1 << rng.integers(8)
        elif kind == 2:
            content[rng.integers(content.size, size=4)] = rng.integers(0, 256, 4)
        elif kind == 3:
            at, size = rng.integers(content.size, size=2)
            content = np.delete(content, slice(at, at + 1 + size % 9))
        else:
            content = rng.integers(0, 256, rng.integers(400), dtype=np.uint8)
        if rng.random() < 0.3:
            name = rng.choice(["nodes", "arcs", "windowsize", "minintervallength", "zetak"])
            properties[name] = max(0, int(properties[name]) + int(rng.integers(-3, 4)))
        if rng.random() < 0.1:  # whatever the number of arcs is, the lists must be lists
            properties["arcs"] = int(rng.integers(0, properties["nodes"] ** 2 + 1))
        read += read_or_refuse(write(folder / "fuzz", properties, content.tobytes()))
    assert 0 < read < 2000


def test_mutated_properties_are_refused_or_read(folder):
    rng = np.random.default_rng(7)
    base = hand(folder)
    original = np.frombuffer(base.with_suffix(".properties").read_bytes(), np.uint8)
    for case in range(1000):
        text = original.copy()
        text[rng.integers(text.size, size=1 + case % 3)] = rng.integers(0, 256, 1 + case % 3)
        base.with_suffix(".properties").write_bytes(text[: None if case % 4 else case % text.size])
        read_or_refuse(base)


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
