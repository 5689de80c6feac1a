"""Add to an element that other threads of a CPU kernel add to."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.core import config
from numba.extending import intrinsic


@intrinsic
def atomic_add(typingctx: Any, array: Any, place: Any, amount: Any) -> Any:
    """Add to an element of an integer array at once; in what order with others is not said."""
    if array.layout != "C":
        return None  # Numba says that there is no such function

    def generate(context, builder, signature, arguments):
        data = context.make_array(signature.args[0])(context, builder, value=arguments[0]).data
        builder.atomic_rmw("add", builder.gep(data, [arguments[1]]), arguments[2], "monotonic")
        return context.get_dummy_value()

    return types.void(array, types.uint64, array.dtype), generate


if config.DISABLE_JIT:

    def atomic_add(array, place, amount):
        """Add to an element: what is not compiled has one thread."""
        array[place] += amount
