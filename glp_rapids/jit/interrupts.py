"""A Ctrl-C in the midst of a long kernel.

Python handles signals in its main thread, between two of its own instructions, and a kernel is one.
So what may take long runs in a thread of its own, for which the main thread waits; if that is
interrupted it raises a flag, which kernels look at now and then; one that sees it returns, and its
result is dropped. What can be done in parts is called for part by part instead.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial, wraps
from itertools import pairwise
from typing import Any

import numpy as np

A_CALL = 1 << 24  # entries that are read or written once before signals are looked at
_of_thread = threading.local()
_NEVER = np.zeros(1, np.uint8)


def parts(size: int) -> Iterator[tuple[int, int]]:
    """Cut so many items into parts that take a short time each."""
    yield from pairwise([*range(0, size, A_CALL), size])


def parts_of_rows(starts: np.ndarray) -> Iterator[tuple[int, int]]:
    """Cut rows into runs of few entries, or a row of many."""
    cuts = np.searchsorted(starts, np.arange(starts[0] + A_CALL, starts[-1], A_CALL))
    yield from pairwise([0, *cuts.tolist(), starts.size - 1])


def flag() -> np.ndarray:
    """Return what the kernels of this thread look at: ``flag()[0]`` is not 0 when they may stop."""
    return getattr(_of_thread, "flag", _NEVER)


@contextmanager
def stopped_by(raised: np.ndarray) -> Iterator[None]:
    """Let the kernels that this thread calls in the block look at another flag."""
    before, _of_thread.flag = flag(), raised
    try:
        yield
    finally:
        _of_thread.flag = before


class Stopped(Exception):
    """Raised in place of what a stopped kernel returned."""


def call(kernel: Callable[..., Any], *arguments: Any) -> Any:
    """Call a kernel that looks at a flag, its last argument; raise if it was stopped."""
    raised = flag()
    result = kernel(*arguments, raised)
    if raised[0]:
        raise Stopped
    return result


def interruptible(function: Callable[..., Any], device: str = "cpu") -> Callable[..., Any]:
    """Let calls of a function run in a thread of their own where signals would wait for its end.

    What works on a GPU stays in the caller's thread: its stream and its GPU are those of a thread.
    """
    if device != "cpu":
        return function

    @wraps(function)
    def called(*arguments: Any, **options: Any) -> Any:
        return _interruptible(partial(function, *arguments, **options))

    return called


def _interruptible(function: Callable[[], Any]) -> Any:
    if threading.current_thread() is not threading.main_thread():
        return function()
    raised = np.zeros(1, np.uint8)
    results: list[Any] = []
    errors: list[BaseException] = []
    # waited for twice if need be: an item of a queue may be lost between its get and the signal,
    # and a join that is interrupted takes the thread for ended
    done = threading.Event()

    def work() -> None:
        try:
            with stopped_by(raised):
                results.append(function())
        except BaseException as error:  # raised where it is waited for
            errors.append(error)
        finally:
            done.set()

    threading.Thread(target=work, daemon=True).start()
    try:
        # for a moment at a time: a signal just before a wait is noticed after it
        while not done.wait(0.1):
            continue
    except BaseException:
        raised[0] = 1
        done.wait()
        raise
    if errors:
        raise errors[0]
    return results[0]
