"""The NetworkX backend: NetworkX is the twin of every function that is served."""

import doctest
import importlib.metadata
import inspect
import math
import random
import sys
from collections import Counter

import networkx as nx
import numpy as np
import pytest
from networkx.algorithms.community.quality import NotAPartition
from test_networkx_entry_points import entry_points

from glp_rapids.networkx import graph as conversion
from glp_rapids.networkx.backend import MODULES, BackendInterface
from glp_rapids.networkx.info import info

LABELS = ("fast_label_propagation_communities", "asyn_lpa_communities")
NAMES = ("label_propagation_communities", *LABELS)
CLASSES = (nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph)


@pytest.fixture(scope="module", autouse=True)
def _registered():
    """Register the backend as NetworkX does when it is imported, installed or not."""
    machinery = nx.utils.backends
    declared = importlib.metadata.EntryPoint(
        "glp_rapids", entry_points()["networkx.backends"]["glp_rapids"], "networkx.backends"
    )
    before = nx.config.backends
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(machinery.backends, "glp_rapids", declared)
        patch.setitem(machinery.backend_info, "glp_rapids", info())
        call = machinery._dispatchable._call_if_any_backends_installed
        patch.setattr(machinery._dispatchable, "__call__", call)
        nx.config.backends = nx.utils.Config(**{**before, "glp_rapids": nx.utils.Config()})
        with nx.config(warnings_to_ignore={"cache"}):
            yield
        nx.config.backends = before


def function(name):
    return getattr(nx.community, name)


def find(name, graph, **options):
    """The communities as a set of frozensets, by this backend."""
    return {frozenset(nodes) for nodes in function(name)(graph, backend="glp_rapids", **options)}


def convert(graph, *attributes):
    return BackendInterface.convert_from_nx(graph, edge_attrs=dict.fromkeys(attributes, 1))


def awkward(create_using, seed, nodes=60, edges=110):
    """Nodes and weights of many types, loops, parallel edges, isolated nodes."""
    draw = random.Random(seed)
    kinds = (
        int,
        str,
        lambda i: (i,),
        lambda i: (i, "x"),
        lambda i: frozenset({i}),
        lambda i: i + 0.5,
    )
    names = [kinds[i % len(kinds)](i) for i in range(nodes)]
    draw.shuffle(names)
    graph = create_using()
    graph.add_nodes_from(names)
    for _ in range(edges):
        ends = draw.choice(names[5:]), draw.choice(names[5:])
        weight = draw.choice([1, 2, 5, 0.5, 0.25, 0, True, np.float64(1.5), None])
        graph.add_edge(*ends, **({} if weight is None else {"weight": weight}))
    graph.add_edge(names[5], names[5], weight=3)
    return graph


def parts(graph, count, seed):
    """A random partition of the nodes."""
    draw = random.Random(seed)
    found = [set() for _ in range(count)]
    for node in graph:
        draw.choice(found).add(node)
    return found


def votes(graph, node, labels, weight, everything):
    """What a node hears, as NetworkX defines it; ``everything``: against the edges too."""
    if weight is None and not everything:
        return Counter(labels[other] for other in graph[node])
    heard = Counter()
    attribute = {"data": "no such attribute" if weight is None else weight, "default": 1}
    for _, other, amount in graph.edges(node, **attribute):
        heard[labels[other]] += amount
    if everything and graph.is_directed():
        for other, _, amount in graph.in_edges(node, **attribute):
            heard[labels[other]] += amount
    return heard


def unsettled(graph, found, weight=None, everything=False):
    """The nodes whose label is not among the most frequent around them."""
    labels = {node: number for number, nodes in enumerate(found) for node in nodes}
    heard = {node: votes(graph, node, labels, weight, everything) for node in graph}
    return [
        node for node, count in heard.items() if count and count[labels[node]] < max(count.values())
    ]


def test_what_is_announced_is_served_with_the_arguments_of_networkx():
    on_devices = {*NAMES, "modularity"}
    assert on_devices < set(info()["functions"])
    for name in info()["functions"]:
        ours = BackendInterface.__dict__[name].__func__
        theirs = getattr(nx, name, None) or function(name)
        known = [*_parameters(theirs.orig_func), *(["device"] if name in on_devices else [])]
        assert list(_parameters(ours)) == known
        for argument in set(known) - {"device"}:
            default = _parameters(theirs.orig_func)[argument].default
            assert _parameters(ours)[argument].default == default


def test_what_is_served_is_announced():
    for module in MODULES:
        for name, thing in inspect.getmembers(module, callable):
            if name in nx.utils.backends._registered_algorithms:
                assert name in info()["functions"]
                assert thing is getattr(BackendInterface, name)


def _parameters(thing):
    return inspect.signature(thing).parameters


@pytest.mark.parametrize("module", [*MODULES, conversion, sys.modules[info.__module__]])
def test_examples_in_docstrings_run(module):
    failed, tried = doctest.testmod(module)
    assert failed == 0
    assert tried >= 2


# modularity


@pytest.mark.parametrize("create_using", CLASSES)
@pytest.mark.parametrize("weight", ["weight", None, "absent"])
@pytest.mark.parametrize("seed", range(3))
def test_modularity_is_that_of_networkx(create_using, weight, seed, device):
    graph = awkward(create_using, seed)
    for count, resolution in ((1, 1), (4, 0), (9, 2.5)):
        found = parts(graph, count, seed)
        expected = nx.community.modularity(graph, found, weight, resolution)
        ours = nx.community.modularity(
            graph, iter(found), weight, resolution, backend="glp_rapids", device=device
        )
        assert type(ours) is float
        assert ours == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_modularity_of_weights_near_the_end_of_integers():
    graph = nx.Graph([(0, 1, {"weight": 2**62}), (1, 2, {"weight": 2**62}), (3, 4)])
    found = [{0, 1}, {2}, {3, 4}]
    expected = nx.community.modularity(graph, found)
    assert nx.community.modularity(graph, found, backend="glp_rapids") == pytest.approx(expected)


@pytest.mark.parametrize(
    "found",
    [
        [{0, 1}],
        [{0, 1}, {1, 2}],
        [[0, 0, 1], [2]],
        [{0, 1, 2, 3}],
        [{0, 1}, {2}, {"stranger"}],
        [],
    ],
)
def test_modularity_refuses_what_is_no_partition(found):
    for backend in ("networkx", "glp_rapids"):
        with pytest.raises(NotAPartition, match="not a valid partition"):
            nx.community.modularity(nx.path_graph(3), found, backend=backend)


@pytest.mark.parametrize("graph", [nx.null_graph(), nx.empty_graph(2, nx.DiGraph)])
def test_modularity_without_edges_divides_by_zero(graph):
    for backend in ("networkx", "glp_rapids"):
        with pytest.raises(ZeroDivisionError):
            nx.community.modularity(graph, [{node} for node in graph], backend=backend)


# communities


STABLE = [
    *((name, cls, weight) for name in LABELS for cls in CLASSES for weight in (None, "weight")),
    *(("label_propagation_communities", cls, None) for cls in (nx.Graph, nx.MultiGraph)),
]


@pytest.mark.parametrize(("name", "create_using", "weight"), STABLE)
def test_communities_are_a_stable_partition(name, create_using, weight, device):
    options = {"device": device}
    if name in LABELS:
        options |= {"weight": weight, "seed": 5}
    for seed in range(3):
        graph = awkward(create_using, seed, edges=110 - 30 * seed)
        found = find(name, graph, **options)
        assert sorted(map(hash, graph)) == sorted(hash(node) for nodes in found for node in nodes)
        if name == "asyn_lpa_communities" and graph.is_directed():
            continue  # labels need not come to rest
        everything = name == "fast_label_propagation_communities"
        assert unsettled(graph, found, weight, everything) == []


@pytest.mark.parametrize("name", NAMES)
def test_pairs_come_together(name, device):
    # where both of a pair are in one class they swap labels for ever, which must not be the end
    graph = nx.Graph([(i, i + 1000) for i in range(1000)])
    found = find(name, graph, device=device)
    assert found == {frozenset({i, i + 1000}) for i in range(1000)}


@pytest.mark.parametrize("name", NAMES)
def test_cliques_are_found_as_by_networkx(name, device):
    graph = nx.disjoint_union_all([nx.complete_graph(n) for n in range(1, 9)])
    kinds = (int, str, lambda i: (i, "x"), lambda i: frozenset({i}))
    graph = nx.relabel_nodes(graph, {i: kinds[i % 4](i) for i in graph})
    assert find(name, graph, device=device) == set(map(frozenset, function(name)(graph)))


@pytest.mark.parametrize("name", NAMES)
def test_planted_communities_are_found_as_by_networkx(name, device):
    graph = nx.planted_partition_graph(8, 30, 0.7, 0.01, seed=3)
    planted = set(map(frozenset, graph.graph["partition"]))
    options = {} if name == "label_propagation_communities" else {"seed": 1}
    assert find(name, graph, device=device, **options) == planted
    assert set(map(frozenset, function(name)(graph, **options))) == planted


@pytest.mark.parametrize("name", NAMES)
def test_results_are_of_the_types_of_networkx(name):
    for graph in (nx.null_graph(), nx.path_graph(["a", "b"])):
        ours, theirs = (function(name)(graph, backend=b) for b in ("glp_rapids", "networkx"))
        assert type(ours) is type(theirs)
        ours, theirs = list(ours), list(theirs)
        assert ours == theirs
        assert all(type(nodes) is set for nodes in ours)


def test_label_propagation_communities_are_undirected():
    for graph in (nx.DiGraph([(0, 1)]), convert(nx.DiGraph([(0, 1)]))):
        with pytest.raises(nx.NetworkXNotImplemented):
            nx.community.label_propagation_communities(graph)
    with pytest.raises(nx.NetworkXNotImplemented):
        BackendInterface.label_propagation_communities(convert(nx.DiGraph([(0, 1)])))


@pytest.mark.parametrize("create_using", CLASSES)
@pytest.mark.parametrize("weight", [None, "weight"])
@pytest.mark.parametrize("everything", [True, False])
def test_directions_and_parallel_edges_count_as_in_networkx(create_using, weight, everything):
    graph = awkward(create_using, 6)
    there = convert(graph, "weight").csr(weight, count=everything, fold=everything, device="cpu")
    weights = np.ones(there.indices.size) if there.weights is None else there.weights
    for node, place in (own := {node: i for i, node in enumerate(graph)}).items():
        row = slice(there.indptr[place], there.indptr[place + 1])
        heard = dict(zip(there.indices[row].tolist(), weights[row].tolist(), strict=True))
        assert heard == votes(graph, node, own, weight, everything)


@pytest.mark.parametrize("name", LABELS)
def test_weights_decide(name):
    graph = nx.Graph([("a", "b"), ("b", "c"), ("c", "d")])
    graph["a"]["b"]["w"] = graph["c"]["d"]["w"] = 3
    assert find(name, graph, weight="w") == {frozenset("ab"), frozenset("cd")}


SEEDS = (
    7,
    random.Random(7),
    np.random.RandomState(7),
    np.random.default_rng(7),
    np.random,
    None,
)


@pytest.mark.parametrize("seed", SEEDS, ids=lambda seed: type(seed).__name__)
@pytest.mark.parametrize("name", LABELS)
def test_seeds_of_every_kind(name, seed):
    graph = nx.gnm_random_graph(60, 90, seed=1)
    found = find(name, graph, seed=seed)
    assert unsettled(graph, found) == []


@pytest.mark.parametrize("name", LABELS)
def test_a_seed_fixes_the_result_and_none_does_too(name):
    graph = nx.gnm_random_graph(300, 450, seed=1)
    state = random.getstate()
    by_seed = [find(name, graph, seed=seed) for seed in (None, *range(6))]
    again = [find(name, graph, seed=seed) for seed in (None, *range(6))]
    assert by_seed == again
    assert random.getstate() == state
    assert len(set(map(frozenset, by_seed))) > 1
    generator = random.Random(3)
    assert find(name, graph, seed=generator) == by_seed[4]
    assert generator.getstate() != random.Random(3).getstate()


@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_edges_and_the_device_change_nothing(name, device):
    graph = nx.gnm_random_graph(300, 450, seed=1)
    edges = list(graph.edges)
    random.Random(1).shuffle(edges)
    shuffled = nx.empty_graph(300)
    shuffled.add_edges_from((v, u) for u, v in edges)
    assert find(name, graph, device="cpu") == find(name, shuffled, device=device)


# what is declined


BAD_WEIGHTS = (
    (-1, "holds negative weights, the least -1"),
    (math.inf, "infinite weights or NaN"),
    (math.nan, "infinite weights or NaN"),
    ("3", "no real numbers"),
    (None, "no real numbers"),
    (2**70, "no real numbers"),
    (1j, "no real numbers"),
    ([1, 2], "sequences"),
)


@pytest.mark.parametrize(("value", "reason"), BAD_WEIGHTS, ids=lambda value: repr(value)[:9])
@pytest.mark.parametrize("name", [*LABELS, "modularity"])
def test_what_are_no_weights_is_declined(name, value, reason):
    graph = nx.path_graph(4)
    graph.edges[1, 2]["w"] = value
    arguments = (graph, [{0, 1}, {2, 3}]) if name == "modularity" else (graph,)
    assert reason in BackendInterface.can_run(name, arguments, {"weight": "w"})
    assert BackendInterface.can_run(name, arguments, {"weight": None}) is True
    with pytest.raises(NotImplementedError, match=reason):
        convert(graph, "w")
    with pytest.raises(NotImplementedError, match="not implemented by 'glp_rapids'"):
        function(name)(*arguments, weight="w", backend="glp_rapids")


def test_networkx_runs_what_is_declined():
    graph = nx.path_graph(4)
    graph.edges[1, 2]["weight"] = -0.5
    found = [{0, 1}, {2, 3}]
    expected = nx.community.modularity(graph, found)
    with nx.config(backend_priority=["glp_rapids"]):
        assert nx.community.modularity(graph, found) == expected
        assert nx.community.modularity(graph, found, weight=None) == pytest.approx(1 / 6)
        # a converted graph is there now, and the weights are still not taken
        assert nx.community.modularity(graph, found) == expected
        assert nx.community.modularity(graph, found, None, -1) == pytest.approx(2 / 3 + 0.5)


@pytest.mark.parametrize("resolution", [-1, math.inf, math.nan, "1", None])
def test_other_resolutions_are_declined(resolution):
    arguments = nx.path_graph(2), [{0, 1}], None, resolution
    assert "resolution must be" in BackendInterface.can_run("modularity", arguments, {})


def test_other_functions_and_arguments_are_declined():
    graph = nx.path_graph(3)
    assert BackendInterface.can_run("pagerank", (graph,), {}) == "pagerank is not served"
    reason = BackendInterface.can_run(LABELS[0], (graph,), {"weight": len})
    assert reason.startswith("weight must be an edge attribute")
    reason = BackendInterface.can_run("modularity", (convert(graph), [{0, 1, 2}]), {})
    assert reason == "the graph was converted without the edge attribute 'weight'"
    priority = nx.config(backend_priority=["glp_rapids"])
    with priority, pytest.raises(TypeError, match="communities"):
        nx.community.modularity(graph)
    with pytest.raises(NotImplementedError, match="not all can be kept"):
        BackendInterface.convert_from_nx(graph, preserve_edge_attrs=True)


# graphs there and back


@pytest.mark.parametrize("create_using", CLASSES)
def test_there_and_back(create_using):
    graph = awkward(create_using, 4)
    there = convert(graph, "weight")
    assert repr(there) == f"glp_rapids {graph}".replace("named ", "")
    assert (list(there), len(there)) == (list(graph), len(graph))
    assert next(iter(graph)) in there
    assert "stranger" not in there
    back = BackendInterface.convert_to_nx(there)
    assert type(back) is create_using
    assert list(back) == list(graph)
    kept = sorted((str(ends), float(weight)) for *ends, weight in back.edges(data="weight"))
    given = graph.edges(data="weight", default=1)
    assert kept == sorted((str(ends), float(weight)) for *ends, weight in given)
    bare = BackendInterface.convert_to_nx(convert(graph))
    assert sorted(map(str, bare.edges())) == sorted(map(str, graph.edges()))
    assert not any(data for *_, data in bare.edges(data=True))


def test_what_is_no_graph_comes_back_as_it_is():
    result = [{1}, {2}]
    assert BackendInterface.convert_to_nx(result) is result


def test_a_converted_graph_is_taken_as_it_is():
    graph = nx.karate_club_graph()
    there = convert(graph, "weight")
    for name in NAMES:
        assert {frozenset(nodes) for nodes in function(name)(there)} == find(name, graph)
    found = parts(graph, 3, 1)
    ours = nx.community.modularity(there, found)
    assert ours == pytest.approx(nx.community.modularity(graph, found))


def test_a_graph_is_converted_once():
    graph = nx.karate_club_graph()
    with nx.config(backend_priority=["glp_rapids"]):
        for _ in range(2):
            list(nx.community.asyn_lpa_communities(graph))
            nx.community.label_propagation_communities(graph)
        (kept,) = graph.__networkx_cache__["backends"]["glp_rapids"].values()
    assert kept.csr() is kept.csr()
    assert kept.csr(count=True, fold=True) is not kept.csr()
    graph.add_edge(0, "new")
    assert {0, "new"} <= set().union(
        *nx.community.asyn_lpa_communities(graph, backend="glp_rapids")
    )
