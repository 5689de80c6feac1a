"""External ids come back as they went in, whatever their types."""

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from built_graphs import built
from graphs import GRAPHS

from glp_rapids import as_graph, bfs, k_core

DAY = pd.Timestamp("2024-03-01")
IDS = {
    "int8": pd.Series([3, -100, 127, 0], dtype="int8"),
    "uint8": pd.Series([3, 0, 255, 9], dtype="uint8"),
    "int32": pd.Series([3, -(2**31), 2**31 - 1, 0], dtype="int32"),
    "int64": pd.Series([3, -(2**63), 2**63 - 1, 0]),
    "uint64": pd.Series([3, 2**63, 2**64 - 1, 0], dtype="uint64"),
    "Int64": pd.Series([3, 2, 9, 0], dtype="Int64"),
    "arrow": pd.Series([3, 2, 9, 0], dtype="int32[pyarrow]"),
    "python ints": pd.Series([3, 2, 2**63, 0], dtype=object),
    "str": pd.Series(["b", "a", "Z", "é"]),
    "object strings": pd.Series(["b", "a", "Z", "é"], dtype=object),
    "arrow strings": pd.Series(["b", "a", "Z", "é"], dtype="string[pyarrow]"),
    "bytes": pd.Series([b"b", b"a", b"Z", b"0"]),
    "datetime": pd.Series(
        [DAY, DAY - pd.Timedelta("3D"), DAY + pd.Timedelta("1s"), pd.Timestamp(0)]
    ),
    "zoned": pd.Series(pd.date_range("2024-01-01", periods=4, tz="Europe/Paris")[::-1]),
    "timedelta": pd.Series(pd.to_timedelta([3, 1, 7, 0], unit="s")),
    "dates": pd.Series([datetime.date(2024, 1, day) for day in (9, 3, 7, 1)]),
    "period": pd.Series(pd.period_range("2024-01", periods=4, freq="M")[::-1]),
    "category": pd.Series(["b", "a", "Z", "é"], dtype="category"),
    "integer category": pd.Series([5, 3, 9, 0], dtype="category"),
    "tuples": pd.Series([(1, "b"), (0, "z"), (1, "a"), (0, "")]),
}


@pytest.mark.parametrize("name", IDS)
def test_ids_come_back_as_they_went_in(name):
    ids = IDS[name]
    frame = pd.DataFrame({"src": ids, "dst": ids.iloc[[1, 2, 3, 0]].reset_index(drop=True)})
    graph = built(graph=frame, directed=True)
    got = graph.frame({})["vertex"]
    assert got.dtype == ids.dtype
    assert got.tolist() == sorted(ids.tolist())
    index = graph.vertex_index(ids)
    assert [got[i] for i in index.tolist()] == ids.tolist()
    assert graph.indices.tolist() == [
        index.tolist()[(index.tolist().index(v) + 1) % 4] for v in range(4)
    ]
    some = graph.frame({"x": np.arange(2)}, vertex=np.array([2, 0]))
    assert some["vertex"].dtype == ids.dtype
    assert some["vertex"].tolist() == [got[2], got[0]]
    with_more = built(graph=frame.iloc[:2], vertices=ids.iloc[3:])
    assert with_more.number_of_vertices == 4
    assert with_more.frame({})["vertex"].dtype == ids.dtype
    listed = built(graph=frame.iloc[:2], vertices=ids.iloc[3:].tolist())
    pd.testing.assert_frame_equal(listed.frame({}), with_more.frame({}))
    empty = built(graph=frame.iloc[:0])
    assert empty.number_of_vertices == 0
    assert empty.frame({"partition": empty.indices})["vertex"].dtype == ids.dtype


def test_integer_dtypes_unify():
    small, wide = pd.Series([1, 2], dtype="int32"), pd.Series([2, 2**40])
    graph = built(graph=pd.DataFrame({"src": small, "dst": wide}))
    assert graph.external().dtype == np.int64
    assert graph.external().tolist() == [1, 2, 2**40]
    unsigned = pd.Series([2**63, 5], dtype="uint64")
    graph = built(graph=pd.DataFrame({"src": small, "dst": unsigned}))
    assert graph.external().tolist() == [1, 2, 5, 2**63]
    signed = built(graph=(np.array([-1, 2]), np.array([3, 4], dtype="uint64")))
    assert signed.external().dtype == np.int64
    with pytest.raises(TypeError, match="no integer dtype holds both"):
        built(graph=(np.array([-1, 2]), unsigned))


def test_a_list_of_vertices_takes_a_dtype_that_holds_it():
    def ids_with(vertices, *dtypes, ids=((1,), (2,))):
        ends = (pd.Series(one, dtype=dtype) for one, dtype in zip(ids, dtypes, strict=True))
        got = built(graph=tuple(ends), vertices=vertices).frame({})["vertex"]
        return str(got.dtype), got.tolist()

    for vertices in ([3], (3,), range(3, 4)):
        assert ids_with(vertices, "int32", "int32") == ("int32", [1, 2, 3])
    assert ids_with([300], "int8", "int8") == ("int64", [1, 2, 300])
    assert ids_with([300], "int8", "int32") == ("int32", [1, 2, 300])
    assert ids_with([-1], "uint8", "uint8") == ("int64", [-1, 1, 2])
    assert ids_with([2**63], "int32", "int32")[1] == [1, 2, 2**63]
    assert ids_with([3], "int16", "int16", ids=((), ())) == ("int16", [3])
    assert ids_with([3], "object", "object", ids=((), ())) == ("int64", [3])
    assert ids_with(np.array([3]), "int32", "int32") == ("int64", [1, 2, 3])
    categories = pd.CategoricalDtype(["b", "a", "c"], ordered=True)
    for vertex, expected in (("c", categories), ("z", pd.CategoricalDtype(list("abz")))):
        found = built(
            graph=(pd.Series(["a"], dtype=categories), pd.Series(["b"], dtype=categories)),
            vertices=[vertex],
        ).frame({})["vertex"]
        assert found.dtype == expected
    for vertices in (["3"], [True], [3.0], [3, None]):
        with pytest.raises((TypeError, ValueError), match=r"^vertices holds|and vertices string"):
            ids_with(vertices, "int32", "int32")


def test_a_list_of_vertices_beside_types_of_arrow():
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    days = [datetime.date(2024, 1, i) for i in (1, 2, 3)]
    amounts = [decimal.Decimal(i) for i in (1, 2, 3)]
    for values, kind in ((days, pyarrow.date32()), (amounts, pyarrow.decimal128(5, 1))):
        ends = tuple(pd.Series([value], dtype=pd.ArrowDtype(kind)) for value in values[:2])
        got = built(graph=ends, vertices=values[2:]).frame({})["vertex"]
        assert got.dtype == ends[0].dtype
        assert got.tolist() == values


def test_categories_of_two_columns_unite():
    frame = pd.DataFrame(
        {"src": pd.Categorical(["b", "a"]), "dst": pd.Categorical(["c", "b"], ["c", "b", "unused"])}
    )
    got = built(graph=frame).external()
    assert isinstance(got.dtype, pd.CategoricalDtype)
    assert got.tolist() == ["a", "b", "c"]


@pytest.mark.parametrize("ids", [list("abcd"), [7, 3, 5, 1]])
def test_a_few_ids_have_the_categories_of_all(ids):
    edges = pd.DataFrame({"src": pd.Categorical(ids[:3]), "dst": pd.Categorical(ids[1:])})
    found = bfs(edges, ids[0], device="cpu")
    assert found["vertex"].dtype == found["predecessor"].dtype
    assert (found["vertex"] == found["predecessor"]).sum() == 0
    inside = k_core(edges, 1, device="cpu")
    assert (inside["src"].dtype, inside["dst"].dtype) == (found["vertex"].dtype,) * 2


def test_categories_of_ids_of_several_columns():
    edges = pd.DataFrame({
        "a": pd.Categorical(list("abb")), "b": [1, 2, 3], "c": pd.Categorical(list("bba")),
        "d": [2, 3, 2],
    })  # fmt: skip
    found = bfs(edges, [("a", 1)], source=["a", "b"], destination=["c", "d"], device="cpu")
    assert found["0_vertex"].tolist() == ["a", "a", "b", "b"]
    for name in ("0_vertex", "0_predecessor"):
        assert found[name].dtype == pd.CategoricalDtype(["a", "b"])


def test_several_columns():
    graph = built(**GRAPHS["several columns"]())
    frame = graph.frame({"degree": graph.degree})
    assert list(frame.columns) == ["0_vertex", "1_vertex", "degree"]
    assert graph.vertex_index([(1, "acc4")]).tolist() == [
        frame.index[(frame["0_vertex"] == 1) & (frame["1_vertex"] == "acc4")][0]
    ]
    columns = graph.external_columns(np.array([1, 0]), "partition")
    assert list(columns) == ["0_partition", "1_partition"]
    further = pd.DataFrame({"bank": [9], "name": ["new"]})
    more = built(**GRAPHS["several columns"](), vertices=further)
    assert more.number_of_vertices == 11
    listed = built(**GRAPHS["several columns"](), vertices=[(9, "new")])
    pd.testing.assert_frame_equal(listed.frame({}), more.frame({}))
    with pytest.raises(ValueError, match=r"no vertex of the graph: \(9, 'x'\)"):
        graph.vertex_index([(9, "x")])
    with pytest.raises(ValueError, match="an id of this graph has 2"):
        graph.vertex_index([3])


def test_ids_that_are_no_vertex():
    graph = built(**GRAPHS["two cliques"]())
    with pytest.raises(ValueError, match=r"seeds holds 2 id\(s\) that are no vertex .*: 77, -1;"):
        graph.vertex_index([1, 77, -1], "seeds")
    with pytest.raises(TypeError, match="seeds holds string ids but the vertices are int64"):
        graph.vertex_index(["a"], "seeds")
    with pytest.raises(ValueError, match=r"seeds holds 1 null\(s\)"):
        graph.vertex_index([1, None], "seeds")
    with pytest.raises(TypeError, match="seeds must be a list, array or Series of ids, not 3"):
        graph.vertex_index(3, "seeds")
    assert graph.vertex_index([], "seeds").tolist() == []
    big = built(**GRAPHS["beyond int63"]())
    for missing in (-1, 0, 2**63 - 1, 2**64 - 1):
        with pytest.raises(ValueError, match="no vertex"):
            big.vertex_index([missing])


def test_times_of_units_that_no_unit_holds_say_so():
    frame = pd.DataFrame({
        "src": np.array(["2020-01-01", "9000-01-02"], "datetime64[s]"),
        "dst": np.array(["2020-01-01", "2000-01-02"], "datetime64[ns]"),
    })  # fmt: skip
    with pytest.raises(ValueError, match=r"'src'.*'dst': times of different units.*9000.*astype"):
        as_graph(frame, device="cpu")
    assert as_graph(frame.astype("datetime64[us]"), device="cpu").number_of_vertices == 3
