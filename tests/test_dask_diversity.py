"""Structural diversity on a Dask cluster: the scores of one process."""

import graphs
import pandas as pd
import pytest
from cases import exhaustive
from dask_runs import large_frame

pytest.importorskip("distributed", reason="dask.distributed is not installed")

import dask.dataframe as dd
from distributed import Client, LocalCluster

import glp_rapids
from glp_rapids.cli import main
from glp_rapids.dask import structural_diversity

# dask's own: of ports in use, of large frames in a graph of tasks, of loops that close
pytestmark = pytest.mark.filterwarnings("ignore")


def assert_same_scores(frame, partitions, how, client=None, **given):
    """Every worker has a part of the rows of one process, and all were evaluated once."""
    expected = glp_rapids.structural_diversity(frame, **how, **given, device="cpu")
    edges = dd.from_pandas(frame, npartitions=partitions)
    found = structural_diversity(edges, **how, **given, client=client)
    parts = [part.compute() for part in found.to_delayed()]
    together = pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(together, expected, check_dtype=False)
    reports = found.attrs["glp"]["ranks"]
    assert [part.attrs["glp"] for part in parts] == reports
    vertices = expected[[name for name in expected if name.endswith("vertex")]]
    assert sum(one["evaluated"] for one in reports) == len(vertices.drop_duplicates())
    return parts


@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("model", ["component", "core", "truss"])
def test_the_scores_of_one_process(client, model, k):
    parts = assert_same_scores(large_frame(4_000), 5, {"k": k, "model": model}, client)
    assert all(part.attrs["glp"]["evaluated"] for part in parts)
    # what a worker does follows costs, and not whose ids it has
    assert {part.attrs["glp"]["evaluated"] for part in parts} != {len(part) for part in parts}


GIVEN = ["empty", "only isolated", "self-loops", "multi-edges kept", "star", "weighted",
         "strings", "several columns"]  # fmt: skip


@pytest.mark.parametrize("name", GIVEN)
def test_graphs_of_any_kind(client, name):
    given = graphs.GRAPHS[name]()
    frame = given.pop("graph")
    assert_same_scores(frame, 2, {"k": 1}, client, **given)


@pytest.mark.parametrize("k", [2, *exhaustive(None)])
def test_directed_edges_are_taken_as_undirected(client, k):
    frame = "v" + large_frame(600).astype(str)
    back = frame[::3].rename(columns={"src": "dst", "dst": "src"})
    both = pd.concat([frame, back, frame[:50]], ignore_index=True)
    assert_same_scores(both, 3, {"k": k, "symmetrize": True}, client, directed=True)


@pytest.mark.exhaustive
@pytest.mark.parametrize("workers", [1, 3, 5])
def test_real_graphs_on_any_number_of_workers(data, workers):
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(processes=False, **options) as local, Client(local) as client:
        for name in ("email-Eu-core.edges.tsv", "facebook_combined.txt.gz"):
            names = ["src", "dst"]
            frame = pd.read_csv(data / name, sep=r"\s+", comment="#", header=None, names=names)
            for model in ("component", "core", "truss"):
                assert_same_scores(frame, 4, {"k": 4, "model": model}, client)


def test_the_command_line(client, tmp_path, capsys):
    (tmp_path / "friends").mkdir()
    frame = large_frame(600)
    for part in range(2):
        frame[part::2].to_parquet(tmp_path / "friends" / f"{part}.parquet")
    output = tmp_path / "scores.parquet"
    command = ["diversity", str(tmp_path / "friends"), "--k", "2", "--output", str(output)]
    command += ["--scheduler", client.scheduler.address]
    assert main(command) == 0
    said, expected = capsys.readouterr().err, glp_rapids.structural_diversity(frame, 2)
    assert f"{(expected['score'] > 0).sum()} of {len(expected)} vertices have friends in" in said
    assert "on 2 workers" in said
    found = pd.read_parquet(output).reset_index(drop=True)
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    assert main([*command, "--top", "3"]) != 0
    assert "--top is for a run in this process" in capsys.readouterr().err


def test_what_is_wrong_is_said(client):
    frame = large_frame(300)
    edges = dd.from_pandas(frame, npartitions=2)
    with pytest.raises(TypeError, match="must be a dask frame of pandas or cuDF"):
        structural_diversity(frame, 3)
    with pytest.raises(TypeError, match="structural_diversity has no option 'devices'"):
        structural_diversity(edges, 3, devices=[0])
    with pytest.raises(TypeError, match="structural_diversity has no option 'max_iter'"):
        structural_diversity(edges, 3, max_iter=4)
    with pytest.raises(ValueError, match="k must be at least 2"):
        structural_diversity(edges, 1, "truss")
    with pytest.raises(ValueError, match="edges are directed"):
        structural_diversity(edges, 3, directed=True)
    with pytest.raises(ValueError, match="source=5: the frame has no column 5"):
        structural_diversity(edges, 3, source=5)
