"""From a program's plain functions to compiled code, on either target, cached on disk."""

from __future__ import annotations

import functools
import warnings
from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numba
from numba.core import config

from glp_rapids.common import fixed_point
from glp_rapids.jit.cache import keep, recalled
from glp_rapids.jit.diagnosis import described, explain
from glp_rapids.jit.fingerprint import bytecode, digest_of, fingerprint
from glp_rapids.jit.raising import draws_random_numbers, errors_of, place_of_print, prints
from glp_rapids.jit.target import Target, cpu_target
from glp_rapids.propagation import ties
from glp_rapids.propagation.program import Program, Traits, functions_of, traits_of


@dataclass(frozen=True)
class Compiled:
    """A program's functions on one target, and what the kernels that use them need to know."""

    name: str
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


def _overload(program: Program, name: str, signature: tuple, fields: tuple[str, ...]) -> Any:
    """Compile one function for the CPU alone, or say why it fails."""
    function = functions_of(program)[name]
    compiled = cpu_target().compile(function)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compiled.compile(signature)
    # Numba lets errors of many kinds through, but whatever it is, this function caused it.
    except Exception as error:
        raise TypeError(
            f"{type(program).__name__}.{name} does not compile: "
            f"{explain(error, function, fields)}. Plain scalar Python is meant: numbers, "
            "fields of state, if, for, calls of such functions"
        ) from None
    return compiled.overloads[signature]


def _check(program: Program, traits: Traits, fields: dict[str, Any], weight_type: Any) -> Traits:
    """Compile each function by itself, so that errors name it, and learn the types it returns."""
    from numba import types as nt

    names = tuple(fields)
    state = numba.typeof(state_class(names)(*fields.values()))
    vertex = nt.int64
    label = numba.typeof(fields["labels"]).dtype
    number = nt.Integer | nt.Float | nt.Boolean

    def refuse(name: str, wanted: str, got: Any) -> None:
        path = "nothing on some path" if isinstance(got, nt.Optional) else described(got)
        path = "nothing" if isinstance(got, nt.NoneType) else path
        raise TypeError(f"{type(program).__name__}.{name} must return {wanted}, but returns {path}")

    overloads = {}

    def returned(name: str, *signature: Any) -> Any:
        overloads[name] = _overload(program, name, (*signature, state), names)
        return overloads[name].signature.return_type

    amount = weight_type
    if not traits.default_load:
        name = "load_neighbor"
        loaded = returned(name, vertex, vertex, weight_type)
        if not (isinstance(loaded, nt.BaseTuple) and len(loaded) == 2):
            refuse(name, "(label, amount)", loaded)
        heard, amount = loaded.types
        if not isinstance(heard, nt.Integer):
            refuse(name, "(label, amount) with an integer label", heard)
        if not isinstance(amount, number):
            refuse(name, "(label, amount) with a number as amount", amount)
    real_amounts = isinstance(amount, nt.Float)
    score = votes = nt.float64 if real_amounts else nt.int64
    if not traits.default_score:
        score = returned("label_score", vertex, label, votes)
        if not isinstance(score, number):
            refuse("label_score", "a number", score)
        if score == nt.uint64:  # kernels compare int64: from 2**63 on it would be negative
            refuse("label_score", "int64 or a float, as np.int64(...) of it", score)
    real_scores = isinstance(score, nt.Float)
    if not traits.default_update:
        score = nt.float64 if real_scores else nt.int64
        if not isinstance(returned("update_vertex", vertex, label, score), nt.NoneType):
            raise TypeError(
                f"{type(program).__name__}.update_vertex returns something, which nobody reads; "
                "write state.labels[v] = label there, and return nothing"
            )
    if not traits.default_pick:
        picked = returned("pick_label", vertex, nt.int64)
        if not isinstance(picked, nt.Integer):
            refuse("pick_label", "an integer label", picked)
    for name, overload in overloads.items():
        if draws_random_numbers(overload):
            raise TypeError(
                f"{type(program).__name__}.{name} draws random numbers, which would be others in "
                "every run; write `from glp_rapids import random_below` above the class, and "
                "random_below(v, state.sweep, state.seed, bound) in it"
            )
        if prints(overload):  # on a CPU, too: what comes out is of all threads, in no order
            place = place_of_print(functions_of(program)[name])
            raise TypeError(
                f"{type(program).__name__}.{name} calls print{place}, which a program's functions "
                "cannot; to look at values, write them into an array of initial_state, and name "
                "that in result_columns"
            )
        # With Numba's check of indices, a means to find mistakes, whatever indexes may raise.
        if not config.BOUNDSCHECK and (errors := errors_of(overload)):
            raise TypeError(
                f"{type(program).__name__}.{name} may raise {errors[0]}, and nobody could catch "
                "it: threads run it together. Leave out what raises, and return what has no "
                "effect: nan as a score, a negative label"
            )
    return replace(traits, real_amounts=real_amounts, real_scores=real_scores)


_learned: dict[str, Traits] = {}


def _checked(
    program: Program, traits: Traits, fields: dict[str, Any], weight_type: Any, digest: str
) -> Traits:
    """Return the outcome of `_check`, kept on disk: compiling takes longer than most runs."""
    if digest not in _learned:
        checks = _check, _overload, errors_of, draws_random_numbers, prints
        key = digest_of([digest, *map(bytecode, checks)])
        learned = recalled(_checked, key)
        if learned is None:
            learned = _check(program, traits, fields, weight_type)
            keep(_checked, key, learned)
        _learned[digest] = learned
    return _learned[digest]


@functools.cache
def state_class(fields: tuple[str, ...]) -> type:
    """Return the named tuple of a program's state."""
    return namedtuple("State", fields)


def built_once(build: Callable) -> Callable:
    """Let a kernel of a program, built for some further arguments, be built once a process."""
    built: dict[tuple, Any] = {}

    @functools.wraps(build)
    def kernel_of(compiled: Compiled, *how: Any) -> Any:
        key = compiled.digest, *how
        if key not in built:
            built[key] = build(compiled, *how)
        return built[key]

    kernel_of.built = built
    return kernel_of


@functools.cache
def with_small_sums(compiled: Compiled) -> Compiled:
    """Return the functions of a program for a run in which sums of votes are small."""
    traits = replace(compiled.traits, small_sums=True)
    return replace(compiled, traits=traits, digest=digest_of([compiled.digest, "small sums"]))


_recalled: dict[tuple, Compiled] = {}


def compile_program(
    program: Program, target: Target, fields: dict[str, Any], weights: Any | None
) -> Compiled:
    """Compile a program for a target; a function that does not compile is named in a TypeError.

    ``fields`` is the whole state by name, in order; host arrays, of which only the types count.
    """
    functions = functions_of(program)
    # All that the outcome depends on. What functions mean may change while they stay the same.
    key = (
        type(program).__name__, bool(program.skip_inactive), bool(program.count_volumes), target,
        None if weights is None else weights.dtype,
        tuple((name, value.dtype, value.ndim) for name, value in fields.items()),
        tuple((function, fingerprint(function)) for function in functions.values()),
    )  # fmt: skip
    if key not in _recalled:
        _recalled[key] = _compile_program(program, functions, target, fields, weights)
    return _recalled[key]


def _compile_program(
    program: Program,
    functions: dict[str, Callable],
    target: Target,
    fields: dict[str, Any],
    weights: Any | None,
) -> Compiled:
    traits = traits_of(program, weighted=weights is not None)
    real_weights = weights is not None and weights.dtype.kind == "f"
    parts = [str(traits)]
    parts.append("unweighted" if weights is None else str(weights.dtype))
    parts += [f"{name}: {numba.typeof(value)}" for name, value in fields.items()]
    # What is kept names the modules of its functions, and loads only where they can be imported.
    parts += [f"{function.__module__} {fingerprint(function)}" for function in functions.values()]
    if all((traits.plain, traits.default_load, traits.default_score)):
        # Nothing to learn: the amount is the weight, the score is the sum.
        traits = replace(traits, real_amounts=real_weights, real_scores=False)
    else:
        weight_type = numba.float64 if real_weights else numba.int64
        traits = _checked(program, traits, fields, weight_type, digest_of(parts))
    if traits.default_score:
        # The sum itself is compared, in fixed point; update_vertex sees it in the caller's unit.
        traits = replace(traits, real_scores=False)
    fixed = fixed_point.fixed_of_float if traits.real_amounts else fixed_point.fixed_of_integer
    real = fixed_point.real_of_fixed if traits.real_amounts else fixed_point.real_of_integer
    return Compiled(
        name=type(program).__name__, traits=traits,
        digest=digest_of([*parts, target.name, str(traits)]), state_type=state_class(tuple(fields)),
        to_fixed=target.compile(fixed), from_fixed=target.compile(real),
        preferred=target.compile(ties.preferred),
        **{name: target.compile(function) for name, function in functions.items()},
    )  # fmt: skip
