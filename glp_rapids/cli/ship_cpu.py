"""``python -m glp_rapids.cli.ship_cpu``: compile for CPUs what first calls need, into the package.

It is run before a commit that changes what is compiled, on any machine with the system and the kind
of processor that are to be served, and takes some minutes where all has changed. What is shipped is
what `glp_rapids.cli.warmup` does, for the version of Numba that it is run with.
"""

from __future__ import annotations

import lzma
import os
import pickle
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# LLVM's optimizer decides by the processor how many numbers are computed together. Code for these
# runs on all others of their kind, as each assembles it for itself.
PROCESSOR = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ""}


def compile_all() -> None:
    """Do each kind of work once, ship what that compiled or loaded, and say how long it took."""
    from glp_rapids.cli.warmup import WORK
    from glp_rapids.jit import shipped_code

    with shipped_code.recording() as recorded:
        for name, work in WORK.items():
            begin = time.perf_counter()
            work("cpu")
            print(f"{name:<20}{time.perf_counter() - begin:7.1f} s", flush=True)
    changed = write(recorded.entries, shipped_code.FOLDER)
    functions = sum(map(len, recorded.entries.values()))
    sizes = [path.stat().st_size for path in shipped_code.FOLDER.rglob("*.xz")]
    print(f"{functions} functions in {len(sizes)} files of {sum(sizes) / 1e6:.2f} MB in "
          f"{shipped_code.FOLDER}; {changed} files changed")  # fmt: skip


def write(entries: dict[str, dict[str, bytes]], folder: Path) -> int:
    """Write what was recorded, and remove all else. Return the number of files that changed."""
    from glp_rapids.jit.shipped_code import path_of

    paths = {path_of(module): held for module, held in entries.items()}
    stale = set(folder.rglob("*.xz")) - set(paths)
    for path in stale:
        path.unlink()
    changed = len(stale)
    for path, held in paths.items():
        # the same bytes of the same code, whatever was compiled first
        content = pickle.dumps(dict(sorted(held.items())), protocol=4)
        content = lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            changed += 1
    return changed


def main() -> int:
    """Compile in a process of its own, which knows nothing yet, and is for other processors."""
    program = "from glp_rapids.cli.ship_cpu import compile_all; compile_all()"
    with tempfile.TemporaryDirectory() as cache:
        environment = {**os.environ, **PROCESSOR, "NUMBA_CACHE_DIR": cache}
        return subprocess.run([sys.executable, "-c", program], env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
