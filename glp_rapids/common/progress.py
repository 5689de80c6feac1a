"""What the public functions of structural diversity have in common: a limit, progress, a clock."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

Progress = bool | Callable[[dict], None]


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
