"""A graph that ranks make of parts of the edges is the graph that one process makes of all."""

import gc
import weakref
from functools import partial

import graphs
import numpy as np
import pandas as pd
import pytest
from cases import exhaustive, turns
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_limits import directions

import glp_rapids
from glp_rapids import as_graph, label_propagation, layered_label_propagation
from glp_rapids.ingest import readers
from glp_rapids.ingest.shuffle import part_of
from glp_rapids.multigpu.exchange import as_ranks, exchanges
from glp_rapids.propagation.options import Options
from glp_rapids.propagation.rank_graph import RankGraph
from glp_rapids.propagation.rank_run import run_on_rank
from glp_rapids.propagation.variants import classic, layered, seeded, speaker_listener

NAMES = list(graphs.GRAPHS)
FEW = ["empty", "only isolated", "multi-edges kept", "hub", "uneven weights",
       "directed weighted", "unicode", "beyond int63", "several columns"]  # fmt: skip


CLASSIC = partial(classic.of_program, program=classic.Classic())


def on_ranks(frames, given, find=CLASSIC, **options):
    """Run a variant on parts; return the frame of all, and what every rank made."""
    names = [given.get(name, default) for name, default in
             (("source", "src"), ("destination", "dst"), ("weight", None))]  # fmt: skip
    directed = given.get("directed", False)
    how = readers.Options(*names, directed, None)

    def work(end):
        options_of_run = Options(**options)
        multigraph, direction = given.get("multigraph", "merge"), options_of_run.direction
        isolated = [given["vertices"]] if end.rank == 0 and "vertices" in given else []
        part = part_of(end, list(frames[end.rank]), how, multigraph, direction, isolated)
        found = find(RankGraph(end, part, directed, direction, 1), options_of_run, run_on_rank)
        return found, part, found.attrs["glp"]

    frames = [frame if isinstance(frame, list) else [frame] for frame in frames]
    ends = exchanges(len(frames))
    made = as_ranks([lambda end=end: work(end) for end in ends], ends[0].abort)
    found, parts, reports = zip(*made, strict=True)
    return pd.concat(found, ignore_index=True), parts, reports


def cases(ranks):
    """Yield the name, the edges, how they are read, and the graph of one process."""
    for name in FEW if ranks == 3 else NAMES:
        given = graphs.GRAPHS[name]()
        frame = given.pop("graph")
        yield name, frame, given, as_graph(frame, **given, device="cpu")


def dealt(frame, ranks):
    """Give each rank two frames."""
    return [
        [frame.iloc[rank :: 2 * ranks], frame.iloc[rank + ranks :: 2 * ranks]]
        for rank in range(ranks)
    ]


@pytest.mark.parametrize("ranks", [3, *exhaustive(1, 2, 5)])
def test_any_graph(ranks):
    for name, frame, how, whole in cases(ranks):
        for direction in directions(whole):
            expected = label_propagation(whole, direction=direction, device="cpu")
            found, parts, reports = on_ranks(dealt(frame, ranks), how, direction=direction)
            pd.testing.assert_frame_equal(found, expected, check_dtype=False)
            assert {tuple(report["changed"]) for report in reports} == {
                tuple(expected.attrs["glp"]["changed"])
            }
            rows = whole.rows(direction)
            for part in parts:
                begin, end = rows.indptr[[part.first, part.last]]
                assert (part.rows.indices == rows.indices[begin:end]).all(), name
                if rows.weights is not None:
                    assert (in_order(part.rows) == in_order(rows)[begin:end]).all(), name
                numbers = np.arange(whole.number_of_vertices)
                assert (part.words.of(numbers) == whole.id_words().of(numbers)).all()
            assert sum(part.rows.number_of_edges for part in parts) == rows.number_of_edges


def in_order(rows):
    """The weights; those of a reciprocal pair, which are side by side, from the least on."""
    return rows.weights[np.lexsort((rows.weights, rows.indices, rows.row_indices()))]


class Rare(glp_rapids.Program):
    """Asks for what is known of all vertices, and keeps state that the result shows."""

    result_columns = ("heard",)

    def initial_state(self, graph):
        heavy = graph.rows("in").row_weights()
        return {"degree": graph.degree, "heavy": heavy, "heard": np.zeros(heavy.size)}

    def label_score(v, label, freq, state):
        return freq / (1 + state.degree[label])

    def update_vertex(v, label, score, state):
        state.labels[v] = label
        state.heard[v] = score + state.heavy[v]


# what finds it on a rank, and in one process; options of the run besides
VARIANTS = {
    "layered": (partial(layered.layers, gammas=[0.5, 4]), layered_label_propagation,
                {"gammas": [0.5, 4]}, {}),
    "speaker-listener": (partial(speaker_listener.cover, max_labels=3, threshold=0.1),
                         glp_rapids.speaker_listener, {"max_labels": 3, "max_iter": 6},
                         {**speaker_listener.DEFAULTS, "max_iter": 6}),
    "program": (partial(classic.of_program, program=Rare()), glp_rapids.propagate,
                {"program": Rare()}, {}),
}  # fmt: skip


def assert_same(found, reports, expected):
    """The rows of one process, rank after rank, and as many changes a sweep."""
    if "gamma" in expected:  # gamma after gamma in each rank
        ids = [name for name in expected if name.endswith("vertex")]
        found, expected = (
            frame.sort_values(ids, kind="stable", ignore_index=True) for frame in (found, expected)
        )
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    for report in reports:
        layers = report.get("layers", [report])
        for one, other in zip(layers, expected.attrs["glp"].get("layers", [None]), strict=True):
            assert one["changed"] == (other or expected.attrs["glp"])["changed"]


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("layered", 3),
        ("speaker-listener", 3),
        *exhaustive(("layered", 1), *turns(VARIANTS, [5, 2])),
    ],
)
def test_any_variant_on_any_graph(name, ranks):
    find, function, keywords, options = VARIANTS[name]
    for _, frame, how, whole in cases(ranks):
        for direction in directions(whole):
            if name == "program" and direction == "both":
                with pytest.raises(ValueError, match="nor, if its edges are directed, a degree"):
                    on_ranks(dealt(frame, ranks), how, find, direction=direction)
                continue
            expected = function(whole, direction=direction, **keywords)
            found, _, reports = on_ranks(
                dealt(frame, ranks), how, find, direction=direction, **options
            )
            assert_same(found, reports, expected)


@pytest.mark.parametrize("ranks", [3, *exhaustive(1, 2, 5)])
def test_seeds_anywhere(ranks):
    for _, frame, how, whole in cases(ranks):
        number = whole.number_of_vertices
        index = np.unique(np.linspace(0, number - 1, 4).astype(int)) if number else np.arange(0)
        seeds = pd.DataFrame(whole.external_columns(index[::-1], "vertex"))
        seeds["label"] = [f"kind {place % 2}" for place in range(len(seeds))]
        for direction in directions(whole):
            for update in ("sync", "semi"):
                options = {"max_iter": 7, "update": update, "direction": direction}
                expected = glp_rapids.seeded_label_propagation(whole, seeds, **options)
                find = partial(seeded.spread, seeds=seeds, max_hops=None, damping=0.85)
                found, _, reports = on_ranks(
                    dealt(frame, ranks), how, find, **{**seeded.DEFAULTS, **options}
                )
                assert_same(found, reports, expected)
                assert reports[0]["seeds"] == expected.attrs["glp"]["seeds"]


class Wrong(glp_rapids.Program):
    def update_vertex(v, label, score, state):
        state.labels[v] = 99 if v > 6 else label


class WantsLists(glp_rapids.Program):
    def initial_state(self, graph):
        return {"last": graph.indptr[1:]}


def test_what_is_wrong_with_a_program_or_seeds_is_said():
    given = graphs.GRAPHS["two cliques"]()
    frame = given.pop("graph")
    frames = [frame[rank::3] for rank in range(3)]
    said = []
    for run in (
        lambda: glp_rapids.propagate(frame, Wrong(), device="cpu"),
        lambda: on_ranks(frames, given, partial(classic.of_program, program=Wrong())),
    ):
        with pytest.raises(ValueError, match="in sweep 1, at vertex") as info:
            run()
        said.append(str(info.value))
    assert said[0] == said[1]
    with pytest.raises(TypeError, match=r"asks for graph\.indptr, which a rank's part of a graph"):
        on_ranks(frames, given, partial(classic.of_program, program=WantsLists()))

    def spread(seeds):
        return partial(seeded.spread, seeds=seeds, max_hops=None, damping=0.85)

    with pytest.raises(ValueError, match=r"seeds holds 1 id\(s\) that are no vertex .*: 77; drop"):
        on_ranks(frames, given, spread([0, 77]), **seeded.DEFAULTS)
    with pytest.raises(TypeError, match="seeds holds"):
        on_ranks(frames, given, spread(["a"]), **seeded.DEFAULTS)
    twice = pd.DataFrame({"vertex": [9, 0, 0], "label": [1, 1, 2]})
    with pytest.raises(ValueError, match=r"seeds give two labels to 0: 1 and another"):
        on_ranks(frames, given, spread(twice), **seeded.DEFAULTS)


@settings(max_examples=15)
@given(graphs.edge_frames(), st.integers(1, 6), st.data())
def test_drawn_graphs(edges, ranks, draw):
    """Some ranks may have no edge at all."""
    frame = edges.pop("graph")
    owner = np.array([draw.draw(st.integers(0, ranks - 1)) for _ in range(len(frame))], int)
    found, _, _ = on_ranks([frame[owner == rank] for rank in range(ranks)], edges, seed=ranks)
    expected = label_propagation(frame, **edges, seed=ranks, device="cpu")
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_parts_are_balanced_by_the_ends_of_edges():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame((2_000 * rng.random((30_000, 2)) ** 2).astype(int), columns=["src", "dst"])
    _, parts, _ = on_ranks([frame[rank::4] for rank in range(4)], {"multigraph": "keep"})
    sizes = [part.rows.number_of_edges for part in parts]
    assert max(sizes) < 1.3 * sum(sizes) / len(sizes)


def test_what_is_wrong_with_the_edges_of_one_rank_is_said():
    frame = graphs.GRAPHS["two cliques"]()["graph"]
    null = frame.astype({"src": "Int64"})
    null.loc[3, "src"] = None
    with pytest.raises(ValueError, match="holds 1 null"):
        on_ranks([frame, null, frame], {})
    with pytest.raises(TypeError, match="source"):
        on_ranks([frame, frame.astype(str), frame], {})


def test_integers_of_different_types_are_one():
    frame = graphs.GRAPHS["two cliques"]()["graph"]
    parts = [frame[:8].astype(np.int32), frame[8:].astype(np.uint16)]
    found, _, _ = on_ranks(parts, {})
    expected = label_propagation(frame, device="cpu")
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_ranks_without_an_edge_do_not_count_as_edges_of_weight_one():
    """The unit of votes follows from the largest weight there is."""
    frame = pd.DataFrame({"src": [0, 1, 2], "dst": [1, 2, 0], "w": [1e-17, 3e-17, 2e-17]})
    given, told = {"weight": "w", "vertices": np.arange(100, 130)}, []

    def find(graph, options, run):
        told.append(graph.rows("in").largest_weight())
        return CLASSIC(graph, options, run)

    found, parts, _ = on_ranks([frame[rank::12] for rank in range(12)], given, find)
    assert any(not part.rows.number_of_edges for part in parts)
    assert told == [3e-17] * 12
    expected = label_propagation(frame, **given, device="cpu")
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_ids_have_one_type_on_all_ranks():
    """Also on those whose own edges, and whose range, have nothing of the other type."""
    ends = np.arange(60, dtype=np.int32)
    frame = pd.DataFrame({"src": ends, "dst": ends + np.int32(1)})
    given = {"vertices": np.array([-70, 7])}
    whole = label_propagation(frame, **given, device="cpu")
    found, parts, _ = on_ranks([frame[:20], frame[20:40], frame[40:]], given)
    assert [part.vertices.take(None)["vertex"].dtype for part in parts] == [np.int64] * 3
    pd.testing.assert_frame_equal(found, whole, check_dtype=False)
    listed = {"vertices": [-70, 7]}  # which has no type of its own
    found, parts, _ = on_ranks([frame[:20], frame[20:40], frame[40:]], listed)
    assert [part.vertices.take(None)["vertex"].dtype for part in parts] == [np.int32] * 3
    pd.testing.assert_frame_equal(found, whole, check_dtype=False)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ((np.int64, np.float64, np.int64), np.float64),
        ((np.int64, np.float32, np.int64), np.float64),
        ((np.int64, None, np.int64), np.int64),  # which has no row, of float64
        ((None, None, None), np.float64),
    ],
)
def test_weights_have_one_type_on_all_ranks(kinds, expected):
    frame = pd.DataFrame({"src": [0, 1, 2, 3], "dst": [1, 2, 3, 0], "w": [1, 2, 3, 4]})
    frames = [frame[:0].astype({"w": np.float64}) if kind is None else frame.astype({"w": kind})
              for kind in kinds]  # fmt: skip
    found, parts, _ = on_ranks(frames, {"weight": "w"})
    assert {part.rows.weights.dtype for part in parts} == {np.dtype(expected)}
    whole = pd.concat([one for one in frames if len(one)] or frames[:1])
    expected = label_propagation(whole, weight="w", device="cpu")
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)


def test_what_a_rank_holds_goes_with_it():
    """Not when garbage is collected: it may be memory of a GPU."""
    held = []

    def find(graph, options, run):
        held.append(weakref.ref(graph))
        return CLASSIC(graph, options, run)

    gc.collect()
    gc.disable()
    try:
        on_ranks(dealt(graphs.GRAPHS["two cliques"]()["graph"], 2), {}, find)
        assert [one() for one in held] == [None, None]
    finally:
        gc.enable()
