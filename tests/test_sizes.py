"""Sizes of memory in words, arrays that are planned, and which arrays take no memory."""

import math
import mmap

import numpy as np
import pytest

from glp_rapids.common.sizes import Planned, as_bytes, bytes_in_words, planned_bytes
from glp_rapids.device import is_mapped, memory_taken, memory_total


@pytest.mark.parametrize(
    ("value", "size"),
    [
        (1e9, 10**9),
        (None, None), (1, 1), (np.int64(7), 7), ("1", 1), ("512B", 512), ("1KB", 1000),
        ("40GB", 40 * 10**9), ("40 GiB", 40 << 30), ("512mb", 512 * 10**6), ("1.5TB", 15 * 10**11),
        (" 2 kib ", 2048), ("0.5KiB", 512), ("3TiB", 3 << 40),
    ],
)  # fmt: skip
def test_sizes(value, size):
    assert as_bytes("memory_limit", value) == size


@pytest.mark.parametrize(
    ("value", "error", "words"),
    [
        (0, ValueError, "memory_limit must be at least 1 byte, not 0"),
        (-5, ValueError, "memory_limit must be at least 1 byte, not -5"),
        ("0GB", ValueError, "memory_limit must be at least 1 byte, not '0GB'"),
        ("0.1B", ValueError, "at least 1 byte"),
        ("-1GB", ValueError, "such as '40GB'.*not '-1GB'"),
        ("40XB", ValueError, "such as '40GB'.*not '40XB'"),
        ("40G", ValueError, "not '40G'"),
        ("nan", ValueError, "not 'nan'"),
        ("GB", ValueError, "not 'GB'"),
        ("", ValueError, "not ''"),
        ("1e9", ValueError, "not '1e9'"),
        ("1 2GB", ValueError, "not '1 2GB'"),
        ("9" * 100 + "GB", ValueError, "not '999"),
        (True, TypeError, "not True"),
        (1.5, TypeError, "not 1.5"),
        (math.nan, TypeError, "not nan"),
        ([1], TypeError, r"not \[1\]"),
        (b"1GB", TypeError, "not b'1GB'"),
    ],
)
def test_what_is_no_size(value, error, words):
    with pytest.raises(error, match=words):
        as_bytes("memory_limit", value)


def test_sizes_in_words():
    assert [bytes_in_words(size) for size in (1, 1023, 2048, 3 << 20, 5 << 30)] == [
        "1 bytes", "1,023 bytes", "2.0 KiB", "3.0 MiB", "5.0 GiB",
    ]  # fmt: skip


@pytest.mark.parametrize("first", [None, 0, -1])
def test_planned_arrays_are_made_as_planned(first):
    planned = Planned((3, 5), np.int32, first), Planned(7, np.float64, first)
    made = [one.made() for one in planned]
    assert [array.nbytes for array in made] == [one.nbytes for one in planned] == [60, 56]
    assert planned_bytes(planned) == 116
    assert first is None or all((array == first).all() for array in made)


def test_arrays_in_mapped_files(tmp_path):
    path = tmp_path / "numbers.npy"
    np.save(path, np.arange(1000))
    mapped = np.load(path, mmap_mode="r")
    with path.open("rb") as file:
        pages = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    through = np.frombuffer(pages, np.uint8)[128:].view(np.int64)
    for array in (mapped, mapped[5:], np.asarray(mapped), through, memoryview(mapped)):
        assert is_mapped(array)
    for array in (np.arange(3), np.arange(9)[2:], mapped + 1, mapped.copy(), np.int64(3), None):
        assert not is_mapped(array)
    assert memory_taken(mapped, np.zeros(5), None, through[3:]) == 40


def test_the_host_has_memory():
    assert memory_total("cpu") > 1 << 28
