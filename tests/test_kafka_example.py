"""The recipe for Kafka, on files in the place of partitions: crashes lose and double nothing."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from monitors import batches

from glp_rapids.fraud import SlidingWindow, account_scores

PATH = Path(__file__).parents[1] / "examples" / "kafka_monitor.py"


@pytest.fixture
def recipe():
    spec = importlib.util.spec_from_file_location("kafka_monitor", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Crash(BaseException):
    """As the end of a process is: nobody catches it."""


@pytest.mark.filterwarnings("ignore:one community holds", "ignore:none of .* seeds is in")
def test_a_topic_is_watched_through_crashes(recipe, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(recipe, "AT_ONCE", 600)
    parts, seeds = batches(1)
    rows = pd.concat(parts).sort_values("time", ignore_index=True)
    lines = [json.dumps(row) for row in
             rows.assign(time=rows["time"].astype(str)).to_dict("records")]  # fmt: skip
    lines[40:40] = ["not json", '{"transaction": 1}']
    for partition in range(3):
        path = tmp_path / f"payments-{partition}.jsonl"
        path.write_text("\n".join(lines[partition::3]) + "\n")
    folder, now = tmp_path / "watch", rows["time"].max()
    commits, crashes = 0, 0
    commit = recipe.FileConsumer.commit

    def sometimes(consumer, asynchronous):
        nonlocal commits
        commits += 1
        if commits % 4 == 2:
            raise Crash  # saved, and not committed
        commit(consumer)

    monkeypatch.setattr(recipe.FileConsumer, "commit", sometimes)
    while True:
        watch = recipe.watched(folder, seeds.tolist())
        try:
            recipe.run(
                recipe.consumer_of(f"file:{tmp_path}", "payments"), watch, folder, now, False
            )
            break
        except Crash:
            crashes += 1
    assert crashes >= 3
    whole = SlidingWindow(days=30)
    whole.append(rows)
    pd.testing.assert_frame_equal(watch.window.edges(), whole.edges())
    assert len(watch.window) == len(rows)
    watch.verify()
    again = recipe.watched(folder, [])
    np.testing.assert_array_equal(again.scores["score"], watch.scores["score"])
    assert again._settings.hubs == 5_000
    refused = [json.loads(line) for line in
               (tmp_path / "watch-refused.jsonl").read_text().splitlines()]  # fmt: skip
    assert {one["value"] for one in refused} == {"not json", '{"transaction": 1}'}
    assert "duplicates=600" in capsys.readouterr().out
    assert account_scores(watch.window, seeds, absent="drop")["is_seed"].sum() > 0


@pytest.mark.filterwarnings("ignore:one community holds", "ignore:none of .* seeds is in")
def test_one_bad_message_stops_nobody(recipe, tmp_path):
    def message(number, **other):
        row = {"transaction": number, "source": number % 5, "destination": 5 + number % 3,
               "amount": 1.5, "time": f"2026-01-01 00:{number:02}:00"}  # fmt: skip
        return json.dumps({**row, **other}).encode()

    bad = [
        message(30, time="soon"), message(31, time=None), message(32, time=1e300), b"\xff", b"[]",
        b"[" * 100_000, message(33, amount=-1), message(34, source="v"), message(35, amount=None),
        message(36, time="2026-03-01 00:00:00"),
    ]  # fmt: skip
    good = [message(i) for i in range(16)] + [message(16, time="2026-01-01T01:16:00+01:00")]
    path, folder = tmp_path / "payments-0.jsonl", tmp_path / "watch"
    path.write_bytes(b"\n".join([*good[:9], *bad, *good[9:]]) + b"\n" + message(17))
    consumer = recipe.consumer_of(f"file:{tmp_path}", "payments")
    watch = recipe.watched(folder, [0, 77])
    recipe.run(consumer, watch, folder, "2026-03-02", False)
    assert len(watch.window) == len(good)
    assert watch.window.newest == pd.Timestamp("2026-01-01 00:16")
    refused = (tmp_path / "watch-refused.jsonl").read_text().splitlines()
    texts = {one.decode() if one != b"\xff" else str(one) for one in bad}
    assert {json.loads(line)["value"] for line in refused} == texts
    assert len(refused) == len(bad)

    class Tombstone(recipe.FileConsumer.Message):
        def value(self):
            return None

    assert recipe.rows_of([Tombstone(b"")], tmp_path / "other").empty
    with path.open("ab") as file:  # what was half a line is whole now
        file.write(b"\n")
    assert [one.value() for one in consumer.consume(9, 0.01)] == [message(17)]
    assert consumer.consume(9, 0.01) == []
    watch = recipe.watched(folder, [0, 1, 77])  # somebody was put on the list meanwhile
    assert watch.scores["vertex"][watch.scores["is_seed"]].tolist() == [0, 1]
