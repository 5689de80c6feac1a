"""The kernels by which a warm run begins on a GPU, and their host side, run on a CPU."""

from types import SimpleNamespace

import graphs
import numpy as np
import pandas as pd
import pytest
from elementwise import cupy_on_host  # noqa: F401
from warm_graphs import few_edges_changed

from glp_rapids import as_graph, compress, label_propagation
from glp_rapids.graph import find_gpu
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.vertex_ids import IdColumn
from glp_rapids.propagation import warm_start, warm_start_gpu
from glp_rapids.propagation.engines import unsettled
from glp_rapids.propagation.warm_start import start_of

ENDS = {
    "int8": [-128, -3, 0, 1, 127],
    "uint8": [0, 1, 7, 255],
    "int32": [-(2**31), -1, 0, 5, 300, 2**31 - 1],
    "int64": [-(2**63), -300, -1, 0, 5, 2**40, 2**63 - 1],
    "uint64": [0, 5, 2**63 - 1, 2**63, 2**64 - 1],
}


@pytest.fixture
def kernels(cupy_on_host):  # noqa: F811
    cupy_on_host(
        find_gpu._kernel, warm_start_gpu._kernels_of_labels, warm_start_gpu._kernels_of_active,
        unsettled._list_unsettled,
    )  # fmt: skip


# ---------------------------------------------------------------- ids


@pytest.mark.parametrize("known", ["int8", "int64", "uint64"])
def test_ids_are_found_whatever_the_types_can_hold(kernels, known):
    for asked in ENDS:
        held = [ENDS[known], ENDS[known][:1], ENDS[known][1:4], range(5), [1, 2, 3]]
        for ids in held:
            column = IdColumn(np.array(ids, known), "integer", None)
            values = np.array([*ENDS[asked], 4, 2, 2], asked)
            found = find_gpu.find_ids(column.values, values)
            where = {one: place for place, one in enumerate(column.values.tolist())}
            expected = [where.get(one, -1) for one in values.tolist()]
            assert found.tolist() == column.search(values).tolist() == expected


# ---------------------------------------------------------------- labels


@pytest.fixture
def as_on_gpu(kernels, monkeypatch):
    """Calls of `start_of` take the way of a GPU, and note whether all was as usual."""
    usual = []
    at_once = warm_start._at_once

    def noted(*arguments):
        found = at_once(*arguments)
        usual.append(found is not None)
        return found

    def start(graph, initial, **how):
        usual.clear()
        with monkeypatch.context() as patch:
            patch.setattr(Graph, "device", property(lambda graph: "gpu"))
            patch.setattr(warm_start, "_at_once", noted)
            return start_of(graph, initial, **how), usual == [True]

    return start


def assert_same_start(found, expected):
    assert found.labels.tolist() == expected.labels.tolist()
    assert found.labels.dtype == expected.labels.dtype
    assert sorted(found.new.tolist()) == sorted(expected.new.tolist())
    for one, other in zip(*([s.touched, s.pending] for s in (found, expected)), strict=True):
        assert (one is None) == (other is None)
        assert one is None or list(one) == list(other)


@pytest.mark.parametrize("name", ["negative", "beyond int63", "star", "isolated", "empty"])
def test_a_run_begins_as_on_a_cpu(as_on_gpu, name):
    graph, random = as_graph(**graphs.GRAPHS[name](), device="cpu"), np.random.default_rng(2)
    n = graph.number_of_vertices
    partition = random.integers(0, max(n // 3, 1), n)
    earlier = graph.frame({"partition": partition})
    for numbers in (partition, partition - 1, partition.astype(np.uint8),
                    (partition % 100).astype(np.int8) - 1):  # fmt: skip
        one = earlier.assign(partition=numbers)
        for rows in (one, one[::-1], one.sample(frac=0.95, random_state=1), one.head(1),
                     pd.concat([one, one.sample(frac=0.5, random_state=1)])):  # fmt: skip
            may_be_silent = [False] if name == "negative" else [False, True]
            for silent in may_be_silent:
                expected = start_of(graph, rows, may_be_silent=silent)
                found, usual = as_on_gpu(graph, rows, may_be_silent=silent)
                assert_same_start(found, expected)
                assert usual == (len(rows) > 0)
    for numbers in (partition * 10**9 - 7, partition.astype(float), partition.astype(str)):
        rows = earlier.assign(partition=numbers)
        found, usual = as_on_gpu(graph, rows)
        assert_same_start(found, start_of(graph, rows))
        assert not usual or not n or set(numbers) == {-7}


@pytest.mark.parametrize("few", [0, 4, 5, 6, 40])
def test_who_is_new_is_listed_or_looked_for(kernels, few):
    known = np.array([v for v in range(40) if v not in (0, 7, 8, 21, 39)])
    labels = np.empty(40, np.int32)
    found = warm_start_gpu.beginning_of(known, known % 3, 100, False, labels, few)
    assert sorted(found.new.tolist()) == [0, 7, 8, 21, 39]
    first = {0: 3, 1: 1, 2: 2}
    assert labels.tolist() == [first[v % 3] if v in known else v for v in range(40)]


EDGES = pd.DataFrame({"src": [0, 1, 2], "dst": [1, 2, 3]})


def frame_of(vertices, partition):
    return pd.DataFrame({"vertex": vertices, "partition": partition})


def test_who_is_no_vertex_says_nothing(as_on_gpu):
    graph = as_graph(EDGES, device="cpu")
    for rows in (frame_of([7, 3, -1, 0], [0, 1, 1, 0]), frame_of([9], [0]),
                 frame_of([2**40, 2, 2**32 + 1], [5, 5, 5])):  # fmt: skip
        expected = start_of(graph, rows, [3, 8, -1])
        found, usual = as_on_gpu(graph, rows, touched=[3, 8, -1])
        assert usual
        assert_same_start(found, expected)
        assert found.touched.tolist() == [3, -1, -1]


@pytest.mark.parametrize(
    "rows",
    [
        frame_of([0, 1, 0], [1, 1, 2]),
        frame_of([3, 9, 9, 2, 3, 2], [1, 0, 1, 2, 2, 1]),
        frame_of([3, 3], [-1, 0]),
        frame_of([0, 1], [1, None]),
        frame_of([0.0, 1.0], [1, 1]),
        frame_of(["0", "1"], [1, 1]),
    ],
    ids=str,
)
def test_bad_starts_are_refused_in_the_same_words(as_on_gpu, rows):
    graph, said = as_graph(EDGES, device="cpu"), []
    for begin in (start_of, as_on_gpu):
        with pytest.raises((TypeError, ValueError)) as caught:
            begin(graph, rows)
        said.append((caught.type, str(caught.value)))
    assert said[0] == said[1]


def test_silence_that_may_be_an_id_is_refused(as_on_gpu):
    graph = as_graph(EDGES - 1, device="cpu")
    for rows in (frame_of([-1, 0], [-1, 0]), frame_of([0, 0], [-1, 0])):
        with pytest.raises(ValueError, match="initial: the partition -1 may stand for silent ve"):
            as_on_gpu(graph, rows, may_be_silent=True)


# ---------------------------------------------------------------- who is evaluated first


@pytest.mark.parametrize("threads", [1, 1 << 22])
def test_those_of_lists_and_rows_are_active(kernels, monkeypatch, threads):
    monkeypatch.setattr(warm_start_gpu, "THREADS", threads)
    random = np.random.default_rng(4)
    rows = as_graph(**graphs.GRAPHS["star"](), device="cpu").rows()
    n = rows.number_of_vertices
    for number in (0, 1, 3, n):
        one, other = (random.integers(-1, n, number) for _ in range(2))
        new = random.permutation(n)[: number // 2].astype(np.int32)
        around = [rows.indices[rows.indptr[v] : rows.indptr[v + 1]] for v in new]
        for given in (rows, None):
            expected = {*one.tolist(), *other.tolist(), *new.tolist()} - {-1}
            expected |= set() if given is None else {v for row in around for v in row.tolist()}
            entries = int(rows.degree[sorted(expected)].sum())
            for most in (0, len(expected) - 1, len(expected), n):
                for indptr in (None, rows.indptr):
                    found = warm_start_gpu.active_of(
                        [one, other], new, given, indptr, n, max(most, 0)
                    )
                    if len(expected) > max(most, 0):
                        assert found is None
                    else:
                        assert sorted(found.vertices.tolist()) == sorted(expected)
                        assert found.entries == (None if indptr is None else entries)


@pytest.mark.parametrize("scheme", [None, "packed"])
def test_those_around_who_is_new_are_evaluated_as_on_a_cpu(kernels, monkeypatch, scheme):
    before, after, touched = few_edges_changed(4)
    earlier = label_propagation(before, tol=0.01)
    if scheme:
        after = compress(after, scheme, order="degree", device="cpu")
    start = start_of(after, earlier, touched)
    assert start.new.size
    rows = after.rows()
    workload = SimpleNamespace(graph=after, rows=rows, readers=rows, skip=True)
    options = SimpleNamespace(retain=True, explore=0, devices=None, strategy="auto")
    expected, entries = warm_start.first_active(start, start.pending.rule, workload, options)
    assert entries == (None if scheme else rows.degree[expected].sum())
    assert 0 < expected.size < after.number_of_vertices // 8
    monkeypatch.setattr(type(after), "device", property(lambda graph: "gpu"))
    found = warm_start.first_active(start, start.pending.rule, workload, options)
    assert sorted(found.vertices.tolist()) == expected.tolist()
    assert found.entries == entries
    monkeypatch.setattr(warm_start, "MANY", after.number_of_vertices // (expected.size - 1))
    assert warm_start.first_active(start, start.pending.rule, workload, options) is None


@pytest.mark.parametrize("at_once", [1, 4, 100])
def test_who_is_unsettled_is_listed_or_too_many(kernels, monkeypatch, at_once):
    random = np.random.default_rng(5)
    slack = random.integers(-1, 4, 300).astype(np.int32)
    expected = np.flatnonzero(slack < 0)
    monkeypatch.setattr(unsettled, "array_module", lambda array: None)
    monkeypatch.setattr(unsettled, "AT_ONCE", at_once)
    for most in (0, 3, expected.size - 1, expected.size, 300):
        found = unsettled.Unsettled(slack, most).vertices()
        assert found is None if most < expected.size else found.tolist() == expected.tolist()
    assert unsettled.Unsettled(slack.clip(0), 5).vertices().tolist() == []
