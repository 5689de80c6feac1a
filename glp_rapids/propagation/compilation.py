"""From a program's plain functions to compiled code, on either target, cached on disk.

Numba caches a function that closes over other compiled functions under a key that changes with
every process, so such a cache never hits. ``DigestCache`` puts a digest of everything the code is
made of in that place: the program's bytecode, its traits, and the kernels' source.
"""

from __future__ import annotations

import functools
import hashlib
import types
import warnings
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.caching import FunctionCache
from numba.core.errors import NumbaError

from glp_rapids.propagation import scalar
from glp_rapids.propagation.program import (
    FUNCTIONS,
    Program,
    Traits,
    fingerprint,
    functions_of,
    traits_of,
)


@functools.cache
def _source_digest() -> str:
    here = Path(__file__).parent
    files = sorted([*here.glob("*.py"), *here.glob("kernels/*.py")])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


class DigestCache(FunctionCache):
    """Numba's cache on disk, keyed by a digest of our own instead of pickled closures."""

    def __init__(self, function: Callable, digest: str):
        super().__init__(function)
        self._digest = digest

    def _index_key(self, sig: Any, codegen: Any) -> tuple:
        return (str(sig), codegen.magic_tuple(), self._digest, numba.__version__)


@dataclass(frozen=True)
class Target:
    """How one kind of processor compiles a scalar function, and what stands for ``round_even``."""

    name: str
    device_function: Callable[[Callable], Any]
    round_even: Callable

    def compile(self, function: Callable) -> Any:
        """Compile a plain function together with the plain functions that it calls."""
        return _compile(self, function)


@functools.cache
def _compile(target: Target, function: Callable) -> Any:
    if function is scalar.round_even:
        return target.device_function(target.round_even)
    names = function.__globals__
    own = dict(names)
    for name in function.__code__.co_names:
        if isinstance(names.get(name), types.FunctionType):
            own[name] = _compile(target, names[name])
    cells = tuple(
        types.CellType(_compile(target, cell.cell_contents))
        if isinstance(cell.cell_contents, types.FunctionType)
        else cell
        for cell in function.__closure__ or ()
    )
    copy = types.FunctionType(
        function.__code__, own, function.__name__, function.__defaults__, cells or None
    )
    copy.__qualname__, copy.__module__ = function.__qualname__, function.__module__
    return target.device_function(copy)


@functools.cache
def cpu_target() -> Target:
    """Give the target that compiles for the CPU."""

    def rint(value):
        return np.rint(value)

    # Contraction is off unless fastmath is asked for, so a*b+c rounds twice here as on the GPU.
    return Target("cpu", numba.njit(error_model="numpy", nogil=True), rint)


@dataclass(frozen=True)
class Compiled:
    """A program's functions on one target, and what the kernels that use them need to know."""

    traits: Traits
    digest: str
    state_type: type
    pick_label: Any
    load_neighbor: Any
    label_score: Any
    update_vertex: Any
    to_fixed: Any
    from_fixed: Any
    preferred: Any
    mix: Any


def _first_reason(error: Exception) -> str:
    """Pick the one line of a Numba error that says what is wrong."""
    lines = [line.strip() for line in str(error).splitlines()]
    noise = ("Failed in", "During:", "File ", "<source", "- Resolution", "There are", "[1] During")
    told = [line for line in lines if line and not line.startswith(noise)]
    for mark in ("Unknown attribute", "NameError", "Use of unsupported", "Cannot unify", "No impl",
                 "Invalid use", "Untyped global", "cannot", "not supported"):
        for line in told:
            if mark in line:
                return line
    return told[0] if told else type(error).__name__


def _try_function(program: Program, name: str, signature: tuple) -> Any:
    """Compile one function for the CPU alone; return its type or say why it does not compile."""
    function = functions_of(program)[name]
    compiled = cpu_target().compile(function)
    label = f"{type(program).__name__}.{name}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled.compile(signature)
    except NumbaError as error:
        raise TypeError(
            f"{label} does not compile: {_first_reason(error)} "
            "(plain scalar Python is meant: numbers, `state` fields, if, for, calls of such functions)"
        ) from None
    return next(iter(compiled.overloads[signature].signature.return_type
                     for _ in (0,)))


def _check(program: Program, traits: Traits, fields: dict[str, Any], weight_type: Any) -> Traits:
    """Compile each function by itself, so that an error names it, and learn the types it gives."""
    from numba import types as nt

    state = numba.typeof(state_class(tuple(fields))(*fields.values()))
    vertex = nt.int64
    label = numba.typeof(fields["labels"]).dtype
    name_of = type(program).__name__
    loaded = _try_function(program, "load_neighbor", (vertex, vertex, weight_type, state))
    if not (isinstance(loaded, nt.BaseTuple) and len(loaded) == 2):
        raise TypeError(f"{name_of}.load_neighbor must return (label, amount), it returns {loaded}")
    heard, amount = loaded.types
    if not isinstance(heard, nt.Integer):
        raise TypeError(f"{name_of}.load_neighbor must return an integer label, not {heard}")
    if not isinstance(amount, nt.Integer | nt.Float | nt.Boolean):
        raise TypeError(f"{name_of}.load_neighbor must return a number as amount, not {amount}")
    votes = nt.float64 if isinstance(amount, nt.Float) else nt.int64
    score = _try_function(program, "label_score", (vertex, label, votes, state))
    if not isinstance(score, nt.Integer | nt.Float | nt.Boolean):
        raise TypeError(f"{name_of}.label_score must return a number on every path, not {score}")
    real_scores = isinstance(score, nt.Float)
    score = nt.float64 if real_scores else nt.int64
    _try_function(program, "update_vertex", (vertex, label, score, state))
    picked = _try_function(program, "pick_label", (vertex, nt.int64, state))
    if not isinstance(picked, nt.Integer):
        raise TypeError(f"{name_of}.pick_label must return an integer label, not {picked}")
    return replace(
        traits, real_amounts=isinstance(amount, nt.Float), real_scores=real_scores
    )


@functools.cache
def state_class(fields: tuple[str, ...]) -> type:
    """Give the named tuple of a program's state."""
    return namedtuple("State", fields)


def compile_program(
    program: Program, target: Target, fields: dict[str, Any], weights: Any | None
) -> Compiled:
    """Compile a program for a target; a function that does not compile is named in a TypeError.

    ``fields`` is the whole state by name, in order; host arrays, of which only the types count.
    """
    traits = traits_of(program, weighted=weights is not None)
    real_weights = weights is not None and weights.dtype.kind == "f"
    weight_type = numba.float64 if real_weights else numba.int64
    if all((traits.plain, traits.default_load, traits.default_score)):
        # Nothing to learn: the amount is the weight, the score is the sum.
        traits = replace(traits, real_amounts=real_weights, real_scores=False)
    else:
        traits = _check(program, traits, fields, weight_type)
    if traits.default_score:
        # The sum itself is compared, in fixed point; update_vertex sees it in the caller's unit.
        traits = replace(traits, real_scores=False)
    functions = functions_of(program)
    parts = [target.name, str(traits), str(tuple(fields)), str(real_weights), _source_digest()]
    parts += [fingerprint(functions[name]) for name in FUNCTIONS]
    fixed = scalar.fixed_of_float if traits.real_amounts else scalar.fixed_of_integer
    real = scalar.real_of_fixed if traits.real_amounts else scalar.real_of_integer
    return Compiled(
        traits=traits,
        digest=hashlib.sha256("\n".join(parts).encode()).hexdigest(),
        state_type=state_class(tuple(fields)),
        to_fixed=target.compile(fixed),
        from_fixed=target.compile(real),
        preferred=target.compile(scalar.preferred),
        mix=target.compile(scalar.mix),
        **{name: target.compile(functions[name]) for name in FUNCTIONS},
    )
