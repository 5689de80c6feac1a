"""Label propagation on compressed graphs gives what it gives on plain ones, to the last bit."""

import dataclasses
from functools import partial

import graphs
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from programs import PROGRAMS, Counting

import glp_rapids
from glp_rapids import as_graph, compress, datasets, label_propagation
from glp_rapids.compressed.rows import CompressedCSR
from glp_rapids.compressed.weights import CodedWeights, EqualWeights
from glp_rapids.fraud import account_scores
from glp_rapids.graph.rows import CSR
from glp_rapids.propagation.engines import cpu_arrays, cpu_streamed
from glp_rapids.propagation.kernels.cpu import hash_votes
from glp_rapids.propagation.options import Options
from glp_rapids.propagation.run import run
from glp_rapids.propagation.variants.classic import Classic

SCHEMES = ("packed", "cgr", "entropy")


# Every kind of weights is one more compilation of every program.
SELECTED = [
    "only isolated", "self-loops", "hub", "power law", "uneven weights", "directed",
    "directed reciprocal", "directed weighted", "several columns",
]  # fmt: skip


@pytest.fixture(autouse=True)
def no_small_graphs(monkeypatch):
    """Let the engine that decodes classes do the small graphs too."""
    monkeypatch.setattr(cpu_arrays, "SMALL", 0)


@pytest.fixture
def no_room(monkeypatch):
    """Let the buffer be so small that classes are cut into pieces."""
    monkeypatch.setattr(cpu_arrays, "BUFFER", 3)
    monkeypatch.setattr(cpu_arrays, "BUFFER_A_VERTEX", 0)


def directions(graph):
    return ("in", "out", "both") if graph.directed else ("in",)


def shuffled(graph):
    return np.random.default_rng(graph.number_of_vertices).permutation(graph.number_of_vertices)


def assert_same(found, expected):
    pd.testing.assert_frame_equal(pandas(found), pandas(expected))
    reports = found.attrs["glp"], expected.attrs["glp"]
    layers = [report.get("layers", [report]) for report in reports]
    for one, other in zip(*layers, strict=True):
        for name in ("sweeps", "explored", "changed", "converged"):
            assert one[name] == other[name], name


def pandas(frame):
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame


def assert_runs_alike(program, compressed, plain, device="cpu"):
    if program == "seeded" and plain.number_of_vertices == 0:
        return
    for direction in directions(plain):
        found = PROGRAMS[program](compressed, direction=direction, device=device)
        expected = PROGRAMS[program](plain, direction=direction, device="cpu")
        assert_same(found, expected)


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_any_graph(name):
    plain = as_graph(**graphs.GRAPHS[name](), device="cpu")
    compressed = compress(plain, "cgr", device="cpu")
    assert_runs_alike("classic", compressed, plain)
    assert_runs_alike("classic", compress(plain, "cgr", order=shuffled(plain), device="cpu"), plain)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", SELECTED)
def test_any_program(program, name):
    plain = as_graph(**graphs.GRAPHS[name](), device="cpu")
    assert_runs_alike(program, compress(plain, "cgr", device="cpu"), plain)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", ["power law", "uneven weights", "directed weighted"])
def test_any_program_where_classes_are_cut_and_lists_are_in_an_order(no_room, program, name):
    plain = as_graph(**graphs.GRAPHS[name](), device="cpu")
    compressed = compress(plain, "cgr", order=shuffled(plain), device="cpu")
    assert_runs_alike(program, compressed, plain)


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("raw_below", [0, 40])
def test_any_layout(scheme, raw_below):
    pairs = [*graphs.power_law_pairs(500, 4000, 5), *[(0, i) for i in range(0, 500, 2)]]
    plain = as_graph(**graphs.edges(pairs), device="cpu")
    compressed = compress(plain, scheme, raw_below=raw_below, segment=16, device="cpu")
    assert_runs_alike("classic", compressed, plain)


@given(graphs.edge_frames(), st.booleans(), st.booleans(), st.integers(0, 9))
def test_drawn_graphs(edges, ordered, cut, seed):
    plain = as_graph(**edges, device="cpu")
    compressed = compress(plain, "cgr", order=shuffled(plain) if ordered else None, device="cpu")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu_arrays, "BUFFER", 3 if cut else 1 << 22)
        patch.setattr(cpu_arrays, "BUFFER_A_VERTEX", 0)
        for direction in directions(plain):
            options = {"direction": direction, "seed": seed, "classes": 3}
            assert_same(
                label_propagation(compressed, **options, device="cpu"),
                label_propagation(plain, **options, device="cpu"),
            )


def test_a_list_that_all_threads_read(monkeypatch):
    monkeypatch.setattr(hash_votes, "threads_for", lambda entries: 1)  # one compilation less
    n = 40_000
    plain = as_graph(**graphs.edges([*[(0, i) for i in range(1, n)], (5, 6), (5, 7)]), device="cpu")
    for order in (None, np.arange(n)[::-1]):
        compressed = compress(plain, "cgr", order=order, device="cpu")
        assert_runs_alike("classic", compressed, plain)


@pytest.mark.parametrize(
    ("dtype", "values"),
    [(np.int64, 1), (np.int64, 3), (np.int64, 400), (np.int64, 100_000), (np.float32, 3)],
)
def test_weights_by_way_of_a_table_or_not(dtype, values):
    pairs = graphs.random_pairs(80, 900, 5)
    weights = (1 + np.arange(900) * 7919 % values).astype(dtype)
    if values == 1:  # no duplicates, of which the weights would be added
        pairs, weights = np.unique(pairs, axis=0).tolist(), weights[:1].item()
    plain = as_graph(**graphs.edges(pairs, weights, directed=True), device="cpu")
    compressed = compress(plain, "cgr", order=shuffled(plain), device="cpu")
    form = {1: EqualWeights, 100_000: np.ndarray}.get(values, CodedWeights)
    assert type(compressed.weights) is form
    assert_runs_alike("classic", compressed, plain)


def test_small_graphs_are_decoded_once(monkeypatch):
    monkeypatch.undo()
    assert cpu_arrays.SMALL > 1000
    monkeypatch.setattr(cpu_streamed, "StreamedCpuEngine", None)
    for name in ("power law", "uneven weights", "directed weighted"):
        plain = as_graph(**graphs.GRAPHS[name](), device="cpu")
        for order in (None, shuffled(plain)):
            assert_runs_alike("classic", compress(plain, "cgr", order=order, device="cpu"), plain)


def test_the_graph_is_never_decoded_as_a_whole(monkeypatch):
    plain = as_graph(**graphs.GRAPHS["power law"](), device="cpu")
    compressed = compress(plain, "cgr", order=shuffled(plain), device="cpu")
    directed = compress(
        as_graph(**graphs.GRAPHS["directed kept"](), device="cpu"), "cgr", device="cpu"
    )
    monkeypatch.setattr(glp_rapids.CompressedGraph, "_stored", None)
    for program in PROGRAMS.values():
        program(compressed, device="cpu")
    label_propagation(directed, direction="out", device="cpu")
    with pytest.raises(TypeError):
        label_propagation(directed, direction="in", device="cpu")


def test_rows_and_readers():
    plain = as_graph(**graphs.GRAPHS["directed weighted"](), device="cpu")
    graph = compress(plain, "cgr", device="cpu")
    assert graph.readers("out", make=False) is None
    inward, outward = graph.rows("in"), graph.rows("out")
    assert isinstance(inward, CompressedCSR)
    assert isinstance(outward, CompressedCSR)
    assert graph.rows("in") is inward
    assert graph.readers("in") is outward
    assert graph.readers("out", make=False) is inward
    both = graph.rows("both")
    assert isinstance(both, CSR)
    assert graph.readers("both") is both
    np.testing.assert_array_equal(inward.degree, plain.rows("in").degree)
    with pytest.raises(ValueError, match="direction must be"):
        graph.rows("up")
    undirected = compress(as_graph(**graphs.GRAPHS["star"](), device="cpu"), device="cpu")
    assert undirected.readers("in") is undirected.rows("both")


def test_the_report_names_the_scheme_where_lists_were_read():
    graph = compress(as_graph(**graphs.GRAPHS["directed"](), device="cpu"), "cgr", device="cpu")
    for direction, scheme in (("out", "cgr"), ("in", "cgr"), ("both", None)):
        report = label_propagation(graph, direction=direction, device="cpu").attrs["glp"]
        assert report.get("compressed") == scheme


def test_who_sleeps_is_left_out(monkeypatch):
    read = []
    of_form = cpu_streamed.FORMS["compressed"]

    def counted(rows, vertices, *others):
        read.append(vertices.size)
        of_form.read(rows, vertices, *others)

    counting = dataclasses.replace(of_form, read=counted)
    monkeypatch.setitem(cpu_streamed.FORMS, "compressed", counting)
    for directed in (False, True):
        edges = graphs.edges(graphs.power_law_pairs(400, 2500, 2), directed=directed)
        graph = compress(as_graph(**edges, device="cpu"), "cgr", device="cpu")
        numbers = []
        for skip in (True, False):
            read.clear()
            label_propagation(graph, skip_inactive=skip, device="cpu", tol=0)
            numbers.append(sum(read))
        assert numbers[0] < 0.8 * numbers[1]


def test_as_graph_decodes():
    plain = as_graph(**graphs.GRAPHS["directed weighted"](), device="cpu")
    graph = compress(plain, "cgr", order=shuffled(plain), device="cpu")
    again = as_graph(graph, device="cpu")
    assert isinstance(again, glp_rapids.Graph)
    for name in ("indptr", "indices", "weights"):
        np.testing.assert_array_equal(getattr(again, name), getattr(plain, name))
    assert again.directed
    for function in (as_graph, label_propagation):
        with pytest.raises(ValueError, match=r"weight= does not apply to a .*CompressedGraph"):
            function(graph, weight="w")
    undirected = compress(as_graph(**graphs.GRAPHS["star"](), device="cpu"), device="cpu")
    with pytest.raises(ValueError, match="directed=True, but the graph given is undirected"):
        label_propagation(undirected, directed=True)
    with pytest.raises(TypeError, match="directed must be"):
        label_propagation(undirected, directed="yes")
    with pytest.raises(TypeError, match="weigth"):
        label_propagation(undirected, weigth="w")


@pytest.mark.parametrize(
    "name", ["empty", "self-loops", "integer weights", "uneven weights", "directed weighted"]
)
def test_other_functions_take_compressed_graphs(name, monkeypatch):
    monkeypatch.setattr("glp_rapids.graph.rows.ENTRIES_AT_ONCE", 7)
    plain = as_graph(**graphs.GRAPHS[name](), device="cpu")
    for order in (None, shuffled(plain)):
        graph = compress(plain, "cgr", order=order, device="cpu")
        found = label_propagation(plain, device="cpu")
        for metric in (glp_rapids.modularity, glp_rapids.coverage):
            np.testing.assert_equal(
                metric(graph, found, device="cpu"), metric(plain, found, device="cpu")
            )
        if plain.directed:
            continue
        diversity = partial(glp_rapids.structural_diversity, k=1, device="cpu")
        pd.testing.assert_frame_equal(diversity(graph), diversity(plain))
        if plain.number_of_vertices:
            scores = partial(account_scores, seeds=[plain.external()[0]], device="cpu")
            pd.testing.assert_frame_equal(scores(graph), scores(plain))


def test_clusters_of_a_compressed_graph():
    frame, truth = datasets.transactions(20_000, accounts=2_000, merchants=200, rings=4, towns=10)
    plain = as_graph(
        frame, source="source", destination="destination", multigraph="keep", device="cpu"
    )
    blacklist = datasets.blacklist(truth)
    find = partial(glp_rapids.find_clusters, seeds=blacklist, absent="drop", device="cpu")
    for found, expected in zip(find(compress(plain, device="cpu")), find(plain), strict=True):
        pd.testing.assert_frame_equal(found, expected)


def test_a_program_that_gives_bad_amounts():
    program = Counting()
    program.largest_amount = 1e-9
    graph = compress(as_graph(**graphs.GRAPHS["uneven weights"](), device="cpu"), device="cpu")
    with pytest.raises(ValueError, match="load_neighbor returned an amount"):
        glp_rapids.propagate(graph, program, device="cpu")


def test_a_program_that_asks_for_the_lists():
    class Asking(glp_rapids.Program):
        def initial_state(self, graph):
            return {"first": graph.indices[:1]}

    class Wrong(glp_rapids.Program):
        def initial_state(self, graph):
            return {"first": self.nothing}

    graph = compress(as_graph(**graphs.GRAPHS["star"](), device="cpu"), device="cpu")
    with pytest.raises(TypeError, match=r"asks for graph.indices, .* write graph.to_graph\(\).ind"):
        glp_rapids.propagate(graph, Asking(), device="cpu")
    with pytest.raises(AttributeError, match="nothing"):
        glp_rapids.propagate(graph, Wrong(), device="cpu")


def test_memory_is_that_of_one_class():
    n, m = 20_000, 300_000
    plain = as_graph(**graphs.edges(graphs.random_pairs(n, m, 4)), device="cpu")
    graph = compress(plain, "cgr", device="cpu")
    engines = []
    with pytest.MonkeyPatch.context() as patch:
        start = cpu_streamed.StreamedCpuEngine.start
        patch.setattr(
            cpu_streamed.StreamedCpuEngine,
            "start",
            lambda engine: engines.append(engine) or start(engine),
        )
        patch.setattr(cpu_arrays, "BUFFER", 1000)
        patch.setattr(hash_votes, "threads_for", lambda entries: 1)
        run(graph, Classic(), Options(max_iter=2))
    sizes = {
        name: value.nbytes
        for name, value in vars(engines[0]).items()
        if isinstance(value, np.ndarray)
    }
    assert sum(sizes.values()) < 30 * n < plain.indices.nbytes, sizes
