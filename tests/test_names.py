"""Names of clusters from tick to tick, beside a twin that holds sets."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glp_rapids.fraud.names import EVENTS, Register, carried


def twin(before, clusters, tick):
    """Name sets of members after the named sets of before: a list of (name, members), by age."""
    by_founder = sorted(range(len(clusters)), key=lambda new: min(clusters[new]))
    overlap = lambda old, new: len(before[old][1] & clusters[new])  # noqa: E731
    heirs = {}
    for old in range(len(before)):
        near = [new for new in range(len(clusters)) if overlap(old, new)]
        if near:
            heirs[old] = max(near, key=lambda new: (overlap(old, new), -by_founder.index(new)))
    named, origins = {}, {}
    for new in range(len(clusters)):
        claims = [old for old, heir in heirs.items() if heir == new]
        if claims:
            best = max(claims, key=lambda old: (overlap(old, new), -old))
            named[new] = best
            origins[new] = [before[old][0] for old in claims if old != best]
    fresh = sorted(set(range(len(clusters))) - named.keys(), key=lambda new: min(clusters[new]))
    kept = sorted(named, key=named.get)
    names = [before[named[new]][0] for new in kept] + [f"{tick}:{min(clusters[n])}" for n in fresh]
    events = {}
    for name, new in zip(names, kept + fresh, strict=True):
        if new in named:
            old = before[named[new]][1]
            came, went = len(clusters[new] - old), len(old - clusters[new])
            if origins[new]:
                events[name] = "merged", origins[new], came, went
            elif came or went:
                events[name] = "grown" if came >= went else "shrunk", [], came, went
        else:
            near = [old for old in range(len(before)) if overlap(old, new)]
            parent = max(near, key=lambda old: (overlap(old, new), -old), default=None)
            event = "new" if parent is None else "split"
            events[name] = event, [before[parent][0]] if near else [], len(clusters[new]), 0
    for old in set(range(len(before))) - heirs.keys():
        events[before[old][0]] = "gone", [], 0, len(before[old][1])
    return list(zip(names, (clusters[new] for new in kept + fresh), strict=True)), events


def frames(clusters, columns, order):
    """Members by ascending id, the cluster of each, and a score of each cluster."""
    place = {new: at for at, new in enumerate(order)}
    rows = sorted((vertex, place[new]) for new, one in enumerate(clusters) for vertex in one)
    vertices = [vertex for vertex, _ in rows]
    ids = {"0": np.array(vertices, np.int64)}
    if columns == 2:
        ids = {"0": ["x"] * len(vertices), "1": ids["0"]}
    score = np.array([sum(clusters[new]) / 100 for new in order])
    found = np.array([cluster for _, cluster in rows], np.int64)
    return pd.DataFrame(ids), found, score


PARTITIONS = st.lists(st.sampled_from([-1, 0, 1, 2, 3]), min_size=9, max_size=9)


@pytest.mark.parametrize("columns", [1, 2])
@given(ticks=st.lists(PARTITIONS, max_size=5), data=st.randoms())
def test_names_are_those_of_the_twin(columns, ticks, data):
    register, expected = Register(), []
    for tick, partition in enumerate(ticks):
        clusters = [
            {vertex for vertex, label in enumerate(partition) if label == wanted}
            for wanted in sorted(set(partition) - {-1})
        ]
        order = list(range(len(clusters)))
        data.shuffle(order)
        before = register
        register, changes = carried(before, *frames(clusters, columns, order), tick)
        expected, events = twin(expected, clusters, tick)
        founders = [name if columns == 1 else with_two(name) for name, _ in expected]
        assert list(register.names) == founders
        vertices = register.ids.iloc[:, -1].to_numpy()
        for cluster, (_, members) in enumerate(expected):
            assert set(vertices[register.cluster == cluster]) == members
            assert register.score[cluster] == sum(members) / 100
        found = {
            name: (event, parents, joined, left)
            for name, event, parents, joined, left, _, _ in zip(
                *changes.alerts.values(), strict=True
            )
        }
        expected_events = events if columns == 1 else {
            with_two(name): (event, [with_two(parent) for parent in parents], came, went)
            for name, (event, parents, came, went) in events.items()
        }  # fmt: skip
        assert found == expected_events
        assert {event for event, *_ in found.values()} <= set(EVENTS)
        was = dict(zip(before.names, before.score, strict=True))
        now = dict(zip(register.names, register.score, strict=True))
        for name, delta in zip(changes.alerts["cluster_id"], changes.alerts["delta"], strict=True):
            assert delta == now.get(name, 0) - was.get(name, 0)


def with_two(name):
    tick, founder = name.split(":")
    return f'{tick}:["x", "{founder}"]'


def test_an_overlap_of_most_members_keeps_its_name():
    one = carried(Register(), *frames([{1, 2, 3}, {7, 8}], 1, [0, 1]), 4)[0]
    assert one.names == ("4:1", "4:7")
    merged, changes = carried(one, *frames([{1, 2, 3, 7, 8}], 1, [0]), 5)
    assert merged.names == ("4:1",)
    assert changes.alerts["parents"] == [["4:7"]]
    assert changes.alerts["event"] == ["merged"]
    split, changes = carried(merged, *frames([{1, 2}, {3, 7, 8}], 1, [0, 1]), 6)
    assert split.names == ("4:1", "6:1")
    assert changes.alerts["event"] == ["shrunk", "split"]
    assert set(split.ids["0"][split.cluster == 0]) == {3, 7, 8}


def test_large_integers_of_two_types_are_told_apart():
    def members(dtype, founders):
        ids = {"0": np.array([5] * len(founders)), "1": np.array(founders, dtype)}
        return pd.DataFrame(ids), np.arange(len(founders)), np.ones(len(founders))

    large = [2**60, 2**60 + 1]
    one, _ = carried(Register(), *members("int64", large), 1)
    assert one.names == tuple(f'1:["5", "{founder}"]' for founder in large)
    other, changes = carried(one, *members("uint64", large), 2)
    assert other.names == one.names
    assert changes.alerts["event"] == []
