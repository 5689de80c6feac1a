"""Compare and swap of an int64 on the CPU, which threads share without a lock."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import config
from numba.extending import intrinsic


@intrinsic
def compare_and_swap(typingctx: Any, words: Any, expected: Any, wanted: Any) -> Any:
    """Write ``wanted`` to the first word if it is ``expected``; return what it was."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, value=arguments[0])
        order = "seq_cst"
        found = builder.cmpxchg(array.data, arguments[1], arguments[2], order, order)
        return builder.extract_value(found, 0)

    return types.int64(words, types.int64, types.int64), generate


if config.DISABLE_JIT:

    def compare_and_swap(words, expected, wanted):
        """Do the same as compiled code does, though another thread may come in between."""
        was = words[0]
        if was == expected:
            words[0] = wanted
        return was
