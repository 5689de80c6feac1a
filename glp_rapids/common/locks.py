"""A lock that may belong to something that is copied or pickled: what comes out has its own."""

from __future__ import annotations

import threading
from typing import Any


class Lock:
    """A lock that its thread may take again; to be entered with ``with``."""

    def __init__(self) -> None:
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *error: Any) -> None:
        self._lock.release()

    def __reduce__(self) -> tuple[type[Lock], tuple[()]]:
        return Lock, ()
