"""Compile kernels without a GPU, into the folders of `shipped_kernels`.

All that a kernel is compiled by runs on any machine: Numba, NVVM and the assembler.
"""

from __future__ import annotations

import contextlib
import json
import lzma
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

from glp_rapids.jit import shipped_kernels
from glp_rapids.jit.cuda import compiling
from glp_rapids.jit.shipped_kernels import FAMILIES, HEADER, Texts, machine, name_of, rebuilt

# By family: the GPUs to compile for; where there are two, their texts must be the same.
MEMBERS: dict[tuple[int, int], tuple[tuple, ...]] = {
    (8, 0): ((8, 0, ""), (9, 0, "a")),
    (10, 0): ((10, 0, "a"),),
    (11, 0): ((12, 0, "a"),),
}
OLDEST = min(FAMILIES)


@contextlib.contextmanager
def oldest_gpu() -> Iterator[None]:
    """Say inside the block that the current GPU is the oldest that kernels are shipped for."""
    from numba.cuda import dispatcher

    device = SimpleNamespace(compute_capability=OLDEST)
    with mock.patch.object(dispatcher, "get_current_device", return_value=device):
        yield


@contextlib.contextmanager
def without_gpu() -> Iterator[None]:
    """Let numba-cuda compile for the oldest GPU inside the block, whether there is one or not."""
    from numba.cuda import codegen

    def chosen(library: Any, capability: tuple | None = None) -> tuple:
        return (*OLDEST, "") if capability is None else capability

    with (
        oldest_gpu(),
        mock.patch.object(codegen.CUDACodeLibrary, "_ensure_cc", chosen),
        compiling(),
    ):
        yield


def compiled(kernel: Any, signature: tuple) -> Any:
    """Compile a kernel for arguments of these types, as numba-cuda has it before it is loaded."""
    from numba.cuda import dispatcher

    with without_gpu():
        return dispatcher._Kernel(kernel.py_func, signature, **kernel.targetoptions)


def texts_of(made: Any) -> Texts:
    """Return the PTX of a compiled kernel for every family.

    Raises
    ------
    ValueError
        Two GPUs of a family have texts that differ in more than their header.
    """
    texts = Texts()
    for first, members in MEMBERS.items():
        found = {HEADER.sub(".version\n.target", _text(made, one), count=1) for one in members}
        if len(found) > 1:
            raise ValueError(f"{made.entry_name}: the PTX differs within the family of {first}")
        (text,) = found
        # As `Texts` replaces a header, so it must find one.
        texts[first] = text.replace(".version\n.target", ".version 0\n.target 0", 1)
    return texts


def _text(made: Any, capability: tuple) -> str:
    (text,) = made._codelibrary.get_asm_strs(cc=capability)
    return text


def ship(
    kernel: Any, signature: tuple, machines: tuple[tuple, ...] = (), folder: Path | None = None
) -> list[Path]:  # fmt: skip
    """Compile a kernel into a folder: its text, and machine code for some GPUs.

    Parameters
    ----------
    kernel
        What `glp_rapids.jit.cuda.kernel` made.
    signature
        The types of its arguments.
    machines
        Compute capabilities, as (9, 0, "a").
    folder
        Of `shipped_kernels`; None: the one that git ignores.

    Returns
    -------
    list of Path
        The files; those that were there already are not made anew.
    """
    name = name_of(kernel.recipe, signature)
    if name is None:
        raise ValueError(f"{kernel.py_func.__name__} calls what is not this package's own")
    folder = shipped_kernels.FOLDER if folder is None else folder
    text = folder / f"{name}.ptx.xz"
    paths = {one: text.with_name(f"{name}.{machine(one)}.xz") for one in machines}
    if all(path.exists() for path in (text, *paths.values())):
        return [text, *paths.values()]
    made = compiled(kernel, signature)
    library = made._codelibrary
    library._ptx_cache = texts = texts_of(made)
    kept = {
        "name": library.name, "entry_name": made.entry_name, "cooperative": made.cooperative,
        "needs_cudadevrt": library.needs_cudadevrt, "nvvm_options": library._nvvm_options,
        "ptx": {str(first): text for first, text in texts.items()},
    }  # fmt: skip
    if library._setup_functions or _states(made) != _states(rebuilt(kept, signature)):
        raise ValueError(f"{name}: numba-cuda made a kernel of more than what is kept of it")
    # Numba gives a kernel another name every time, so code and text must be of one time.
    for path in folder.glob(f"{name}.*"):
        path.unlink()
    for one, path in paths.items():
        _write(path, bytes(library.get_cubin(cc=one).code))
    # Last, as nothing looks for machine code without a text.
    _write(text, json.dumps(kept).encode())
    return [text, *paths.values()]


def _states(kernel: Any) -> dict[str, Any]:
    """Return what numba-cuda would keep of a kernel, less what the folder has in another form."""
    states = kernel._reduce_states()
    states.update({f"library {key}": value for key, value in
                   states.pop("codelibrary")._reduce_states().items()})  # fmt: skip
    for name in ("call_helper", "library llvm_strs", "library cubin_cache",
                 "library linkerinfo_cache"):  # fmt: skip
        states.pop(name, None)
    return {**states, "signature": str(states["signature"])}


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f"{path.name}.tmp")
    beside.write_bytes(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME))
    beside.replace(path)


def forget_others(names: set[str], folder: Path) -> int:
    """Remove kernels of other names: of older sources, so never loaded. Return their files' number.

    Names are as `name_of` gives them.
    """
    stale = [
        path
        for path in folder.glob("*.xz*")
        if ".".join(path.name.split(".")[:2]) not in names
    ]
    for path in stale:
        path.unlink()
    return len(stale)
