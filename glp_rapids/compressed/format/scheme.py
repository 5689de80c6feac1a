"""What every scheme compiles: functions on single numbers and on the parts of lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Function = Any  # compiled, for compiled code alone to call


@dataclass(frozen=True)
class NumberFunctions:
    """Functions on single numbers; ``kind`` is a field of `Settings`.

    ``read_number(words, tables, bit, kind)``
        A natural number, int64, and the bit behind it.
    ``number_size(tables, x, kind)``, ``write_number(words, tables, bit, x, kind)``
        Its bits; the bit behind it, once written.
    """

    read_number: Function
    number_size: Function
    write_number: Function


@dataclass(frozen=True)
class PartFunctions(NumberFunctions):
    """Functions on parts of lists.

    ``read_part(words, tables, bit, v, count, settings, out, place)``
        Write the ids of a part to ``out``, ascending from a place; give the bit behind it.
    ``skip_part(words, tables, bit, count, settings)``
        The bit behind a part.
    ``part_size(tables, indices, first, last, v, settings)``
        The bits of a part of ``indices[first:last]``.
    ``write_part(words, tables, bit, indices, first, last, v, settings)``
        Put a part into words of zeros; give the bit behind it.
    """

    read_part: Function
    skip_part: Function
    part_size: Function
    write_part: Function
