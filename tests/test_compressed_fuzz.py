"""Thousands of damaged files: each is refused with a ValueError, or gives exactly the graph.

Where the checksums were made to fit the damage, what is accepted must be a graph in order.
GLP_RAPIDS_FUZZ=10000 in the environment makes that many files of both sorts.
"""

import copy
import datetime
import decimal
import os
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import reference_compressed as reference
from compressed_files import put_together, taken_apart
from graphs import GRAPHS
from test_compressed_file import assert_same

from glp_rapids import CompressedGraph, as_graph, compress
from glp_rapids.graph.graph import is_symmetric

FILES = int(os.environ.get("GLP_RAPIDS_FUZZ", "1500"))
TIMES = pd.Series(pd.date_range("2026-01-30", periods=30, freq="h", tz="Europe/Berlin"))


def times():
    ends = np.random.default_rng(5).integers(0, 30, (2, 90))
    return {"graph": tuple(TIMES[end].reset_index(drop=True) for end in ends), "directed": True}


def gaps():
    ends = np.cumsum(np.random.default_rng(6).integers(1, 5, 400))
    return {"graph": (ends[1:].astype(np.int32), ends[:-1].astype(np.int32)), "vertices": ends}


def one_weight():
    ends = np.random.default_rng(7).integers(0, 40, (2, 90))
    ends = np.unique(np.sort(ends, axis=0), axis=1)
    return {"graph": (*ends, np.full(ends.shape[1], 2.5, np.float32))}


def moments():
    zone = datetime.timezone(datetime.timedelta(hours=2))
    ids = [datetime.datetime(2026, 1, day, 1, 2, 3, tzinfo=zone) for day in range(1, 20)]
    ids = pd.Series(ids, dtype=object)
    return {"graph": (ids[1:].reset_index(drop=True), ids[:-1])}


def decimals():
    ids = pd.Series([decimal.Decimal(f"{number}.{number}") for number in range(40)], dtype=object)
    return {"graph": (ids[1:].reset_index(drop=True), ids[:-1])}


CASES = {
    "packed": (lambda: GRAPHS["hub"](), {"segment": 32, "order": "bfs"}),
    "cgr": (lambda: GRAPHS["several columns"](), {"raw_below": 3, "min_interval": 2}),
    "entropy": (lambda: GRAPHS["uneven weights"](), {"segment": 4}),
    "cgr of times": (times, {"segment": 2, "order": "degree"}),
    "packed ids": (gaps, {"order": "bfs"}),
    "cgr of one weight": (one_weight, {}),
    "packed moments": (moments, {}),
    "cgr decimals": (decimals, {"order": "degree"}),
    "packed weights": (lambda: GRAPHS["directed kept"](), {"segment": 2, "min_interval": 2}),
}
NASTY = [-1, 0, 1, 2, 31, 2**31, 2**62, 2**70, 1.5, float("nan"), None, True, False, "", "x", "u1",
         "packed", "integer", "numpy:|O", "numpy:<i8", [], {}, [1], {"kind": "text"}]  # fmt: skip
# Of each field that has one of a few names, the others: what they say is wrong, not how.
NAMES = {
    "scheme": ["cgr", "packed", "entropy"],
    "weights": [None, "plain", "equal", "coded"],
    "kind": ["integer", "range", "packed", "text", "bytes", "decimal", "moment", "date", "empty",
             "datetime", "timedelta"],
    "family": ["integer", "string", "bytes", "decimal", "datetime", "date"],
    "type": ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f8"],
    "unit": ["s", "ms", "us", "ns"],
    "zone": [None, "UTC", "Asia/Tokyo", "no/where"],
    "series": ["numpy:|O", "pandas:str", "numpy:<i8", "numpy:|i1", "numpy:<M8[s]", "arrow:int8",
               "pandas:datetime64[ns, UTC]"],
    "caller": [None, "numpy:|i1", "numpy:<M8[s]", "pandas:Int8", "pandas:category", "pandas:str",
               "arrow:decimal128(3, 1)", "arrow:int8", "arrow:string"],
    "frame": ["pandas", "cudf", "cudf.pandas"],
}  # fmt: skip


@pytest.fixture(scope="module", params=CASES)
def case(request, tmp_path_factory):
    make, options = CASES[request.param]
    path = tmp_path_factory.mktemp("fuzz") / "graph.glp"
    graph = as_graph(**make(), device="cpu")
    compress(graph, request.param.split()[0], **options).save(path)
    assert_same(CompressedGraph.open(path, device="cpu").to_graph(), graph)
    return path, path.read_bytes(), graph


def outcome(path, content, number):
    """Give the graph of a file, or None if it is refused as it should be."""
    path.write_bytes(content)
    try:
        return CompressedGraph.open(path, mmap=number % 2 == 0, device="cpu")
    except ValueError as error:
        message = str(error)
    assert str(path) in message
    assert len(message) < 1000
    return None


def damaged(content, rng):
    """Damage a file as disks, networks and editors do."""
    size = len(content)
    data = bytearray(content)
    at, to = (int(place) for place in rng.integers(0, size, 2))
    length = int(rng.integers(1, 200))
    match rng.integers(0, 8):
        case 0 | 1:
            for bit in rng.integers(0, 8 * size, rng.integers(1, 9)).tolist():
                data[bit >> 3] ^= 1 << (bit & 7)
        case 2:
            del data[at:]
        case 3:
            data += rng.bytes(length)
        case 4:
            data[at : at + length] = rng.bytes(length)
        case 5:
            data[at : at + length] = data[to : to + length]
        case 6:
            del data[at : at + length]
        case 7:
            data[at : at + length] = bytes(len(data[at : at + length]))
    return bytes(data)


def test_damaged_files_are_refused(case):
    path, content, graph = case
    rng = np.random.default_rng(1)
    accepted = 0
    for number in range(FILES // len(CASES)):
        changed = damaged(content, rng)
        found = outcome(path, changed, number)
        if found is not None:
            accepted += 1
            assert_same(found.to_graph(), graph)
    assert accepted <= FILES / 100


def leaves(value, path=()):
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield (*path, key)
            yield from leaves(value[key], (*path, key))


def other_tables(part, rng):
    """Tables as they are to be, of other widths."""
    widths = reference.widths_of(np.frombuffer(part, np.uint32))
    for kind in rng.choice(reference.KINDS, rng.integers(1, 4)):
        widths[kind][rng.integers(8)] = int(rng.choice([0, 1, 2, 4, 8, 20, 40, 57, 58, 63]))
    words = np.array(reference.words_of(widths), np.uint64)
    return words.astype(np.uint32).tobytes()


def forged(header, table, parts, rng):
    """Change what a file says or holds."""
    header, table, parts = copy.deepcopy(header), copy.deepcopy(table), list(parts)
    number = int(rng.integers(len(parts)))
    part = bytearray(parts[number])
    item = int(table[number]["type"][1])
    tables = [entry["name"] for entry in table].index("tables")
    match rng.integers(0, 12):
        case 9 if header["layout"]["scheme"] == "packed":
            number, part = tables, other_tables(parts[tables], rng)
        case 0 | 1 | 2 if part:
            for bit in rng.integers(0, 8 * len(part), rng.integers(1, 4)).tolist():
                part[bit >> 3] ^= 1 << (bit & 7)
        case 3:
            del part[item * int(rng.integers(len(part) // item + 1)) :]
        case 4:
            part += rng.bytes(item * int(rng.integers(1, 9)))
        case 5 if part:
            at = item * int(rng.integers(len(part) // item))
            part[at : at + item] = bytes([int(rng.choice([0, 1, 127, 128, 255]))] * item)
        case 7:  # sections that have changed places
            other = int(rng.integers(len(parts)))
            part, parts[other] = bytearray(parts[other]), bytes(part)
            if rng.integers(2):
                types = table[number]["type"], table[other]["type"]
                table[other]["type"], table[number]["type"] = types
        case 6:
            key = str(rng.choice(["name", "type", "offset", "bytes", "crc32"]))
            table[number]["lies"] = {key: NASTY[rng.integers(len(NASTY))]}
        case _:
            places = list(leaves(header))
            *way, last = places[rng.integers(len(places))]
            inside = header
            for key in way:
                inside = inside[key]
            value = inside[last]
            if type(value) is bool:
                inside[last] = not value
            elif last in NAMES and rng.integers(4):
                inside[last] = NAMES[last][rng.integers(len(NAMES[last]))]
            elif rng.integers(4) == 0:
                del inside[last]
            else:
                near = [value + 1, value - 1, value * 2] if type(value) is int else []
                choices = NASTY + 3 * near
                inside[last] = choices[rng.integers(len(choices))]
    parts[number] = bytes(part)
    return put_together(header, table, parts)


def test_forged_files_are_refused_or_are_graphs(case):
    path, content, original = case
    apart = taken_apart(content)
    assert_same(outcome(path, put_together(*apart), 0).to_graph(), original)
    rng = np.random.default_rng(2)
    refused = 0
    for number in range(FILES // len(CASES)):
        found = outcome(path, forged(*apart, rng), number)
        if found is None:
            refused += 1
            continue
        graph = found.to_graph()
        rows = np.repeat(np.arange(graph.number_of_vertices), np.diff(graph.indptr))
        keys = rows * graph.number_of_vertices + graph.indices
        assert (np.diff(keys) > 0).all()
        assert graph.indices.size == found.number_of_edges
        assert not keys.size or 0 <= graph.indices.min() <= graph.indices.max() < len(
            graph.vertices
        )
        assert graph.weights is None or np.isfinite(graph.weights).all()
        assert graph.weights is None or (graph.weights >= 0).all()
        assert graph.directed or is_symmetric(replace(graph, directed=True, _derived={}))
        assert len(found.frame({"degree": found.degree})) == graph.number_of_vertices
        every = np.arange(graph.number_of_vertices)
        assert (found.vertex_index(found.external()) == every).all()
    assert refused > FILES / len(CASES) / 3
