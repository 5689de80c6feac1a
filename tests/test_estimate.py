"""What `estimate_memory` says beside what runs report, and what it refuses."""

from functools import partial
from itertools import product

import graphs
import numpy as np
import pandas as pd
import pytest
from cases import exhaustive, turns
from hypothesis import given
from hypothesis import strategies as st
from programs import Counting

import glp_rapids
from glp_rapids import as_graph, compress, estimate_memory, label_propagation
from glp_rapids.compressed.format.layout import Layout
from glp_rapids.compressed.sample import bits_of_packed
from glp_rapids.device import LackOfMemory
from glp_rapids.propagation import estimate
from glp_rapids.propagation.memory import gpu_bytes_of

LIMIT = "1GB"
KINDS = {
    "undirected": {}, "weighted": {"weights": True}, "directed": {"directed": True},
    "directed, weighted": {"weights": True, "directed": True}, "strings": {"strings": True},
}  # fmt: skip


def graph_of(n=3_000, m=80_000, weights=False, directed=False, strings=False):
    pairs = np.array(graphs.power_law_pairs(n, m, 3)).T
    if strings:
        pairs = pairs.astype(str)
    further = (np.random.default_rng(0).random(m),) if weights else ()
    return as_graph((*pairs, *further), directed=directed, device="cpu")


def host_bytes(found):
    return found.set_index("way")["host_bytes"]


RUNS = {
    "label_propagation": (label_propagation, {}),
    "synchronous": (partial(label_propagation, update="sync"), {"update": "sync"}),
    "out": (partial(label_propagation, direction="out"), {"direction": "out"}),
    "both": (partial(label_propagation, direction="both"), {"direction": "both"}),
    "layered_label_propagation": (
        partial(glp_rapids.layered_label_propagation, gammas=[1]), {"gammas": [1]},
    ),
    "speaker_listener": (partial(glp_rapids.speaker_listener, max_iter=7), {"max_iter": 7}),
    "seeded_label_propagation": (
        lambda graph, **options: glp_rapids.seeded_label_propagation(
            graph, [graph.external()[0]], **options
        ), {},
    ),
    "propagate": (
        partial(glp_rapids.propagate, program=Counting()), {"program": Counting()},
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "kind"),
    [*product(RUNS, ["undirected", "directed, weighted"]),
     *exhaustive(*turns(RUNS, ["weighted", "directed", "strings"]))],
)  # fmt: skip
def test_an_estimate_is_what_a_run_predicts(name, kind):
    run, options = RUNS[name]
    graph = graph_of(**KINDS[kind])
    algorithm = name if name in estimate.ALGORITHMS else "label_propagation"
    found = estimate_memory(graph, algorithm, device="cpu", memory_limit=LIMIT, **options)
    both = graph.directed and name == "both"
    expected = ["plain", "streamed plain"] if both else [*estimate.ON_CPU]
    assert found["way"].tolist() == expected
    assert found["fits"].all()
    assert (found["device_bytes"] == 0).all()
    for way, size in host_bytes(found).items():
        given = compress(graph) if "packed" in way else graph_of(**KINDS[kind])
        report = run(given, way=way, memory_limit=LIMIT).attrs["glp"]
        predicted = report.get("layers", [report])[0]["predicted"]
        assert size == pytest.approx(predicted, rel=0.05 if "packed" in way else 0.002)


@pytest.mark.parametrize("order", [None, "bfs"])
@pytest.mark.parametrize("kind", ["undirected", "weighted", "directed", "directed, weighted"])
def test_an_estimate_knows_what_is_kept_on_a_compressed_graph(kind, order):
    for name in ("label_propagation", "out", "seeded_label_propagation"):
        run, options = RUNS[name]
        algorithm = name if name in estimate.ALGORITHMS else "label_propagation"
        graph = compress(graph_of(**KINDS[kind]), order=order, device="cpu")
        told = partial(estimate_memory, graph, algorithm, device="cpu", **options)
        # fresh, with what the first run has made, and with what another program has
        for _ in range(2):
            needed = int(host_bytes(told(memory_limit=LIMIT))["packed"])
            predicted = run(graph, way="packed", memory_limit=LIMIT).attrs["glp"]["predicted"]
            # in both directions it counts where the weights of each list begin, read or not
            room = 0.05 if kind == "directed, weighted" else 0.002
            assert predicted <= needed <= predicted * (1 + room), name
            assert host_bytes(told(memory_limit=needed))["packed"] <= needed
        glp_rapids.seeded_label_propagation(graph, [graph.external()[0]])
        needed = int(host_bytes(told(memory_limit=LIMIT))["packed"])
        assert needed >= run(graph, way="packed", memory_limit=needed).attrs["glp"]["predicted"]


@pytest.mark.parametrize("gammas", [None, [0.5, 1, 2]])
def test_the_labels_of_all_layers_count(gammas):
    graph, algorithm = graph_of(), "layered_label_propagation"
    given = {} if gammas is None else {"gammas": gammas}
    told = partial(estimate_memory, graph, algorithm, device="cpu", **given)
    layers = glp_rapids.layered_label_propagation(graph, memory_limit=LIMIT, **given).attrs["glp"]
    last = layers["layers"][-1]["predicted"]
    assert host_bytes(told(memory_limit=LIMIT))["plain"] == pytest.approx(last, rel=0.002)
    others = 4 * graph.number_of_vertices * ((10 if gammas is None else 3) - 1)
    one = estimate_memory(graph, algorithm, device="cpu", gammas=[1], memory_limit=LIMIT)
    more = (host_bytes(told(memory_limit=LIMIT)) - host_bytes(one)).to_numpy()
    assert np.allclose(more, others, rtol=0.02)
    gpu = estimate_memory(graph, algorithm, device="gpu", memory_limit=LIMIT, gammas=[1])
    more = told(device="gpu", memory_limit=LIMIT)["device_bytes"] - gpu["device_bytes"]
    held = gpu["way"].isin(["plain", "packed"])  # what is streamed has its labels on the host then
    assert (more == np.where(held, others, 0)).all()


def test_a_packed_way_fits_a_graph_that_is_compressed_not_one_that_is_plain():
    graph = graph_of(30_000, 600_000)
    limit = int(host_bytes(estimate_memory(graph, device="cpu", memory_limit=LIMIT))["plain"]) // 2
    found = estimate_memory(graph, device="cpu", memory_limit=limit).set_index("way")["fits"]
    assert found["streamed packed"]
    with pytest.raises(LackOfMemory):
        label_propagation(graph, way="streamed packed", memory_limit=limit, device="cpu")
    made = compress(graph, device="cpu")
    label_propagation(made, way="streamed packed", memory_limit=limit, device="cpu")


def test_what_an_estimate_says_fits_does():
    graph = compress(graph_of(directed=True), device="cpu")
    needed = int(host_bytes(estimate_memory(graph, device="cpu", memory_limit=LIMIT))["packed"])
    little = estimate_memory(graph, device="cpu", memory_limit=needed - 1).set_index("way")["fits"]
    assert not little[["packed", "streamed packed"]].any()
    with pytest.raises(LackOfMemory, match=r"is (at least )?1 too little"):
        label_propagation(graph, memory_limit=needed - 1)
    label_propagation(graph, memory_limit=needed)
    # its rows in the other direction are there now, and a run needs less
    more = estimate_memory(graph, device="cpu", memory_limit=needed - 1).set_index("way")["fits"]
    assert more[["packed", "streamed packed"]].all()


def test_a_limit_in_between_fits_some_ways():
    graph = graph_of()
    plain = int(host_bytes(estimate_memory(graph, device="cpu", memory_limit="1KB"))["plain"])
    for limit, fits in ((plain, True), (plain - 1000, False)):
        found = estimate_memory(graph, device="cpu", memory_limit=limit).set_index("way")["fits"]
        assert found["plain"] == fits
        assert found["streamed plain"]
    little = estimate_memory(graph, device="cpu", memory_limit="200KB")
    assert not little["fits"].any()
    least = int(host_bytes(little)["streamed plain"])
    report = label_propagation(graph, memory_limit=least).attrs["glp"]
    assert report["way"] == "streamed plain"
    assert least - 1 <= report["predicted"] <= least


def test_sizes_alone():
    graph = graph_of()
    sizes = graph.number_of_vertices, graph.number_of_edges, graph.rows().largest_degree()
    known = host_bytes(estimate_memory(graph, device="cpu", memory_limit=LIMIT))
    for update in ("semi", "sync"):
        options = {"device": "cpu", "memory_limit": LIMIT, "update": update}
        found, known = (host_bytes(estimate_memory(one, **options)) for one in (sizes, graph))
        for way in ("plain", "streamed plain"):
            assert found[way] == pytest.approx(known[way], rel=0.02)
    mapped = host_bytes(estimate_memory(sizes, device="cpu", memory_limit=LIMIT, mapped=True))
    taken = sum(array.nbytes for array in graph.arrays())
    whole = host_bytes(estimate_memory(sizes, device="cpu", memory_limit=LIMIT))
    assert whole["plain"] - mapped["plain"] == pytest.approx(taken, rel=0.02)
    weighted = host_bytes(estimate_memory(
        sizes, device="cpu", memory_limit=LIMIT, weight="float64"
    ))  # fmt: skip
    assert weighted["plain"] - whole["plain"] > 0.9 * 2 * 8 * graph.number_of_edges


def test_taobao():
    found = estimate_memory((1_010_000_000, 23_200_000_000), memory_limit="150GB")
    assert found["device"].tolist() == ["cpu"] * 4 + ["gpu"] * 4
    assert found["fits"].tolist() == [False, True, True, True, False, True, True, True]
    plain = found[(found["device"] == "gpu") & (found["way"] == "plain")]
    # offsets, labels, the plan, who is active and wins, and communities by number
    a_vertex = 8 + 4 + 16 + 9 + 12
    assert plain["device_bytes"].item() == pytest.approx(
        4 * 23_200_000_000 + a_vertex * 1_010_000_000, rel=1e-4
    )


def test_a_gpu_need_not_be_there(monkeypatch):
    monkeypatch.setattr(estimate, "gpu_available", lambda: False)
    graph = graph_of(weights=True, directed=True)
    found = estimate_memory(graph)
    assert found["fits"][found["device"] == "gpu"].isna().all()
    assert found["fits"][found["device"] == "cpu"].all()
    of_gpu = found[found["device"] == "gpu"].set_index("way")
    assert (of_gpu["host_bytes"] == 0).tolist() == [True, True, False]
    assert of_gpu["device_bytes"]["plain"] == gpu_bytes_of(graph)
    compressed = compress(graph)
    packed = estimate_memory(compressed, device="gpu").set_index("way")["device_bytes"]["packed"]
    assert packed == gpu_bytes_of(compressed)


def test_a_frame_of_edges_and_no_edge_at_all():
    frame = pd.DataFrame({"from": [1, 2, 3], "to": [2, 3, 1], "w": [1.0, 2.0, 3.0]})
    names = {"source": "from", "destination": "to"}
    for weight in ({}, {"weight": "w"}):
        found = estimate_memory(frame, device="cpu", **names, **weight)
        assert found.equals(estimate_memory(as_graph(frame, **names, **weight), device="cpu"))
    for nothing in ((0, 0), as_graph(**graphs.GRAPHS["empty"]()), (5, 0)):
        assert estimate_memory(nothing, memory_limit="1MB")["fits"].all()


@given(graphs.edge_frames(max_vertices=300, max_edges=200))
def test_bits_of_all_lists_are_those_of_compressed_ones(edges):
    graph = as_graph(**edges, device="cpu")
    plain = as_graph((graph.row_indices(), graph.indices), directed=True, device="cpu",
                     vertices=np.arange(graph.number_of_vertices))  # fmt: skip
    lists = compress(plain, "packed").lists
    found = bits_of_packed(plain.rows("out"), Layout("packed"))
    blocks = lists.block_bytes.size
    assert lists.stream_bits + 8 * (lists.block_bytes.nbytes + lists.tables.nbytes) - found >= 0
    if plain.number_of_edges:
        assert lists.stream_bits <= found + 8 * blocks


def test_lists_in_parts_are_measured_as_they_are_stored():
    star = as_graph(**graphs.edges([*[(0, i) for i in range(1, 5_000, 3)], (5, 6)]), device="cpu")
    lists = compress(star, "packed").lists
    found = bits_of_packed(star.rows("out"), Layout("packed"))
    stored = lists.stream_bits + 8 * (lists.block_bytes.nbytes + lists.tables.nbytes)
    assert stored - 8 * lists.block_bytes.size <= found <= stored


def test_a_sample_is_close():
    pairs = np.array(graphs.random_pairs(40_000, 200_000, 3)).T
    graph = as_graph(tuple(pairs), device="cpu")
    every, some_of_it = (
        bits_of_packed(graph.rows("out"), Layout("packed"), entries, entries)
        for entries in (1 << 30, 1 << 16)
    )
    assert some_of_it == pytest.approx(every, rel=0.1)


@pytest.mark.parametrize(
    ("arguments", "options", "error", "words"),
    [
        (((1, 2), "structural_diversity"), {}, ValueError,
         "algorithm must be one of 'label_propagation', .*'features', .*not 'structural"),
        (((1, 2), "account_scores"), {"update": "sync"}, TypeError,
         "update='sync' is for label propagation, not for algorithm='account_scores'"),
        (((1, 2), "features"), {"directed": True}, ValueError,
         "graph is directed, and features is of undirected graphs; leave directed out"),
        (((1, 2), None), {}, ValueError, "algorithm must be one of"),
        (((1, 2),), {"device": "tpu"}, ValueError, "device must be 'cpu', 'gpu' or None"),
        (((1, 2),), {"memory_limit": "40XB"}, ValueError, "memory_limit must be"),
        (((1, 2),), {"mapped": 1}, TypeError, "mapped must be True or False"),
        (((1, 2),), {"bits_per_entry": 0}, ValueError, r"bits_per_entry must be in \(0, 64\]"),
        (((1, 2),), {"bits_per_entry": "8"}, ValueError, "bits_per_entry must be in"),
        (((1, 2),), {"way": "plain"}, TypeError, "unknown option 'way'"),
        (((1, 2),), {"gammas": [1]}, TypeError, "gammas is for algorithm='layered_label_propag"),
        (((1, 2), "layered_label_propagation"), {"gammas": [-1]}, ValueError, "at least 0, not -1"),
        (((1, 2), "layered_label_propagation"), {"gamma": 1}, TypeError, "did you mean gammas"),
        (((1, 2),), {"classes": 0}, ValueError, "classes must be in"),
        (((1, 2),), {"source": "a"}, TypeError, "sizes have no 'source'"),
        (((1, 2),), {"weight": "w"}, ValueError, "weight must be one of 'int64', 'float32'"),
        (((1, 2),), {"directed": "no"}, TypeError, "directed must be True or False"),
        (((1,),), {}, ValueError, r"sizes must be \(vertices, entries\)"),
        (((1, 2, 3, 4),), {}, ValueError, r"sizes must be \(vertices, entries\)"),
        (((0, 5),), {}, ValueError, r"entries must be 0 without vertices, not 5"),
        (((2**70, 5),), {}, ValueError, r"vertices must be at most 4,611,.*, not 1,180,"),
        (((5, 11, 2),), {}, ValueError, r"longest_row must be at least the mean .* not 2"),
        (((5, 11, 12),), {}, ValueError, r"longest_row .* no more than all of them, not 12"),
        (((1, -2),), {}, ValueError, "entries must be at least 0, not -2"),
        (((1.5, 2),), {}, TypeError, "vertices must be an integer"),
        (("edges.csv",), {}, FileNotFoundError, "there is no such file"),
        ((None,), {}, TypeError, "graph must be"),
        (((1, 2), "propagate"), {}, TypeError, "program must be an instance"),
        (((1, 2), "speaker_listener"), {"explore": 1}, TypeError, "has no option 'explore'"),
        (((1, 2), "seeded_label_propagation"), {"tol": 1}, TypeError, "has no option 'tol'"),
        (((1, 2),), {"program": Counting()}, TypeError, "program is for algorithm='propagate'"),
    ],
)  # fmt: skip
def test_bad_input(arguments, options, error, words):
    with pytest.raises(error, match=words):
        estimate_memory(*arguments, **options)


NAMED = [*[*estimate.ALGORITHMS][:4], *estimate.FUNCTIONS]


@given(st.integers(0, 10**6), st.integers(0, 10**8), st.sampled_from(NAMED))
def test_any_sizes(vertices, entries, algorithm):
    entries = entries if vertices else 0
    found = estimate_memory((vertices, entries), algorithm, memory_limit="64GB")
    assert (found["device_bytes"] + found["host_bytes"] >= 4 * vertices).all()
    assert found["fits"].all()
