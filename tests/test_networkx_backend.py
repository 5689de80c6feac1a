"""The NetworkX backend: what it announces, declines and converts, and NetworkX as its twin."""

import doctest
import inspect
import math
import sys

import networkx as nx
import networkx_graphs
import pytest
from networkx_graphs import CLASSES, LABELS, NAMES, awkward, convert, find, function, parts

from glp_rapids.networkx import graph as conversion
from glp_rapids.networkx.backend import MODULES, BackendInterface
from glp_rapids.networkx.info import info

_registered = networkx_graphs.registered  # a fixture


def test_what_is_announced_is_served_with_the_arguments_of_networkx():
    on_devices = {*NAMES, "modularity"}
    assert on_devices < set(info()["functions"])
    for name in info()["functions"]:
        ours = BackendInterface.__dict__[name].__func__
        theirs = getattr(nx, name, None) or function(name)
        known, served = _parameters(theirs.orig_func), list(_parameters(ours))
        by_place = [one for one, more in known.items() if more.kind is not more.KEYWORD_ONLY]
        assert served[: len(by_place)] == by_place
        others = {"device"} if name in on_devices else set()
        # what Leiden's method takes in NetworkX from 3.7 on
        others |= {"metric", "theta"} if name.startswith("leiden") else set()
        assert {*served} == {*known} | others
        for argument, more in known.items():
            assert _parameters(ours)[argument].default == more.default


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
