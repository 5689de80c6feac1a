"""The bit stream of a BV graph, decoded list after list.

The list of a node is, in this order: its outdegree d; if d > 0 and the window is not 0, how many
nodes back the list lies that it copies from (0: it does not); if it copies, the number of copy
blocks and their lengths, which in turn copy and skip parts of that list, and an even number of
blocks copies the rest; if vertices are missing still and there are intervals, their number, left
ends and lengths; the vertices that are missing now, as gaps. Values are small naturals, each in a
code that ends by itself; the most significant bit of a byte comes first.

Nothing that is read is believed: every value is held against what it may be before it is used, so
that the time is linear in the file and the lists, and nothing is written outside an array.
"""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept

GAMMA, DELTA, UNARY, ZETA = range(4)

# The fields that have a code of their own, by place in `codes`; intervals are always in gamma.
DEGREE, REFERENCE, BLOCK_COUNT, BLOCK, RESIDUAL = range(5)

# What decoding ends with. Negative: what is wrong with the list of a node.
DONE, FULL = 0, 1
TRUNCATED, HUGE, WRONG_DEGREE, TOO_MANY_ARCS, WRONG_REFERENCE = -1, -2, -3, -4, -5
WRONG_BLOCKS, WRONG_INTERVALS, OUT_OF_RANGE, TWICE = -6, -7, -8, -9

NODE, POSITION = range(2)


@kept(allocates=True)
def decode(words, bits, codes, zeta, window, min_interval, arcs, indptr, indices, state):
    """Decode from ``state``, a node and its bit position, until the end or ``indices`` is full."""
    nodes = indptr.size - 1
    position = state[POSITION]
    parts = np.empty(64, dtype=indices.dtype)  # copied, spanned by intervals, residual
    for node in range(state[NODE], nodes):
        state[NODE], state[POSITION] = node, position
        start = indptr[node]
        degree, position = _read(words, bits, position, codes[DEGREE], zeta)
        if degree < 0:
            return degree
        if degree > nodes:
            return WRONG_DEGREE
        if degree > arcs - start:
            return TOO_MANY_ARCS
        if degree > indices.size - start:
            return FULL
        indptr[node + 1] = start + degree
        if degree == 0:
            continue
        if degree > parts.size:
            parts = np.empty(2 * degree, dtype=indices.dtype)
        reference, copied, spanned = 0, 0, 0
        if window > 0:
            reference, position = _read(words, bits, position, codes[REFERENCE], zeta)
            if reference < 0:
                return reference
            if reference > window or reference > node:
                return WRONG_REFERENCE
        if reference > 0:
            known = indices[indptr[node - reference] : indptr[node - reference + 1]]
            copied, position = _copy(words, bits, position, codes, zeta, known, parts[:degree])
            if copied < 0:
                return copied
        if min_interval > 0 and copied < degree:
            spanned, position = _span(
                words, bits, position, min_interval, node, nodes, parts[copied:degree]
            )
            if spanned < 0:
                return spanned
        rest = copied + spanned
        if rest < degree:
            problem, position = _residuals(
                words, bits, position, codes[RESIDUAL], zeta, node, nodes, parts[rest:degree]
            )
            if problem < 0:
                return problem
        row = indices[start : start + degree]
        if not _merge(parts[:copied], parts[copied:rest], parts[rest:degree], nodes, row):
            return TWICE
    state[NODE], state[POSITION] = nodes, position
    return DONE


@kept(allocates=True)  # for the case that the two overlap
def _copy(words, bits, position, codes, zeta, known, out):
    """Copy blocks of a known list; give how many vertices that were, or what is wrong."""
    blocks, position = _read(words, bits, position, codes[BLOCK_COUNT], zeta)
    if blocks < 0:
        return blocks, position
    at, copied = 0, 0
    for block in range(blocks + 1):
        if block < blocks:
            length, position = _read(words, bits, position, codes[BLOCK], zeta)
            if length < 0:
                return length, position
            if block > 0:
                length += 1
            if length > known.size - at:
                return WRONG_BLOCKS, position
        else:
            length = known.size - at
        if block % 2 == 0:
            if length > out.size - copied:
                return WRONG_BLOCKS, position
            out[copied : copied + length] = known[at : at + length]
            copied += length
        at += length
    return copied, position


@kept
def _span(words, bits, position, min_interval, node, nodes, out):
    """Write out intervals; give how many vertices those were, or what is wrong."""
    intervals, position = _read(words, bits, position, GAMMA, 0)
    if intervals < 0:
        return intervals, position
    left, spanned = 0, 0
    for interval in range(intervals):
        gap, position = _read(words, bits, position, GAMMA, 0)
        if gap < 0:
            return gap, position
        length, position = _read(words, bits, position, GAMMA, 0)
        if length < 0:
            return length, position
        length += min_interval
        if length > out.size - spanned:
            return WRONG_INTERVALS, position
        if gap > 2 * nodes:
            return OUT_OF_RANGE, position
        left = node + _unfolded(gap) if interval == 0 else left + 1 + gap
        if left < 0 or left > nodes - length:
            return OUT_OF_RANGE, position
        for vertex in range(left, left + length):
            out[spanned] = vertex
            spanned += 1
        left += length
    return spanned, position


@kept
def _residuals(words, bits, position, code, zeta, node, nodes, out):
    """Write the vertices that are coded one by one; give 0 or what is wrong."""
    vertex = node
    for i in range(out.size):
        gap, position = _read(words, bits, position, code, zeta)
        if gap < 0:
            return gap, position
        if gap > 2 * nodes:
            return OUT_OF_RANGE, position
        vertex += _unfolded(gap) if i == 0 else gap + 1
        if vertex < 0 or vertex >= nodes:
            return OUT_OF_RANGE, position
        out[i] = vertex
    return 0, position


@kept
def _merge(first, second, third, beyond, out):
    """Merge three ascending lists; tell whether no vertex is in two of them."""
    i, j, k = 0, 0, 0
    for to in range(out.size):
        one = first[i] if i < first.size else beyond
        two = second[j] if j < second.size else beyond
        three = third[k] if k < third.size else beyond
        least = min(one, two, three)
        out[to] = least
        i += one == least
        j += two == least
        k += three == least
        if i + j + k != to + 1:
            return False
    return True


@kept
def _unfolded(natural):
    """Map a natural to an integer: 0, -1, 1, -2, 2, ..."""
    return -((natural + 1) >> 1) if natural & 1 else natural >> 1


@kept
def _read(words, bits, position, code, zeta):
    """Read one natural, or what is wrong, and give the position behind it."""
    if code == DELTA:
        length, position = _unary(words, bits, position)
        if length > 5:
            return HUGE, position
        if length < 0:
            return length, position
        power = (1 << length) + _bits(words, position, length) - 1
        position += length
    else:
        power, position = _unary(words, bits, position)
        if power < 0 or code == UNARY:
            return power, position
    if code != ZETA:
        if power > 61:
            return HUGE, position
        value = (1 << power) + _bits(words, position, power) - 1
        position += power
    else:
        if power > 61 or power * zeta + zeta > 61:
            return HUGE, position
        low = 1 << (power * zeta)
        width = power * zeta + zeta - 1
        value = _bits(words, position, width)
        position += width
        if value < low:
            value += low - 1
        else:
            # position may be one too far by now, where there still is a word to look at
            value = 2 * value + _bits(words, position, 1) - 1
            position += 1
    if position > bits:
        return TRUNCATED, position
    return value, position


@kept
def _unary(words, bits, position):
    """Count zeros up to the next one; give the position behind that."""
    zeros = 0
    while position < bits:
        ahead = _ahead(words, position)
        if ahead != 0:
            leading = 0
            for step in (32, 16, 8, 4, 2, 1):
                if ahead >> np.uint64(64 - step) == 0:
                    ahead <<= np.uint64(step)
                    leading += step
            position += leading + 1
            return (zeros + leading, position) if position <= bits else (TRUNCATED, position)
        position += 64
        zeros += 64
    return TRUNCATED, position


@kept
def _bits(words, position, width):
    """Read the next 0 to 62 bits as a number."""
    if width == 0:
        return 0
    return np.int64(_ahead(words, position) >> np.uint64(64 - width))


@kept
def _ahead(words, position):
    """Read the next 64 bits."""
    word, offset = position >> 6, position & 63
    if offset == 0:
        return words[word]
    return words[word] << np.uint64(offset) | words[word + 1] >> np.uint64(64 - offset)
