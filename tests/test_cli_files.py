"""Hostile files and the command line: a table of file, command and expected answer."""

import bz2
import gzip
import io
import lzma
import os
import re
import subprocess
import sys
import warnings
import zipfile

import pandas as pd
import pytest
from command_line import fails
from hypothesis import given
from hypothesis import strategies as st

import glp_rapids
from glp_rapids.cli import blacklist, main
from glp_rapids.frames import files, streams

EDGES = b"src,dst\na,b\nb,c\n"
ABC = ["a", "b", "c"]
SNAP = b"# a comment\n1#x 2\n#3 4\n2 5 # 6\n"
GZ = gzip.compress(EDGES, mtime=0)
INTEGERS_BESIDE = b"src,dst\n1,%s\n2,1\n"


def zipped(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, EDGES)
    return file.getvalue()


def parquet(**columns):
    file = io.BytesIO()
    pd.DataFrame(columns).to_parquet(file)
    return file.getvalue()


PARQUET = parquet(src=ABC, dst=ABC)

# name of the file, what is in it, options; the vertices that come out, or the words of the error
LP = ("label-propagation", "--device", "cpu")
NO_HEADER = (*LP, "--no-header")
FILES = [
    ("bom.csv", b"\xef\xbb\xbf" + EDGES, LP, ABC),
    ("bom.txt", b"\xef\xbb\xbf# it\n1 2\n", NO_HEADER, ["1", "2"]),
    ("crlf.csv", EDGES.replace(b"\n", b"\r\n"), LP, ABC),
    ("cr.csv", EDGES.replace(b"\n", b"\r"), LP, ABC),
    ("blank.csv", b"\n\n" + EDGES.replace(b"\n", b"\n\n"), LP, ABC),
    ("spaces.csv", b"src, dst\na, b\nb, c\n", LP, ABC),
    ("spaces.csv", b"1, 2 \n2, 3 \n", NO_HEADER, ["1", "2", "3"]),
    ("trailing.csv", b"src,dst\na,b,\nb,c,\n", LP, ABC),
    ("quoted.csv", b'src,dst\n"a,1",b\n" b",b\n', LP, ['" b"', '"a,1"', '"b"']),
    ("EDGES.CSV", EDGES, LP, ABC),
    ("EDGES.CSV.GZ", GZ, LP, ABC),
    ("two.csv.gz", gzip.compress(b"src,dst\na,b\n") + gzip.compress(b"b,c\n"), LP, ABC),
    ("edges.csv.bz2", bz2.compress(EDGES), LP, ABC),
    ("edges.csv.xz", lzma.compress(EDGES), LP, ABC),
    ("edges.csv.zip", zipped("edges.csv"), LP, ABC),
    ("mac.csv.zip", zipped("edges.csv", "__MACOSX/._edges.csv"), LP, ABC),
    ("snap.txt", SNAP, NO_HEADER, ["1#x", "2", "5"]),
    ("konect.txt", b"% sym\n# and\n\n% 2 3 3\n1 2\n2 %x\n%y 1\n", NO_HEADER,
     ["%x", "%y", "1", "2"]),
    ("encoded.txt", b"%22A%22 b\n%C3 d\n", NO_HEADER, ["%22A%22", "%C3", "b", "d"]),
    ("konect.csv.gz", gzip.compress(b'% "bip\r% 3\r1,2\r'), NO_HEADER, ["1", "2"]),
    ("matrix.txt", b"%%MatrixMarket matrix coordinate\n% by\n2 2 1\n1 2 1\n", NO_HEADER,
     "pass scipy.io.mmread of it"),
    ("matrix.csv", b"%%MatrixMarket matrix coordinate\n2 2 1\n1 2 1\n", LP, "MatrixMarket"),
    ("edges.txt", b"1\t2\n2\t3\n", LP, "its columns are ['1', '2']; say which are source and "
     "destination, or, if that is no line of names, read the file with --no-header"),
    ("reals.csv", b"1,2,0.5\n2,3,1.5\n", LP, "--no-header"),
    ("snap.txt", SNAP, LP, "--no-header"),
    ("konect.txt", b"% sym\n1 2\n", LP, "--no-header"),
    ("snap.csv", b'#"open\na,b#\r\n# \r\n#\r\nb#,a', NO_HEADER, ["a", "b#"]),
    ("self.csv", b"self,dst\n1,2\n", (*LP, "--source", "self"), ["1", "2"]),
    ("hash.csv", b"src,dst\n#a,b\n", LP, ["#a", "b"]),
    ("wide.txt", b"1 2 9\n2 3\n", NO_HEADER, ["1", "2", "3"]),
    ("zeros.csv", b"src,dst\n0100,100\n7,8\n", LP, ["0100", "100", "7", "8"]),
    ("signs.csv", INTEGERS_BESIDE % b"+2", LP, ["+2", "1", "2"]),
    ("mixed.csv", INTEGERS_BESIDE % b"p1", LP, ["1", "2", "p1"]),
    ("large.csv", INTEGERS_BESIDE % b"18446744073709551616",
     LP, ["1", "18446744073709551616", "2"]),
    ("unsigned.csv", INTEGERS_BESIDE % b"18446744073709551615", LP,
     ["1", "2", "18446744073709551615"]),
    ("both.csv", b"src,dst\n-1,18446744073709551615\n2,10\n", LP,
     ["-1", "10", "18446744073709551615", "2"]),
    ("numbers.csv", b"src,dst\n10,9\n9,-3\n", LP, ["-3", "9", "10"]),
    ("long.csv", b"src,dst\n1,a,b\n2,c,d\n", LP, "more fields than its header, which names src"),
    ("long.txt", b"src dst\n1 a b\n2 c d\n", LP, "more fields than its header, which names src"),
    ("later.csv", b"src,dst\na,b\n2,c,d\n", LP, "Expected 2 fields in line 3, saw 3"),
    ("short.txt", b"1\n2\n", NO_HEADER, "its rows have fewer fields than are needed, src, dst"),
    ("commas.txt", b"src,dst\n1,2\n", LP, "if that is several, name it *.csv"),
    ("tabs.csv", b"src\tdst\n1\t2\n", LP, "if that is several, name it *.tsv"),
    ("noted.csv", b"# made by x\nsrc,dst\n1,2\n", LP, "if names come after that line, take it out"),
    ("short.csv", b"src,dst\na\n", LP, "null"),
    ("cut.csv.gz", GZ[:-9], LP, "ended before the end-of-stream marker"),
    ("crc.csv.gz", GZ[:-8] + bytes(8), LP, "CRC"),
    ("plain.csv.gz", EDGES, LP, "Not a gzipped file"),
    ("gzip.csv", GZ, LP, "bytes of zero"),
    ("bad.csv.xz", EDGES, LP, "cannot be read as a table"),
    ("cut.csv.xz", lzma.compress(EDGES)[:-9], LP, "ended before the end-of-stream marker"),
    ("bad.csv.bz2", EDGES, LP, "cannot be read as a table"),
    ("bad.csv.zip", EDGES, LP, "not a zip file"),
    ("two.csv.zip", zipped("a.csv", "b.csv"), LP, "2 files in it"),
    ("none.csv.zip", zipped(), LP, "0 files in it"),
    ("latin.csv", "src,dst\na,b\né,c\n".encode("latin-1"), LP, "UTF-8 (line 3 has the byte 0xe9)"),
    ("latin.csv.gz", gzip.compress(b"src,dst\n\xe9,c\n"), LP, "UTF-8 (line 2 has the byte 0xe9)"),
    ("utf16.csv", "src,dst\na,b\n".encode("utf-16"), LP, "save it as UTF-8"),
    ("nul.csv", b"src,dst\na\0b,c\na\0c,d\n", LP, "bytes of zero"),
    ("empty.csv", b"", LP, "No columns to parse"),
    ("empty.csv.gz", b"", LP, "No columns to parse"),
    ("blanks.csv", b"\n \n\n", LP, "No columns to parse"),
    ("open.csv", b'src,dst\n"a,b\nc,d\n', LP, "EOF inside string"),
    ("same.csv", EDGES, (*LP, "--source", "dst"), "--source and --destination both name 'dst'"),
    ("same.csv", EDGES, (*LP, "--weight", "dst"), "--destination and --weight both name 'dst'"),
    ("same.txt", b"1 2 3\n", (*NO_HEADER, "--weight", "dst"), "--destination and --weight both"),
    ("heavy.txt", b"1 2 3\n", (*NO_HEADER, "--weight", "kg"), ["1", "2"]),
    ("twice.csv", b"src,dst,src\na,b,c\n", LP, "2 columns named 'src'"),
    ("none.csv", EDGES, (*LP, "--weight", "w"), "no column 'w' (--weight); its columns are: src"),
    ("weights.csv", b"src,dst,w\na,b,x\n", (*LP, "--weight", "w"), "not numbers"),
    ("bad.parquet", EDGES, LP, "cannot be read as a table"),
    ("cut.parquet", PARQUET[:-9], LP, "cannot be read as a table"),
    ("empty.parquet", b"", LP, "cannot be read as a table"),
    ("packed.parquet.gz", gzip.compress(PARQUET), LP, "leave .gz out"),
    ("types.parquet", parquet(src=[1], dst=["a"]), LP, "types"),
    ("EDGES.PARQUET", PARQUET, LP, ABC),
    ("no.tar.gz", GZ, LP, "the format is not clear"),
    ("glp.csv", b"\x89GLPCG\r\n", LP, "truncated"),
    ("web.graph", b"x", LP, "web.properties: there is no such file"),
    ("latin.csv", b"src,dst\n\xe9,c\n", ("diversity", "--device", "cpu"), "is no text in UTF-8"),
    ("cut.csv.gz", GZ[:-9], ("compress", "out.glp", "--device", "cpu"), "end-of-stream"),
    ("bad.glp", b"src,dst", ("compress", "--info"), "is no compressed graph"),
]  # fmt: skip


def run(path, command):
    return main([command[0], str(path), *map(str, command[1:])])


def said(capsys, command):
    """Give the one line of an error."""
    out, error = capsys.readouterr()
    assert not out
    assert "Traceback" not in error
    last = error.splitlines()[-1]
    assert last.startswith(f"glp-rapids {command}: error: ")
    return last


@pytest.mark.parametrize(
    ("name", "content", "command", "expected"),
    FILES,
    ids=[f"{row[0]}-{i}" for i, row in enumerate(FILES)],
)
def test_a_file_gives_its_vertices_or_one_clear_error(
    tmp_path, monkeypatch, name, content, command, expected, capsys
):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / name
    path.write_bytes(content)
    code = run(path, command)
    if isinstance(expected, list):
        assert code == 0, capsys.readouterr().err
        lines = capsys.readouterr().out.splitlines()[1:]
        assert [line.rsplit(",", 1)[0] for line in lines] == expected
    else:
        assert code == 2
        error = said(capsys, command[0])
        assert expected in error
        assert f": error: {tmp_path}" in error
    assert os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("command", [LP, ("compress", "out.glp"), ("compress", "--info")])
def test_what_is_no_file_is_not_waited_for(tmp_path, command, capsys):
    os.mkfifo(tmp_path / "pipe.csv")
    (tmp_path / "folder.csv").mkdir()
    for name, words in (("pipe", "is a pipe"), ("folder", "is a folder"), ("none", "no such file")):
        assert run(tmp_path / f"{name}.csv", command) == 2
        assert f": error: {tmp_path / name}.csv: {words}" in said(capsys, command[0]).replace(
            "there is no", "no"
        )


PAYMENTS = {
    "integers": "source,destination\n100,7\n7,8\n",
    "texts": 'source,destination\n0100,id\n"Smith, J",p1\nx ,y\n',
    "unsigned": f"source,destination\n{2**64 - 1},7\n",
}
SEEDS = [
    ("integers", "list.txt", b"\xef\xbb\xbf100\n7\n", (2, 2)),
    ("integers", "list.txt", b"0100\n7\n", "'0100' is none"),
    ("integers", "list.txt", b"+100\n7\n", "'+100' is none"),
    ("integers", "list.txt", b"7\n100.0\n", "'100.0' is none"),
    ("integers", "list.txt", b"1e2\n7\n", "'1e2' is none"),
    ("integers", "list.txt", "١٠٠\n7\n".encode(), "is none"),
    ("integers", "list.txt", b" 100 \r\n\r\n7,known since\r\n", (2, 2)),
    ("integers", "list.txt", b"account no\n7\n", (1, 1, "account")),
    ("integers", "list.txt", b"7\naccount\n", "'account' is none"),
    ("integers", "list.csv", b'"id",since\n"100",x,y\n"7"\n', (2, 2, "id")),
    ("integers", "list.txt", b"7\n18446744073709551616\n-99999999999999999999999\n", (3, 1)),
    ("integers", "list.txt", b"7\n9223372036854775808\n", (2, 1)),
    ("integers", "list.txt", b"7\n" + b"9" * 5000, (2, 1)),
    ("integers", "list.txt.gz", gzip.compress(b"100\n7\n"), (2, 2)),
    ("integers", "list.txt.gz", gzip.compress(b"100\n7\n")[:-9], "end-of-stream"),
    ("integers", "list.PARQUET", parquet(ids=["100", "7"]), (2, 2)),
    ("integers", "list.parquet", parquet(ids=pd.array([100, None, 7], dtype="Int64")), (2, 2)),
    ("integers", "list.parquet", parquet(ids=["p1", "7"]), "'p1' is none"),
    ("integers", "list.parquet", parquet(), "has no column"),
    ("texts", "list.parquet", parquet(ids=["source", "p1"]), (2, 1)),
    ("integers", "list.parquet", b"100\n7\n", "cannot be read as a table"),
    ("integers", "list.txt", b"\xe9\n7\n", "is no text in UTF-8 (line 1 has the byte 0xe9)"),
    ("integers", "list.txt", b"1\x000\n7\n", "bytes of zero"),
    ("integers", "list.txt", b'"100\n7\n', "EOF inside string"),
    ("integers", "list.txt", b"\n\n", "holds no ids; write one a line"),
    ("integers", "list.txt", b"zzz\n", "only line, 'zzz', was taken for a header, as the ids of"),
    ("texts", "list.csv", b"account\n", "its only line, 'account', was taken for a header; write"),
    ("texts", "list.csv", b"", "holds no ids"),
    ("unsigned", "list.txt", b"%d\n-7\n7\n" % (2**64 - 1), (3, 2)),
    ("texts", "list.txt", b"0100\n", (1, 1)),
    ("texts", "list.txt", b"100\n0100\n", (2, 1)),
    ("texts", "list.txt", b"id\np1\n", (2, 2)),
    ("texts", "list.txt", b"ACCOUNT\np1\n", (1, 1, "ACCOUNT")),
    ("texts", "list.csv", b'"Smith, J",known\n" p1 "\nx \n', (3, 3)),
    ("texts", "list.tsv", b"p1\tknown, for long\n", (1, 1)),
    ("texts", "list.txt", "p1\n0100\u2028\n".encode(), (2, 2)),
]


@pytest.mark.parametrize(
    ("ids", "name", "content", "expected"),
    SEEDS,
    ids=[f"{row[0]}-{i}" for i, row in enumerate(SEEDS)],
)
def test_a_blacklist_loses_nobody(tmp_path, ids, name, content, expected, capsys):
    path, seeds = tmp_path / "payments.csv", tmp_path / name
    path.write_text(PAYMENTS[ids])
    seeds.write_bytes(content)
    code = run(path, ("fraud", "--seeds", seeds, "--device", "cpu"))
    if isinstance(expected, str):
        assert code == 2
        error = said(capsys, "fraud")
        assert f": error: {seeds}: " in error
        assert expected in error
    else:
        assert code == 0, capsys.readouterr().err
        total, known, *header = expected
        out = capsys.readouterr().out
        assert f"blacklist     {total:,} ids, of which {known:,} in the window" in out
        assert (f"its header is {header[0]!r}" if header else "its header") in out or not header
        assert bool(header) == ("its header" in out)


@pytest.mark.parametrize("ending", ["csv", "tsv", "txt", "csv.gz"])
@pytest.mark.parametrize("dtype", [object, "str", "category"])
def test_blanks_in_front_of_texts_come_back(ending, dtype, tmp_path):
    ids = pd.Series([" b", "b", "  ", "c d", "", None, '" "'], dtype=object).astype(dtype)
    frame = pd.DataFrame({"vertex": ids, "partition": range(7)})
    files.write_table(frame, tmp_path / f"found.{ending}")
    found = files.read_table(tmp_path / f"found.{ending}", ["vertex"])
    assert found["vertex"].fillna("").tolist() == [" b", "b", "  ", "c d", "", "", '" "']
    assert found["partition"].tolist() == [*range(7)]


def test_of_csv_blanks_in_front_of_a_field_are_skipped(tmp_path, capsys):
    text = 'src, dst, w\n a,"b, c", 1\n" a", "b, c", 2\n'
    (tmp_path / "edges.csv").write_text(text)
    (tmp_path / "edges.tsv").write_text("src\tdst\n a\tb\na\t b\n")
    graph = glp_rapids.as_graph(tmp_path / "edges.csv", weight="w", device="cpu")
    assert graph.external().tolist() == [" a", "a", "b, c"]
    assert graph.weights.tolist() == [2, 1, 2, 1]
    graph = glp_rapids.as_graph(tmp_path / "edges.tsv", device="cpu")
    assert graph.external().tolist() == [" a", " b", "a", "b"]
    assert run(tmp_path / "edges.csv", LP) == 0
    output = capsys.readouterr().out
    assert output.splitlines()[0] == '"vertex","partition"'
    assert pd.read_csv(io.StringIO(output), skipinitialspace=True)["vertex"].tolist() == [
        " a", "a", "b, c"
    ]  # fmt: skip


@given(st.lists(st.sampled_from([b"#", b"%", b"a", b" ", b"\n", b"\r"])), st.integers(1, 5))
def test_comments_are_whole_lines_wherever_pieces_end(pieces, size):
    content = b"".join(pieces)
    expected, before_rows = b"", True
    for line in re.split(rb"([\r\n])", content):
        head = line == b"%" or line[:2] in (b"% ", b"%%")
        before_rows &= head or line[:1] in (b"", b"#", b"\n", b"\r")
        if not line.startswith(b"#") and not (head and before_rows):
            expected += line
    text = streams.Text(io.BytesIO(content), comments=True)
    assert b"".join(iter(lambda: text.read(size), b"")) == expected


def test_a_damaged_compressed_graph_is_said_to_be_one(tmp_path, capsys):
    path = tmp_path / "graph.glp"
    path.write_bytes(bytes(100))
    for words in (["bfs", path, "--start", "1"], ["compress", "--info", path]):
        assert "graph.glp is no compressed graph of glp_rapids" in fails(capsys, *words)


def test_a_stdout_in_another_encoding(tmp_path, monkeypatch, capsys):
    path = tmp_path / "edges.csv"
    path.write_text("src,dst\na,é\n")
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(io.BytesIO(), encoding="ascii"))
    assert run(path, LP) == 2
    assert "error: stdout: it has no '\\xe9' in its encoding, ascii" in capsys.readouterr().err


def test_a_reader_that_goes_before_the_end_is_told_of(tmp_path):
    (tmp_path / "edges.csv").write_text("src,dst\n" + "".join(f"{i},{i + 1}\n" for i in range(9)))
    read, write = os.pipe()
    os.close(read)
    command = "from glp_rapids.cli import main; raise SystemExit(main())"
    words = ["label-propagation", "edges.csv", "--device", "cpu"]
    done = subprocess.run(
        [sys.executable, "-c", command, *words], cwd=tmp_path, stdout=write, stderr=subprocess.PIPE,
        check=False,
    )  # fmt: skip
    os.close(write)
    assert done.returncode == 141
    assert b"rror" not in done.stderr


@pytest.mark.parametrize("ending", ["csv", "txt", "parquet"])
def test_labels_are_no_blacklist(tmp_path, ending):
    table, path = pd.DataFrame({"vertex": [1, 2], "fraud": [True, False]}), tmp_path / f"b.{ending}"
    table.to_parquet(path) if ending == "parquet" else table.to_csv(path, index=False)
    with pytest.raises(ValueError, match="has a column 'fraud', as if not all of its ids were"):
        blacklist.read(path, None, [pd.Series([1, 2, 3])])


@pytest.mark.parametrize(
    ("ids", "points"),
    [("1,2\n2.0,3\n", True), ("1.0,2.0\n2.0,3.0\n", False), ("1,2.5\n2.0,3\n", False),
     ("1,x\n2.0,3\n", False)],
)  # fmt: skip
def test_of_integers_of_which_some_have_a_point_a_warning_tells(ids, points, tmp_path, recwarn):
    path = tmp_path / "edges.csv"
    path.write_text(f"src,dst\n{ids}")
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        assert run(path, ("label-propagation", "--device", "cpu")) == 0
    told = [str(one.message) for one in recwarn]
    assert len(told) == points
    assert all(f"{path}: column 'src' has '2.0' at row 1, where" in one for one in told)


@pytest.mark.parametrize(
    ("before", "today"), [("1,2\n2,a\n", "1,2\n2,3\n"), ("1,2\n2,3\n", "1,2\n2,a\n")]
)
def test_an_earlier_result_may_have_ids_of_another_type(before, today, tmp_path):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    first.write_text(f"src,dst\n{before}")
    second.write_text(f"src,dst\n{today}")
    found, last = tmp_path / "found.csv", tmp_path / "last.csv"
    command = "label-propagation", "--device", "cpu", "--output"
    assert run(first, (*command, found)) == 0
    assert run(second, (*command, last, "--initial", found)) == 0
    labels = pd.read_csv(last, dtype=str).set_index("vertex")["partition"]
    assert labels["1"] == labels["2"]
    assert len(labels) == 3


def test_blacklist_and_edges_are_read_alike(tmp_path, capsys):
    """Every id that edges can have matches when the list is written as the edges are."""
    ids = ["007", "+5", "NA", "nan", "1.0", '"a,b"', '" q "', "#7", "é", "2" * 30, "x y", "-0"]
    path, seeds = tmp_path / "payments.csv", tmp_path / "list.csv"
    path.write_text("source,destination\n" + "".join(f"{name},z\n" for name in ids))
    seeds.write_text("".join(f"{name}\n" for name in ids))
    with pytest.warns(UserWarning, match="column 'source' has 'nan' at row 3"):
        assert run(path, ("fraud", "--seeds", seeds, "--device", "cpu")) == 0
    assert f"{len(ids)} ids, of which {len(ids)} in the window" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["measure", "label-propagation", "compress"])
def test_no_result_is_written_among_the_files_of_its_input(command, tmp_path, capsys):
    """The next run would read it as edges."""
    folder = tmp_path / "days"
    (folder / "more").mkdir(parents=True)
    edges = pd.DataFrame({"src": [0, 0, 1], "dst": [1, 2, 2]})
    for number in range(2):
        edges.to_parquet(folder / f"{number}.parquet")
    for name in ("out.parquet", "more/out.PQ", "../days/x.parquet"):
        output = [str(folder / name)] if command == "compress" else ["--output", str(folder / name)]
        of = ["--of", "core-number"] if command == "measure" else []
        error = fails(capsys, command, str(folder), *output, *of)
        assert "would be read with it the next time" in error
    assert len(list(folder.rglob("*.*"))) == 2
    if command != "compress":
        for name in ("_out.parquet", "out.csv"):
            of = ["--of", "core-number"] if command == "measure" else []
            assert main([command, str(folder), *of, "--output", str(folder / name)]) == 0
