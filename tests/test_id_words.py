"""What is hashed in the place of a vertex: the same whatever the kind of column, wherever it is."""

from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
import reference

import glp_rapids
from glp_rapids.datasets import social
from glp_rapids.device import to_device, to_host
from glp_rapids.graph.string_hash import hashes_of

# Published test vectors of XXH64, seed 0.
KNOWN = {
    b"": 0xEF46DB3751D8E999,
    b"a": 0xD24EC4F1A98C6E5B,
    b"abc": 0x44BC2CF5AD770999,
    b"The quick brown fox jumps over the lazy dog": 0x0B242D361FDA71BC,
}

IDS = {
    "from 0": np.arange(50),
    "from -7": np.arange(-7, 43),
    "beyond 2**63": np.arange(50, dtype=np.uint64) + np.uint64(2**63),
    "with gaps": np.arange(50) ** 2 - 9,
    "with gaps beyond 2**63": (np.arange(50, dtype=np.uint64) * 3) + np.uint64(2**63),
    "narrow": np.arange(50).astype(np.int16) * 5,
    "strings": [f"vertex {'ä' * (i % 40)}{i}" for i in range(50)],
    "bytes": [bytes([i, 0, i + 1]) for i in range(50)],
    "days": pd.Series(pd.date_range("2026-01-01", periods=50)),
    "days by the second": pd.Series(pd.date_range("2026-01-01", periods=50, unit="s")),
    "days somewhere": pd.Series(pd.date_range("2026-01-01", periods=50, tz="Asia/Tokyo")),
}


def words(graph):
    every = np.arange(graph.number_of_vertices)
    return [int(word) % 2**64 for word in graph.id_words().of(every)]


def test_strings_are_hashed_by_xxh64():
    texts = [*KNOWN, *(b"0123456789" * 9)[:90].split(b"5")]
    texts += [bytes(range(size)) for size in range(100)]
    assert [reference.xxh64(text) for text in KNOWN] == list(KNOWN.values())
    found = [int(word) % 2**64 for word in hashes_of(texts)]
    assert found == [reference.xxh64(text) for text in texts]
    assert hashes_of([]).size == 0


@pytest.mark.parametrize("name", IDS)
def test_a_word_is_that_of_the_id(name):
    ids = pd.Series(IDS[name])
    frame = pd.DataFrame({"src": ids, "dst": np.roll(ids, 1)})
    graph = glp_rapids.as_graph(frame, device="cpu")
    known = graph.external(np.arange(len(ids)))
    if "days" in name:  # in UTC
        known = pd.to_datetime(known, utc=True).dt.tz_localize(None).to_numpy("datetime64[ns]")
    else:
        known = known.tolist()
    assert words(graph) == [reference.id_word(identity) for identity in known]
    compressed = glp_rapids.compress(graph)
    assert words(compressed) == words(graph)


def test_a_word_of_several_columns_knows_their_order():
    frame = pd.DataFrame({"a": [0, 1, 2], "b": [1, 0, 2], "c": [1, 0, 2], "d": [0, 1, 1]})
    graph = glp_rapids.as_graph(frame, source=["a", "b"], destination=["c", "d"], device="cpu")
    known = list(graph.external(np.arange(graph.number_of_vertices)).itertuples(index=False))
    assert (0, 1) in known
    assert (1, 0) in known
    assert words(graph) == [reference.id_word(tuple(identity)) for identity in known]
    assert len(set(words(graph))) == len(known)


def test_dates_of_arrow_are_dates():
    pyarrow = pytest.importorskip("pyarrow")
    days = pd.date_range("2026-01-01", periods=9)
    kinds = [pyarrow.date32(), pyarrow.timestamp("s"), pyarrow.timestamp("us", "Asia/Tokyo")]

    def found(ids):
        edges = pd.DataFrame({"src": ids, "dst": ids.iloc[::-1].to_numpy()})
        edges["dst"] = edges["dst"].astype(ids.dtype)
        return words(glp_rapids.as_graph(edges, device="cpu"))

    expected = found(pd.Series(days))
    for kind in kinds[:2]:
        assert found(pd.Series(days).astype(pd.ArrowDtype(kind))) == expected
    assert len(set(found(pd.Series(days, dtype=pd.ArrowDtype(kinds[2]))))) == 9


DAYS = pd.date_range("1969-12-20", periods=30)
FORMS = {
    "decimals": ([Decimal(i) / 4 - 2 for i in range(30)], "decimal128(6, 3)"),
    "dates": ([day.date() for day in DAYS], "date32()"),
    "moments": (list(DAYS), "timestamp('ns')"),
    "moments of Python": ([day.to_pydatetime() for day in DAYS], "timestamp('us')"),
    "moments somewhere": (list(DAYS.tz_localize("Asia/Tokyo")), "timestamp('s', 'Asia/Tokyo')"),
    "lengths": (list(DAYS - DAYS[7]), "duration('s')"),
}


@pytest.mark.parametrize("name", FORMS)
def test_the_type_of_a_column_does_not_matter(name):
    pyarrow = pytest.importorskip("pyarrow")
    values, kind = FORMS[name]
    kind = pd.ArrowDtype(eval(f"pyarrow.{kind}", {"pyarrow": pyarrow}))

    def found(dtype):
        ids = pd.Series(values, dtype=object).astype(dtype)
        frame = pd.DataFrame({"src": ids, "dst": ids[::-1].set_axis(ids.index)})
        return words(glp_rapids.as_graph(frame, device="cpu"))

    assert found(object) == found(kind)
    assert len(set(found(object))) == len(values)


@pytest.mark.parametrize(
    ("one", "same", "others"),
    [
        (Decimal("1"), Decimal("1.00"), [Decimal("Infinity"), *map(Decimal, range(2, 20))]),
        (Decimal("-0.0"), Decimal("0"), [Decimal(i) / 3 for i in range(1, 20)]),
        ((1, "a"), (1.0, "a"), [(i, "b") for i in range(2, 20)]),
        ((Decimal.from_float(0.1), 1), (0.1, True), [(i, 0.1) for i in range(2, 20)]),
        ((np.int64(3), (2, 0.5)), (3, (np.float32(2), Decimal("0.50"))), [(4, i) for i in "abcd"]),
        (DAYS[0].tz_localize("UTC"), DAYS[0].tz_localize("UTC").tz_convert("Asia/Tokyo"),
         list(DAYS[1:].tz_localize("UTC"))),
    ],
)  # fmt: skip
def test_equal_ids_have_one_word_whichever_comes_first(one, same, others):
    ids = pd.Series([one, *others, same, *others[::-1]], dtype=object)
    other = pd.Series([same, *others, one, *others[::-1]], dtype=object)
    frames = (pd.DataFrame({"src": column, "dst": column[::-1].set_axis(column.index)})
              for column in (ids, other))  # fmt: skip
    first, second = (words(glp_rapids.as_graph(frame, device="cpu")) for frame in frames)
    assert first == second
    assert len(set(first)) == 1 + len(others)


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("new", [-1, 10**6])
def test_a_new_vertex_moves_only_its_neighbourhood(new, text):
    """Whichever rank its id has, all that is far from a newcomer keeps its community."""
    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(40), 12)
    within = [(u, v) for u in range(480) for v in range(u) if group[u] == group[v]]
    edges = np.array(within)[rng.random(len(within)) < 0.5]
    more = np.concatenate([edges, [[new, 0], [new, 1]]])
    if text:
        edges, more = edges.astype(str), more.astype(str)

    def communities(pairs):
        frame = pd.DataFrame(pairs, columns=["src", "dst"])
        found = glp_rapids.label_propagation(frame, renumber=False, device="cpu")
        return found.set_index("vertex")["partition"]

    before, after = communities(edges), communities(more)
    far = [v for v in before.index if int(v) >= 12]
    assert before[far].equals(after[far])


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["from -7", "with gaps", "strings", "days", "days by the second"])
def test_cudf_has_the_same_words(name):
    cudf = pytest.importorskip("cudf", reason="cuDF is not installed")
    ids = pd.Series(IDS[name])
    frame = pd.DataFrame({"src": ids, "dst": np.roll(ids, 1)})
    graph = glp_rapids.as_graph(frame, device="cpu")
    there = glp_rapids.as_graph(cudf.from_pandas(frame), device="gpu")
    every = np.arange(graph.number_of_vertices)
    found = there.id_words()
    assert (
        to_host(found.of(to_device(every, "gpu"))).tolist() == graph.id_words().of(every).tolist()
    )
    expected = glp_rapids.label_propagation(frame, device="cpu")["partition"]
    result = glp_rapids.label_propagation(cudf.from_pandas(frame), device="gpu")
    assert result["partition"].to_pandas().tolist() == expected.tolist()


def groups(found, ids):
    """Name the community of each id by its first member among these."""
    partition = found.set_index("vertex")["partition"].reindex(ids)
    return partition.map(dict(zip(partition[::-1], partition.index[::-1], strict=True)))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("kind", ["with gaps", "strings"])
def test_an_account_that_comes_leaves_others_where_they_are(kind, first, device):
    """Whether it is the first of all, so that every index is another one, or the last."""
    source, destination = social(20_000, device="cpu")[:2]
    edges = pd.DataFrame({"src": source, "dst": destination}) * 7
    new = -5 if first else 10**7
    if kind == "strings":
        edges, new = edges.astype(str), "!" if first else "~"
    found = glp_rapids.label_propagation(edges, device=device)
    more = pd.concat([edges, pd.DataFrame({"src": [new], "dst": [edges["dst"].iloc[5]]})])
    after = glp_rapids.label_propagation(more, device=device)
    assert found["partition"].nunique() > 20
    ids = found["vertex"]
    assert (groups(found, ids) != groups(after, ids)).mean() < 0.01
