"""A second engine on the seam of engines: slow and short, whole arrays of NumPy, step by step."""

import numpy as np
import pytest
from graphs import GRAPHS

import glp_rapids
from glp_rapids.common.fixed_point import fixed_of_float
from glp_rapids.common.hashing import mix_array
from glp_rapids.propagation import engines
from glp_rapids.propagation.engines.stepped import SteppedEngine
from glp_rapids.propagation.options import Options
from glp_rapids.propagation.schedule import class_lists, merged
from glp_rapids.propagation.ties import TIE_MAX, TIE_MIN


class NumpyEngine(SteppedEngine):
    """Classic label propagation on plain rows; each class falls into three groups."""

    def __init__(self, workload, compiled, fields):
        self.rows, self.labels, self.scale = workload.rows, fields["labels"], workload.scale
        self.classes = workload.classes
        self.id_words = workload.id_words
        self.class_indptr, self.vertices = class_lists(
            self.id_words, self.labels.size, self.classes
        )

    def start(self):
        """Every vertex says its own name already."""

    def begin(self, rule):
        self.changed, self.winners = 0, []

    def groups(self, rule, number):
        first, last = merged(self.class_indptr, rule.span)[number : number + 2]
        return np.array_split(self.vertices[first:last], 3)

    def votes(self, entries):
        weights = self.rows.weights
        if weights is None:
            return np.ones(entries.size, np.int64)
        if weights.dtype.kind == "i":
            return weights[entries]
        return fixed_of_float(weights[entries].astype(float), self.scale).astype(np.int64)

    def evaluate(self, rule, number, group):
        rows, n = self.rows, self.labels.size
        starts, sizes = rows.indptr[group], np.diff(rows.indptr)[group]
        row = np.repeat(np.arange(group.size), sizes)
        entries = np.arange(row.size) + np.repeat(starts - np.cumsum(sizes) + sizes, sizes)
        pair, of_entry = np.unique(
            row * n + self.labels[rows.indices[entries]], return_inverse=True
        )
        score = np.zeros(pair.size, np.int64)
        np.add.at(score, of_entry, self.votes(entries))
        row, label = np.divmod(pair, n)
        key = {TIE_MIN: label, TIE_MAX: -label}.get(rule.tie_break)
        if key is None:
            key = mix_array(self.id_words.of(label), rule.tie_seed)
        kept = (label == self.labels[group][row]) & rule.retain
        best_first = np.lexsort((label, key, ~kept, -score, row))
        winners = best_first[np.unique(row[best_first], return_index=True)[1]]
        self.winners.append((group[row[winners]], label[winners]))

    def update(self, rule, number):
        for vertices, labels in self.winners:
            self.changed += int((self.labels[vertices] != labels).sum())
            self.labels[vertices] = labels
        self.winners.clear()

    def report(self):
        return self.changed


OPTIONS = {
    "defaults": {},
    "synchronous": {"update": "sync", "explore": 0, "retain": False, "max_iter": 9},
    "by hash, in few classes": {"tie_break": "hash", "classes": 3, "seed": 7},
    "the largest wins": {"tie_break": "max", "explore": 2, "retain": False, "max_iter": 12},
}


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", GRAPHS)
def test_a_slow_engine_on_the_seam_gives_the_same_labels(name, options, monkeypatch):
    graph = glp_rapids.as_graph(**GRAPHS[name](), device="cpu")
    expected = glp_rapids.label_propagation(graph, **OPTIONS[options])
    monkeypatch.setitem(engines.ENGINES["cpu", "plain"], "auto", lambda: NumpyEngine)
    found = glp_rapids.label_propagation(graph, **OPTIONS[options])
    assert found.equals(expected)
    assert found.attrs["glp"]["changed"] == expected.attrs["glp"]["changed"]


def test_every_strategy_has_an_engine_and_every_engine_a_strategy():
    """The names that `Options` takes are those in the table of engines."""
    named = {name for of_form in engines.ENGINES.values() for name in of_form}
    for name in named:
        assert Options(strategy=name).strategy == name
    with pytest.raises(ValueError, match="strategy must be one of") as info:
        Options(strategy="none of them")
    said = str(info.value)
    assert all(repr(name) in said for name in named)
    assert said.split(", not ")[0].count("'") == 2 * len(named)
