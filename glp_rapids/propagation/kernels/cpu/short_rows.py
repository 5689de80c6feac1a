"""Votes of a short row counted in vector registers: each label is compared with all the others.

A row takes as many comparisons of whole vectors as the vectors have places (the widest, as the row
has labels), and no branch that depends on what the labels are; a table costs a miss of the first
cache for a label, or a store that the next load waits for, and some wrong guesses of the processor
for a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils, config
from numba.extending import intrinsic

STEP = 8  # elements that are moved or gathered at once
FEW, SOME, MANY = 8, 16, 32  # labels that a row may have: places of the vectors


def _leaders(lanes: int) -> Callable:
    """Make what counts rows of up to so many labels."""

    @intrinsic
    def leaders(typingctx: Any, buffer: Any, begin: Any, size: Any, current: Any, largest: Any):
        """Return (votes, winner, leaders, holders, own) of ``buffer[begin:begin + size]``.

        ``leaders`` has a bit for each place whose label has the most votes, and there are so many
        ``holders`` of them; ``own`` is not 0 if the current label is among them. The winner is the
        smallest or the ``largest`` of them. As many elements as there are lanes are read, whatever
        stands there.
        """
        label = buffer.dtype
        arguments = buffer, types.uint64, types.int64, label, types.boolean
        return types.UniTuple(types.int64, 5)(*arguments), generate

    def generate(context, builder, signature, arguments):
        array = context.make_array(signature.args[0])(context, builder, value=arguments[0])
        _, begin, size, current, largest = arguments
        label = context.get_value_type(signature.args[3])
        labels = ir.VectorType(label, lanes)
        number, count, wide = ir.IntType(lanes), ir.IntType(32), ir.IntType(64)
        counts = ir.VectorType(count, lanes)

        def everywhere(value, kind):
            one = builder.insert_element(ir.Constant(kind, ir.Undefined), value, count(0))
            zeros = ir.Constant(ir.VectorType(count, lanes), [0] * lanes)
            return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), zeros)

        def reduced(name, vector, kind):
            suffix = f"v{lanes}i{kind.width}"
            function = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(kind, [vector.type]),
                f"llvm.vector.reduce.{name}.{suffix}",
            )  # fmt: skip
            return builder.call(function, [vector])

        pointer = builder.bitcast(builder.gep(array.data, [begin]), labels.as_pointer())
        held = builder.load(pointer, align=label.width // 8)
        places = ir.Constant(counts, list(range(lanes)))
        filled = builder.icmp_unsigned("<", places, everywhere(builder.trunc(size, count), counts))
        nobody = ir.Constant(labels, [-1] * lanes)
        held = builder.select(filled, held, nobody)
        votes = ir.Constant(counts, [0] * lanes)
        if lanes <= SOME:
            for place in range(lanes):
                here = ir.Constant(counts, [place] * lanes)
                other = builder.shuffle_vector(held, held, here)
                same = builder.icmp_signed("==", held, other)
                votes = builder.sub(votes, builder.sext(same, counts))
        else:  # the code of as many steps would take long to compile
            so_far = cgutils.alloca_once_value(builder, votes)
            with cgutils.for_range(builder, size, intp=wide) as loop:
                other = builder.load(builder.gep(array.data, [builder.add(begin, loop.index)]))
                same = builder.icmp_signed("==", held, everywhere(other, labels))
                votes = builder.sub(builder.load(so_far), builder.sext(same, counts))
                builder.store(votes, so_far)
            votes = builder.load(so_far)
        votes = builder.select(filled, votes, ir.Constant(counts, [0] * lanes))
        most = reduced("umax", votes, count)
        leads = builder.icmp_unsigned("==", votes, everywhere(most, counts))
        flip = everywhere(builder.sext(builder.trunc(largest, ir.IntType(1)), label), labels)
        keys = builder.select(leads, builder.xor(held, flip), nobody)
        winner = builder.xor(reduced("umin", keys, label), builder.extract_element(flip, count(0)))
        own = builder.and_(leads, builder.icmp_signed("==", held, everywhere(current, labels)))
        leads = builder.zext(builder.bitcast(leads, number), wide)
        found = [
            builder.zext(most, wide), _to(builder, winner, wide), leads,
            builder.ctpop(leads), builder.zext(builder.bitcast(own, number), wide),
        ]  # fmt: skip
        return context.make_tuple(builder, signature.return_type, found)

    return leaders


def _to(builder: Any, value: Any, kind: Any) -> Any:
    return value if value.type == kind else builder.zext(value, kind)


leaders_of_few, leaders_of_some, leaders_of_many = map(_leaders, (FEW, SOME, MANY))


@intrinsic
def move(typingctx: Any, source: Any, place: Any, destination: Any, other: Any):
    """Copy ``STEP`` elements from one place to another, of arrays that share no memory."""
    if source.layout != "C" or destination.layout != "C":
        raise TypeError("move copies between arrays without gaps")

    def generate(context, builder, signature, arguments):
        element = context.get_data_type(signature.args[0].dtype)
        lanes = ir.VectorType(element, STEP).as_pointer()

        def pointer(kind, value, position):
            array = context.make_array(kind)(context, builder, value=value)
            return builder.bitcast(builder.gep(array.data, [position]), lanes)

        first = pointer(signature.args[0], *arguments[:2])
        second = pointer(signature.args[2], *arguments[2:])
        align = context.get_abi_sizeof(element)
        builder.store(builder.load(first, align=align), second, align=align)
        return context.get_dummy_value()

    return types.void(source, types.uint64, destination, types.uint64), generate


if config.DISABLE_JIT:

    def move(source, place, destination, other):
        """Do the same as compiled code does."""
        place, other = int(place), int(other)
        destination[other : other + STEP] = source[place : place + STEP]

    def leaders_of_few(buffer, begin, size, current, largest):
        """Return the same as compiled code does."""
        labels = buffer[int(begin) : int(begin) + int(size)].tolist()
        votes = [labels.count(label) for label in labels]
        most = max(votes)
        best = [label for label, number in zip(labels, votes, strict=True) if number == most]
        leaders = sum((number == most) << place for place, number in enumerate(votes))
        winner = max(best) if largest else min(best)
        return most, winner, leaders, len(best), int(current in best)

    leaders_of_some = leaders_of_many = leaders_of_few
