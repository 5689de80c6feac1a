"""Bench agreement: the same answer in every place, and as in an earlier run."""

import dataclasses
import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from bench_tables import tables_of

from glp_rapids import label_propagation
from glp_rapids.bench import agreement
from glp_rapids.device import gpu_available

SMALL = ("agreement", "--graphs", "football", "web-300")


@pytest.mark.exhaustive
def test_agreement_runs_everything_in_every_place(data):
    [rows] = tables_of(*SMALL).values()
    places = [place for place, (device, _) in agreement.PLACES.items()
              if device == "cpu" or gpu_available()]  # fmt: skip
    assert [(row["graph"], row["run"]) for row in rows] == [
        (graph, run) for graph in SMALL[2:] for run in agreement.RUNS
    ]
    assert {(row["places"], row["same"]) for row in rows} == {(len(places), "yes")}
    # runs differ in their labels, as far as they can on a small graph
    assert len({row["digest"] for row in rows}) > len(rows) / 2


def test_agreement_tells_who_differs(monkeypatch):
    def others(graph):
        return dataclasses.replace(graph, indices=graph.indices[::-1].copy(), _derived={})

    monkeypatch.setitem(agreement.PLACES, "elsewhere", ("cpu", others))
    options = "--graphs", "web-300", "--runs", "defaults", "layered"
    for row in tables_of("agreement", *options)[agreement.TITLE]:
        assert row["same"] == "no: elsewhere"


def test_agreement_with_an_earlier_run(monkeypatch, tmp_path):
    before = tmp_path / "before.json"
    options = "agreement", "--graphs", "web-900", "--runs", "defaults", "seeded"
    before.write_text(json.dumps(found := tables_of(*options)))
    digests = [row["digest"] for row in found[agreement.TITLE]]
    again = tables_of(*options, "--against", str(before))[agreement.TITLE]
    assert [row["as before"] for row in again] == ["yes", "yes"]
    call = partial(label_propagation, seed=1)
    monkeypatch.setitem(agreement.RUNS, "defaults", (call, False))
    again = tables_of(*options, "--against", str(before))[agreement.TITLE]
    assert [row["as before"] for row in again] == [f"no, {digests[0]}", "yes"]
    before.write_text("{}")
    with pytest.raises(ValueError, match="is not what `bench agreement --json` prints"):
        tables_of(*options, "--against", str(before))


def test_digests_are_of_values_and_order():
    frame = pd.DataFrame({"vertex": ["a", "b"], "score": [0.1, 0.2]})
    others = (frame[::-1], frame.assign(score=[0.1, 0.2 + 1e-16]), frame.assign(vertex=["a", "c"]),
              frame.rename(columns={"score": "hop"}))  # fmt: skip
    assert agreement.digest(frame) == agreement.digest(frame.astype({"vertex": object}))
    numbers = pd.DataFrame({"vertex": [1, 2]})
    assert agreement.digest(numbers) == agreement.digest(numbers.astype(np.int32))
    assert len({agreement.digest(one) for one in (frame, *others)}) == 5
