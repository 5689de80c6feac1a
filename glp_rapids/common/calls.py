"""How every public call ends: the GPU's work done, a lack of memory explained."""

from __future__ import annotations

import functools
import sys
import traceback
import warnings
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from glp_rapids.common.keywords import refuse_unknown
from glp_rapids.common.reused_memory import give_back, memory_of_call
from glp_rapids.device import (
    LackOfMemory,
    gpu_available,
    lacks_memory,
    memory_free,
    release,
    settle,
)

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def guarded(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Let a public function return when its work on a GPU is done, and explain a lack of memory.

    The caller may go on under another stream or in another thread. An error of memory is raised
    anew, since the frames of the first one hold references to all that fills the memory.
    """

    @functools.wraps(function)
    def call(*arguments: Parameters.args, **options: Parameters.kwargs) -> Result:
        refuse_unknown(function, options, len(arguments))
        try:
            with memory_of_call(limited=options.get("memory_limit") is not None):
                result = function(*arguments, **options)
                settle()
            return result
        except Exception as error:
            if not lacks_memory(error):
                raise
            lacking = error if isinstance(error, LackOfMemory) else _in_words(function, error)
            text = str(lacking)
            while error is not None:
                traceback.clear_frames(error.__traceback__)
                error = error.__cause__ or error.__context__
            del lacking
        give_back(at_work=True)  # cuDF and kernels, which may lack it, find nothing in a pool
        release()
        raise LackOfMemory(text)

    return call


def _in_words(function: Callable, error: Exception) -> str:
    free = f"{memory_free('cpu') / 2**30:.1f} GiB are free on the host"
    mend = "free some, or compress the graph (glp_rapids.compress)"
    if gpu_available():
        mend = "free some, compress the graph (glp_rapids.compress), or use device='cpu'"
        free += f", {memory_free('gpu') / 2**30:.1f} on the GPU"
    text = str(error).strip() or type(error).__name__
    return f"{function.__name__}: there is too little memory ({free}): {text}; {mend}"


def warn_caller(message: str) -> None:
    """Warn with the line that called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").startswith("glp_rapids."):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)
