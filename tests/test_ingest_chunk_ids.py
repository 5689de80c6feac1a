"""Tables that are read in chunks: ids of all types, and which columns are read."""

import datetime
import decimal
import sys
from types import SimpleNamespace

import chunked_tables
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from built_graphs import built
from chunked_tables import GOOD, dask, identical, write

from glp_rapids import device
from glp_rapids.frames import kinds
from glp_rapids.graph import id_types

tiny = chunked_tables.tiny  # a fixture

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
    ids = expected.frame({})["vertex"]
    with_more = built(graph=tmp_path, directed=True, vertices=ids[:2].tolist())
    identical(with_more, expected)
    assert with_more.frame({})["vertex"].dtype == ids.dtype


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


def test_lone_surrogates_of_dask(tiny):
    dask_config = pytest.importorskip("dask").config
    ids = [f"\ud800{i % 7}" for i in range(20)]
    frame = pd.DataFrame({"src": ids, "dst": ids[::-1]}, dtype=object)
    with dask_config.set({"dataframe.convert-string": False}):
        graph = built(graph=dask(frame, None))
    identical(graph, built(graph=frame))
