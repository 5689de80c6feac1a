"""``glp-rapids diversity``: columns, files, summary, and what is said of bad input."""

import pandas as pd
import pytest

from glp_rapids import top_structural_diversity
from glp_rapids.cli import main

# ann has three friends who know each other, two who do, and one alone; dan has them in one clump
FRIENDS = "src,dst\n" + "".join(
    f"{a},{b}\n"
    for circle in (("ann", "bob", "cy", "dan"), ("ann", "eve", "fay"), ("ann", "gus"))
    for i, a in enumerate(circle)
    for b in circle[i + 1 :]
)


@pytest.fixture
def friends(tmp_path):
    path = tmp_path / "friends.csv"
    path.write_text(FRIENDS)
    return path


def cpu(*arguments):
    return main(["diversity", *map(str, arguments), "--device", "cpu"])


def fails(capsys, *arguments):
    """Run and give the one line that says what is wrong."""
    assert cpu(*arguments) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    assert error.startswith("glp-rapids diversity: error: ")
    return error


@pytest.mark.parametrize(
    ("options", "scores"),
    [
        (("--k", 1), [3, 1, 1, 1, 1, 1, 1]),
        (("--k", 2), [2, 1, 1, 1, 1, 1, 0]),
        (("--k", 3, "--model", "component"), [1, 1, 1, 1, 0, 0, 0]),
        (("--k", 2, "--model", "core"), [1, 1, 1, 1, 0, 0, 0]),
        (("--k", 2, "--model", "truss"), [2, 1, 1, 1, 1, 1, 0]),
        (("--k", 3, "--model", "truss"), [1, 1, 1, 1, 0, 0, 0]),
    ],
)
def test_scores_go_to_stdout_and_the_summary_beside(friends, options, scores, capsys):
    assert cpu(friends, *options) == 0
    out, err = capsys.readouterr()
    names = ["ann", "bob", "cy", "dan", "eve", "fay", "gus"]
    rows = [f"{name},{score}" for name, score in zip(names, scores, strict=True)]
    assert out.splitlines() == ["vertex,score", *rows]
    assert "7 vertices, 10 edges, on the cpu" in err
    having = sum(score > 0 for score in scores)
    assert f"found       {having} of 7 vertices have friends in a " in err
    assert err.splitlines()[-1].startswith("run         7 vertices evaluated, 0 pruned, in ")


def test_every_k_without_k(friends, capsys):
    assert cpu(friends) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[:5] == ["vertex,k,score", "ann,1,3", "ann,2,2", "ann,3,1", "bob,1,1"]
    assert out[-1] == "gus,1,1"


def test_the_best_and_their_circles(friends, tmp_path, capsys):
    best, circles = tmp_path / "best.csv", tmp_path / "deep" / "circles.parquet"
    options = ("--k", 2, "--model", "truss", "--top", 2, "--output", best, "--contexts", circles)
    assert cpu(friends, *options) == 0
    out, err = capsys.readouterr()
    assert not out
    assert best.read_text() == "vertex,score\nann,2\nbob,1\n"
    found = pd.read_parquet(circles)
    rows = [f"{row.vertex} {row.context} {row.member}" for row in found.itertuples()]
    assert rows == [
        *("ann 0 bob", "ann 0 cy", "ann 0 dan", "ann 1 eve", "ann 1 fay"),
        *("bob 0 ann", "bob 0 cy", "bob 0 dan"),
    ]
    assert "one in 2" in err
    assert f"written     {circles} (8 rows: vertex, context, member)" in err


def test_the_same_as_the_library(tmp_path, capsys):
    path = tmp_path / "graph.txt"
    edges = [(a, b) for a in range(12) for b in range(a) if (a * b) % 5 < 2]
    path.write_text("# pairs\n" + "".join(f"{a} {b}\n" for a, b in edges))
    options = ("--k", 2, "--top", 4, "--devices", 0, 1, "--memory-limit", 1 << 24)
    assert cpu(path, "--no-header", *options) == 0
    out = capsys.readouterr().out
    frame = pd.DataFrame(edges, columns=["src", "dst"])
    expected = top_structural_diversity(frame, 4, 2, contexts=False, device="cpu")
    assert out == expected.to_csv(index=False)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--k", "0"], "k must be"),
        (["--k", "1", "--model", "truss"], "k must be"),
        (["--k", "2", "--top", "0"], "error: --top must be"),
        (["--top", "3"], "say which with --k"),
        (["--k", "2", "--contexts", "c.csv"], "say how many with --top"),
        (["--k", "2", "--source", "payer"], "no column 'payer' (--source)"),
        (["--k", "2", "--output", "x.json"], "x.json: the format is not clear"),
        (["--k", "2", "--top", "1", "--contexts", "x.json"], "x.json: the format is not clear"),
        (["--k", "2", "--memory-limit", "0"], "--memory-limit must be"),
    ],
)
def test_bad_input_is_said_in_one_line(friends, options, words, capsys):
    assert words in fails(capsys, friends, *options)


def test_a_missing_file(tmp_path, capsys):
    assert "no such file" in fails(capsys, tmp_path / "none.csv", "--k", 2)
