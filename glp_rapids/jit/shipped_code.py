"""Compiled code of a CPU that comes with the package, as LLVM has it between its two halves.

The first call of a process without a cache spends nine tenths of its time on Numba's typing, its
lowering and LLVM's optimizer. What `ship_code` made of the same sources spares it that: assembling
for the processor at hand is all that is left. A file holds what is compiled of one module, each
under a digest of all that it is compiled from, as a cache's is; so code that is stale, or of other
versions, is not found and never loaded. The digests name sources, on which all versions of Python
agree, and no processor: one package serves all of a kind. Nor do they name NumPy, of which compiled
code calls nothing: Numba has its own.
"""

from __future__ import annotations

import functools
import hashlib
import io
import pickle
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
from llvmlite import binding
from numba.core import config
from numba.core.compiler import compile_result

from glp_rapids.jit.environments import Unpickler

FOLDER = Path(__file__).with_name("shipped_cpu")
VERSIONS = f"numba-{numba.__version__}-llvmlite-{llvmlite.__version__}"  # a folder for each

# To be counted up where what is kept, or how it is made, becomes another.
FORMAT = 2
# Of Numba's switches those that change code, and are no part of a digest otherwise.
SWITCHES = (
    "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "DEBUGINFO_DEFAULT", "DEBUG_NRT", "ENABLE_PROFILING",
    "LLVM_REFPRUNE_PASS", "LLVM_REFPRUNE_FLAGS", "USING_SVML",
)  # fmt: skip
# Packages and modules of which shipped code may name classes and functions: none whose names change
# with its version, or that is of Numba's means to keep bytecode.
KNOWN = ("numba", "glp_rapids", "builtins", "copyreg", "collections", "operator", "_operator")
KNOWN_MODULES = ("numpy",)
REFUSED = "numba.cloudpickle"

Entries = dict[str, bytes]  # what was kept by digest

# What hears of code that was loaded (its content) or compiled, while code is made to be shipped.
listeners: list[Callable[[str, str, Any], None]] = []


def digest_to_ship(codegen: Any, *parts: Any) -> str:
    """Return the digest under which code is shipped for this system, of all that it is made of."""
    triple, *_ = codegen.magic_tuple()
    switches = [str(getattr(config, name)) for name in SWITCHES]
    text = repr((FORMAT, triple, parts, switches, sys.flags.optimize))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def path_of(module: str) -> Path:
    """Return the file for what is compiled of a module."""
    return FOLDER / VERSIONS / f"{module.removeprefix('glp_rapids.')}.xz"


def load(path: Path, module: str, digest: str, target_context: Any) -> Any:
    """Return the code that a file of the package holds, as Numba has it; None: there is none."""
    # Whatever is wrong with what came with the package, the compiler can do without it.
    try:
        content = entries_of(path).get(digest)
        if content is None:
            return None
        found = _rebuilt(content, target_context)
    except Exception as error:
        complain_of(path, error)
        return None
    for listener in listeners:
        listener(module, digest, content)
    return found


class ShippedUnpickler(Unpickler):
    """Loads what any version of Python would."""

    def find_class(self, module: str, name: str) -> Any:
        known = module in KNOWN_MODULES or module.partition(".")[0] in KNOWN
        if not known or module.startswith(REFUSED):
            raise ValueError(f"code that is shipped may not hold {module}.{name}")
        return super().find_class(module, name)


@functools.lru_cache(4)
def entries_of(path: Path) -> Entries:
    """Return what a file holds; nothing where Python was built without what reads it."""
    try:
        import lzma
    except ImportError:
        return {}
    return pickle.loads(lzma.decompress(path.read_bytes()))


def _rebuilt(content: bytes, target_context: Any) -> Any:
    """Make code as Numba has it: assembled for this processor, and ready to be kept."""
    name, bitcode, *rest = ShippedUnpickler(io.BytesIO(content)).load()
    descriptor, environment, signature, environments = rest
    codegen = target_context.codegen()
    library = codegen.create_library(name)
    library.enable_object_caching()  # Numba would not, and then nothing could be kept
    library._final_module = binding.parse_bitcode(bitcode)
    library._finalize_final_module()
    for one in environments:
        codegen.set_env(one.env_name, one)
    return compile_result(
        target_context=target_context, typing_context=target_context.typing_context,
        library=library, fndesc=descriptor, environment=environment, signature=signature,
        entry_point=target_context.get_executable(library, descriptor, environment),
        type_annotation="", objectmode=False, lifted=(), reload_init=(),
        referenced_envs=environments, typing_error=None,
    )  # fmt: skip


def complain_of(path: Path, error: Exception) -> None:
    """Warn that what came with the package is of no use here."""
    warnings.warn(
        f"{path} came with glp_rapids and cannot be used ({type(error).__name__}: {error}); "
        "results are the same, but the first call takes some seconds longer. Installing the "
        "package anew may mend it",
        RuntimeWarning,
        stacklevel=2,
    )
