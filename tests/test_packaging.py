"""What other tools read: pyproject.toml, the recipe and environments of conda, rapids doctor."""

import importlib
import inspect
import re
import sys
import tomllib
import warnings
from pathlib import Path

import pytest

import glp_rapids
from glp_rapids.cli import doctor
from glp_rapids.cli.rapids_doctor import glp_rapids_check
from glp_rapids.device import gpu_available

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
ENVIRONMENTS = sorted((ROOT / "conda" / "environments").iterdir())


def split(requirement):
    """Give the name and the bounds of a requirement of pip or of conda."""
    name, bounds = re.match(r"([\w-]+)(?:\[[^]]*\])?\s*(.*)", requirement).groups()
    # conda has one package for every CUDA, and another name for matplotlib without Qt
    name = re.sub(r"(-cu|-cuda)1[23]x?$", "", name).replace("matplotlib-base", "matplotlib")
    return name, frozenset(bounds.replace(" ", "").split(",")) - {""}


def recipe():
    text = (ROOT / "conda" / "recipes" / "glp-rapids" / "recipe.yaml").read_text()
    for name, value in yaml.safe_load(text)["context"].items():
        text = text.replace(f"${{{{ {name} }}}}", value)
    return yaml.safe_load(text)


def test_the_recipe_says_what_pyproject_says():
    built = recipe()
    assert built["package"] == {"name": PROJECT["name"], "version": PROJECT["version"]}
    assert built["about"]["summary"] == PROJECT["description"]
    assert built["about"]["license"] == PROJECT["license"]
    scripts = [f"{name} = {target}" for name, target in PROJECT["scripts"].items()]
    assert built["build"]["python"]["entry_points"] == scripts
    wanted = {*PROJECT["dependencies"], f"python{PROJECT['requires-python']}"}
    assert set(map(split, built["requirements"]["run"])) == set(map(split, wanted))
    constraints = dict(map(split, built["requirements"]["run_constraints"]))
    extras = dict(
        split(requirement)
        for extra in ("cu13", "cugraph-cu13", "dask-cu13", "parquet", "plot")
        for requirement in EXTRAS[extra]
        if requirement != "numpy<2.5"
    )
    assert constraints == extras


@pytest.mark.parametrize("path", ENVIRONMENTS, ids=lambda path: path.stem)
def test_an_environment_holds_what_pip_would_install(path):
    environment = yaml.safe_load(path.read_text())
    cuda = re.fullmatch(r"all_cuda-(\d\d)(\d)_arch-x86_64", path.stem)
    assert environment["name"] == path.stem
    assert environment["channels"] == ["rapidsai", "conda-forge"]
    assert f"cuda-version={cuda[1]}.{cuda[2]}" in environment["dependencies"]
    there = dict(map(split, environment["dependencies"]))
    wanted = [*PROJECT["dependencies"], *EXTRAS["parquet"], *EXTRAS["plot"]]
    wanted += [
        requirement
        for extra in ("cu", "cugraph-cu", "dask-cu")
        for requirement in EXTRAS[f"{extra}{cuda[1]}"]
    ]
    for name, bounds in map(split, wanted):
        assert bounds <= there[name], name


def test_both_cudas_have_the_same_extras():
    for extra in ("cu", "cugraph-cu", "dask-cu"):
        both = [sorted(map(split, EXTRAS[f"{extra}{major}"])) for major in (12, 13)]
        assert both[0] == both[1]
    assert EXTRAS["cugraph"] == EXTRAS["cugraph-cu13"]
    assert EXTRAS["dask"] == EXTRAS["dask-cu13"]


def test_doctor_knows_the_bounds_of_pyproject():
    wanted = [*PROJECT["dependencies"]]
    for extra in ("cu13", "cugraph-cu13", "dask-cu13", "parquet", "plot"):
        wanted += [requirement for requirement in EXTRAS[extra] if requirement != "numpy<2.5"]
    known = {split(library.names[0].format(major=13))[0]: library for library in doctor.LIBRARIES}
    for name, bounds in map(split, wanted):
        assert bounds == {f">={known[name].least}"}, name
    mends = " ".join(library.mend.format(major=13) for library in doctor.LIBRARIES)
    assert set(re.findall(r"glp-rapids\[([\w-]+)\]", mends)) <= EXTRAS.keys()


def test_types_are_declared():
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert (Path(glp_rapids.__file__).parent / "py.typed").is_file()


def test_entry_points_lead_somewhere():
    for group in (PROJECT["scripts"], PROJECT["entry-points"]["rapids_doctor_check"]):
        for target in group.values():
            module, name = target.split(":")
            assert callable(getattr(importlib.import_module(module), name))


# ---------------------------------------------------------------- rapids doctor


def test_rapids_doctor_calls_the_check():
    target = PROJECT["entry-points"]["rapids_doctor_check"]["glp_rapids"]
    assert target == f"{glp_rapids_check.__module__}:{glp_rapids_check.__name__}"
    # what rapids-cli 0.2 does with it
    inspect.signature(glp_rapids_check).bind(verbose=True)
    assert glp_rapids_check.__doc__.strip().splitlines()[0].endswith(".")
    place = "on the GPU and on the CPU" if gpu_available() else "runs on the CPU"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # about the libraries that are here
        assert place in glp_rapids_check(verbose=True, further=None)


@pytest.mark.skipif(gpu_available(), reason="needs a machine whose GPU does not work")
def test_a_gpu_that_cannot_be_used_fails_the_check(monkeypatch):
    monkeypatch.setattr(doctor, "nvidia_driver", lambda: doctor.Driver(("T4",), "470.1"))
    with pytest.raises(RuntimeError, match=r"not on the GPU: .*470\.1 is too old.* newer driver"):
        glp_rapids_check()


def test_a_broken_cpu_fails_the_check(monkeypatch):
    monkeypatch.setitem(sys.modules, "glp_rapids.propagation.variants.classic", None)
    monkeypatch.delattr("glp_rapids.label_propagation", raising=False)
    with pytest.raises(RuntimeError, match="does not run here"):
        glp_rapids_check(verbose=True)


def test_an_odd_version_is_a_warning(monkeypatch):
    monkeypatch.setattr(doctor, "nvidia_driver", lambda: None)
    monkeypatch.setattr(doctor, "installed", {"pyarrow": "3.0"}.get)
    with pytest.warns(UserWarning, match=r"pyarrow 3\.0 is too old \(wanted: >=17\): pip install"):
        assert glp_rapids_check() == (
            "Label propagation runs on the CPU. There is no GPU, and none is needed."
        )
