"""``glp-rapids measure`` and labels spread from seeds: what functions find, and what is refused."""

import pandas as pd
import pytest
from command_line import cpu, fails

import glp_rapids
from glp_rapids.cli import measure

EDGES = pd.DataFrame({
    "src": ["a", "a", "b", "c", "d", "e", "e", "b"],
    "dst": ["b", "c", "c", "d", "e", "f", "e", "a"],
})  # fmt: skip
WAYS = [
    ("core-number", [], {}),
    ("core-number", ["--memory-limit", "1GB"], {}),
    ("triangles", [], {}),
    ("trussness", [], {}),
    ("betweenness", [], {}),
    ("betweenness", ["--k", "3", "--seed", "5"], {"k": 3, "seed": 5}),
    ("betweenness", ["--directed"], {"directed": True}),
]


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.csv"
    EDGES.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(("what", "words", "options"), WAYS)
def test_what_is_measured_is_what_the_function_finds(edges, what, words, options, capsys):
    function, column = measure.MEASURES[what]
    expected = getattr(glp_rapids, function)(EDGES, device="cpu", **options)
    assert cpu("measure", edges, "--of", what, *words) == 0
    out, said = capsys.readouterr()
    assert out == expected.to_csv(index=False)
    assert f"found       {column}: at most {expected[column].max():,.6g}, on average" in said


def test_all_that_can_be_measured_is_tried():
    assert {what for what, _, _ in WAYS} == set(measure.MEASURES)


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["--of", "triangles", "--k", "3"], "--k is for --of betweenness, not triangles"),
        (["--of", "trussness", "--directed"], "--directed is for --of betweenness, not trussness"),
        (["--of", "betweenness", "--memory-limit", "1GB"], "--memory-limit is not for --of"),
        (["--of", "betweenness", "--k", "0"], "k must be at least 1, not 0"),
    ],
)
def test_options_without_effect_are_refused(edges, words, wrong, capsys):
    assert wrong in fails(capsys, "measure", edges, *words)


SEEDED = "label-propagation", "--variant", "seeded"


@pytest.mark.parametrize("ids", ["texts", "integers", "texts, seeds integers"])
def test_labels_spread_from_a_table_of_seeds(tmp_path, ids, capsys):
    edges, seeds = EDGES, pd.DataFrame({"vertex": ["a", "f"], "label": ["red", "blue"]})
    if ids != "texts":
        numbers = dict(zip("abcdef", range(1, 7), strict=True))
        edges = edges.replace(numbers).infer_objects()
        seeds["vertex"] = seeds["vertex"].map(numbers)
    if ids == "texts, seeds integers":
        more = pd.DataFrame({"src": ["x"], "dst": ["6"]})
        edges = pd.concat([edges.astype(str), more], ignore_index=True)
    known, path = seeds, tmp_path / "edges.csv"
    if ids == "texts, seeds integers":
        known = seeds.assign(vertex=seeds["vertex"].astype(str))
    expected = glp_rapids.seeded_label_propagation(edges, known, device="cpu")
    edges.to_csv(path, index=False)
    seeds.to_csv(tmp_path / "seeds.csv", index=False)
    command, *variant = SEEDED
    assert cpu(command, path, *variant, "--seeds", tmp_path / "seeds.csv") == 0
    out, said = capsys.readouterr()
    assert out == expected.to_csv(index=False)
    reached = expected["label"].notna().sum()
    assert f"found       labels of 2 seeds come to {reached} of {len(expected)} vertices" in said


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        (["--variant", "seeded"], "--variant seeded needs --seeds, a table of vertex and label"),
        (["--seeds", "seeds.csv"], "--seeds is for --variant seeded, not classic"),
        (["--variant", "seeded", "--seeds", "seeds.csv", "--initial", "seeds.csv"],
         "--initial is not for --variant seeded"),
        (["--variant", "seeded", "--seeds", "seeds.csv", "--scheduler", "tcp://nowhere:1"],
         "--scheduler is not for --variant seeded; call glp_rapids.dask.seeded"),
        (["--variant", "seeded", "--seeds", "odd.csv"], "'nobody'"),
        (["--variant", "seeded", "--seeds", "edges.csv"], "seeds have no column 'vertex'"),
    ],
)  # fmt: skip
def test_seeds_that_cannot_be_are_refused(edges, tmp_path, words, wrong, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seeds.csv").write_text("vertex,label\na,red\n")
    (tmp_path / "odd.csv").write_text("vertex,label\nnobody,red\n")
    assert wrong in fails(capsys, "label-propagation", edges, *words)
