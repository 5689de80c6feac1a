"""The command line: what the doctor says of a machine."""

import json
import sys

import pytest

from glp_rapids.cli import doctor, main
from glp_rapids.common.versions import at_least


def test_doctor_runs_here(capsys):
    assert main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert "+ numpy" in out
    assert "a run on the CPU" in out
    assert main(["doctor", "--json"]) == 0
    assert {"what", "version", "status", "mend"} <= json.loads(capsys.readouterr().out)[0].keys()


HEALTHY = {
    "numpy": "2.4.6", "numba": "0.68.1", "pandas": "3.0.0", "tqdm": "4.70", "pyarrow": "26.0",
    "matplotlib": "3.11", "networkx": "3.6", "scipy": "1.17", "numba-cuda": "0.30.4",
    "polars": "2.1.0", "dask": "2026.8.0", "cupy-cuda13x": "14.2.0",
    "cudf-cu13": "26.10.2", "cugraph-cu13": "26.10.0",
    "dask-cudf-cu13": "26.10.2", "dask-cuda": "26.10.0",
}  # fmt: skip
H200 = doctor.Driver(("NVIDIA H200 (143771 MiB)",), "580.95.05")


@pytest.mark.parametrize(
    ("change", "driver", "what", "status", "words"),
    [
        ({}, H200, "cudf-cu13", "ok", ""),
        ({"numba": "0.60.0"}, H200, "numba", "too old", "pip install -U"),
        ({"numba": None}, H200, "numba", "missing", "compiled kernels"),
        ({"cudf-cu13": "25.02.1"}, H200, "cudf-cu13", "too old", "glp-rapids[cu13]"),
        ({"cudf-cu13": None}, H200, "cudf-cu13", "missing", "frames on the GPU"),
        ({"cudf-cu13": None}, None, "cudf-cu13", "not needed", "there is no GPU"),
        ({"numpy": "2.5.0"}, H200, "numpy", "too new", 'pip install "numpy<2.5"'),
        ({"numpy": "2.5.0", "numba-cuda": None}, H200, "numpy", "ok", ""),
        ({"cupy-cuda12x": "14.1"}, H200, "cupy-cuda12x", "broken", "pip uninstall cupy-cuda12x"),
        ({}, doctor.Driver(("T4",), "535.10"), "cudf-cu13", "broken", "glp-rapids[cu12]"),
        ({}, doctor.Driver(("K80",), "470.1"), "NVIDIA driver", "too old", "newer driver"),
    ],
)
def test_doctor_knows_what_is_wrong(change, driver, what, status, words):
    rows = doctor.report(driver, {**HEALTHY, **change}.get)
    row = [row for row in rows if row.what == what][-1]
    assert row.status == status
    assert words in row.mend
    if not change and driver is H200:
        assert {row.status for row in rows} == {"ok"}


def test_doctor_reads_nvidia_smi(tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    program.write_text("#!/bin/sh\necho '580.95.05, NVIDIA H200, 143771 MiB'\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert doctor.nvidia_driver() == H200
    program.write_text("#!/bin/sh\nexit 9\n")
    assert doctor.nvidia_driver() is None


def test_doctor_tells_a_broken_cpu(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "glp_rapids.propagation.variants.classic", None)
    monkeypatch.delattr("glp_rapids.label_propagation", raising=False)
    assert main(["doctor"]) == 1
    assert "does not run here" in capsys.readouterr().out


def test_versions_compare_by_number():
    assert at_least("0.30.4", "0.30")
    assert at_least("26.10.0", "26.10")
    assert at_least("2.0", "2.0.0")
    assert not at_least("0.9", "0.30")
    assert not at_least("3.0rc1", "3.1")


def test_doctor_says_whether_first_calls_compile(monkeypatch, tmp_path):
    machine = ["Linux", "x86_64"]
    monkeypatch.setattr(doctor.platform, "system", lambda: machine[0])
    monkeypatch.setattr(doctor.platform, "machine", lambda: machine[1])
    (tmp_path / "numba-0.68.1-llvmlite-0.50.0").mkdir()
    versions = {"numba": "0.68.1", "llvmlite": "0.50.0"}

    def said(folder=tmp_path, **further):
        return doctor.of_first_calls(versions.get, folder, **further)

    assert said().endswith("is spared by glp-rapids warmup.")  # there is but a folder
    (tmp_path / "numba-0.68.1-llvmlite-0.50.0" / "results.xz").touch()
    assert "are fast" in said()
    assert said(switched=True).endswith("is spared by glp-rapids warmup.")
    versions["llvmlite"] = "0.50.1"
    wanted = 'pip install "numba==0.68.1" "llvmlite==0.50.0"'
    assert said().endswith(f"is spared by glp-rapids warmup or {wanted}.")
    machine[1] = "aarch64"
    assert said().endswith("is spared by glp-rapids warmup.")
    assert list(doctor.SHIPPED.glob("numba-*-llvmlite-*/*.xz"))
