"""A fork waits for what other threads import, and for locks that a child could not get.

Only the thread that forks lives on in the child: a lock that another one held stays held, and a
module that it was importing half done. This is loaded with the library, before anybody calls it.
"""

from __future__ import annotations

import _imp
import contextlib
import importlib
import os
import sys
import threading
import time
from typing import Any

LOCKS: list[Any] = [threading.RLock()]
"""Held while a process is forked, in this order; whoever imports may need all but the first.

That one lets a thread fork at a time.
"""

_held: list[Any] = []


def _module_locks() -> dict[str, Any]:
    return getattr(importlib._bootstrap, "_module_locks", {})


def _imported_by_others() -> set[str]:
    """Name the modules that other threads are importing, or are about to."""
    found = set()
    for name, module in [*sys.modules.items()]:
        if getattr(getattr(module, "__spec__", None), "_initializing", False):
            found.add(name)
    # A module's lock is taken before the module is there, and made before it is taken.
    own = threading.get_ident()
    for name, reference in [*_module_locks().items()]:
        lock = reference()
        if getattr(lock, "owner", None) == own:
            found.discard(name)
        elif lock is not None:
            found.add(name)
    return found


def _before() -> None:
    waited: set[str] = set()
    while True:
        for lock in LOCKS:
            lock.acquire()
            _held.append(lock.release)
        # Nobody gets a module's lock without this one, so that what is found stays so up to the
        # fork. Who holds it may collect garbage meanwhile and wait for LLVM's.
        others = set()
        if not (busy := _imp.lock_held()):
            _imp.acquire_lock()
            _held.append(_imp.release_lock)
            if not (others := _imported_by_others() - waited):
                return
        _after()
        if busy:
            time.sleep(1e-4)
        for name in others:
            with contextlib.suppress(Exception):  # is raised where it was imported first
                importlib.import_module(name)  # waits for its end
        waited |= others & _imported_by_others()  # then it is this thread that imports it


def _after() -> None:
    while _held:
        _held.pop()()


def _in_child() -> None:
    own = threading.get_ident()
    for name, reference in [*_module_locks().items()]:
        if getattr(reference(), "owner", None) != own:
            del _module_locks()[name]  # it was, or was about to be, that of a thread that is gone
    _after()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
