"""How compressed rows are laid out, and the arrays that hold them.

The bit stream is an array of 32-bit words: its bit b is ``(words[b >> 5] >> (b & 31)) & 1``. A
number of some width is stored with its lowest bit first. Vertices lie in blocks of 32. A block
begins at a byte; inside it the lists follow one another without gaps. A list is::

    degree                 in the code ``degree``; nothing more follows a degree of 0
    ids                    if degree <= raw_below: each in id_bits bits
    part                   else, if degree <= segment
    directory, parts       else: parts of ``segment`` entries each, the last of the rest

The directory tells where parts end, so any of them is found at once: 6 bits for a width, then in
that width for every part the number of bits from the beginning of the first part to its end.

A part is a list for itself, of ascending ids of which those of intervals are left out::

    number of intervals    in the code ``count``, if there may be any: min_interval > 0 and at least
                           min_interval entries
    intervals              the longest runs of consecutive ids, min_interval or more of them
                             start    the first one as its distance from the vertex, folded, in the
                                      code ``first``; later ones as the distance from the end of the
                                      interval before, less 2, in the code ``start``
                             length   less min_interval, in the code ``length``
    residuals              what is left: the first one as its distance from the vertex, folded, in
                           the code ``first``; later ones as gaps, the distance from the one before
                           less 1

That is the scheme "cgr". Under "packed" numbers take bits by class, and those of a part are apart
from their classes, so that a warp reads all of them at once: see `packed`.
Under "entropy" a part is made of runs to both sides of the vertex, and all codes are in tables: see
`entropy`.
A distance d is folded to 2d if d >= 0 and to -2d - 1 if d < 0.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from glp_rapids.common.keeper import Keeper
from glp_rapids.common.scans import integer_sum
from glp_rapids.common.segments import segment_offsets
from glp_rapids.device import DeviceName, device_of

Array = Any

SCHEMES = ("cgr", "packed", "entropy")

BLOCK = 32  # vertices
WIDTH_BITS = 6
PADDING = 2  # words behind the bit stream, so that 64 bits may be read anywhere in it

LARGEST_SEGMENT = 1 << 30
MOST_VERTICES = 1 << 56  # what folds into 57 bits; "packed" has 58 for a number

DELTA = 0
CODES = {"delta": DELTA, "gamma": 1, **{f"zeta{k}": k for k in range(1, 9)}}


class Codes(NamedTuple):
    """The code of every kind of number: "delta", "gamma" (which is "zeta1"), ... "zeta8"."""

    degree: str = "zeta2"
    count: str = "gamma"
    start: str = "zeta3"
    length: str = "zeta2"
    first: str = "zeta4"
    gap: str = "zeta2"


class Settings(NamedTuple):
    """A layout as the kernels take it: int64 scalars; for the codes see `settings`."""

    id_bits: np.int64
    min_interval: np.int64
    raw_below: np.int64
    segment: np.int64
    segment_shift: np.int64
    degree: np.int64
    count: np.int64
    start: np.int64
    length: np.int64
    first: np.int64
    gap: np.int64


@dataclass(frozen=True)
class Layout:
    """How rows are compressed; see the top of the module.

    Parameters
    ----------
    scheme : {"cgr", "packed", "entropy"}
        What numbers are coded in.
    min_interval : int
        So many consecutive ids or more are an interval; 0: there are no intervals.
    raw_below : int
        Lists of up to so many entries are left as plain ids of equal width; 0: none are.
    segment : int
        Longer lists are cut into parts of so many entries; a power of two.
    codes : Codes
        Of the scheme "cgr"; the others have tables instead.

    Raises
    ------
    ValueError
        A number or name is none of those.

    Examples
    --------
    >>> from glp_rapids.compressed.format.layout import Codes, Layout
    >>> Layout("cgr", segment=256, codes=Codes(gap="delta")).segment
    256
    """

    scheme: str = "cgr"
    min_interval: int = 4
    raw_below: int = 0
    segment: int = 128
    codes: Codes = field(default_factory=Codes)

    def __post_init__(self) -> None:
        if self.scheme not in SCHEMES:
            raise ValueError(f"scheme must be one of {', '.join(SCHEMES)}, not {self.scheme!r}")
        for name, least in (("min_interval", 0), ("raw_below", 0), ("segment", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | np.integer):
                raise ValueError(f"{name} must be an integer, not {value!r}")
            if not least <= value <= LARGEST_SEGMENT:
                raise ValueError(f"{name} must be from {least} to 2**30, not {value}")
            object.__setattr__(self, name, int(value))
        if self.segment & (self.segment - 1):
            raise ValueError(f"segment must be a power of two, not {self.segment}")
        if len(self.codes) != len(Codes._fields):
            raise ValueError(f"codes must be {len(Codes._fields)}, not {len(self.codes)}")
        object.__setattr__(self, "codes", Codes(*self.codes))
        for name, code in self.codes._asdict().items():
            if code not in tuple(CODES):
                known = ", ".join(CODES)
                raise ValueError(f"the code of {name} must be one of {known}, not {code!r}")


def settings(layout: Layout, number_of_vertices: int) -> Settings:
    """Put a layout as the kernels take it, for rows of so many vertices.

    Where there are tables, the codes are the numbers of the fields, 0 to 5.
    """
    if number_of_vertices > MOST_VERTICES:
        raise ValueError(f"at most 2**56 vertices can be compressed, not {number_of_vertices}")
    if layout.scheme != "cgr":
        codes = list(range(len(Codes._fields)))
    else:
        codes = [CODES[code] for code in layout.codes]
    values = (
        max(1, (number_of_vertices - 1).bit_length()),
        layout.min_interval,
        layout.raw_below,
        layout.segment,
        layout.segment.bit_length() - 1,
        *codes,
    )
    return Settings(*map(np.int64, values))


@dataclass(frozen=True, eq=False)
class CompressedRows(Keeper):
    """Compressed neighbour lists, all of them; `glp_rapids.compressed.encode.encode` makes them.

    Parameters
    ----------
    layout : Layout
        How.
    number_of_vertices, number_of_edges : int
        Of rows and of entries.
    words : uint32 array
        The bit stream and two words of zeros.
    block_bytes : uint32 array of ceil(number_of_vertices / 32)
        How many bytes of the bit stream every block takes.
    tables : uint32 array
        Of the schemes "packed" and "entropy"; one zero under "cgr".
    """

    layout: Layout
    number_of_vertices: int
    number_of_edges: int
    words: Array
    block_bytes: Array
    tables: Array
    _derived: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def device(self) -> DeviceName:
        """Where the arrays live: "cpu" (NumPy) or "gpu" (CuPy)."""
        return device_of(self.words)

    @property
    def index_dtype(self) -> np.dtype:
        """int32, or int64 where that does not hold every vertex."""
        fits = self.number_of_vertices <= np.iinfo(np.int32).max
        return np.dtype(np.int32 if fits else np.int64)

    @property
    def settings(self) -> Settings:
        """The layout as the kernels take it."""
        return settings(self.layout, self.number_of_vertices)

    @property
    def stream_bits(self) -> int:
        """The bits of the bit stream, blocks filled up to whole bytes."""
        return 8 * integer_sum(self.block_bytes)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays, without what is derived from them."""
        return self.words.nbytes + self.block_bytes.nbytes + self.tables.nbytes

    @property
    def block_starts(self) -> Array:
        """The bit where each block begins, and the end: int64; kept."""
        return self.keep("block_starts", lambda: starts_of(self.block_bytes))

    @property
    def offsets(self) -> Array:
        """The bit where each list begins, int64; found in one pass over the words and kept."""
        return self._skimmed()[0]

    @property
    def degrees(self) -> Array:
        """The entries of every list, in ``index_dtype``; found together with ``offsets``."""
        return self._skimmed()[1]

    def _skimmed(self):
        from glp_rapids.compressed.decode import skim

        return self.keep("skimmed", lambda: skim(self))


def starts_of(block_bytes: Array) -> Array:
    """Return the bit where each block begins, and the end of the bit stream, int64."""
    return 8 * segment_offsets(block_bytes)
