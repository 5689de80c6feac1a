"""An entry of a neighbour list, whether entries lie as an array or bit-packed side by side.

Bit-packed, all take the same number of bits, as many as the largest vertex needs: entry ``i`` is at
bit ``i * bits``. So lists come over a bus in ``bits / 32`` of the time, and more of them stay on
the device; reading an entry takes two loads, mostly of one sector, and a funnel shift.
`outofcore.bit_packed` packs them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from glp_rapids.jit.cuda import SIMULATED


class PackedEntries(NamedTuple):
    """Entries of ``bits`` each in words, of which one more than they take can be read."""

    words: Any  # uint32 or uint64: as wide as an index
    bits: Any  # int64


if SIMULATED:

    def entry_at(indices, i):
        """Read an entry of an array or of `PackedEntries`."""
        if not isinstance(indices, PackedEntries):
            return indices[np.uint64(i)]
        words, bits = indices
        width = 8 * words.dtype.itemsize
        place, offset = divmod(int(i) * int(bits), width)
        both = int(words[place]) | int(words[place + 1]) << width
        return np.dtype(f"i{words.dtype.itemsize}").type(both >> offset & (1 << int(bits)) - 1)

else:
    from llvmlite import ir
    from numba.cuda import types
    from numba.cuda.extending import intrinsic

    @intrinsic
    def entry_at(typingctx, indices, i):
        """Read an entry of an array or of `PackedEntries`."""
        if not isinstance(indices, types.NamedTuple):
            if indices.layout != "C":
                raise TypeError(f"entry_at reads neighbouring entries, not those of {indices}")

            def read(context, builder, signature, arguments):
                array = context.make_array(signature.args[0])(context, builder, arguments[0])
                return builder.load(builder.gep(array.data, [arguments[1]]))

            return indices.dtype(indices, types.int64), read

        width = indices[0].dtype.bitwidth
        word, double = ir.IntType(width), ir.IntType(2 * width)

        def unpack(context, builder, signature, arguments):
            words, bits = (builder.extract_value(arguments[0], k) for k in range(2))
            words = context.make_array(signature.args[0][0])(context, builder, words)
            # As many words as an entry has bits hold a line of as many entries as a word has bits:
            # so numbers of 32 bits do. A loop of such reads has 224 instructions instead of 272.
            short, long, log_width = ir.IntType(32), bits.type, width.bit_length() - 1
            few = builder.trunc(bits, short)
            line = builder.trunc(builder.lshr(arguments[1], long(log_width)), short)
            in_line = builder.and_(builder.trunc(arguments[1], short), short(width - 1))
            bit = builder.mul(in_line, few)
            first = builder.mul(builder.zext(line, long), builder.zext(few, long))
            place = builder.add(first, builder.zext(builder.lshr(bit, short(log_width)), long))
            offset = builder.zext(builder.and_(bit, short(width - 1)), long)
            low, high = (
                builder.zext(builder.load(builder.gep(words.data, [one])), double)
                for one in (place, builder.add(place, place.type(1)))
            )
            both = builder.or_(low, builder.shl(high, double(width)))
            shift = builder.zext(offset, double) if 2 * width > 64 else offset
            found = builder.trunc(builder.lshr(both, shift), word)
            unused = builder.sub(bits.type(width), bits)
            if width < 64:
                unused = builder.trunc(unused, word)
            return builder.and_(found, builder.lshr(word(-1), unused))

        index_type = types.int32 if width == 32 else types.int64
        return index_type(indices, types.int64), unpack
