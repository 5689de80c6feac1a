"""A made-up crawl of the web: hosts, directories, templates, navigation links and popularity.

Made as the graphs of `synthetic` are, by hashes alone. Power laws come from ``(1 << 32) // u`` of a
uniform u, whose tail is P(x >= s) = 1 / s: exact integer arithmetic, where ``pow`` differs between
devices in the last bit.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from glp_rapids.common.checks import check_integer
from glp_rapids.common.hashing import mix_array
from glp_rapids.datasets.synthetic import Edges, made, stream
from glp_rapids.device import DeviceName, array_module, choose, module_on

__all__ = ["web_like"]

Array = Any

# Of a hundred links that follow no rule: to pages close by in the order of URLs, to the host's
# first pages, to other hosts.
CLOSE, FIRST_PAGES, ELSEWHERE = 24, 4, 2
LIST_SHARE = 40  # the shortest list, in hundredths of edges_per_vertex


def web_like(
    vertices: int = 1_380_000,
    edges_per_vertex: int = 10,
    seed: int = 0,
    device: DeviceName | None = None,
) -> Edges:
    """Make the links of a crawl of the web, its pages in the order of their URLs.

    Hosts are ranges of pages, of power-law sizes up to 40 000, and fall into directories. The pages
    of a directory share a template, a list of links to runs of consecutive pages. Besides, a page
    links to the first pages of its host and directory, which get very high degrees, to pages close
    by, and now and then to another host, by popularity.

    Parameters
    ----------
    vertices
        Number of pages.
    edges_per_vertex
        Undirected edges per page, about, once duplicates are merged.
    seed, device
        As in `rmat`.

    Returns
    -------
    (source, destination)
        As of `rmat`; int32 where that can number the vertices, else int64.

    Raises
    ------
    ValueError
        If a number is out of range, or there is no such device.

    Notes
    -----
    Cost: O(edges * log vertices) time, 8 bytes a vertex beyond the result. With the defaults it
    has the size of in-2004 (1.38 M pages, 27 M entries of the CSR, degrees of up to 20 000).
    The locality and the shared lists are those that WebGraph compresses: P. Boldi, S. Vigna, WWW
    2004, section 2.

    Examples
    --------
    >>> from glp_rapids.datasets import web_like
    >>> source, destination = web_like(1000)
    >>> len(source) > 8000, int(source.max()) < 1000
    (True, True)
    """
    check_integer("vertices", vertices, 1)
    check_integer("edges_per_vertex", edges_per_vertex, 1)
    check_integer("seed", seed, 0)
    device = choose(device)
    xp = module_on(device)
    host = _ranges(vertices, 8, min(40_000, max(vertices // 16, 8)), stream(seed, 0))
    folder = np.union1d(host, _ranges(vertices, 12, 2_000, stream(seed, 1)))[:-1]
    # the length of the list of every page of a folder, in sixteenths of a link
    least = max(LIST_SHARE * edges_per_vertex * 16 // 100, 1)
    word = mix_array(np.arange(folder.size), stream(seed, 2))
    length = 1 + power_law(word, least, 40 * least) // 16
    host, folder, length = xp.asarray(host), xp.asarray(folder), xp.asarray(length)
    page = xp.arange(vertices, dtype=np.int64)
    ends = xp.cumsum(length[xp.searchsorted(folder, page, side="right") - 1])

    def edges(xp: ModuleType, edge: Array) -> Edges:
        page = xp.searchsorted(ends, edge, side="right")
        its_folder = xp.searchsorted(folder, page, side="right") - 1
        its_host = xp.searchsorted(host, page, side="right") - 1
        slot = ends[page] - 1 - edge
        root, size = host[its_host], host[its_host + 1] - host[its_host]
        word = mix_array(edge, stream(seed, 3))

        # a run of eight pages of the template, somewhere in the host not far from the folder
        block = mix_array(its_folder * 256 + slot // 8, stream(seed, 4))
        target = folder[its_folder] + signed(block, steep_law(block, 4, size)) + slot % 8
        kind = below(word << np.uint64(16), 100)
        close = page + signed(word, steep_law(word, 2, size))
        target = xp.where(kind < CLOSE, close, target)
        target = root + (target - root) % size
        first_pages = root + below(mix_array(edge, stream(seed, 5)), xp.minimum(size, 16))
        target = xp.where((kind >= CLOSE) & (kind < CLOSE + FIRST_PAGES), first_pages, target)
        target = xp.where(kind >= 100 - ELSEWHERE, _elsewhere(xp, edge, host, seed), target)
        target = xp.where((slot == 0) & (its_folder % 2 == 0), root, target)
        target = xp.where(slot == 1, folder[its_folder], target)
        return page, xp.where(slot == 2, root + (page + 1 - root) % size, target)

    return made(int(ends[-1]), vertices, device, edges)


def _elsewhere(xp: ModuleType, edge: Array, host: Array, seed: int) -> Array:
    """Draw pages of other hosts: the host of rank r as 1 / r, half of the pages its first."""
    hosts = host.size - 1
    word = mix_array(edge, stream(seed, 6))
    octave = below(word, hosts.bit_length())
    rank = xp.left_shift(xp.ones_like(octave), octave)
    rank = rank - 1 + below(mix_array(edge, stream(seed, 7)), rank)
    # popular hosts are anywhere in the order of URLs, and of any size
    chosen = below(mix_array(rank, stream(seed, 8)), hosts)
    inside = below(mix_array(edge, stream(seed, 9)), host[chosen + 1] - host[chosen])
    return host[chosen] + xp.where(word & np.uint64(1), inside, 0)


def _ranges(number: int, smallest: int, largest: int, seed: int) -> np.ndarray:
    """Cut 0 .. number - 1 into ranges of power-law sizes; return their starts and the end."""
    sizes = power_law(mix_array(np.arange(-(-number // smallest)), seed), smallest, largest)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    return np.append(starts[starts < number], number)


def power_law(words: Array, smallest: int, largest: int | Array) -> Array:
    """Turn hashes into integers x with P(x >= s) = smallest / s, none above ``largest``."""
    uniform = (words >> np.uint64(32)).astype(np.int64) + 1
    drawn = (smallest << 32) // uniform
    return array_module(words).minimum(drawn, largest)


def steep_law(words: Array, smallest: int, largest: int | Array) -> Array:
    """Turn hashes into integers x with P(x >= s) = (smallest / s) ** 2, none above ``largest``."""
    xp = array_module(words)
    return power_law(xp.maximum(words, words << np.uint64(32)), smallest, largest)


def below(words: Array, bound: int | Array) -> Array:
    """Turn hashes into integers in [0, bound)."""
    return (words >> np.uint64(33)).astype(np.int64) % bound


def signed(words: Array, amount: Array) -> Array:
    """Return ``amount`` with a sign, drawn by the lowest bit of the hashes."""
    return array_module(words).where(words & np.uint64(1), amount, -amount)
