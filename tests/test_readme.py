"""The README does what it says: its Python blocks run, in order, in one namespace."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(language):
    return [code for kind, code in FENCE.findall(README.read_text()) if kind == language]


def test_python_blocks_run_in_order(tmp_path):
    # those that begin a cluster run in test_dask
    alone = [block for block in blocks("python") if "LocalCluster" not in block]
    assert len(alone) >= 10
    script = tmp_path / "readme.py"
    script.write_text("\n".join(alone))
    # -W error: what a reader types in must not warn
    done = subprocess.run(
        [sys.executable, "-W", "error", script], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "0    ann          0" in done.stdout


def test_digests_are_those_of_this_version():
    from glp_rapids.bench import agreement, subjects

    section = README.read_text().split("\n## The same result, every time\n")[1].split("\n## ")[0]
    names, _, digests = (
        line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("|")
    )
    assert tuple(names) == agreement.GRAPHS
    call, _ = agreement.RUNS["defaults"]
    for name, known in zip(names, digests, strict=True):
        found = call(subjects.load(name, "cpu"), device="cpu")
        assert f"`{agreement.digest(found)}`" == known, name


def test_every_block_says_its_language():
    assert {kind for kind, _ in FENCE.findall(README.read_text())} == {"bash", "python", "text"}


@pytest.mark.parametrize("link", re.findall(r"\]\(([^)#][^)]*)\)", README.read_text()))
def test_links_lead_somewhere(link):
    assert (README.parent / link).exists()


def test_anchors_exist():
    text = README.read_text()
    titles = re.findall(r"^##+ (.*)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    assert set(re.findall(r"\]\(#([^)]*)\)", text)) <= slugs


def test_the_files_that_developers_are_sent_to_exist():
    section = README.read_text().split("\n## Where things are\n")[1].split("\n## ")[0]
    package = ROOT / "glp_rapids"
    propagation = package / "propagation"
    rooms = (ROOT, package, propagation, propagation / "kernels/gpu")
    rooms += tuple(package / name for name in re.findall(r"(\w+)/  ", section))
    names = set(re.findall(r"(?<![\w/])(?:\w+/)*(?:\w+\.py|\w+/)", section))
    assert len(names) > 30
    lost = [name for name in sorted(names) if not any((room / name).exists() for room in rooms)]
    assert not lost


def commands():
    """The commands of the library: in blocks, and beside the measurements."""
    lines = [line for code in blocks("bash") for line in code.splitlines()]
    lines += re.findall(r"`(glp-rapids [^`]*)`", FENCE.sub("", README.read_text()))
    return sorted({line for line in lines if line.startswith("glp-rapids")})


@pytest.mark.parametrize("line", commands())
def test_commands_have_the_options_that_are_shown(line, capsys):
    from glp_rapids.cli import main

    words = line.split("#")[0].split()[1:]
    with pytest.raises(SystemExit) as end:
        main([*words[: 2 if words[0] == "bench" else 1], "--help"])
    assert end.value.code == 0
    help_text = capsys.readouterr().out
    for word in words:
        assert not word.startswith("--") or word in help_text
