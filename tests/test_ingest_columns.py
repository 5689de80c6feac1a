"""Columns of edges that nobody names: src and dst, or the one pair of usual names that is there."""

from functools import partial

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from built_graphs import built
from chunked_tables import dask, identical, one_file, write
from command_line import cpu, fails

from glp_rapids.frames import chunks
from glp_rapids.ingest.columns import PAIRS

FRAME = pd.DataFrame({"src": [7, 1, 3, 3], "dst": [1, 3, 7, 10], "w": [1.5, 2.0, 3.0, 0.5]})


def text(ending, separator, frame, folder):
    folder.mkdir(exist_ok=True)
    path = folder / f"edges.{ending}"
    frame.to_csv(path, index=False, sep=separator)
    return path


KINDS = {
    "pandas": lambda frame, folder: frame,
    "pyarrow": lambda frame, folder: pa.Table.from_pandas(frame),
    "polars": lambda frame, folder: pytest.importorskip("polars").from_pandas(frame).lazy(),
    "dask": dask,
    "folder": write,
    "file": one_file,
    "csv": partial(text, "csv", ","),
    "tsv": partial(text, "tsv.gz", "\t"),
    "txt": partial(text, "txt", " "),
}


def called(source, end):
    return FRAME.rename(columns={"src": source, "dst": end})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("pair", PAIRS)
def test_a_pair_of_usual_names_is_found(pair, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", 3)  # so that what may be read in chunks is
    table = KINDS[kind](called(*pair), tmp_path)
    identical(built(graph=table, weight="w"), built(graph=FRAME, weight="w"))


@pytest.mark.parametrize(
    ("names", "hinted"),
    [
        (["1", "2"], True), (["-3", "17.5", "2"], True), (["#from", "to"], True),
        (["%", "sym"], True), (["a", "b"], False), (["1", "b"], False), ([1, 2], False),
        (["1", 2], False), ([], False),
    ],
)  # fmt: skip
def test_names_that_look_like_an_edge_may_be_one(names, hinted):
    with pytest.raises(ValueError, match="say which are source and destination") as caught:
        built(graph=pd.DataFrame([[7] * len(names)], columns=names))
    assert ("--no-header" in str(caught.value)) == ("header=None" in str(caught.value)) == hinted


@pytest.mark.parametrize("kind", ["pandas", "csv", "folder"])
def test_src_and_dst_come_before_all_others(kind, tmp_path):
    others = {"source": [0.5, 1.5, 2.5, 3.5], "target": "x", "from": 1, "to": 2}
    frame = FRAME.assign(**others)
    table = KINDS[kind](frame, tmp_path)
    expected = built(graph=frame, source="src", destination="dst", weight="source")
    identical(built(graph=table, weight="source"), expected)


def test_ids_in_text_stay_as_they_are_written(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target\n007,7\n7,08\n")
    assert built(graph=path).external().tolist() == ["007", "08", "7"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (("payer", "payee"), r"no columns 'src' and 'dst', nor 'source' and 'destination' or 'sour"
         r"ce' and 'target' or 'from' and 'to'; its columns are \['payer', 'payee', 'w'\]; say wh"),
        (("source", "to"), r"no columns 'src' and 'dst', nor 'source' and 'destination' or"),
        (("src", "target"), r"destination='dst': the frame has no column 'dst'; its columns are"),
        (("from", "dst"), r"source='src': the frame has no column 'src'; its columns are"),
    ],
)  # fmt: skip
def test_what_was_looked_for_is_said(columns, words, kind, tmp_path):
    with pytest.raises(ValueError, match=words):
        built(graph=KINDS[kind](called(*columns), tmp_path))


@pytest.mark.parametrize("kind", ["pandas", "csv", "folder", "dask"])
@pytest.mark.parametrize("more", [{"destination": 1}, {"from": 1, "to": 2}])
def test_two_pairs_are_one_too_many(more, kind, tmp_path):
    table = KINDS[kind](called("source", "target").assign(**more), tmp_path)
    words = r"columns 'source' and .* and also .*, and not 'src' and 'dst'; .*; say which are"
    with pytest.raises(ValueError, match=words):
        built(graph=table)
    ends = {"source": "source", "destination": "target"}
    identical(built(graph=table, **ends), built(graph=FRAME))


def test_one_name_that_is_given_leaves_the_other_as_it_is():
    with pytest.raises(ValueError, match="destination='dst': the frame has no column 'dst'"):
        built(graph=called("source", "target"), source="source")
    identical(built(graph=called("payer", "dst"), source="payer"), built(graph=FRAME))


@pytest.mark.parametrize("kind", ["csv", "txt", "file", "folder"])
def test_the_command_line_finds_them_as_well(kind, tmp_path, capsys):
    for name, pair in (("usual", PAIRS[0]), ("other", PAIRS[2])):
        path = KINDS[kind](called(*pair), tmp_path / name)
        output = tmp_path / f"{name}.csv"
        assert cpu("label-propagation", path, "--weight", "w", "--output", output) == 0
    assert (tmp_path / "other.csv").read_text() == (tmp_path / "usual.csv").read_text()
    error = fails(capsys, "label-propagation", path, "--source", "payer")
    assert "has no column 'payer' (--source); its columns are: source, target, w" in error
    error = fails(capsys, "label-propagation", path, "--source", "target")
    assert "has no column 'dst' (--destination); its columns are: source, target, w" in error
    both = KINDS[kind](called("from", "to").assign(source=1, target=2), tmp_path / "both")
    error = fails(capsys, "label-propagation", both)
    assert f"{both}: source, destination: the frame has the columns 'source' and 'target'" in error


@pytest.mark.parametrize("kind", ["pandas", "csv", "tsv", "txt"])
@pytest.mark.parametrize(
    ("names", "argument", "named"),
    [
        (["src", "dst", "dst", "w"], "destination", {}),
        (["from", "from", "to", "w"], "source", {}),
        (["src", "dst", "w", "w"], "weight", {}),
        (["a", "b", "b", "w"], "destination", {"source": ["a", "w"], "destination": ["a", "b"]}),
    ],
)
def test_a_name_of_two_columns(names, argument, named, kind, tmp_path):
    table = KINDS[kind](pd.DataFrame([[1, 2, 3, 4]], columns=names), tmp_path)
    with pytest.raises(ValueError, match=f"{argument}: the frame has several columns named '"):
        built(graph=table, weight="w", **named)


def test_a_name_of_two_columns_that_nobody_asks_for(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("src,dst,w,w\n1,2,3,4\n")
    assert built(graph=path).external().tolist() == [1, 2]
    assert built(graph=path, weight="w.1").weights.tolist() == [4, 4]  # as pandas calls it


@pytest.mark.parametrize("kind", KINDS)
def test_one_column_for_both_ends(kind, tmp_path):
    table = KINDS[kind](called("src", "dst"), tmp_path)
    for named in ({"source": "src", "destination": ["src"]}, {"source": "dst"}):
        name = named["source"]
        with pytest.raises(ValueError, match=f"source and destination both name '{name}'"):
            built(graph=table, **named)


def test_ends_of_several_columns_may_share_some():
    frame = called("src", "dst").assign(bank=1)
    ends = {"source": ["bank", "src"], "destination": ["bank", "dst"]}
    assert built(graph=frame, **ends).degree.tolist() == built(graph=FRAME).degree.tolist()
    with pytest.raises(ValueError, match="both name 'bank', 'src', by which"):
        built(graph=frame, source=["bank", "src"], destination=["bank", "src"])


def test_columns_whose_names_are_numbers_of_numpy():
    frame = FRAME.set_axis(pd.RangeIndex(3), axis=1)
    source, _, weight = frame.columns.to_numpy()
    graph = built(graph=frame, source=source, destination=np.uint8(1), weight=weight)
    identical(graph, built(graph=FRAME, weight="w"))


def test_a_tuple_that_is_the_name_of_a_column():
    names = [("end", "src"), ("end", "dst"), ("weight", "w")]
    expected = built(graph=FRAME, weight="w", vertices=[99])
    for columns in (pd.MultiIndex.from_tuples(names), pd.Index(names, tupleize_cols=False)):
        frame = FRAME.set_axis(columns, axis=1)
        for source, end in (names[:2], ([names[0]], [names[1]])):
            given = {"source": source, "destination": end, "weight": names[2], "vertices": [99]}
            identical(built(graph=frame, **given), expected)
    several = pd.DataFrame({"a": [1, 2], "b": [1, 1], "c": [2, 1], "d": [2, 2]})
    several[np.int64(7)] = 0  # which NumPy would compare with each name in a tuple
    several.columns = pd.Index([*"abcd", np.int64(7)], dtype=object)
    assert built(graph=several, source=("a", "b"), destination=("c", "d")).number_of_vertices == 4


def test_a_name_of_two_columns_on_the_command_line(tmp_path, capsys):
    path = tmp_path / "edges.csv"
    path.write_text("from,to,to\na,b,c\n")
    error = fails(capsys, "label-propagation", path)
    assert "edges.csv: has 2 columns named 'to'; rename all but one" in error
