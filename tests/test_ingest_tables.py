"""Frames of polars, pyarrow and dask: the same graph as the pandas frame they were made from."""

import re
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from built_graphs import built, same
from graphs import GRAPHS

import glp_rapids
from glp_rapids import SlidingWindow, seeded_label_propagation
from glp_rapids.datasets import transactions
from glp_rapids.graph import build
from glp_rapids.ingest.read import as_graph

pl = pytest.importorskip("polars")


@pytest.fixture(scope="module")
def dask():
    return pytest.importorskip("dask.dataframe")


def as_record_batch(frame):
    return pa.RecordBatch.from_pandas(frame, preserve_index=False)


def as_dask(frame):
    return pytest.importorskip("dask.dataframe").from_pandas(frame, npartitions=3)


TABLES = {
    "pyarrow": pa.Table.from_pandas,
    "record batch": as_record_batch,
    "polars": pl.from_pandas,
    "polars lazy": lambda frame: pl.from_pandas(frame).lazy(),
    "dask": as_dask,
}


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("name", GRAPHS)
def test_the_same_graph_as_from_pandas(name, kind):
    options = GRAPHS[name]()
    expected = built(**options)
    table = TABLES[kind](options["graph"].assign(further=1.5))
    graph = built(**{**options, "graph": table})
    same(graph, expected)
    frame = graph.frame({"degree": graph.degree})
    assert type(frame) is pd.DataFrame
    wanted = expected.frame({"degree": expected.degree})
    if kind == "dask":  # its only strings are these
        texts = dict.fromkeys(wanted.select_dtypes("str").columns, "string[pyarrow]")
        wanted = wanted.astype(texts)
    pd.testing.assert_frame_equal(frame, wanted)


IDS = {
    "int8": (pl.Int8, "int8"),
    "int16": (pl.Int16, "int16"),
    "int32": (pl.Int32, "int32"),
    "int64": (pl.Int64, "int64"),
    "uint8": (pl.UInt8, "uint8"),
    "uint64": (pl.UInt64, "uint64"),
    "string": (pl.String, "str"),
    "categorical": (pl.Categorical, "category"),
    "enum": (pl.Enum(["9", "3", "7", "1"]), "category"),
    "binary": (pl.Binary, "object"),
    "date": (pl.Date, "object"),
    "datetime": (pl.Datetime("us"), "datetime64[us]"),
    "zoned": (pl.Datetime("us", "Europe/Paris"), "datetime64[us, Europe/Paris]"),
    "duration": (pl.Duration("ms"), "timedelta64[ms]"),
}


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("name", IDS)
def test_polars_ids_keep_value_and_type(name, lazy):
    polars_type, pandas_type = IDS[name]
    values = pl.Series([9, 3, 7, 1])
    if polars_type in (pl.String, pl.Categorical, pl.Binary) or isinstance(polars_type, pl.Enum):
        values = values.cast(pl.String)
    values = values.cast(polars_type)
    frame = pl.DataFrame({"src": values, "dst": values.gather([3, 0, 1, 2])})
    graph = built(graph=frame.lazy() if lazy else frame, directed=True)
    got = graph.frame({})["vertex"]
    assert got.dtype == pandas_type
    expected = sorted(values.cast(pl.String).to_list() if "cat" in name else values.to_list())
    if name != "enum":
        assert got.tolist() == expected
    assert got.is_unique
    assert len(got) == 4
    # the edges are (9, 1), (3, 9), (7, 3), (1, 7), whatever the type
    order = [values.to_list().index(item) for item in got.tolist()]
    assert [order[u] for u in graph.indices.tolist()] == [(i - 1) % 4 for i in order]
    assert graph.vertex_index(values).tolist() == [order.index(i) for i in range(4)]


FURTHER = {
    "polars": lambda ids: pl.Series(ids),
    "pyarrow": lambda ids: pa.array(ids),
    "chunked": lambda ids: pa.chunked_array([ids[:1], ids[1:]]),
    "dask": lambda ids: as_dask(pd.DataFrame({"id": ids}))["id"],
}


@pytest.mark.parametrize("kind", FURTHER)
@pytest.mark.parametrize("ids", [[7, 2, 9], ["x", "b", "y"]])
def test_columns_as_vertices_and_seeds(kind, ids):
    frame = pd.DataFrame({"src": ids[:1], "dst": ids[1:2]})
    graph = built(graph=frame, vertices=FURTHER[kind](ids))
    assert graph.external().tolist() == sorted(ids)
    assert graph.degree.sum() == 2
    assert graph.vertex_index(FURTHER[kind](ids)).tolist() == graph.vertex_index(ids).tolist()
    reached = seeded_label_propagation(graph, FURTHER[kind](ids[:1]), device="cpu")
    assert reached.equals(seeded_label_propagation(graph, ids[:1], device="cpu"))


def test_a_frame_of_several_columns_as_vertices():
    options = GRAPHS["several columns"]()
    further = pl.DataFrame({"bank": [9], "name": ["new"]})
    more = built(**options, vertices=further)
    same(more, built(**options, vertices=further.to_pandas()))
    assert more.number_of_vertices == 11


def test_a_window_takes_polars():
    payments, _ = transactions(1500, accounts=100, merchants=10, rings=1, towns=2)
    window, twin = SlidingWindow(days=30, device="cpu"), SlidingWindow(days=30, device="cpu")
    window.append(pl.from_pandas(payments))
    twin.append(payments)
    assert len(twin.edges()) > 100
    pd.testing.assert_frame_equal(window.edges(), twin.edges(), check_dtype=False)


def test_results_are_the_same_as_from_pandas(dask):
    options = GRAPHS["two cliques"]()
    expected, table = glp_rapids.label_propagation(**options, device="cpu"), options["graph"]
    for kind, make in TABLES.items():
        options["graph"] = make(table)
        found = glp_rapids.label_propagation(**options, device="cpu")
        pd.testing.assert_frame_equal(found, expected, obj=kind)


def test_only_the_columns_named_are_computed(dask):
    def fail(*_):
        raise AssertionError("this column was not asked for")

    frame = pd.DataFrame({"a": [1, 2], "b": [2, 3], "c": [5, 6]})
    lazy = pl.from_pandas(frame).lazy().with_columns(pl.col("c").map_batches(fail, pl.Int64))
    expected = built(graph=frame, source="a", destination="b")
    same(built(graph=lazy, source="a", destination="b"), expected)
    column = as_dask(frame)["c"].map(fail, meta=("c", "int64"))
    same(built(graph=as_dask(frame).assign(c=column), source="a", destination="b"), expected)
    with pytest.raises(AssertionError, match="not asked for"):
        built(graph=as_dask(frame).assign(c=column), source="a", destination="c")


def test_an_index_in_the_metadata_is_a_column_like_others():
    frame = pd.DataFrame({"dst": [2, 3]}, index=pd.Index([1, 2], name="src"))
    graph = built(graph=pa.Table.from_pandas(frame))
    assert graph.external().tolist() == [1, 2, 3]
    assert graph.degree.tolist() == [1, 2, 1]


@pytest.mark.parametrize("kind", [kind for kind in TABLES if kind != "dask"])
def test_nulls_are_reported_with_column_and_row(kind):
    frame = pd.DataFrame(
        {
            "src": pd.array([4, None, None], dtype="Int64"),
            "dst": [1, 2, 3],
            "name": ["a", "b", None],
            "other": [3, 1, 2],
            "w": [1.0, None, 2.0],
        }
    )
    table = TABLES[kind](frame)
    with pytest.raises(ValueError, match=r"source column 'src' holds 2 null\(s\), .* row 1"):
        built(graph=table)
    with pytest.raises(ValueError, match=r"source column 'name' holds 1 null.* row 2"):
        built(graph=table, source="name")
    with pytest.raises(ValueError, match=r"weight column 'w' holds 1 null\(s\) or NaN"):
        built(graph=table, source="dst", destination="other", weight="w")


@pytest.mark.parametrize("kind", TABLES)
def test_names_are_checked_before_anything_is_computed(kind):
    table = TABLES[kind](pd.DataFrame({"src": [1], "dst": [2]}))
    with pytest.raises(ValueError, match=r"source='payer': .* no column 'payer'; .*\['src', 'dst'"):
        built(graph=table, source="payer")
    with pytest.raises(ValueError, match="source names 1 column"):
        built(graph=table, destination=["src", "dst"])


def test_duplicate_names_of_an_arrow_table():
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2]), pa.array([3])], ["src"] * 2 + ["d"])
    with pytest.raises(ValueError, match="several columns named 'src'"):
        built(graph=table, destination="d")
    table = table.append_column("e", pa.array([4]))
    assert built(graph=table, source="d", destination="e").external().tolist() == [3, 4]


@pytest.mark.parametrize(
    "ids",
    [
        pl.Series([[1], [2]]),
        pl.Series([{"a": 1}, {"a": 2}]),
        pd.Series([[1], [2]], dtype=pd.ArrowDtype(pa.list_(pa.int64()))),
        pd.Series([{"a": 1}, {"a": 2}], dtype=pd.ArrowDtype(pa.struct({"a": pa.int64()}))),
    ],
)
def test_nested_ids_are_refused(ids):
    frame = pl.DataFrame if isinstance(ids, pl.Series) else pd.DataFrame
    with pytest.raises(TypeError, match="source column 'src'"):
        built(graph=frame({"src": ids, "dst": ids}))


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"src": [1, None], "dst": [1, 2]}, "drop those rows with drop_nulls"),
        ({"src": [1.5, 2.0], "dst": [1.5, 2.0]}, "cast them, as with cast(polars.Int64)"),
        ({"src": ["a", "b"], "dst": [1, 2]}, "cast one of them with polars.Expr.cast"),
        ({"src": [1], "dst": [2], "w": ["x"]}, "cast them with cast(polars.Float64)"),
        ({"src": [1], "dst": [2], "w": [np.nan]}, "rows with drop_nulls and drop_nans, or fill"),
    ],
)
def test_methods_of_polars_are_advised_for_its_frames(columns, words, lazy):
    frame = pl.DataFrame(columns)
    with pytest.raises((TypeError, ValueError), match=re.escape(words)) as caught:
        built(graph=frame.lazy() if lazy else frame, weight="w" if "w" in columns else None)
    assert "astype" not in str(caught.value)


def test_polars_without_pyarrow(monkeypatch):
    frame = pl.DataFrame({"src": ["a"], "dst": ["b"]})
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(TypeError, match=r"a polars.DataFrame is read through pyarrow.*pip install"):
        built(graph=frame)


def test_a_dask_array_is_no_frame(dask):
    array = as_dask(pd.DataFrame({"src": [1], "dst": [2]}))["src"].values
    with pytest.raises(TypeError, match=r"dask.array.* bring it into one frame with .compute\(\)"):
        built(graph=array)


def test_too_little_memory_says_what_to_do(monkeypatch):
    def no_memory(*_, **__):
        raise MemoryError("std::bad_alloc: out_of_memory: CUDA error")

    monkeypatch.setattr(build, "csr_of_pairs", no_memory)
    arrays = np.arange(12_000), np.arange(12_000)
    with pytest.raises(
        MemoryError, match=r"its 12,000 edges .* host .*GiB are free there\): std.*narrower"
    ):
        as_graph(arrays, device="cpu")
