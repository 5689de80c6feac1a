"""Made-up graphs of any size, on a CPU or a GPU, the same to the last bit on both.

Every number drawn is a hash of (what it is for, seed): no state, no order, integers throughout. So
an edge is a function of its number, edges are made in chunks of any size, and memory beyond the
result stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from glp_rapids.common.checks import check_integer, is_number, shown
from glp_rapids.common.hashing import mix_array
from glp_rapids.device import DeviceName, choose, module_on
from glp_rapids.graph.sort_gpu import index_dtype

__all__ = ["kronecker", "rmat", "road_grid"]

Array = Any
Edges = tuple[Array, Array]

# Edges made at once: what stays in the cache of a CPU core, what fills a GPU (128 MB an array).
CHUNK = {"cpu": 1 << 17, "gpu": 1 << 24}
QUADRANT_BITS = 21  # of a hash decide one level of an RMAT edge, so a hash serves three


def rmat(
    scale: int,
    edge_factor: int = 16,
    seed: int = 0,
    *,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    device: DeviceName | None = None,
) -> Edges:
    """Make the edges of a recursive-matrix (RMAT) graph: skewed degrees, some edges repeated.

    Parameters
    ----------
    scale
        There are 2**scale vertices, 1 <= scale <= 40.
    edge_factor
        Edges per vertex.
    seed
        The same arguments and seed give the same edges, on every device.
    a, b, c
        Probabilities of three quadrants, to within 2**-21; the defaults are Graph500's.
    device : {"cpu", "gpu"}, optional
        Where the edges are made and stay; None: on the GPU if there is one.

    Returns
    -------
    (source, destination)
        Two arrays, of NumPy or CuPy, of edge_factor * 2**scale elements, with duplicates and
        self-loops; int32 up to scale 30, else int64.

    Raises
    ------
    ValueError
        If a number is out of range, or there is no such device.

    Notes
    -----
    Cost: O(scale * edges). D. Chakrabarti, Y. Zhan, C. Faloutsos: R-MAT, SDM 2004, section 3.
    Vertex 0 has the most edges; `kronecker` hides that.

    Examples
    --------
    >>> from glp_rapids.datasets import rmat
    >>> source, destination = rmat(10, 8)
    >>> len(source), int(source.max()) < 1024
    (8192, True)
    """
    return _recursive(scale, edge_factor, seed, (a, b, c), device, permuted=False)


def kronecker(
    scale: int, edge_factor: int = 16, seed: int = 0, device: DeviceName | None = None
) -> Edges:
    """Make the edges of a Graph500 Kronecker graph: RMAT with its vertices renamed at random.

    Parameters
    ----------
    scale, edge_factor, seed, device
        As in `rmat`.

    Returns
    -------
    (source, destination)
        As of `rmat`, with A = .57, B = C = .19.

    Raises
    ------
    ValueError
        As `rmat`.

    Notes
    -----
    Cost: O(scale * edges). Graph500 specification 2.0, section 3. The vertices are renamed by a
    bijection of scale bits, not by a shuffled table, and the edges are not shuffled.

    Examples
    --------
    >>> from glp_rapids.datasets import kronecker
    >>> source, destination = kronecker(10, 8)
    >>> len(source), int(source.max()) < 1024
    (8192, True)
    """
    return _recursive(scale, edge_factor, seed, (0.57, 0.19, 0.19), device, permuted=True)


def _recursive(
    scale: int, edge_factor: int, seed: int, quadrants: tuple[float, float, float],
    device: DeviceName | None, *, permuted: bool,
) -> Edges:  # fmt: skip
    check_integer("scale", scale, 1)
    check_integer("edge_factor", edge_factor, 1)
    check_integer("seed", seed, 0)
    if scale > 40:
        raise ValueError(f"scale must be at most 40, not {scale}")
    a, b, c = quadrants
    # a comparison with what is no number is false
    if not all(map(is_number, quadrants)) or not (min(a, b, c) >= 0 and a + b + c <= 1):
        raise ValueError(
            "a, b and c must be >= 0 and sum to at most 1, not "
            f"{', '.join(map(shown, quadrants))}"
        )
    one = 1 << QUADRANT_BITS
    limits = [np.uint64(round(share * one)) for share in (a, a + b, a + b + c)]
    levels = 64 // QUADRANT_BITS

    def edges(xp: ModuleType, edge: Array) -> Edges:
        source, destination = xp.zeros(edge.size, np.uint64), xp.zeros(edge.size, np.uint64)
        for level in range(scale):
            if level % levels == 0:
                throws = mix_array(edge, stream(seed, level))
            throw = throws & np.uint64(one - 1)
            throws = throws >> np.uint64(QUADRANT_BITS)
            lower = throw >= limits[1]
            right = ((throw >= limits[0]) & ~lower) | (throw >= limits[2])
            source = (source << np.uint64(1)) | lower
            destination = (destination << np.uint64(1)) | right
        if permuted:
            return permute(source, scale, seed), permute(destination, scale, seed)
        return source, destination

    return made(edge_factor << scale, 1 << scale, device, edges)


def permute(index: Array, bits: int, seed: int) -> Array:
    """Map the integers below 2**bits one to one onto themselves, scrambled by ``seed``.

    Multiplying by an odd number and x ^ (x >> s) both can be undone modulo 2**bits.
    """
    mask, shift = np.uint64((1 << bits) - 1), np.uint64((bits + 1) // 2)
    index = index.astype(np.uint64)
    for word in mix_array(np.arange(8), stream(seed, 1 << 16)).reshape(4, 2):
        index = (index * (word[0] | np.uint64(1)) + word[1]) & mask
        index = index ^ (index >> shift)
    return index


def road_grid(
    rows: int = 2000,
    columns: int = 2000,
    removed: float = 0.1,
    seed: int = 0,
    device: DeviceName | None = None,
) -> Edges:
    """Make the edges of a grid of streets, some of them missing: low degrees, a large diameter.

    Parameters
    ----------
    rows, columns
        Vertex ``row * columns + column`` is joined to the next in its row and in its column.
    removed
        Share of the edges that are left out at random, in [0, 1].
    seed, device
        As in `rmat`.

    Returns
    -------
    (source, destination)
        Two arrays of NumPy or CuPy, every edge once; int32 where that can number the
        vertices, else int64.

    Raises
    ------
    ValueError
        If a number is out of range, or there is no such device.

    Notes
    -----
    Cost: O(rows * columns). With the defaults 4 M vertices and 7.2 M edges.

    Examples
    --------
    >>> from glp_rapids.datasets import road_grid
    >>> source, destination = road_grid(2, 2, removed=0, device="cpu")
    >>> list(zip(source.tolist(), destination.tolist()))
    [(0, 1), (2, 3), (0, 2), (1, 3)]
    """
    check_integer("rows", rows, 1)
    check_integer("columns", columns, 1)
    check_integer("seed", seed, 0)
    if not is_number(removed) or not 0 <= removed <= 1:
        raise ValueError(f"removed must be a share in [0, 1], not {shown(removed)}")
    along = rows * (columns - 1)
    limit = np.uint64(int(removed * (1 << 53)))

    def edges(xp: ModuleType, edge: Array) -> Edges:
        edge = edge[(mix_array(edge, stream(seed, 0)) >> np.uint64(11)) >= limit]
        in_row = edge < along
        source = xp.where(in_row, edge // max(columns - 1, 1) + edge, edge - along)
        # edge (r, c) of a row has the number r * (columns - 1) + c, its vertex r * columns + c
        return source, xp.where(in_row, source + 1, source + columns)

    return made(along + (rows - 1) * columns, rows * columns, device, edges)


def stream(seed: int, purpose: int) -> int:
    """Return the seed of one kind of draw: no two kinds of one graph share their numbers."""
    return (seed << 20) + purpose


def made(
    count: int,
    number_of_vertices: int,
    device: DeviceName | None,
    edges: Callable[[ModuleType, Array], Edges],
) -> Edges:
    """Call ``edges`` on the numbers 0 .. count - 1, chunk by chunk; it may leave some out."""
    device = choose(device)
    xp = module_on(device)
    ends = [xp.empty(count, index_dtype(number_of_vertices)) for _ in range(2)]
    filled, chunk = 0, CHUNK[device]
    for first in range(0, count, chunk):
        parts = edges(xp, xp.arange(first, min(first + chunk, count), dtype=np.int64))
        for end, part in zip(ends, parts, strict=True):
            end[filled : filled + part.size] = part
        filled += parts[0].size
    source, destination = ends
    if filled == count:
        return source, destination
    return source[:filled].copy(), destination[:filled].copy()
