import importlib
import inspect
import json
import subprocess
import sys
import threading
import typing

import pytest

import glp_rapids
from glp_rapids.frames import kinds

HEAVY = ("numba", "pandas", "cupy", "cudf", "cugraph", "networkx", "matplotlib", "scipy", "tqdm")


def loaded_after(statement):
    """The names of all modules that a fresh process has loaded after ``statement``."""
    output = subprocess.run(
        [sys.executable, "-c", f"{statement}\nimport json, sys\nprint(json.dumps([*sys.modules]))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert output.stderr == ""
    return set(json.loads(output.stdout))


@pytest.mark.parametrize(
    "statement",
    [
        "import glp_rapids",
        "import glp_rapids; dir(glp_rapids)",
        "from glp_rapids import Program",
        "from glp_rapids import label_propagation, layered_label_propagation, propagate",
        "from glp_rapids import seeded_label_propagation, speaker_listener",
    ],
)
def test_import_loads_nothing_heavy(statement):
    assert not loaded_after(statement) & set(HEAVY)


RUN = """
import pandas as pd, glp_rapids
edges = pd.DataFrame({"src": [0], "dst": [1]})
glp_rapids.label_propagation(edges, device="cpu")
"""


def test_a_run_loads_no_optional_library():
    heavy = set(HEAVY) - {"numba", "pandas", "scipy"}
    assert not loaded_after(RUN) & heavy


def test_a_run_whose_code_is_kept_does_not_load_what_only_compiling_needs():
    loaded_after(RUN)
    assert not loaded_after(RUN) & {"scipy.linalg", "numba.np.arraymath"}


@pytest.mark.parametrize("name", glp_rapids.__all__)
def test_public_names_are_there(name):
    assert getattr(glp_rapids, name).__name__ == name
    assert name in dir(glp_rapids)


def test_names_are_listed_once_in_order():
    assert sorted(set(glp_rapids.__all__)) == glp_rapids.__all__


@pytest.mark.parametrize(
    "name", ["datasets.social", "fraud.Monitor", "metrics.cover_f1", "plot.draw_cluster"]
)
def test_modules_need_no_import_of_their_own(name):
    loaded = loaded_after(f"import glp_rapids; glp_rapids.{name}")
    assert f"glp_rapids.{name.split('.')[0]}" in loaded
    assert name.split(".")[0] in dir(glp_rapids)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="'glp_rapids' has no attribute 'pagerank'"):
        _ = glp_rapids.pagerank


def test_cudf_is_imported_by_a_thread_of_its_own(tmp_path, monkeypatch):
    """It sets CuPy's allocator, which CuPy refuses to a thread inside `using_allocator`."""
    (tmp_path / "cudf.py").write_text("import threading\nthread = threading.current_thread()\n")
    monkeypatch.syspath_prepend(tmp_path)
    # set first: what `delitem` does not find, it does not take away again at the end
    monkeypatch.setitem(sys.modules, "cudf", None)
    del sys.modules["cudf"]
    assert kinds._cudf_imports.__wrapped__()
    assert sys.modules["cudf"].thread is not threading.current_thread()
    del sys.modules["cudf"]
    kinds._cudf_imports.cache_clear()
    try:  # the kind of a graph that was unpickled where nobody has imported it yet
        assert kinds.library("cudf").thread is not threading.current_thread()
    finally:
        kinds._cudf_imports.cache_clear()
    monkeypatch.setitem(sys.modules, "cudf", None)
    assert not kinds._cudf_imports.__wrapped__()


@pytest.mark.parametrize("module", ["", ".fraud", ".metrics", ".datasets"])
def test_signatures_can_be_asked_for_their_types(module):
    """As pydantic, typer and Sphinx do."""
    public = importlib.import_module(f"glp_rapids{module}")
    functions = [getattr(public, name) for name in public.__all__]
    functions = [one for one in functions if inspect.isfunction(one)]
    assert functions
    for function in functions:
        assert typing.get_type_hints(function).keys() <= {*inspect.signature(function).parameters,
                                                          "return"}, function  # fmt: skip
