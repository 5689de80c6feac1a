"""The scheme "packed": numbers, parts and tables by hand, drawn ones as the twin has them."""

from functools import cache, partial

import numba
import numpy as np
import pytest
import reference_compressed as reference
from compressed_rows import as_string, graphs, on_a_part, rows_from
from hypothesis import given
from hypothesis import strategies as st

from glp_rapids.compressed import choose_codes
from glp_rapids.compressed.decode import decode, decode_rows
from glp_rapids.compressed.encode import encode
from glp_rapids.compressed.file import verify
from glp_rapids.compressed.format import packed, packed_tables
from glp_rapids.compressed.format.layout import CODES, Layout, settings
from glp_rapids.jit.target import cpu_target

MOST_BITS = 58  # of a base
RISING = {kind: list(range(8)) for kind in reference.KINDS}


@cache
def on_numbers():
    """The functions on numbers, callable: alone, and with the class at a place of its own."""
    code = packed.build(cpu_target())
    write, read, size = code.write_number, code.read_number, code.number_size
    write_apart, read_apart, class_at = code.write_apart, code.read_apart, code.class_at

    @numba.njit
    def alone(words, tables, bit, x, kind):
        behind = write(words, tables, bit, x, kind)
        return behind, read(words, tables, bit, kind), size(tables, x, kind)

    @numba.njit
    def apart(words, tables, classes, bit, x, kind):
        behind = write_apart(words, tables, classes, bit, x, kind)
        return behind, read_apart(words, tables, classes, bit, kind)

    @numba.njit
    def entry(tables, kind, name):
        return class_at(tables, kind, name)

    return alone, apart, entry


def array_of(widths_of_kinds):
    words = np.array(reference.words_of(widths_of_kinds), np.uint64)
    return words.astype(np.uint32)  # of bases that are too long, as much as there is room for


def first_beyond(widths):
    """The number behind the last of the last class."""
    return reference.bases_of(widths)[-1]


# Eight classes of any width whose bases are as short as they must be.
any_width = st.integers(0, 9) | st.integers(0, MOST_BITS)
some_widths = st.lists(any_width, min_size=8, max_size=8).filter(
    lambda widths: reference.bases_of(widths)[7] < 1 << MOST_BITS
)


@st.composite
def numbers_of_classes(draw):
    """Widths, and a number at the beginning, at the end or in the middle of one of the classes."""
    widths = draw(some_widths)
    name = draw(st.integers(0, 7))
    last = (1 << widths[name]) - 1
    offset = draw(st.sampled_from([0, 1, last // 2, last]) | st.integers(0, last))
    return widths, reference.bases_of(widths)[name] + min(offset, last)


def test_tables_by_hand():
    widths = RISING | {"gap": [0, 32, 31, 4, 0, 0, 0, 57]}
    tables = array_of(widths)
    assert tables.size == 7 * 8 * 2
    # bases 0, 1, 3, 7, 15, 31, 63, 127
    assert tables[:16].tolist() == [0, 0, 1, 1, 3, 2, 7, 3, 15, 4, 31, 5, 63, 6, 127, 7]
    high, low = (2**32 + 2**31 + 17) // 2**32, 2**31 + 17
    gaps = tables[5 * 16 : 6 * 16].tolist()
    assert gaps[:8] == [0, 0, 1, 32, 1, 1 << 6 | 31, 2**31 + 1, 1 << 6 | 4]
    assert gaps[8:] == [low, high << 6, low + 1, high << 6, low + 2, high << 6, low + 3,
                        high << 6 | 57]  # fmt: skip
    packed_tables.check(tables)
    assert on_numbers()[2](tables, 5, 7) == (2**32 + low + 3, 57)
    assert on_numbers()[2](tables, 6, 7) == (127, 7)


@pytest.mark.parametrize(
    ("x", "word"),
    [
        (0, "000"), (1, "100" "0"), (2, "100" "1"), (3, "010" "00"), (4, "010" "10"),
        (6, "010" "11"), (7, "110" "000"), (13, "110" "011"), (127, "111" "0000000"),
        (254, "111" "1111111"),
    ],
)  # fmt: skip
def test_numbers_by_hand(x, word):
    words, tables = np.zeros(4, np.uint32), array_of(RISING)
    size, read, measured = on_numbers()[0](words, tables, 0, x, 3)
    assert as_string(words, size) == word == "".join(reference.classified(x, range(8)))
    assert read == (x, size)
    assert measured == size


@given(numbers_of_classes(), st.integers(0, 6), st.integers(0, 70), st.integers(0, 70))
def test_numbers_of_all_sizes(drawn, kind, bit, between):
    widths, x = drawn
    tables = array_of(RISING | {reference.KINDS[kind]: widths})
    name, own = reference.classified(x, widths)
    words = np.zeros(16, np.uint32)
    behind, read, measured = on_numbers()[0](words, tables, bit, x, kind)
    assert as_string(words, behind) == "0" * bit + name + own
    assert read == (x, behind)
    assert measured == behind - bit
    words[:] = 0
    classes, bit = bit, bit + 3 + between
    behind, read = on_numbers()[1](words, tables, classes, bit, x, kind)
    assert as_string(words, behind) == "0" * classes + name + "0" * between + own
    assert read == (x, behind)


# Of vertex 10: intervals 3 to 4 and 12 to 14, residuals 7 and 9.
BY_HAND = [
    "100" "1",  # 2 intervals
    "100" "1",  # 2 residuals
    "110",  # 13: 3 is 10 - 7
    "000",  # 0: as long as the shortest
    "010",  # 6: from 4 to 12, less 2; how long that one is follows
    "010",  # 5: 7 is 10 - 3
    "100",  # 1: from 7 to 9, less 1
    "011", "", "11", "01", "0",
]  # fmt: skip


def test_a_part_by_hand():
    ids, tables = np.array([3, 4, 7, 9, 12, 13, 14]), array_of(RISING)
    layout, words, out = Layout("packed", 2), np.zeros(4, np.uint32), np.zeros(7, np.int64)
    ends = on_a_part("packed")(ids, 10, settings(layout, 100), words, tables, out)
    word = "".join(BY_HAND)
    assert as_string(words, ends[0]) == "0" * 5 + word
    assert ends == (5 + len(word),) * 4
    np.testing.assert_array_equal(out, ids)
    assert reference.part(10, ids.tolist(), reference.form_of(layout, CODES, tables)) == word


def test_a_part_of_one_interval_says_how_many_residuals_there_are():
    ids, tables = np.arange(20, 25), array_of(RISING)
    words, out = np.zeros(4, np.uint32), np.zeros(5, np.int64)
    ends = on_a_part("packed")(ids, 20, settings(Layout("packed"), 100), words, tables, out)
    # one, of no residuals, from 20 on; no bits
    assert as_string(words, ends[0]) == "0" * 5 + "1000" + "000" + "000"
    np.testing.assert_array_equal(out, ids)


@st.composite
def far_ids(draw):
    """Ids of up to 56 bits, some side by side, and what comes with them."""
    n = 1 << draw(st.integers(1, 56))
    heads = draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(1, 9)), min_size=1))
    heads += draw(st.sampled_from([[], [(0, 1)], [(n - 1, 1)], [(0, 2), (n - 1, 1)]]))
    ids = sorted({i for first, length in heads for i in range(first, min(first + length, n))})
    v = draw(st.integers(0, n - 1) | st.sampled_from([0, n - 1, ids[0], ids[-1]]))
    # the last class is for all that the others leave
    fit = some_widths.map(lambda widths: [*widths[:7], MOST_BITS])
    widths = {kind: draw(fit) for kind in reference.KINDS}
    return n, ids, v, widths, draw(st.sampled_from([0, 1, 2, 3, 5]))


@given(far_ids())
def test_parts_of_ids_far_apart(drawn):
    n, ids, v, widths, min_interval = drawn
    layout, tables = Layout("packed", min_interval, segment=1 << 20), array_of(widths)
    words, out = np.zeros(5 * len(ids) + 8, np.uint32), np.zeros(len(ids), np.int64)
    ends = on_a_part("packed")(np.array(ids), v, settings(layout, n), words, tables, out)
    assert out.tolist() == ids
    word = "0" * 5 + reference.part(v, ids, reference.form_of(layout, CODES, tables))
    assert as_string(words, len(word)) == word
    assert ends == (len(word),) * 4


def tables_of(numbers, n, layout=None):
    """Give the tables for numbers, by kind."""
    counts = {}
    for kind, some in numbers.items():
        lengths = np.array([(x + 1).bit_length() - 1 for x in some], np.int64)
        counts[kind] = np.bincount(lengths, minlength=63)
    return packed_tables.tables_of(counts, layout or Layout("packed"), n)


def bits_of(numbers, tables):
    widths = reference.widths_of(tables)
    return sum(
        len("".join(reference.classified(x, widths[kind])))
        for kind, some in numbers.items()
        for x in some
    )


def most_of(n, segment):
    """The largest number of each kind that lists of n vertices can have."""
    most = min(segment, n)
    return {
        "degree": n, "count": most, "start": max(n - 3, 0), "length": most,
        "first": max(2 * n - 2, 0), "gap": max(n - 2, 0), "rest": most,
    }  # fmt: skip


@st.composite
def numbers_of_kinds(draw):
    """Numbers of each kind as a graph of some size may have them, many of the small ones."""
    n = draw(st.integers(0, 200) | st.integers(0, 56).map(lambda power: 1 << power))
    segment = 1 << draw(st.integers(0, 30))
    numbers = {}
    for kind, most in most_of(n, segment).items():
        if draw(st.booleans()):
            some = st.integers(0, most) | st.integers(0, most.bit_length()).map(
                lambda power, most=most: most >> power
            )
            numbers[kind] = draw(st.lists(some, max_size=50)) * draw(st.sampled_from([1, 1, 1000]))
    return n, segment, numbers


@given(numbers_of_kinds())
def test_widths_suit_the_numbers(drawn):
    n, segment, numbers = drawn
    layout = Layout("packed", segment=segment)
    tables = tables_of(numbers, n, layout)
    assert tables.dtype == np.uint32
    packed_tables.check(tables)
    widths = reference.widths_of(tables)
    assert reference.words_of(widths) == tables.tolist()
    for kind, most in most_of(n, segment).items():
        assert most < first_beyond(widths[kind]), kind
    # all of one width would take as much as the largest does
    single = sum((3 + max(some).bit_length()) * len(some) for some in numbers.values() if some)
    assert bits_of(numbers, tables) <= single
    shuffled = {kind: numbers[kind][::-1] for kind in reversed(numbers)}
    assert tables_of(shuffled, n, layout).tobytes() == tables.tobytes()


def test_widths_suit_better_than_any_classes_between_powers_of_two():
    rng = np.random.default_rng(0)
    for seed in range(12):
        spread = (1 << (rng.random(400) * (2 + seed)).astype(int)) - 1
        gaps = (spread + rng.integers(0, 3, 400)).tolist()
        found = bits_of({"gap": gaps}, tables_of({"gap": gaps}, 1 << 24))
        for _ in range(20):
            ends = np.sort(rng.choice(np.arange(1, 25), 7, replace=False)).tolist()
            other = 0
            for first, last in zip([0, *ends], [*ends, 25], strict=True):
                own = [x for x in gaps if 2**first <= x + 1 < 2**last]
                other += (3 + (2**last - 2**first - 1).bit_length()) * len(own)
            assert found <= other


def test_a_graph_is_encoded_in_the_tables_of_its_numbers():
    layouts = [Layout("packed"), Layout("packed", 2, 3, 8), Layout("packed", 0, segment=16)]
    for name in ("power law", "hub at the end", "all neighbours", "no edges", "no vertex"):
        csr, n = graphs()[name], graphs()[name].number_of_vertices
        neighbours = [row.tolist() for row in np.split(csr.indices, csr.indptr[1:-1])][:n]
        for layout in layouts:
            rows = encode(csr, layout)
            form = reference.form_of(layout, CODES, rows.tables)
            numbers = reference.counted(neighbours, form)
            expected = tables_of(numbers, n, layout)
            np.testing.assert_array_equal(rows.tables, expected, err_msg=f"{name} {layout}")


@pytest.mark.parametrize("name", ["power law", "hub at the end", "all neighbours"])
def test_rows_are_read_by_whatever_tables_they_were_written(name, monkeypatch):
    csr = graphs()[name]
    n = csr.number_of_vertices
    neighbours = [row.tolist() for row in np.split(csr.indices, csr.indptr[1:-1])]
    for widths in ([0, 3, 14, 33, 45, 50, 56, 57], [40, 0, 0, 0, 0, 0, 0, 56], [0] * 7 + [30]):
        tables = array_of({kind: widths for kind in reference.KINDS})
        monkeypatch.setattr(packed_tables, "tables_of", lambda *_, tables=tables: tables)
        for layout in (Layout("packed"), Layout("packed", 2, 3, 8), Layout("packed", 0)):
            rows = encode(csr, layout)
            assert rows.tables is tables
            form = reference.form_of(layout, CODES, tables)
            stream, block_bytes = reference.encode(neighbours, form)
            assert rows.words.tobytes() == stream
            assert rows.block_bytes.tolist() == block_bytes
            verify.check(rows)
            np.testing.assert_array_equal(decode(rows)[1], csr.indices)
            out = np.empty_like(csr.indices)
            decode_rows(rows, None, out, csr.indptr, in_order=False)
            row = np.repeat(np.arange(n), csr.degree)
            np.testing.assert_array_equal(out[np.lexsort((out, row))], csr.indices)


def test_numbers_that_a_sample_missed_have_a_class(monkeypatch):
    neighbours = [[v + 1] for v in range(319)] + [[0]]
    neighbours[100] = [3, *range(20, 60), 99, 318]
    csr, layout = rows_from(neighbours), Layout("packed")
    few = partial(choose_codes.histograms, sample=30)
    assert not few(csr, layout)["gap"].any()
    monkeypatch.setattr("glp_rapids.compressed.encode.histograms", few)
    rows = encode(csr, layout)
    monkeypatch.undo()
    assert rows.tables.tobytes() != encode(csr, layout).tables.tobytes()
    np.testing.assert_array_equal(decode(rows)[1], csr.indices)
    verify.check(rows)


def changed(place, value):
    tables = array_of(RISING)
    tables[place] = value
    return tables


@pytest.mark.parametrize(
    "tables",
    [
        np.zeros(0, np.uint32), np.zeros(1, np.uint32), array_of(RISING)[:-2],
        np.append(array_of(RISING), np.uint32(0)),
        np.zeros(112, np.uint32),  # one number in each class, and it is the same
        changed(0, 1), changed(2, 2), changed(2, 0), changed(3, 2), changed(3, 1 << 6 | 1),
        changed(-2, 126), changed(-1, 1 << 6 | 7), changed(1, 1 << 31), changed(17, 1 << 6),
        array_of(RISING | {"gap": [58, 0, 0, 0, 0, 0, 0, 0]}),
        array_of(RISING | {"rest": [57, 57, 0, 0, 0, 0, 0, 0]}),
        array_of(RISING | {"degree": [0, 0, 0, 0, 0, 0, 58, 0]}),
    ],
)  # fmt: skip
def test_tables_that_are_none_are_refused(tables):
    said = "words are not those of 7 kinds|do not follow one another|has more than 58 bits"
    with pytest.raises(ValueError, match=said):
        packed_tables.check(tables)


def test_a_base_has_up_to_58_bits():
    packed_tables.check(array_of(RISING))
    packed_tables.check(array_of(RISING | {"first": [57, 56, 55, 54, 53, 52, 51, 0]}))
    packed_tables.check(array_of(RISING | {"first": [0, 0, 0, 0, 0, 0, 0, MOST_BITS]}))
