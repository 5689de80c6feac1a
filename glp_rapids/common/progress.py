"""Progress of a long call, as a bar or passed to a function of the caller's."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

Progress = bool | Callable[[dict], None]
Report = Callable[[dict], None]


@contextlib.contextmanager
def reporting(
    progress: Progress, show: Callable[[Any, dict], None], **bar: Any
) -> Iterator[Report | None]:
    """Pass on how far a call has come, as its argument ``progress`` asks for.

    Parameters
    ----------
    progress : bool or callable
        False: report nothing. True: show a bar. A function: call it with each report; one that is
        a context manager, too, is entered before the work begins.
    show : callable
        Moves a bar of tqdm (the first argument) to what is reported (the second).
    **bar
        tqdm's options for a bar, such as ``desc``, ``unit``, ``total``.

    Yields
    ------
    callable or None
        Takes a dict of facts, such as ``{"sweep": 1, "changed": 17}``, each time there are new
        ones; None where nobody wants them, so that the caller need not stop to gather them.
    """
    if progress is False:
        yield None
    elif callable(progress):
        with progress if hasattr(progress, "__enter__") else contextlib.nullcontext():
            yield progress
    else:
        from tqdm import tqdm

        with tqdm(**bar) as shown:
            yield partial(show, shown)
