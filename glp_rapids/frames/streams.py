"""The bytes of text files, in and out: compressed as their names say, UTF-8, without comments."""

from __future__ import annotations

import contextlib
import re
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, NoReturn

from glp_rapids.common import atomic_file

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
COMMENT = re.compile(rb"(?:\A|(?<=[\r\n]))#[^\r\n]*")  # an empty line stays, so others keep numbers
# The lines before the first row, where KONECT's files have comments behind another mark. An id may
# begin with it, as %22Heroes%22 does: it is one if a blank, another one or nothing comes next.
HEAD = re.compile(rb"(?:(?:#|%(?=[ \t%\r\n]|\Z))[^\r\n]*(?:[\r\n]|\Z)|[\r\n])*")
MATRIX_MARKET = b"%%MatrixMarket"
PIECE = 1 << 18


class Terminated(BaseException):
    """The process was told to end while it wrote a file; ``args`` are the signal's number."""


@contextlib.contextmanager
def reading(path: Path, *, comments: bool = False) -> Iterator[Text]:
    """Feed the text of a file to a parser; with ``comments``, without the lines that begin with #.

    A comment is a line; a # further on belongs to an id. Before the first row "% " begins one, too.
    """
    with _uncompressed(path) as content:
        yield Text(content, comments)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """Write a file as `atomic_file.replacing` does; make its folder, compress as its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    opened = COMPRESSIONS.get(path.suffix.lower(), _plain)
    with (
        cleaning_up(),
        atomic_file.replacing(path) as file,
        opened(file, "wb", path.stem) as content,
    ):
        yield content


@contextlib.contextmanager
def cleaning_up() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end the process by an exception, so that no half of a file stays.

    Elsewhere they end it at once, even out of a long kernel, which an exception would wait for.
    """
    kept = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
        kept = {each: signal.getsignal(each) for each in numbers}

    def leave(number: int, _: object) -> NoReturn:
        signal.signal(number, signal.SIG_IGN)  # once is enough, and a second would stop the mending
        raise Terminated(number)

    mine = [number for number, handler in kept.items() if handler is signal.SIG_DFL]
    try:
        for number in mine:
            signal.signal(number, leave)
        yield
    finally:
        for number in mine:
            signal.signal(number, signal.SIG_DFL)


class Text:
    """A file for a parser that reads bytes: no byte order mark, no zeros, no comments if wished."""

    def __init__(self, file: BinaryIO, comments: bool = False) -> None:
        self._file = file
        self._comments = comments
        self._before = b""  # what the line that a piece begins in is known by
        self._first = self._head = True

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes, none only at the end."""
        while piece := self._file.read(size):
            if b"\0" in piece:  # where a parser in C ends the id
                raise ValueError("it holds bytes of zero: no text, or UTF-16; save it as UTF-8")
            if self._first:
                piece, self._first = piece.removeprefix(BYTE_ORDER_MARK), False
                if piece.startswith(MATRIX_MARKET):  # whose line of sizes would be an edge
                    raise ValueError(
                        "it is a matrix in the format MatrixMarket; pass scipy.io.mmread of it, or "
                        "save that by scipy.sparse.save_npz"
                    )
            if self._comments:
                piece = self._without_comments(piece)
            if piece:
                return piece
        return b""

    def __iter__(self) -> Iterator[bytes]:
        """Yield all of it, piece by piece."""
        return iter(lambda: self.read(PIECE), b"")

    def _without_comments(self, piece: bytes) -> bytes:
        before, text = self._before, self._before + piece
        line = text[max(text.rfind(b"\n"), text.rfind(b"\r")) + 1 :]
        if self._head:
            end = HEAD.match(text).end()
            self._head = end == len(text)
            text = re.sub(rb"[^\r\n]", b"", text[:end]) + text[end:]
        if self._head and line.startswith(b"%"):  # of a mark alone the next piece says what it is
            self._before = b"%" if line == b"%" else b"#"
        else:
            self._before = line[:1] if line[:1] in (b"", b"#") else b"."
        if text.startswith(b"#") or b"\n#" in text or b"\r#" in text:
            text = COMMENT.sub(b"", text)
        return text[1:] if before == b"." else text


def first_odd_byte(path: Path) -> tuple[int, int] | None:
    """Find the line and the byte where a file stops being UTF-8."""
    with _uncompressed(path) as content:
        for number, line in enumerate(content, 1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                return number, line[error.start]
    return None


@contextlib.contextmanager
def _uncompressed(path: Path) -> Iterator[BinaryIO]:
    opened = COMPRESSIONS.get(path.suffix.lower(), _plain)
    with path.open("rb") as file, opened(file, "rb", path.stem) as content:
        yield content


def _plain(file: BinaryIO, mode: str, name: str) -> contextlib.AbstractContextManager[BinaryIO]:
    return contextlib.nullcontext(file)


def _gzip(file: BinaryIO, mode: str, name: str) -> BinaryIO:
    import gzip

    return gzip.GzipFile("", mode, fileobj=file, mtime=0)  # the same bytes every time


def _bz2(file: BinaryIO, mode: str, name: str) -> BinaryIO:
    import bz2

    return bz2.BZ2File(file, mode)


def _xz(file: BinaryIO, mode: str, name: str) -> BinaryIO:
    import lzma

    return lzma.LZMAFile(file, mode)


def _zst(file: BinaryIO, mode: str, name: str) -> BinaryIO:
    try:
        from compression import zstd  # from Python 3.14 on
    except ImportError:
        try:
            import zstandard as zstd
        except ImportError:
            raise ImportError("*.zst needs a library: pip install zstandard, or use *.gz") from None
    return zstd.open(file, mode)


@contextlib.contextmanager
def _zip(file: BinaryIO, mode: str, name: str) -> Iterator[BinaryIO]:
    import zipfile

    with zipfile.ZipFile(file, mode[0], zipfile.ZIP_DEFLATED) as archive:
        if mode == "rb":
            names = [
                entry.filename for entry in archive.infolist()
                if not entry.is_dir() and not entry.filename.startswith("__MACOSX/")
            ]  # fmt: skip
            if len(names) != 1:
                raise ValueError(f"the archive has {len(names)} files in it, not one")
            name = names[0]
        with archive.open(name, mode[0], force_zip64=mode == "wb") as content:
            yield content


Opener = Callable[[BinaryIO, str, str], contextlib.AbstractContextManager[BinaryIO]]
COMPRESSIONS: dict[str, Opener] = {
    ".gz": _gzip, ".bz2": _bz2, ".xz": _xz, ".zst": _zst, ".zip": _zip
}  # fmt: skip
