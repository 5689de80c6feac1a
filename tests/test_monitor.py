"""A monitor beside windows made anew at every tick, and beside itself, taken up from its folder."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_names import twin

from glp_rapids.common import atomic_file
from glp_rapids.datasets import drifting_transactions
from glp_rapids.device import to_device, to_host
from glp_rapids.fraud import Monitor, SlidingWindow, account_scores
from glp_rapids.fraud.clusters import grouped
from glp_rapids.fraud.score_state import ScoreState

DAYS, ACCOUNTS = 24, 500
LIMITS = {"minimum_size": 5, "minimum_partners": 3}
TABLES = ("alerts", "changes", "clusters", "members")


def world(seed=0):
    return drifting_transactions(
        6_000, accounts=ACCOUNTS, merchants=130, days=DAYS, rings=6, ring_accounts=(8, 12),
        sleep_days=(3, 6), merging=0.5, towns=5, seed=seed,
    )  # fmt: skip


IDS = {
    "integers": lambda ids: ids,
    "strings": lambda ids: "v" + ids.astype(str).str.zfill(4),
    "dates": lambda ids: pd.Timestamp("2020-01-01") + pd.to_timedelta(ids, unit="h"),
}


def batches(seed=0, kind="integers", every="12h"):
    frame, truth = world(seed)
    for name in ("source", "destination"):
        frame[name] = IDS[kind](frame[name])
    seeds = IDS[kind](truth["vertex"].drop_duplicates().sort_values()[::4])
    parts = [part for _, part in frame.groupby(frame["time"].dt.floor(every))]
    return parts, seeds


def monitor(seeds, device="cpu", **options):
    window = SlidingWindow(days=6, id="transaction", device=device)
    return Monitor(window, seeds, **{**LIMITS, **options})


def assert_same_tick(one, other):
    assert one.number == other.number
    assert one.change == other.change
    for name in TABLES:
        left, right = (to_pandas(getattr(tick, name)) for tick in (one, other))
        pd.testing.assert_frame_equal(left, right, check_exact=True)


def to_pandas(frame):
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame


def assert_same_state(one, other):
    pd.testing.assert_frame_equal(to_pandas(one.scores), to_pandas(other.scores), check_exact=True)
    for left, right in zip(one.window.graph().arrays(), other.window.graph().arrays(), strict=True):
        np.testing.assert_array_equal(to_host(left), to_host(right))
    assert one._state.tick == other._state.tick
    assert one._state.register.names == other._state.register.names
    assert len(one.window) == len(other.window)
    assert one.window.newest == other.window.newest


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
        pd.testing.assert_frame_equal(scores, cold, check_exact=False, atol=2.01e-4, rtol=0)
        score = watch._state.scores.scores
        is_seed = to_device(to_host(scores["is_seed"]), graph.device)
        found = grouped(graph, anew.graph("amount"), score, is_seed, watch._settings.limits)
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
            changed = both[(both["score_x"] - both["score_y"]).abs() > 2e-4]
            changes = to_pandas(tick.changes)
            assert changes["vertex"].tolist() == changed["vertex"].tolist()
            np.testing.assert_array_equal(changes["previous"], changed["score_y"])
        before = scores
    assert {"new", "grown", "shrunk", "gone"} <= events


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
    np.testing.assert_allclose(
        to_host(watch.scores["score"]), to_host(other.scores["score"]), atol=2e-4, rtol=0
    )


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
    with pytest.raises(ValueError, match="no scores yet"):
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
    ],
)
def test_bad_options(options, message):
    window = options.pop("window", SlidingWindow(days=1, device="cpu"))
    with pytest.raises((TypeError, ValueError), match=message):
        Monitor(window, **options)


def test_a_directed_window_is_refused():
    with pytest.raises(ValueError, match="window is directed"):
        Monitor(SlidingWindow(days=1, directed=True, device="cpu"))


# ---------------------------------------------------------------- in a folder


@pytest.mark.parametrize("kind", IDS)
def test_what_is_taken_up_goes_on_as_if_nothing_had_been(device, tmp_path, kind, monkeypatch):
    monkeypatch.setattr("glp_rapids.fraud.journal.AT_ONCE", 5)
    parts, seeds = batches(2, kind)
    watch = monitor(seeds, device, good=seeds.iloc[:1].tolist()[:0], refresh="2D")
    folder, files = tmp_path / "watch", set()
    for number, part in enumerate(parts[:30]):
        late = {"add_seeds": seeds.iloc[:1]} if number == 9 else {}
        watch.update(part, **late)
        if number % 3 == 1:
            watch.save(folder)
            files |= {path.name.split("-")[0] for path in folder.glob("*.glp")}
            assert len(list(folder.iterdir())) <= 8
        if number % 7 == 4:
            watch.save(folder)
            watch, left = Monitor.open(folder, device=device), watch
            assert_same_state(watch, left)
            again = left.update(parts[number + 1])
            tick = Monitor.open(folder, device=device).update(parts[number + 1])
            assert_same_tick(tick, again)
    assert files == {"state", "batch"}


def test_what_the_caller_does_to_the_window_is_kept(tmp_path):
    parts, seeds = batches()
    window, folder = SlidingWindow(days=6, id="transaction", device="cpu"), tmp_path / "watch"
    window.append(parts[0])
    watch = Monitor(window, seeds, **LIMITS)
    watch.save(folder)
    assert_same_window(Monitor.open(folder, device="cpu"), watch)
    changes = {
        "append": lambda window: window.append(parts[3]),
        "advance": lambda window: window.advance(window.newest + np.timedelta64(1, "s")),
    }
    for number, change in enumerate(changes.values()):
        watch.update(parts[2 * number + 1])
        watch.save(folder)
        change(watch.window)
        with pytest.raises(ValueError, match="no tick has seen"):
            watch.save(folder)
        watch.update(parts[2 * number + 2])
        watch.save(folder)
        there = Monitor.open(folder, device="cpu")
        assert_same_state(there, watch)
        again = Monitor.open(folder, device="cpu")
        assert_same_tick(there.update(parts[6]), again.update(parts[6]))


def assert_same_window(one, other):
    assert len(one.window) == len(other.window)
    pd.testing.assert_frame_equal(one.window.edges(), other.window.edges())


def test_options_and_frames_of_the_caller_stay_his(tmp_path, monkeypatch):
    monkeypatch.setattr("glp_rapids.fraud.journal.SHARE", 0)
    parts, seeds = batches()
    options = {"minimum_size": np.int64(5), "minimum_score": np.float32(0.03), "refresh":
               np.timedelta64(12, "h").astype("m8[ns]"), "minimum_partners": 3}  # fmt: skip
    watch, folder = Monitor(SlidingWindow(days=6, device="cpu"), seeds, **options), tmp_path / "w"
    watch.update(parts[0])
    watch.save(folder)
    for part in parts[1:4]:
        mine = part.astype({"time": "datetime64[us]"})
        watch.update(mine)
        mine.loc[:, "time"] += pd.Timedelta(days=100)
    watch.save(folder)
    there = Monitor.open(folder, device="cpu")
    assert there._settings == watch._settings
    assert_same_state(there, watch)
    (folder / "batch-00000002.glp").rename(tmp_path / "aside")
    (folder / "batch-00000003.glp").rename(folder / "batch-00000002.glp")
    (tmp_path / "aside").rename(folder / "batch-00000003.glp")
    with pytest.raises(ValueError, match=r"batch-00000002\.glp is damaged .* of tick 3"):
        Monitor.open(folder, device="cpu")


def test_an_interrupt_behind_a_tick_loses_nothing(tmp_path, monkeypatch):
    parts, seeds = batches()
    watch, folder = monitor(seeds), tmp_path / "watch"
    for part in parts[:3]:
        watch.update(part)
    watch.save(folder)
    watch.update(parts[3])
    watch._journal.since = []  # as after Ctrl-C between a tick and the note of it
    watch.update(parts[4])
    watch.save(folder)
    assert_same_state(Monitor.open(folder, device="cpu"), watch)


@pytest.mark.parametrize(("first", "then"), [("integers", "strings"), ("strings", "integers")])
def test_a_window_that_was_empty_takes_other_ids(first, then):
    parts, _ = batches(0, first)
    others, _ = batches(0, then)
    watch = monitor([])
    with pytest.warns(UserWarning, match="there are no seeds"):
        watch.update(parts[0])
    for part in parts[1:3]:
        watch.update(part)
    watch.window.advance(others[20]["time"].min())
    assert len(watch.window) == 0
    tick = watch.update(others[20].assign(transaction=others[20]["transaction"] + 10**6))
    assert tick.change.added == len(others[20])
    assert (to_pandas(watch.scores)["score"] == 0).all()


def test_a_write_that_fails_leaves_the_tick_before(tmp_path, monkeypatch):
    parts, seeds = batches()
    watch, folder = monitor(seeds), tmp_path / "watch"
    states = {}
    watch.update(parts[0])
    watch.save(folder)
    replace, calls = os.replace, iter(range(10**6))

    def sometimes(*paths):
        if next(calls) % 3 == 1:
            raise OSError(28, "No space left on device", str(paths[1]))
        return replace(*paths)

    monkeypatch.setattr(atomic_file.os, "replace", sometimes)
    failed = 0
    for number, part in enumerate(parts[1:16]):
        states[watch._state.tick] = to_pandas(watch.scores)
        before = Monitor.open(folder, device="cpu")._state.tick
        watch.update(part)
        states[watch._state.tick] = to_pandas(watch.scores)
        if number % 2:  # several files a save
            continue
        try:
            watch.save(folder)
        except OSError as error:
            assert "No space left" in str(error)  # noqa: PT017
            failed += 1
        there = Monitor.open(folder, device="cpu")
        assert before <= there._state.tick <= watch._state.tick
        pd.testing.assert_frame_equal(there.scores, states[there._state.tick], check_exact=True)
    assert failed >= 3
    monkeypatch.setattr(atomic_file.os, "replace", replace)
    watch.save(folder)
    assert_same_state(Monitor.open(folder, device="cpu"), watch)


def test_damage_is_found_and_strangers_are_refused(tmp_path):
    parts, seeds = batches()
    watch, folder = monitor(seeds), tmp_path / "watch"
    for part in parts[:4]:
        watch.update(part)
        watch.save(folder)
    second = Monitor.open(folder, device="cpu")
    watch.update(parts[4])
    watch.save(folder)
    second.update(parts[4])
    with pytest.raises(ValueError, match="holds a monitor at tick 5"):
        second.save(folder)
    with pytest.raises(ValueError, match="holds a monitor at tick 5"):
        monitor(seeds).save(folder)
    names = sorted(path.name for path in folder.glob("*.glp"))
    assert [name.split("-")[0] for name in names].count("batch") >= 2
    rng = np.random.default_rng(0)
    for name in names:
        path = folder / name
        content = path.read_bytes()
        for _ in range(4):
            damaged = bytearray(content)
            damaged[rng.integers(len(damaged))] ^= 1 << rng.integers(8)
            path.write_bytes(damaged)
            with pytest.raises(ValueError, match=name):
                Monitor.open(folder, device="cpu")
        path.write_bytes(content[: len(content) // 2])
        with pytest.raises(ValueError, match="truncated"):
            Monitor.open(folder, device="cpu")
        path.write_bytes(content)
    batches_there = [name for name in names if name.startswith("batch")]
    (folder / batches_there[0]).rename(tmp_path / "aside")
    with pytest.raises(ValueError, match=f"{batches_there[0]} is missing"):
        Monitor.open(folder, device="cpu")
    with pytest.raises(FileNotFoundError, match="there is no monitor"):
        Monitor.open(tmp_path, device="cpu")


@pytest.mark.exhaustive
def test_monitors_killed_200_times_lose_at_most_the_last_tick(tmp_path):
    pytest.importorskip("fcntl", reason="children are forked")
    script = Path(__file__).with_name("kill_monitor.py")
    path = os.pathsep.join([str(script.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])])
    run = subprocess.run(
        [sys.executable, script, tmp_path, "200"], capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": path, "NUMBA_NUM_THREADS": "1"},
    )  # fmt: skip
    said = re.fullmatch("200 kills, ([0-9]+) compared, 0 wrong\n", run.stdout)
    assert said, run.stdout + run.stderr[-2000:]
    assert int(said[1]) > 100


OTHER = """
import sys
from test_monitor import batches, monitor
from glp_rapids.fraud import Monitor
try:
    Monitor.open(sys.argv[1], device="cpu")
except BlockingIOError as error:
    print(error)
parts, seeds = batches()
watch = monitor(seeds)
watch.update(parts[0])
try:
    watch.save(sys.argv[1])
except BlockingIOError as error:
    print(error)
watch.save(sys.argv[2])
sys.stdin.read()
"""


def test_a_folder_belongs_to_one_process_while_it_lives(tmp_path):
    pytest.importorskip("fcntl", reason="no locks of POSIX")
    parts, seeds = batches()
    mine, other = (tmp_path / name for name in ("mine", "other"))
    watch = monitor(seeds)
    watch.update(parts[0])
    watch.save(mine)
    here = Path(__file__).parent
    with subprocess.Popen(
        [sys.executable, "-c", OTHER, mine, other], stdout=subprocess.PIPE, stdin=subprocess.PIPE,
        text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (here, here.parent)))},
    ) as process:  # fmt: skip
        for _ in range(2):
            assert f"mine belongs to process {os.getpid()}" in process.stdout.readline()
        while not (other / "state-00000001.glp").exists():
            assert process.poll() is None
            time.sleep(0.01)
        with pytest.raises(BlockingIOError, match=f"other belongs to process {process.pid}"):
            Monitor.open(other, device="cpu")
        process.kill()  # what a dead process held blocks nobody
        process.wait()
    leftover = other / ".glp-rapids-0123456789abcdef.part"
    leftover.write_bytes(b"half of it")
    assert_same_state(Monitor.open(other, device="cpu"), watch)
    assert not leftover.exists()
    (mine / leftover.name).write_bytes(b"a thread of this process is at it")
    assert_same_state(Monitor.open(mine, device="cpu"), watch)
    assert (mine / leftover.name).exists()
