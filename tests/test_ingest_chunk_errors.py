"""Tables that are read in chunks: one clear error for what is wrong with them."""

import chunked_tables
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from built_graphs import built
from chunked_tables import GOOD, NULL, dask, identical, parts, write

from glp_rapids.frames import chunks

tiny = chunked_tables.tiny  # a fixture

BAD = {
    "no column": (
        [GOOD, {"src": [1], "w": [1.0]}], {}, ValueError,
        r"01.parquet: has no column 'dst', which the files .*; its columns are: src, w",
    ),
    "no column at all": (
        [GOOD, GOOD], {"source": "payer"}, ValueError,
        r"source='payer': the frame has no column 'payer'; its columns are \['src', 'dst', 'w'\]",
    ),
    "types": (
        [GOOD, GOOD, {**GOOD, "dst": list("abcd")}], {}, TypeError,
        r"02.parquet: its column 'dst' holds (large_)?string, and that of .*00.parquet int64",
    ),
    "types of two columns": (
        [GOOD, {**GOOD, "src": [1, 2, 3, 4]}], {"destination": "w"}, TypeError, "float",
    ),
    "null id": (
        [GOOD, NULL], {}, ValueError,
        r"01.parquet, rows 3 to 3: source column 'src' holds 1 null\(s\), the first at row 3",
    ),
    "null weight": (
        [GOOD, {**GOOD, "w": [1.0, None, 2.0, 3.0]}], {"weight": "w"}, ValueError,
        r"01.parquet, rows 0 to 2: weight column 'w' holds 1 null\(s\) or NaN, .* at row 1",
    ),
    "negative weight": (
        [GOOD, {**GOOD, "w": [1.0, 1.0, 2.0, -3.0]}], {"weight": "w"}, ValueError,
        r"01.parquet, rows 3 to 3: .* 1 negative weight\(s\), the first -3.0 at row 3",
    ),
    "infinite weight": (
        [{**GOOD, "w": [1.0, np.inf, 2.0, 3.0]}, GOOD], {"weight": "w"}, ValueError,
        r"00.parquet, rows 0 to 2: .* 1 infinite weight\(s\), the first inf at row 1",
    ),
    "text as weight": (
        [GOOD, {**GOOD, "w": list("abcd")}], {"weight": "w"}, TypeError,
        r"01.parquet: its column 'w' holds (large_)?string",
    ),
    "sum of weights": (
        [{**GOOD, "w": [2**62] * 4}] * 2, {"weight": "w"}, ValueError,
        r": weight: the integer weights of the duplicates of an edge add up to more than 2\*\*63 "
        "- 1; scale them down or pass them as float64$",
    ),
    "sum of floats": (
        [{**GOOD, "w": np.full(4, 3e38, np.float32)}] * 2, {"weight": "w"}, ValueError,
        ": weight: the float32 weights of the duplicates of an edge add up to more than float32 ",
    ),
    "large and negative ids": (
        [{**GOOD, "src": np.array([2**64 - 1, 2, 3, 4], np.uint64)},
         {**GOOD, "src": [1, 2, 3, -1]}], {}, TypeError,
        r"00.parquet, rows 0 to 2: source .* and .*01.parquet, rows 3 to 3: source .* 'src' mix",
    ),
    "vertices": ([GOOD, GOOD], {"vertices": ["a"]}, TypeError, "vertices string ids"),
    "null vertices": ([GOOD, GOOD], {"vertices": [None]}, ValueError, "vertices holds 1 null"),
    "one column for two": (
        [GOOD, GOOD], {"source": ["src", "dst"]}, ValueError, "names 2 column",
    ),
    "progress": ([GOOD, GOOD], {"progress": "bar"}, TypeError, "progress must be a bool or a"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gets_one_clear_error(name, tmp_path, tiny):
    frames, options, error, message = BAD[name]
    parts(tmp_path, *frames)
    with pytest.raises(error, match=message) as caught:
        built(graph=tmp_path, **options)
    assert len(str(caught.value)) < 450


def test_sums_of_a_dask_frame_that_are_too_large(tiny):
    frame = pd.DataFrame({**GOOD, "w": [2**62] * 4})
    table = dask(pd.concat([frame, frame], ignore_index=True), None)
    with pytest.raises(ValueError, match=r"the integer weights .* scale them down") as caught:
        built(graph=table, weight="w")
    assert "changed" not in str(caught.value)


def test_nulls_in_the_fortieth_chunk(tmp_path, monkeypatch):
    monkeypatch.setattr(chunks, "CHUNK", 100)
    ids = np.arange(5_000)
    frame = pd.DataFrame({"src": ids, "dst": ids + 1}, dtype="Int64")
    frame.loc[3_956:3_957, "dst"] = None
    words = r"one.parquet, rows 3,900 to 3,999: destination .* 2 null\(s\), the first at row 3956"
    frame.to_parquet(tmp_path / "one.parquet")
    for source in (tmp_path, ds.dataset(tmp_path), pq.ParquetFile(tmp_path / "one.parquet")):
        with pytest.raises(ValueError, match=words.removeprefix("one.parquet, ")):
            built(graph=source)
    with pytest.raises(ValueError, match=words):
        built(graph=tmp_path)
    with pytest.raises(ValueError, match=r"partition 2, rows 600 to 699: dest.* at row 622"):
        built(graph=dask(frame, None))


def test_folders_and_files_that_are_none(tmp_path, tiny):
    with pytest.raises(ValueError, match=r"is a folder without a Parquet file"):
        built(graph=tmp_path)
    (tmp_path / "notes.txt").write_text("src dst\n")
    (tmp_path / "_temporary").mkdir()
    write(pd.DataFrame(GOOD), tmp_path / "_temporary")
    with pytest.raises(ValueError, match=r"is a folder without a Parquet file"):
        built(graph=tmp_path)
    with pytest.raises(FileNotFoundError, match=r"graph: .*no such file or folder"):
        built(graph=tmp_path / "no.parquet")
    with pytest.raises(FileNotFoundError, match=r"pass a pyarrow.dataset.dataset of it"):
        built(graph="s3://bucket/edges")
    with pytest.raises(FileNotFoundError, match="graph: ''"):
        built(graph="")
    (tmp_path / "edges.xls").touch()
    with pytest.raises(ValueError, match=r"edges.xls: the format is not clear from the name"):
        built(graph=tmp_path / "edges.xls")


@pytest.mark.parametrize("left", [0, 3, 300, -9])
def test_a_truncated_file(left, tmp_path, tiny):
    write(pd.DataFrame(GOOD), tmp_path)
    content = (tmp_path / "part-001.parquet").read_bytes()
    (tmp_path / "part-001.parquet").write_bytes(content[:left])
    with pytest.raises(ValueError, match=r"part-001.parquet: cannot be read as a table"):
        built(graph=tmp_path)


def test_damaged_pages_are_said_to_be_in_their_file(tmp_path, tiny):
    write(pd.DataFrame(GOOD), tmp_path)
    content = bytearray((tmp_path / "part-001.parquet").read_bytes())
    content[4:60] = bytes(56)
    (tmp_path / "part-001.parquet").write_bytes(content)
    with pytest.raises(ValueError, match=r"part-001.parquet: cannot be read as a table"):
        built(graph=tmp_path)


def test_no_rows(tmp_path, tiny):
    empty = pd.DataFrame({"src": pd.Series(dtype="int32"), "dst": pd.Series(dtype="int32")})
    for folder, frames in (("one", [empty]), ("three", [empty] * 3)):
        parts(tmp_path / folder, *frames)
        identical(built(graph=tmp_path / folder), built(graph=empty))
        further = built(graph=tmp_path / folder, vertices=[3, 1])
        identical(further, built(graph=empty, vertices=[3, 1]))
    for empty_table in (ds.dataset(tmp_path / "three"), dask(empty, None)):
        assert built(graph=empty_table).number_of_vertices == 0


def test_files_without_rows_say_nothing_about_types(tmp_path, tiny):
    texts = pd.DataFrame({"src": pd.Series(dtype="str"), "dst": pd.Series(dtype="str")})
    parts(tmp_path, texts, GOOD, texts, GOOD)
    identical(built(graph=tmp_path), built(graph=pd.DataFrame(GOOD)))


ONCE = {
    "reader": lambda table: table.to_reader(),
    "generator": lambda table: (batch for batch in table.to_batches()),
    "scanner": lambda table: ds.dataset(table).scanner(),
}


@pytest.mark.parametrize("kind", ONCE)
def test_what_can_be_read_once_is_refused(kind):
    with pytest.raises(TypeError, match=r"only once, while a graph takes several passes; write"):
        built(graph=ONCE[kind](pa.table({"src": [1], "dst": [2]})))


def test_a_parquet_dataset_is_refused(tmp_path):
    data = pq.ParquetDataset(write(pd.DataFrame(GOOD), tmp_path))
    with pytest.raises(TypeError, match=r"ParquetDataset; pass its path, or pyarrow.dataset"):
        built(graph=data)


FIRST = {"src": [1, 2, 3, 4], "dst": [2, 3, 4, 5], "w": [1, 2, 3, 4]}
OTHERS = {
    "more edges": ({"src": [1] * 50, "dst": [2] * 50}, r"54 rows where there were 8"),
    "fewer edges": ({"src": [1], "dst": [2]}, r"5 rows where there were 8"),
    "other edges": ({"src": [1, 1, 3, 4], "dst": [2, 3, 4, 5]}, "other edges than before"),
    "other ids": (
        {"src": [1, 2, 3, 4], "dst": [2, 3, 4, 6]},
        r"01.parquet has another id at row 3",
    ),
    "other ends": ({"src": [1, 1, 1, 1], "dst": [1, 1, 1, 1]}, "other edges than before"),
    "strings": (
        {"src": list("1234"), "dst": list("2345")},
        r"01.parquet, rows 0 to 2: source column 'src' holds string ids where there were integer",
    ),
    "nulls": (
        {"dst": pd.array([2, None, 4, 5], dtype="Int64")},
        r"destination column 'dst' holds 1 null\(s\), the first at row 1\)",
    ),
    "floats": ({"dst": [2.0, 3.0, 4.0, 5.0]}, "holds float64 ids, such as"),
    "fractions": ({"w": [0.5] * 4}, r"column 'w' holds float64 where there was int64"),
    "a null weight": ({"w": [1, None, 3, 4]}, r"column 'w' holds 1 null\(s\) or NaN"),
}


@pytest.mark.parametrize("after", [1, 2])
@pytest.mark.parametrize("ids", [("src", "dst"), (["src", "one"], ["dst", "one"])])
@pytest.mark.parametrize("name", OTHERS)
def test_files_that_change_between_two_passes(name, ids, after, tmp_path, tiny):
    def write_second(columns):
        same_length = {} if len(columns.get("src", FIRST["src"])) != 4 else FIRST
        second = pd.DataFrame({**same_length, **columns})
        parts(
            tmp_path, pd.DataFrame(FIRST).assign(one=1), pd.DataFrame({"w": 1, "one": 1, **second})
        )

    other, words = OTHERS[name]
    write_second(FIRST)

    def change(facts):
        if facts["pass"] == after and facts["rows"] == 8:
            write_second(other)

    source, destination = ids
    words = rf"(?s)changed while it was read, which takes several passes \(.*{words}"
    for directed in (False, True):
        write_second(FIRST)
        with pytest.raises(ValueError, match=words):
            built(graph=tmp_path, source=source, destination=destination, weight="w",
                  directed=directed, progress=change)  # fmt: skip


def test_strings_that_are_other_edges_in_the_last_pass(tmp_path, tiny):
    text = pd.DataFrame(GOOD).astype({"src": str, "dst": str})
    write(text, tmp_path)

    def change(facts):
        if facts["pass"] == 2 and facts["rows"] == 4:
            write(text.assign(dst="2"), tmp_path)

    with pytest.raises(ValueError, match="other edges than before"):
        built(graph=tmp_path, progress=change)


def test_a_partition_that_is_another_each_time(tiny):
    seen = []

    def next_one(part):
        seen.append(1)
        return part.assign(dst=part["dst"] + len(seen) % 2)

    frame = pd.DataFrame({"src": range(30), "dst": range(30)})
    with pytest.raises(ValueError, match=r"the dask frame changed while it was read"):
        built(graph=dask(frame, None).map_partitions(next_one, meta=frame[:0]))
