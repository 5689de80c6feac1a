"""The command line: label propagation of files, and what is said of mistakes."""

import argparse
import subprocess
import sys
import warnings
from contextlib import nullcontext

import pandas as pd
import pytest
from command_line import cpu, fails

from glp_rapids import bench
from glp_rapids.cli import COMMANDS, _with_options, edge_files, label_propagation, main
from glp_rapids.frames import files
from glp_rapids.propagation.options import Options

TRIANGLES = "src,dst\na,b\na,c\nb,c\nd,e\nd,f\ne,f\n"


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text(TRIANGLES)
    return path


def test_help_teaches_and_loads_nothing_heavy():
    code = (
        "import sys\nfrom glp_rapids.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'pandas', 'numba', 'matplotlib'} & sys.modules.keys()))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
    assert "glp-rapids fraud transactions.parquet --seeds" in done.stdout


@pytest.mark.parametrize(
    "command", ["demo", "label-propagation", "diversity", "fraud", "warmup", "doctor"]
)
def test_help_of_every_command_has_examples_or_codes(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0
    assert "examples:" in (text := capsys.readouterr().out) or "exit code:" in text


@pytest.mark.parametrize("words", [*COMMANDS, *(f"bench {name}" for name in bench.BENCHES)])
def test_no_help_shows_what_is_meant_for_argparse(words, capsys):
    with pytest.raises(SystemExit) as end:
        main([*words.split(), "--help"])
    assert end.value.code == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "object at 0x" not in text
    assert "option_strings" not in text
    assert "--no-header" not in text or "those with % and a blank, too" in text


def test_no_command_shows_the_help(capsys):
    assert main([]) == 2
    assert "start here:" in capsys.readouterr().out


def test_version(capsys):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capsys.readouterr().out.startswith("glp-rapids ")


def test_bench_goes_to_the_bench(capsys):
    with pytest.raises(SystemExit) as end:
        main(["bench", "--help"])
    assert end.value.code == 0
    assert "quality" in capsys.readouterr().out


def test_label_propagation_prints_csv_and_says_how_it_went(edges, capsys):
    assert cpu("label-propagation", edges) == 0
    out, err = capsys.readouterr()
    assert out == "vertex,partition\na,0\nb,0\nc,0\nd,1\ne,1\nf,1\n"
    assert "6 vertices, 6 edges, on the cpu" in err
    assert "2 communities, the largest of 3, 3 vertices; modularity 0.5000" in err


@pytest.mark.parametrize("options", [[], ["--memory-limit", "1GB"]])
def test_what_does_not_fit_a_gpu_is_read_on_the_host(edges, monkeypatch, options):
    read_graph, asked, ran = edge_files.read_graph, [], []

    def read(options, **how):
        asked.append(options.device)
        if options.device != "cpu":
            raise MemoryError("it does not fit")
        return read_graph(options, **how)

    monkeypatch.setattr(label_propagation, "choose", lambda device: "gpu")
    monkeypatch.setattr(Options, "check_limit", lambda options, device: None)  # there is no GPU
    monkeypatch.setattr(edge_files, "read_graph", read)
    monkeypatch.setattr(
        label_propagation, "_propagate", lambda graph, _, device: ran.append((graph.device, device))
    )
    monkeypatch.setattr(label_propagation, "_summarise", lambda *_: None)
    monkeypatch.setattr(edge_files, "put_out", lambda *_: None)
    assert main(["label-propagation", str(edges), *options]) == 0
    assert asked == (["cpu"] if options else [None, "cpu"])
    assert ran == [("cpu", "gpu")]


@pytest.mark.parametrize("name", ["out.csv", "deep/out.tsv", "out.csv.gz", "out.parquet", "o.txt"])
def test_output_is_written_as_the_ending_says(edges, tmp_path, name, capsys):
    path = tmp_path / name
    assert cpu("label-propagation", edges, "--output", path) == 0
    found = files.read_table(path, ["vertex"])
    assert found["partition"].tolist() == [0, 0, 0, 1, 1, 1]
    assert found["vertex"].tolist() == list("abcdef")


def test_columns_weights_and_direction(tmp_path, capsys):
    path = tmp_path / "calls.parquet"
    pd.DataFrame({"from": [1, 2], "to": [2, 3], "w": [9, 1]}).to_parquet(path)
    options = ("--source", "from", "--destination", "to", "--weight", "w")
    assert cpu("label-propagation", path, *options, "--directed") == 0
    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 4
    assert "3 vertices, 2 edges" in err


def test_a_file_without_header(tmp_path, capsys):
    path = tmp_path / "graph.txt"
    path.write_text("# from SNAP\n1\t2\n1 3\n2 3\n3 3\n")
    assert cpu("label-propagation", path, "--no-header") == 0
    out, err = capsys.readouterr()
    assert out == "vertex,partition\n1,0\n2,0\n3,0\n"
    assert "4 edges" in err  # the loop is one of them
    for option in ("--source", "--destination"):  # whose ends would not be swapped
        said = fails(capsys, "bfs", path, "--no-header", option, 1, "--start", 1)
        assert f"error: {option} is for a file with a line of column names" in said


def test_layered_and_overlapping(edges, tmp_path, capsys):
    path, chain = tmp_path / "layers.csv", tmp_path / "chain.csv"
    chain.write_text("src,dst\na,b\nb,c\nc,d\nd,e\ne,f\nf,g\ng,h\nh,i\n")
    layered = ("--variant", "layered", "--gamma", 0, 64, "--output", path)
    assert cpu("label-propagation", chain, *layered) == 0
    communities = pd.read_csv(path).groupby("gamma")["partition"].nunique()
    assert communities[0] < communities[64]
    assert f"gamma 64: {communities[64]} communities" in capsys.readouterr().err
    assert cpu("label-propagation", edges, "--variant", "speaker-listener") == 0
    out, err = capsys.readouterr()
    assert out.startswith("vertex,partition,frequency\n")
    assert "communities a vertex" in err


def test_an_earlier_result_is_a_start(edges, tmp_path, capsys):
    earlier, layers = tmp_path / "earlier.csv", tmp_path / "layers.csv"
    earlier.write_text("vertex,partition\na,7\nb,7\nd,7\ne,7\nf,7\nz,1\n")
    options = "--initial", earlier, "--output", earlier
    assert cpu("label-propagation", edges, *options) == 0
    assert earlier.read_text() == "vertex,partition\na,0\nb,0\nc,0\nd,0\ne,0\nf,0\n"
    layered = "--variant", "layered", "--gamma", 1, "--output", layers
    assert cpu("label-propagation", edges, *layered, "--initial", earlier) == 0
    assert cpu("label-propagation", edges, *layered, "--initial", layers) == 0
    capsys.readouterr()
    command = "label-propagation", edges, "--initial"
    assert "initial has no column 'vertex'" in fails(capsys, *command, edges)
    assert "no such file" in fails(capsys, *command, tmp_path / "none.csv")
    listener = earlier, "--variant", "speaker-listener"
    assert "--initial is not for --variant speaker-listener" in fails(capsys, *command, *listener)


@pytest.mark.parametrize(
    ("written", "ids"),
    [
        (["007", "7"], ["007", "7"]),
        (["NA", "b"], ["NA", "b"]),
        (["10", "-3"], [10, -3]),
        (["1.0", "2"], ["1.0", "2"]),
        (["99999999999999999999", "1"], ["99999999999999999999", "1"]),
    ],
)
def test_ids_come_back_as_they_are_written(tmp_path, written, ids):
    path = tmp_path / "ids.csv"
    path.write_text("src,dst\n" + "".join(f"{text},{text}\n" for text in written))
    told = pytest.warns(UserWarning, match="of which 7 and 7.0 are two")
    with told if "1.0" in written else nullcontext():
        assert files.read_table(path, ["src", "dst"])["src"].tolist() == ids


def test_an_empty_file_of_edges_gives_an_empty_result(tmp_path, capsys):
    path = tmp_path / "empty.csv"
    path.write_text("src,dst\n")
    assert cpu("label-propagation", path) == 0
    assert capsys.readouterr().out == "vertex,partition\n"


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        (TRIANGLES, ["--source", "payer"], "no column 'payer' (--source); its columns are: src, d"),
        (TRIANGLES, ["--weight", "w"], "no column 'w' (--weight)"),
        ("src,dst\na,b\n,c\n", [], "an id cannot be null: drop those rows\n"),
        ("src,dst,w\na,b,\n", ["--weight", "w"], "at row 0; drop those rows, or fill them\n"),
        ("src,dst,w\na,b,-1\n", ["--weight", "w"], "negative"),
        ("src,dst,w\na,b,x\n", ["--weight", "w"], "at row 0); write a number in each row\n"),
        ("1,2\n2,3\n", [], "read the file with --no-header\n"),
        ('src,dst\n"a,b\n', [], "cannot be read as a table"),
        ("", [], "cannot be read as a table"),
        (TRIANGLES, ["--gamma", "3"], "--gamma is for --variant layered"),
        (TRIANGLES, ["--variant", "layered", "--gamma", "-1"], "at least 0"),
        (TRIANGLES, ["--seed", "-1"], "error: --seed must be"),
        (TRIANGLES, ["--output", "x.json"], "x.json: the format is not clear"),
    ],
)
def test_bad_input_is_said_in_one_line(tmp_path, text, options, words, capsys):
    path = tmp_path / "edges.csv"
    path.write_text(text)
    assert words in fails(capsys, "label-propagation", path, "--device", "cpu", *options) + "\n"


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"src": [1.5], "dst": [2]}, "floats are no ids: write them as integers"),
        ({"src": [1.5, None], "dst": [2, 3]}, "drop those rows, then write them as integers (null"),
        ({"src": [1, "a"], "dst": [2, 3]}, "of one type: write them as texts"),
        ({"src": [1], "dst": ["a"]}, "write both as integers, or both as texts"),
    ],
)
def test_advice_is_for_a_file_not_for_a_frame(columns, words, monkeypatch, tmp_path, capsys):
    # Parquet keeps no mixed column, so the frame is one that a file is taken for
    (tmp_path / "edges.csv").write_text(TRIANGLES)
    monkeypatch.setattr(files, "read_table", lambda *_, **__: pd.DataFrame(columns))
    assert words in fails(capsys, "bfs", tmp_path / "edges.csv", "--start", 1, "--device", "cpu")


def test_a_warning_is_a_line_on_stderr(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("src,dst,w\na,b,1e-30\nb,c,1\n")
    words = ["label-propagation", str(path), "--weight", "w", "--device", "cpu"]
    command = [sys.executable, "-m", "glp_rapids.cli"]
    said = [
        subprocess.run([*command, *more, *words], capture_output=True, text=True, check=True).stderr
        for more in ((), ("--traceback",))
    ]
    line = next(line for line in said[0].splitlines() if "1e-30" in line)
    assert line.startswith("warning: weight: the smallest weight, 1e-30, counts as 0")
    assert "__main__.py" not in said[0]
    assert "__main__.py:5: UserWarning: weight" in said[1]


def test_who_records_warnings_of_a_command_still_does(tmp_path, capsys):
    path, usual = tmp_path / "edges.csv", warnings.formatwarning
    path.write_text("src,dst,w\na,b,1e-30\nb,c,1\n")
    with pytest.warns(UserWarning, match="the smallest weight"):
        assert cpu("label-propagation", path, "--weight", "w") == 0
    assert "warning:" not in capsys.readouterr().err
    with pytest.raises(UserWarning):  # as the filter of these tests says
        cpu("label-propagation", path, "--weight", "w")
    assert warnings.formatwarning is usual


def test_missing_file_and_unknown_format(tmp_path, capsys):
    assert "no such file" in fails(capsys, "label-propagation", tmp_path / "none.csv")
    assert "-: stdin is not read; name a file, into" in fails(capsys, "label-propagation", "-")
    (tmp_path / "edges.docx").touch()
    assert "use a file named" in fails(capsys, "label-propagation", tmp_path / "edges.docx")


def test_traceback_on_demand(tmp_path):
    with pytest.raises(FileNotFoundError):
        main(["--traceback", "label-propagation", str(tmp_path / "none.csv")])


def test_without_pyarrow_parquet_names_the_mend(edges, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(files, "has_pyarrow", lambda: False)
    output = tmp_path / "out.parquet"
    assert "pip install pyarrow" in fails(
        capsys, "label-propagation", edges, "--device", "cpu", "--output", output
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--sorce", "from"], "unrecognized arguments: --sorce from; did you mean --source?"),
        (["--undirected"], "unrecognized arguments: --undirected; did you mean --directed?"),
        (["--outptu=x.csv"], "unrecognized arguments: --outptu=x.csv; did you mean --output?"),
        (["--iterations", "9"], "unrecognized arguments: --iterations 9"),
        (["--gpu"], "unrecognized arguments: --gpu"),
        (["--targt", "1"], "unrecognized arguments: --targt 1"),
        (["--output=x.csv", "--tol=7"], "unrecognized arguments: --tol=7"),
        (["two.csv"], "unrecognized arguments: two.csv"),
    ],
)
def test_what_a_command_does_not_know(edges, words, said, capsys):
    with pytest.raises(SystemExit) as end:
        main(["label-propagation", str(edges), *words])
    assert end.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("usage: glp-rapids label-propagation ")
    assert error.endswith(f"label-propagation: error: {said}\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["monitor", "t.csv", "--seeds", "s.txt", "--days", "1", "--every", "1h", "--pause", "2"],
         "--pause is for the live page"),
        (["monitor", "t.csv", "--seeds", "s.txt", "--days", "1", "--every", "1h", "--host",
          "0.0.0.0"], "--host is for the live page"),
        (["compress", "--info", "g.glp", "--for", "size"], "--for changes nothing with --info"),
        (["compress", "--info", "g.glp", "--weight", "w"], "--weight changes nothing with --info"),
        (["estimate", "--sizes", "9", "20", "--no-header"], "--no-header is for a file"),
    ],
)  # fmt: skip
def test_what_would_change_nothing_is_refused(words, said, capsys):
    assert main(words) == 2
    assert f": error: {said}" in capsys.readouterr().err


def test_what_to_leave_out_is_an_option():
    parser = argparse.ArgumentParser()
    parser.add_argument("--device")
    said = "device='gpu': there is none; take 'cpu', or leave device=None; leave vertices out"
    parser.add_argument("--memory-limit")
    raised = "more than there are; raise memory_limit, or raise it"
    assert _with_options(raised, parser) == raised.replace("memory_limit", "--memory-limit")
    assert _with_options(said, parser) == (
        "--device='gpu': there is none; take 'cpu', or leave --device out; leave vertices out"
    )


def test_a_graph_has_no_header(tmp_path, capsys):
    (tmp_path / "g.csv").write_text("src,dst\n0,1\n")
    assert main(["compress", str(tmp_path / "g.csv"), str(tmp_path / "g.glp")]) == 0
    assert main(["bfs", str(tmp_path / "g.glp"), "--no-header", "--start", "0"]) == 2
    assert "is no table; leave --no-header out" in capsys.readouterr().err
    frame = pd.DataFrame({"src": [0], "dst": [1]})
    sparse = pytest.importorskip("scipy.sparse")
    sparse.save_npz(tmp_path / "m.npz", sparse.csr_array([[0, 1], [1, 0]]))
    assert "is no table; leave --no-header out" in fails(
        capsys, "bfs", tmp_path / "m.npz", "--no-header", "--start", 0
    )
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    (tmp_path / "folder").mkdir()
    frame.to_parquet(tmp_path / "folder" / "g.PARQUET")
    frame.to_parquet(tmp_path / "folder" / "g.parquet")
    for path in (tmp_path / "folder", *(tmp_path / "folder").iterdir()):
        for words in ("bfs", path, "--start", 0), ("estimate", path), ("diversity", path):
            said = fails(capsys, *words, "--no-header")
            mend = "whose columns have names; leave --no-header out"
            assert said.endswith(f"error: {path} is Parquet, {mend}")
    assert main(["bfs", str(tmp_path / "g.glp"), "--source", "a", "--start", "0"]) == 2
    assert "--source= does not apply to a glp_rapids.CompressedGraph" in capsys.readouterr().err
