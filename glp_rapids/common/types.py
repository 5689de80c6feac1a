"""What signatures name: types that are told at run time without importing what they stand for."""

from __future__ import annotations

from typing import Any, Literal

Frame = Any  # a frame of pandas or cuDF, or a proxy of cudf.pandas
Column = Any  # a Series of either library, or a one-dimensional NumPy or CuPy array
Direction = Literal["in", "out", "both"]
Kind = Literal["pandas", "cudf", "cudf.pandas"]
Unreachable = Literal["max", "null", "drop"]  # what becomes of who is not reached
