"""Which errors a compiled function can end in: there must be none.

Where threads run a function together, an error that it raises has nowhere to go: on a CPU the
process dies, on a GPU the others wait for a thread that has left. Not only ``raise`` and ``assert``
do that; a range with a step of 0, a tuple's index out of range or a list that finds no memory do.
So the optimized code itself is asked which status it can return.
"""

from __future__ import annotations

import builtins
import dis
import pickle
import re
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from glp_rapids.jit.fingerprint import content_of, global_names, plain_function

FINE = (0, 0xFFFFFFFE)  # a value was returned, or None (-2) was


def errors_of(compiled: Any) -> list[str]:
    """List the errors that a function, one compiled signature of Numba's, may raise."""
    module = compiled.library._final_module
    seen: set[str] = set()
    return sorted(set(_errors(module, compiled.fndesc.llvm_func_name, seen)))


def draws_random_numbers(compiled: Any) -> bool:
    """Tell whether a function, one compiled signature of Numba's, uses a generator of Numba's."""
    names = (function.name for function in compiled.library._final_module.functions)
    return any(name in ("numba_get_np_random_state", "numba_get_py_random_state") for name in names)


def prints(compiled: Any) -> bool:
    """Tell whether a function, one compiled signature of Numba's, prints; pruned calls don't."""
    names = (function.name for function in compiled.library._final_module.functions)
    return "PySys_FormatStdout" in names


def place_of_print(function: Callable) -> str:
    """Name file and line of the first call of print in a function and what it calls, if found."""
    code, seen = function.__code__, function.__globals__
    inside = [code]
    for one in inside:
        inside += [held for held in one.co_consts if isinstance(held, types.CodeType)]
        for step in dis.get_instructions(one):
            if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                found = seen.get(step.argval, getattr(builtins, step.argval, None))
                if found is builtins.print:
                    return f" ({Path(code.co_filename).name}, line {step.positions.lineno})"
    values = [seen.get(name) for name in global_names(code)]
    cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
    values += [content_of(cell, name, function) for name, cell in cells]
    # none calls itself in a circle, which the digest of a program refuses
    called = filter(None, map(plain_function, values))
    return next(filter(None, map(place_of_print, called)), "")


def _errors(module: Any, name: str, seen: set[str]) -> Iterator[str]:
    if name in seen:
        return
    seen.add(name)
    function = module.get_function(name)
    if function.is_declaration:
        yield f"an error of {name}"
        return
    steps = [step for block in function.blocks for step in block.instructions]
    for step in steps:
        if step.opcode == "ret":
            yield from _from_status(module, next(step.operands), steps, seen)


def _from_status(module: Any, status: Any, steps: list, seen: set[str]) -> Iterator[str]:
    """Follow a returned status to the constants and the calls that it comes from."""
    named = {str(step): step for step in steps}  # an operand does not say which step made it
    waiting, followed = [status], set()
    while waiting:
        value = waiting.pop()
        text = str(value)
        if value.is_constant:
            if value.get_constant_value() & 0xFFFFFFFF not in FINE:
                yield from _named(module, steps)
        elif text not in followed:
            followed.add(text)
            opcode = named[text].opcode if text in named else None
            *parts, last = named[text].operands if text in named else [None]
            if opcode in ("phi", "select"):
                waiting += [*parts, last][opcode == "select" :]
            elif opcode == "call" and last.name:
                yield from _errors(module, last.name, seen)
            else:
                yield from _named(module, steps)


def _named(module: Any, steps: list) -> Iterator[str]:
    """Name the errors that a function leaves behind before it returns."""
    buffers = {
        part.name: part
        for step in steps
        for part in step.operands
        if part.name.startswith(".const.picklebuf.")
    }
    yield from (_described(module, str(buffer)) for buffer in buffers.values())
    if not buffers:
        yield "an error"


def _described(module: Any, buffer: str) -> str:
    """Say what an error is, as Numba wrote it into the code: its class, arguments and place."""
    name = re.search(r"@(\.const\.pickledata\.[\w.]+)", buffer)
    constant = next((one for one in module.global_variables if name and one.name == name[1]), None)
    text = re.search(r' c"(.*)"', str(constant))
    if text is None:
        return "an error"
    content = re.sub(r"\\([0-9A-Fa-f]{2})", lambda found: chr(int(found[1], 16)), text[1])
    error, arguments, place = pickle.loads(content.encode("latin-1"))
    said = error.__name__
    if arguments and "_ZN" not in str(arguments):  # a name of Numba's own
        said += f": {', '.join(map(str, arguments))}"
    if place and "numba" not in Path(place[1]).parts:
        said += f" ({Path(place[1]).name}, line {place[2]})"
    return said
