"""``glp-rapids communities``: what the function finds, in files, and what is refused."""

import subprocess
import sys

import pandas as pd
import pytest
from command_line import cpu, fails

from glp_rapids import multilevel_label_propagation
from glp_rapids.cli import edge_files

CLIQUES = pd.DataFrame({
    "src": ["a", "a", "b", "d", "d", "e", "c"],
    "dst": ["b", "c", "c", "e", "f", "f", "d"],
    "calls": [1, 2, 3, 4, 5, 6, 7],
})  # fmt: skip


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.csv"
    CLIQUES.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("words", "options"),
    [
        ([], {}),
        (["--weight", "calls"], {"weight": "calls"}),
        (["--resolution", "3"], {"resolution": 3}),
        (["--objective", "cpm", "--resolution", ".5"], {"objective": "cpm", "resolution": 0.5}),
        (["--no-refine", "--seed", "3"], {"refine": False, "seed": 3}),
        (["--memory-limit", "1GB"], {}),
    ],
)
def test_communities_are_those_of_the_function(edges, words, options, capsys):
    expected = multilevel_label_propagation(CLIQUES, device="cpu", **options)
    assert cpu("communities", edges, *words) == 0
    out, said = capsys.readouterr()
    assert out == expected.to_csv(index=False)
    assert f"found       {expected['partition'].nunique()} communities, the largest of " in said
    objective = options.get("objective", "modularity")
    assert f"; {objective} {expected.attrs['glp'][objective]:.4f}" in said


def test_the_hierarchy_has_a_file_of_its_own(edges, tmp_path, capsys):
    found, tree = tmp_path / "found.parquet", tmp_path / "tree.csv"
    assert cpu("communities", edges, "--levels", tree, "--output", found) == 0
    assert not capsys.readouterr().out
    whole = multilevel_label_propagation(CLIQUES, levels=True, device="cpu")
    assert tree.read_text() == whole.to_csv(index=False)
    last = whole[whole["level"] == whole["level"].max()].drop(columns="level")
    pd.testing.assert_frame_equal(
        pd.read_parquet(found), last.reset_index(drop=True), check_dtype=False
    )


def test_a_file_without_edges_has_no_communities(tmp_path, capsys):
    path = tmp_path / "none.csv"
    path.write_text("src,dst\n")
    assert cpu("communities", path) == 0
    assert "found       0 communities\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--resolution", "0"], "--resolution must be"),
        (["--resolution", "nan"], "--resolution must be"),
        (["--memory-limit", "40XB"], "--memory-limit must be"),
        (["--memory-limit", "1"], "too little"),
        (["--weight", "none"], "no column 'none'"),
        (["--seed", "-1"], "--seed must be"),
        (["--levels", "tree.json"], "tree.json: the format is not clear"),
    ],
)
def test_bad_input_is_said_in_one_line(edges, words, said, capsys):
    assert said in fails(capsys, "communities", edges, "--device", "cpu", *words)


@pytest.mark.parametrize("words", [["--resolution", "0"], ["--seed", "-1"]])
def test_options_are_checked_before_a_long_file_is_read(edges, words, monkeypatch, capsys):
    monkeypatch.setattr(edge_files, "read_graph", None)
    assert f"{words[0]} must be" in fails(capsys, "communities", edges, *words)


def test_python_runs_the_command_line_by_the_name_of_the_package(edges):
    words = [sys.executable, "-m", "glp_rapids", "communities", str(edges), "--device", "cpu"]
    found = subprocess.run(words, capture_output=True, text=True, check=True)
    assert found.stdout.startswith("vertex,partition\na,0\n")
