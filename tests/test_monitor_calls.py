"""Calls of a monitor and its window from within one another, and what they are given."""

import pandas as pd
import pytest

from glp_rapids.fraud import Monitor, SlidingWindow


@pytest.mark.parametrize("inner", ["append", "advance", "update", "save"])
def test_a_callback_cannot_change_what_is_being_updated(inner, tmp_path):
    window = SlidingWindow(days=9, device="cpu")
    watch = Monitor(window, [1])
    row = pd.DataFrame({"source": [1], "destination": [2], "amount": 1.0, "time": [1.0]})
    watch.update(row)
    calls = {
        "append": lambda: window.append(row), "advance": lambda: window.advance(5),
        "update": lambda: watch.update(row), "save": lambda: watch.save(tmp_path / "state"),
    }  # fmt: skip
    said = []

    def within(facts):
        with pytest.raises(RuntimeError, match=f"{inner} was called from within a call"):
            calls[inner]()
        said.append(facts)

    watch.update(row.assign(time=2.0), progress=within)
    assert said
    assert len(window) == 2
    watch.verify()
    calls[inner]()  # now it can


def test_another_monitor_of_the_window_waits_for_the_update():
    window = SlidingWindow(days=9, device="cpu")
    first, second = Monitor(window, [1]), Monitor(window, [2])
    row = pd.DataFrame({"source": [1], "destination": [2], "amount": 1.0, "time": [1.0]})

    def within(facts):
        with pytest.raises(RuntimeError, match="update was called from within a call"):
            second.update(row)

    first.update(row, progress=within)
    assert len(window) == 1
    second.update()
    assert second.scores["is_seed"].tolist() == [False, True]


def test_seeds_are_dropped_whatever_their_kind():
    watch = Monitor(SlidingWindow(days=9, device="cpu"), {1: "a", 2: "b"})
    row = pd.DataFrame({"source": [1], "destination": [2], "amount": 1.0, "time": [1.0]})
    watch.update(row)
    with pytest.raises(TypeError, match=r"drop_seeds are ids alone, whose kinds are not looked at"):
        watch.update(drop_seeds={1: "b"})
    watch.update(drop_seeds=[1])
    assert watch.scores.set_index("vertex")["is_seed"].to_dict() == {1: False, 2: True}
