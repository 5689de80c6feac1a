"""Paths to tables: of every format, on the command line, with what is told meanwhile."""

from pathlib import Path

import chunked_tables
import pandas as pd
import pytest
from built_graphs import built, same
from chunked_tables import GOOD, NULL, identical, one_file, parts, write
from command_line import cpu
from graphs import GRAPHS

import glp_rapids
from glp_rapids.graph import in_place
from glp_rapids.ingest.read import as_graph

tiny = chunked_tables.tiny  # a fixture


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


def test_the_command_line_reads_a_folder(tmp_path, tiny, capsys):
    frame = GRAPHS["two cliques"]()["graph"]
    folder = write(frame, tmp_path / "edges")
    assert cpu("label-propagation", folder, "--output", tmp_path / "out.parquet") == 0
    assert "graph       10 vertices, 21 edges, on the cpu" in capsys.readouterr().err
    found = pd.read_parquet(tmp_path / "out.parquet")
    expected = glp_rapids.label_propagation(frame, device="cpu")
    pd.testing.assert_frame_equal(found, expected)
    assert cpu("label-propagation", folder, "--weight", "usd") == 2
    assert "edges: has no column 'usd' (--weight)" in capsys.readouterr().err
    assert cpu("label-propagation", folder, "--output", folder / "part-000.parquet") == 2
    assert "--output is the file of EDGES (part-000.parquet) as well" in capsys.readouterr().err
    assert cpu("label-propagation", tmp_path) == 2  # the result is beside the folder
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


def test_a_small_file_goes_the_usual_way(tmp_path, monkeypatch):
    path = one_file(pd.DataFrame(GOOD), tmp_path)
    monkeypatch.setattr(in_place, "Filling", None)
    identical(built(graph=path), built(graph=pd.DataFrame(GOOD)))
    parts(tmp_path, NULL)
    with pytest.raises(ValueError, match=r"00.parquet: source column 'src' holds 1 null"):
        as_graph(Path(tmp_path, "00.parquet"), device="cpu")
