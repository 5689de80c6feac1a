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
        (["--variant", "seeded", "--seeds", "odd.csv"],
         "odd.csv: none of its ids is a vertex of the graph: 'nobody' is not"),
        (["--variant", "seeded", "--seeds", "edges.csv"],
         "edges.csv: has no column 'vertex'; its columns are: src, dst; write vertex,label on its"),
        (["--variant", "seeded", "--seeds", "twice.csv"], "has 2 columns named 'label'"),
    ],
)  # fmt: skip
def test_seeds_that_cannot_be_are_refused(edges, tmp_path, words, wrong, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "seeds.csv").write_text("vertex,label\na,red\n")
    (tmp_path / "odd.csv").write_text("vertex,label\nnobody,red\n")
    (tmp_path / "twice.csv").write_text("vertex,label,label\na,red,blue\n")
    assert wrong in fails(capsys, "label-propagation", edges, *words)


def seeded(tmp_path, edges, seeds):
    command, *variant = SEEDED
    return command, edges, *variant, "--seeds", tmp_path / seeds


def test_labels_are_texts_unless_all_are_integers(edges, tmp_path, capsys):
    for labels in (["02139", "2139"], ["1.50", "1.5"], ["true", "TRUE"], ["1", "2"]):
        rows = "".join(f"{vertex},{label}\n" for vertex, label in zip("af", labels, strict=True))
        (tmp_path / "seeds.csv").write_text("vertex,label\n" + rows)
        assert cpu(*seeded(tmp_path, edges, "seeds.csv")) == 0
        out = capsys.readouterr().out
        assert {row.split(",")[1] for row in out.splitlines()[1:]} == set(labels)


def test_partitions_of_an_earlier_result_are_texts_too(edges, tmp_path, capsys):
    words = "--initial", tmp_path / "before.csv"
    for names in ("00", "0"), ("a", "b"):
        rows = "".join(f"{one},{names[one > 'c']}\n" for one in "abcdef")
        (tmp_path / "before.csv").write_text("vertex,partition\n" + rows)
        assert cpu("label-propagation", edges, *words) == 0
        assert "2 communities" in capsys.readouterr().err


def test_seeds_in_parquet_with_an_index(edges, tmp_path, capsys):
    seeds = pd.DataFrame({"vertex": ["a", "f"], "label": ["red", "blue"]})
    seeds.set_index("vertex").to_parquet(tmp_path / "seeds.parquet")
    assert cpu(*seeded(tmp_path, edges, "seeds.parquet")) == 0
    expected = glp_rapids.seeded_label_propagation(EDGES, seeds, device="cpu")
    assert capsys.readouterr().out == expected.to_csv(index=False)


def test_a_seed_that_is_no_integer_is_shown(tmp_path, capsys):
    (tmp_path / "edges.csv").write_text("src,dst\n1,2\n2,3\n")
    (tmp_path / "seeds.csv").write_text("vertex,label\n1,red\n02,blue\n")
    said = fails(capsys, *seeded(tmp_path, tmp_path / "edges.csv", "seeds.csv"))
    assert "the ids of the edges are integers, but '02' at row 1 of the seeds is none" in said


def test_no_seeds_are_no_labels(edges, tmp_path, capsys):
    (tmp_path / "seeds.csv").write_text("vertex,label\n")
    assert cpu(*seeded(tmp_path, edges, "seeds.csv")) == 0
    out, said = capsys.readouterr()
    assert "labels of 0 seeds come to 0 of 6 vertices: none" in said
    assert all(row.split(",")[1] == "" for row in out.splitlines()[1:])


def test_seeds_that_are_no_vertex_are_left_out_and_counted(edges, tmp_path, capsys):
    (tmp_path / "seeds.csv").write_text("vertex,label\nnobody,green\na,red\nf,blue\n")
    assert cpu(*seeded(tmp_path, edges, "seeds.csv")) == 0
    out, said = capsys.readouterr()
    expected = glp_rapids.seeded_label_propagation(EDGES, {"a": "red", "f": "blue"}, device="cpu")
    assert out == expected.to_csv(index=False)
    assert "1 further seeds are no vertex of the graph" in said
