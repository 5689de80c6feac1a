"""Compressed rows, bit for bit: codes by hand, all else as the twin in reference_compressed.py."""

from functools import cache

import numba
import numpy as np
import pytest
import reference_compressed as reference
from compressed_rows import LAYOUTS, as_string, graphs, on_a_part, rows_from
from hypothesis import given
from hypothesis import strategies as st

from glp_rapids.compressed import encode as encoding
from glp_rapids.compressed.decode import decode, decode_rows
from glp_rapids.compressed.encode import encode
from glp_rapids.compressed.format import bits
from glp_rapids.compressed.format.layout import CODES, Codes, CompressedRows, Layout, settings
from glp_rapids.graph.rows import CSR
from glp_rapids.jit import parallel_for
from glp_rapids.jit.target import cpu_target

NAMES = "delta", "gamma", *[f"zeta{k}" for k in range(2, 9)]


def lists_of(csr):
    return [
        csr.indices[first:last].tolist()
        for first, last in zip(csr.indptr[:-1], csr.indptr[1:], strict=True)
    ]


def check(csr, layout):
    rows = encode(csr, layout)
    form = reference.form_of(layout, CODES, rows.tables)
    stream, block_bytes = reference.encode(lists_of(csr), form)
    assert rows.words.tobytes() == stream
    assert rows.block_bytes.tolist() == block_bytes
    indptr, indices = decode(rows)
    np.testing.assert_array_equal(indptr, csr.indptr)
    np.testing.assert_array_equal(indices, csr.indices)
    assert indices.dtype == csr.indices.dtype
    assert rows.degrees.tolist() == csr.degree.tolist()
    return rows


@cache
def compiled():
    """The functions on bits, callable: with their arguments as the kernels give them."""
    code = bits.build(cpu_target())
    write, read, size, far = code.write_code, code.read_code, code.code_size, code.read_far
    write_bits, read_bits, fold, unfold = code.write_bits, code.read_bits, code.fold, code.unfold

    @numba.njit
    def one(words, bit, x, code):
        behind = write(words, bit, x, code)
        return behind, read(words, bit, code), far(words, bit, code), size(x, code)

    @numba.njit
    def plain(words, bit, value, width):
        return write_bits(words, bit, value, width), read_bits(words, bit, width)

    @numba.njit
    def folded(distance):
        return fold(distance), unfold(fold(distance))

    return one, plain, folded


@pytest.mark.parametrize(
    ("x", "code", "word"),
    [
        (0, "gamma", "1"), (1, "gamma", "010"), (2, "gamma", "011"), (4, "gamma", "00110"),
        (0, "zeta2", "10"), (1, "zeta2", "110"), (2, "zeta2", "111"), (3, "zeta2", "01000"),
        (7, "zeta2", "010010"), (14, "zeta2", "011111"), (15, "zeta2", "00100000"),
        (0, "zeta3", "100"), (1, "zeta3", "1100"), (2, "zeta3", "1101"), (6, "zeta3", "1111"),
        (7, "zeta3", "0100000"), (62, "zeta3", "01111111"), (0, "zeta8", "10000000"),
        (0, "delta", "1"), (1, "delta", "0100"), (4, "delta", "01110"), (7, "delta", "00100000"),
    ],
)  # fmt: skip
def test_code_words(x, code, word):
    words = np.zeros(8, np.uint32)
    size, read, far, measured = compiled()[0](words, 0, x, CODES[code])
    assert as_string(words, size) == word == reference.coded(x, CODES[code])
    assert read == far == (x, size)
    assert measured == size


# Of any size that the codes have words for, whatever ids there may be.
numbers = st.integers(0, 70) | st.integers(0, 63).flatmap(
    lambda power: st.integers(max(0, 2**power - 3), min(2**63 - 2, 2**power + 3))
)


@given(numbers, st.sampled_from(NAMES), st.integers(0, 70))
def test_codes_of_all_sizes(x, name, bit):
    words = np.zeros(16, np.uint32)
    behind, read, far, measured = compiled()[0](words, bit, x, CODES[name])
    assert as_string(words, behind) == "0" * bit + reference.coded(x, CODES[name])
    assert read == far == (x, behind)
    assert measured == behind - bit


@given(st.integers(0, 64), st.integers(0, 2**64 - 1), st.integers(0, 70))
def test_plain_numbers(width, value, bit):
    words = np.zeros(8, np.uint32)
    value &= (1 << width) - 1
    assert compiled()[1](words, bit, np.uint64(value), width) == (bit + width, value)
    assert as_string(words, bit + width) == "0" * bit + reference.fixed(value, width)


@given(st.integers(-(2**62), 2**62 - 1))
def test_folding(distance):
    assert compiled()[2](distance) == (reference.fold(distance), distance)


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_awkward_graphs_as_the_twin(layout):
    for csr in graphs().values():
        if csr.number_of_vertices < 1000 or layout in (LAYOUTS[0], LAYOUTS[6]):
            check(csr, layout)


def test_codes_mean_nothing_to_packed():
    csr = graphs()["power law"]
    rows = [encode(csr, Layout("packed", codes=Codes(*[name] * 6))) for name in ("delta", "zeta5")]
    for name in ("words", "block_bytes", "tables"):
        np.testing.assert_array_equal(*(getattr(one, name) for one in rows))


@st.composite
def some_rows(draw):
    n = draw(st.integers(1, 80))
    entries = st.lists(st.integers(0, n - 1), max_size=60)
    runs = st.tuples(st.integers(0, n - 1), st.integers(0, n)).map(
        lambda run: list(range(run[0], min(n, sum(run))))
    )
    row = st.tuples(entries, runs, runs).map(lambda some: sorted({*some[0], *some[1], *some[2]}))
    return [draw(row) if draw(st.booleans()) else [] for _ in range(n)]


@st.composite
def layouts(draw):
    return Layout(
        draw(st.sampled_from(["cgr", "packed"])),
        draw(st.sampled_from([0, 1, 2, 4, 7])),
        draw(st.sampled_from([0, 3, 8, 32])),
        draw(st.sampled_from([1, 8, 32, 128])),
        Codes(*[draw(st.sampled_from(NAMES)) for _ in Codes._fields]),
    )


@given(some_rows(), layouts())
def test_any_rows_as_the_twin(neighbours, layout):
    check(rows_from(neighbours), layout)


@pytest.mark.parametrize("in_order", [True, False])
@pytest.mark.parametrize("scheme", ["cgr", "packed", "entropy"])
def test_some_rows_to_given_places(scheme, in_order):
    for name in ("hub", "all neighbours", "hub at the end"):
        csr = graphs()[name]
        vertices = np.array([5, 0, 0, csr.number_of_vertices - 1, 31, 32], np.int32)
        room = int(csr.degree.max()) + 7
        starts = room * np.array([4, 0, 2, 3, 5, 1])
        for layout in (Layout(scheme, segment=32), Layout(scheme, 2, raw_below=2, segment=8)):
            rows = encode(csr, layout)
            out = np.full(6 * room, -1, np.int32)
            decode_rows(rows, vertices, out, starts, in_order=in_order)
            found = np.zeros(out.size, bool)
            for v, start in zip(vertices, starts, strict=True):
                row = csr.indices[csr.indptr[v] : csr.indptr[v + 1]]
                own = out[start : start + row.size]
                np.testing.assert_array_equal(own if in_order else np.sort(own), row)
                found[start : start + row.size] = True
            assert (out[~found] == -1).all()
            before = out.copy()
            decode_rows(rows, vertices[:0], out, starts[:0], in_order=in_order)
            np.testing.assert_array_equal(out, before)


# The widest has room for what two ids of 56 bits may be apart.
WIDTHS = {kind: [0, 2, 5, 8, 16, 31, 40, 57] for kind in reference.KINDS}


@pytest.mark.parametrize("scheme", ["cgr", "packed"])
def test_ids_beyond_32_bits(scheme):
    rng = np.random.default_rng(0)
    tables = [0] if scheme == "cgr" else reference.words_of(WIDTHS)
    for number, bits_of_ids in enumerate((32, 33, 40, 50, 55, 56)):
        n = 1 << bits_of_ids
        some = rng.integers(0, n - 8, 40)
        ids = np.unique(np.r_[some, some[:5, None].repeat(6, 1).ravel() + np.tile(range(6), 5),
                              0, n - 1])  # fmt: skip
        codes = Codes(*[NAMES[(number + i) % len(NAMES)] for i in range(6)])
        layout = Layout(scheme, min_interval=number, segment=128, codes=codes)
        v = [0, n - 1, int(some[0])][number % 3]
        words, out = np.zeros(ids.size * 5, np.uint32), np.empty_like(ids)
        ends = on_a_part(scheme)(
            ids, v, settings(layout, n), words, np.array(tables, np.uint32), out
        )
        np.testing.assert_array_equal(out, ids)
        form = reference.form_of(layout, CODES, tables)
        word = "0" * 5 + reference.part(v, ids.tolist(), form)
        assert ends == (len(word),) * 4
        assert as_string(words, len(word)) == word


def test_more_vertices_than_fold_into_57_bits_are_refused():
    assert settings(Layout(), 2**56).id_bits == 56
    with pytest.raises(ValueError, match=r"at most 2\*\*56 vertices can be compressed, not "):
        settings(Layout(), 2**56 + 1)


@pytest.mark.parametrize(
    ("keywords", "said"),
    [
        ({"scheme": "zip"}, "scheme must be one of cgr, packed, entropy, not 'zip'"),
        ({"segment": 48}, "segment must be a power of two, not 48"),
        ({"segment": 0}, "segment must be from 1 to"),
        ({"min_interval": -1}, "min_interval must be from 0 to"),
        ({"raw_below": 2.5}, "raw_below must be an integer, not 2.5"),
        ({"codes": ("gamma",)}, "codes must be 6, not 1"),
        ({"codes": Codes(gap="zeta9")}, "the code of gap must be one of delta, gamma, .*'zeta9'"),
    ],
)
def test_a_wrong_layout_is_refused(keywords, said):
    with pytest.raises(ValueError, match=said):
        Layout(**keywords)


@pytest.mark.parametrize("row", [[3, 1], [2, 2], [0, 100], [-1, 2], [*range(30), 40, 35]])
@pytest.mark.parametrize("scheme", ["cgr", "packed"])
def test_rows_that_do_not_ascend_are_refused(row, scheme):
    csr = rows_from([[1], row, *[[] for _ in range(98)]])
    with pytest.raises(ValueError, match="row 1 does not ascend"):
        encode(csr, Layout(scheme, segment=8))


def test_what_it_takes():
    csr = graphs()["hub"]
    rows = encode(csr, Layout())
    assert isinstance(rows, CompressedRows)
    assert rows.device == "cpu"
    assert rows.stream_bits == 8 * rows.block_bytes.sum()
    assert rows.nbytes == rows.words.nbytes + rows.block_bytes.nbytes + 4
    assert rows.nbytes < csr.indices.nbytes / 2
    assert rows.words.size == -(-rows.stream_bits // 32) + 2


def test_items_that_threads_do_at_a_time_write_into_different_words(monkeypatch):
    """A word is read, changed and written back: what two do at the same time loses bits."""
    degrees = np.r_[3000, np.arange(2999) % 3]
    indices = np.concatenate([np.arange(degree) for degree in degrees]).astype(np.int32)
    indptr = np.concatenate([[0], np.cumsum(degrees)])
    each, passes = parallel_for.each, []

    def one_by_one(functions, scheme, name, items, work, device):
        if not name.startswith("write"):
            each(functions, scheme, name, items, work, device)
            return
        function = functions(scheme, cpu_target())[name]
        one = numba.njit(lambda item, work: function(item, work))
        writers = {}
        for item in range(items):
            before = work.words.copy()
            one(item, work)
            for word in np.flatnonzero(work.words != before).tolist():
                writers.setdefault(word, []).append(item)
        passes.append(max(them[-1] - them[0] for them in writers.values()))

    monkeypatch.setattr(encoding, "each", one_by_one)
    rows = encode(CSR(indptr, indices, None), Layout("packed", segment=16))
    assert len(passes) == 3
    assert max(passes) < parallel_for.CHUNK
    monkeypatch.undo()
    np.testing.assert_array_equal(decode(rows)[1], indices)
