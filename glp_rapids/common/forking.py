"""A fork waits for what other threads import, and for locks that a child could not get.

Only the thread that forks lives on in the child: a lock that another one held stays held, and a
module that it was importing half done. What comes so late that a fork cannot wait for it any more
is repaired in the child. This is loaded with the library, before anybody calls it.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
from typing import Any

LOCKS: list[Any] = [threading.RLock()]
"""Held while a process is forked, in this order; whoever imports may need all but the first.

That one lets a thread fork at a time.
"""

# How often a fork waits for all that is being imported: where threads import all the time there is
# always something.
TURNS = 3

_held: list[Any] = []


def _importing() -> dict[str, int | None]:
    """Return by name who imports a module; None: somebody is about to, or has just ended."""
    locks = [*_module_locks().items()]
    return {name: getattr(reference(), "owner", None) for name, reference in locks}


def _module_locks() -> dict[str, Any]:
    # a module's lock is taken before the module is there
    return getattr(importlib._bootstrap, "_module_locks", {})


def _imported_by_others() -> set[str]:
    mine_or_nobodys = threading.get_ident(), None
    return {name for name, owner in _importing().items() if owner not in mine_or_nobodys}


def _before() -> None:
    waited: set[str] = set()
    for turn in range(TURNS + 1):
        for lock in LOCKS:
            lock.acquire()
            _held.append(lock)
        others = _imported_by_others() - waited
        if not others or turn == TURNS:
            return
        _after()
        for name in others:
            with contextlib.suppress(Exception):  # is raised where it was imported first
                importlib.import_module(name)  # waits for its end
        waited |= others & _imported_by_others()  # then it is this thread that imports it


def _after() -> None:
    held = _held[::-1]
    _held.clear()  # before the last is released, and another thread forks
    for lock in held:
        lock.release()


def _in_child() -> None:
    """Let what another thread has begun to import since `_before` be imported anew."""
    for name, owner in _importing().items():
        if owner == threading.get_ident():
            continue
        _module_locks().pop(name, None)
        spec = getattr(sys.modules.get(name), "__spec__", None)
        if getattr(spec, "_initializing", False):
            del sys.modules[name]
    _after()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_in_child)
