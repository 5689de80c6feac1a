"""Graphs and programs that are run within a limit of memory."""

import dataclasses
import gc
import re
from functools import partial

import graphs
import numpy as np
import pandas as pd
import pytest
from programs import PROGRAMS

import glp_rapids
from glp_rapids import as_graph
from glp_rapids.device import LackOfMemory

STREAMED = ("streamed plain", "streamed packed")
SELECTED = ["only isolated", "self-loops", "hub", "power law", "uneven weights", "directed",
            "directed weighted", "several columns"]  # fmt: skip


class Wavering(glp_rapids.Program):
    """Scores of its own, volumes, and labels that are said to fewer in every third sweep."""

    count_volumes = True

    @staticmethod
    def pick_label(v, sweep, state):
        return v if sweep % 3 == 2 and v % 5 == 0 else state.labels[v]

    @staticmethod
    def label_score(v, label, freq, state):
        return freq * freq / (1.0 + state.volume[label])


EVERY = {**PROGRAMS, "wavering": partial(glp_rapids.propagate, program=Wavering(), max_iter=9)}


def assert_same(found, expected):
    pd.testing.assert_frame_equal(found, expected)
    reports = found.attrs["glp"], expected.attrs["glp"]
    layers = [report.get("layers", [report]) for report in reports]
    for one, other in zip(*layers, strict=True):
        for name in ("sweeps", "explored", "changed", "converged"):
            assert one[name] == other[name], name


def reported(found):
    report = found.attrs["glp"]
    return report.get("layers", [report])[-1]


def directions(graph):
    return ("in", "out", "both") if graph.directed else ("in",)


def lack(call, *arguments, **options):
    """By how many bytes a limit is too low, as the error says; 0: it is not."""
    try:
        call(*arguments, **options)
    except LackOfMemory as error:
        words = r"memory_limit=([\d,]+) bytes is (?:at least )?([\d,]+) too little"
        said = re.search(words, str(error))
        limit, lacking = (int(number.replace(",", "")) for number in said.groups())
        assert limit == options["memory_limit"]
        return lacking
    return 0


def least(call, *arguments, **options):
    """The least limit under which a call runs, found by what its errors say."""
    limit = 1
    for _ in range(4):
        lacking = lack(call, *arguments, memory_limit=limit, **options)
        if not lacking:
            return limit
        limit += lacking
    raise AssertionError("errors do not say how much is enough")


def large(n=4_000, m=120_000, seed=1, weighted=False, directed=False):
    """A graph of some hundred thousand entries, with hubs."""
    pairs = np.array(graphs.power_law_pairs(n, m, seed)).T
    weights = (np.random.default_rng(seed).random(m),) if weighted else ()
    return as_graph((*pairs, *weights), vertices=np.arange(n), directed=directed, device="cpu")


def bare(graph):
    """The same graph without what runs left on it."""
    if not graph.scheme:
        return dataclasses.replace(graph, _derived={})
    lists = dataclasses.replace(graph.lists, _derived={})
    return dataclasses.replace(graph, lists=lists, _derived={})


def assert_an_interrupt_gives_memory_back(graph, **how):
    import cupy

    pool = cupy.get_default_memory_pool()
    gc.collect()  # of tests before this one
    before = pool.used_bytes()

    def interrupt(facts):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        glp_rapids.label_propagation(graph, progress=interrupt, **how)
    gc.collect()  # pytest keeps the frames of what was raised
    assert pool.used_bytes() == before
    found = glp_rapids.label_propagation(graph, **how)
    assert_same(found, glp_rapids.label_propagation(graph, device="cpu"))


LARGE = {
    "undirected": {}, "weighted": {"weighted": True}, "directed": {"directed": True},
    "directed, weighted": {"weighted": True, "directed": True},
}  # fmt: skip
