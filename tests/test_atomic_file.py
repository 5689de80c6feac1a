"""Files are replaced by whole ones or stay as they were: links, modes, devices, faults, kills."""

import json
import os
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from glp_rapids import CompressedGraph, as_graph, compress
from glp_rapids.cli import main
from glp_rapids.common import atomic_file

EDGES = "src,dst\na,b\nb,c\n"
OLD = b"what was there"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("edges.csv").write_text(EDGES)
    Path("old.csv").write_bytes(OLD)
    return tmp_path


def write(path, content=b"new"):
    with atomic_file.replacing(Path(path)) as file:
        file.write(content)


def fails(capsys, *arguments):
    assert main([*map(str, arguments), "--device", "cpu"]) == 2
    return capsys.readouterr().err.splitlines()[-1]


LP = ("label-propagation", "edges.csv", "--output")
FRAUD = ("fraud", "edges.csv", "--source", "src", "--destination", "dst", "--seeds", "old.csv")
DIVERSITY = ("diversity", "edges.csv", "--k", "1", "--top", "1")


def save(path):
    compress(as_graph(pd.DataFrame({"src": ["a"], "dst": ["b"]}), device="cpu")).save(path)


@pytest.mark.parametrize("how", [write, save, lambda path: main([*LP, str(path)])])
def test_mode_owner_and_links_are_kept(folder, how):
    os.chmod("old.csv", 0o640)
    if os.getuid() == 0:
        os.chown("old.csv", 12, 34)
    os.symlink("old.csv", "one.csv")
    Path("deep").mkdir()
    os.symlink("../one.csv", "deep/two.csv")
    before = os.stat("old.csv")
    how("deep/two.csv")
    assert os.readlink("deep/two.csv") == "../one.csv"
    assert os.readlink("one.csv") == "old.csv"
    after = os.stat("old.csv")
    assert Path("old.csv").read_bytes() != OLD
    assert (after.st_mode, after.st_uid, after.st_gid) == (
        before.st_mode,
        before.st_uid,
        before.st_gid,
    )
    os.symlink("none.csv", "three.csv")  # leads to nothing yet
    how("three.csv")
    assert Path("three.csv").is_symlink()
    kept = os.umask(0o027)
    how("mine.csv")
    os.umask(kept)
    assert stat.S_IMODE(os.stat("mine.csv").st_mode) == 0o640
    here = {"edges.csv", "old.csv", "one.csv", "deep", "three.csv", "none.csv", "mine.csv"}
    assert set(os.listdir()) == here


@pytest.mark.parametrize("how", [write, save])
def test_what_is_no_file_is_not_replaced(folder, how, capsys):
    os.mkfifo("pipe.csv")
    Path("folder.csv").mkdir()
    os.symlink("/dev/null", "null.csv")
    os.symlink("loop.csv", "loop.csv")
    for name, words in (("pipe", "a pipe"), ("folder", "a folder"), ("null", "a device")):
        with pytest.raises(FileExistsError, match=f"{name}.csv: is {words}"):
            how(f"{name}.csv")
        for command in (LP, ("compress", "edges.csv")):
            assert f"error: {name}.csv: is {words}" in fails(capsys, *command, f"{name}.csv")
    assert Path("null.csv").is_char_device()
    with pytest.raises(OSError, match="loop"):
        how("loop.csv")
    for command in (LP, ("compress", "edges.csv")):
        assert "loop.csv: " in fails(capsys, *command, "loop.csv")
        assert "is no folder" in fails(capsys, *command, "edges.csv/out.csv")


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ((*LP, "edges.csv"), "edges.csv: --output is the file of EDGES as well"),
        ((*LP, "link.csv"), "link.csv: --output is the file of EDGES"),
        ((*LP, "hard.csv"), "hard.csv: --output is the file of EDGES"),
        (("compress", "edges.csv", "edges.csv"), "edges.csv: OUT is the file of EDGES"),
        (("compress", "web.graph", "web.properties"), "OUT is the file of the properties of EDGES"),
        (("compress", "edges.csv", "-"), "OUT -: is not a file"),
        ((*FRAUD, "--scores", "edges.csv"), "--scores is the file of TRANSACTIONS"),
        ((*FRAUD, "--clusters", "old.csv"), "--clusters is the file of --seeds"),
        ((*FRAUD, "--clusters", "x.csv", "--output", "./x.csv"), "is the file of --output"),
        ((*FRAUD, "--output", "-"), "this has to be a file; name"),
        ((*DIVERSITY, "--output", "x.csv", "--contexts", "deep/../x.csv"), "is the file of"),
        ((*DIVERSITY, "--output", "x.csv", "--contexts", "dangling.csv"), "is the file of"),
        ((*DIVERSITY, "--contexts", "-"), "this has to be a file; name"),
    ],
)
def test_nothing_is_written_over_what_is_read_or_written(folder, command, words, capsys):
    os.symlink("edges.csv", "link.csv")
    os.symlink("x.csv", "dangling.csv")
    os.link("edges.csv", "hard.csv")
    Path("deep").mkdir()
    for name in ("web.graph", "web.properties"):
        Path(name).touch()
    assert words in fails(capsys, *command)
    assert Path("edges.csv").read_text() == EDGES
    assert Path("old.csv").read_bytes() == OLD
    assert not Path("x.csv").exists()


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_stdout_can_be_named(folder, name, capsys):
    assert main([*LP, name, "--device", "cpu"]) == 0
    assert capsys.readouterr().out == "vertex,partition\na,0\nb,0\nc,0\n"


def test_the_graph_may_be_the_one_in_the_file(folder):
    save("graph.glp")
    graph = CompressedGraph.open("graph.glp", device="cpu")
    graph.save("graph.glp")
    assert CompressedGraph.open("graph.glp", device="cpu").number_of_edges == 2


def test_the_error_of_whoever_writes_comes_through(folder):
    with pytest.raises(ZeroDivisionError), atomic_file.replacing(Path("old.csv")) as file:
        file.write(b"half" + bytes(1 // 0))
    with (
        pytest.raises(FileNotFoundError, match="elsewhere"),
        atomic_file.replacing(Path("old.csv")),
    ):
        np.fromfile("elsewhere")
    assert Path("old.csv").read_bytes() == OLD
    assert sorted(os.listdir()) == ["edges.csv", "old.csv"]
    with pytest.raises(FileNotFoundError, match="there is no folder none; make it first"):
        write("none/x")


@pytest.mark.parametrize("name", ["x.csv.gz", "x.csv.bz2", "x.csv.xz", "x.csv.zip"])
def test_compressed_results_are_the_same_every_time(folder, name):
    for _ in range(2):
        assert main([*LP, name, "--device", "cpu"]) == 0
        content = Path(name).read_bytes()
        assert pd.read_csv(name)["vertex"].tolist() == ["a", "b", "c"]
        Path(name).write_bytes(b"")
    assert main([*LP, name, "--device", "cpu"]) == 0
    assert name.endswith("zip") or Path(name).read_bytes() == content


CHILD = """
import json, os, resource, signal, sys
import pandas as pd
from glp_rapids.cli import main
from glp_rapids.compressed.file import container

os.chdir(sys.argv[1])
# nohup, or a shell's background, lets a process ignore some
signal.signal(signal.SIGINT, signal.default_int_handler)
for number in (signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_DFL)
LP = ["label-propagation", "edges.csv", "--device", "cpu", "--output"]
COMMANDS = [[*LP, name] for name in ("old.csv", "old.csv.gz", "old.parquet")]
COMMANDS += [["compress", "edges.csv", "old.glp", "--device", "cpu"]]
for command in COMMANDS:  # compiles whatever is missing
    assert main([*command[:-1], "new." + command[-1]] if command[0][0] == "l" else
                [*command[:2], "new.glp", *command[3:]]) == 0
found = {}

def run(fault, act):
    for command in COMMANDS:
        name = next(word for word in command if word.startswith("old"))
        with open(name, "wb") as file:
            file.write(b"what was there")
        act(True)
        code = main(command)
        act(False)
        with open(name, "rb") as file:
            whole = file.read() == b"what was there"
        found[f"{fault} {name}"] = code, whole, sorted(os.listdir())

def full(on):  # no file may grow further
    hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (20 if on else hard, hard))

def killed_by(number):
    kept = pd.DataFrame.to_csv, pd.DataFrame.to_parquet, container._write_array

    def half(self, file, **_):
        if isinstance(file, os.PathLike):
            file = open(file, "wb")
        file.write(b"half of it")
        file.flush()
        os.kill(os.getpid(), number)
        raise AssertionError("outlived the signal")

    def act(on):
        put = (half, half, lambda file, array: half(array, file)) if on else kept
        pd.DataFrame.to_csv, pd.DataFrame.to_parquet, container._write_array = put

    return act

run("full", full)
for name in ("SIGINT", "SIGTERM", "SIGHUP"):
    run(name, killed_by(getattr(signal, name)))
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
print("FOUND", json.dumps(found))
"""
NAMES = ("old.csv", "old.csv.gz", "old.parquet", "old.glp")
CODES = {"full": 2, "SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}


@pytest.fixture(scope="module")
def after_faults(tmp_path_factory):
    """Run commands that are stopped while they write; give exit codes, and what is left."""
    pytest.importorskip("resource")
    folder = tmp_path_factory.mktemp("faults")
    (folder / "edges.csv").write_text(EDGES)
    done = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    found = next(line for line in done.stdout.splitlines() if line.startswith("FOUND "))
    return json.loads(found.removeprefix("FOUND ")), done.stderr


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("fault", CODES)
def test_a_fault_in_mid_write_leaves_what_was_there(after_faults, fault, name):
    found, errors = after_faults
    code, whole, beside = found[f"{fault} {name}"]
    assert code == CODES[fault]
    assert whole
    assert not [left for left in beside if not left.startswith(("old.", "new.", "edges."))]
    assert f"error: {name}: File too large" in errors
    assert "Traceback" not in errors


UNPRIVILEGED = """
import os, sys
from pathlib import Path
from glp_rapids.common import atomic_file  # which another user may not be allowed to read
os.chdir(sys.argv[1])
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
for name in ("locked.csv", "folder/new.csv", "folder/old.csv", "free.csv"):
    for way in (atomic_file.check, lambda path: atomic_file.replacing(path).__enter__()):
        try:
            way(Path(name))
            print(name, "can be written")
        except PermissionError as error:
            print(error)
"""


def test_what_is_read_only_stays():
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        (folder / "folder").mkdir()
        for file in ("locked.csv", "free.csv", "folder/old.csv"):
            (folder / file).write_bytes(OLD)
            (folder / file).chmod(0o444 if file == "locked.csv" else 0o666)
        (folder / "folder").chmod(0o555)
        folder.chmod(0o777)
        done = subprocess.run(
            [sys.executable, "-c", UNPRIVILEGED, name], capture_output=True, text=True, timeout=60
        )
        (folder / "folder").chmod(0o755)
        assert (folder / "locked.csv").read_bytes() == OLD
    lines = done.stdout.splitlines()
    for number, file in enumerate(("locked.csv", "folder/new.csv", "folder/old.csv")):
        for line in lines[2 * number : 2 * number + 2]:
            assert file in line
            assert "can be written" not in line
    assert ["is read-only" in line for line in lines] == [1, 1, 1, 0, 1, 0, 0, 0]
    assert lines[6:] == ["free.csv can be written"] * 2


@pytest.mark.parametrize("closed", [False, True])
def test_a_stdout_that_takes_nothing_is_said(folder, closed):
    if not Path("/dev/full").is_char_device():
        pytest.skip("no /dev/full here")
    redirection = ">&-" if closed else "> /dev/full"
    command = f"{sys.executable} -m glp_rapids.cli label-propagation edges.csv --device cpu"
    done = subprocess.run(
        ["sh", "-c", f"{command} {redirection}"], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2
    words = "stdout is closed" if closed else "stdout: No space left on device"
    assert done.stderr.splitlines()[-1].startswith(f"glp-rapids label-propagation: error: {words}")
    assert "Exception ignored" not in done.stderr
