"""`read_webgraph` on broken files and wrong arguments: one clear error, or lists that are lists."""

import numpy as np
import pytest
import webgraph_twin
from cases import some
from webgraph_twin import BY_HAND, Encoder, gamma, hand, packed, unary, write, zeta

from glp_rapids import read_webgraph
from glp_rapids.ingest.webgraph import read

folder = webgraph_twin.folder  # a fixture


@pytest.mark.parametrize("piece", some([8, 40], 40))
def test_bad_files_in_pieces(folder, piece, monkeypatch):
    monkeypatch.setattr(read, "PIECE", piece)
    test_mutated_files_are_refused_or_are_graphs(folder)


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
