"""Files that are replaced by complete ones only: a temporary file beside takes their place.

A full disk, an error or Ctrl-C leaves what was there as it was, and nothing beside it. A symbolic
link stays one: the file that it leads to is replaced. Mode and owner are kept, the owner as far as
the system lets it. What is no regular file (a device, a pipe, a folder) is never replaced.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

PART = ".glp-rapids-"  # how temporary files begin
KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Open a file to write to; when the block ends without an error, it is the one at ``path``."""
    target, old = _target(path)
    part = target.with_name(f"{PART}{secrets.token_hex(8)}.part")
    mode = 0o666 if old is None else old.st_mode & 0o777  # never wider than the file is to be
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    try:
        try:
            # without a name: pandas 2 would open that anew
            with open(os.open(part, flags, mode), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            if old is not None:
                _keep_owner_and_mode(part, old)
            os.replace(part, target)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
    except OSError as error:
        if error.filename is not None and str(error.filename) != str(part):
            raise
        if error.errno is None:
            raise OSError(f"{path}: {error}") from error
        raise OSError(error.errno, error.strerror, str(path)) from error


def check(path: Path) -> None:
    """Raise the OSError that `replacing` would, as far as can be told; folders may be missing."""
    target, _ = _target(path, folder_needed=False)
    folder = next(folder for folder in target.absolute().parents if folder.exists())
    if not folder.is_dir():
        raise NotADirectoryError(f"{path}: {folder} is no folder")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(f"{path}: the folder {folder} is read-only; name another")


def kind_of(mode: int) -> str | None:
    """Say what kind of file a mode belongs to; None for a regular one."""
    return None if stat.S_ISREG(mode) else KINDS.get(stat.S_IFMT(mode), "no regular file")


def _target(path: Path, folder_needed: bool = True) -> tuple[Path, os.stat_result | None]:
    """Return the file that links lead to, and its status if it exists."""
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    if folder_needed and not target.parent.is_dir():
        raise FileNotFoundError(f"{path}: there is no folder {target.parent}; make it first")
    try:
        old = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return target, None
    if kind := kind_of(old.st_mode):
        raise FileExistsError(f"{path}: is {kind}, which is not replaced; name a file")
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, "the file is read-only; name another", str(path))
    return target, old


def _keep_owner_and_mode(part: Path, old: os.stat_result) -> None:
    mode, new = old.st_mode & 0o777, part.stat()
    if hasattr(os, "chown") and (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.chown(part, old.st_uid, old.st_gid)
        except PermissionError:
            try:
                os.chown(part, -1, old.st_gid)
            except PermissionError:  # what its group might do, another must not
                mode &= 0o707
    part.chmod(mode)
