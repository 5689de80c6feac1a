"""Tables that are read in chunks: the same graph, to the bit, as of the whole in one frame."""

import datetime
import decimal
import sys
import tracemalloc
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from built_graphs import built, same
from graphs import GRAPHS, edge_frames
from hypothesis import given, settings
from hypothesis import strategies as st

import glp_rapids
from glp_rapids import device
from glp_rapids.cli import main
from glp_rapids.frames import chunks, kinds
from glp_rapids.graph import id_types, in_place
from glp_rapids.ingest import lookup
from glp_rapids.ingest.read import as_graph

TINY = [(chunks, "CHUNK", 3), (in_place, "SMALL", 4), (in_place, "MERGED", 3)]


@pytest.fixture
def tiny(monkeypatch):
    """Chunks, strips and blocks of a few rows, so that a small graph is of many."""
    for module, name, size in TINY:
        monkeypatch.setattr(module, name, size)


def write(frame, folder, files=3):
    """Write a frame as Parquet files; returns the folder."""
    folder.mkdir(exist_ok=True)
    size = max(-(-len(frame) // files), 1)
    for number, begin in enumerate(range(0, max(len(frame), 1), size)):
        part = frame.iloc[begin : begin + size]
        part.to_parquet(folder / f"part-{number:03d}.parquet", index=False)
    return folder


def one_file(frame, folder):
    return next(write(frame, folder, files=1).glob("*.parquet"))


def feather(frame, folder):
    folder.mkdir()
    frame.to_feather(folder / "edges.feather")
    return ds.dataset(folder, format="feather")


def dask(frame, folder):
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)



def parts(folder, *frames):
    folder.mkdir(exist_ok=True)
    for number, frame in enumerate(frames):
        pd.DataFrame(frame).to_parquet(folder / f"{number:02d}.parquet", index=False)


GOOD = {"src": [1, 2, 3, 4], "dst": [2, 3, 4, 5], "w": [1.0, 2.0, 3.0, 4.0]}
NULL = {**GOOD, "src": pd.array([1, 2, 3, None], dtype="Int64")}


SOURCES = {
    "folder": write,
    "path as str": lambda frame, folder: str(write(frame, folder)),
    "file": one_file,
    "dataset": lambda frame, folder: ds.dataset(write(frame, folder)),
    "dataset of another format": feather,
    "dataset in memory": lambda frame, folder: ds.dataset(pa.Table.from_pandas(frame)),
    "filtered dataset": lambda frame, folder: ds.dataset(
        write(pd.concat([frame.assign(keep=True), frame.assign(keep=False)]), folder)
    ).filter(ds.field("keep")),
    "ParquetFile": lambda frame, folder: pq.ParquetFile(one_file(frame, folder)),
    "dask": dask,
}


def identical(graph, expected):
    """Compare everything that a graph is made of."""
    same(graph, expected)
    assert graph.indptr.dtype == expected.indptr.dtype
    assert graph.indices.dtype == expected.indices.dtype
    assert graph.directed == expected.directed
    assert graph.vertices.kind == expected.vertices.kind
    for one, other in zip(graph.vertices.columns, expected.vertices.columns, strict=True):
        assert one.family == other.family
        assert one.values.dtype == other.values.dtype
    pd.testing.assert_frame_equal(graph.frame({}), expected.frame({}))


# every graph from a folder; from what else is read in chunks some, since only the reader differs
FEW = ("empty", "isolated", "multi-edges kept", "directed weighted", "strings")


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (name, kind)
        for kind in SOURCES
        for name in GRAPHS
        if kind == "folder" or name in FEW
    ],
)
def test_the_same_graph_as_of_one_frame(name, kind, tmp_path, tiny):
    options = GRAPHS[name]()
    source = SOURCES[kind](options["graph"], tmp_path / "edges")
    if kind == "dask":  # whose strings are others
        options["graph"] = source.compute()
    identical(built(**{**options, "graph": source}), built(**options))


@given(options=edge_frames(), files=st.integers(1, 4), chunk=st.integers(1, 7))
@settings(max_examples=150)
def test_any_multigraph(tmp_path_factory, options, files, chunk):
    expected = built(**options)
    folder = write(options["graph"], tmp_path_factory.mktemp("edges"), files)
    with patch.object(chunks, "CHUNK", chunk), patch.object(in_place, "SMALL", 2 * chunk):
        identical(built(**{**options, "graph": folder}), expected)


MANY = 40_000


def many_edges(**columns):
    """Many edges among few vertices, each some ten times."""
    random = np.random.default_rng(5)
    ends = (60 * random.random((2, MANY)) ** 2).astype(np.int64)
    return pd.DataFrame({"src": ends[0], "dst": ends[1], **columns})


WEIGHTS = {
    "float64": np.random.default_rng(1).random(MANY) * 10.0 ** np.arange(-8, 8).repeat(MANY // 16),
    "float32": np.random.default_rng(2).random(MANY, dtype=np.float32),
    "int64": np.random.default_rng(3).integers(0, 2**40, MANY),
    "uint8": np.random.default_rng(4).integers(0, 255, MANY, dtype=np.uint8),
}


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("weights", [None, "count", *WEIGHTS])
def test_duplicates_are_merged_strip_by_strip(weights, directed, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", 5_000)
    monkeypatch.setattr(in_place, "SMALL", 6_000)
    monkeypatch.setattr(in_place, "MERGED", 1_000)
    frame = many_edges(**({"w": WEIGHTS[weights]} if weights in WEIGHTS else {}))
    options = {"directed": directed}
    if weights == "count":
        options["multigraph"] = "keep"
    elif weights is not None:
        options["weight"] = "w"
    steps = []
    graph = built(graph=write(frame, tmp_path), progress=steps.append, **options)
    identical(graph, built(graph=frame, **options))
    strips = {facts["pass"] for facts in steps if facts["step"] == "rows"}
    assert len(strips) == -(-MANY * (1 if directed else 2) // 6_000)


@pytest.mark.parametrize("name", ["power law", "uneven weights", "directed kept", "sparse"])
def test_indices_of_64_bits(name, tmp_path, tiny, monkeypatch):
    if name == "sparse":
        frame = pd.DataFrame(many_edges()[:500] * 10**12)
        options, expected = {"graph": frame}, built(graph=frame)
    else:
        options, expected = GRAPHS[name](), built(**GRAPHS[name]())
    for module in (in_place, lookup):
        monkeypatch.setattr(module, "index_dtype", lambda _: np.int64)
    graph = built(**{**options, "graph": write(options["graph"], tmp_path)})
    assert graph.indices.dtype == np.int64
    same(graph, expected)


def test_the_estimate_of_distinct_pairs():
    random = np.random.default_rng(0)
    pairs = random.integers(0, 300, (2, 400_000))
    true = pairs.shape[1] / len(np.unique(pairs[0] * 300 + pairs[1]))
    noted = in_place._Distinct()
    for part in np.array_split(pairs, 7, axis=1):
        noted.add(*part, False)
    assert noted.repeated() == pytest.approx(true, rel=0.06)


# ---------------------------------------------------------------- ids of all types

DAYS = [datetime.date(2024, 1, 1 + (7 * i) % 25) for i in range(40)]
IDS = {
    **{
        kind: pa.array([(7 * i) % 25 + 3 for i in range(40)], kind)
        for kind in ("int8", "int16", "int32", "int64", "uint8", "uint32", "uint64")
    },
    "large uint64": pa.array([2**63 + (7 * i) % 25 for i in range(40)], "uint64"),
    "negative": pa.array([(7 * i) % 25 - 9 for i in range(40)], "int32"),
    "sparse": pa.array([((7 * i) % 25 - 9) * 10**15 for i in range(40)], "int64"),
    "lowest": pa.array([-(2**63) + (7 * i) % 25 for i in range(40)], "int64"),
    "string": pa.array([f"é{(7 * i) % 25}" for i in range(40)]),
    "empty string": pa.array(["" if i % 9 else "x" for i in range(40)]),
    "large string": pa.array([f"{(7 * i) % 25}" for i in range(40)], pa.large_string()),
    "dictionary": pa.array([f"{(7 * i) % 25}" for i in range(40)]).dictionary_encode(),
    "binary": pa.array([b"%d" % (7 * i % 25) for i in range(40)]),
    "date": pa.array(DAYS),
    "timestamp": pa.array(DAYS).cast(pa.timestamp("us")),
    "zoned": pa.array(DAYS).cast(pa.timestamp("ms", "Europe/Paris")),
    "duration": pa.array([7 * i % 25 for i in range(40)], pa.duration("s")),
    "decimal": pa.array([decimal.Decimal(7 * i % 25) / 4 for i in range(40)]),
}


@pytest.mark.parametrize("name", IDS)
def test_ids_keep_value_and_type(name, tmp_path, tiny):
    table = pa.table({"src": IDS[name], "dst": IDS[name].take(np.arange(40)[::-1] // 2)})
    for number in range(4):
        pq.write_table(table.slice(10 * number, 10), tmp_path / f"{number}.parquet")
    expected = built(graph=pq.read_table(tmp_path), directed=True)
    identical(built(graph=tmp_path, directed=True), expected)


def test_categories_of_dask(tiny):
    ids = [list("cabd"[i % 4]) * 2 for i in range(12)]
    frame = pd.DataFrame({"src": [one for one, _ in ids], "dst": [one for _, one in ids[::-1]]})
    frame = frame.astype(pd.CategoricalDtype(list("dcbae")))
    identical(built(graph=dask(frame, None)), built(graph=frame))


def test_types_that_agree_as_ids(tmp_path, tiny):
    halves = {"src": [1, 5, 7], "dst": [2, 7, 1]}, {"src": [9, 9, 2], "dst": [1, 2, 2]}
    for number, (half, kind) in enumerate(zip(halves, ("int32", "int64"), strict=True)):
        pd.DataFrame(half, dtype=kind).to_parquet(tmp_path / f"{number}.parquet")
    whole = pd.concat([pd.DataFrame(half) for half in halves])
    identical(built(graph=tmp_path), built(graph=whole))


def test_unsigned_and_signed_ids(tmp_path, tiny):
    large = pd.DataFrame({"src": [2**63, 1], "dst": [5, 2**64 - 1]}, dtype="uint64")
    large.to_parquet(tmp_path / "a.parquet")
    pd.DataFrame({"src": [1, 3], "dst": [5, 3]}).to_parquet(tmp_path / "b.parquet")
    assert built(graph=tmp_path).external().tolist() == [1, 3, 5, 2**63, 2**64 - 1]
    pd.DataFrame({"src": [1], "dst": [-5]}).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(TypeError, match=r"mix uint64 ids from 2\*\*63 up with negative ids"):
        built(graph=tmp_path)


def test_columns_in_the_names_of_folders(tmp_path, tiny):
    frames = []
    for bank in (3, 12):
        folder = tmp_path / f"bank={bank}"
        folder.mkdir()
        frames.append(pd.DataFrame({"src": [1, 2, 3, 4, 5], "dst": [2, 3, 1, bank, 9]}))
        frames[-1].to_parquet(folder / "edges.parquet")
        frames[-1]["bank"] = np.int32(bank)
    ends = {"source": ["bank", "src"], "destination": ["bank", "dst"]}
    expected = built(graph=pd.concat(frames), **ends)
    identical(built(graph=tmp_path, **ends), expected)
    identical(built(graph=ds.dataset(tmp_path, partitioning="hive"), **ends), expected)


def test_the_schema_of_a_dataset_decides(tmp_path, tiny):
    write(pd.DataFrame({"src": [1, 2, 3, 4], "dst": [2, 3, 4, 1]}), tmp_path)
    schema = pa.schema({"src": pa.int16(), "dst": pa.int16()})
    graph = built(graph=ds.dataset(tmp_path, schema=schema))
    assert graph.frame({})["vertex"].dtype == np.int16
    pd.DataFrame({"src": [7], "dst": [10**6]}).to_parquet(tmp_path / "large.parquet")
    with pytest.raises(ValueError, match=r"large.parquet: its column 'dst' .* the int16 of"):
        built(graph=ds.dataset(tmp_path, schema=schema))


class OfGPU:
    """Ids on a GPU, which kernels of the CPU cannot read, as cuDF and CuPy have them."""

    ndim, dtype = 1, np.dtype(np.int64)

    def __init__(self, values):
        self._values = np.array(values)

    def __len__(self):
        return self._values.size

    def to_pandas(self):
        return pd.Series(self._values)

    def get(self):
        return self._values.copy()


@pytest.mark.parametrize("library", ["cudf", "cupy"])
def test_further_vertices_on_a_gpu(library, tmp_path, tiny, monkeypatch):
    expected = built(graph=pd.DataFrame(GOOD), vertices=[9, 1])
    write(pd.DataFrame(GOOD), tmp_path)
    if library == "cudf":
        monkeypatch.setattr(kinds, "is_cudf", lambda data, *names: isinstance(data, OfGPU))
    else:
        monkeypatch.setitem(sys.modules, "cupy", SimpleNamespace(ndarray=OfGPU))
        monkeypatch.setattr(device, "_gpu_problem", lambda: "there is none")
    monkeypatch.setattr(id_types, "split_columns", lambda *_: [OfGPU([9, 1])])
    identical(built(graph=tmp_path, vertices=[9, 1]), expected)


def test_only_the_columns_named_are_read(tmp_path, tiny):
    frame = pd.DataFrame({"a": [1, 2, 3, 4], "b": [2, 3, 1, 1]})
    write(frame.assign(c="x"), tmp_path)
    pq.write_table(pa.table({"a": [9], "b": [1], "c": [[0]]}), tmp_path / "z.parquet")
    frame.loc[4] = 9, 1
    ends = {"source": "a", "destination": "b"}
    identical(built(graph=tmp_path, **ends), built(graph=frame, **ends))


def test_dask_computes_a_partition_at_a_time(tiny):
    sizes = []
    frame = pd.DataFrame({"src": range(30), "dst": range(1, 31)})
    table = dask(frame, None).map_partitions(
        lambda part: sizes.append(len(part)) or part, meta=frame[:0]
    )
    identical(built(graph=table), built(graph=frame))
    assert max(sizes) == 10


@pytest.mark.parametrize("chunk", [1, 9, 40, 1 << 20])
def test_small_partitions_of_dask_are_computed_together(chunk, monkeypatch):
    dask = pytest.importorskip("dask")
    frame = pd.DataFrame({"src": range(90), "dst": range(1, 91)})
    table = dask.dataframe.from_pandas(frame, npartitions=30)
    together, compute = [], dask.compute

    def counted(*parts):
        together.append(len(parts))
        return compute(*parts)

    monkeypatch.setattr(chunks, "CHUNK", chunk)
    monkeypatch.setattr(dask, "compute", counted)
    read = list(chunks.table_of(table).chunks(["src", "dst"]))
    pd.testing.assert_frame_equal(pd.concat(one.frame for one in read), frame)
    assert list(dict.fromkeys(one.place for one in read)) == [f"partition {i}" for i in range(30)]
    assert sum(together) == 30
    assert max(together) * 3 <= max(chunk, 3)
    assert len(together) == {1: 30, 9: 11, 40: 6, 1 << 20: 5}[chunk]


# ---------------------------------------------------------------- memory


def test_peak_memory(tmp_path, monkeypatch):
    vertices, edges = 125_000, 1_000_000
    random = np.random.default_rng(0)
    ends = random.integers(0, vertices, (2, edges))
    frame = pd.DataFrame({"src": ends[0], "dst": ends[1], "w": random.random(edges)})
    cases = {
        "sparse ids": (frame.assign(src=frame["src"] * 10**12, dst=frame["dst"] * 10**12), {}),
        "dense ids": (frame, {}),
        "weights": (frame, {"weight": "w"}),
        "both directions": (pd.concat([frame, frame.rename(columns={"src": "dst", "dst": "src"})]),
                            {}),
    }  # fmt: skip
    monkeypatch.setattr(chunks, "CHUNK", 1 << 14)
    monkeypatch.setattr(chunks, "BUFFER", 1 << 16)
    monkeypatch.setattr(in_place, "SMALL", 1 << 16)
    monkeypatch.setattr(in_place, "MERGED", 1 << 14)
    for name, (case, options) in cases.items():
        folder = write(case, tmp_path / name)
        del case
        built(graph=folder, **options)  # compiles
        arrow, most = pa.total_allocated_bytes(), [0]

        def held(_, arrow=arrow, most=most):
            most[0] = max(most[0], pa.total_allocated_bytes() - arrow)

        tracemalloc.start()
        graph = built(graph=folder, progress=held, **options)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        arrays = (graph.indptr, graph.indices, graph.weights)
        csr = sum(array.nbytes for array in arrays if array is not None)
        ids, chunk = 8 * graph.number_of_vertices, 100 * chunks.CHUNK
        assert peak < 1.3 * csr + ids + chunk, name
        pages = 3 << 20  # of a column: a dictionary, and what is decoded
        assert most[0] < chunk + pages * (3 if options else 2), name


# ---------------------------------------------------------------- other paths


def test_paths_of_every_format(tmp_path):
    frame = pd.DataFrame({"src": [1, 2, 3, 3], "dst": [2, 3, 1, 9], "w": [1, 2, 3, 4]})
    expected = built(graph=frame)
    frame.to_csv(tmp_path / "edges.csv", index=False)
    frame.to_csv(tmp_path / "edges.tsv.gz", index=False, sep="\t")
    frame.to_csv(tmp_path / "edges.txt", index=False, sep=" ")
    frame.to_parquet(tmp_path / "edges.parquet")
    glp_rapids.compress(frame, device="cpu").save(tmp_path / "edges.glp")
    for path in tmp_path.iterdir():
        identical(built(graph=path), expected)
        found = glp_rapids.label_propagation(path, device="cpu")
        pd.testing.assert_frame_equal(found, glp_rapids.label_propagation(expected, device="cpu"))
    for ending in ("csv", "tsv.gz", "parquet"):
        weighted = built(graph=str(tmp_path / f"edges.{ending}"), weight="w", vertices=[7])
        identical(weighted, built(graph=frame, weight="w", vertices=[7]))
    properties = "graphclass=it.unimi.dsi.webgraph.BVGraph\nnodes=3\narcs=3\nzetak=3\n"
    properties += "windowsize=0\nminintervallength=0\ncompressionflags=\n"
    (tmp_path / "tiny.properties").write_text(properties)
    (tmp_path / "tiny.graph").write_bytes(bytes([0b01110111, 0b00010101, 0b11000000]))
    same(built(graph=tmp_path / "tiny.graph", directed=True), glp_rapids.read_webgraph(
        tmp_path / "tiny", device="cpu"
    ))  # fmt: skip
    assert built(graph=tmp_path / "tiny.graph").number_of_edges == 6


def cli(*words):
    return main([*map(str, words), "--device", "cpu"])


def test_the_command_line_reads_a_folder(tmp_path, tiny, capsys):
    frame = GRAPHS["two cliques"]()["graph"]
    folder = write(frame, tmp_path / "edges")
    assert cli("label-propagation", folder, "--output", tmp_path / "out.parquet") == 0
    assert "graph       10 vertices, 21 edges, on the cpu" in capsys.readouterr().err
    found = pd.read_parquet(tmp_path / "out.parquet")
    expected = glp_rapids.label_propagation(frame, device="cpu")
    pd.testing.assert_frame_equal(found, expected)
    assert cli("label-propagation", folder, "--weight", "usd") == 2
    assert "edges: has no column 'usd' (--weight)" in capsys.readouterr().err
    assert cli("label-propagation", folder, "--output", folder / "part-000.parquet") == 2
    assert "--output is the file of EDGES (part-000.parquet) as well" in capsys.readouterr().err
    assert cli("label-propagation", tmp_path) == 2  # the result is beside the folder
    assert "out.parquet: has no column 'src', which" in capsys.readouterr().err


def test_progress_is_told(tmp_path, tiny):
    write(pd.DataFrame(GOOD), tmp_path)
    told = []
    built(graph=tmp_path, progress=told.append)
    assert [facts["step"] for facts in told][:: len(told) // 3] == ["ids", "degrees", "rows"]
    assert told[-1] == {"step": "rows", "pass": 3, "rows": 4, "of": 4}


def test_progress_as_a_bar(tmp_path, tiny, capsys):
    built(graph=write(pd.DataFrame(GOOD), tmp_path), progress=True)
    assert "as_graph, pass 3, rows: 4 of 4 rows" in capsys.readouterr().err


def test_lone_surrogates_of_dask(tiny):
    dask_config = pytest.importorskip("dask").config
    ids = [f"\ud800{i % 7}" for i in range(20)]
    frame = pd.DataFrame({"src": ids, "dst": ids[::-1]}, dtype=object)
    with dask_config.set({"dataframe.convert-string": False}):
        graph = built(graph=dask(frame, None))
    identical(graph, built(graph=frame))


def test_a_small_file_goes_the_usual_way(tmp_path, monkeypatch):
    path = one_file(pd.DataFrame(GOOD), tmp_path)
    monkeypatch.setattr(in_place, "Filling", None)
    identical(built(graph=path), built(graph=pd.DataFrame(GOOD)))
    parts(tmp_path, NULL)
    with pytest.raises(ValueError, match=r"00.parquet: source column 'src' holds 1 null"):
        as_graph(Path(tmp_path, "00.parquet"), device="cpu")
