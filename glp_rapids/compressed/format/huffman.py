"""Static Huffman codes for many contexts: which contexts share a code, the codes, their tables.

A symbol is decoded by one lookup, so a table has an entry for every string of ``width`` bits; what
tables take counts as size. Contexts share a table where a table of their own would not pay, and no
code word is longer than pays. All costs are integers, so that equal counts give equal tables.
"""

from __future__ import annotations

import numpy as np

LONGEST = 10
"""No code word has more bits."""

_ENTRY_BITS = 16
_FRACTION = 256


def code_lengths(counts: np.ndarray, longest: int) -> np.ndarray:
    """Find the length of every symbol's code word; 0 for all where fewer than two occur.

    Package-merge (Larmore and Hirschberg 1990): the least total among codes whose words have at
    most ``longest`` bits. Among equal counts the lower symbol is the rarer one.
    """
    lengths = np.zeros(counts.size, np.int64)
    used = np.flatnonzero(counts)
    if used.size < 2:
        return lengths
    if used.size > 1 << longest:
        raise ValueError(f"{used.size} symbols have no code of at most {longest} bits")
    rarest_first = used[np.argsort(counts[used], kind="stable")]
    leaves = counts[rarest_first].astype(np.int64)
    packages = leaves[:0]
    levels = []
    for _ in range(longest):
        both = np.concatenate((leaves, packages))
        order = np.argsort(both, kind="stable")
        levels.append(order < leaves.size)
        both = both[order[: both.size // 2 * 2]]
        packages = both[::2] + both[1::2]
    taken = 2 * used.size - 2
    for is_leaf in reversed(levels):
        own = int(np.count_nonzero(is_leaf[:taken]))
        lengths[rarest_first[:own]] += 1
        taken = 2 * (taken - own)
    return lengths


def canonical_codes(lengths: np.ndarray) -> np.ndarray:
    """Assign code words, as they lie in the bit stream: the first bit is the lowest."""
    codes = np.zeros(lengths.size, np.int64)
    code = before = 0
    for symbol in np.lexsort((np.arange(lengths.size), lengths)):
        length = int(lengths[symbol])
        if length == 0:
            continue
        code <<= length - before
        before = length
        codes[symbol] = int(f"{code:0{length}b}"[::-1], 2)
        code += 1
    return codes


def symbols_by_bits(lengths: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Tabulate the symbol that each string of bits begins with; all have the greatest length."""
    width = int(lengths.max())
    if width == 0:
        return np.array([int(counts.argmax())])
    found = np.zeros(1 << width, np.int64)
    codes = canonical_codes(lengths)
    for symbol in np.flatnonzero(lengths):
        found[codes[symbol] :: 1 << lengths[symbol]] = symbol
    return found


def best_lengths(counts: np.ndarray) -> np.ndarray:
    """Find the lengths for which the coded symbols and the table together are the smallest.

    At most ``2**LONGEST`` symbols occur.
    """
    used = int(np.count_nonzero(counts))
    least = max(used - 1, 0).bit_length()
    choices = [code_lengths(counts, longest) for longest in range(least, LONGEST + 1)]
    sizes = [int(counts @ each) + (_ENTRY_BITS << int(each.max())) for each in choices]
    return choices[int(np.argmin(sizes))]


def share(counts: np.ndarray, most: int) -> np.ndarray:
    """Say which contexts share a code: give each row of counts the number of its group.

    Groups are joined two by two, always the two that save the most, while that saves anything or
    there are more than ``most`` of them.
    """
    occur = np.flatnonzero(counts.sum(axis=1))
    group_of = np.zeros(counts.shape[0], np.int64)
    if occur.size == 0:
        return group_of
    groups = counts[occur].astype(np.int64)
    members = [[int(context)] for context in occur]
    cost = _cost(groups)
    saved = np.full((occur.size, occur.size), np.iinfo(np.int64).min)
    for row in range(1, occur.size):
        saved[row, :row] = cost[row] + cost[:row] - _cost(groups[row] + groups[:row])
    while len(members) > 1:
        row, column = divmod(int(saved.argmax()), saved.shape[0])
        if saved[row, column] <= 0 and len(members) <= most:
            break
        groups[column] += groups[row]
        members[column] += members.pop(row)
        groups = np.delete(groups, row, axis=0)
        saved = np.delete(np.delete(saved, row, axis=0), row, axis=1)
        cost = np.delete(cost, row)
        cost[column] = _cost(groups[column : column + 1])[0]
        gain = cost[column] + cost - _cost(groups[column] + groups)
        saved[column, :column] = gain[:column]
        saved[column + 1 :, column] = gain[column + 1 :]
    for number, contexts in enumerate(members):
        group_of[contexts] = number
    return group_of


def _cost(groups: np.ndarray) -> np.ndarray:
    """Estimate what groups cost, in 1/256 bit: the entropy of their symbols and the table."""
    total = groups.sum(axis=1)
    used = np.count_nonzero(groups, axis=1)
    width = np.minimum(np.frexp(used)[1] + 1, LONGEST - 1)
    table = np.where(used > 1, _ENTRY_BITS * _FRACTION << width, 0)
    return _weight(total) - _weight(groups).sum(axis=1) + table


def _weight(counts: np.ndarray) -> np.ndarray:
    return np.rint(_FRACTION * counts * np.log2(np.maximum(counts, 1))).astype(np.int64)
