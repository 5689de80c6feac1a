"""``glp-rapids estimate``, and --memory-limit where labels are propagated."""

import io

import numpy as np
import pandas as pd
import pytest
from graphs import power_law_pairs

from glp_rapids import as_graph, compress, estimate_memory
from glp_rapids.cli import main

N = 3_000


@pytest.fixture(scope="module")
def edges(tmp_path_factory):
    path = tmp_path_factory.mktemp("edges") / "edges.csv"
    pd.DataFrame(power_law_pairs(N, 60_000, 1), columns=["src", "dst"]).to_csv(path, index=False)
    return path


def out(capsys, *arguments):
    assert main([*map(str, arguments)]) == 0
    return pd.read_csv(io.StringIO(capsys.readouterr().out))


def fails(capsys, *arguments):
    """Run and give the one line that says what is wrong."""
    assert main([*map(str, arguments)]) == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_an_estimate_of_a_file_is_that_of_its_graph(edges, tmp_path, capsys):
    graph = as_graph(pd.read_csv(edges), device="cpu")
    expected = estimate_memory(graph, memory_limit="2MB")
    assert main(["estimate", str(edges), "--memory-limit", "2MB"]) == 0
    found, said = capsys.readouterr()
    found = pd.read_csv(io.StringIO(found))
    assert "packed ways are of what `glp-rapids compress` makes of it, not of the file as" in said
    pd.testing.assert_frame_equal(found.astype(expected.dtypes), expected)
    compress(graph).save(tmp_path / "graph.glp")
    words = ["--device", "cpu", "--algorithm", "speaker_listener"]
    assert main(["estimate", str(tmp_path / "graph.glp"), "--memory-limit", "2MB", *words]) == 0
    found, said = capsys.readouterr()
    found = pd.read_csv(io.StringIO(found))
    assert "plain ways are of a table of edges, not of the file as it is" in said
    assert found["way"].tolist() == ["plain", "packed", "streamed packed", "streamed plain"]


def test_an_estimate_of_sizes(capsys):
    found = out(capsys, "estimate", "--sizes", 10**6, 10**7, "--memory-limit", "1GB", "--mapped",
                "--directed", "--weight", "float64", "--bits", 5)  # fmt: skip
    expected = estimate_memory((10**6, 10**7), memory_limit="1GB", mapped=True, directed=True,
                               weight="float64", bits_per_entry=5)  # fmt: skip
    pd.testing.assert_frame_equal(found.astype(expected.dtypes), expected)


@pytest.mark.parametrize(("words", "gammas"), [((), [1.0]), (("--gamma", 0, 1), [0.0, 1.0])])
def test_an_estimate_of_layers_is_of_those_that_the_run_makes(words, gammas, capsys):
    found = out(capsys, "estimate", "--sizes", 10**6, 10**7, "--algorithm",
                "layered_label_propagation", *words)  # fmt: skip
    expected = estimate_memory((10**6, 10**7), "layered_label_propagation", gammas=gammas)
    pd.testing.assert_frame_equal(found.astype(expected.dtypes), expected)


def test_an_algorithm_is_named_as_commands_are_or_as_functions_are(capsys):
    words = "estimate", "--sizes", 10**6, 10**7, "--algorithm"
    for name in ("label-propagation", "layered-label-propagation", "speaker-listener"):
        found = out(capsys, *words, name)
        pd.testing.assert_frame_equal(found, out(capsys, *words, name.replace("-", "_")))


@pytest.mark.parametrize("variant", ["classic", "layered", "speaker-listener"])
def test_communities_under_a_limit_are_the_same(edges, capsys, variant):
    command = "label-propagation", edges, "--device", "cpu", "--variant", variant
    expected = out(capsys, *command)
    assert main([*map(str, command), "--memory-limit", "1.2MB",
                 "--way", "streamed plain"]) == 0  # fmt: skip
    found, said = capsys.readouterr()
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(found)), expected)
    assert ", lists streamed plain, " in said
    assert said.count(" KiB") + said.count(" MiB") == 1
    assert np.array_equal(out(capsys, *command, "--way", "packed"), expected)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--memory-limit", "40XB"), "--memory-limit must be bytes"),
        (("--memory-limit", "0"), "--memory-limit must be at least 1 byte"),
        (("--memory-limit", "100KB"), "too little to propagate labels over its"),
        (("--memory-limit", "100KB"), "(graph: --memory-limit=100,000 bytes is"),
        (("--memory-limit", "500TB"), "bytes that the cpu has"),
    ],
)
def test_bad_limits_are_said_in_one_line(edges, arguments, words, capsys):
    assert words in fails(capsys, "label-propagation", edges, "--device", "cpu", *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "name a file of edges, or give --sizes"),
        (("edges.csv", "--sizes", 1, 2), "name a file of edges, or give --sizes"),
        (("none.csv",), "no such file"),
        (("--sizes", 1, 2, "--algorithm", "bfs"), "algorithm must be one of"),
        (("--sizes", 1, 2, "--memory-limit", "1X"), "--memory-limit must be"),
        (("--sizes", -1, 2), "vertices must be at least 0"),
        (("--sizes", 1, 2, "--gamma", 1), "--gamma is for --algorithm layered_label_propagation"),
    ],
)
def test_bad_input_is_said_in_one_line(arguments, words, capsys):
    assert words in fails(capsys, "estimate", *arguments)


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("label-propagation", "--memory-limit", "abc"), "--memory-limit must be bytes"),
        (("label-propagation", "--memory-limit", "500TB", "--device", "cpu"), "that the cpu has"),
        (("label-propagation", "--seed", "-1"), "--seed must be in 0..4294967295, not -1"),
        (("label-propagation", "--variant", "layered", "--gamma", "-1"), "--gamma must be finite"),
        (("label-propagation", "--variant", "layered", "--gamma", "1", "1"), "holds 1.0 twice"),
        (("label-propagation", "--variant", "speaker-listener", "--initial", "found.csv"),
         "--initial is not for --variant speaker-listener"),
        (("label-propagation", "--memory-limit", "1GB", "--devices", "cpu", "cpu"), "leave it out"),
        (("label-propagation", "--way", "packed", "--devices", "cpu", "cpu"), "--way must be"),
        (("label-propagation", "--way", "hybrid", "--device", "cpu"), "--way must be 'plain' or"),
        (("label-propagation", "--initial", "short.csv"), "initial has no column 'partition'"),
        (("diversity", "--k", "2", "--top", "0"), "--top must be at least 1, not 0"),
        (("diversity", "--k", "1", "--model", "truss"), "at least 2 for --model truss, not 1"),
        (("diversity", "--memory-limit", "abc"), "--memory-limit must be bytes"),
        (("bfs", "--start", "1", "--depth-limit", "-1"), "--depth-limit must be at least 0"),
        (("sssp", "--start", "1", "--cutoff", "-1"), "--cutoff must be at least 0"),
        (("estimate", "--algorithm", "nope"), "--algorithm must be one of"),
        (("estimate", "--algorithm", "propagate"), "program must be an instance"),
        (("estimate", "--memory-limit", "abc"), "--memory-limit must be bytes"),
        (("estimate", "--bits", "0"), "bits_per_entry must be in (0, 64]"),
    ],
)  # fmt: skip
def test_an_option_is_refused_before_a_long_file_is_read(command, words, tmp_path, capsys):
    (tmp_path / "edges.csv").write_bytes(b"src,dst\n\xff,1\n")  # which reading would refuse
    (tmp_path / "found.csv").write_bytes(b"\xff")
    (tmp_path / "short.csv").write_bytes(b"vertex,label,x\n1,2,3\n")
    places = [tmp_path / word if word.endswith(".csv") else word for word in command[1:]]
    assert words in fails(capsys, command[0], tmp_path / "edges.csv", *places)
    start = ["--start", "1"] if command[0] in ("bfs", "sssp") else []
    assert "is no text in UTF-8" in fails(capsys, command[0], tmp_path / "edges.csv", *start)


def test_a_file_is_mapped_or_not(edges, capsys):
    assert "--mapped is for --sizes" in fails(capsys, "estimate", edges, "--mapped")
