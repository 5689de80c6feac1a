"""Bench tradeoff: the grid, the peers, the picture."""

from functools import partial

import bench_tables
import pytest

from glp_rapids.bench import tradeoff

tables_of = partial(bench_tables.tables_of, "tradeoff")
GRID = ("--classes", "2", "4", "--explore", "0", "3", "--repeats", "1", "--device", "cpu")


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_a_grid_and_its_picture(tmp_path, ending):
    picture = tmp_path / f"tradeoff.{ending}"
    tables = tables_of("--graphs", "rmat-6-4", "web-500", *GRID, "--plot", str(picture))
    rows = tables["Time against modularity"]
    assert [(row["graph"], row["explore"], row["classes"]) for row in rows] == [
        (name, explore, classes)
        for name in ("rmat-6-4", "web-500")
        for explore in (0, 3)
        for classes in (2, 4)
    ]
    assert all(row["seconds"] > 0 and -0.5 <= row["modularity"] <= 1 for row in rows)
    assert len(tables) == 1  # nobody else ran on these graphs
    start = picture.read_bytes()[:200]
    assert b"PNG" in start if ending == "png" else b"<?xml" in start


@pytest.mark.parametrize("name", [*tradeoff.PEERS, "lfr-100000-mu0.3"])
def test_peers_stand_in_the_picture(tmp_path, name):
    rows = [
        {"graph": name, "explore": explore, "classes": classes, "seconds": 0.01 * classes,
         "modularity": 0.9}
        for explore in (0, 10) for classes in (4, 8)
    ]  # fmt: skip
    tradeoff.draw(rows, tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text()
    for peer in tradeoff.PEERS.get(name, ()):
        assert f"<!-- {peer.name} -->" in text


def test_the_default_is_marked_and_peers_are_listed(monkeypatch):
    monkeypatch.setitem(tradeoff.PEERS, "rmat-5-4", (tradeoff.Peer("other", 1.0, None, "here"),))
    tables = tables_of("--graphs", "rmat-5-4", "--classes", "32", "--explore", "10", "--repeats",
                       "1", "--device", "cpu")  # fmt: skip
    rows, peers = tables.values()
    assert [row["default"] for row in rows] == ["<--"]
    assert peers == [
        {"graph": "rmat-5-4", "peer": "other", "seconds": 1.0, "modularity": None, "where": "here"}
    ]


def test_a_picture_that_cannot_be_saved_is_refused_first(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.png"):
        tables_of(*GRID, "--plot", "a.txt")
    with pytest.raises(ValueError, match="no folder"):
        tables_of(*GRID, "--plot", str(tmp_path / "none" / "a.png"))
