"""What the public functions of structural diversity have in common: a limit, progress, a clock."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from glp_rapids.checks import check_integer

Progress = bool | Callable[[dict], None]


def check_memory_limit(memory_limit: Any) -> None:
    """Refuse what is no number of bytes."""
    if memory_limit is not None:
        check_integer("memory_limit", memory_limit, 1, " byte")


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
