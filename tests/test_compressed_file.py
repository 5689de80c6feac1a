"""The file of a compressed graph: what goes in comes out, and what is damaged does not come in."""

import datetime
import decimal
import json
import struct
import zlib

import numpy as np
import pandas as pd
import pyarrow
import pytest
import read_compressed
from graphs import GRAPHS, edges, power_law_pairs, random_pairs

from glp_rapids import CompressedGraph, as_graph, compress
from glp_rapids.compressed.file import container
from glp_rapids.device import to_host

SCHEMES = ("cgr", "packed", "entropy")


FORMS = {
    "equal weights": lambda: edges(power_law_pairs(90, 500, 3), np.full(500, 2.5), directed=True),
    "gaps": lambda: edges((np.array(random_pairs(400, 600, 4)) ** 3 - 2**40).tolist()),
    "large gaps": lambda: edges(np.random.default_rng(5).integers(0, 2**63, (300, 2)).tolist()),
}


def assert_same(one, other):
    assert one.directed == other.directed
    for name in ("indptr", "indices", "weights"):
        array, expected = getattr(one, name), getattr(other, name)
        assert (array is None) == (expected is None)
        if array is not None:
            assert array.dtype == expected.dtype
            np.testing.assert_array_equal(to_host(array), to_host(expected))
    pd.testing.assert_frame_equal(one.frame({}, kind="pandas"), other.frame({}, kind="pandas"))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "graph.glp"


def saved(path, graph, scheme="packed", **options):
    compress(graph, scheme, device="cpu", **options).save(path)
    return path


@pytest.mark.parametrize("name", GRAPHS)
def test_files_give_the_graph_back(name, path, device):
    graph = as_graph(**GRAPHS[name](), device=device)
    scheme = SCHEMES[len(name) % 3]
    compress(graph, scheme, order="degree" if len(name) % 2 else None).save(path)
    for mmap in (True, False):
        opened = CompressedGraph.open(path, mmap=mmap, device=device)
        assert opened.device == device
        assert_same(opened.to_graph(), graph)
    opened.save(path)  # over the file that it came from
    assert_same(CompressedGraph.open(path, device=device, verify=False).to_graph(), graph)


@pytest.mark.gpu
def test_both_devices_write_the_same_file(tmp_path, device):
    files = []
    names = ["power law", "hub", "uneven weights", "integer weights", *FORMS]
    for where in ("cpu", device):
        for name in names:
            graph = as_graph(**(GRAPHS | FORMS)[name](), device=where)
            file = tmp_path / f"{where} {name}.glp"
            compress(graph, "cgr", order="degree").save(file)
            files.append(file.read_bytes())
    assert files[: len(names)] == files[len(names) :]


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize(
    "name",
    ["power law", "hub", "integer weights", "unicode", "several columns", "equal weights", "gaps"],
)
def test_the_text_of_the_format_is_enough_to_read_it(scheme, name, path):
    graph = as_graph(**(GRAPHS | FORMS)[name](), device="cpu")
    saved(path, graph, scheme, order="bfs", raw_below=len(name) % 3, segment=16)
    header, found = read_compressed.read(path)
    assert header["vertices"] == graph.number_of_vertices
    ids = graph.external()
    ids = list(ids.itertuples(index=False, name=None)) if ids.ndim > 1 else ids.tolist()
    for v, (name, entries) in enumerate(found):
        assert name == ids[v]
        row = slice(graph.indptr[v], graph.indptr[v + 1])
        assert [entry[0] for entry in entries] == graph.indices[row].tolist()
        if graph.weights is not None:
            assert [entry[1] for entry in entries] == graph.weights[row].tolist()


def moments(**options):
    return pd.Series(pd.date_range("2026-01-30", periods=4, **options))


ZONE = datetime.timezone(datetime.timedelta(hours=2))
IDS = {
    "int8": pd.Series([5, 9, 2, -7], dtype="int8"),
    "uint64": pd.Series([1, 2, 3, 2**63 + 5], dtype="uint64"),
    "Int32": pd.Series([4, 3, 2, 1], dtype="Int32"),
    "arrow integers": pd.Series([4, 3, 2, 1], dtype="int16[pyarrow]"),
    "strings": pd.Series(["a", "zéß日𝄞", "", "c\x00d"]),
    "objects": pd.Series(["a", "b\ud800", "c", "d"], dtype=object),
    "string": pd.Series(["a", "b", "c", "d"], dtype="string[python]"),
    "categories": pd.Series(pd.Categorical(list("xacb"), categories=list("xcba_"), ordered=True)),
    "categories of integers": pd.Series([7, 3, 1, 9], dtype="category"),
    "bytes": pd.Series([b"a", b"\xff", b"", b"\x00"], dtype=object),
    "days": pd.Series([datetime.date(*day) for day in ((1, 1, 1), (1969, 1, 1), (2026, 2, 3),
                                                       (9999, 12, 31))], dtype=object),
    "decimals": pd.Series([decimal.Decimal(text) for text in ("1.10", "-2", "1e5", "0.3")]),
    "Arrow decimals": pd.Series(["1.10", "-2.00", "3", "0.31"]).astype(
        pd.ArrowDtype(pyarrow.decimal128(10, 2))),
    "points in time": moments(),
    "nanoseconds": moments(unit="ns"),
    "in a zone": moments(tz="Europe/Berlin"),
    "fixed zone": moments(tz=ZONE),
    "of Python": pd.Series([datetime.datetime(2026, 1, i, 1, 2, 3, i) for i in (1, 2, 3, 4)],
                           dtype=object),
    "spans of Python": pd.Series([datetime.timedelta(i) for i in (1, 2, 3, 4)], dtype=object),
    "spans": pd.Series(pd.to_timedelta([1, 2, 3, 4], unit="s")),
}  # fmt: skip


@pytest.mark.parametrize("name", IDS)
def test_ids_of_every_type_come_back_as_they_were(name, path):
    ids = IDS[name]
    edges = pd.DataFrame({"src": ids, "dst": ids.iloc[[1, 2, 3, 0]].reset_index(drop=True)})
    graph = as_graph(edges, device="cpu")
    opened = CompressedGraph.open(saved(path, graph), device="cpu")
    expected, found = graph.external(), opened.external()
    pd.testing.assert_series_equal(found, expected)
    assert found.map(type).tolist() == expected.map(type).tolist()
    if name != "objects":  # Arrow, which pandas looks things up with, has no lone surrogates
        assert opened.vertex_index(ids).tolist() == graph.vertex_index(ids).tolist()


FORMLESS = {
    r"period\[D\]": pd.Series(pd.period_range("2026", periods=4, freq="D")),
    r"fixed_size_binary\[1\]": pd.Series([b"a", b"b", b"c", b"d"]).astype(
        pd.ArrowDtype(pyarrow.binary(1))),
    "category, with a lone surrogate": pd.Series(pd.Categorical.from_codes(
        [0, 1, 2, 3], categories=pd.Index(["a", "b\ud800", "c", "d"], dtype=object))),
}  # fmt: skip


@pytest.mark.parametrize("name", FORMLESS)
def test_ids_without_a_form_in_a_file_are_refused_and_nothing_is_written(name, path):
    ids = FORMLESS[name]
    graph = as_graph((ids, ids[::-1].reset_index(drop=True)), device="cpu")
    with pytest.raises(TypeError, match=f"ids of the type {name}.* cannot be saved.*astype"):
        saved(path, graph)
    assert not list(path.parent.iterdir())


def test_a_file_is_replaced_only_when_the_new_one_is_complete(path, monkeypatch):
    saved(path, **GRAPHS["hub"]())
    before = path.read_bytes()
    opened = CompressedGraph.open(path, device="cpu")
    monkeypatch.setattr(container, "_write_array", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        opened.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_large_arrays_are_written_in_chunks(path, monkeypatch):
    saved(path, **GRAPHS["power law"]())
    expected = path.read_bytes()
    monkeypatch.setattr(container, "CHUNK", 64)
    saved(path, **GRAPHS["power law"]())
    assert path.read_bytes() == expected


def test_an_opened_file_is_read_only_when_it_is_looked_at(path):
    saved(path, **GRAPHS["power law"]())
    opened = CompressedGraph.open(path, device="cpu")
    words = opened.lists.words
    assert not words.flags.owndata
    before = path.read_bytes()
    words[0] ^= 1  # goes to memory
    assert path.read_bytes() == before
    words[0] ^= 1
    path.unlink()  # and the mapping stays
    assert opened.stats()["edges"] == opened.number_of_edges


def test_what_is_wrong_is_said(path, tmp_path):
    graph = as_graph(**GRAPHS["strings"](), device="cpu")
    content = saved(path, graph, order="degree").read_bytes()

    def refused(data, *words):
        path.write_bytes(data)
        for mmap in (True, False):
            with pytest.raises(ValueError) as raised:
                CompressedGraph.open(path, mmap=mmap, device="cpu")
            message = str(raised.value)
            assert message.startswith(str(path))
            for word in words:
                assert word in message

    refused(b"", "no compressed graph", "it is empty", "CompressedGraph.save")
    refused(b"src,dst\n0,1\n", "no compressed graph", r"begins with b'src,dst\n'")
    refused(b"PK\3\4" + content, "no compressed graph")
    refused(content[:5], "truncated", "5 bytes")
    refused(content[:30], "truncated", "30 bytes")
    refused(content[:100], "truncated", f"100 of {len(content):,} bytes", "copy or make it again")
    refused(content[:-1], "truncated")
    refused(content + b"\n", "goes on for 1 bytes behind its end")
    for version in (1, 4):
        other = bytearray(content[:36])
        other[12] = version
        other += struct.pack("<I", zlib.crc32(other))
        said = f"version {version}", "only versions 2 and 3", "compress the graph again"
        refused(bytes(other) + content[40:], *said)
    refused(content.replace(b"\r\n", b"\n", 1), "no compressed graph")
    table, data = parts_of(content)
    refused(content[:50] + b"?" + content[51:], "damaged in its header")
    for entry in table:
        at = data + entry["offset"] + entry["bytes"] // 2
        changed = bytearray(content)
        changed[at] ^= 16
        refused(bytes(changed), f"damaged in section {entry['name']} (its CRC-32 is ")
    gap = data + table[0]["bytes"]
    refused(content[:gap] + b"!" + content[gap + 1 :], "which must be zero")
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        CompressedGraph.open(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="is no file"):
        CompressedGraph.open(tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        compress(graph).save(tmp_path / "none" / "graph.glp")
    with pytest.raises(TypeError, match="path must be a str or a path, not 3"):
        CompressedGraph.open(3)
    path.write_bytes(content)
    for option in ("mmap", "verify"):
        with pytest.raises(TypeError, match=f"{option} must be .*, not 'no'"):
            CompressedGraph.open(path, device="cpu", **{option: "no"})


def parts_of(content):
    length = struct.unpack_from("<Q", content, 16)[0]
    return json.loads(content[40 : 40 + length])["sections"], 40 + length


def test_without_verification_only_the_header_is_looked_at(path):
    graph = as_graph(**GRAPHS["power law"](), device="cpu")
    content = bytearray(saved(path, graph).read_bytes())
    table, data = parts_of(content)
    weights = next(entry for entry in table if entry["name"] == "ids0")
    content[data + weights["offset"]] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="damaged in section ids0"):
        CompressedGraph.open(path, device="cpu")
    opened = CompressedGraph.open(path, device="cpu", verify=False)
    assert opened.number_of_edges == graph.number_of_edges
