"""A lock that may belong to something that is copied or pickled: what comes out has its own."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any


class Lock:
    """A lock that its thread may take again; to be entered with ``with``."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._times = 0  # that its thread has it

    def __enter__(self) -> None:
        self._lock.acquire()
        self._times += 1

    def __exit__(self, *error: Any) -> None:
        self._times -= 1
        self._lock.release()

    @contextlib.contextmanager
    def once(self, what: str) -> Iterator[None]:
        """Take it for a change; raise if the thread has it, as in a callback of another change."""
        with self:
            if self._times > 1:
                raise RuntimeError(
                    f"{what} was called from within a call that is not done, as by its progress=; "
                    "call it when that has returned"
                )
            yield

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()
