"""A Ctrl-C in the midst of a long kernel.

Python handles signals in its main thread, between two of its own instructions, and a kernel is one.
So what may take long runs in a thread of its own, for which the main thread waits; if that is
interrupted it raises a flag, which kernels look at now and then, and whoever sees it returns.
What comes back then means nothing, and nobody looks at it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

import numpy as np

_here = threading.local()
_NEVER = np.zeros(1, np.uint8)


def flag() -> np.ndarray:
    """Return what the kernels of this thread look at: ``flag()[0]`` is not 0 when they may stop."""
    return getattr(_here, "flag", _NEVER)


@contextmanager
def stopped_by(raised: np.ndarray) -> Iterator[None]:
    """Let the kernels of this thread look at another flag."""
    before, _here.flag = flag(), raised
    try:
        yield
    finally:
        _here.flag = before


def interruptible(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function, in a thread of its own where signals would have to wait for its end."""
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    raised = np.zeros(1, np.uint8)
    done: SimpleQueue = SimpleQueue()

    def call() -> None:
        try:
            with stopped_by(raised):
                done.put((function(*arguments), None))
        except BaseException as error:  # raised where it is waited for
            done.put((None, error))

    threading.Thread(target=call, daemon=True).start()
    try:
        result, error = done.get()  # a join that is interrupted takes the thread for ended
    except BaseException:
        raised[0] = 1
        done.get()
        raise
    if error is not None:
        raise error
    return result
