"""A digest of what a function is compiled from: all that its code does, and all that it can read.

Compiled code holds the values of its module, of other modules and of enclosing functions as they
stood when it was compiled. So the digest follows a function to whatever it can reach: functions it
calls, compiled ones too, arrays, tuples, classes, and the attributes of modules. Names of
parameters, line numbers, docstrings and comments don't count.
"""

from __future__ import annotations

import builtins
import dataclasses
import dis
import enum
import functools
import hashlib
import time
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

# What they hold changes with their version only, which Numba's own keys name.
LIBRARIES = ("cmath", "cupy", "llvmlite", "math", "numba", "numpy", "operator", "scipy")
PLAIN = (
    bool | int | float | complex | str | bytes | range | slice | np.generic | np.dtype
    | types.EllipsisType | None
)  # fmt: skip

PACKAGE = Path(__file__).parents[1]
BEGUN = time.time()  # about when this process imported what it compiles


class Elsewhere(Exception):
    """A function's source is not a file of this package that can be read."""


_settled: dict[Callable, str] = {}


def digest_of(text: list[str]) -> str:
    """Return one digest of all lines."""
    return hashlib.sha256("\n".join(text).encode()).hexdigest()


def fingerprint(function: Callable) -> str:
    """Return a digest of what a function computes: its bytecode and the values it can read."""
    if (known := _settled.get(function)) is not None:
        return known
    digest = _digest_by(bytecode, function)
    # Constants of a caller's module may change between two runs; those of this package do not.
    if function.__closure__ is None and of_package(function):
        _settled[function] = digest
    return digest


def source_fingerprint(function: Callable) -> str | None:
    """Return a digest as `fingerprint` does, on which all versions of Python agree.

    In the place of bytecode it names files of this package by their content, and the line where a
    function begins. None: something that it calls is not this package's own.
    """
    try:
        return _digest_by(_source, function)
    except Elsewhere:
        return None


def source_of_program(program: Any) -> str | None:
    """Return what a program's digest says, in terms that all versions of Python share."""
    parts = []
    for field in dataclasses.fields(program):
        value = getattr(program, field.name)
        if field.name == "digest":
            continue
        if (function := plain_function(value)) is not None:
            value = source_fingerprint(function)
            if value is None:
                return None
        elif isinstance(value, type):
            value = value._fields
        parts.append(f"{field.name}: {value}")
    return digest_of(parts)


def _digest_by(text_of: Callable[[Callable], str], function: Callable) -> str:
    # A module may be handed on to another function, so it counts by all names looked up anywhere.
    names: frozenset[str] = frozenset()
    while True:
        walk = _Walk(names, text_of)
        digest = walk.function(function)
        if not walk.looked_inside or walk.names <= names:
            return digest
        names = names.union(walk.names)


def _source(function: Callable) -> str:
    code = function.__code__
    file = Path(code.co_filename)
    # A line may hold two lambdas, of which nothing here would tell one from the other.
    if not of_package(function) or PACKAGE not in file.parents or code.co_name == "<lambda>":
        raise Elsewhere(f"{function.__qualname__} is not a named function of this package")
    place = file.relative_to(PACKAGE).as_posix()
    return f"{place} {file_digest(file)} {code.co_qualname} {code.co_firstlineno}"


@functools.cache
def file_digest(file: Path) -> str:
    """Return the digest of a file of this package."""
    try:
        times = file.stat()
        # an upgrade of which this process knows nothing yet
        if max(times.st_mtime, times.st_ctime) > BEGUN:
            raise Elsewhere(f"{file} is newer than what this process imported")
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError as error:
        raise Elsewhere(f"{file}: {error.strerror}") from error


def of_package(function: Callable) -> bool:
    """Tell whether a function is this package's own."""
    return function.__globals__.get("__name__", "").startswith("glp_rapids.")


def plain_function(value: Any) -> types.FunctionType | None:
    """Return the function that a value is or was compiled from; None for those of libraries."""
    found = getattr(value, "_dispatcher", value)  # a ufunc's
    found = getattr(found, "py_func", getattr(found, "_defn", found))  # or an intrinsic's
    return found if isinstance(found, types.FunctionType) and not of_library(found) else None


def of_library(value: Any) -> bool:
    """Tell whether a value is part of a library that compiled code may use."""
    name = value.__name__ if isinstance(value, types.ModuleType) else None
    name = name or getattr(value, "__module__", None) or type(value).__module__
    if name == "builtins":  # so says what is defined where no module has a name, too
        return getattr(builtins, getattr(value, "__name__", ""), None) is value
    return isinstance(name, str) and name.partition(".")[0] in LIBRARIES


def names_of(code: types.CodeType) -> frozenset[str]:
    """Collect the names of globals and attributes that a function, and those inside it, look up."""
    inner = (one for one in code.co_consts if isinstance(one, types.CodeType))
    return frozenset(code.co_names).union(*map(names_of, inner))


def content_of(cell: types.CellType, name: str, function: Callable) -> Any:
    """Return the value that a function has from the one around it."""
    try:
        return cell.cell_contents
    except ValueError:
        raise TypeError(f"{function.__qualname__} refers to {name!r}, which has no value") from None


def bytecode(function: Callable) -> str:
    """Return the digest of a function alone, without what it refers to."""
    return _bytecode(function.__code__)[0]


def global_names(code: types.CodeType) -> tuple[str, ...]:
    """List the names that a function, and those inside it, look up in its module."""
    return _bytecode(code)[1]


@functools.cache
def _bytecode(code: types.CodeType) -> tuple[str, tuple[str, ...]]:
    """Return a digest of the bytecode, and the names that it looks up in its module, sorted."""
    text, names = [f"{code.co_names}"], set()
    for operation, number in _steps(code):
        value: Any = number
        if operation in CONSTANTS:
            value = code.co_consts[number]
            if isinstance(value, types.CodeType):  # its repr holds an address
                value, inner = _bytecode(value)
                names.update(inner)
        elif operation in LOOKUPS:
            names.add(code.co_names[number >> LOOKUPS[operation]])
        text.append(f"{dis.opname[operation]} {value!r}")
    return digest_of(text), tuple(sorted(names))


def _steps(code: types.CodeType) -> Iterator[tuple[int, int]]:
    """Yield the operations of a function and the number that each has, as they are written.

    `dis.get_instructions` finds out more of each, and so takes a tenth of a second for the thirteen
    thousand of a first call on a GPU.
    """
    further = 0
    operations = code.co_code
    for operation, number in zip(operations[::2], operations[1::2], strict=True):
        number |= further << 8
        further = number if operation == FURTHER else 0
        if operation not in (FURTHER, UNUSED):
            yield operation, number


FURTHER, UNUSED = dis.opmap["EXTENDED_ARG"], dis.opmap["CACHE"]
CONSTANTS = frozenset(dis.hasconst)


def _lookups() -> dict[int, int]:
    """Return the operations that look up a name in a module, and by what bits theirs is shifted.

    Which differs between versions of Python: it is read off the second name of a function.
    """
    second = (lambda: (dis, types)).__code__
    *_, (_, number) = ((one, number) for one, number in _steps(second) if one == GLOBAL)
    return {GLOBAL: number.bit_length() - 1, dis.opmap["LOAD_NAME"]: 0}


GLOBAL = dis.opmap["LOAD_GLOBAL"]
LOOKUPS = _lookups()


class _Walk:
    """One way through all that a function can reach, each thing once."""

    def __init__(self, names: frozenset[str], text_of: Callable[[Callable], str]):
        self._given, self.names, self._text_of = names, set(), text_of
        self.looked_inside = False  # of a module or class, where names count
        self._known: dict[int, str] = {}
        self._open: list[Any] = []

    def function(self, function: Callable) -> str:
        """Return the digest of a function and of all that it can read."""
        if id(function) in self._known:
            return self._known[id(function)]
        if any(function is one for one in self._open):
            raise TypeError(f"{function.__qualname__} calls itself; write a loop instead")
        code, names = function.__code__, function.__globals__
        self.names |= names_of(code)
        self._open.append(function)
        text = [self._text_of(function)]
        for name in global_names(code):
            if name in names:
                text.append(f"{name} = {self.meaning(names[name], name)}")
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            text.append(f"{name} = {self.meaning(content_of(cell, name, function), name)}")
        for default in (function.__defaults__, function.__kwdefaults__):
            if default is not None:
                text.append(f"default {self.meaning(default, 'default')}")
        self._open.pop()
        self._known[id(function)] = digest = digest_of(text)
        return digest

    def meaning(self, value: Any, name: str) -> str:
        """Return a text that tells a value from others, the same in every process."""
        if isinstance(value, enum.Enum):
            return f"{type(value).__name__}.{value.name} {self.meaning(value.value, name)}"
        if isinstance(value, PLAIN):
            return repr(value)
        if (function := plain_function(value)) is not None:
            options = getattr(value, "targetoptions", {})
            return f"{self.function(function)} {sorted(options.items())}"
        if isinstance(value, np.ndarray):
            if value.dtype.hasobject:  # no compiler reads them
                return str(value.dtype)
            content = hashlib.sha256(value.tobytes()).hexdigest()
            return f"{value.dtype} {value.shape} {content}"
        if of_library(value) and isinstance(value, types.ModuleType | type | Callable):
            return f"{getattr(value, '__module__', '')} {getattr(value, '__name__', value)}"
        if any(value is one for one in self._open):
            return "itself"
        self._open.append(value)
        parts = [f"{one} = {self.meaning(held, one)}" for one, held in self._held(value, name)]
        self._open.pop()
        kind = getattr(value, "__name__", type(value).__name__)
        return f"{kind} {getattr(value, '_fields', '')} {parts}"

    def _held(self, value: Any, name: str) -> Iterator[tuple[str, Any]]:
        """Yield the parts of a value that compiled code can read, by name."""
        if isinstance(value, tuple | list | set | frozenset):
            values = sorted(value, key=repr) if isinstance(value, set | frozenset) else value
            yield from ((f"{name}[{place}]", one) for place, one in enumerate(values))
        elif isinstance(value, dict):
            for key, one in value.items():
                yield f"{name} key", key
                yield f"{name}[{key!r}]", one
        elif isinstance(value, enum.EnumMeta):
            yield from value.__members__.items()
        elif isinstance(value, type) and issubclass(value, tuple):
            return  # a named tuple's fields say it all
        elif isinstance(value, types.ModuleType | type):
            self.looked_inside = True
            for one in sorted(self._given):
                held = getattr(value, one, None)
                # No compiler calls what is a plain function there.
                if not (one.startswith("__") or isinstance(held, types.FunctionType)):
                    yield one, held
        elif _readable(value):
            raise TypeError(
                f"{name!r} is a {type(value).__qualname__}, whose content cannot be told from one "
                "run to the next; use numbers, arrays, tuples and plain functions"
            )


def _readable(value: Any) -> bool:
    """Tell whether compiled code could read a value of a kind unknown here."""
    import numba
    from numba.core.errors import NumbaError

    if isinstance(value, numba.types.Type | np.ufunc | types.BuiltinFunctionType):
        return False
    try:
        numba.typeof(value)
    except (NumbaError, ValueError, TypeError):
        return False
    return True
