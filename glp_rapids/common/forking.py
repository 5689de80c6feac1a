"""A fork waits for what other threads import, and for locks that a child could not get.

Only the thread that forks lives on in the child: a lock that another one held stays held, and a
module that it was importing half done. This is loaded with the library, before anybody calls it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
from typing import Any

LOCKS: list[Any] = []
"""Held while a process is forked, in this order; whoever imports may need them."""

_held: list[Any] = []


def _imported_by_others() -> set[str]:
    """Name the modules that other threads are importing."""
    found = set()
    for name, module in [*sys.modules.items()]:
        if getattr(getattr(module, "__spec__", None), "_initializing", False):
            found.add(name)
    # A module's lock is taken before the module is there.
    locks = getattr(importlib._bootstrap, "_module_locks", {})
    own = threading.get_ident()
    for name, reference in [*locks.items()]:
        owner = getattr(reference(), "owner", None)
        if owner is not None and owner != own:
            found.add(name)
        elif owner == own:
            found.discard(name)
    return found


def _before() -> None:
    waited: set[str] = set()
    while True:
        for lock in LOCKS:
            lock.acquire()
            _held.append(lock)
        if not (others := _imported_by_others() - waited):
            return
        _after()
        for name in others:
            with contextlib.suppress(Exception):  # is raised where it was imported first
                importlib.import_module(name)  # waits for its end
        waited |= others & _imported_by_others()  # then it is this thread that imports it


def _after() -> None:
    while _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
