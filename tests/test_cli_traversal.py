"""``glp-rapids bfs`` and ``glp-rapids sssp``: what they read, print, write and refuse."""

import pandas as pd
import pytest
from command_line import cpu, fails

import glp_rapids
from glp_rapids.cli import bfs, edge_files, main

ROADS = (
    "src,dst,km\nhome,mill,7\nhome,bridge,2\nmill,bridge,4\nbridge,mill,9\nbridge,work,1\nx,y,1\n"
)


@pytest.fixture
def roads(tmp_path):
    path = tmp_path / "roads.csv"
    path.write_text(ROADS)
    return path


def out_of(*arguments, tmp_path):
    output = tmp_path / "out.csv"
    assert cpu(*arguments, "--output", output) == 0
    return pd.read_csv(output)


def test_distances_of_what_is_reached(roads, tmp_path, capsys):
    found = out_of("bfs", roads, "--start", "home", tmp_path=tmp_path)
    assert found["vertex"].tolist() == ["bridge", "home", "mill", "work"]
    assert found["distance"].tolist() == [1, 0, 1, 2]
    assert found["predecessor"].fillna("-").tolist() == ["home", "-", "home", "bridge"]
    assert "4 vertices are reached" in capsys.readouterr().err
    near = out_of("bfs", roads, "--start", "home", "--depth-limit", 1, tmp_path=tmp_path)
    assert near["vertex"].tolist() == ["bridge", "home", "mill"]
    one_way = ("--directed", "--direction", "in")
    back = out_of("bfs", roads, "--start", "work", *one_way, tmp_path=tmp_path)
    assert back["distance"].tolist() == [1, 2, 2, 0]


def test_shortest_paths_and_the_way(roads, tmp_path, capsys):
    lengths = ("sssp", roads, "--weight", "km", "--start", "home")
    found = out_of(*lengths, tmp_path=tmp_path)
    assert found["distance"].tolist() == [2, 0, 6, 3]  # of two roads to the mill, the shorter
    assert out_of(*lengths, "--cutoff", 2.5, tmp_path=tmp_path)["distance"].tolist() == [2, 0]
    way = out_of(*lengths, "--path-to", "mill", "x", tmp_path=tmp_path)
    assert way["vertex"].tolist() == ["home", "bridge", "mill"]
    assert way["distance"].tolist() == [0, 2, 6]
    assert "none to 1 of --path-to" in capsys.readouterr().err


@pytest.mark.parametrize("command", [("bfs",), ("sssp", "--weight", "km")])
def test_a_limit_of_memory_changes_no_result(command, roads, tmp_path, capsys):
    words = command[0], roads, *command[1:], "--start", "home"
    free = out_of(*words, tmp_path=tmp_path)
    for limit in ("1MB", "1000"):
        found = out_of(*words, "--memory-limit", limit, tmp_path=tmp_path)
        pd.testing.assert_frame_equal(found, free)
    capsys.readouterr()
    said = fails(capsys, *words, "--device", "cpu", "--memory-limit", "100B")
    assert "(graph: --memory-limit=100 bytes is" in said
    assert "too little to search 6 vertices" in said
    roads.write_bytes(b"src,dst,km\n\xff,1,1\n")  # which reading would refuse
    assert "--memory-limit must be bytes" in fails(capsys, *words, "--memory-limit", "40XB")
    assert "is no text in UTF-8" in fails(capsys, *words, "--memory-limit", "40GB")


@pytest.mark.parametrize(("limit", "where"), [(None, (None, "cpu")), ("1GB", ("cpu", "gpu"))])
def test_under_a_limit_a_graph_is_read_on_the_host_for_a_gpu(limit, where, roads, monkeypatch):
    """From there it moves if it fits; without a limit it is searched where it was read."""
    read, read_on = edge_files.read_graph, []
    find, asked = glp_rapids.bfs, {}

    def note(options, **how):
        read_on.append(options.device)
        return read(options, **how)

    def search(graph, start, **how):
        asked.update(how)
        return find(graph, start, **how | {"device": "cpu"})

    monkeypatch.setattr(bfs, "choose", lambda device: "gpu")
    monkeypatch.setattr(edge_files, "read_graph", note)
    monkeypatch.setattr(glp_rapids, "bfs", search)
    words = [] if limit is None else ["--memory-limit", limit]
    assert main(["bfs", str(roads), "--start", "home", *words]) == 0
    assert (read_on[0], asked["device"]) == where
    assert asked["memory_limit"] == limit


def test_ids_are_integers_where_the_file_has_integers(tmp_path, capsys):
    path = tmp_path / "edges.csv"
    path.write_text("src,dst\n1,2\n2,30\n")
    found = out_of("bfs", path, "--start", "1", "30", tmp_path=tmp_path)
    assert found["distance"].tolist() == [0, 1, 0]
    assert found["predecessor"].tolist() == [-1, 1, -1]
    wrong = fails(capsys, "bfs", path, "--start", "ann", "--device", "cpu")
    assert "--start: the ids of the file are integers, but 'ann' is none" in wrong
    wrong = fails(capsys, "bfs", path, "--start", "5", "--device", "cpu")
    assert "--start: '5' is no vertex of the graph" in wrong
    assert cpu("bfs", path, "--start", "1", "--path-to", "5") == 2
    said = capsys.readouterr().err
    assert "--path-to: '5' is no vertex of the graph" in said
    assert "are reached" not in said  # it is looked up before the search
    wrong = fails(capsys, "bfs", path, "--start", "1", "--depth-limit", "-1", "--device", "cpu")
    assert "--depth-limit must be at least 0" in wrong


def test_starts_may_be_dates(tmp_path, capsys):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    path = tmp_path / "days.parquet"
    days = pd.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"])
    for ends in (days, pd.Series(days).dt.date):
        pd.DataFrame({"src": ends[:2], "dst": list(ends[1:])}).to_parquet(path)
        ways = ("bfs", path, "--start", "2020-01-01")
        assert out_of(*ways, tmp_path=tmp_path)["distance"].tolist() == [0, 1, 2]
        found = out_of(*ways, "--path-to", "2020-01-03", tmp_path=tmp_path)
        assert found["vertex"].str[:10].tolist() == ["2020-01-01", "2020-01-02", "2020-01-03"]
        for text in ("mill", "NaT", "2020-01-01T00:00Z"):
            error = fails(capsys, "bfs", path, "--start", text)
            assert error.endswith(f"--start: the ids of the file are dates, but {text!r} is none")
    error = fails(capsys, "bfs", path, "--start", "2020-01-01 13:00")
    assert error.endswith("'2020-01-01 13:00' is within one")


def test_between_blanks_empty_fields_are_written_out(roads, tmp_path):
    output = tmp_path / "out.txt"
    assert cpu("bfs", roads, "--start", "home", "--output", output) == 0
    assert output.read_text().splitlines()[:3] == [
        '"vertex" "distance" "predecessor"', '"bridge" 1 "home"', '"home" 0 ""'
    ]  # fmt: skip
    found = pd.read_csv(output, sep=r"\s+")
    assert found["predecessor"].isna().tolist() == [False, True, False, False]
