"""The ways to hold neighbour lists: which a graph can go, and what is said of the others."""

import itertools
from types import SimpleNamespace

import graphs
import numpy as np
import pytest

import glp_rapids
from glp_rapids import CompressedGraph, as_graph, compress, label_propagation
from glp_rapids.device import LackOfMemory
from glp_rapids.propagation import ways
from glp_rapids.propagation.engines import ENGINES, cpu_arrays
from glp_rapids.propagation.memory import budget_of
from glp_rapids.propagation.options import Options
from glp_rapids.propagation.variants.classic import Classic

# ---------------------------------------------------------------- options


EDGES = graphs.edges(graphs.two_cliques())


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"memory_limit": 0}, ValueError, "memory_limit must be at least 1 byte, not 0"),
        ({"memory_limit": -1}, ValueError, "memory_limit must be at least 1 byte, not -1"),
        ({"memory_limit": "40XB"}, ValueError, "memory_limit must be .*not '40XB'"),
        ({"memory_limit": True}, TypeError, "memory_limit must be .*not True"),
        ({"memory_limit": float("nan")}, TypeError, "memory_limit must be .*not nan"),
        ({"memory_limit": "900TB"}, ValueError, r"at most the [\d,]+ bytes that the cpu has"),
        ({"way": "mixed"}, ValueError, "way must be one of 'auto', 'plain', .*not 'mixed'"),
        ({"way": "hybrid"}, ValueError, "way must be 'plain' .*not 'hybrid'; a CPU alone has no"),
        ({"way": None}, ValueError, "way must be one of"),
        ({"way": ["plain"]}, ValueError, "way must be one of"),
        ({"way": "packed", "directed": True, "direction": "both"}, ValueError,
         "way must be 'plain' or 'streamed plain' here, not 'packed'; direction='both' may name"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("call", [label_propagation, glp_rapids.speaker_listener])
def test_bad_input(call, options, error, words):
    with pytest.raises(error, match=words) as caught:
        call(**EDGES, **{"device": "cpu", **options})
    assert "\n" not in str(caught.value)


def test_limits_are_checked_before_the_graph_is_looked_at():
    for options in ({"memory_limit": "40XB"}, {"memory_limit": "900TB"}, {"way": "fast"}):
        with pytest.raises(ValueError, match=r"memory_limit|way"):
            label_propagation(object(), device="cpu", **options)


def test_a_compressed_graph_is_not_streamed_plain():
    graph = compress(**EDGES, device="cpu")
    with pytest.raises(ValueError, match=r"or 'streamed packed' or 'plain' here.*as_graph"):
        label_propagation(graph, way="streamed plain")
    assert label_propagation(graph, way="plain").attrs["glp"]["way"] == "plain"


def test_a_graph_that_is_packed_for_a_run_is_packed_once():
    graph = as_graph(**EDGES, device="cpu")
    for _ in range(2):
        report = label_propagation(graph, way="packed").attrs["glp"]
        assert (report["way"], report["compressed"]) == ("packed", "packed")
    assert isinstance(graph._derived["packed"], CompressedGraph)


def test_layers_say_which_way_they_went():
    found = glp_rapids.layered_label_propagation(
        **EDGES, device="cpu", gammas=[0, 1], way="streamed plain", memory_limit="100MB"
    )
    report = found.attrs["glp"]
    assert (report["way"], report["memory_limit"]) == ("streamed plain", 10**8)
    assert [layer["way"] for layer in report["layers"]] == ["streamed plain"] * 2


# ---------------------------------------------------------------- what a GPU will do


def of_a_gpu(**facts):
    """What is asked of a graph before a run, of one that lies on a GPU."""
    given = {"device": "gpu", "scheme": None, "directed": False, "weights": None,
             "number_of_vertices": 1_000, "number_of_edges": 9_000, "index_dtype": np.dtype("i4"),
             "nbytes": 5_000, **facts}  # fmt: skip
    return SimpleNamespace(**given)


def test_lists_on_a_gpu_are_not_streamed_to_it():
    for way, scheme, words in (
        ("streamed plain", None, r"pass graph\.to\('cpu'\), or take 'plain'"),
        ("streamed plain", "packed", r"pass graph\.to_graph\(\), or take 'packed'"),
        ("streamed packed", None, r"in host memory that are undirected.*device='cpu'"),
        ("streamed packed", "packed", r"in host memory that are undirected.*device='cpu'"),
    ):
        with pytest.raises(ValueError, match=words):
            budget_of(of_a_gpu(scheme=scheme), Classic(), Options(way=way))


def test_ways_of_a_gpu_are_those_of_the_graphs_form():
    assert ways.ways_of(of_a_gpu(), Options()) == ("plain",)
    assert ways.ways_of(of_a_gpu(scheme="packed"), Options(way="packed")) == ("packed",)
    both = of_a_gpu(scheme="packed", directed=True)
    assert ways.ways_of(both, Options(direction="both")) == ("plain",)
    with pytest.raises(ValueError, match=r"way must be 'plain' here.*glp_rapids.compress\(graph\)"):
        ways.ways_of(of_a_gpu(), Options(way="packed"))
    with pytest.raises(ValueError, match=r"way must be 'packed' here.*as_graph\(graph\)"):
        ways.ways_of(of_a_gpu(scheme="packed"), Options(way="plain"))


@pytest.mark.parametrize(("scheme", "needed"), [(None, 95_000), ("packed", 65_000)])
def test_a_gpu_refuses_what_is_estimated_above_the_limit(scheme, needed):
    graph = of_a_gpu(scheme=scheme)
    assert budget_of(graph, Classic(), Options(memory_limit=needed)).limit == needed
    assert budget_of(graph, Classic(), Options()).limit is None
    words = rf"memory_limit={needed - 7:,} bytes is 7 too little .*on the gpu.*device='cpu'"
    with pytest.raises(LackOfMemory, match=words):
        budget_of(graph, Classic(), Options(memory_limit=needed - 7))


def test_every_way_that_is_tried_has_an_engine():
    for (where, _), tried in ways.TRIED.items():
        assert all((where, way) in ENGINES for way in tried)
    for (where, _), possible in ways.ASKED_FOR.items():
        assert all((where, way) in ENGINES for way in possible)
    for name in (*ways.STREAMED_TO_GPU.values(), *itertools.chain(*ways.SHARED_WITH_GPU.values())):
        assert ("gpu", name) in ENGINES
    assert {way for _, way in ENGINES} == set(ways.WAYS)
    assert set(cpu_arrays.NEEDS) == set(ways.ON_CPU)
