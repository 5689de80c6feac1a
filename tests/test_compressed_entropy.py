"""The scheme "entropy": codes, tables, lists, and how small real graphs get."""

import heapq
from types import SimpleNamespace

import numba
import numpy as np
import pytest
from graphs import GRAPHS, edge_frames
from hypothesis import given
from hypothesis import strategies as st

from glp_rapids import as_graph
from glp_rapids.compressed.decode import decode
from glp_rapids.compressed.encode import cut_lists, encode
from glp_rapids.compressed.format import code_tables, entropy, huffman
from glp_rapids.compressed.format.layout import Layout, settings
from glp_rapids.device import to_host
from glp_rapids.graph.rows import CSR
from glp_rapids.jit.target import cpu_target


def callable_from_python(function):
    """Wrap a function that only compiled ones call."""

    @numba.njit
    def call(*arguments):
        return function(*arguments)

    return call


FUNCTIONS = SimpleNamespace(
    **{
        name: callable_from_python(function)
        for name, function in vars(entropy.build(cpu_target())).items()
    }
)
SMALL = Layout("entropy", segment=16)

# Entries of the symmetrised graph, and the bits that each may take in parts of 512.
REAL = {"cnr-2000": (5_477_938, 2.9), "uk-2007-100k": (5_559_150, 2.2)}


def huffman_total(counts):
    """The bits of all symbols in a Huffman code without a limit."""
    heap, total = sorted(int(count) for count in counts if count), 0
    while len(heap) > 1:
        two = heapq.heappop(heap) + heapq.heappop(heap)
        total += two
        heapq.heappush(heap, two)
    return total


def rows_of(lists_of_ids, dtype=np.int32):
    indptr = np.cumsum([0, *map(len, lists_of_ids)]).astype(np.int64)
    return CSR(indptr, np.array([i for ids in lists_of_ids for i in ids], dtype), None)


def symbols_of(csr, layout=SMALL):
    """Count the symbols by context: {(field, context in it, number, flag): count}."""
    scalars = settings(layout, csr.number_of_vertices)
    counts = code_tables.count(csr, scalars, *cut_lists(csr.degree, scalars))
    found = {}
    first = 0
    for field, contexts in entropy.FIELDS.items():
        for context, symbol in np.argwhere(counts[first : first + contexts]).tolist():
            key = field, context, symbol >> 1, symbol & 1
            found[key] = int(counts[first + context, symbol])
        first += contexts
    return found


def assert_round_trip(csr, layout=SMALL):
    rows = encode(csr, layout)
    indptr, indices = decode(rows)
    np.testing.assert_array_equal(to_host(indptr), to_host(csr.indptr))
    np.testing.assert_array_equal(to_host(indices), to_host(csr.indices))
    assert indices.dtype == csr.indices.dtype
    return rows


def test_a_code_done_by_hand():
    # d and b make 2, with the other b 4; a has as many alone: 0 10 110 111
    lengths = huffman.code_lengths(np.array([5, 1, 0, 2, 1]), 10)
    assert lengths.tolist() == [1, 3, 0, 2, 3]
    # the first bit is the lowest
    assert huffman.canonical_codes(lengths).tolist() == [0b0, 0b011, 0, 0b01, 0b111]
    symbols = huffman.symbols_by_bits(lengths, np.array([5, 1, 0, 2, 1]))
    assert symbols.tolist() == [0, 3, 0, 1, 0, 3, 0, 4]


def test_a_symbol_that_is_alone_takes_no_bits():
    counts = np.array([0, 0, 7])
    lengths = huffman.best_lengths(counts)
    assert lengths.tolist() == [0, 0, 0]
    assert huffman.symbols_by_bits(lengths, counts).tolist() == [2]


@given(st.lists(st.integers(0, 1000) | st.just(0), min_size=2, max_size=80), st.integers(7, 12))
def test_codes_are_complete_and_as_short_as_can_be(counts, longest):
    counts = np.array(counts)
    used = counts > 0
    lengths = huffman.code_lengths(counts, longest)
    if used.sum() < 2:
        assert not lengths.any()
        return
    assert lengths.max() <= longest
    assert (lengths[used] > 0).all()
    assert not lengths[~used].any()
    assert (1 << (longest - lengths[used])).sum() == 1 << longest  # Kraft
    unlimited = huffman.code_lengths(counts, 40)
    assert unlimited @ counts == huffman_total(counts)
    assert unlimited @ counts <= lengths @ counts
    if unlimited.max() <= longest:
        assert unlimited @ counts == lengths @ counts
    assert (np.diff(lengths[used][np.argsort(counts[used], kind="stable")]) <= 0).all()


def test_a_limit_binds():
    fibonacci = [1, 1]
    while len(fibonacci) < 20:
        fibonacci.append(sum(fibonacci[-2:]))
    lengths = huffman.code_lengths(np.array(fibonacci), 6)
    assert lengths.max() == 6
    assert (1 << (6 - lengths)).sum() == 64
    with pytest.raises(ValueError, match="20 symbols have no code of at most 4 bits"):
        huffman.code_lengths(np.array(fibonacci), 4)


def test_contexts_share_a_code_where_it_pays():
    alike, other = np.array([900, 90, 9, 1]), np.array([1, 9, 90, 900])
    counts = np.stack([40 * alike, other * 0, 50 * alike, 60 * other, 1 + other * 0])
    group_of = huffman.share(counts, 8)
    assert group_of[0] == group_of[2] != group_of[3]
    assert group_of[4] in (group_of[0], group_of[3])  # too few for a table of their own
    assert not huffman.share(counts, 1).any()
    assert not huffman.share(counts * 0, 8).any()


def test_the_symbols_of_a_list_by_hand():
    # Below 10: 9; 7; 4 and 3, with one id left out before the gaps are counted. From 10 on: 10
    # and 11; 15. Each context says: bits of the gap before + 1, bits of what is left - 1, side.
    expected = {
        ("degree", 0, 0, 0): 15,
        ("degree", 0, 7, 0): 1,
        ("lower", 7, 2 * (7 - 4) + 1, 0): 1,  # 4 of 7 are below
        ("gap", (0 * 8 + 2) * 2 + 0, 0, 0): 1,  # 9, of 4
        ("gap", (1 * 8 + 1) * 2 + 0, 0, 0): 1,  # 7, of 3
        ("gap", (1 * 8 + 1) * 2 + 0, 1, 1): 1,  # 4 and 3: 5 is left out, 6 is so anyway
        ("length", 2 * 8 + 0, 0, 0): 1,
        ("gap", (0 * 8 + 1) * 2 + 1, 0, 1): 1,  # 10 and 11, of 3
        ("length", 1 * 8 + 1, 0, 0): 1,
        ("gap", (1 * 8 + 0) * 2 + 1, 2, 0): 1,  # 15: 13 and 14 are left out
    }
    ids = [3, 4, 7, 9, 10, 11, 15]
    csr = rows_of([[]] * 10 + [ids] + [[]] * 5)
    assert symbols_of(csr) == expected
    assert_round_trip(csr)


def test_tables_know_their_codes():
    random = np.random.default_rng(1)
    counts = (1e6 ** random.random((entropy.CONTEXTS, entropy.SYMBOLS))).astype(np.int64)
    counts[random.random(counts.shape) < 0.7] = 0
    counts[:, -1] = 1
    tables = code_tables.tables_of(counts)
    code_tables.check(tables)
    codes = code_tables.codes_of(tables)
    words = np.zeros(1 << 14, np.uint32)
    bit, numbers = np.int64(0), []
    for _ in range(2000):
        context = np.int64(random.integers(entropy.CONTEXTS))
        number = int(random.choice(np.flatnonzero(counts[context, ::2])))
        if number >= 8:
            extra = (number - 8) // 2 + 2
            number = ((2 | (number & 1)) << extra) | int(random.integers(1 << extra))
        size = FUNCTIONS.number_size(codes, number, context)
        after = FUNCTIONS.write_number(words, codes, bit, number, context)
        assert after - bit == size
        numbers.append((bit, after, number, context))
        bit = after
    assert max(number for _, _, number, _ in numbers) > 1 << 61
    for bit, after, number, context in numbers:
        assert FUNCTIONS.read_number(words, tables, bit, context) == (number, after)


def test_tables_that_are_none_are_refused():
    good = encode(rows_of([[1, 2], [0, 2], [0, 1]]), SMALL).tables
    code_tables.check(good)
    for place, value in ((0, 0), (5, 1 << 31), (9, good[9] | 15)):
        bad = good.copy()
        bad[place] = value
        with pytest.raises(ValueError, match="begins or ends outside"):
            code_tables.check(bad)
    with pytest.raises(ValueError, match="217 contexts"):
        code_tables.check(good[:100])
    bad = good.copy()
    bad[entropy.CONTEXTS :] |= 0x000F_000F
    with pytest.raises(ValueError, match="an entry that no table has"):
        code_tables.check(bad)


@pytest.mark.parametrize("name", GRAPHS)
def test_awkward_graphs_come_back(name, device):
    graph = as_graph(**{**GRAPHS[name](), "multigraph": "merge"}, device=device)
    assert_round_trip(graph.rows("out"))
    assert_round_trip(graph.rows("out"), Layout("entropy", segment=2, raw_below=3))


@given(edge_frames(max_vertices=40, max_edges=120))
def test_graphs_come_back(options):
    graph = as_graph(**{**options, "multigraph": "merge"}, device="cpu")
    assert_round_trip(graph.rows("out"))


def test_lists_of_every_shape_come_back(device):
    random = np.random.default_rng(3)
    n = 3000
    ids = [
        np.arange(n),
        [],
        [0],
        [n - 1],
        np.arange(0, n, 2),
        [*range(100), n - 1],
        *(np.flatnonzero(random.random(n) < share) for share in np.linspace(0, 1, 40)),
    ]
    ids += [[v] for v in range(len(ids), n - 2)] + [np.arange(n - 40, n), [0, n - 2, n - 1]]
    csr = rows_of(ids)
    if device == "gpu":
        import cupy

        csr = CSR(cupy.asarray(csr.indptr), cupy.asarray(csr.indices), None)
    for segment in (16, 512, 4096):
        assert_round_trip(csr, Layout("entropy", segment=segment))


def test_huge_ids_come_back():
    ids = np.array([0, 2**31, 2**40, 2**40 + 1, 2**55, 2**56 - 1], np.int64)
    scalars = settings(SMALL, 1 << 56)
    counts = np.zeros(entropy.CONTEXTS * entropy.SYMBOLS, np.uint64)
    count_part, read_part = FUNCTIONS.count_part, FUNCTIONS.read_part
    for v in (0, 7, 2**40 + 1, 2**56 - 1):
        v = np.int64(v)
        count_part(counts, ids, np.int64(0), np.int64(ids.size), v, scalars)
        own = code_tables.tables_of(counts.astype(np.int64).reshape(-1, entropy.SYMBOLS))
        codes, words = code_tables.codes_of(own), np.zeros(40, np.uint32)
        arguments = ids, np.int64(0), np.int64(ids.size), v, scalars
        size = FUNCTIONS.part_size(codes, *arguments)
        assert FUNCTIONS.write_part(words, codes, np.int64(5), *arguments) == 5 + size
        out = np.zeros_like(ids)
        count = np.int64(ids.size)
        end = read_part(words, own, np.int64(5), v, count, scalars, out, np.int64(0))
        assert end == 5 + size
        assert FUNCTIONS.skip_part(words, own, np.int64(5), count, scalars) == end
        np.testing.assert_array_equal(out, ids)


def test_rows_that_do_not_ascend_are_refused():
    for ids in ([2, 1], [1, 1], [0, 3]):
        with pytest.raises(ValueError, match="row 1 does not ascend"):
            encode(rows_of([[1], ids, []]), SMALL)


def test_any_stream_is_read_without_harm():
    """What is decoded from noise is noise, but it is as much as was asked for, where it belongs."""
    random = np.random.default_rng(4)
    rows = encode(rows_of([np.flatnonzero(random.random(300) < 0.1) for _ in range(300)]), SMALL)
    out = np.full(40, -7, np.int64)
    for seed in range(50):
        words = np.random.default_rng(seed).integers(0, 1 << 32, 400, dtype=np.uint32)
        end = FUNCTIONS.read_part(
            words, rows.tables, np.int64(seed), np.int64(9), np.int64(16), rows.settings, out,
            np.int64(12),
        )  # fmt: skip
        assert seed < end < 400 * 32
        assert (out[:12] == -7).all()
        assert (out[28:] == -7).all()


@pytest.mark.parametrize("name", REAL)
def test_real_graphs_get_as_small_as_promised(name, data, device):
    if not (data / f"{name}.csr.npz").is_file():
        pytest.skip(f"{name} is not among the graphs here")
    from glp_rapids.bench import subjects

    entries, bits = REAL[name]
    csr = subjects.load(name, device).rows("out")
    assert csr.number_of_edges == entries
    rows = assert_round_trip(csr, Layout("entropy", segment=512))
    assert 8 * rows.nbytes <= bits * entries


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["hub", "power law", "directed", "cnr-2000", "uk-2007-100k"])
def test_both_devices_write_the_same(name, request):
    from glp_rapids.bench import subjects

    if name in REAL:
        request.getfixturevalue("data")

    def rows_on(device):
        if name in REAL:
            return subjects.load(name, device).rows("out")
        return as_graph(**GRAPHS[name](), device=device).rows("out")

    for layout in (SMALL, Layout("entropy", segment=512)):
        expected, found = (encode(rows_on(device), layout) for device in ("cpu", "gpu"))
        for array in ("tables", "block_bytes", "words"):
            np.testing.assert_array_equal(
                to_host(getattr(found, array)), getattr(expected, array), err_msg=array
            )
