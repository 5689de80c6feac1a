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
