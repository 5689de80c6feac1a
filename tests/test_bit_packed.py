"""Lists in as few bits an entry as the largest vertex needs: what is packed is what is read."""

import cuda_offline
import numpy as np
import pytest
from cases import exhaustive
from hypothesis import given
from hypothesis import strategies as st
from simulator import simulated
from streamed_model import unpacked

pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")

from glp_rapids.common.sizes import bits_of_vertex
from glp_rapids.outofcore import bit_packed
from glp_rapids.outofcore.bit_packed import LINE
from glp_rapids.propagation.kernels.gpu.entries import PackedEntries, entry_at


def rows_of(degrees, bits, dtype, seed):
    """Rows in an order of their own: whose, offsets, where they begin then, entries, and all."""
    rng, degrees = np.random.default_rng(seed), np.asarray(degrees, np.int64)
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    indices = rng.integers(0, 1 << bits, indptr[-1], dtype=np.uint64).astype(dtype)
    vertices = rng.permutation(degrees.size).astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(degrees[vertices])])
    parts = [indices[indptr[v] : indptr[v + 1]] for v in vertices]
    return vertices, indptr, starts, indices, np.concatenate(parts) if parts else indices


@given(
    st.lists(st.integers(1, 90), max_size=60), st.integers(1, 31), st.sampled_from([1, 2, 3, 7]),
    st.integers(0, 9),
)  # fmt: skip
def test_what_is_packed_is_what_is_read(degrees, bits, threads, seed):
    for dtype, width in ((np.int32, bits), (np.int64, 2 * bits)):
        *given_rows, expected = rows_of(degrees, width, dtype, seed)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(bit_packed, "threads_available", lambda: threads)
            found = bit_packed.packed_rows(*given_rows, width, "cpu")
        assert found.bits_an_entry == width
        assert found.array.dtype == f"u{np.dtype(dtype).itemsize}"
        words = bit_packed.words_of(expected.size, width, found.array.dtype)
        assert found.array.size == words + 1
        entries = PackedEntries(found.array, width)
        assert unpacked(entries, 0, expected.size).tolist() == expected.tolist()


@pytest.mark.parametrize(("bits", "dtype"), [(7, np.int32), (31, np.int32), (34, np.int64)])
def test_whole_lines_are_copied(bits, dtype):
    *given_rows, expected = rows_of([40] * 9, bits, dtype, 1)
    host = bit_packed.packed_rows(*given_rows, bits, "cpu")
    for first, last, line in ((0, 360, 2), (33, 95, 0), (64, 96, 5), (70, 70 + 1, 1)):
        there = np.zeros(bit_packed.words_of(20 * LINE, bits, host.array.dtype), host.array.dtype)
        shift = line * LINE - first // LINE * LINE
        ((place, words),) = host.copies(shift, first, last)
        there[place : place + words.size] = words
        found = unpacked(PackedEntries(there, bits), first + shift, last + shift)
        assert found.tolist() == expected[first:last].tolist()
        lines = -(-last // LINE) - first // LINE
        assert words.nbytes == lines * LINE * bits // 8


def test_as_many_bits_as_the_largest_vertex_takes():
    numbers = 1, 2, 3, 1 << 24, (1 << 24) + 1, 1 << 31
    assert [bits_of_vertex(number, np.int32) for number in numbers] == [1, 1, 2, 24, 25, 31]
    assert [bits_of_vertex(number, np.int64) for number in (1, 1 << 33, 1 << 34)] == [2, 34, 34]


def test_entries_are_read_in_the_simulator():
    assert simulated("simulate_entries.py") == "0"


@pytest.mark.parametrize("capability", [(9, 0), *exhaustive(((7, 5),), ((8, 6),), ((10, 0),))])
@pytest.mark.parametrize("index_type", [np.int32, np.int64])
def test_reading_compiles(capability, index_type, monkeypatch):
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVIDIA's compilers are not installed")
    from numba import cuda, typeof

    def read(entries, plain, found):
        i = cuda.grid(1)
        found[i] = entry_at(entries, i) + entry_at(plain, i)

    plain = np.zeros(1, index_type)
    entries = PackedEntries(plain.view(bit_packed.word_of(index_type)), np.int64(3))
    signature = tuple(map(typeof, (entries, plain, plain)))
    with cuda_offline.compiling(monkeypatch, capability):
        code, _ = cuda.compile_ptx(read, signature, device=False, cc=capability)
    assert code.count("ld.global") == 3  # two words and a plain entry
