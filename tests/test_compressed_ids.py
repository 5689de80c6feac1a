"""Integer ids take the room that they need, in memory and in a file, and come back as they were."""

import numpy as np
import pandas as pd
import pytest
from compressed_files import put_together, taken_apart
from graphs import GRAPHS
from test_compressed_file import assert_same

from glp_rapids import CompressedGraph, as_graph, compress, label_propagation
from glp_rapids.compressed.packed_ids import PackedColumn, PackedIds, RangeOfIds, packed
from glp_rapids.device import to_device, to_host

TYPES = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


def ascending(rng, dtype):
    """Draw ascending integers of a type: dense or far apart, from its first or to its last."""
    can = np.iinfo(dtype)
    size = int(rng.integers(1, 120 if dtype[1] == "1" else 700))
    gaps = rng.integers(1, 2 ** int(rng.integers(1, 50)), size, dtype=np.uint64)
    gaps[rng.random(size) < rng.choice([0, 0.5, 0.99])] = 1
    if rng.integers(4) == 0:
        gaps[rng.integers(size)] = 2**63 - 1
    steps = np.cumsum(gaps.astype(object)) - int(gaps[0])
    while steps[-1] > can.max - can.min:
        steps = np.array(sorted({*(steps // 2).tolist()}), dtype=object)
    room = int(can.max - can.min - steps[-1])
    first = can.min + [0, room, room // 2, min(room, -int(can.min))][rng.integers(4)]
    return np.array([first + int(step) for step in steps], dtype=dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_integers_in_the_room_that_they_need(dtype, device):
    rng = np.random.default_rng(TYPES.index(dtype))
    forms = set()
    for _ in range(60):
        ids = ascending(rng, dtype)
        held = packed(to_device(ids, device))
        forms.add(type(held))
        if held is None:
            continue
        assert held.device == device
        assert held.nbytes < ids.nbytes
        assert held.ends == (ids[0], ids[-1])
        assert held.decoded().dtype == ids.dtype
        np.testing.assert_array_equal(to_host(held.decoded()), ids)
        index = rng.integers(0, ids.size, 9)
        np.testing.assert_array_equal(to_host(held.at(to_device(index, device))), ids[index])
        for other in (ids.dtype.type, np.int64, np.uint64):
            can = np.iinfo(other)
            asked = [int(i) + d for i in ids[index] for d in (-1, 0, 1)] + [0, can.min, can.max]
            asked = [i for i in asked if can.min <= i <= can.max]
            found = PackedColumn(held, None).search(to_device(np.array(asked, other), device))
            number = {int(i): place for place, i in enumerate(ids)}
            assert to_host(found).tolist() == [number.get(i, -1) for i in asked]
    assert forms >= {RangeOfIds} if dtype[1] in "12" else {RangeOfIds, PackedIds}


@pytest.mark.gpu
def test_both_devices_pack_alike(device):
    rng = np.random.default_rng(9)
    for _ in range(60):
        ids = ascending(rng, TYPES[rng.integers(8)])
        one, other = packed(ids), packed(to_device(ids, device))
        assert type(one) is type(other)
        if isinstance(one, PackedIds):
            for name in ("firsts", "widths", "words"):
                np.testing.assert_array_equal(to_host(getattr(other, name)), getattr(one, name))


def crawl():
    """Give the edges of a crawl as a sparse matrix has them: weights of one, a range of ids."""
    sparse = pytest.importorskip("scipy.sparse")
    source = np.repeat(np.arange(5000), 12)
    end = np.minimum(source + np.arange(source.size) * 7 % 40, 4999)
    matrix = sparse.csr_array((np.ones(source.size), (source, end)), shape=(5000, 5000))
    matrix.data[:] = 1
    return matrix


@pytest.mark.parametrize("scheme", ["cgr", "packed", "entropy"])
def test_weights_of_one_and_a_range_of_ids_cost_nothing(scheme, tmp_path, device):
    plain = as_graph(crawl(), directed=True, device=device)
    assert (plain.weights == 1).all()
    graph, path = compress(plain, scheme), tmp_path / "graph.glp"
    stats = graph.stats()
    assert stats["beside"] == {"weights": 64 / graph.number_of_edges, "order": 0, "ids": 0}
    assert graph.nbytes - graph.lists.nbytes == 8
    graph.save(path)
    said = stats["bits_per_edge"] * graph.number_of_edges / 8
    assert said <= path.stat().st_size <= said + 3000  # the header
    opened = CompressedGraph.open(path, device=device)
    assert opened.nbytes == graph.nbytes
    assert opened.stats() == stats
    for one in (graph, opened):
        assert_same(one.to_graph(), plain)
        assert one.vertices.columns[0].held.nbytes == 0


SPARSE = {
    "range": np.arange(40, 340),
    "a gap": np.r_[np.arange(-7, 200), np.arange(201, 500)],
    "uint64": np.arange(300, dtype=np.uint64) * np.uint64(2**40) + np.uint64(2**63),
    "int16": np.arange(300, dtype=np.int16) - np.int16(2**15 - 1),
    "Int32": pd.array(np.arange(300) * 3, dtype="Int32"),
    "arrow": pd.array(np.arange(300) * 3, dtype="int32[pyarrow]"),
    "categories": pd.Categorical(np.arange(300) * 5),
}


@pytest.mark.parametrize("name", SPARSE)
def test_results_come_with_the_ids_of_the_plain_graph(name, tmp_path, device):
    ids = pd.Series(SPARSE[name])
    ring = ids.iloc[[*range(1, len(ids)), 0]].reset_index(drop=True)
    plain = as_graph((ids, ring), vertices=ids, device=device)
    graph, path = compress(plain, order="bfs"), tmp_path / "graph.glp"
    assert isinstance(graph.vertices.columns[0], PackedColumn)
    graph.save(path)
    for one in (graph, CompressedGraph.open(path, device=device), graph.to_graph()):
        pd.testing.assert_frame_equal(
            label_propagation(one, renumber=False), label_propagation(plain, renumber=False)
        )
        pd.testing.assert_series_equal(one.external(), plain.external())
        some = ids.iloc[[5, 0, 299, 5]]
        found = to_host(one.vertex_index(some)).tolist()
        assert found == to_host(plain.vertex_index(some)).tolist()
        assert one.vertex_index(some[:0]).size == 0
        for missing in (int(ids.iloc[-1]) + 1, 2**63 + 1, -(2**40)):
            with pytest.raises(ValueError, match=f"1 id.*no vertex.*{missing}"):
                one.vertex_index([int(ids[3]), missing][1:])
        with pytest.raises(TypeError, match="cast vertices to that"):
            one.vertex_index(["a"])


def forgeries():
    """Give by name what is changed in the header, and in the sections of ids, and what is said."""
    huge, narrow = [2**63, -(2**63) - 1, 2**63 - 5, 1.0, None, True, "0"], np.int64(2**40).tobytes()
    for first in huge:
        yield f"from {first}", "range", {"first": first}, {}, "cannot hold a range|they are not"
    for kind in ("i3", "f8", "x", None, ["i8"]):
        yield f"type {kind}", "range", {"type": kind}, {}, "no integers of the type|they are not"
    yield "too narrow", "range", {"type": "i1"}, {}, "int8 cannot hold a range"
    yield "family", "range", {"family": "string"}, {}, "no integers of the type"
    yield "not for all", "range", {"caller": "numpy:|i1"}, {}, "cannot be given back as int8"
    yield "of times", "range", {"caller": "numpy:<M8[ns]"}, {}, "cannot be given back as"
    yield "of text", "range", {"caller": "pandas:str"}, {}, "cannot be given back as"
    yield "unsigned", "packed", {"type": "u8"}, {}, "not 3 of uint64"
    yield "narrow", "packed", {"type": "i2"}, {0: lambda part: part[:-8] + narrow}, "int16 cannot"
    yield "too wide", "packed", {}, {1: lambda part: b"\x41" + part[1:]}, "holds 65"
    yield "other widths", "packed", {}, {1: lambda part: part[::-1]}, "out of order|numbers of"
    yield "fewer blocks", "packed", {}, {0: lambda part: part[:-8]}, "has 2 numbers of int64, not 3"
    yield "fewer words", "packed", {}, {2: lambda part: part[:-8]}, "numbers of uint64, not"
    yield "falling", "packed", {}, {0: lambda part: part[::-1]}, "out of order|cannot hold"
    yield "wrapped", "packed", {}, {0: lambda part: b"\xff" * 7 + b"\x7f" + part[8:]}, "order"


@pytest.mark.parametrize(("name", "kind", "header", "sections", "said"), [*forgeries()])
def test_what_is_said_of_ids_is_checked(name, kind, header, sections, said, tmp_path):
    ids = np.arange(300) if kind == "range" else np.cumsum(1 + np.arange(300) % 7)
    path = tmp_path / "graph.glp"
    compress((ids[1:], ids[:-1]), device="cpu").save(path)
    own, table, parts = taken_apart(path.read_bytes())
    (column,) = own["ids"]["columns"]
    assert column["kind"] == kind
    column.update(header)
    first = next((i for i, one in enumerate(table) if one["name"] == "ids0"), None)
    for section, change in sections.items():
        parts[first + section] = change(parts[first + section])
    path.write_bytes(put_together(own, table, parts))
    with pytest.raises(ValueError, match=said) as raised:
        CompressedGraph.open(path, device="cpu")
    assert str(raised.value).startswith(f"{path} is damaged in its vertex ids (")


def test_files_of_version_2_are_read(tmp_path):
    path = tmp_path / "graph.glp"
    for name in ("several columns", "float32 weights", "strings"):
        plain = as_graph(**GRAPHS[name](), device="cpu")
        compress(plain).save(path)
        path.write_bytes(put_together(*taken_apart(path.read_bytes()), version=2))
        opened = CompressedGraph.open(path, device="cpu")
        assert_same(opened.to_graph(), plain)
        opened.save(path)
        assert path.read_bytes()[12] == 3
