"""The walk that trusts nothing: it accepts what was encoded, and says what is wrong otherwise."""

from dataclasses import replace
from itertools import pairwise
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from cases import exhaustive, some
from compressed_rows import LAYOUTS, graphs, rows_from
from reference_compressed import KINDS, bases_of, widths_of, words_of

from glp_rapids.compressed.decode import decode
from glp_rapids.compressed.encode import encode
from glp_rapids.compressed.file import verify
from glp_rapids.compressed.format import packed_tables
from glp_rapids.compressed.format.layout import Codes, Layout, settings
from glp_rapids.device import to_device, to_host
from glp_rapids.graph.rows import CSR

ENTROPY = [Layout("entropy"), Layout("entropy", raw_below=3, segment=8)]


@pytest.mark.parametrize(
    "layout", some([*LAYOUTS, *ENTROPY], LAYOUTS[1], LAYOUTS[7], ENTROPY[1]), ids=str
)
def test_what_was_encoded_is_in_order(layout, device):
    for name, csr in graphs().items():
        arrays = (to_device(array, device) for array in (csr.indptr, csr.indices))
        rows = encode(CSR(*arrays, None), layout)
        verify.check(rows)
        found = list(verify.walk(rows))
        degrees = [to_host(batch.degrees) for batch in found] or [np.zeros(0, int)]
        np.testing.assert_array_equal(np.concatenate(degrees), csr.degree, err_msg=name)
        bits = sum(int(batch.tally[: len(verify.PARTS)].sum()) for batch in found)
        assert bits == rows.stream_bits
        assert sum(int(batch.tally[verify.ENTRIES]) for batch in found) == csr.number_of_edges


def test_batches_and_the_end_of_the_stream(monkeypatch):
    monkeypatch.setattr(verify, "BATCH", 3)
    for csr in graphs().values():
        rows = encode(csr, Layout("cgr", segment=8))
        sizes = [to_host(batch.sizes) for batch in verify.walk(rows)] or [np.zeros(0, int)]
        starts = np.append(rows.offsets, rows.stream_bits)
        apart = np.diff(starts) - np.concatenate(sizes)
        assert ((apart == 0) | ((apart < 8) & (starts[1:] % 8 == 0))).all()


# few entries, so that one bit may make of a list anything
SMALL = [[], [1, 2, 3, 4, 9], [*range(0, 40, 3)], [*range(5, 60)], [0], [63], *[[]] * 58]


@pytest.mark.parametrize(
    "layout",
    [
        Layout("cgr", segment=8, codes=Codes(*["gamma"] * 6)),
        Layout("cgr", 2, 2, 16, Codes(*["delta"] * 6)),
        Layout("cgr", 2, codes=Codes(*["zeta8"] * 6)),
        Layout("packed", 2, 2, 16),
        Layout("packed", 0, 0, 4),
        *ENTROPY,
    ],
    ids=str,
)
def test_one_wrong_bit_is_found_or_makes_lists_that_are_in_order(layout):
    rows = encode(rows_from(SMALL), layout)
    said = set()
    for bit in range(rows.stream_bits):
        words = rows.words.copy()
        words[bit >> 5] ^= np.uint32(1 << (bit & 31))
        wrong = replace(rows, words=words, _derived={})
        try:
            verify.check(wrong)
        except ValueError as error:
            said.add(str(error).partition(": ")[2])
            continue
        assert_in_order(*decode(wrong))
    assert {verify.PROBLEMS[verify.RANGE], verify.PROBLEMS[verify.FILLED]} <= said
    if layout.segment < 64:
        assert verify.PROBLEMS[verify.DIRECTORY] in said


@pytest.mark.parametrize(("more", "said"), [(1, "have 76 "), (-1, "have at least 76 ")])
def test_entries_are_counted(more, said):
    rows = encode(rows_from(SMALL), Layout())
    wrong = replace(rows, number_of_edges=rows.number_of_edges + more)
    with pytest.raises(ValueError, match=said):
        verify.check(wrong)


def test_words_of_nonsense_end_with_an_answer():
    rng = np.random.default_rng(1)
    rows = encode(rows_from(SMALL * 40), Layout("cgr", 2, segment=8))
    packed = encode(rows_from(SMALL * 40), Layout("packed")).tables
    # numbers of up to 59 bits, of which there may be none so large
    widest = words_of({kind: [0, 1, 3, 9, 31, 50, 57, 58] for kind in KINDS})
    forms = [
        (rows.layout, rows.tables),
        (Layout("cgr", codes=Codes(*["zeta8"] * 6)), rows.tables),
        *[(Layout("packed", shortest, segment=8), packed) for shortest in (0, 2)],
        *[(Layout("packed", shortest), np.array(widest, np.uint32)) for shortest in (0, 1, 4)],
    ]
    for layout, tables in forms:
        for fill in (0, 0xFFFFFFFF, None, None, None):
            words = rng.integers(0, 2**32, rows.words.size, dtype=np.uint32)
            words[:-2] = words[:-2] if fill is None else fill
            words[-2:] = 0
            with pytest.raises(ValueError, match=r"the list at |the lists have "):
                verify.check(replace(rows, layout=layout, words=words, tables=tables, _derived={}))


def test_any_tables_end_with_an_answer():
    """Lists that pass where the tables are others can be decoded."""
    rng = np.random.default_rng(2)
    rows = encode(rows_from(SMALL), Layout("packed", 2, segment=8))
    widths = widths_of(rows.tables)
    found = [0, 0]
    for number in range(400):
        other = {kind: list(own) for kind, own in widths.items()}
        for kind in rng.choice(KINDS, 1 + number % 2):
            other[kind][rng.integers(8)] = int(rng.choice([0, 1, 2, 3, 5, 8, 30, 57]))
        if max(bases_of(own)[7] for own in other.values()) >> 58:
            continue
        tables = np.array(words_of(other), np.uint32)
        packed_tables.check(tables)
        wrong = replace(rows, tables=tables, _derived={})
        try:
            verify.check(wrong)
        except ValueError:
            found[0] += 1
        else:
            found[1] += 1
            assert_in_order(*decode(wrong))
    assert min(found) > 20, found


def assert_in_order(indptr, indices):
    for first, last in pairwise(indptr.tolist()):
        row = indices[first:last]
        assert (np.diff(row) > 0).all()
        assert row.size == 0 or (row[0] >= 0 and row[-1] < len(SMALL))


@pytest.mark.parametrize(
    ("scheme", "capability"),
    [("packed", (9, 0)), *exhaustive(("cgr", (7, 5)), ("entropy", (10, 0)))],
)
def test_the_kernel_compiles(monkeypatch, scheme, capability):
    pytest.importorskip("numba_cuda", reason="numba-cuda is not installed")
    pytest.importorskip("cuda.bindings.nvrtc", reason="NVIDIA's compilers are not installed")
    from numba import cuda, typeof
    from numba.cuda import dispatcher

    from glp_rapids.jit.cuda import gpu_target, kernel_of

    current = SimpleNamespace(compute_capability=capability)
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: current)
    words, numbers = np.zeros(1, np.uint32), np.zeros(1, np.int64)
    batch = verify.Block(np.int64(0), np.int64(1))
    tally = np.zeros((1, 1), np.int64)
    work = verify.Walking(
        settings(Layout(scheme), 1), batch, words, words, numbers, tally, numbers, numbers
    )
    kernel = kernel_of(verify.functions(scheme, gpu_target())["walk_block"], "")
    signature = numba.int64, typeof(work)
    code, _ = cuda.compile_ptx(kernel.py_func, signature, device=False, cc=capability)
    assert f".target sm_{capability[0]}{capability[1]}" in code
