"""A monitor beside windows made anew at every tick."""

import pickle

import numpy as np
import pandas as pd
import pytest
from exact_scores import as_near, times_as_far
from monitors import TABLES, assert_same_state, assert_same_tick, batches, monitor, to_pandas
from test_names import twin

from glp_rapids.device import to_device, to_host
from glp_rapids.fraud import Monitor, SlidingWindow, account_scores
from glp_rapids.fraud.clusters import grouped
from glp_rapids.fraud.score_state import ScoreState


@pytest.mark.parametrize("kind", ["integers", "strings"])
def test_every_tick_is_what_a_window_made_anew_says(device, kind):
    parts, seeds = batches(kind=kind)
    watch = monitor(seeds, device)
    named, seen, events, before = [], [], set(), None
    for number, part in enumerate(parts, 1):
        tick = watch.update(part)
        seen.append(part)
        anew = SlidingWindow(days=6, device=device)
        anew.append(pd.concat(seen))
        assert (tick.number, tick.change.added) == (number, len(part))
        graph = watch.window.graph()
        for one, other in zip(graph.arrays(), anew.graph().arrays(), strict=True):
            np.testing.assert_array_equal(to_host(one), to_host(other))
        cold = to_pandas(account_scores(anew, seeds, damping=0.8, absent="drop"))
        scores = to_pandas(watch.scores)
        assert scores.drop(columns="score").equals(cold.drop(columns="score"))
        known = np.flatnonzero(scores["is_seed"])
        assert as_near(scores["score"], cold["score"], 2.01e-4, graph.to("cpu"), known)
        score = watch._state.scores.scores
        is_seed = to_device(to_host(scores["is_seed"]), graph.device)
        units, limits = anew._graph("units"), watch._settings.limits
        found = grouped(graph, units, score, is_seed, limits, scale=anew._scale)
        members, cluster = to_host(found.member), to_host(found.cluster)
        clusters = [set(members[cluster == i].tolist()) for i in range(cluster.max(initial=-1) + 1)]
        ids = to_pandas(graph.external())
        clusters = [{ids[place] for place in one} for one in clusters]
        named, expected = twin(named, clusters, number)
        alerts = to_pandas(tick.alerts)
        assert {
            row.cluster_id: (row.event, list(row.parents), row.joined, row.left)
            for row in alerts.itertuples()
        } == expected
        assert alerts["score"].is_monotonic_decreasing or alerts["score"].isna().any()
        events |= {event for event, *_ in expected.values()}
        names = to_pandas(tick.members).groupby("cluster_id")["vertex"].apply(set).to_dict()
        assert names == dict(named)
        assert to_pandas(tick.clusters)["size"].tolist() == [len(one) for one in clusters]
        if before is not None:
            both = scores.merge(before, on="vertex", how="left").fillna({"score_y": 0.0})
            noise = 2e-4 * times_as_far(graph.to("cpu"), known)
            changed = both[(both["score_x"] - both["score_y"]).abs() > noise]
            changes = to_pandas(tick.changes)
            assert changes["vertex"].tolist() == changed["vertex"].tolist()
            np.testing.assert_array_equal(changes["previous"], changed["score_y"])
        before = scores
    assert {"new", "grown", "shrunk", "gone"} <= events


def test_frames_of_suspects_are_those_of_their_tick_whenever_somebody_looks(device):
    parts, seeds = batches(kind="strings")
    watches = [monitor(seeds, device), monitor(seeds, device)]
    before = []
    for part in parts[:30]:
        one, other = (watch.update(part) for watch in watches)
        assert len(one.members) >= len(one.clusters) == one.number_of_clusters
        before.append((one, other))
    assert before[-1][0].number_of_clusters > 1
    for one, other in before:  # of which nobody has looked at the other one's
        assert_same_tick(one, pickle.loads(pickle.dumps(other)))
        assert other.members is other.members
        number, change, alerts, changes, clusters, members = other
        assert (number, change) == (other.number, other.change)
        frames = alerts, changes, clusters, members
        assert all(one is getattr(other, name) for one, name in zip(frames, TABLES, strict=True))
        assert other.members.attrs["glp"] == other.alerts.attrs["glp"]


@pytest.mark.gpu
@pytest.mark.parametrize("kind", ["integers", "strings", "dates"])
def test_frames_of_cudf_have_the_types_of_batches(cudf, kind):
    parts, seeds = batches(kind=kind)
    watch = monitor(seeds, "gpu")
    for part in parts[:30]:
        batch = cudf.from_pandas(part)
        tick = watch.update(batch)
    assert len(tick.members)
    assert all(isinstance(getattr(tick, name), cudf.DataFrame) for name in TABLES)
    assert tick.members["vertex"].dtype == tick.changes["vertex"].dtype == batch["source"].dtype
    text = cudf.Series(["a"]).dtype
    assert tick.alerts["cluster_id"].dtype == tick.alerts["event"].dtype == text
    assert tick.clusters["cluster_id"].dtype == tick.members["cluster_id"].dtype == text
    together = tick.members.merge(tick.clusters, on="cluster_id")
    assert len(together) == len(tick.members)
    assert len(tick.members.merge(tick.alerts, on="cluster_id", how="left")) == len(tick.members)


def test_a_large_account_that_is_listed_has_changed(device):
    """Its score, now known, is off by nothing, however large it is."""
    rows = pd.DataFrame({"source": 0, "destination": np.arange(1, 4_001), "amount": 1.0,
                         "time": pd.Timestamp("2026-01-01")})  # fmt: skip
    watch = Monitor(SlidingWindow(days=5, device=device), [1], tol=0.1)
    watch.update(rows)
    changes = to_pandas(watch.update(add_seeds=[0]).changes)
    assert changes[changes["vertex"] == 0]["score"].tolist() == [1.0]


def test_ids_of_before_are_found_among_those_of_now():
    from glp_rapids.fraud.kernels.matching import places_of

    for before, now in (([], [1]), ([1, 4], []), ([-2, 1, 4, 9], [-3, -2, 4, 5, 9, 11])):
        place = np.empty(len(before), np.int64)
        places_of(np.array(before, int), np.array(now, int), place)
        assert place.tolist() == [now.index(one) if one in now else -1 for one in before]


def test_rows_in_another_order_are_the_same_bits(device):
    parts, seeds = batches(1)
    one, other = monitor(seeds, device), monitor(seeds[::-1], device, refresh=None)
    for number, part in enumerate(parts):
        shuffled = part.sample(frac=1, random_state=number)
        assert_same_tick(one.update(part), other.update(shuffled))
    assert_same_state(one, other)


def test_a_refresh_starts_from_nothing_once_a_period(device, monkeypatch):
    parts, seeds = batches()
    watch, other = monitor(seeds, device, refresh="3D"), monitor(seeds, device)
    colds, make = [], ScoreState.__init__

    def counted(state, graph, *arguments):
        colds.append(watch.window.newest)
        make(state, graph, *arguments)

    for part in parts[:24]:
        other.update(part)
        with monkeypatch.context() as patch:
            patch.setattr(ScoreState, "__init__", counted)
            watch.update(part)
    newest = [part["time"].max() for part in parts[:24]]
    periods = [int(np.datetime64(one, "D").astype(int)) // 3 for one in newest]
    first = [newest[i] for i in range(24) if i == 0 or periods[i] != periods[i - 1]]
    assert colds == first
    assert 4 <= len(colds) <= 5
    one, two = to_pandas(watch.scores), to_pandas(other.scores)
    known, graph = np.flatnonzero(one["is_seed"]), watch.window.graph().to("cpu")
    assert as_near(one["score"], two["score"], 2e-4, graph, known)


def test_seeds_come_and_go_and_good_accounts_pass_nothing_on(device):
    parts, seeds = batches()
    known = set(pd.concat([part["source"] for part in parts[8:12]]))
    seeds = seeds[seeds.isin(known)]
    good = [seeds.iloc[0]]
    watch = monitor(seeds.iloc[1:5], device, good=good)
    for part in parts[:12]:
        watch.update(part)
    scores = to_pandas(watch.scores).set_index("vertex")["score"]
    assert scores[good[0]] == 0
    assert scores[seeds.iloc[1]] == 1
    state = watch._state
    for message, options in {
        "drop_seeds holds 1 id": {"drop_seeds": [-5]},
        "seeds and good share 1": {"add_seeds": good},
        "add_seeds": {"add_seeds": 7},
    }.items():
        with pytest.raises((TypeError, ValueError), match=message):
            watch.update(parts[12], **options)
        assert watch._state is state
    watch.update(add_seeds=seeds.iloc[5:7], drop_seeds=[seeds.iloc[1]])
    scores = to_pandas(watch.scores).set_index("vertex")["score"]
    assert scores[seeds.iloc[1]] < 1
    assert (scores[seeds.iloc[5:7]] == 1).all()


def test_what_is_refused_leaves_all_as_it_was(device):
    parts, seeds = batches()
    watch, other = monitor(seeds, device), monitor(seeds, device)
    for part in parts[:10]:
        watch.update(part)
        other.update(part)
    for bad in (
        parts[10].drop(columns="amount"), parts[10].assign(source="x"),
        parts[10].assign(amount=-1.0), 7,
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError)):
            watch.update(bad)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("glp_rapids.fraud.monitor_steps.grouped", interrupt)
        with pytest.raises(KeyboardInterrupt):
            watch.update(parts[10])
    assert_same_state(watch, other)
    assert_same_tick(watch.update(parts[10]), other.update(parts[10]))


def interrupt(*arguments):
    raise KeyboardInterrupt


def test_a_window_that_empties_ends_all_clusters(device):
    parts, seeds = batches()
    watch = monitor(seeds, device)
    first = watch.update()
    assert len(first.alerts) == len(first.members) == 0
    while not len(tick := watch.update(parts.pop(0)).clusters):
        assert parts
    names = set(to_pandas(tick)["cluster_id"])
    watch.window.advance(watch.window.newest + np.timedelta64(7, "D"))
    tick = watch.update()
    assert len(watch.window) == 0
    alerts = to_pandas(tick.alerts)
    assert set(alerts["cluster_id"]) == names
    assert (alerts["event"] == "gone").all()
    with pytest.raises(ValueError, match="no scores: the window is empty"):
        _ = watch.scores


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"damping": 1.0}, "damping must be below 1"),
        ({"tol": 0}, "tol"),
        ({"refresh": 0}, "refresh must be above 0"),
        ({"refresh": "xyz"}, "refresh must be a length of time"),
        ({"minimum_size": 0}, "minimum_size"),
        ({"good": [1], "seeds": [1, 2]}, "seeds and good share 1"),
        ({"seeds": 7}, "seeds must be a list"),
        ({"window": 3}, "window must be a SlidingWindow"),
        ({"window": SlidingWindow(days=1, amount=None, device="cpu"), "weight": "amount"},
         "weight='amount', but the window has amount=None"),
    ],
)
def test_bad_options(options, message):
    window = options.pop("window", SlidingWindow(days=1, device="cpu"))
    with pytest.raises((TypeError, ValueError), match=message):
        Monitor(window, **options)


def test_a_directed_window_is_refused():
    with pytest.raises(ValueError, match="window is directed"):
        Monitor(SlidingWindow(days=1, directed=True, device="cpu"))
