"""Ids that are asked for: of another dtype than the graph's, of Arrow's types, in named columns."""

import datetime
import decimal

import networkx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from glp_rapids import as_graph, bfs, compress, label_propagation, modularity, shortest_paths
from glp_rapids.fraud import evaluate
from glp_rapids.graph import vertex_ids

PAIRS = {"source": ["bank", "account"], "destination": ["to_bank", "to_account"], "device": "cpu"}


def pairs(dtype, last=3):
    banks = np.array([1, 2], dtype), np.array([2, last], dtype)
    accounts = {"account": ["x", "y"], "to_account": ["y", "x"]}
    return pd.DataFrame({"bank": banks[0], "to_bank": banks[1], **accounts})


@pytest.mark.parametrize(
    ("dtype", "last", "asked"),
    [
        ("int8", 3, 257), ("int32", 3, 2**32 + 1), ("uint64", 2**64 - 1, -1),
        ("int64", -1, 2**64 - 1), ("int64", 3, 2**70),
    ],
)  # fmt: skip
def test_no_cast_makes_another_vertex_of_an_id(dtype, last, asked):
    graph = as_graph(pairs(dtype, last), **PAIRS)
    with pytest.raises(ValueError, match=r"holds 1 id.s. that are no vertex"):
        bfs(graph, [(asked, "x")])
    found = bfs(graph, [(1, "x"), (last, "x")]).set_index(["0_vertex", "1_vertex"])["distance"]
    assert found.to_dict() == {(1, "x"): 0, (2, "y"): 1, (last, "x"): 0}


@pytest.mark.parametrize("dtype", ["UInt64", "Int64", "int64[pyarrow]", "object"])
@pytest.mark.parametrize("known", ["int8", "int32", "int64", "uint64"])
def test_ids_that_may_be_null_are_found_as_others(known, dtype):
    if "pyarrow" in dtype:
        pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    graph = as_graph(pairs(known), **PAIRS)
    numbers = [1, 2**64 - 1, 2**63] if dtype in ("UInt64", "object") else [1, -1, 2**62]
    asked = pd.DataFrame({"bank": pd.Series(numbers, dtype=dtype), "account": "x"})
    assert graph.vertices.lookup(asked, "ids", absent=True).tolist() == [0, -1, -1]


def test_what_lies_between_spans_and_times_is_no_vertex():
    spans = pd.interval_range(0, 3)
    graph = as_graph((spans[:2], spans[1:]), device="cpu")
    assert bfs(graph, spans[0])["distance"].tolist() == [0, 1, 2]
    for other in (pd.Interval(0.5, 1.5), pd.Interval(0, 1, closed="left")):
        with pytest.raises(TypeError, match=r"Interval \(., .*but the vertices are interval"):
            bfs(graph, other)
    with pytest.raises(TypeError, match="one type"):
        as_graph((spans[:2], pd.interval_range(0.0, 2.0)), device="cpu")
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    dtype = pd.ArrowDtype(pyarrow.time32("s"))
    hours = pd.Series(pd.array([datetime.time(i) for i in (1, 2, 3)], dtype=dtype))
    graph = as_graph((hours[:2].array, hours[1:].array), device="cpu")
    assert bfs(graph, datetime.time(1))["distance"].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="no vertex"):
        bfs(graph, datetime.time(1, 0, 0, 5))


def test_days_of_arrow_are_dates_and_moments():
    days = of_arrow([datetime.date(2020, 1, i) for i in (1, 2, 3)], "date")
    moments = days.astype("datetime64[us]")
    for edges in ((days[:2], days[1:]), (days[:2], moments[1:])):
        graph = as_graph(tuple(one.reset_index(drop=True) for one in edges), device="cpu")
        assert bfs(graph, pd.Timestamp("2020-01-02"))["distance"].tolist() == [1, 0, 1]
        with pytest.raises(ValueError, match="no vertex"):
            bfs(graph, pd.Timestamp("2020-01-02 00:00:01"))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_moments_between_the_ticks_of_a_graph_are_no_vertices(unit):
    days = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"]).as_unit(unit)
    graph = as_graph((days[:2], days[1:]), device="cpu")
    earlier = label_propagation(graph)
    for text in ("2020-01-01 00:00:00.000000001", "3000-01-01"):
        with pytest.raises(ValueError, match="no vertex"):
            bfs(graph, pd.Timestamp(text))
        # who has left may be named
        again = label_propagation(graph, initial=earlier, touched=[pd.Timestamp(text)])
        assert again.equals(label_propagation(graph, initial=earlier, touched=[]))
    for other in ("s", "ms", "us", "ns"):
        found = bfs(graph, pd.Timestamp("2020-01-02").as_unit(other))
        assert found["distance"].tolist() == [1, 0, 1]


def test_columns_are_told_by_their_names():
    edges = pd.DataFrame({"r": [0, 0, 1], "c": [1, 2, 0], "r2": [0, 1, 2], "c2": [2, 0, 0]})
    ends = {"source": ["r", "c"], "destination": ["r2", "c2"], "device": "cpu"}
    graph = as_graph(edges, **ends)
    expected = bfs(graph, [(0, 1)])
    assert bfs(graph, pd.DataFrame({"1_vertex": [1], "0_vertex": [0]})).equals(expected)
    assert bfs(graph, pd.DataFrame({"b": [0], "a": [1]})).equals(expected)  # by position
    for names in (["c", "r"], ["c2", "r2"], ["1_id", "0_id"]):
        further = as_graph(edges, vertices=pd.DataFrame([[9, 8]], columns=names), **ends)
        assert further.vertices.lookup([(8, 9)], "ids").tolist() == [4]


def of_arrow(values, name):
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    types = {
        "date": pyarrow.date32(), "moment": pyarrow.timestamp("ns", "UTC"),
        "span": pyarrow.duration("ns"), "decimal": pyarrow.decimal128(5, 1),
        "bytes": pyarrow.binary(), "time": pyarrow.time64("us"),
    }  # fmt: skip
    return pd.Series(pd.array(values, dtype=pd.ArrowDtype(types[name])))


KINDS = {
    "date": lambda i: datetime.date(2020, 1, i),
    "moment": lambda i: datetime.datetime(2020, 1, i, tzinfo=datetime.UTC),
    "span": datetime.timedelta,
    "decimal": decimal.Decimal,
    "bytes": lambda i: b"abcd"[i : i + 1],
    "time": datetime.time,
}
OTHERS = {
    "bytes of NumPy": lambda: pd.Series(np.array([b"a", b"b", b"c"])),
    "intervals": lambda: pd.Series(pd.interval_range(0, 3)),
    "sparse": lambda: pd.Series(pd.arrays.SparseArray([1, 2, 3])),
    "categories": lambda: pd.Series(pd.Categorical([3, 5, 7])),
}


@pytest.mark.parametrize("name", [*KINDS, *OTHERS])
def test_whatever_is_an_id_can_be_asked_for(name):
    made = OTHERS.get(name) or (lambda: of_arrow([KINDS[name](i) for i in (1, 2, 3)], name))
    ids = made()
    edges = tuple(some.reset_index(drop=True) for some in (ids[:2], ids[1:]))
    found = label_propagation(edges, device="cpu")
    assert found["vertex"].tolist() == ids.tolist()
    members = dict(zip(found["vertex"], found["partition"], strict=True))
    assert modularity(edges, members, device="cpu") == modularity(edges, found, device="cpu")
    for unreachable in ("max", "null"):
        searched = bfs(edges, ids.iloc[0], unreachable=unreachable, device="cpu")
        assert searched["distance"].tolist() == [0, 1, 2]
        assert shortest_paths(searched, ids.iloc[2])["vertex"].tolist() == ids.tolist()


def test_integers_of_several_categories_stay_categories(device):
    for values in ([3, 1], [2, 5]), (["c", "a"], ["b", "e"]):
        edges = tuple(pd.Series(pd.Categorical(some)) for some in values)
        graph = as_graph(edges, device=device)
        assert graph.vertices.columns[0].take([0, 2], "pandas").dtype == pd.CategoricalDtype(
            sorted([*values[0], *values[1]])
        )
        found = label_propagation(graph)["vertex"]
        assert found.dtype == pd.CategoricalDtype(sorted([*values[0], *values[1]]))


@pytest.mark.parametrize("argument", ["source", "destination"])
def test_columns_of_what_has_none_are_refused(argument):
    pairs = [0], [1]
    given = [scipy.sparse.eye_array(3, format="csr"), pairs, networkx.path_graph(3)]
    given += [as_graph(pairs, device="cpu"), compress(pairs, device="cpu")]
    for graph in given:
        with pytest.raises(ValueError, match=f"{argument}= does not apply to a .*leave it out"):
            as_graph(graph, device="cpu", **{argument: "a"})


def test_a_frame_of_ids_that_are_fraud_is_told_by_its_names():
    scores = pd.DataFrame({"0_vertex": [0, 1], "1_vertex": [1, 0], "score": [0.9, 0.1]})
    for columns in (["0_vertex", "1_vertex"], ["1_vertex", "0_vertex"]):
        fraud = scores[columns].iloc[:1]
        assert evaluate(scores, fraud, k=1).at["precision"].tolist() == [1.0]


@pytest.mark.parametrize("dtype", ["str", "object", "category"])
def test_a_few_texts_are_found_alone_as_among_many(dtype, monkeypatch):
    texts = ["", " ", "B", "a", "aa", "b", "é", "zz", "日本", "𝄞", "\uffff"]
    source = pd.Series(texts).astype(dtype)
    graph = as_graph((source, source.iloc[::-1].reset_index(drop=True)))
    asked = [[text] for text in texts] + [texts[::-1], ["a", "a"]]
    alone = []
    merge = pd.DataFrame.merge
    monkeypatch.setattr(pd.DataFrame, "merge", lambda *given, **how: alone.append(0) or merge(
        *given, **how
    ))  # fmt: skip
    for few in (0, 1 << 9):  # so many ids for each that is asked for: looked up alone, or not
        monkeypatch.setattr(vertex_ids, "FEW", few)
        alone.clear()
        for one in asked:
            for ids in (one, pd.Series(one).astype("category"), np.array(one, object)):
                found = graph.vertex_index(ids)
                assert graph.external(found).astype(object).tolist() == one
        assert len(alone) == (0 if few == 0 else 3 * len(asked))
        for stranger in (["c"], ["a", "nobody"], ["zzz"], ["A"]):
            with pytest.raises(ValueError, match=r"holds 1 id.s. that are no vertex"):
                graph.vertex_index(stranger)
