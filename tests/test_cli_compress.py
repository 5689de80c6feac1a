"""``glp-rapids compress``: files in, a file and a table out, and what is said of bad input."""

import pandas as pd
import pytest
from graphs import power_law_pairs
from test_compressed_file import assert_same

from glp_rapids import CompressedGraph, as_graph
from glp_rapids.cli import main


def cpu(*arguments):
    return main([*map(str, arguments), "--device", "cpu"])


def fails(capsys, *arguments):
    """Run and give the one line that says what is wrong."""
    assert cpu(*arguments) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith(f"glp-rapids {arguments[0]}: error: ")
    return error


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.csv"
    frame = pd.DataFrame(power_law_pairs(200, 900, 1), columns=["src", "dst"])
    frame.assign(eur=[i % 5 + 0.5 for i in range(len(frame))]).to_csv(path, index=False)
    return path


def test_the_least_of_several_weights_is_what_sssp_takes(tmp_path, capsys):
    path, out = tmp_path / "roads.csv", tmp_path / "roads.glp"
    path.write_text("src,dst,km\na,b,5\nb,a,7\nb,c,1\na,c,9\n")
    assert cpu("sssp", path, "--weight", "km", "--start", "a") == 0
    expected = capsys.readouterr().out
    assert cpu("compress", path, out, "--weight", "km", "--multigraph", "min") == 0
    capsys.readouterr()
    assert cpu("sssp", out, "--start", "a") == 0
    assert capsys.readouterr().out == expected
    assert expected.splitlines()[1:] == ["a,0,", "b,5,a", "c,6,b"]
    said = fails(capsys, "compress", out, tmp_path / "again.glp", "--multigraph", "min")
    assert "a graph that is made already; leave --multigraph out" in said


@pytest.mark.parametrize(
    ("options", "keywords"),
    [
        ((), {}),
        (("--directed", "--weight", "eur"), {"directed": True, "weight": "eur"}),
        (("--order", "bfs", "--scheme", "cgr", "--segment", 8, "--raw-below", 2), {}),
        (("--order", "degree", "--min-interval", 0, "--source", "dst", "--destination", "src"), {}),
    ],
)
def test_a_table_becomes_a_compressed_graph(edges, options, keywords, capsys):
    out = edges.parent / "deep" / "graph.glp"
    assert cpu("compress", edges, out, *options) == 0
    graph = as_graph(pd.read_csv(edges), device="cpu", **keywords)
    assert_same(CompressedGraph.open(out, device="cpu").to_graph(), graph)
    text, err = capsys.readouterr()
    assert text.splitlines()[0].split() == ["part", "bits/entry", "share"]
    assert "all lists" in text
    assert f"{graph.number_of_vertices:,} vertices" in err
    assert f"written     {out} ({out.stat().st_size:,} bytes, ids included)" in err


def test_the_options_are_those_of_the_library(edges, tmp_path):
    assert cpu("compress", edges, tmp_path / "small", "--for", "size") == 0
    assert CompressedGraph.open(tmp_path / "small", device="cpu").layout.scheme == "entropy"
    options = ("--scheme", "cgr", "--segment", 8, "--raw-below", 2, "--min-interval", 3)
    assert cpu("compress", edges, tmp_path / "other", *options) == 0
    layout = CompressedGraph.open(tmp_path / "other", device="cpu").layout
    assert (layout.scheme, layout.segment) == ("cgr", 8)
    assert (layout.raw_below, layout.min_interval) == (2, 3)


def test_info_checks_and_shows(edges, tmp_path, capsys):
    out = tmp_path / "graph.glp"
    cpu("compress", edges, out, "--order", "degree")
    table = capsys.readouterr().out
    assert cpu("compress", "--info", out) == 0
    text, err = capsys.readouterr()
    assert text == table
    assert "whole and in order" in err
    assert "undirected, unweighted, packed" in err
    assert "codes" not in err
    cpu("compress", edges, tmp_path / "coded.glp", "--scheme", "cgr")
    cpu("compress", "--info", tmp_path / "coded.glp")
    assert "codes degree " in capsys.readouterr().err
    data = bytearray(out.read_bytes())
    data[-1] ^= 1
    out.write_bytes(data)
    assert "is damaged in" in fails(capsys, "compress", "--info", out)


def test_other_commands_read_what_it_wrote(edges, tmp_path, capsys):
    out, again = tmp_path / "graph.glp", tmp_path / "again.glp"
    cpu("compress", edges, out)
    capsys.readouterr()
    for command in (("label-propagation",), ("diversity", "--k", 2)):
        assert cpu(command[0], edges, *command[1:]) == 0
        expected = capsys.readouterr().out
        assert cpu(command[0], out, *command[1:]) == 0
        assert capsys.readouterr().out == expected
    assert cpu("compress", out, again, "--for", "size") == 0
    one, other = (CompressedGraph.open(path, device="cpu") for path in (out, again))
    assert_same(other.to_graph(), one.to_graph())


def test_a_file_of_webgraph(tmp_path, capsys):
    properties = "graphclass=it.unimi.dsi.webgraph.BVGraph\nnodes=3\narcs=3\nzetak=3\n"
    properties += "windowsize=0\nminintervallength=0\ncompressionflags=\n"
    (tmp_path / "tiny.properties").write_text(properties)
    (tmp_path / "tiny.graph").write_bytes(bytes([0b01110111, 0b00010101, 0b11000000]))
    assert cpu("compress", tmp_path / "tiny.graph", tmp_path / "tiny.glp", "--directed") == 0
    graph = CompressedGraph.open(tmp_path / "tiny.glp", device="cpu").to_graph()
    assert (graph.indptr.tolist(), graph.indices.tolist()) == ([0, 2, 3, 3], [1, 2, 2])
    assert "3 vertices, 3 edges" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "OUT is missing"),
        (["x.glp", "--min-interval", "-1"], "--min-interval must be from 0"),
        (["x.glp", "--segment", "100"], "--segment must be a power of two"),
        (["x.glp", "--weight", "usd"], "no column 'usd' (--weight)"),
        (["x.glp", "--info"], "--info writes nothing: leave x.glp out"),
        (["--info"], "no compressed graph of glp_rapids: it begins with b'src,dst,'"),
    ],
)
def test_bad_input_is_said_in_one_line(edges, options, words, capsys):
    assert words in fails(capsys, "compress", edges, *options)


def test_what_a_file_has_is_not_asked_for_again(edges, tmp_path, capsys):
    out = tmp_path / "graph.glp"
    cpu("compress", edges, out)
    command = ("label-propagation", out)
    assert "leave --weight out" in fails(capsys, *command, "--weight", "eur")
    assert "leave --directed out" in fails(capsys, *command, "--directed")


@pytest.mark.parametrize("name", ["e.csv", "e.TSV", "e.txt", "e.parquet", "e.npz", "e.csv.gz"])
def test_no_compressed_graph_is_written_over_a_table(name, tmp_path, capsys):
    edges, table = tmp_path / "edges.csv", tmp_path / name
    edges.write_text("src,dst\n1,2\n2,3\n")
    assert cpu("compress", edges, tmp_path / "graph.glp") == 0
    table.write_text("the only copy")
    assert "is named as a table" in fails(capsys, "compress", tmp_path / "graph.glp", table)
    assert table.read_text() == "the only copy"
