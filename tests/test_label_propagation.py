"""Every variant of label propagation is its twin, the same everywhere, and as published."""

from functools import partial

import graphs
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import reference
from cases import exhaustive
from hypothesis import given
from hypothesis import strategies as st
from label_twins import (
    CLASSIC_OPTIONS,
    LAYERED_OPTIONS,
    LISTENER_OPTIONS,
    SEEDED_OPTIONS,
    assert_classic_equals_twin,
    assert_cover_equals_twin,
    assert_layered_equals_twin,
    assert_seeded_equals_twin,
    external,
    host_graph,
    options_of,
)

import glp_rapids
from glp_rapids import (
    as_graph,
    label_propagation,
    layered_label_propagation,
    propagate,
    seeded_label_propagation,
    speaker_listener,
)
from glp_rapids.bench.overlap import planted_cover, random_cover
from glp_rapids.device import to_device, to_host
from glp_rapids.metrics import cover_f1
from glp_rapids.propagation.kernels.cpu import hash_votes, tables
from glp_rapids.propagation.results import renumbered
from glp_rapids.propagation.variants.classic import Classic
from glp_rapids.propagation.variants.layered import Layered


def some_seeds(graph, number_of_labels=3):
    """Make every fifth vertex a seed."""
    return {v: f"label {v % number_of_labels}" for v in range(0, graph.number_of_vertices, 5)}


# ---------------------------------------------------------------- every variant is its twin


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_classic_is_its_twin(name, device):
    for options in CLASSIC_OPTIONS:
        assert_classic_equals_twin(graphs.GRAPHS[name](), device, options)


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_layered_is_its_twin(name, device):
    for options in LAYERED_OPTIONS:
        assert_layered_equals_twin(graphs.GRAPHS[name](), device, options)


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_speaker_listener_is_its_twin(name, device):
    for options in LISTENER_OPTIONS:
        assert_cover_equals_twin(graphs.GRAPHS[name](), device, options)


@pytest.mark.parametrize("name", graphs.GRAPHS)
def test_seeded_is_its_twin(name, device):
    edges = graphs.GRAPHS[name]()
    seeds = some_seeds(host_graph(edges))
    for options in SEEDED_OPTIONS:
        assert_seeded_equals_twin(edges, device, options, seeds)


LOOP = ("update", "classes", "explore", "tie_break", "retain", "direction", "tol", "seed")


@given(graphs.edge_frames(), options_of(*LOOP, "max_iter", "skip_inactive"))
def test_classic_is_its_twin_on_any_graph(device, edges, options):
    assert_classic_equals_twin(edges, device, options)


@given(
    graphs.edge_frames(),
    options_of(*LOOP, "max_iter"),
    st.lists(st.sampled_from([0, 0.1, 1, 3, 512]), min_size=1, max_size=3, unique=True),
)
def test_layered_is_its_twin_on_any_graph(device, edges, options, gammas):
    assert_layered_equals_twin(edges, device, options, gammas)


@given(
    graphs.edge_frames(),
    options_of("update", "classes", "direction", "seed", "max_iter"),
    st.integers(1, 4),
    st.sampled_from([0.0, 0.1, 0.25, 1.0]),
)
def test_speaker_listener_is_its_twin_on_any_graph(device, edges, options, most, threshold):
    assert_cover_equals_twin(edges, device, {**options, "max_labels": most, "threshold": threshold})


@pytest.mark.filterwarnings("ignore:max_hops=")
@given(
    graphs.edge_frames(),
    options_of("update", "classes", "tie_break", "retain", "direction", "seed", "max_iter"),
    st.sampled_from([None, 0, 1, 3]),
    st.sampled_from([0.1, 0.85, 1.0]),
    st.data(),
)
def test_seeded_is_its_twin_on_any_graph(device, edges, options, max_hops, damping, data):
    number_of_vertices = host_graph(edges).number_of_vertices
    vertex = st.integers(0, max(number_of_vertices - 1, 0))
    seeds = data.draw(
        st.dictionaries(vertex, st.integers(-5, 5), max_size=min(number_of_vertices, 4))
    )
    if options.get("update") == "semi":  # a sweep has several hops
        max_hops = None
    options = {**options, "max_hops": max_hops, "damping": damping}
    assert_seeded_equals_twin(edges, device, options, seeds)


# ---------------------------------------------------------------- the same answer everywhere


def every_variant(graph, device, **options):
    """Run all variants; the results, with the labels as they are."""
    seeds = external(host_graph(graph), [0, 5]) if isinstance(graph, dict) else [0, 5]
    edges = graph if isinstance(graph, dict) else {"graph": graph}
    edges = {**edges, "device": device, **options}
    return [
        label_propagation(**edges, tol=0.0),
        label_propagation(**edges, tol=0.0, renumber=False),
        layered_label_propagation(**edges, gammas=[1, 16], tol=0.0),
        speaker_listener(**edges),
        seeded_label_propagation(**edges, seeds=seeds),
    ]


def assert_all_equal(ones, others):
    for one, other in zip(ones, others, strict=True):
        pd.testing.assert_frame_equal(one, other, check_exact=True)


@pytest.mark.parametrize("name", ["power law", "uneven weights", "directed weighted", "strings"])
def test_row_order_and_repetition_change_nothing(name, device):
    edges = graphs.GRAPHS[name]()
    frame = edges["graph"]
    first = every_variant(edges, device)
    assert_all_equal(first, every_variant(edges, device))
    for seed in range(2):
        shuffled = frame.sample(frac=1, random_state=seed)
        assert_all_equal(first, every_variant({**edges, "graph": shuffled}, device))
    if not edges.get("directed"):
        turned = frame.rename(columns={"src": "dst", "dst": "src"})
        assert_all_equal(first, every_variant({**edges, "graph": turned}, device))


@pytest.mark.parametrize("explore", [0, 3, 10])
@pytest.mark.parametrize("tie_break", ["min", "max", "hash"])
@pytest.mark.parametrize("retain", [True, False])
@pytest.mark.parametrize("name", ["power law", "integer weights", "directed kept"])
def test_skipping_changes_nothing(name, explore, tie_break, retain, device):
    graph = as_graph(**graphs.GRAPHS[name](), device=device)
    for update in ("semi", "sync"):
        for direction in ("in", "out", "both"):
            options = dict(
                explore=explore, tie_break=tie_break, retain=retain, update=update,
                direction=direction, tol=0.0, max_iter=25, seed=1,
            )  # fmt: skip
            results = [
                label_propagation(graph, device=device, skip_inactive=skip, **options)
                for skip in (True, False)
            ]
            pd.testing.assert_frame_equal(*results)
            reports = [result.attrs["glp"]["changed"] for result in results]
            assert reports[0] == reports[1], options


@pytest.mark.parametrize(
    "variant",
    [
        label_propagation,
        partial(seeded_label_propagation, seeds=[0, 7]),
        *exhaustive(layered_label_propagation, speaker_listener),
    ],
)
def test_parallel_and_serial_builds_agree(variant, monkeypatch):
    examples = [graphs.GRAPHS[name]() for name in ("hub", "power law", "directed star")]
    serial = [variant(**edges, device="cpu") for edges in examples]
    monkeypatch.setattr(hash_votes, "PARALLEL_FROM", 0)
    for _ in range(3):
        for edges, expected in zip(examples, serial, strict=True):
            pd.testing.assert_frame_equal(variant(**edges, device="cpu"), expected)


def test_labels_beyond_a_direct_table_are_hashed(monkeypatch):
    """Force the tables that graphs of many millions of vertices have."""
    edges = graphs.GRAPHS["power law"]()
    direct = every_variant(edges, "cpu")
    calls = []
    monkeypatch.setattr(tables, "kinds_for", lambda *sizes: calls.append(sizes) or [tables.HASHED])
    assert_all_equal(direct, every_variant(edges, "cpu"))
    assert calls


@pytest.mark.parametrize("classes", [100, *exhaustive(65536)])
def test_more_classes_than_vertices(classes, device):
    assert_classic_equals_twin(graphs.GRAPHS["one edge"](), device, {"classes": classes})


def test_the_seed_alone_decides_among_equals(device):
    edges = graphs.edges(graphs.random_pairs(300, 500, 5))
    runs = [
        label_propagation(**edges, device=device, seed=seed)["partition"].tolist()
        for seed in (0, 0, 1, 2)
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2] != runs[3]


def test_edge_frames_of_all_forms_give_the_same(device):
    edges = graphs.GRAPHS["weighted"]()
    frame = edges["graph"]
    from_frame = label_propagation(**edges, device=device)
    from_arrays = label_propagation(
        (frame["src"].to_numpy(), frame["dst"].to_numpy(), frame["weight"].to_numpy()),
        device=device,
    )
    from_networkx = label_propagation(
        nx.from_pandas_edgelist(frame, "src", "dst", "weight"), weight="weight", device=device
    )
    pd.testing.assert_frame_equal(from_frame, from_arrays)
    pd.testing.assert_frame_equal(from_frame, from_networkx)


@pytest.mark.gpu
def test_cudf_in_cudf_out(device):
    if device != "gpu":
        pytest.skip("cuDF frames live on the GPU")
    cudf = pytest.importorskip("cudf")
    edges = graphs.GRAPHS["strings"]()
    theirs = {**edges, "graph": cudf.from_pandas(edges["graph"])}
    for one, other in zip(every_variant(edges, "cpu"), every_variant(theirs, "gpu"), strict=True):
        assert isinstance(other, cudf.DataFrame)
        back = other.to_pandas()
        assert list(back.columns) == list(one.columns)
        for name in one:
            assert back[name].isna().tolist() == one[name].isna().tolist()
            assert back[name].dropna().tolist() == one[name].dropna().tolist()


# ---------------------------------------------------------------- published and planted facts


def read_p2p(data, suffix):
    return pd.read_csv(data / f"graphalytics-p2p-31.{suffix}.gz", sep=" ", header=None)


def test_ldbc_cdlp_is_reproduced(data, device):
    edges, vertices = read_p2p(data, "e"), read_p2p(data, "v")
    expected = read_p2p(data, "CDLP").sort_values(0)
    result = label_propagation(
        edges, source=0, destination=1, vertices=vertices[0], device=device, update="sync",
        explore=0, tie_break="min", retain=False, max_iter=10, renumber=False, tol=0,
    )  # fmt: skip
    assert result["vertex"].tolist() == expected[0].tolist()
    assert result["partition"].tolist() == expected[1].tolist()
    assert result.attrs["glp"]["sweeps"] == 10


@pytest.mark.parametrize("lfr", ["lfr-10000-mu0.1", "lfr-10000-mu0.3"])
def test_layers_get_finer_as_gamma_grows(lfr, data, device):
    files = list(data.glob(f"{lfr}.edges.tsv.gz"))
    if not files:
        pytest.skip(f"{lfr} is not in {data}")
    edges = pd.read_csv(files[0], sep="\t", header=None, comment="#")
    result = layered_label_propagation(edges, source=0, destination=1, device=device)
    counts = result.groupby("gamma")["partition"].nunique()
    assert counts.index.tolist() == [2**i for i in range(10)]
    assert counts.is_monotonic_increasing
    assert counts.iloc[-1] > counts.iloc[0]


def test_layers_of_a_planted_partition_get_finer(device):
    edges, _ = planted_cover(600, 30, 0.0)
    result = layered_label_propagation(edges, gammas=[0, 0.01, 1, 64, 512], device=device)
    counts = result.groupby("gamma")["partition"].nunique()
    assert counts.is_monotonic_increasing
    assert counts[512.0] > counts[0.0]


def test_no_price_on_volume_is_classic(device):
    edges = graphs.GRAPHS["power law"]()
    layered = layered_label_propagation(**edges, gammas=[0], device=device)
    classic = label_propagation(**edges, device=device)
    assert layered["partition"].tolist() == classic["partition"].tolist()


def test_speaker_listener_beats_a_random_cover(device):
    edges, planted = planted_cover(1000, 40, 0.2)
    found = speaker_listener(edges, vertices=np.arange(1000), device=device)
    chance = cover_f1(random_cover(planted), planted)
    assert cover_f1(found, planted) > max(0.6, 3 * chance)
    assert found["vertex"].nunique() == 1000
    assert len(found) > 1000
    assert found.groupby("vertex").size().max() <= 5


def test_frequencies_are_shares_of_the_memory(device):
    edges, _ = planted_cover(300, 30, 0.3)
    every = speaker_listener(edges, max_labels=100, threshold=0, max_iter=9, device=device)
    assert np.allclose(every.groupby("vertex")["frequency"].sum(), 1)
    assert set((every["frequency"] * 10).round(9)) <= set(range(1, 11))


# ---------------------------------------------------------------- reports and progress


def test_report_of_a_run(device):
    edges = graphs.GRAPHS["two cliques"]()
    report = label_propagation(**edges, device=device, explore=2).attrs["glp"]
    assert set(report) == {
        "sweeps", "explored", "changed", "converged", "seconds", "device", "memory_in_use",
        "way", "memory_limit", "predicted", "warm", "evaluated", "pending",
    }  # fmt: skip
    assert report["device"] == device
    assert report["way"] == "plain"
    assert report["predicted"] > 0
    assert report["explored"] == 2
    assert report["converged"] is True
    assert report["sweeps"] == len(report["changed"])
    assert report["seconds"] > 0
    assert report["memory_in_use"] > 0
    random = graphs.GRAPHS["random"]()
    short = label_propagation(**random, device=device, explore=5, max_iter=2).attrs["glp"]
    assert (short["sweeps"], short["explored"], short["converged"]) == (2, 2, False)

    none = label_propagation(**edges, device=device, max_iter=0).attrs["glp"]
    assert (none["sweeps"], none["changed"], none["converged"]) == (0, [], False)
    layers = layered_label_propagation(**edges, gammas=[0, 4], device=device).attrs["glp"]
    assert [layer["gamma"] for layer in layers["layers"]] == [0, 4]
    assert layers["sweeps"] == sum(layer["sweeps"] for layer in layers["layers"])
    assert speaker_listener(**edges, device=device).attrs["glp"]["sweeps"] == 20
    seeded = seeded_label_propagation(**edges, seeds=[0, 3, 0], device=device).attrs["glp"]
    assert (seeded["sweeps"], seeded["seeds"]) == (10, 2)


def test_progress_calls_back_after_every_sweep(device):
    told = []
    edges = graphs.GRAPHS["random"]()
    result = label_propagation(**edges, progress=told.append, explore=2, device=device)
    report = result.attrs["glp"]
    assert [step["sweep"] for step in told] == list(range(1, report["sweeps"] + 1))
    assert [step["changed"] for step in told] == report["changed"]
    assert [step["exploring"] for step in told[:3]] == [True, True, False]


def test_progress_shows_a_bar_and_changes_nothing(device, capsys):
    edges = graphs.GRAPHS["random"]()
    shown = label_propagation(**edges, progress=True, device=device)
    assert "sweep" in capsys.readouterr().err
    pd.testing.assert_frame_equal(shown, label_propagation(**edges, device=device))
    assert capsys.readouterr().err == ""


def test_running_the_program_is_the_function(device):
    edges = graphs.GRAPHS["power law"]()
    by_program = propagate(**edges, program=Classic(), device=device)
    pd.testing.assert_frame_equal(label_propagation(**edges, device=device), by_program)
    layered = layered_label_propagation(**edges, gammas=[4], device=device)
    by_program = propagate(**edges, program=Layered(4), device=device)
    assert layered["partition"].tolist() == by_program["partition"].tolist()


def test_a_graph_made_once_gives_the_same(device):
    edges = graphs.GRAPHS["directed weighted"]()
    graph = as_graph(**edges, device=device)
    assert_all_equal(every_variant(graph, device), every_variant(edges, device))
    assert glp_rapids.label_propagation(graph, device=device).attrs["glp"]["device"] == device


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_communities_are_numbered_by_their_smallest_vertex(dtype, device):
    random = np.random.default_rng(5)
    for size in (0, 1, 2, 33, 20_000):
        for low, high in ((0, 1), (-1, 0), (-3, size), (0, size), (0, size // 9)):
            labels = random.integers(low, max(high, low + 1), size).astype(dtype)
            labels = np.minimum(labels, size - 1)
            got = to_host(renumbered(to_device(labels, device)))
            assert got.dtype == dtype
            assert got.tolist() == reference.renumbered(labels.tolist())
