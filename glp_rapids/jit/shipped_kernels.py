"""Kernels that come with the package: as PTX, and as machine code for some GPUs.

The first call of a process without a cache would spend most of its time on Numba's typing, its
lowering and NVVM. What `ship` made of the same sources spares it that. A file's name is a digest of
all that the kernel is compiled from, as a cache's is; so one that is stale, or of other versions,
is not found and never loaded. Unlike a cache's it names sources instead of bytecode: one wheel
serves all versions of Python.

NVVM writes the same text for all GPUs of a family but for the first lines, which name a GPU and a
version of the language. These lines are written when a text is asked for, the version as low as the
family's GPUs allow: a toolkit's assembler refuses versions that are newer than itself.
"""

from __future__ import annotations

import contextlib
import json
import lzma
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from numba.core import config

from glp_rapids.jit.cache import text_of_types
from glp_rapids.jit.fingerprint import (
    Elsewhere,
    digest_of,
    file_digest,
    source_fingerprint,
    source_of_program,
)
from glp_rapids.jit.shipped_code import complain_of

try:
    import numba_cuda
except ImportError:  # as where kernels run in Numba's simulator
    numba_cuda = None

# A number of numba-cuda's that changes more often says nothing of how kernels take arguments.
VERSION = numba_cuda.__version__.split(".")[:2] if numba_cuda else []

# What is made before a wheel is built, and what git has, of kernels that first calls need most.
FOLDER = Path(__file__).with_name("shipped")
IN_GIT = Path(__file__).with_name("shipped_gpu") / f"numba-cuda-{'.'.join(VERSION)}"

Capability = tuple[int, int]

# The least compute capability of each family, the newest first. From Blackwell on NVVM is another;
# older GPUs than Ampere have no instructions that reduce over lanes, and compile for themselves.
FAMILIES: tuple[Capability, ...] = ((11, 0), (10, 0), (8, 0))

# The version of PTX by least compute capability, the newest first: the oldest that knows all GPUs
# from there on (8.0 came with CUDA 12.0, 8.8 with 12.9, 9.0 with 13.0; capability 8.8 is that new).
VERSIONS: dict[Capability, str] = {
    (12, 0): "8.8", (11, 0): "9.0", (10, 0): "8.8", (8, 9): "8.0", (8, 8): "9.0", (8, 0): "8.0",
}  # fmt: skip

# What decides about any kernel's code and how it is launched, and is called by none.
MACHINERY = ("cuda.py", "launch.py", "shipped_kernels.py")

HEADER = re.compile(r"^\.version .*\n\.target .*$", re.MULTILINE)


class Recipe(NamedTuple):
    """What a kernel is compiled from."""

    function: Callable
    digest: str  # says what its code does not
    program: Any  # `Compiled`, of whose functions it is made, or None
    options: dict[str, Any]


class Texts(dict):
    """PTX by family, to be had by compute capability, as a library of numba-cuda's asks for it."""

    def get(self, capability: tuple, default: Any = None) -> Any:
        """Return the texts for a GPU, headers and all: a list of one."""
        number = capability[:2]
        text = next((self[first] for first in FAMILIES if number >= first and first in self), None)
        if text is None:
            return default
        version = next(version for first, version in VERSIONS.items() if number >= first)
        return [HEADER.sub(f".version {version}\n.target {machine(capability)}", text, count=1)]


def machine(capability: tuple) -> str:
    """Return the name of a GPU's instruction set: sm_90a."""
    return f"sm_{''.join(map(str, capability))}"


def name_of(recipe: Recipe, signature: Any) -> str | None:
    """Return the name of a kernel's files, or None if it is not all this package's own."""
    source = source_fingerprint(recipe.function)
    digest = recipe.digest
    if recipe.program is not None:
        told = source_of_program(recipe.program)
        digest = told and digest.replace(recipe.program.digest, told)
    if source is None or digest is None:
        return None
    try:
        machinery = [file_digest(Path(__file__).with_name(name)) for name in MACHINERY]
    except Elsewhere:
        return None
    options = sorted(recipe.options.items())
    parts = [source, digest, text_of_types(signature), str(options), *machinery, *VERSION]
    parts += map(str, (config.BOUNDSCHECK, config.CUDA_DEBUGINFO_DEFAULT, sys.flags.optimize))
    return f"{recipe.function.__name__}.{digest_of(parts)[:32]}"


def load(recipe: Recipe, signature: Any, target_context: Any) -> Any:
    """Return a kernel as Numba would compile it, loaded on the current GPU; None: there is none."""
    folders = [folder for folder in (IN_GIT, FOLDER) if folder.is_dir()]
    if not folders or (name := name_of(recipe, signature)) is None:
        return None
    text = next(filter(Path.exists, (folder / f"{name}.ptx.xz" for folder in folders)), None)
    if text is None:
        return None
    # Whatever is wrong with what came with the package, the compiler can do without it.
    try:
        kernel = rebuilt(json.loads(_content(text)), signature)
        kernel.target_context = target_context
        library = kernel._codelibrary
        capability = library._ensure_cc(None)
        if library._ptx_cache.get(capability) is None:  # older than all families
            return None
        _put_on_gpu(library, text.with_name(f"{name}.{machine(capability)}.xz"), capability)
    except Exception as error:
        complain_of(text, error)
        return None
    return kernel


def rebuilt(kept: dict[str, Any], signature: Any) -> Any:
    """Make a kernel of numba-cuda's from what `ship` kept."""
    from numba.cuda import codegen, dispatcher, types, typing

    texts = Texts(
        {first: kept["ptx"][str(first)] for first in FAMILIES if str(first) in kept["ptx"]}
    )
    library = codegen.CUDACodeLibrary._rebuild(
        codegen=None, name=kept["name"], entry_name=kept["entry_name"], llvm_strs=[],
        ptx_cache=texts, cubin_cache={}, linkerinfo_cache={}, max_registers=None,
        nvvm_options=kept["nvvm_options"], needs_cudadevrt=kept["needs_cudadevrt"], nrt=False,
        use_cooperative=kept["cooperative"], lto=False,
    )  # fmt: skip
    return dispatcher._Kernel._rebuild(
        cooperative=kept["cooperative"], name=kept["entry_name"],
        signature=typing.signature(types.void, *signature), codelibrary=library, debug=False,
        lineinfo=False, call_helper=None, extensions=[],
    )  # fmt: skip


def _put_on_gpu(library: Any, path: Path, capability: tuple) -> None:
    """Load a kernel's machine code, if it came with the package, or else assemble its text."""
    from numba.cuda.cudadrv.driver import ObjectCode

    if path.exists():
        try:
            content = _content(path)
        except (lzma.LZMAError, EOFError, OSError) as error:
            complain_of(path, error)
        else:
            library._cubin_cache[capability] = ObjectCode.from_cubin(content, name=path.stem)
            library._linkerinfo_cache[capability] = ""
            # A driver may be older than the toolkit that made it, and says so in many ways.
            with contextlib.suppress(Exception):
                library.get_cufunc()
                return
            del library._cubin_cache[capability]
    library.get_cufunc()


def _content(path: Path) -> bytes:
    return lzma.decompress(path.read_bytes())
