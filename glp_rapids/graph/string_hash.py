"""The hash XXH64 of byte strings (Collet, 2014), seed 0: the same as cuDF's ``hash_values``."""

from __future__ import annotations

import numpy as np

from glp_rapids.jit.cache import kept

# The primes of XXH64.
_ONE = np.uint64(0x9E3779B185EBCA87)
_TWO = np.uint64(0xC2B2AE3D27D4EB4F)
_THREE = np.uint64(0x165667B19E3779F9)
_FOUR = np.uint64(0x85EBCA77C2B2AE63)
_FIVE = np.uint64(0x27D4EB2F165667C5)


@kept(error_model="numpy")
def _turned(word, bits):
    return (word << np.uint64(bits)) | (word >> np.uint64(64 - bits))


@kept(error_model="numpy")
def _read(data, first, size):
    """Read an integer of ``size`` bytes, the lowest first."""
    word = np.uint64(0)
    for i in range(size):
        word |= np.uint64(data[first + i]) << np.uint64(8 * i)
    return word


@kept(error_model="numpy")
def _round(lane, word):
    return _turned(lane + word * _TWO, 31) * _ONE


def hashes_of(texts: list[bytes]) -> np.ndarray:
    """Return the hash of each text, the bits of an int64."""
    ends = np.zeros(len(texts) + 1, np.int64)
    np.cumsum([len(text) for text in texts], out=ends[1:])
    return hashes_of_bytes(np.frombuffer(b"".join(texts) or b"\0", np.uint8), ends)


@kept(error_model="numpy", allocates=True)
def hashes_of_bytes(data: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Hash ``data[ends[i]:ends[i + 1]]`` for every i."""
    hashes = np.empty(ends.size - 1, np.int64)
    for i in range(hashes.size):
        place, end = ends[i], ends[i + 1]
        size = np.uint64(end - place)
        word = _FIVE
        if end - place >= 32:
            a, b, c, d = _ONE + _TWO, _TWO, np.uint64(0), np.uint64(0) - _ONE
            while place + 32 <= end:
                a, b = _round(a, _read(data, place, 8)), _round(b, _read(data, place + 8, 8))
                c, d = _round(c, _read(data, place + 16, 8)), _round(d, _read(data, place + 24, 8))
                place += 32
            word = _turned(a, 1) + _turned(b, 7) + _turned(c, 12) + _turned(d, 18)
            for lane in (a, b, c, d):
                word = (word ^ _round(np.uint64(0), lane)) * _ONE + _FOUR
        word += size
        while place + 8 <= end:
            word ^= _round(np.uint64(0), _read(data, place, 8))
            word = _turned(word, 27) * _ONE + _FOUR
            place += 8
        if place + 4 <= end:
            word ^= _read(data, place, 4) * _ONE
            word = _turned(word, 23) * _TWO + _THREE
            place += 4
        while place < end:
            word = _turned(word ^ (np.uint64(data[place]) * _FIVE), 11) * _ONE
            place += 1
        word = (word ^ (word >> np.uint64(33))) * _TWO
        word = (word ^ (word >> np.uint64(29))) * _THREE
        hashes[i] = np.int64(word ^ (word >> np.uint64(32)))
    return hashes
