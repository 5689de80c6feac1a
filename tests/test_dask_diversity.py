"""Structural diversity on a Dask cluster, and on ranks that are threads: what one process finds."""

from functools import partial
from itertools import pairwise

import graphs
import numpy as np
import pandas as pd
import pytest
from cases import exhaustive
from dask_runs import large_frame

import glp_rapids
from glp_rapids.cli import main
from glp_rapids.diversity import ranks
from glp_rapids.graph.rows import CSR
from glp_rapids.ingest import shuffle
from glp_rapids.ingest.edges import Options
from glp_rapids.multigpu.dealing import dealt
from glp_rapids.multigpu.exchange import RankFailed, as_ranks, exchanges
from glp_rapids.multigpu.partition import rows_of_all, rows_of_range
from glp_rapids.propagation.rank_graph import RankGraph

pytest.importorskip("distributed", reason="dask.distributed is not installed")

import dask.dataframe as dd
from distributed import Client, LocalCluster

from glp_rapids.dask import structural_diversity, top_structural_diversity

# dask's own: of ports in use, of large frames in a graph of tasks, of loops that close
pytestmark = pytest.mark.filterwarnings("ignore")

MODELS = ("component", "core", "truss")


def by_threads(frame, number, find, vertices=None, **given):
    """What so many threads find, as ranks of which each has some of the edges."""
    ends = exchanges(number)
    how = Options(None, None, given.get("weight"), False, None), given.get("multigraph", "merge")

    def rank(end):
        isolated = [vertices] if vertices is not None and end.rank == 0 else []
        part = shuffle.part_of(end, [frame[end.rank :: number]], *how, "in", isolated)
        return find(RankGraph(end, part, False, "in", 1))

    return as_ranks([partial(rank, end) for end in ends], ends[0].abort)


def assert_same(found, expected, check_dtype=False):
    together = pd.concat(found, ignore_index=True)
    pd.testing.assert_frame_equal(together, expected, check_dtype=check_dtype)
    for part in found:
        for fact in ("model", "k", "pruned"):
            assert part.attrs["glp"][fact] == expected.attrs["glp"][fact]
    evaluated = sum(part.attrs["glp"]["evaluated"] for part in found)
    assert evaluated == expected.attrs["glp"]["evaluated"]


def partitions(frame):
    return [part.compute() for part in frame.to_delayed()]


AWKWARD = ("empty", "only isolated", "self-loops", "isolated", "multi-edges kept", "hub", "clique",
           "power law", "zero weights", "strings", "negative")  # fmt: skip


@pytest.mark.parametrize("name", [*AWKWARD[:-3], *AWKWARD[-2:], *exhaustive(AWKWARD[-3])])
@pytest.mark.parametrize("model", MODELS)
def test_awkward_graphs_on_ranks_that_are_threads(name, model):
    given = graphs.GRAPHS[name]()
    frame = given.pop("graph")
    how = {"model": model, "memory_limit": None}
    for k in (None, 2):
        expected = glp_rapids.structural_diversity(frame, k, model, device="cpu", **given)
        found = by_threads(frame, 3, partial(ranks.scores_of_all, k=k, **how), **given)
        assert_same([frame for (frame,) in found], expected, check_dtype=True)
    if not len(expected):
        return
    for t, prune in ((1, True), (len(expected), False)):
        best = glp_rapids.top_structural_diversity(
            frame, t, 2, model, prune=prune, device="cpu", **given
        )
        how |= {"t": t, "k": 2, "contexts": True, "prune": prune}
        found = by_threads(frame, 3, partial(ranks.best_of_all, **how), **given)
        for parts, one in zip(zip(*found, strict=True), best, strict=True):
            assert_same(parts, one)


@pytest.mark.parametrize("model", MODELS)
def test_the_scores_of_one_process(client, model):
    frame = large_frame(6_000)
    edges = dd.from_pandas(frame, npartitions=3)
    for k in (None, 3):
        expected = glp_rapids.structural_diversity(frame, k, model, device="cpu")
        found = structural_diversity(edges, k, model, client=client)
        assert found.npartitions == 2
        assert_same(partitions(found), expected)
    reports = found.attrs["glp"]["ranks"]
    assert [part.attrs["glp"] for part in partitions(found)] == reports
    assert all(report["bytes_sent"] > 4 * 2 * report["entries"] / 3 for report in reports)
    how = {"t": 70, "k": 3, "model": model}
    expected = glp_rapids.top_structural_diversity(frame, **how, device="cpu")
    found = top_structural_diversity(edges, **how, client=client)
    for one, other in zip(found, expected, strict=True):
        assert_same(partitions(one), other)
    assert len(expected[1])
    alone = top_structural_diversity(edges, **how, contexts=False, prune=False, client=client)
    pd.testing.assert_frame_equal(
        pd.concat(partitions(alone), ignore_index=True), expected[0], check_dtype=False
    )


@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers(workers):
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    given = graphs.GRAPHS["strings"]()
    frame = given.pop("graph")
    with LocalCluster(processes=False, **options) as local, Client(local) as client:
        edges = dd.from_pandas(frame, npartitions=2)
        expected = glp_rapids.structural_diversity(frame, 2, "core", device="cpu")
        found = structural_diversity(edges, 2, "core", client=client)
        assert found.npartitions == workers
        assert_same(partitions(found), expected)
        expected = glp_rapids.top_structural_diversity(frame, 2, 2, device="cpu")
        found = top_structural_diversity(edges, 2, 2, client=client)
        for one, other in zip(found, expected, strict=True):
            assert_same(partitions(one), other)


def test_several_columns_directed_edges_and_isolated_vertices(client):
    given = graphs.GRAPHS["several columns"]()
    frame = given.pop("graph")
    edges = dd.from_pandas(frame, npartitions=2)
    expected = glp_rapids.structural_diversity(frame, 2, **given, device="cpu")
    assert_same(partitions(structural_diversity(edges, 2, **given)), expected)
    frame, isolated = large_frame(300), [5_000, 70, -3]
    edges = dd.from_pandas(frame, npartitions=2)
    how = {"directed": True, "symmetrize": True, "vertices": isolated}
    expected = glp_rapids.structural_diversity(frame, 1, **how, device="cpu")
    found = structural_diversity(edges, 1, **how, memory_limit="1GB")
    assert_same(partitions(found), expected)


def test_reciprocal_edges(client):
    frame = "v" + large_frame(600).astype(str)
    back = frame[::3].rename(columns={"src": "dst", "dst": "src"})
    both = pd.concat([frame, back, frame[:50]], ignore_index=True)
    how = {"k": None, "directed": True, "symmetrize": True}
    expected = glp_rapids.structural_diversity(both, **how, device="cpu")
    found = structural_diversity(dd.from_pandas(both, npartitions=3), **how)
    assert_same(partitions(found), expected)


@pytest.mark.exhaustive
@pytest.mark.parametrize("workers", [1, 3, 5])
def test_real_graphs_on_any_number_of_workers(data, workers):
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(processes=False, **options) as local, Client(local) as client:
        for name in ("email-Eu-core.edges.tsv", "facebook_combined.txt.gz"):
            names = ["src", "dst"]
            frame = pd.read_csv(data / name, sep=r"\s+", comment="#", header=None, names=names)
            edges = dd.from_pandas(frame, npartitions=4)
            for model in MODELS:
                expected = glp_rapids.structural_diversity(frame, 4, model, device="cpu")
                found = structural_diversity(edges, 4, model, client=client)
                assert_same(partitions(found), expected)


def test_what_is_wrong_is_said(client):
    edges = dd.from_pandas(large_frame(2_000), npartitions=2)
    for wrong, error, words in (
        ({"k": 0}, ValueError, "k must be at least 1"),
        ({"k": 1, "model": "truss"}, ValueError, "k must be at least 2 for model='truss', not 1"),
        ({"model": "clique"}, ValueError, "model must be"),
        ({"directed": True}, ValueError, "pass symmetrize=True"),
        ({"symmetrize": 1}, TypeError, "symmetrize must be True or False"),
        ({"memory_limit": -1}, ValueError, "memory_limit must be"),
        ({"devices": [0]}, TypeError, r"glp_rapids\.dask\.structural_diversity has no option 'dev"),
        ({"seed": 1}, TypeError, "unknown option 'seed'; there are"),
        ({"device": "gpu"}, TypeError, "device='gpu' takes a dask frame of cuDF, not of pandas"),
        ({"memory_limit": 100}, MemoryError, "raise memory_limit"),
    ):
        with pytest.raises(error, match=words):
            structural_diversity(edges, **{"k": 2, "client": client, **wrong})
    best = top_structural_diversity(edges, 10**6, 2, contexts=False, client=client).compute()
    assert len(best) == len(structural_diversity(edges, 2, client=client))
    with pytest.raises(TypeError, match="must be a dask frame"):
        structural_diversity(large_frame(9), 2)
    expected = glp_rapids.structural_diversity(large_frame(2_000), 2, device="cpu")
    assert_same(partitions(structural_diversity(edges, 2, client=client)), expected)


def test_the_command_line(client, tmp_path, capsys):
    (tmp_path / "friends").mkdir()
    frame = large_frame(900)
    for part in range(2):
        frame[part::2].to_parquet(tmp_path / "friends" / f"{part}.parquet")
    on_workers = ["--scheduler", client.scheduler.address]
    command = ["diversity", str(tmp_path / "friends"), *on_workers]
    output, circles = tmp_path / "found.parquet", tmp_path / "circles.parquet"
    assert main([*command, "--output", str(output)]) == 0
    said = capsys.readouterr().err
    expected = glp_rapids.structural_diversity(frame, None, device="cpu")
    of_all = expected.groupby("vertex")["score"].max()
    having, vertices = (of_all > 0).sum(), len(of_all)
    assert f"{having} of {vertices} vertices have friends in a component, one in " in said
    assert f"run         {vertices} vertices evaluated, 0 pruned, in " in said
    assert "on 2 workers" in said
    found = pd.read_parquet(output)
    pd.testing.assert_frame_equal(found.reset_index(drop=True), expected, check_dtype=False)
    best = tmp_path / "best.parquet"
    top = ["--k", "3", "--model", "core", "--top", "5"]
    named = ["--output", str(best), "--contexts", str(circles)]
    assert main([*command, *top, *named]) == 0
    expected = glp_rapids.top_structural_diversity(frame, 5, 3, "core", device="cpu")
    assert f"({len(expected[1])} rows: vertex, context, member)" in capsys.readouterr().err
    for path, one in zip((best, circles), expected, strict=True):
        found = pd.read_parquet(path).reset_index(drop=True)
        pd.testing.assert_frame_equal(found, one, check_dtype=False)
    for wrong, words in (
        (["--output", str(output)], "exists; name a folder"),
        ([], "--output must name a folder"),
        ([*top, "--contexts", "c.csv", "--output", "a.parquet"], "--contexts must name a folder"),
        ([*top, "--contexts", "a.parquet", "--output", "a.parquet"], "must name different folders"),
        (["--device", "cpu"], "--device is for a run in this process"),
    ):
        assert main([*command, *wrong]) != 0
        assert words in capsys.readouterr().err


# ---------------------------------------------------------------- what ranks share work by


@pytest.mark.parametrize("number", [1, 2, 5])
@pytest.mark.parametrize("seed", [0, *exhaustive(*range(1, 20))])
def test_every_rank_gets_as_much_of_all_that_is_dealt(number, seed):
    draw = np.random.default_rng(seed)
    costs = [1 + draw.pareto(1.0, draw.integers(0, 3_000)) for _ in range(number)]
    costs[0][:1] = 5e3
    ends = exchanges(number)
    given = as_ranks(
        [partial(dealt, *pair, pair[1] > 20) for pair in zip(ends, costs, strict=True)],
        ends[0].abort,
    )
    for cost, places in zip(costs, given, strict=True):
        assert np.array_equal(np.sort(np.concatenate(places)), np.arange(cost.size))
        assert all((np.diff(place) > 0).all() for place in places)
    loads = [
        sum(cost[places[rank]].sum() for cost, places in zip(costs, given, strict=True))
        for rank in range(number)
    ]
    wanted = sum(loads) / number
    heaviest = max(cost.max(initial=0) for cost in costs)
    assert max(loads) <= max(1.08 * wanted, 1.001 * heaviest)


def test_rows_come_together_in_few_entries_at_once():
    graph = glp_rapids.as_graph(**graphs.GRAPHS["power law"](), device="cpu")
    number = graph.number_of_vertices
    for cuts in ([0, number], [0, 3, 3, 200, number], [0, number, number]):
        bounds, ends = np.array(cuts), exchanges(len(cuts) - 1)
        parts = [rows_of_range(graph, *pair) for pair in pairwise(cuts)]
        works = [
            partial(rows_of_all, end, part, bounds, 7)
            for end, part in zip(ends, parts, strict=True)
        ]
        for rows in as_ranks(works, ends[0].abort):
            assert isinstance(rows, CSR)
            assert np.array_equal(rows.indptr, graph.indptr)
            assert np.array_equal(rows.indices, graph.indices)


def test_threads_at_work_see_that_another_rank_failed(monkeypatch):
    def scores(team, vertices, k):
        if team.exchange.rank == 0:
            raise ValueError("the real one")
        while True:
            team.team._tell(1)

    monkeypatch.setattr(ranks.RankTeam, "scores", scores)
    how = {"k": 2, "model": "core", "memory_limit": None}
    with pytest.raises(ValueError, match="the real one"):
        by_threads(large_frame(300), 2, partial(ranks.scores_of_all, **how))
    end, _ = exchanges(2)
    end.refuse_failed()
    end.abort(ValueError("why"))
    with pytest.raises(RankFailed, match="ValueError: why"):
        end.refuse_failed()
