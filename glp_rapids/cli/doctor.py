"""``glp-rapids doctor``: what is here, what is missing, too old or too new, and the mend.

`LIBRARIES`, `CONFLICTS` and `DRIVERS` are the facts; the code only looks up what is installed and
compares. Versions are read from the metadata of the packages, nothing is imported for that; what
counts in the end are two real runs, one on the CPU and one on the GPU.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from glp_rapids.common.versions import at_least

Status = Literal["ok", "missing", "too old", "too new", "broken", "not needed"]
Group = Literal["core", "optional", "gpu"]


@dataclass(frozen=True)
class Library:
    """A package, under whichever of its names it is installed, and the versions that work."""

    names: tuple[str, ...]
    group: Group
    least: str
    purpose: str
    mend: str


@dataclass(frozen=True)
class Conflict:
    """Two packages that work, but not together once ``package`` is as new as ``at``."""

    package: str
    at: str
    beside: str
    why: str
    mend: str


@dataclass(frozen=True)
class Row:
    """A line of the report."""

    what: str
    group: Group
    version: str
    wanted: str
    status: Status
    mend: str = ""


GPU_EXTRA = 'pip install "glp-rapids[cu{major}]"'
LIBRARIES = (
    Library(("numpy",), "core", "2.0", "arrays", 'pip install "numpy>=2.0"'),
    Library(("numba",), "core", "0.61", "compiled kernels", 'pip install -U "numba>=0.61"'),
    Library(("pandas",), "core", "2.2", "frames", 'pip install "pandas>=2.2"'),
    Library(("tqdm",), "core", "4.66", "progress bars", 'pip install "tqdm>=4.66"'),
    Library(("pyarrow",), "optional", "17", "Parquet files", 'pip install "pyarrow>=17"'),
    Library(("matplotlib",), "optional", "3.8", "pictures", 'pip install "matplotlib>=3.8"'),
    Library(("networkx",), "optional", "3.3", "networkx graphs", 'pip install "networkx>=3.3"'),
    Library(("polars",), "optional", "1", "polars frames", 'pip install "polars>=1" pyarrow'),
    Library(
        ("dask",), "optional", "2025.1", "dask frames", 'pip install "dask[dataframe]>=2025.1"'
    ),
    Library(("scipy",), "optional", "1.13", "sparse matrices", 'pip install "scipy>=1.13"'),
    Library(("numba-cuda",), "gpu", "0.30", "kernels on the GPU", GPU_EXTRA),
    Library(
        ("cupy-cuda{major}x", "cupy", "cupy-cuda13x", "cupy-cuda12x"), "gpu", "14",
        "arrays on the GPU", GPU_EXTRA,
    ),
    Library(
        ("cudf-cu{major}", "cudf", "cudf-cu13", "cudf-cu12"), "gpu", "26.10",
        "frames on the GPU", GPU_EXTRA,
    ),
    Library(
        ("cugraph-cu{major}", "cugraph", "cugraph-cu13", "cugraph-cu12"), "gpu", "26.10",
        "cugraph.Graph as input (optional)", 'pip install "glp-rapids[cugraph-cu{major}]"',
    ),
    Library(
        ("dask-cudf-cu{major}", "dask-cudf", "dask-cudf-cu13", "dask-cudf-cu12"), "gpu", "26.10",
        "dask-cuDF frames (optional)", 'pip install "glp-rapids[dask-cu{major}]"',
    ),
    Library(
        ("dask-cuda",), "gpu", "26.10", "several GPUs (optional)",
        'pip install "glp-rapids[dask-cu{major}]"',
    ),
)  # fmt: skip
CONFLICTS = (
    Conflict(
        "numpy", "2.5", "numba-cuda",
        "numba-cuda 0.30 does not import under NumPy 2.5", 'pip install "numpy<2.5"',
    ),
)  # fmt: skip
# the oldest driver for each major version of CUDA (NVIDIA's minor version compatibility)
DRIVERS = {12: "525", 13: "580"}
LEAST_PYTHON = "3.11"
# where code is that `glp_rapids.cli.ship_cpu` made, and what has Numba compile as usual
SHIPPED = Path(__file__).parents[1] / "jit" / "shipped_cpu"
SWITCHES = {
    "NUMBA_OPT": "3", "NUMBA_BOUNDSCHECK": "", "NUMBA_DEBUGINFO": "0", "NUMBA_LOOP_VECTORIZE": "1",
    "NUMBA_SLP_VECTORIZE": "0", "NUMBA_ENABLE_PROFILING": "0", "NUMBA_DEBUG_NRT": "0",
    "NUMBA_LLVM_REFPRUNE_PASS": "1", "NUMBA_LLVM_REFPRUNE_FLAGS": "all",
}  # fmt: skip
MARKS: dict[Status, str] = {
    "ok": "+", "not needed": " ", "missing": "-", "too old": "!", "too new": "!", "broken": "!",
}  # fmt: skip
EPILOG = """\
exit code: 0 if label propagation runs here, be it on the CPU; 1 if not. A line that begins with
  +  is fine;  -  is missing, which matters if you want what it is for;  !  has to be mended.
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add this command's options."""
    parser.epilog = EPILOG
    parser.add_argument("--json", action="store_true", help="print JSON, not a table")


def run(options: argparse.Namespace) -> int:
    """Print what is installed and whether runs succeed; return the exit code."""
    driver = nvidia_driver()
    done = runs(driver)
    rows = report(driver, installed) + done
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
    else:
        print(f"Python {platform.python_version()} on {platform.platform()}")
        print(f"GPU: {driver.describe() if driver else 'none found (nvidia-smi lists none)'}\n")
        print(as_text(rows))
        print(f"\n{verdict(done, driver is not None)}")
        switched = any(os.environ.get(name, usual) != usual for name, usual in SWITCHES.items())
        switched |= bool(sys.flags.optimize or installed("icc-rt"))
        print(of_first_calls(installed, switched=switched))
    return 0 if done[0].status == "ok" else 1


@dataclass(frozen=True)
class Driver:
    """What nvidia-smi says."""

    gpus: tuple[str, ...]
    version: str

    @property
    def cuda_major(self) -> int:
        """The newest major version of CUDA that this driver runs; 0 if none that we know."""
        fitting = [major for major, least in DRIVERS.items() if at_least(self.version, least)]
        return max(fitting, default=0)

    def describe(self) -> str:
        """Name the GPUs and the driver in a line."""
        return f"{', '.join(self.gpus)}; driver {self.version}"


def nvidia_driver() -> Driver | None:
    """Ask nvidia-smi for GPUs and driver; None if there are none."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    query = [program, "--query-gpu=driver_version,name,memory.total", "--format=csv,noheader"]
    try:
        answer = subprocess.run(query, capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = [line.split(", ") for line in answer.stdout.splitlines() if line.count(", ") >= 2]
    if answer.returncode or not lines:
        return None
    return Driver(tuple(f"{name} ({memory})" for _, name, memory, *_ in lines), lines[0][0])


def installed(name: str) -> str | None:
    """Return the version of a package, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def report(driver: Driver | None, version_of: Callable[[str], str | None]) -> list[Row]:
    """Compare what is installed with what is wanted; conflicts last."""
    major = (driver.cuda_major if driver else 0) or max(DRIVERS)
    rows = [_python_row()]
    if driver is not None and not driver.cuda_major:
        rows.append(
            Row("NVIDIA driver", "gpu", driver.version, f">={DRIVERS[12]}", "too old",
                "install a newer driver, or go on with the CPU")
        )  # fmt: skip
    rows += [_library_row(library, major, driver is not None, version_of) for library in LIBRARIES]
    for conflict in CONFLICTS:
        version = version_of(conflict.package)
        if version and version_of(conflict.beside) and at_least(version, conflict.at):
            rows.append(
                Row(conflict.package, "gpu", version, f"<{conflict.at}", "too new",
                    f"{conflict.why}: {conflict.mend}")
            )  # fmt: skip
    return rows + _mixed(major, version_of)


def _python_row() -> Row:
    version = platform.python_version()
    good = at_least(version, LEAST_PYTHON)
    mend = "" if good else f"use Python {LEAST_PYTHON} or newer"
    return Row("python", "core", version, f">={LEAST_PYTHON}", "ok" if good else "too old", mend)


def _library_row(
    library: Library, major: int, gpu: bool, version_of: Callable[[str], str | None]
) -> Row:
    names = [name.format(major=major) for name in library.names]
    found = _first(names, version_of)
    wanted = f">={library.least}"
    mend = library.mend.format(major=major)
    if found is None:
        if library.group == "gpu" and not gpu:
            return Row(names[0], library.group, "", wanted, "not needed", "there is no GPU")
        return Row(names[0], library.group, "", wanted, "missing", f"{library.purpose}: {mend}")
    name, version = found
    if not at_least(version, library.least):
        return Row(name, library.group, version, wanted, "too old", mend)
    return Row(name, library.group, version, wanted, "ok", "")


def _first(names: Iterable[str], version_of: Callable[[str], str | None]) -> tuple[str, str] | None:
    found = ((name, version_of(name)) for name in names)
    return next(((name, version) for name, version in found if version is not None), None)


def _mixed(major: int, version_of: Callable[[str], str | None]) -> list[Row]:
    """List libraries for CUDA 12 beside others for CUDA 13, or for a CUDA newer than the driver."""
    rows = []
    for library in LIBRARIES:
        wrong = [
            name
            for name in library.names
            if (built := re.search(r"cu(?:da)?(\d\d)x?$", name)) and int(built[1]) != major
            if version_of(name) is not None
        ]
        rows += [
            Row(name, library.group, version_of(name) or "", f"for CUDA {major}", "broken",
                f"pip uninstall {name}; {library.mend.format(major=major)}")
            for name in wrong
            if int(name.strip("x")[-2:]) > major or version_of(library.names[0].format(major=major))
        ]  # fmt: skip
    return rows


def runs(driver: Driver | None) -> list[Row]:
    """Run label propagation on the CPU and, if there is one, on the GPU."""
    rows = [_run_row("cpu", core=True)]
    if driver is not None:
        rows.append(_run_row("gpu", core=False))
    return rows


def _run_row(device: Literal["cpu", "gpu"], *, core: bool) -> Row:
    what = f"a run on the {device.upper()}"
    try:
        from glp_rapids import label_propagation

        found = label_propagation(([0, 0, 1, 3, 3, 4], [1, 2, 2, 4, 5, 5]), device=device)
        right = found["partition"].to_numpy().tolist() == [0, 0, 0, 1, 1, 1]
        problem = "" if right else "the result is wrong: please report this"
    except Exception as error:  # whatever breaks here is what the doctor is asked to tell
        problem = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return Row(what, "core" if core else "gpu", "", "", "broken" if problem else "ok", problem)


def as_text(rows: list[Row]) -> str:
    """Lay the rows out as a table."""
    cells = [
        (f"{MARKS[row.status]} {row.what}", row.version, row.wanted, row.status, row.mend)
        for row in rows
    ]
    titles = ("  what", "version", "wanted", "status", "what to do")
    widths = [max(len(line[i]) for line in [titles, *cells]) for i in range(len(titles))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in [titles, *cells]
    )


def of_first_calls(
    version_of: Callable[[str], str | None], folder: Path = SHIPPED, switched: bool = False
) -> str:
    """Say whether first calls on the CPU compile, and what would spare them that.

    ``switched``: whether Numba is told by its environment to compile otherwise than it does.
    """
    served = (platform.system(), platform.machine()) == ("Linux", "x86_64")
    pairs = [path.parent.name.split("-")[1::2] for path in folder.glob("*/*.xz")] if served else []
    if [version_of("numba"), version_of("llvmlite")] in pairs and not switched:
        return "First calls on the CPU are fast: compiled code for this Numba came along."
    ways = ["glp-rapids warmup"]
    if pairs and not switched:
        numba, llvmlite = pairs[0]
        ways.append(f'pip install "numba=={numba}" "llvmlite=={llvmlite}"')
    spared = " or ".join(ways)
    return f"First calls on the CPU compile for some seconds, which is spared by {spared}."


def verdict(runs: list[Row], gpu: bool) -> str:
    """Sum the runs up in a sentence: where label propagation runs, or why it does not."""
    cpu = runs[0].status == "ok"
    if not cpu:
        return f"Label propagation does not run here: {runs[0].mend}"
    if not gpu:
        return "Label propagation runs on the CPU. There is no GPU, and none is needed."
    if runs[1].status == "ok":
        return "Label propagation runs on the GPU and on the CPU."
    return f"Label propagation runs on the CPU, but not on the GPU: {runs[1].mend}"
