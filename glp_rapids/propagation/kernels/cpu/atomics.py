"""Atomic operations of CPU kernels: what a change takes from a slack, see `propagation.slack`."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import config
from numba.extending import intrinsic


@intrinsic
def take_one(typingctx: Any, slack: Any, place: Any) -> Any:
    """Take one from an int32 element, whoever else does so at the same time."""

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, value=arguments[0])
        pointer = builder.gep(array.data, [arguments[1]])
        builder.atomic_rmw("sub", pointer, ir.Constant(ir.IntType(32), 1), "monotonic")
        return context.get_dummy_value()

    return types.void(slack, types.uint64), generate


if config.DISABLE_JIT:

    def take_one(slack, place):
        """Do the same as compiled code does; one thread does."""
        slack[int(place)] -= 1
