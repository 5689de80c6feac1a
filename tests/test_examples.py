"""The examples run as they stand: scripts and notebooks, each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
EXECUTE = (
    "import sys, nbformat\nfrom nbclient import NotebookClient\n"
    "notebook = nbformat.read(sys.argv[1], 4)\n"
    "NotebookClient(notebook, timeout=300, kernel_name='python3').execute()\n"
    "nbformat.write(notebook, sys.argv[2])"
)


def printed(folder, *command):
    # a notebook has a backend of its own for pictures, which this variable would override
    environment = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}
    done = subprocess.run(
        [sys.executable, *map(str, command)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers_of(notebook):
    """Give what the cells of a notebook put out as text, but for those tagged "varies".

    The tag is for what is no promise of this library: times, the device, what others compute. What
    a cell prints arrives in as many parts as the kernel happens to send, so it counts as one text.
    """
    return [
        text
        for cell in notebook.cells
        if cell.cell_type == "code" and "varies" not in cell.metadata.get("tags", [])
        for text in texts_of(cell.outputs)
    ]


def texts_of(outputs):
    shown = [one for one in outputs if one.output_type != "stream"]
    printed = (one.text for one in outputs if one.output_type == "stream" and one.name == "stdout")
    return ["".join(printed), *(one["data"]["text/plain"] for one in shown)]


def test_what_is_printed_is_one_text_however_many_parts_it_came_in():
    def cell(*parts):
        table = nbformat.v4.new_output("display_data", {"text/plain": "a table"})
        printed = [nbformat.v4.new_output("stream", name="stdout", text=part) for part in parts]
        noise = nbformat.v4.new_output("stream", name="stderr", text="a bar")
        return [*printed[:1], table, noise, *printed[1:]]

    assert texts_of(cell("423 communities\n")) == ["423 communities\n", "a table"]
    assert texts_of(cell("423 communities", "\n")) == ["423 communities\n", "a table"]
    assert texts_of(cell("424 communities\n")) != texts_of(cell("423 communities\n"))


@pytest.mark.exhaustive
def test_fraud_pipeline_finds_rings(tmp_path):
    out = printed(tmp_path, "-W", "error", EXAMPLES / "fraud_pipeline.py", 100_000)
    assert "100,500 raw rows, 98,500 clean" in out
    day = out[out.index("day 28") :]
    assert "100% are in a ring" in day
    assert "features of 10,942 accounts" in day


@pytest.mark.exhaustive
def test_own_variant_sees_new_rings_and_forgets_old_ones(tmp_path):
    out = printed(tmp_path, "-W", "error", EXAMPLES / "own_variant.py", 200_000, "picture.png")
    rows = {line.split("]")[0]: line.split("]")[1].split() for line in out.splitlines()[-4:]}
    new, old = rows["(0, 7"], rows["(21, 30"]
    classic, _, quieter, both = range(4)
    assert float(new[both]) > 0.7 > 0.4 > float(old[both])
    assert float(old[classic]) > 0.7
    assert min(float(row[quieter]) for row in rows.values()) > 0.7
    assert (tmp_path / "picture.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.exhaustive
def test_communities_compared_says_the_same_twice(tmp_path):
    out = printed(tmp_path, "-W", "error", EXAMPLES / "communities_compared.py", 5_000, "x.png")
    assert "5,000 pages, 44,294 edges; frames of" in out
    rows = {line[:10].strip(): line[10:].split() for line in out.splitlines()[2:]}
    modularity = {name: float(row[0]) for name, row in rows.items()}
    assert modularity["Louvain"] > modularity["LP"] > modularity["LLP 1/64"] > 0.8
    assert modularity["Multilevel"] > modularity["Louvain"] - 0.001
    ours = ["LP", "SLPA", "Multilevel", "LLP 1/256", "LLP 1/64", "LLP 1/16", "LLP 1/4"]
    assert [float(rows[name][-1]) for name in ours] == [1] * 7
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_chaining_has_louvain_finish_what_label_propagation_began(tmp_path):
    out = printed(tmp_path, "-W", "error", EXAMPLES / "chaining.py", 5_000, "x.png")
    assert "6-core: 4,198 pages, 41,035 edges" in out
    rows = {line[:20].strip(): line[20:].split() for line in out.splitlines()}
    first, both, alone = (
        float(rows[name][0])
        for name in ("label propagation", "and Louvain on that", "Louvain alone")
    )
    assert first + 0.01 < both
    assert both > alone - 0.01
    assert "largest community: 315 pages" in out
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.exhaustive
def test_diverse_people_tells_a_clump_from_many_circles(tmp_path):
    out = printed(tmp_path, "-W", "error", EXAMPLES / "diverse_people.py", 5_000, "x.png")
    lines = out.splitlines()
    assert "5,000 people, 33,725 friendships; frames of" in lines[0]
    assert " ".join(lines[3].split()) == "530 8 10 10 7 6 5 4 4 4"
    clump, circles = (line.split() for line in lines[-2:])
    assert clump[2] == circles[2] == "55"  # as many friends
    assert (clump[-1], circles[-1]) == ("1", "7")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_give_the_stored_outputs(path, tmp_path):
    done = tmp_path / path.name
    printed(tmp_path, "-c", EXECUTE, path, done)
    assert numbers_of(nbformat.read(done, 4)) == numbers_of(nbformat.read(path, 4))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_stored_executed_and_small(path):
    notebook = nbformat.read(path, 4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert sum(bool(cell.outputs) for cell in code) >= 3
    assert any("image/png" in output.get("data", {}) for cell in code for output in cell.outputs)
    assert path.stat().st_size < 400_000


def test_every_script_has_its_notebook():
    # one that waits for a broker's messages never ends: tests/test_kafka_example.py runs it
    scripts = {path.stem for path in EXAMPLES.glob("*.py")} - {"kafka_monitor"}
    assert scripts == {path.stem for path in NOTEBOOKS}
