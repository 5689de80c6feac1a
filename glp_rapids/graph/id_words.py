"""What is hashed in the place of a vertex: a word of 64 bits made of its external id.

So what befalls a vertex does not depend on which other ids there are, which its index, a rank,
does. An integer is its own word, a date that of its clock, a string the hash XXH64 of its bytes in
UTF-8 (Collet, 2014), which cuDF computes, too, and anything else that of how it is printed. Equal
ids have one word, in whatever type they come. Words of integers without a gap are not kept: the
index and the first id are all they take.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from glp_rapids.common.hashing import mix_array
from glp_rapids.device import DeviceName, array_module, module_on, to_device
from glp_rapids.frames import kinds
from glp_rapids.graph.vertex_ids import IdColumn, VertexIds

Array = Any
AT_ONCE = 1 << 14  # texts: as bytes they take far more than their words
MOMENTS = date, timedelta, np.datetime64, np.timedelta64  # pandas' own are among the first two


class IdWords(NamedTuple):
    """The word of vertex v: ``words[v]``, or ``first + v`` where there is but one word."""

    first: np.int64
    words: Array  # int64, whose bits count; one of no meaning for ids without a gap

    @classmethod
    def range(cls, first: int, device: DeviceName) -> IdWords:
        """Return the words of the integers from ``first`` on."""
        first = np.uint64(first & ((1 << 64) - 1)).astype(np.int64)
        return cls(first, module_on(device).zeros(1, np.int64))

    @property
    def nbytes(self) -> int:
        """The bytes of the words, where each vertex has one."""
        return self.words.nbytes if self.words.size > 1 else 0

    def of(self, vertices: Array) -> Array:
        """Return the words of an array of vertices."""
        if self.words.size > 1:
            return self.words[vertices]
        return vertices.astype(np.int64) + self.first

    def of_first(self, vertices: int) -> Array:
        """Return the words of so many vertices from the first on, where they are if they are."""
        if self.words.size > 1:
            return self.words[:vertices]
        return self.of(array_module(self.words).arange(vertices))


def id_words(vertices: VertexIds, device: DeviceName) -> IdWords:
    """Return the words of all vertices, on ``device``."""
    if len(vertices.columns) == 1 and vertices.columns[0].family == "integer" and len(vertices):
        (column,) = vertices.columns
        first, last = column.ends
        if last - first == len(vertices) - 1:
            return IdWords.range(first, device)
    words = None
    for column in vertices.columns:
        of_column = to_device(_words_of(column), device).astype(np.int64, copy=False)
        if words is None:
            words = of_column
        else:
            # a pair in the other order is another id
            words = mix_array(words, 1).view(np.int64) + of_column
    if words.size == 1:  # one word counts as none
        return IdWords.range(int(words[0]), device)
    return IdWords(np.int64(0), words)


def _words_of(column: IdColumn) -> Array:
    values = column.values
    if column.family == "integer":
        return values
    on_gpu = kinds.is_cudf(values, "Series")
    if isinstance(values.dtype, pd.ArrowDtype) and values.dtype.kind in "mM":
        arrow, of = values.dtype.pyarrow_dtype, {"m": "timedelta64", "M": "datetime64"}
        unit, zone = getattr(arrow, "unit", "us"), getattr(arrow, "tz", None)  # dates have neither
        name = f"{of[values.dtype.kind]}[{unit}{f', {zone}' if zone else ''}]"
        values = values.astype(name)
    if values.dtype.kind in "mM":
        ticks = values.astype("int64")
        # the same moment in another unit is the same id; what overflows does so everywhere
        return (ticks.values if on_gpu else ticks.to_numpy()) * _nanoseconds(values.dtype)
    if on_gpu:
        texts = values if column.family == "string" else values.astype("str")
        return texts.hash_values(method="xxhash64").values.view(np.int64)
    if len(values) and isinstance(values.iloc[0], MOMENTS):
        return np.array([_ticks(value) for value in values], np.int64)
    # Numba waits for the first strings: `import glp_rapids` stays light
    from glp_rapids.graph.string_hash import hashes_of

    words, texts = np.empty(len(values), np.int64), iter(values)
    for first in range(0, words.size, AT_ONCE):
        some = [_encoded(value) for value in islice(texts, AT_ONCE)]
        words[first : first + len(some)] = hashes_of(some)
    return words


def _nanoseconds(dtype: Any) -> np.int64:
    """Return how many there are in a tick of a clock."""
    unit = getattr(dtype, "unit", None) or np.datetime_data(dtype)[0]
    return np.int64(np.timedelta64(1, unit) // np.timedelta64(1, "ns"))


def _ticks(value: Any) -> int:
    """Return what a clock of nanoseconds would say of a Python object, or less 2^64 or so."""
    length = isinstance(value, timedelta | np.timedelta64)
    moment = pd.Timedelta(value) if length else pd.Timestamp(value)
    ticks = int(moment.asm8.view("i8")) * int(_nanoseconds(moment.asm8.dtype))
    return (ticks + 2**63) % 2**64 - 2**63


def _encoded(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if not isinstance(value, str):
        value = _printed(value, str)
    return value.encode("utf-8", "surrogatepass")


def _printed(value: Any, otherwise: Callable[[Any], str] = repr) -> str:
    """Print an id so that equal ones read alike: 1.50 as 1.5, and (1.0, "a") as (1, 'a')."""
    if isinstance(value, tuple):
        parts = ", ".join(map(_printed, value))
        return f"({parts},)" if len(value) == 1 else f"({parts})"
    if isinstance(value, int | np.integer | np.bool_):
        return str(int(value))
    if isinstance(value, float | np.floating):
        value = Decimal(float(value))
    if not isinstance(value, Decimal) or not value.is_finite():
        return otherwise(value)
    text = format(value, "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return "0" if text == "-0" else text
