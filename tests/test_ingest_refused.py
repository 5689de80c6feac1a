"""What is no graph is refused with one clear error."""

import networkx as nx
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse as sp
from built_graphs import karate

from glp_rapids import account_scores, compress, label_propagation
from glp_rapids.ingest.read import as_graph


def frame_of(**columns):
    return {"graph": pd.DataFrame({"src": [1, 2], "dst": [2, 3], **columns})}


BAD = {
    "missing column": (
        {**frame_of(), "source": "payer"},
        ValueError,
        r"source='payer': the frame has no column 'payer'; .*\['src', 'dst'\]",
    ),
    "one column of several": (
        {"graph": pd.DataFrame({"src;dst": ["1;2"]})},
        ValueError,
        r"its only column is 'src;dst'; .* pandas.read_csv\(..., sep=';'\)",
    ),
    "paths": ({"graph": ["a.parquet", "b.parquet"]}, TypeError, "not a list of paths; pass their"),
    "a pattern": ({"graph": "days/*.parquet"}, FileNotFoundError, "for several files, pass their"),
    "a dict": ({"graph": {"src": [0], "dst": [1]}}, TypeError, "a dict; of columns, pass pandas"),
    "adjacency": ({"graph": np.eye(3)}, TypeError, r"of adjacency, pass scipy.sparse.csr_array\("),
    "missing weight": ({**frame_of(), "weight": "w"}, ValueError, "no column 'w'"),
    "null id": (
        frame_of(src=pd.Series([1, None], dtype="Int64")),
        ValueError,
        r"source column 'src' holds 1 null\(s\), the first at row 1",
    ),
    "NaN id": (frame_of(dst=[np.nan, 1.0]), ValueError, "nulls turn integers into floats"),
    "null string": (frame_of(src=["a", None], dst=["a", "b"]), ValueError, "an id cannot be null"),
    "NaT": (
        {"graph": (np.array(["2024-01-01", "NaT"], dtype="M8[D]"),) * 2},
        ValueError,
        r"source \(the first array\) holds 1 null",
    ),
    "arrow null": (
        {"graph": pa.table({"src": [1, None], "dst": [1, 2]})},
        ValueError,
        r"column 'src' holds 1 null\(s\), the first at row 1",
    ),
    "float ids": (frame_of(src=[1.0, 2.5]), TypeError, r"float64 ids.*1\.0.*astype\('int64'\)"),
    "bool ids": (frame_of(src=[True, False]), TypeError, "'src' holds booleans"),
    "complex ids": (frame_of(src=[1j, 2j], dst=[1j, 2j]), TypeError, "complex128"),
    "mixed ids": (frame_of(src=[1, "a"]), TypeError, r"mixes types: int \(1\), str \('a'\)"),
    "mixed columns": (
        frame_of(dst=["a", "b"]),
        TypeError,
        "'src' holds integer ids and destination column 'dst' string ids",
    ),
    "mixed nodes": (
        {"graph": nx.Graph([(1, "a; b")])},
        TypeError,
        r"the nodes of the graph mixes .* of one type: relabel them with nx.relabel_nodes\(G, str\)"
        r", or nx.convert_node_labels_to_integers\(G, label_attribute='id'\)$",
    ),
    "huge nodes": ({"graph": nx.Graph([(2**70, 1)])}, ValueError, "integer; relabel them with nx"),
    "huge ids": (frame_of(src=[2**70, 1]), ValueError, "1180591620717411303424.*64-bit"),
    "huge and negative ids": (frame_of(src=[2**63, -2]), TypeError, "'src' mix uint64 ids .* neg"),
    "huge and negative nodes": (
        {"graph": nx.Graph([(2**63, -2)])},
        TypeError,
        r"the nodes of the graph mix uint64 ids from 2\*\*63 up with negative ids",
    ),
    "unsortable ids": (frame_of(src=[1j, 2j], dst=[1j, 2j]), TypeError, "sorted"),
    "unsortable objects": (
        {"graph": nx.Graph([(object(), object())])},
        TypeError,
        "the nodes of the graph: the ids cannot be sorted .*; relabel them with nx.relabel_nodes",
    ),
    "zones": (
        frame_of(
            src=pd.to_datetime(["2024"] * 2).tz_localize("UTC"), dst=pd.to_datetime(["2024"] * 2)
        ),
        TypeError,
        "one type",
    ),
    "null weight": (
        {**frame_of(w=[1, None]), "weight": "w"},
        ValueError,
        r"weight column 'w' holds 1 null\(s\) or NaN",
    ),
    "infinite weight": (
        {**frame_of(w=[1, np.inf]), "weight": "w"},
        ValueError,
        r"1 infinite weight\(s\), the first inf at row 1",
    ),
    "negative weight": (
        {**frame_of(w=[-2, -3]), "weight": "w"},
        ValueError,
        r"2 negative weight\(s\), the first -2 at row 0",
    ),
    "string weight": (
        {**frame_of(w=["1", "b"]), "weight": "w"}, TypeError,
        r"not numbers \(the first that is none: 'b', at row 1\)",
    ),
    "weight of not a number in text": (
        {**frame_of(w=["1", "nan"]), "weight": "w"}, TypeError, "none: 'nan', at row 1",
    ),
    "weights beyond 64 bits": (
        {**frame_of(w=[1, 2**64]), "weight": "w"}, ValueError,
        r"whole numbers of 2\*\*63 or more, the first 18446744073709551616 at row 1",
    ),
    "timedelta weight": (
        {**frame_of(w=pd.to_timedelta([1, 2], unit="s")), "weight": "w"},
        TypeError,
        r"holds timedelta64.* into seconds with \.dt\.total_seconds\(\)$",
    ),
    "date weight": (
        {**frame_of(w=pd.to_datetime([1, 2], unit="s")), "weight": "w"},
        TypeError,
        "holds datetime64.*; subtract a date from them",
    ),
    "bool weight": ({**frame_of(w=[True, False]), "weight": "w"}, TypeError, "holds bool"),
    "complex weight": ({**frame_of(w=[1j, 1j]), "weight": "w"}, TypeError, "real numbers"),
    "uint64 weight": (
        {**frame_of(w=np.array([1, 2**63], dtype="uint64")), "weight": "w"},
        ValueError,
        "1 too large",
    ),
    "matrix NaN": (
        {"graph": sp.csr_array(np.array([[0, np.nan], [1, 0]]))},
        ValueError,
        "the values of the matrix hold 1 null",
    ),
    "sets": (
        {"graph": nx.Graph([(frozenset([1]), frozenset([2]))])},
        TypeError,
        "nodes of the graph holds sets",
    ),
    "lengths": ({"graph": ([1, 2], [1])}, ValueError, "of one length, not 2, 1"),
    "tuple of one": ({"graph": ([1, 2],)}, ValueError, "not 1 items"),
    "two dimensions": ({"graph": (np.ones((2, 2), int), [1, 2])}, ValueError, "one dimension"),
    "lists": ({"graph": ([[1], [2]], [1, 2])}, ValueError, "one dimension, .* values are lists"),
    "arrays": (
        {"graph": ([np.ones(1), np.ones(1)], [1, 2])}, ValueError, "dimension, .* are arrays"
    ),
    "column counts": ({**frame_of(), "source": ["src", "dst"]}, ValueError, "names 2 column"),
    "array as column": ({**frame_of(), "source": np.arange(3)}, TypeError, "must be a column name"),
    "tuple weight": (
        {"graph": ([1], [2]), "weight": "w"},
        ValueError,
        "make the weights its third",
    ),
    "path": (
        {"graph": "no edges.csv"},
        FileNotFoundError,
        "graph: 'no edges.csv': there is no such file or folder",
    ),
    "generator": ({"graph": iter([(1, 2)])}, TypeError, "can be read only once, while a graph"),
    "edge array": ({"graph": np.ones((3, 2))}, TypeError, "pass its columns"),
    "list": ({"graph": [(1, 2)]}, TypeError, r"tuple\(zip\(\*pairs\)\)"),
    "None": (
        {"graph": None},
        TypeError,
        "graph must be a pandas, cuDF, polars, pyarrow or dask edge frame",
    ),
    "nx attribute": (
        {"graph": karate(), "weight": "km"},
        ValueError,
        r"78 edge\(s\) have no such attribute.*\['weight'\]",
    ),
    "nx None": (
        {"graph": nx.Graph([(1, 2, {"w": 1}), (2, 3, {"w": None})]), "weight": "w"},
        ValueError,
        r"1 edge\(s\) have None as this attribute, the first \(2, 3\); give them numbers$",
    ),
    "nx direction": ({"graph": karate(), "directed": True}, ValueError, "is undirected"),
    "nx vertices": ({"graph": karate(), "vertices": [1]}, ValueError, "does not apply"),
    "multigraph": (
        {**frame_of(), "multigraph": "sum"},
        ValueError,
        "'merge', 'keep' or 'min', not 'sum'",
    ),
    "directed": ({**frame_of(), "directed": "yes"}, TypeError, "True or False, not 'yes'"),
    "device": ({**frame_of(), "device": "tpu"}, ValueError, "device must be"),
    "null vertices": ({**frame_of(), "vertices": [None]}, ValueError, "vertices holds 1 null"),
    "vertices type": ({**frame_of(), "vertices": ["a"]}, TypeError, "vertices string ids"),
    "vertices scalar": ({**frame_of(), "vertices": 3}, TypeError, "vertices must be a list"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_clear_error(name):
    options, error, message = BAD[name]
    with pytest.raises(error, match=message) as caught:
        as_graph(**{"device": "cpu", **options})
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("make", [as_graph, compress])
def test_a_graph_that_is_built_has_no_duplicates(make, tmp_path):
    graph = make(pd.DataFrame({"src": [0, 0], "dst": [1, 1]}), multigraph="keep", device="cpu")
    given = [graph]
    if make is compress:
        given.append(tmp_path / "graph.glp")
        graph.save(given[-1])
    for one in given:
        for function in (as_graph, label_propagation):
            for multigraph in ("min", "keep"):
                with pytest.raises(ValueError, match=r"multigraph= does not apply to a glp_rap.*"):
                    function(one, multigraph=multigraph, device="cpu")
        assert as_graph(one, multigraph="merge", device="cpu").weights.tolist() == [2, 2]
        assert account_scores(one, [0], device="cpu")["score"].iloc[1] > 0
