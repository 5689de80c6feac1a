"""``python -m glp_rapids.cli.ship_cpu``: compile for CPUs what first calls need, into the package.

It is run before a commit that changes what is compiled, on any machine with the system and the kind
of processor that are to be served, and takes some minutes where all has changed. What is shipped is
what `glp_rapids.cli.warmup` does (with SciPy and pyarrow, or that misses something), for the
version of Numba that it is run with.
"""

from __future__ import annotations

import lzma
import os
import pickle
import subprocess
import sys
import tempfile
import time

# LLVM's optimizer decides by the processor how many numbers are computed together. Code for these
# runs on all others of their kind, as each assembles it for itself.
PROCESSOR = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ""}


def compile_all() -> None:
    """Do each kind of work once, ship what that compiled or loaded, and say how long it took."""
    from glp_rapids.cli.warmup import WORK
    from glp_rapids.jit import ship_code, shipped_code

    with ship_code.recording() as found:
        for name, work in WORK.items():
            begin = time.perf_counter()
            work("cpu")
            print(f"{name:<20}{time.perf_counter() - begin:7.1f} s", flush=True)
    changed = write(found)
    sizes = [path.stat().st_size for path in shipped_code.FOLDER.rglob("*.xz")]
    functions, size = sum(map(len, found.values())), sum(sizes) / 1e6
    print(f"{functions} functions in {len(sizes)} files of {size:.2f} MB; {changed} files changed")


def write(found: dict[str, dict[str, bytes]]) -> int:
    """Write what was recorded, by module, and remove all else, of other versions too.

    Returns
    -------
    int
        How many files changed.
    """
    from glp_rapids.jit.shipped_code import FOLDER, path_of

    paths = {path_of(module): entries for module, entries in found.items()}
    stale = set(FOLDER.rglob("*.xz")) - set(paths)
    for path in stale:
        path.unlink()
        if not any(path.parent.iterdir()):
            path.parent.rmdir()
    changed = len(stale)
    for path, entries in paths.items():
        # the same bytes of the same code, whatever was compiled first
        content = pickle.dumps(dict(sorted(entries.items())), protocol=4)
        content = lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            changed += 1
    return changed


def main() -> int:
    """Compile in a process of its own, which knows nothing yet, and is for other processors."""
    program = "from glp_rapids.cli.ship_cpu import compile_all; compile_all()"
    own = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_")}
    with tempfile.TemporaryDirectory() as cache:
        environment = {**own, **PROCESSOR, "NUMBA_CACHE_DIR": cache}
        return subprocess.run([sys.executable, "-c", program], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
