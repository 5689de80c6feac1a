"""Every variant of label propagation beside its twin, and the options that both take."""

from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
import reference
import reference_variants as variants
from hypothesis import strategies as st

from glp_rapids import (
    as_graph,
    label_propagation,
    layered_label_propagation,
    seeded_label_propagation,
    speaker_listener,
)
from glp_rapids.propagation import run

# Among them are all values of every option, though not all pairs.
CLASSIC_OPTIONS = [
    {"tol": 0.0},
    {"tol": 0.0, "explore": 3, "classes": 4, "seed": 7, "tie_break": "max"},
    {"tol": 0.05, "explore": 3, "tie_break": "hash", "seed": 2**32 - 1, "direction": "out"},
    {"tol": 0.0, "explore": 0, "classes": 1, "retain": False, "tie_break": "hash"},
    {"tol": 0.0, "explore": 0, "classes": 4, "retain": False, "direction": "both"},
    {"tol": 0.0, "explore": 3, "classes": 4, "retain": False, "tie_break": "max"},
    {"tol": 0.0, "explore": 0, "update": "sync", "retain": False, "direction": "out"},
    {"tol": 0.2, "explore": 3, "update": "sync", "tie_break": "max", "direction": "both"},
    {"tol": 1.0, "explore": 0},
    {"max_iter": 1, "explore": 10, "direction": "both"},
    {"max_iter": 1, "explore": 0, "classes": 100},
    {"max_iter": 0},
]
LAYERED_OPTIONS = [
    {"tol": 0.0},
    {"tol": 0.01, "explore": 3, "classes": 4, "tie_break": "max", "direction": "both"},
    {"tol": 0.0, "explore": 0, "update": "sync", "retain": False, "direction": "out"},
    {"max_iter": 0},
]
LISTENER_OPTIONS = [
    {},
    {"classes": 4, "seed": 3, "max_labels": 2, "threshold": 0.2, "direction": "both"},
    {"update": "sync", "max_iter": 7, "max_labels": 1, "direction": "out"},
    {"threshold": 0.0, "max_labels": 50, "max_iter": 12},
    {"max_iter": 1, "threshold": 0.5},
    {"max_iter": 0},
]
SEEDED_OPTIONS = [
    {},
    {"damping": 1.0, "tie_break": "max", "direction": "out"},
    {"max_hops": 2, "retain": False, "direction": "both"},
    {"update": "semi", "classes": 4, "max_iter": 6, "damping": 0.3},
    {"tie_break": "hash", "seed": 5, "retain": False, "max_iter": 20},
    {"max_hops": 0},
    {"max_iter": 0},
]
ITERATIONS = 30


@st.composite
def options_of(draw, *names):
    """Draw values for some of the named options."""
    values = {
        "update": st.sampled_from(["semi", "sync"]),
        "classes": st.sampled_from([1, 4, 16]),
        "explore": st.sampled_from([0, 3, 10]),
        "tie_break": st.sampled_from(["min", "max", "hash"]),
        "retain": st.booleans(),
        "direction": st.sampled_from(["in", "out", "both"]),
        "tol": st.sampled_from([0.0, 0.1, 0.5]),
        "seed": st.integers(0, 2**32 - 1),
        "max_iter": st.integers(0, 15),
        "skip_inactive": st.booleans(),
    }
    return draw(st.fixed_dictionaries({}, optional={name: values[name] for name in names}))


def host_graph(edges):
    return as_graph(**edges, device="cpu")


def twin_arguments(graph, options):
    """Split options into the rows that a twin reads and the options that it knows."""
    rows = graph.rows(options.get("direction", "in"))
    others = {name: options[name] for name in options if name not in ("direction", "skip_inactive")}
    every = range(graph.number_of_vertices)
    others["words"] = [reference.id_word(identity) for identity in external(graph, every)]
    return (rows.indptr, rows.indices, rows.weights), others


def external(graph, labels):
    ids = graph.external(np.asarray(labels, dtype=np.int64))
    ids = ids.to_pandas() if hasattr(ids, "to_pandas") else ids
    return list(ids.itertuples(index=False)) if isinstance(ids, pd.DataFrame) else ids.tolist()


def ids_in(result, name):
    """The ids in column ``name``, or in ``0_name``, ``1_name``, as a list."""
    columns = [column for column in result if column == name or column[1:] == f"_{name}"]
    if len(columns) == 1:
        return result[columns[0]].tolist()
    return list(result[columns].itertuples(index=False))


def assert_classic_equals_twin(edges, device, options):
    options = {"max_iter": ITERATIONS, "tol": 0.0, **options}
    graph = host_graph(edges)
    rows, known = twin_arguments(graph, options)
    labels, changed = reference.label_propagation(*rows, **known)
    result = label_propagation(**edges, device=device, **options)
    assert result["partition"].tolist() == reference.renumbered(labels), options
    if len(labels):
        assert result.attrs["glp"]["changed"] == changed, options
    origin = label_propagation(graph, device=device, renumber=False, **options)
    assert ids_in(origin, "partition") == external(graph, labels), options
    assert ids_in(result, "vertex") == external(graph, range(len(labels)))


def with_float_weights(graph):
    """Spare a variant the builds for other weights: they differ by one conversion."""
    if graph.weights is None:
        return graph
    return replace(graph, weights=graph.weights.astype(np.float64), _derived={})


def assert_layered_equals_twin(edges, device, options, gammas=(0, 0.3, 1, 7)):
    options = {"max_iter": ITERATIONS, "tol": 0.0, **options}
    graph = with_float_weights(host_graph(edges))
    rows, known = twin_arguments(graph, options)
    twins = variants.layered_label_propagation(*rows, gammas=gammas, **known)
    result = layered_label_propagation(graph, gammas=gammas, device=device, **options)
    expected = [part for labels, _ in twins.values() for part in reference.renumbered(labels)]
    assert result["partition"].tolist() == expected, options
    assert result["gamma"].tolist() == list(np.repeat(gammas, graph.number_of_vertices))
    assert ids_in(result, "vertex") == external(graph, range(graph.number_of_vertices)) * len(
        gammas
    )
    if graph.number_of_vertices:
        reports = [report["changed"] for report in result.attrs["glp"]["layers"]]
        assert reports == [changed for _, changed in twins.values()], options


def assert_cover_equals_twin(edges, device, options):
    graph = with_float_weights(host_graph(edges))
    rows, known = twin_arguments(graph, options)
    twin = variants.renumbered_cover(variants.speaker_listener(*rows, **known))
    result = speaker_listener(graph, device=device, **options)
    expected = []
    for vertex, kept in enumerate(twin):
        expected += [(vertex, label, kept[label]) for label in kept]
    ids = [name for name in result if name.endswith("vertex")]
    found_vertices = graph.vertex_index(result[ids[0]] if len(ids) == 1 else result[ids])
    found = zip(
        found_vertices.tolist(), result["partition"].tolist(), result["frequency"].tolist(),
        strict=True,
    )  # fmt: skip
    assert sorted(found) == sorted(expected), options
    frequency = result["frequency"].to_numpy()
    one_vertex = found_vertices[1:] == found_vertices[:-1]
    assert np.all(np.diff(found_vertices) >= 0)
    assert np.all(np.diff(frequency)[one_vertex] <= 0), "the strongest first"


@contextmanager
def scale_of_the_run():
    """Catch the power of two that turns votes into integers."""
    caught = []
    workload_of = run.workload_of

    def catching(*arguments):
        workload = workload_of(*arguments)
        caught.append(Fraction(workload.scale))
        return workload

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "workload_of", catching)
        yield caught


def assert_seeded_equals_twin(edges, device, options, seeds):
    """Compare, with the seeds given as {index: label}."""
    graph = host_graph(edges)
    rows, known = twin_arguments(graph, options)
    places = external(graph, list(seeds))
    with scale_of_the_run() as scale:
        result = seeded_label_propagation(
            graph, dict(zip(places, seeds.values(), strict=True)), device=device, **options
        )
    names = sorted(set(seeds.values()))
    codes = {vertex: names.index(label) for vertex, label in seeds.items()}
    labels, scores, hops, changed = variants.seeded_label_propagation(
        *rows, seeds=codes, scale=scale[0], symmetric=not graph.directed, **known
    )
    expected = [None if label < 0 else names[label] for label in labels]
    assert [None if pd.isna(label) else label for label in result["label"]] == expected, options
    assert result["score"].tolist() == scores, options
    assert [-1 if pd.isna(hop) else hop for hop in result["hop"]] == hops, options
    if graph.number_of_vertices:
        assert result.attrs["glp"]["changed"] == changed, options
