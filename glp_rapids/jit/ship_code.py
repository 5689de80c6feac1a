"""Make compiled code of a CPU to be shipped, for the folder of `shipped_code`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from llvmlite import binding
from numba.core.codegen import JITCodeLibrary
from numba.core.serialize import dumps

from glp_rapids.jit import shipped_code
from glp_rapids.jit.shipped_code import Entries, ShippedUnpickler

# All processors of a kind have what this one has, and so must be able to run what is shipped.
PLAINEST = {"x86_64": "x86-64"}
# What an assembler puts in the place of instructions, where not all processors of a kind have it.
# The second all have; it comes with Numba's own functions, which were assembled before.
SPECIAL, COMMON = ("llvm.x86.", "llvm.aarch64.", "llvm.arm."), ("llvm.x86.atomic.",)


@contextmanager
def recording() -> Iterator[dict[str, Entries]]:
    """Collect what is compiled inside the block, or loaded of what is shipped, by module.

    What a cache on disk has is neither, so that must be empty.
    """
    found: dict[str, Entries] = {}
    finalize = JITCodeLibrary._finalize_final_module

    def before_it_is_assembled(library: JITCodeLibrary) -> None:
        # The passes of an assembler write into the module, what suits this processor.
        library.bitcode = library._final_module.as_bitcode()
        finalize(library)

    def note(module: str, digest: str, code: Any) -> None:
        content = code if isinstance(code, bytes) else content_of(code)
        found.setdefault(module, {})[digest] = content

    shipped_code.listeners.append(note)
    try:
        with mock.patch.object(JITCodeLibrary, "_finalize_final_module", before_it_is_assembled):
            yield found
    finally:
        shipped_code.listeners.remove(note)


def content_of(compiled: Any) -> bytes:
    """Return what is shipped of code as Numba has it.

    Raises
    ------
    ValueError
        It is of this process, or of this processor, or names what other versions of Python may
        not have.
    """
    library, descriptor = compiled.library, compiled.fndesc
    if compiled.lifted or compiled.reload_init or library.has_dynamic_globals:
        raise ValueError(f"{descriptor.qualname} cannot be shipped: it is of this process alone")
    _assembled_for_the_plainest(library.bitcode, descriptor.qualname)
    descriptor.typemap = descriptor.calltypes = None  # what compiling needed
    content = dumps(
        (
            library.name, library.bitcode, descriptor, compiled.environment, compiled.signature,
            tuple(compiled._find_referenced_environments()),
        )
    )  # fmt: skip
    ShippedUnpickler(io.BytesIO(content)).load()
    return content


def _assembled_for_the_plainest(bitcode: bytes, name: str) -> None:
    """Assemble for a processor without extensions: if LLVM cannot, it ends this process."""
    module = binding.parse_bitcode(bitcode)
    for function in module.functions:
        if function.name.startswith(SPECIAL) and not function.name.startswith(COMMON):
            raise ValueError(f"{name} cannot be shipped: it uses {function.name}")
    triple = binding.get_process_triple()
    plainest = PLAINEST.get(triple.partition("-")[0], "")
    target = binding.Target.from_triple(triple)
    target.create_target_machine(cpu=plainest, features="").emit_object(module)
