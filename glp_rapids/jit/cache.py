"""Compiled code kept on disk: a file for each function, digest and signature.

Numba keeps an index for all signatures of a function: where several processes write it at the same
time, one can end up with the code of another. Here a file is whole or not there, its name says all
that the code depends on, and a checksum says whether it is what was written. Where nothing can be
written or read, code is made anew in every process, of what comes with the package if it can be;
that is said once, and is no error.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import io
import itertools
import secrets
import uuid
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite
import numba
from numba.core.bytecode import FunctionIdentity
from numba.core.caching import FunctionCache
from numba.core.runtime import rtsys
from numba.core.serialize import dumps

from glp_rapids.jit import forks, shipped_code
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.environments import Unpickler
from glp_rapids.jit.fingerprint import fingerprint, source_fingerprint

# What decides about all compiled code beside its sources: the compilers, and how this package has
# functions linked and regions called, which no function names in a way that a digest would follow.
MACHINERY = hashlib.sha256(
    b"".join(Path(__file__).with_name(name).read_bytes() for name in ("cpu.py", "parallel.py"))
).hexdigest()
VERSIONS = numba.__version__, llvmlite.__version__, MACHINERY, str(numba.config.BOUNDSCHECK)
CHECKSUM = hashlib.sha256().digest_size


def _count_from_elsewhere() -> None:
    """Let Numba number functions from where no other process does.

    It tells functions of one name apart by counting them, from one on in every process, and from
    where it stood in a forked one. So code that two processes kept may call two functions by one
    name, and a third that loads both would run one in the place of the other.
    """
    FunctionIdentity._unique_ids = itertools.count(secrets.randbits(48) + 1)


_count_from_elsewhere()
forks.in_child(_count_from_elsewhere)

_complaint: list[str] = []


def _complain(problem: str) -> None:
    """Warn once a process that code is not kept, or was not."""
    if _complaint:
        return
    _complaint.append(problem)
    warnings.warn(
        f"compiled code cannot be kept on disk: {problem}. Results are the same, but what is not "
        "kept takes some seconds to make in every process; NUMBA_CACHE_DIR may name a folder "
        "that can be written",
        RuntimeWarning,
        stacklevel=2,
    )


class KeptFiles:
    """Values on disk, a file each; one that cannot be read counts as missing."""

    def __init__(self, folder: str, base: str) -> None:
        self._folder, self._base = Path(folder), base

    def load(self, key: tuple) -> Any:
        """Return what was saved under a key, or None."""
        path = self._path(key)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            _complain(f"{error.strerror}: {path}")
            return None
        checksum, value = content[:CHECKSUM], content[CHECKSUM:]
        if hashlib.sha256(value).digest() != checksum:
            _complain(f"{path} is damaged and is compiled anew")
            return None
        try:
            return Unpickler(io.BytesIO(value)).load()
        # Written whole, so it names what is elsewhere or gone: any error can come of looking.
        except Exception as error:
            _complain(f"{path} cannot be loaded ({type(error).__name__}: {error})")
            return None

    def save(self, key: tuple, value: Any) -> None:
        """Save a value under a key: whole or not at all."""
        path, content = self._path(key), dumps(value)
        beside = path.with_name(f"{path.name}.tmp.{uuid.uuid4().hex[:16]}")
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            beside.write_bytes(hashlib.sha256(content).digest() + content)
            beside.replace(path)
        except OSError as error:
            _complain(f"{error.strerror or error}: {path}")
        finally:
            with contextlib.suppress(OSError):  # replaced, or never made
                beside.unlink(missing_ok=True)

    def _path(self, key: tuple) -> Path:
        digest = hashlib.sha256(repr((key, VERSIONS)).encode()).hexdigest()
        return self._folder / f"{self._base}.{digest[:32]}.nbc"


class KeptCode:
    """First base of a cache class of Numba's or numba-cuda's: makes it safe for many processes.

    Its ``_index_key`` must say all that the code depends on, in a form whose text is the same in
    every process.
    """

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        self._files = KeptFiles(self._cache_path, self._impl.filename_base)

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        value = self._files.load(self._index_key(sig, target_context.codegen()))
        return None if value is None else self._impl.rebuild(target_context, value)

    def _save_overload(self, sig: Any, data: Any) -> None:
        if self._impl.check_cachable(data):
            self._files.save(self._index_key(sig, data.codegen), self._impl.reduce(data))

    def flush(self) -> None:
        """Do nothing: a file's name says what it holds, so none is ever stale."""


class KeptCpuCode(KeptCode, FunctionCache):
    """Loads code of a CPU without what only compiling needs.

    Numba makes all that it can compile known before it loads anything, and imports SciPy for that:
    0.4 of the 0.8 seconds of a first call whose code was kept. What compiles later does so then.
    """

    def __init__(self, function: Callable) -> None:
        try:
            super().__init__(function)
        except (OSError, RuntimeError) as error:  # the latter is Numba's
            _complain(str(error))
            # what comes with the package is loaded all the same
            self._py_func, self._name, self._files = function, repr(function), None
            self.enable()

    @property
    def cache_path(self) -> str | None:
        """Where code is kept; None: nowhere."""
        return None if self._files is None else self._cache_path

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        return None if self._files is None else super()._load_overload(sig, target_context)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code of a signature, or None."""
        rtsys.initialize(target_context)  # what counts references, which code calls
        found = self._load_overload(sig, target_context)
        if found is not None:
            return found
        module = self._py_func.__module__
        path = shipped_code.path_of(module)
        if path.exists() and (digest := self._digest_to_ship(sig, target_context.codegen())):
            found = shipped_code.load(path, module, digest, target_context)
            if found is not None:  # assembled for this processor, which the next process is spared
                self._save_overload(sig, found)
        return found

    def _save_overload(self, sig: Any, data: Any) -> None:
        if self._files is not None:
            super()._save_overload(sig, data)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled."""
        super().save_overload(sig, data)
        if shipped_code.listeners and (digest := self._digest_to_ship(sig, data.codegen)):
            for listener in shipped_code.listeners:
                listener(self._py_func.__module__, digest, data)

    def _digest_to_ship(self, sig: Any, codegen: Any) -> str | None:
        """Return the digest of all that code is compiled from; None: not of this package alone."""
        source = self._source()
        parts = text_of_types(sig), self._py_func.__qualname__, source, VERSIONS
        return source and shipped_code.digest_to_ship(codegen, *parts)

    def _source(self) -> str | None:
        """Return a digest of the sources, on which all versions of Python agree, or None."""
        return None


def keep_on_disk(dispatcher: Any, kind: Callable, *arguments: Any) -> Any:
    """Let a dispatcher's code be kept by a cache, ``kind(*arguments)``, if there is a place.

    A cache of CPU code finds out itself whether there is one.
    """
    try:
        dispatcher._cache = kind(*arguments)
    except (OSError, RuntimeError) as error:  # the latter is Numba's
        _complain(str(error))
    return dispatcher


def recalled(function: Callable, digest: str) -> Any:
    """Return what `keep` kept beside the code of a function under a digest, or None."""
    files = _files_beside(function)
    return files and files.load((digest,))


def keep(function: Callable, digest: str, value: Any) -> None:
    """Keep a small value beside the code of a function, under a digest."""
    if files := _files_beside(function):
        files.save((digest,), value)


@functools.cache
def _files_beside(function: Callable) -> KeptFiles | None:
    try:
        cache = FunctionCache(function)
    except (OSError, RuntimeError) as error:
        _complain(str(error))
        return None
    return KeptFiles(cache._cache_path, cache._impl.filename_base)


def text_of_types(sig: Any) -> str:
    """Return a text of arguments' types with the names of fields, which Numba's own leaves out.

    Two named tuples may have one name and the same types in another order of fields.
    """
    types = list(getattr(sig, "args", sig))
    fields = []
    while types:
        kind = types.pop()
        fields.append(getattr(kind, "fields", ()))
        types.extend(getattr(kind, "types", ()))
    return f"{sig} {[list(names) for names in fields if names]}"


class SourceCache(KeptCpuCode):
    """Keeps a function of this package under its source, and of all that it calls and reads."""

    def __init__(self, function: Callable, form: str = "") -> None:
        super().__init__(function)
        self._form = form

    def _index_key(self, sig: Any, codegen: Any) -> tuple:
        _, *rest = super()._index_key(sig, codegen)
        source = self._source() or fingerprint(self._py_func)
        return (text_of_types(sig), *rest, self._form, source)

    def _source(self) -> str | None:
        source = source_fingerprint(self._py_func)
        return source and f"{source} {self._form}"


def kept(function: Callable | None = None, **options: Any) -> Any:
    """Compile a function of this package, with the options of `compiled`, and keep it on disk."""
    if function is None:
        return functools.partial(kept, **options)
    return keep_on_disk(
        compiled(function, **options), SourceCache, function, repr(sorted(options.items()))
    )
