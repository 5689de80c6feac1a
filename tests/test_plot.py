"""Pictures: what is drawn, where, and what is refused."""

import pandas as pd
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

import matplotlib

from glp_rapids.fraud import SlidingWindow, account_scores, explain
from glp_rapids.plot import draw_cluster, draw_paths

ROWS = pd.DataFrame({
    "source": ["a", "a", "a", "b", "c", "b"], "destination": ["b", "b", "c", "s", "s", "t"],
    "amount": [1.0, 2.5, 4.0, 8.0, 16.0, 1000.0], "time": pd.Timestamp("2026-01-01"),
})  # fmt: skip


@pytest.fixture
def axes():
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots()
    yield axes
    pyplot.close(figure)


def paths(**options):
    window = SlidingWindow(days=5, device="cpu")
    window.append(ROWS)
    return explain(window, account_scores(window, ["s", "t"]), "a", **options)


def test_paths_are_drawn_with_what_they_are_made_of(axes):
    found = paths(k=9)
    assert draw_paths(found, axes=axes) is axes
    said = [text.get_text() for text in axes.texts]
    assert {"a", "b", "c", "s", "t"} < set(said)
    assert {"2 for 3.5", "1 for 4", "1 for 8", "1 for 16", "1 for 1,000"} < set(said)
    ends = found.groupby("path").tail(1)
    for seed, adds in ends.groupby("destination")["contribution"]:
        assert ", ".join(f"{one:.3g}" for one in adds) in said, seed
    segments = axes.collections[0].get_segments()
    assert len(segments) == found.drop_duplicates(["source", "destination"]).shape[0]
    # from left to right, and the strongest at the top
    assert all(end[0] == begin[0] + 1 for begin, end in segments)
    seeds = [one for one in axes.collections[1:] if one.get_facecolor()[0][0] > 0.8]
    assert len(seeds) == 2
    weighed = paths(k=1).assign(amount=2.0)  # without a window both are what the edge weighs
    assert "2" in [text.get_text() for text in draw_paths(weighed, axes=axes).texts]


def test_what_is_no_path_is_refused():
    with pytest.raises(ValueError, match="there are no paths: the account is a seed itself"):
        draw_paths(paths().iloc[:0])
    with pytest.raises(ValueError, match="ids of several columns are not drawn"):
        draw_paths(paths().rename(columns={"source": "0_source"}))


def test_clusters_of_a_tick_are_drawn_and_other_tables_are_refused(axes):
    window = SlidingWindow(days=5, device="cpu")
    window.append(ROWS)
    members = pd.DataFrame({"vertex": ["a", "b"], "score": [1.0, 0.5], "is_seed": [True, False]})
    draw_cluster(window.edges(), members.assign(cluster_id="1:a"), "1:a", axes=axes)
    assert axes.has_data()
    for given, words in (
        ((window.edges(), members), "members has no column 'cluster', or 'cluster_id'"),
        ((ROWS, members.assign(cluster=0)), "edges has no column 'transfers'; .*SlidingWindow"),
    ):
        with pytest.raises(ValueError, match=words):
            draw_cluster(*given, 0, axes=axes)


EDGES = pd.DataFrame({"source": [0, 0], "destination": [1, 2], "transfers": [1, 5]})
MEMBERS = pd.DataFrame({"vertex": [0, 1], "cluster": 0, "score": [1, 0.5],
                        "is_seed": [True, False]})  # fmt: skip


@pytest.mark.parametrize(
    ("members", "options", "error", "words"),
    [
        (MEMBERS.drop(columns="score"), {}, ValueError, "members has no column 'score'"),
        (MEMBERS.drop(columns="is_seed"), {}, ValueError, "members has no column 'is_seed'"),
        (dict(MEMBERS), {}, TypeError, "members must be a frame, not dict"),
        (pd.concat([MEMBERS] * 2), {}, ValueError, "several rows for 0 in cluster 0"),
        (MEMBERS, {"neighbours": None}, TypeError, "neighbours must be"),
        (MEMBERS, {"neighbours": 1.5}, TypeError, "neighbours must be"),
        (MEMBERS, {"neighbours": -3}, ValueError, "neighbours must be at least 0"),
        (MEMBERS, {"sellers": 2}, TypeError, "sellers must be a list, set or Series of ids"),
        (MEMBERS, {"sellers": "12"}, TypeError, "sellers must be a list, set or Series of ids"),
    ],
)
def test_what_cannot_be_drawn_leaves_no_figure(axes, members, options, error, words):
    from matplotlib import pyplot

    before = pyplot.get_fignums()
    with pytest.raises(error, match=words):
        draw_cluster(EDGES, members, **options)
    with pytest.raises(ValueError, match="paths has no column 'amount'"):
        draw_paths(paths().drop(columns="amount"))
    with pytest.raises(TypeError, match="paths must be a frame, as of explain, not list"):
        draw_paths([1])
    assert pyplot.get_fignums() == before


def test_ids_are_no_formulas(axes):
    names = {"a": "a$b_c$d", "b": "$\\bad$"}
    found = paths(k=9).replace(names)
    draw_paths(found, axes=axes)
    assert set(names.values()) < {text.get_text() for text in axes.texts}
    axes.figure.canvas.draw()  # which reads formulas
    ids = [text for text in axes.texts if text.get_text() in names.values()]
    assert not any(text.get_parse_math() for text in ids)
