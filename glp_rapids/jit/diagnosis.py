"""Why a function of a program does not compile, in one sentence.

Numba reports how it came upon an error through all its stages; the user needs the innermost cause,
in words of what they wrote, and the line.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from glp_rapids.jit.fingerprint import of_package, plain_function

_OF_MODULE = r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'"
# What Numba says, and what is said instead; the first that matches.
_CAUSES = (
    (r"Unknown attribute '(\w+)' of type State\(", "state has no field {0!r}; there are {fields}"),
    (_OF_MODULE, "{1}.{0} is not supported"),
    (r"Unknown attribute '(\w+)' of type (.+)", "{1} has no attribute {0!r}"),
    (r"NameError: name '(\w+)' is not defined", "the name {0!r} is not defined"),
    (r"module '([\w.]+)' has no attribute '(\w+)'", "there is no {0}.{1}"),
    (r"print\(\) function", "print is not for a program's functions; name arrays of initial_state "
     "in result_columns to look at them"),
    (r"opcode \(IMPORT_NAME\)", "import at the top of the module, not in the function"),
    (r"No definition for lowering State\(.*\)\.(\w+) =",
     "state.{0} cannot be replaced; write into it, as state.{0}[v] = ..."),
    (r">>> (setitem|getitem)\((.*)\)", "indexing does not fit: {0}({1})"),
    (r">>> (\w[\w.]*)\((.*)\)", "{0}({1}) is not supported"),
    (r"Untyped global name '(\w+)':.*<class '([\w.]+)'>", "the global {0!r}, a {1}, is no number"),
    (r"^<ufunc '(\w+)'>$", "numpy.{0} is not there on a GPU; math has such functions"),
    (r"type, assigned to variable '(\w+)' in globals", "the global {0!r} is no number"),
    (r"Cannot unify (.+) and (.+) for '.*'", "one path gives {0}, another {1}"),
    # the same from Python 3.12 on, which returns on each path
    (r"Can't unify return type from the following types: (.+)", "paths give different types, {0}"),
)  # fmt: skip
_NOISE = ("Failed in", "During:", "File ", "<source", "- Resolution", "There are", "[1] During")


def explain(error: Exception, function: Callable, fields: tuple[str, ...]) -> str:
    """Say in one sentence what is wrong and in which line."""
    text = str(error)
    return f"{_cause(text, fields) or type(error).__name__}{_place(text, function)}"


def described(returned: Any) -> str:
    """Name a type of Numba's as a user would."""
    return _plain(str(returned))


def _cause(text: str, fields: tuple[str, ...]) -> str:
    if (found := re.search(_OF_MODULE, text)) and _compiles_by_name(found[2], found[1]):
        return (
            f"{found[2]}.{found[1]} is called through its module; write `from {found[2]} import "
            f"{found[1]}` above the class, and {found[1]}(...) in it"
        )
    for pattern, said in _CAUSES:
        if found := re.search(pattern, text):
            return said.format(*(_plain(part) for part in found.groups()), fields=", ".join(fields))
    text = re.sub(r"[. ]*Raised from .*", "", text)
    lines = [line.strip() for line in text.splitlines()]
    return next((line.rstrip(".") for line in lines if line and not line.startswith(_NOISE)), "")


def _compiles_by_name(module: str, name: str) -> bool:
    """Tell whether a module has such a plain function, and it is of the user's or of ours.

    Those of Python's and of installed libraries are seldom of plain scalars.
    """
    function = plain_function(getattr(sys.modules.get(module), name, None))
    if function is None or of_package(function):
        return function is not None
    if module.partition(".")[0] in sys.stdlib_module_names:
        return False
    file, paths = Path(function.__code__.co_filename), sysconfig.get_paths()
    return not any(Path(paths[kind]) in file.parents for kind in ("purelib", "platlib"))


def _plain(types: str) -> str:
    """Name Numba's types as a user would."""
    types = re.sub(r"Literal\[str\]\(([^()]*)\)", r"'\1'", types)
    types = re.sub(r"Literal\[\w+\]\((\w+)\)", r"\1", types)
    types = re.sub(r"State\(.*\)", "state", types)
    types = re.sub(r"array\((\w+), (\d)d, \w\)", r"\2-d array of \1", types)
    return re.sub(r"unicode_type", "str", types)


def _place(text: str, function: Callable) -> str:
    """Name file and line: of the first place in the error, which is the innermost."""
    if found := re.search(r'File "([^"\n]+)", line (\d+)', text):
        return f" ({Path(found[1]).name}, line {found[2]})"
    code = function.__code__
    return f" ({Path(code.co_filename).name}, from line {code.co_firstlineno})"
