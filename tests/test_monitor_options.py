"""What a monitor may be told: several blacklists, merchants, hubs, ages; and what it answers."""

import threading
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from cases import exhaustive
from monitors import LIMITS, assert_same_state, assert_same_tick, batches, monitor, to_pandas

from glp_rapids.device import to_host
from glp_rapids.fraud import (
    Monitor,
    SlidingWindow,
    account_scores,
    explain,
    features,
    find_clusters,
)
from glp_rapids.fraud.decay import Decay
from glp_rapids.ingest.read import as_graph

DAYS = 6


def kinds_of(seeds):
    """Every third is of another kind."""
    return {one: ("cards", "mules", "refunds")[i % 3] for i, one in enumerate(seeds.tolist())}


def inside(parts, end, days=DAYS):
    """The rows in the window after so many batches, by a look at all of them."""
    rows = pd.concat(parts[:end])
    return rows[rows["time"] > rows["time"].max() - pd.Timedelta(days=days)]


def faded_edges(rows, half_life, scale=None):
    """What pairs count by age, computed from the newest time: scores know no common factor.

    ``scale``: of amounts, which count in whole units at the beginning of a period of 8 half-lives.
    Those of the old end of a window are a few units, so they are rounded here as well.
    """
    length, zero = pd.Timedelta(half_life), pd.Timestamp(0)
    worth = 2.0 ** -((rows["time"].max() - rows["time"]) / length)
    if scale is not None:
        period = 8 * length
        end = zero + ((rows["time"].max() - zero) // period + 1) * period
        cut = np.ceil((end - rows["time"]) / length * 1024) / 1024
        worth = (rows["amount"] * scale * 2.0 ** (8 - cut)).round().clip(lower=1)
    ends = np.sort(rows[["source", "destination"]].to_numpy(), axis=1)
    frame = pd.DataFrame({"src": ends[:, 0], "dst": ends[:, 1], "w": worth})
    return frame.groupby(["src", "dst"], as_index=False).sum()


@pytest.mark.parametrize(
    ("half_life", "weight"), [("1D", "transfers"), *exhaustive(("12h", "amount"))]
)
def test_transactions_count_less_the_older_they_are(half_life, weight, device, tmp_path):
    parts, seeds = batches(every="1D")
    watch = monitor(seeds, device, half_life=half_life, weight=weight)
    # one that is given a window with rows in it
    window = SlidingWindow(days=DAYS, id="transaction", device=device)
    for part in parts[:5]:
        window.append(part)
        watch.update(part)
    late = Monitor(window, seeds, half_life=half_life, weight=weight, **LIMITS)
    late.update()
    for one, other in zip(late.window._graph("faded").arrays(),
                          watch.window._graph("faded").arrays(), strict=True):  # fmt: skip
        np.testing.assert_array_equal(to_host(one), to_host(other))
    for number, part in enumerate(parts[5:], 5):
        watch.update(part)
        late.update(part)
        scale = watch.window._scale if weight == "amount" else None
        edges = faded_edges(inside(parts, number + 1), half_life, scale)
        graph = as_graph(edges, weight="w", device="cpu")
        exact = account_scores(graph, seeds, damping=0.8, absent="drop", tol=1e-6)
        for one in (watch, late):
            scores = to_pandas(one.scores)
            assert scores["vertex"].tolist() == exact["vertex"].tolist()
            # ages are cut to a 1024th of a half-life, small counts to units
            np.testing.assert_allclose(scores["score"], exact["score"], atol=2e-3, rtol=0)
        if number % 6 == 5:
            watch.verify()
            watch.save(tmp_path / "watch")
            left, watch = watch, Monitor.open(tmp_path / "watch", device=device)
            assert_same_state(watch, left)
    epochs = {watch.window._state.engine.decay.epoch(int(part["time"].max().value // 1000))
              for part in parts}  # fmt: skip
    assert len(epochs) > 2
    with pytest.raises(ValueError, match="another monitor, now or before"):
        Monitor(watch.window, seeds, half_life="3h")


def test_ages_in_microseconds_and_in_floats_count_as_powers_of_two():
    length = 86_400_000_000
    random = np.random.default_rng(0)
    time = random.integers(-30 * length, 8 * length, 200)
    units = random.integers(0, 10**7, 200)
    for decay, times in ((Decay(length, True), time), (Decay(0.5, True), time / length / 2)):
        for number, one, worth in zip(decay.counts(times, units, 0), times, units, strict=True):
            since = Fraction(one) / Fraction(decay.half_life)
            step = since // Fraction(1, 1024)
            exact = int(worth) * 2.0 ** float(Fraction(step, 1024))
            assert abs(int(number) - max(exact, min(worth, 1))) <= 0.5 + exact * 1e-15


@pytest.mark.parametrize(("decimals", "unit"), [(0, 1), (4, 1e-4)])
def test_amounts_that_are_new_count_what_they_are_on_any_day(decimals, unit, device):
    found = []
    for day in pd.date_range("2026-01-01", periods=9, freq="10D"):
        rows = pd.DataFrame({"source": [0, 0, 2], "destination": [1, 2, 3], "time": day,
                             "amount": np.array([1.0, 100.0, 300.0]) * unit})  # fmt: skip
        for half_life in ("10D", None):
            window = SlidingWindow(5, decimals=decimals, device=device)
            watch = Monitor(window, [0], weight="amount", half_life=half_life)
            watch.update(rows)
            found.append(to_pandas(watch.scores)["score"])
    assert found[0].iloc[1] == pytest.approx(0.08, abs=0.001)
    for one in found[1:]:  # the least amount is one unit, which is rounded at any age
        np.testing.assert_allclose(one, found[0], atol=0.03)


def test_amounts_that_may_grow_beyond_64_bits_are_refused(device):
    rows = pd.DataFrame({"source": [0] * 4, "destination": [1] * 4, "time": [0.0, 1.0, 2.0, 3.0],
                         "amount": 2.0**53})  # fmt: skip
    window = SlidingWindow(5, decimals=0, device=device)
    window.append(rows)
    assert len(window) == 4
    with pytest.raises(ValueError, match="too much for 64 bits"):
        Monitor(window, [0], weight="amount", half_life=10.0)
    Monitor(window, [0], weight="amount")
    fresh = SlidingWindow(5, decimals=0, device=device)
    watch = Monitor(fresh, [0], weight="amount", half_life=10.0)
    with pytest.raises(ValueError, match="too much for 64 bits"):
        watch.update(rows)
    assert len(fresh) == 0


def test_kinds_may_be_strings_of_numpy(device, tmp_path):
    rows = pd.DataFrame({"source": [0, 1, 2], "destination": [1, 2, 3], "amount": 1.0,
                         "time": pd.Timestamp("2026-01-01")})  # fmt: skip
    kinds = dict(zip([1, 2], np.array(["mule", "atm"]), strict=True))
    watch = Monitor(SlidingWindow(5, device=device), kinds)
    watch.update(rows)
    watch.update(None, add_seeds={3: "mule"})
    assert {type(kind) for kind in watch._state.seeds} == {str}


def test_blacklists_are_kept_apart(device, tmp_path):
    parts, seeds = batches(kind="strings", every="1D")
    kinds = kinds_of(seeds)
    first = dict(list(kinds.items())[::2])
    watch = monitor(first, device, hubs=90)
    for number, part in enumerate(parts[:13]):
        late = {}
        if number == 5:
            late = {"add_seeds": kinds_of(seeds), "drop_seeds": []}
        tick = watch.update(part, **late)
        known = first if number < 5 else kinds
        anew = SlidingWindow(days=DAYS, device=device)
        anew.append(inside(parts, number + 1))
        cold = to_pandas(account_scores(anew, known, damping=0.8, absent="drop", hubs=90))
        scores = to_pandas(watch.scores)
        assert list(scores.columns) == list(cold.columns)
        named = [name for name in cold if name.startswith("score")]
        np.testing.assert_allclose(scores[named], cold[named], atol=2.01e-4, rtol=0)
        assert scores["is_seed"].equals(cold["is_seed"])
        for name in ("changes", "members"):
            frame = to_pandas(getattr(tick, name)).merge(scores[["vertex", "kind"]], on="vertex")
            assert frame["kind_x"].equals(frame["kind_y"])
        if number == 7:
            watch.verify()
            watch.save(tmp_path / "watch")
            left, watch = watch, Monitor.open(tmp_path / "watch", device=device)
            assert_same_state(watch, left)
    one = next(iter(kinds))
    for message, error, options in (
        ("pass a dict", TypeError, {"add_seeds": [one]}),
        ("kinds must be of one type", TypeError, {"add_seeds": {one: 7}}),
        ("would be of two kinds", ValueError, {"add_seeds": {one: "mules"}}),
        ("no seed", ValueError, {"drop_seeds": ["nobody"]}),
    ):
        with pytest.raises(error, match=message):
            watch.update(**options)
    watch.update(drop_seeds=[name for name, kind in kinds.items() if kind == "mules"])
    assert "score_mules" not in watch.scores


def test_merchants_carry_suspicion_and_are_no_suspects(device, tmp_path):
    parts, seeds = batches()
    payees = pd.concat(parts)["destination"].unique()
    merchants = payees[~np.isin(payees, pd.concat(parts)["source"])]
    accounts = seeds[~seeds.isin(merchants)]
    watch = monitor(accounts, device, merchants=merchants[1:])
    tick = watch.update(pd.concat(parts[:20]))
    watch.update(add_merchants=merchants[:1])
    window = SlidingWindow(days=DAYS, device=device)
    window.append(inside(parts, 20))
    options = {**LIMITS, "absent": "drop"}
    found = find_clusters(window, accounts, merchants=merchants[1:], **options)
    whole = find_clusters(window, accounts, **{**options, "minimum_size": 1})
    columns = [name for name in to_pandas(found.clusters) if name != "cluster"]
    pd.testing.assert_frame_equal(
        to_pandas(tick.clusters)[columns], to_pandas(found.clusters)[columns]
    )
    members, everybody = to_pandas(found.members), to_pandas(whole.members)
    assert set(members["vertex"]) == set(to_pandas(tick.members)["vertex"])
    assert len(members) > 10
    assert not np.isin(members["vertex"], merchants[1:]).any()
    # the same clusters as without, less their merchants
    together = everybody.merge(members, on="vertex", how="left")
    for _, cluster in together.groupby("cluster_x"):
        honest = ~cluster["vertex"].isin(merchants[1:])
        if not cluster["cluster_y"].notna().any():
            continue
        number = int(cluster["cluster_y"].dropna().iloc[0])
        row = to_pandas(found.clusters).set_index("cluster").loc[number]
        assert cluster["cluster_y"].notna().tolist() == honest.tolist()
        assert (row["size"], row["merchants"]) == (honest.sum(), (~honest).sum())
        assert row["seeds"] == cluster["is_seed_x"][honest].sum()
        assert row["score"] == pytest.approx(cluster["score_x"][honest].mean())
    assert not np.isin(to_pandas(tick.changes)["vertex"], merchants[1:]).any()
    watch.save(tmp_path / "watch")
    there = Monitor.open(tmp_path / "watch", device=device)
    assert_same_tick(there.update(parts[20]), watch.update(parts[20]))


def test_hubs_pass_nothing_on_and_giants_are_told(device):
    star = pd.DataFrame({"source": range(1, 200), "destination": 0, "amount": 1.0, "time": 0.0})
    ring = pd.DataFrame({"source": range(1, 200), "destination": np.roll(range(1, 200), 1),
                         "amount": 1.0, "time": 1.0})  # fmt: skip
    rows = pd.concat([star, ring])
    options = {"minimum_partners": 1, "minimum_share": 0.0, "minimum_score": 1e-4}
    window = SlidingWindow(days=5, device=device)
    watch = Monitor(window, [7], **options)
    with pytest.warns(UserWarning, match=r"one community holds 200 of 200 accounts.*hubs=1000"):
        watch.update(rows)
    capped = Monitor(SlidingWindow(days=5, device=device), [7], hubs=100, **options)
    capped.update(rows)
    score = to_pandas(capped.scores).set_index("vertex")["score"]
    assert score[0] == 0 < score[8]
    assert score[100] < to_pandas(watch.scores).set_index("vertex")["score"][100]
    # a hub that is a seed stays one; and it is none while its partners are few
    with pytest.warns(UserWarning, match="one community holds 200"):
        capped.update(add_seeds=[0])
    assert to_pandas(capped.scores).set_index("vertex")["score"][0] == 1
    few = Monitor(SlidingWindow(days=5, device=device), [7], hubs=100, **options)
    few.update(star[:98])
    assert to_pandas(few.scores).set_index("vertex")["score"][0] > 0
    few.update(star[98:].assign(time=1.0))
    assert to_pandas(few.scores).set_index("vertex")["score"][0] == 0
    few.verify()


@pytest.mark.gpu
def test_a_gpu_says_the_same_bits():
    parts, seeds = batches(every="1D")
    watches = [
        monitor(kinds_of(seeds), device, half_life="2D", hubs=90, merchants=seeds.iloc[:3])
        for device in ("cpu", "gpu")
    ]
    for part in parts:
        assert_same_tick(*(watch.update(part) for watch in watches))
    assert_same_state(*watches)
    watches[1].verify()


def test_verify_says_what_differs(device):
    parts, seeds = batches()
    watch = monitor(seeds, device, half_life="2D")
    watch.verify()
    for part in parts[:20]:
        watch.update(part)
    watch.verify()
    graph = watch.window._graph("faded")
    graph.weights[3] += 1
    with pytest.raises(RuntimeError, match="what pairs count by age differ at 1 of"):
        watch.verify()
    graph.weights[3] -= 1
    graph.indices[5] -= 1
    with pytest.raises(RuntimeError, match="who trades with whom differs at 1 places"):
        watch.verify()
    graph.indices[5] += 1
    watch._state.scores.states[0].residual[2] += 9
    with pytest.raises(RuntimeError, match="scores: residuals differ at 1 accounts"):
        watch.verify()


def test_a_monitor_explains_and_has_features(device):
    parts, seeds = batches()
    watch = monitor(seeds, device)
    watch.update(pd.concat(parts[:20]))
    members = to_pandas(watch.update(parts[20]).members)
    vertex = members[~members["is_seed"]]["vertex"].iloc[0]
    why = to_pandas(watch.explain(vertex, 2))
    assert why["path"].nunique() == 2
    pd.testing.assert_frame_equal(
        why, to_pandas(explain(watch.window, watch.scores, vertex, 2))
    )
    pd.testing.assert_frame_equal(
        to_pandas(watch.features(seeds, 3, absent="drop")),
        to_pandas(features(watch.window, seeds, 3, absent="drop", damping=0.8)),
    )
    watch.window.append(parts[21])
    with pytest.raises(ValueError, match="no tick has seen"):
        watch.explain(vertex)


def test_threads_take_turns():
    parts, seeds = batches()
    watch = monitor(seeds)
    watch.update(pd.concat(parts[:6]))
    numbers, window = [], SlidingWindow(days=60, device="cpu")

    def work(mine):
        for part in mine:
            numbers.append(watch.update(part).number)
            window.append(part)

    threads = [threading.Thread(target=work, args=(parts[6 + i : 18 : 4],)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers) == list(range(2, 14))
    assert len(window) == sum(map(len, parts[6:18]))
    watch.verify()


def test_bad_input():
    parts, seeds = batches()
    window = SlidingWindow(days=DAYS, device="cpu")
    window.append(parts[0])
    for name in ("seeds", "good", "merchants"):
        for ids in (["a"], pd.to_datetime(["2026-01-01"])):
            with pytest.raises(TypeError, match=name):
                Monitor(window, **{name: ids})
    for options, error, message in (
        ({"seeds": {1: "a", 2: 3}}, TypeError, "kinds must be all strings"),
        ({"seeds": {1: "a"}, "good": [1]}, ValueError, "seeds and good share 1"),
        ({"seeds": ["a"], "good": [1]}, TypeError, "good"),
        ({"hubs": 0}, ValueError, "hubs"),
        ({"half_life": "0s"}, ValueError, "half_life must be above 0"),
        ({"half_life": "soon"}, TypeError, "half_life must be a length of time"),
        ({"weight": "count"}, ValueError, "weight"),
    ):
        with pytest.raises(error, match=message):
            Monitor(SlidingWindow(days=1, device="cpu"), **options)
    Monitor(SlidingWindow(days=1, device="cpu"), half_life=0.5, refresh=0.25)  # of days
    with pytest.raises(ValueError, match="refresh must be above 0"):
        Monitor(SlidingWindow(days=1, time_unit="us", device="cpu"), refresh=0.5)
    watch = monitor(seeds.iloc[:0])
    with pytest.warns(UserWarning, match="there are no seeds"):
        watch.update(parts[0])
    watch.update(parts[1].iloc[:0], add_seeds=parts[1]["source"].iloc[:3])
    watch.update(parts[1])
    later = parts[2].assign(time=parts[2]["time"] + pd.Timedelta(days=20))
    later = later[~later["source"].isin(parts[1]["source"].iloc[:3])]
    later = later[~later["destination"].isin(parts[1]["source"].iloc[:3])]
    with pytest.warns(UserWarning, match="none of 3 seeds is in the window any more"):
        watch.update(later)


def test_what_came_twice_is_known_after_a_restart(tmp_path):
    parts, seeds = batches()
    watch = Monitor(SlidingWindow(days=DAYS, device="cpu"), seeds, **LIMITS)
    watch.update(parts[0])
    watch.update(parts[1])
    watch.save(tmp_path / "watch")
    there = Monitor.open(tmp_path / "watch", device="cpu")
    with pytest.warns(UserWarning, match="is in the window already"):
        there.update(parts[1].sample(frac=1, random_state=0))
