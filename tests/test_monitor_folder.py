"""A monitor beside itself, taken up from its folder, whatever befell it there."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from monitors import IDS, LIMITS, assert_same_state, assert_same_tick, batches, monitor, to_pandas

from glp_rapids.common import atomic_file
from glp_rapids.fraud import Monitor, SlidingWindow, journal


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
        with pytest.raises(ValueError, match="truncated") as caught:
            Monitor.open(folder, device="cpu")
        notes = ["without this file the monitor opens at tick 4"] if name == names[-2] else []
        assert getattr(caught.value, "__notes__", []) == notes
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
    runs = [
        subprocess.Popen(
            [sys.executable, script, tmp_path / seed, "100", seed], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, "NUMBA_NUM_THREADS": "1"},
        )
        for seed in ("0", "1")  # two at once: most of the time they sleep
    ]  # fmt: skip
    compared = 0
    for stdout, stderr in [run.communicate() for run in runs]:
        said = re.fullmatch("100 kills, ([0-9]+) compared, 0 wrong\n", stdout)
        assert said, stdout + stderr[-2000:]
        compared += int(said[1])
    assert compared > 100


OTHER = """
import sys
from monitors import batches, monitor
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


def test_a_file_is_no_folder(tmp_path, device):
    path = tmp_path / "watch.py"
    path.write_text("mine")
    with pytest.raises(ValueError, match=r"path: .*watch\.py is a file; name a folder"):
        monitor([], device).save(path)
    assert path.read_text() == "mine"


def test_a_state_of_other_rules_is_refused_where_scores_follow_from_them(tmp_path, monkeypatch):
    rows = pd.DataFrame({"source": [0], "destination": [1], "amount": 1.0, "time": [0.0]})
    aged = {"half_life": 1.0, "weight": "amount"}
    for number, (rules, how, opens) in enumerate([
        (1, {}, True), (1, {"half_life": 1.0}, True), (1, {"hubs": 3}, False), (1, {}, False),
        (1, aged, False), (2, {"hubs": 3}, True), (2, aged, True), (2, {}, True), (2, {}, False),
        (journal.RULES + 1, {"hubs": 3}, False),
    ]):  # fmt: skip
        watch = Monitor(SlidingWindow(5, device="cpu"), [0], **how)
        watch.update(rows)
        with monkeypatch.context() as before:
            before.setattr(journal, "RULES", rules)
            watch.save(tmp_path / str(number))
        if not how and not opens:  # what came since would be told to nobody
            watch.update(rows.assign(time=1.0))
            watch.save(tmp_path / str(number))
        watch.close()
        if opens:
            watch = Monitor.open(tmp_path / str(number), device="cpu")
            # what comes next is not noted beside a state of other rules
            watch.update(rows.assign(time=1.0))
            watch.save(tmp_path / str(number))
            watch.close()
            assert_same_state(Monitor.open(tmp_path / str(number), device="cpu"), watch)
            continue
        with pytest.raises(ValueError, match=r"is of another version, .*; start a new Monitor"):
            Monitor.open(tmp_path / str(number), device="cpu")
