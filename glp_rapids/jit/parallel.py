"""Parallel kernels on CPU cores, also in forked processes and under any threading layer.

GNU's OpenMP, which Numba uses on Linux, kills a forked process that enters a region after its
parent did; so in such a process one thread does the work of all. Numba's own work queue, where
there is no OpenMP, kills a process whose threads enter regions at the same time; so they do it one
after another.

A kernel hands its parts to Numba's threads itself. ``prange`` would do that too, but compiling it
took twice as long as all else: each loop becomes a function with its own wrappers, and another form
is needed for one thread.

Where other processes hold the cores, threads wait for one that is not running: a region of
microseconds then takes milliseconds, and label propagation on a graph of 187,000 entries took 0.9
to 2.9 seconds instead of 0.014. So every region is timed: if all threads together worked for less
time than it took, one alone would have been done sooner. Once that cost ``PATIENCE`` times what
there was to do, one thread does all for ``SERIAL_FOR`` times as long as was lost, and no more than
one part in so many is. That threads are asleep, and wake in 50 microseconds, is no reason yet.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
from llvmlite import binding, ir
from numba.core import cgutils, config, types
from numba.extending import intrinsic

from glp_rapids.jit import forks
from glp_rapids.jit.cache import SourceCache, keep_on_disk
from glp_rapids.jit.cpu import compiled

_in_turn = forks.Lock()
# Numba's means to find mistakes: not compiled, or with a check of each index, which raises.
ALONE = bool(config.DISABLE_JIT or config.BOUNDSCHECK)
PATIENCE, SERIAL_FOR = 4, 8


class Team(NamedTuple):
    """Among how many threads a kernel divides its work, and what calls them.

    Whatever that number is, one thread alone must be able to do the work of all.
    """

    threads: Any
    parallel_for: Any  # the address of Numba's function; 0: one thread does it all


def threads_available() -> int:
    """Return how many threads a kernel may use: those of ``numba.set_num_threads``, or one."""
    if forks.forked():
        return 1
    if forks.threads_started():
        return numba.get_num_threads()
    with forks.starting_threads:
        return numba.get_num_threads()


@functools.cache
def _parallel_for() -> int:
    """Return the address of Numba's function, which is there once its threads are."""
    return binding.address_of_symbol("numba_parallel_for")


class ParallelKernel:
    """A compiled function whose first argument is a `Team`; called with a number of threads.

    Parameters
    ----------
    function : callable
        Plain Python, which hands parts of its work to `together`.
    cache : callable
        Makes the cache of a function.
    allocates : bool
        Whether it makes arrays itself; its parts are compiled functions of their own.
    """

    def __init__(
        self, function: Callable, cache: Callable[[Callable], Any] = SourceCache,
        allocates: bool = False,
    ) -> None:  # fmt: skip
        whole = compiled(function, error_model="numpy", allocates=allocates)
        self.compiled = keep_on_disk(whole, cache, function)

    def __call__(self, threads: int, *arguments: Any) -> Any:
        """Call the function with a team of so many threads, or one thread in their place."""
        available = 1 if ALONE or threads == 1 else threads_available()
        if available == 1:
            return self.compiled(Team(threads, 0), *arguments)
        team = Team(threads, _parallel_for())
        if numba.threading_layer() != "workqueue":
            try:
                return self.compiled(team, *arguments)
            finally:
                # with OpenMP a region's threads are what the caller has from then on
                if threads != available:
                    numba.set_num_threads(available)
        with _in_turn:
            return self.compiled(team, *arguments)


@intrinsic
def together(typingctx, team, part, arguments):
    """Call ``part(thread, *arguments)``, a compiled function, for every thread of a team.

    For compiled code only. It must not raise: nobody would hear of it.
    """
    dispatcher = part.dispatcher
    called = types.intp, *arguments.types
    part.get_call_type(typingctx, called, {})

    def generate(context, builder, signature, values):
        overload = dispatcher.linked.overloads[called]
        context.active_code_library.add_linking_library(overload.library)
        byte, number = ir.IntType(8).as_pointer(), context.get_value_type(types.intp)
        if ALONE:
            parts = cgutils.unpack_tuple(builder, values[2], len(arguments.types))
            threads = builder.extract_value(values[0], 0)
            with cgutils.for_range(builder, threads, intp=number) as loop:
                context.call_internal(
                    builder, overload.fndesc, overload.signature, [loop.index, *parts]
                )
            return context.get_dummy_value()
        numbers, bytes_ = number.as_pointer(), byte.as_pointer()
        kernel = ir.FunctionType(ir.VoidType(), [bytes_, numbers, numbers, byte])
        context_type = context.get_value_type(arguments)

        # What Numba's threads call. It is called with the first thread's number (and 1, for an
        # address of 0 may be left as it is) in the place of an address, and how many come from it.
        name = builder.module.get_unique_name(f"{builder.function.name}.part")
        region = ir.Function(builder.module, kernel, name)
        region.linkage = "internal"
        region.attributes.add("noinline")  # it is called in two places
        inside = ir.IRBuilder(region.append_basic_block("entry"))
        begun = _clock(inside)
        first, count, _, data = region.args
        begin = inside.sub(inside.ptrtoint(inside.load(first), number), number(1))
        held_type = ir.LiteralStructType([number, context_type])
        data = inside.bitcast(data, held_type.as_pointer())
        held = inside.load(cgutils.gep_inbounds(inside, data, 0, 1))
        held = _lent(context, inside, arguments, held)
        parts = cgutils.unpack_tuple(inside, held, len(arguments.types))
        with cgutils.for_range(inside, inside.load(count), intp=number) as loop:
            thread = inside.add(begin, loop.index)
            context.call_internal_no_propagate(
                inside, overload.fndesc, overload.signature, [thread, *parts]
            )
        worked = inside.sub(_clock(inside), begun)
        inside.atomic_rmw("add", cgutils.gep_inbounds(inside, data, 0, 0), worked, "monotonic")
        inside.ret_void()

        # Of this place in the code, whoever comes by; if two threads do, either's count will do.
        lost, serial_left = (
            cgutils.add_global_variable(builder.module, number, f"{name}.{what}")
            for what in ("lost", "serial_left")
        )
        for counter in (lost, serial_left):
            counter.linkage, counter.initializer = "internal", number(0)
        threads, parallel_for = cgutils.unpack_tuple(builder, values[0], 2)
        first = cgutils.alloca_once_value(builder, ir.Constant(number, 1).inttoptr(byte))
        count = cgutils.alloca_once(builder, number)
        builder.store(threads, count)
        step = cgutils.alloca_once_value(builder, number(1))
        held = cgutils.alloca_once(builder, held_type)
        worked = cgutils.gep_inbounds(builder, held, 0, 0)
        builder.store(number(0), worked)
        builder.store(values[2], cgutils.gep_inbounds(builder, held, 0, 1))
        data = builder.bitcast(held, byte)
        left = builder.load(serial_left)
        alone = builder.or_(
            builder.icmp_signed("==", parallel_for, number(0)),
            builder.icmp_signed(">", left, number(0)),
        )
        with builder.if_else(alone) as (serial, parallel):
            with serial:
                builder.call(region, [first, count, step, data])
                builder.store(builder.sub(left, builder.load(worked)), serial_left)
            with parallel:
                begun = _clock(builder)
                kind = ir.FunctionType(
                    ir.VoidType(), [byte, bytes_, numbers, numbers, byte, number, number, number]
                )
                function = builder.inttoptr(parallel_for, kind.as_pointer())
                builder.call(
                    function,
                    [builder.bitcast(region, byte), first, count, step, data, number(0), number(1),
                     threads],
                )  # fmt: skip
                took = builder.sub(_clock(builder), begun)
                work = builder.load(worked)
                debt = builder.add(builder.load(lost), builder.sub(took, work))
                debt = builder.select(builder.icmp_signed(">", debt, number(0)), debt, number(0))
                builder.store(debt, lost)
                enough = builder.mul(work, number(PATIENCE))
                with builder.if_then(builder.icmp_signed(">", debt, enough), likely=False):
                    builder.store(builder.mul(debt, number(SERIAL_FOR)), serial_left)
                    builder.store(number(0), lost)
        return context.get_dummy_value()

    return types.none(team, part, arguments), generate


def _clock(builder):
    """Read what counts time steadily in user space; only differences on one thread count."""
    number = ir.IntType(64)
    kind = ir.FunctionType(number, [])
    if binding.get_process_triple().startswith(("aarch64", "arm64")):
        return builder.asm(kind, "mrs $0, cntvct_el0", "=r", [], side_effect=True)
    counter = cgutils.get_or_insert_function(builder.module, kind, "llvm.readcyclecounter")
    return builder.call(counter, [])


def _lent(context, builder, kind, value):
    """Take the counts of references off the arrays in a tuple, and in tuples within it.

    Whoever called the region holds on to them; threads that count together wait for one another.
    """
    ahead = [((), kind)]
    while ahead:
        path, kind = ahead.pop()
        if isinstance(kind, types.Array):
            array = context.make_array(kind)(context, builder, builder.extract_value(value, path))
            array.meminfo = cgutils.get_null_value(array.meminfo.type)
            array.parent = cgutils.get_null_value(array.parent.type)
            value = builder.insert_value(value, array._getvalue(), path)
        elif isinstance(kind, types.BaseTuple):
            ahead += [((*path, place), one) for place, one in enumerate(kind.types)]
    return value


if config.DISABLE_JIT:

    def together(team, part, arguments):
        """Call ``part(thread, *arguments)`` for every thread of a team, as compiled code would."""
        for thread in range(team.threads):
            part(thread, *arguments)
