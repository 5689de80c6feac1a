"""What the public functions of structural diversity have in common: checks, progress, a clock."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Progress = bool | Callable[[dict], None]


def check_integer(name: str, value: Any, least: int, why: str = "") -> None:
    """Refuse what is no integer of at least ``least``."""
    if isinstance(value, bool | np.bool_) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    if value < least:
        raise ValueError(f"{name} must be at least {least}{why}, not {value}")


def check_memory_limit(memory_limit: Any) -> None:
    """Refuse what is no number of bytes."""
    if memory_limit is not None:
        check_integer("memory_limit", memory_limit, 1, " byte")


def check_truth(**values: Any) -> None:
    """Refuse what is neither True nor False."""
    for name, value in values.items():
        if not isinstance(value, bool | np.bool_):
            raise TypeError(f"{name} must be True or False, not {value!r}")


def check_progress(progress: Any) -> None:
    """Refuse what is no bool and no function."""
    if not isinstance(progress, bool) and not callable(progress):
        raise TypeError(f"progress must be a bool or a function, not {progress!r}")


@contextlib.contextmanager
def telling(progress: Progress, vertices: int) -> Iterator[Callable[[int], None] | None]:
    """Give what is to be called with the number of further vertices done; None: nothing."""
    if progress is False:
        yield None
    elif callable(progress):
        done = 0

        def tell(further: int) -> None:
            nonlocal done
            done += further
            progress({"evaluated": done, "vertices": vertices})

        yield tell
    else:
        from tqdm import tqdm

        with tqdm(desc="ego-networks", unit="vertex", total=vertices) as bar:
            yield bar.update


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._begin = time.perf_counter()

    def __call__(self) -> float:
        return time.perf_counter() - self._begin
