"""A folder that one process at a time has: a lock of the system on a file in it.

The system itself lets go of the lock when the process ends, however it ends, so none is ever left
behind. Within a process all who ask for a folder share one lock, which goes when the last is gone.
"""

from __future__ import annotations

import contextlib
import errno
import os
import threading
import weakref
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows, which keeps others from a file that is open for writing by itself
    fcntl = None  # type: ignore[assignment]

NAME = ".lock"


class FolderLock:
    """The hold of one process on a folder, as long as somebody there has this object."""

    def __init__(self, file: int) -> None:
        self._file, self._process = file, os.getpid()
        self.is_new = True  # nobody of this process has had the folder since it was taken
        self._end = weakref.finalize(self, _close, file)

    def is_of(self, folder: Path) -> bool:
        """Tell whether this holds the folder that is there now, for this process."""
        if not self._end.alive or self._process != os.getpid():
            return False
        try:
            return os.path.samestat(os.fstat(self._file), (folder / NAME).stat())
        except OSError:  # it was another's, or has been removed
            return False

    def close(self) -> None:
        """Let go."""
        self._end()


_locks: weakref.WeakValueDictionary[Path, FolderLock] = weakref.WeakValueDictionary()
_looking = threading.Lock()


def hold(folder: Path) -> FolderLock | None:
    """Take a folder, which is resolved and exists; None where the system has no such locks.

    Raises
    ------
    BlockingIOError
        Another process has it.
    """
    if fcntl is None:
        return None
    with _looking:
        held = _locks.get(folder)
        if held is not None and held.is_of(folder):
            held.is_new = False
            return held
        try:
            file = os.open(folder / NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:  # a folder that is only read is nobody's to write to
            if os.access(folder, os.W_OK):
                raise
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            other = os.pread(file, 20, 0).decode(errors="replace").strip() or "unknown"
            os.close(file)
            raise BlockingIOError(
                f"{folder} belongs to process {other}, whose monitor was saved to it or opened "
                "from it; end that one, or save to another folder"
            ) from None
        except OSError as error:
            os.close(file)
            if error.errno in (errno.ENOLCK, errno.ENOTSUP):  # as on some file servers
                return None
            raise
        os.ftruncate(file, 0)
        os.pwrite(file, f"{os.getpid()}\n".encode(), 0)
        lock = _locks[folder] = FolderLock(file)
        return lock


def _close(file: int) -> None:
    # a forked child has a copy of the file of its own: closing that takes nothing from its parent
    with contextlib.suppress(OSError):
        os.close(file)


def _forget() -> None:
    """Let a forked process begin without locks: those are its parent's."""
    global _looking
    _looking = threading.Lock()
    for lock in list(_locks.values()):
        lock.close()
    _locks.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
