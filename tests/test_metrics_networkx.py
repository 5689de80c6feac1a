"""Partitions as NetworkX has them, sets of vertices and dicts, in the place of frames."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from glp_rapids import contract, label_propagation
from glp_rapids.metrics import ari, cover_f1, coverage, cpm, modularity, nmi

KARATE = nx.karate_club_graph()
FOUND = [frozenset(nodes) for nodes in nx.community.greedy_modularity_communities(KARATE)]
OTHERS = nx.community.louvain_communities(KARATE, seed=1)


def homes(communities):
    return {node: number for number, nodes in enumerate(communities) for node in nodes}


def frame(communities):
    rows = [(node, number) for number, nodes in enumerate(communities) for node in nodes]
    return pd.DataFrame(rows, columns=["vertex", "partition"])


FORMS = {
    "list": list,
    "tuple": tuple,
    "set": set,
    "iterator": iter,
    "generator": lambda communities: (set(nodes) for nodes in communities),
    "values of a dict": lambda communities: dict(enumerate(communities)).values(),
    "keys of dicts": lambda communities: [dict.fromkeys(nodes).keys() for nodes in communities],
    "with an empty one": lambda communities: [set(), *communities],
    "dict": homes,
    "dict of names": lambda found: {node: f"no. {number}" for node, number in homes(found).items()},
    "frame": frame,
}


@pytest.mark.parametrize("form", FORMS)
def test_quality_is_that_of_networkx(form, device):
    make, options = FORMS[form], {"weight": "weight", "device": device}
    expected = nx.community.modularity(KARATE, FOUND)
    assert modularity(KARATE, make(FOUND), **options) == pytest.approx(expected, rel=1e-12)
    inside, _ = nx.community.partition_quality(KARATE, FOUND)  # which counts edges
    assert coverage(KARATE, make(FOUND), device=device) == pytest.approx(inside, rel=1e-12)
    expected = sum(
        KARATE.subgraph(nodes).size("weight") - 0.3 * len(nodes) * (len(nodes) - 1) / 2
        for nodes in FOUND
    )
    found = cpm(KARATE, make(FOUND), resolution=0.3, **options)
    assert found == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("other", ["list", "dict", "frame"])
def test_agreement_is_that_of_scikit_learn(form, other):
    labels = [[homes(found)[node] for node in KARATE] for found in (FOUND, OTHERS)]
    both = lambda: (FORMS[form](FOUND), FORMS[other](OTHERS))  # noqa: E731
    assert nmi(*both()) == pytest.approx(normalized_mutual_info_score(*labels), abs=1e-14)
    assert ari(*both()) == pytest.approx(adjusted_rand_score(*labels), abs=1e-14)
    assert ari(*both()[::-1]) == ari(*labels)
    assert cover_f1(*both()) == cover_f1(frame(FOUND), frame(OTHERS))


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1))
def test_sets_agree_as_their_labels_do(pairs):
    a, b = (
        [{v for v, label in enumerate(labels) if label == one} for one in range(5)]
        for labels in zip(*pairs, strict=True)
    )
    assert nmi(a, b) == nmi(*zip(*pairs, strict=True))
    assert ari(a, b) == ari(*zip(*pairs, strict=True))


def test_ids_of_other_types():
    graph = nx.relabel_nodes(KARATE, {node: f"member {node}" for node in KARATE})
    found = [{f"member {node}" for node in nodes} for nodes in FOUND]
    expected = nx.community.modularity(graph, found)
    assert modularity(graph, found, weight="weight") == pytest.approx(expected)
    ours = label_propagation(graph)
    assert nmi(ours, homes(found)) == nmi(ours, found) == nmi(ours, frame(found))


def test_communities_are_contracted_in_their_order():
    graph = nx.Graph([(0, 1), (1, 2), (3, 4)])
    small = contract(graph, [{3, 4}, {0, 1, 2}])
    assert small.external().tolist() == [0, 1]
    assert small.weights.tolist() == [1, 2]
    named = contract(graph, {0: "a", 1: "a", 2: "a", 3: "b", 4: "b"})
    assert named.external().tolist() == ["a", "b"]
    assert named.weights.tolist() == [2, 1]


def test_communities_of_no_vertices():
    assert np.isnan(modularity(nx.null_graph(), []))
    assert np.isnan(coverage(nx.null_graph(), {}))
    assert nmi([set()], {}) == ari({}, {}) == 1


def test_sets_may_overlap_in_a_cover_only():
    cover, other = [{0, 1}, {1, 2}], [{0, 1, 2}]
    assert cover_f1(cover, cover) == 1
    assert cover_f1(cover, other) == pytest.approx(0.8)
    with pytest.raises(ValueError, match=r"a has .* 1 vertices, .*several sets, .* 1; .*cover_f1"):
        nmi(cover, other)


@pytest.mark.parametrize(
    ("found", "error", "words"),
    [
        ([{0, 1}, {1, 2}], ValueError, r"1 vertices, .*in several sets, among them 1; give each"),
        ([{0, 1}], ValueError, r"lacks 1 vertices of the graph, among them 2; give each one a com"),
        ([], ValueError, r"lacks 3 vertices of the graph"),
        ({0: 1, 2: 1}, ValueError, r"lacks 1 vertices of the graph, among them 1; give each one"),
        ([{0, 1}, {2, 9}], ValueError, r"partition holds 1 id\(s\) that are no vertex.*: 9"),
        ({0: 1, 1: 1, 2: 1, 9: 2}, ValueError, r"partition holds 1 id\(s\) that are no .*: 9"),
        ({0: 1, 1: 1, 2: None}, ValueError, "partition.* holds (a|1) null"),
        ([{0, 1}, 2], TypeError, "every community must be a set or list .*, but number 1 is 2"),
        ([0, 1], TypeError, "must be a frame .* or a list of sets of vertices, not list"),
        ([{0, 1}, {"b"}], TypeError, "partition mixes types"),
        ([{"a", "b"}, {"c"}], TypeError, "partition holds string ids"),
        (3, TypeError, "partition must be a frame .* not int"),
    ],
)
def test_what_is_no_partition_is_refused(found, error, words):
    for measure in (modularity, coverage, cpm, contract):
        with pytest.raises(error, match=words):
            measure(nx.path_graph(3), found)


@pytest.mark.parametrize("measure", [nmi, ari])
def test_agreement_refuses_what_cannot_be_compared(measure):
    for a, b, error, words in (
        ([{0}, {1}], {0: 3, 2: 3}, ValueError, "b lacks 1 vertices that a has, among them 1"),
        ([{0}], [{0}, {1}], ValueError, "a lacks 1 vertices that b has, among them 1"),
        ([{0}, {1}], [0, 1], TypeError, "dicts or sets of vertices, or both be labels"),
        (iter([0, 1]), {0: 0, 1: 1}, TypeError, "dicts or sets of vertices, or both be labels"),
        ([{0}], [{"a"}], TypeError, "integer ids in a and string ids in b"),
        ([{0}, 3], [{0}], TypeError, "a: every community must be a set .* number 1 is 3"),
    ):
        with pytest.raises(error, match=words):
            measure(a, b)
