"""A graph that ranks make of parts of the edges is the graph that one process makes of all."""

import graphs
import numpy as np
import pandas as pd
import pytest
from cases import exhaustive
from hypothesis import given, settings
from hypothesis import strategies as st

from glp_rapids import as_graph, label_propagation
from glp_rapids.ingest import readers
from glp_rapids.ingest.shuffle import part_of
from glp_rapids.multigpu.exchange import as_ranks, exchanges
from glp_rapids.propagation.options import Options
from glp_rapids.propagation.rank_run import run_part
from glp_rapids.propagation.results import renumbered
from glp_rapids.propagation.variants.classic import Classic

# without further vertices, which no edge names
NAMES = [name for name in graphs.GRAPHS if "vertices" not in graphs.GRAPHS[name]()]
FEW = ["empty", "multi-edges kept", "hub", "uneven weights", "directed weighted", "unicode",
       "beyond int63", "several columns"]  # fmt: skip


def on_ranks(frames, given, **options):
    """Run label propagation on parts; return the frame of all, and what every rank made."""
    names = [given.get(name, default) for name, default in
             (("source", "src"), ("destination", "dst"), ("weight", None))]  # fmt: skip
    how = readers.Options(*names, given.get("directed", False), None)

    def work(end):
        options_of_run = Options(**options)
        multigraph = given.get("multigraph", "merge")
        part = part_of(end, list(frames[end.rank]), how, multigraph, options_of_run.direction)
        labels, report = run_part(end, part, Classic(), options_of_run, 1)
        partition = renumbered(labels)[part.first : part.last]
        found = pd.DataFrame({**part.vertices.take(None), "partition": partition})
        return found, part, report

    frames = [frame if isinstance(frame, list) else [frame] for frame in frames]
    ends = exchanges(len(frames))
    made = as_ranks([lambda end=end: work(end) for end in ends], ends[0].abort)
    found, parts, reports = zip(*made, strict=True)
    return pd.concat(found, ignore_index=True), parts, reports


@pytest.mark.parametrize("ranks", [3, *exhaustive(1, 2, 5)])
def test_any_graph(ranks):
    for name in FEW if ranks == 3 else NAMES:
        given = graphs.GRAPHS[name]()
        frame = given.pop("graph")
        whole = as_graph(frame, **given, device="cpu")
        for direction in ("in", "out") if whole.directed else ("in",):
            expected = label_propagation(whole, direction=direction, device="cpu")
            frames = [[frame.iloc[rank :: 2 * ranks], frame.iloc[rank + ranks :: 2 * ranks]]
                      for rank in range(ranks)]  # fmt: skip
            found, parts, reports = on_ranks(frames, given, direction=direction)
            pd.testing.assert_frame_equal(found, expected, check_dtype=False)
            assert {tuple(report["changed"]) for report in reports} == {
                tuple(expected.attrs["glp"]["changed"])
            }
            rows = whole.rows(direction)
            for part in parts:
                begin, end = rows.indptr[[part.first, part.last]]
                assert (part.rows.indices == rows.indices[begin:end]).all(), name
                if rows.weights is not None:
                    assert (part.rows.weights == rows.weights[begin:end]).all(), name
                numbers = np.arange(whole.number_of_vertices)
                assert (part.words.of(numbers) == whole.id_words().of(numbers)).all()
            assert sum(part.rows.number_of_edges for part in parts) == rows.number_of_edges


@settings(max_examples=15)
@given(graphs.edge_frames(), st.integers(1, 6), st.data())
def test_drawn_graphs(edges, ranks, draw):
    """Some ranks may have no edge at all."""
    edges.pop("vertices", None)
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
