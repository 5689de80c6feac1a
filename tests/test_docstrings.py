"""The examples in the public docstrings run as they stand."""

import doctest
import importlib
import inspect
import subprocess
import sys

import pytest

import glp_rapids
from glp_rapids import datasets, fraud, plot

MODULES = (datasets, fraud, plot)


def public():
    for name in glp_rapids.__all__:
        yield f"glp_rapids.{name}", getattr(glp_rapids, name)
    for module in (*MODULES, importlib.import_module("glp_rapids.metrics")):
        for name in module.__all__:
            thing = getattr(module, name)
            if inspect.isfunction(thing) or inspect.isclass(thing):
                yield f"{module.__name__}.{name}", thing
    for name in ("device", "frames", "cli"):
        module = importlib.import_module(f"glp_rapids.{name}")
        for function, thing in inspect.getmembers(module, inspect.isfunction):
            if thing.__module__ == module.__name__ and ">>>" in (thing.__doc__ or ""):
                yield f"{module.__name__}.{function}", thing


PUBLIC = {id(thing): (name, thing) for name, thing in public()}


NAMES = [name for name, _ in PUBLIC.values()]


@pytest.mark.parametrize(("name", "thing"), PUBLIC.values(), ids=NAMES)
def test_examples_run(name, thing):
    finder = doctest.DocTestFinder(exclude_empty=True)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    module = importlib.import_module(thing.__module__)
    for test in finder.find(thing, name, module=module, globs={}):
        report = []
        runner.run(test, out=report.append)
        assert not report, "".join(report)


@pytest.mark.parametrize("name", glp_rapids.__all__)
def test_public_functions_have_all_sections(name):
    thing = getattr(glp_rapids, name)
    text = inspect.getdoc(thing) or ""
    assert "Examples\n--------" in text
    if inspect.isfunction(thing):
        for section in ("Parameters", "Returns", "Raises", "Notes"):
            assert f"{section}\n{'-' * len(section)}" in text, f"{name} has no {section}"


@pytest.mark.gpu
def test_cudf_gives_what_the_docstrings_say():
    pytest.importorskip("cudf", reason="cuDF is not installed")
    # cudf.pandas puts cuDF in the place of pandas in a whole process, so it gets one of its own
    command = [sys.executable, "-m", "cudf.pandas", "-m", "pytest", __file__, "-k", "examples_run"]
    options = ["-W", "default", "-p", "no:cacheprovider"]
    run = subprocess.run([*command, *options], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout[-4000:]
