"""Signatures of Numba's own functions, looked for once by all kernels that a process compiles.

Wherever a kernel adds, compares or converts, Numba asks every implementation that there is of it,
those of strings, lists and dates, too, and notes in words why each does not match; and it does so
again at every such place, several times until all types are known.

Kept is only what one of Numba's templates says by itself, of functions that are one object wherever
they are called. What stands for a function that is compiled for the purpose (``overload``) depends
on how the caller is compiled, and a conversion such as ``int64(x)`` is a function of its own at
every place.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

from numba.core.target_extension import get_local_target
from numba.core.types.functions import BaseFunction

from glp_rapids.jit import forks

MOST = 1 << 14  # signatures; whoever compiles all that there is has some thousand

_lock = forks.Lock()
_inside: list[Any] = []  # of each block what stands in the place of Numba's method
_known: dict[tuple, tuple[Any, ...]] = {}


def _remembering(search: Callable) -> Callable:
    """Make the method that looks for a signature where it has none yet."""

    @functools.wraps(search)
    def get_call_type(self: Any, context: Any, args: Any, kws: Any) -> Any:
        # Numba's parallel loops ask with lists, and write to the signatures that they get.
        if kws or not isinstance(args, tuple):
            return search(self, context, args, kws)
        asked = id(self), id(context), get_local_target(context), args
        known = _known.get(asked)
        if known is not None:
            signature = known[-1]
            self._impl_keys[signature.args] = self.typing_key
            return signature
        signature = search(self, context, args, kws)
        if (
            signature is not None
            and self._impl_keys.get(signature.args) is self.typing_key
            and context._lookup_global(self.typing_key) is self
        ):
            if len(_known) >= MOST:
                _known.clear()
            # with what the numbers in the key are of, so that nothing else gets them
            _known[asked] = self, context, signature
        return signature

    return get_call_type


@contextlib.contextmanager
def found_once() -> Iterator[None]:
    """Look for no signature twice while a thread is inside of such a block.

    Others that compile meanwhile get the same signatures.
    """
    with _lock:
        if not _inside:
            BaseFunction.get_call_type = _remembering(BaseFunction.get_call_type)
        block = _inside[0] if _inside else BaseFunction.get_call_type
        _inside.append(block)
    try:
        yield
    finally:
        with _lock:
            _inside.pop()
            # if somebody else has replaced it meanwhile, theirs stays
            if not _inside and BaseFunction.get_call_type is block:
                BaseFunction.get_call_type = block.__wrapped__
