"""How functions are compiled for a CPU: those that Python calls wholly, the others to be linked.

Numba makes machine code of every function, also of one that only compiled code calls: it optimizes
it, assembles it, and then links what it was optimized to into the caller and begins anew. That was
two thirds of the time until the first result. So a function has two forms here: one for Python,
compiled as usual when Python calls it, and one for compiled code, which ends where the caller's
library takes it in. Only the caller is optimized, with all that it calls.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba import _dynfunc
from numba.core import (
    compiler,
    config,
    environment,
    errors,
    targetconfig,
    typed_passes,
    types,
)
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_machinery import LoweringPass, register_pass

from glp_rapids.jit.signatures import found_once

ARRAYS_ARE_COUNTED = "returns an array, which it and whoever calls it need `allocates` for"


class LinkedLibrary(JITCodeLibrary):
    """The code of a function for other libraries to take in, not to be run.

    Each function was simplified when it was added. Without that `compress` took a sixth longer, and
    compiling no less.
    """

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """Return 0: there is no machine code."""
        return 0


@register_pass(mutates_CFG=False, analysis_only=False)
class _Register(LoweringPass):
    """Make a lowered function known to its callers, under a handle in the place of machine code."""

    _name = "glp_rapids_register"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        lowered = state["cr"]
        fndesc, library = lowered.fndesc, state.library
        handle = _dynfunc.make_function(
            fndesc.lookup_module(), fndesc.qualname.split(".")[-1], "", 0, lowered.env, (library,)
        )
        state.targetctx.insert_user_function(handle, fndesc, [library])
        state["cr"] = lowered._replace(cfunc=handle)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _SetEnvironments(LoweringPass):
    """Tell the code of linked functions its environments: constants that Python made for it.

    Numba does so when it makes a function of them, or loads code; what is linked is neither.
    """

    _name = "glp_rapids_set_environments"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        for variable in state.library._final_module.global_variables:
            if variable.name.startswith("_ZN08NumbaEnv"):
                known = environment.lookup_environment(variable.name)
                if known is not None:
                    state.library.codegen.set_env(variable.name, known)
        return True


class _Compiler(compiler.CompilerBase):
    """Compiles as Numba does, and looks for no signature twice."""

    def compile_extra(self, function: Callable) -> Any:
        with found_once():
            return super().compile_extra(function)


class _WholeCompiler(_Compiler):
    """Compiles what Python calls, with all that it links."""

    def compile_extra(self, function: Callable) -> Any:
        found = super().compile_extra(function)
        if not self.state.flags.nrt and _holds_arrays(found.signature.return_type):
            raise TypeError(f"{function.__qualname__} {ARRAYS_ARE_COUNTED}")
        return found

    def define_pipelines(self) -> list:
        pipeline = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.add_pass_after(_SetEnvironments, typed_passes.NativeLowering)
        pipeline.finalize()
        return [pipeline]


class _LinkedCompiler(_Compiler):
    """Compiles up to what a caller links."""

    def define_pipelines(self) -> list:
        pipeline = compiler.DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.add_pass_after(_Register, typed_passes.NativeLowering)
        pipeline.finalize()
        return [pipeline]

    def compile_extra(self, function: Callable) -> Any:
        self.state.library = LinkedLibrary(self.state.targetctx.codegen(), function.__qualname__)
        self.state.flags.no_compile = True
        return super().compile_extra(function)


def _holds_arrays(kind: types.Type) -> bool:
    if isinstance(kind, types.Optional):
        return _holds_arrays(kind.type)
    parts = kind.types if isinstance(kind, types.BaseTuple) else ()
    return isinstance(kind, types.Buffer) or any(map(_holds_arrays, parts))


def compiled(function: Callable | None = None, *, allocates: bool = False, **options: Any) -> Any:
    """Compile a function without the GIL; what compiled code calls is linked.

    ``allocates``: whether it makes arrays or is given new ones by what it calls, so that references
    are counted, as ``njit`` does. Of arrays that are lent nobody has to: that took longer than most
    rows, and a tenth of the time to compile.
    """
    if function is None:
        return lambda one: compiled(one, allocates=allocates, **options)
    if config.DISABLE_JIT:
        return function
    options["_nrt"] = allocates
    whole = numba.njit(
        nogil=True, no_cfunc_wrapper=True, pipeline_class=_WholeCompiler, **options
    )(function)
    whole.linked = numba.njit(
        nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True,
        pipeline_class=_LinkedCompiler, **options,
    )(function)  # fmt: skip
    template_of = whole.linked.get_call_template

    def get_call_template(args: tuple, kws: dict) -> Any:
        # A variable that begins with a constant is one at first, and a number later on in a loop:
        # Numba would compile what takes it for both, though only the latter is called.
        found = template_of(
            tuple(types.unliteral(one) for one in args),
            {name: types.unliteral(one) for name, one in kws.items()},
        )
        caller, (_, _, given, _) = targetconfig.ConfigStack.top_or_none(), found
        if caller is not None and caller.nrt != allocates:
            kind = whole.linked.overloads[tuple(given)].signature.return_type
            if _holds_arrays(kind):
                raise errors.TypingError(f"{function.__qualname__} {ARRAYS_ARE_COUNTED}")
        return found

    whole.get_call_template = get_call_template
    whole.get_overload = whole.linked.get_overload
    return whole
