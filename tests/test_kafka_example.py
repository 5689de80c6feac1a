"""The recipe for Kafka, on files in the place of partitions: crashes lose and double nothing."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from test_monitor import batches

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
    assert {one["value"] for one in refused} == {"b'not json'", "b'{\"transaction\": 1}'"}
    assert "duplicates=600" in capsys.readouterr().out
    assert account_scores(watch.window, seeds, absent="drop")["is_seed"].sum() > 0
