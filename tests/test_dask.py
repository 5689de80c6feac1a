"""Label propagation on a Dask cluster: the labels of one process."""

import json
import subprocess
import sys

import graphs
import pandas as pd
import pytest
import test_readme
from cases import exhaustive, turns
from dask_runs import VARIANTS, Loud, assert_same, case_of, large_frame

pytest.importorskip("distributed", reason="dask.distributed is not installed")

import dask.dataframe as dd
from distributed import Client, LocalCluster

import glp_rapids.dask
from glp_rapids import bench
from glp_rapids.cli import main
from glp_rapids.dask import label_propagation

# dask's own: of ports in use, of large frames in a graph of tasks, of loops that close
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.mark.parametrize("partitions", [1, 5])
def test_the_labels_of_one_process(client, partitions):
    frame = large_frame()
    expected = glp_rapids.label_propagation(frame, device="cpu")
    found = label_propagation(dd.from_pandas(frame, npartitions=partitions), client=client)
    assert found.npartitions == 2
    assert_same(found, expected)


@pytest.mark.parametrize("name", ["strings", "several columns", "directed weighted", "empty"])
def test_ids_of_any_kind(client, name):
    given = graphs.GRAPHS[name]()
    frame = given.pop("graph")
    expected = glp_rapids.label_propagation(frame, **given, device="cpu")
    found = label_propagation(dd.from_pandas(frame, npartitions=2), **given)
    assert_same(found, expected)


def test_a_pair_of_usual_names_is_found(client):
    frame = large_frame(500)
    expected = glp_rapids.label_propagation(frame, device="cpu")
    edges = dd.from_pandas(frame.rename(columns={"src": "source", "dst": "target"}), npartitions=2)
    assert_same(label_propagation(edges, client=client), expected)
    with pytest.raises(ValueError, match="'source' and 'destination' and also 'source' and 'targ"):
        label_propagation(edges.assign(destination=1), client=client)


@pytest.mark.parametrize(
    ("name", "direction"),
    [
        *turns(VARIANTS, ["in"]),
        *exhaustive(("propagate", "both"), *turns(VARIANTS, ["both", "out"])),
    ],
)
def test_every_variant(client, name, direction):
    frame, how = case_of(name, direction)
    expected = getattr(glp_rapids, name)(frame, **how, device="cpu")
    edges = dd.from_pandas(frame, npartitions=3)
    found = getattr(glp_rapids.dask, name)(edges, client=client, **how)
    if name != "layered_label_propagation":
        return assert_same(found, expected)
    layers = [expected[expected["gamma"] == gamma] for gamma in how["gammas"]]
    for number, (gamma, layer) in enumerate(zip(how["gammas"], layers, strict=True)):
        parts = [part.compute() for part in found.to_delayed()]
        together = pd.concat([part[part["gamma"] == gamma] for part in parts])
        pd.testing.assert_frame_equal(
            together.reset_index(drop=True), layer.reset_index(drop=True), check_dtype=False
        )
        changed = expected.attrs["glp"]["layers"][number]["changed"]
        assert all(part.attrs["glp"]["layers"][number]["changed"] == changed for part in parts)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ([], "label_propagation"),
        (["--variant", "layered", "--gamma", "0.5", "2"], "layered_label_propagation"),
        *exhaustive((["--variant", "speaker-listener"], "speaker_listener")),
    ],
)
def test_the_command_line(client, tmp_path, capsys, options, name):
    (tmp_path / "payments").mkdir()
    frame = large_frame(600)
    for part in range(2):
        frame[part::2].to_parquet(tmp_path / "payments" / f"{part}.parquet")
    output = tmp_path / "found.parquet"
    command = ["label-propagation", str(tmp_path / "payments"), *options]
    cluster_of = ["--scheduler", client.scheduler.address]
    assert main([*command, *cluster_of, "--output", str(output)]) == 0
    said = capsys.readouterr().err
    assert "on 2 workers" in said
    more = {"gammas": [0.5, 2.0]} if "--gamma" in options else {}
    expected = getattr(glp_rapids, name)(frame, device="cpu", **more)
    for _, layer in expected.groupby("gamma") if more else [("", expected)]:
        assert f"{layer['partition'].nunique()} communities" in said
    found = pd.read_parquet(output)
    order = ["vertex", "gamma"] if more else []
    found, expected = (
        one.sort_values(order, ignore_index=True) if order else one.reset_index(drop=True)
        for one in (found, expected)
    )
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    for wrong, words in (
        ([*cluster_of, "--output", str(output)], "exists; name a folder"),
        ([*cluster_of], "--output must name a folder"),
        ([*cluster_of, "--device", "cpu"], "--device is for a run in this process"),
        ([*cluster_of, "--way", "packed"], "--way is for a run in this process"),
    ):
        assert main([*command, *wrong]) != 0
        assert words in capsys.readouterr().err
    again = ["--initial", str(output), "--output", str(tmp_path / "again.parquet")]
    if name == "speaker_listener":
        assert main([*command, *cluster_of, *again]) != 0
        assert "--initial is not for --variant speaker-listener" in capsys.readouterr().err
    else:
        assert main([*command, *cluster_of, *again]) == 0
        assert "on 2 workers" in capsys.readouterr().err
        expected = getattr(glp_rapids, name)(frame, initial=expected, device="cpu", **more)
        found = pd.read_parquet(tmp_path / "again.parquet")
        if order:
            found = found.sort_values(order, ignore_index=True)
            expected = expected.sort_values(order, ignore_index=True)
        pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    named = ["--source", "payer", "--output", str(tmp_path / "none.parquet")]
    assert main([*command, *cluster_of, *named]) != 0
    assert "has no column 'payer'" in capsys.readouterr().err
    assert main(["label-propagation", "edges.csv", *cluster_of]) != 0
    assert "workers read Parquet" in capsys.readouterr().err


@pytest.mark.exhaustive
def test_the_bench_compares_with_one_process(capsys):
    variants = ["label_propagation", "seeded_label_propagation", "structural_diversity"]
    bench.main(["cluster", "--graphs", "kron-9-8", "--variants", *variants, "--json"])
    ((title, rows),) = json.loads(capsys.readouterr().out).items()
    assert title == "One process beside 2 workers of a Dask cluster"
    assert [row["variant"] for row in rows] == variants
    assert all(row["same"] and row["edges"] > 1_000 for row in rows)


@pytest.mark.exhaustive
@pytest.mark.parametrize("workers", [1, 3, 5])
def test_real_graphs_on_any_number_of_workers(data, workers):
    options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(processes=False, **options) as local, Client(local) as client:
        for name in ("email-Eu-core.edges.tsv", "facebook_combined.txt.gz", "wiki-Vote.txt.gz"):
            names = ["src", "dst"]
            frame = pd.read_csv(data / name, sep=r"\s+", comment="#", header=None, names=names)
            edges = dd.from_pandas(frame, npartitions=4)
            for directed in (False, True):
                expected = glp_rapids.label_propagation(frame, directed=directed, device="cpu")
                assert_same(label_propagation(edges, directed=directed, client=client), expected)


def test_vertices_without_an_edge(client):
    frame, isolated = large_frame(300), [5_000, 70, -3]
    expected = glp_rapids.label_propagation(frame, vertices=isolated, device="cpu")
    edges = dd.from_pandas(frame, npartitions=3)
    for vertices in (isolated, dd.from_pandas(pd.Series(isolated), npartitions=2)):
        assert_same(label_propagation(edges, vertices=vertices), expected)
    with pytest.raises(TypeError, match="vertices"):
        label_propagation(edges, vertices=["a"])


def test_seeds_that_are_no_vertex_may_be_left_out(client):
    frame = large_frame(300)
    seeds = dict.fromkeys([int(frame["src"].iloc[0]), int(frame["dst"].iloc[-1])], "known")
    expected = glp_rapids.seeded_label_propagation(frame, seeds, device="cpu")
    edges = dd.from_pandas(frame, npartitions=3)
    found = glp_rapids.dask.seeded_label_propagation(edges, {**seeds, -5: "x"}, absent="drop")
    assert_same(found, expected)


def test_what_is_wrong_is_said(client):
    frame = large_frame(300).astype({"src": "Int64"})
    frame.loc[3, "src"] = None
    with pytest.raises(ValueError, match="holds 1 null"):
        label_propagation(dd.from_pandas(frame, npartitions=2))
    edges = dd.from_pandas(large_frame(300), npartitions=2)
    with pytest.raises(TypeError, match="must be a dask frame of pandas or cuDF"):
        label_propagation(frame)
    with pytest.raises(TypeError, match="has no option 'memory_limit'"):
        label_propagation(edges, memory_limit=1 << 30)
    with pytest.raises(TypeError, match=r"glp_rapids\.dask\.propagate has no option 'devices'"):
        glp_rapids.dask.propagate(edges, glp_rapids.Program(), devices=[0])
    with pytest.raises(TypeError, match="device='gpu' takes a dask frame of cuDF, not of pandas"):
        label_propagation(edges, device="gpu")
    with pytest.raises(ValueError, match="device must be 'cpu', 'gpu' or None"):
        label_propagation(edges, device="tpu")
    with pytest.raises(TypeError, match=r"program must be an instance of glp_rapids\.Program"):
        glp_rapids.dask.propagate(edges, glp_rapids.Program)
    with pytest.raises(TypeError, match="speaker_listener has no option 'tol'"):
        glp_rapids.dask.speaker_listener(edges, tol=0.1)
    with pytest.raises(TypeError, match="seeded_label_propagation has no option 'initial'"):
        glp_rapids.dask.seeded_label_propagation(edges, [0], initial=None)
    with pytest.raises(TypeError, match="has no option 'touched'"):
        label_propagation(edges, touched=[1])
    with pytest.raises(ValueError, match=r"seeds holds 1 id\(s\) that are no vertex"):
        glp_rapids.dask.seeded_label_propagation(edges, [-5])
    for wrong in ("sweeps", "streams_to", "stops"):
        with pytest.raises(TypeError, match=f"unknown option '{wrong}'; there are classes"):
            label_propagation(edges, **{wrong: None})
    with pytest.raises(ValueError, match="source=5: the frame has no column 5"):
        label_propagation(edges, source=5)
    with pytest.raises(ValueError, match="weight='w': the frame has no column 'w'"):
        label_propagation(edges, weight="w")
    with LocalCluster(n_workers=0, processes=False, dashboard_address=None) as none:  # noqa: SIM117
        with Client(none, set_as_default=False) as nobody, pytest.raises(ValueError, match="no w"):
            label_propagation(edges, client=nobody)


@pytest.mark.exhaustive
def test_the_block_of_the_readme_runs(tmp_path):
    (block,) = [block for block in test_readme.blocks("python") if "LocalCluster" in block]
    (tmp_path / "payments").mkdir()
    frame = large_frame(500).rename(columns={"src": "payer", "dst": "payee"})
    for part in range(2):
        frame[part::2].to_parquet(tmp_path / "payments" / f"{part}.parquet")
    (tmp_path / "readme.py").write_text(block)
    done = subprocess.run(
        [sys.executable, "readme.py"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = pd.read_parquet(tmp_path / "communities").reset_index(drop=True)
    ends = {"source": "payer", "destination": "payee"}
    expected = glp_rapids.label_propagation(frame, **ends, device="cpu")
    pd.testing.assert_frame_equal(found, expected, check_dtype=False)
    scores = pd.read_parquet(tmp_path / "scores").reset_index(drop=True)
    expected = glp_rapids.structural_diversity(frame, 4, **ends, device="cpu")
    pd.testing.assert_frame_equal(scores, expected, check_dtype=False)


def test_connected_pieces(client):
    frame = large_frame(6_000)
    expected = glp_rapids.label_propagation(frame, connected=True, max_iter=1, device="cpu")
    edges = dd.from_pandas(frame, npartitions=3)
    found = label_propagation(edges, connected=True, max_iter=1, client=client)
    assert_same(found, expected)
    with pytest.raises(TypeError, match="connected must be True or False"):
        label_propagation(edges, connected=3)


@pytest.mark.parametrize("renumber", [True, False])
def test_going_on_from_an_earlier_result(client, renumber):
    frame = "v" + large_frame(3_000).astype(str)
    before = glp_rapids.label_propagation(frame[:2_500], renumber=renumber, device="cpu")
    expected = glp_rapids.label_propagation(
        frame, initial=before, renumber=renumber, device="cpu"
    )
    edges = dd.from_pandas(frame, npartitions=3)
    how = {"renumber": renumber, "client": client}
    for initial in (before, dd.from_pandas(before.sample(frac=1, random_state=0), npartitions=3)):
        assert_same(label_propagation(edges, initial=initial, **how), expected)
    # a result that lies on the workers
    found = label_propagation(edges.partitions[:2], **how)
    again = pd.concat([part.compute() for part in found.to_delayed()], ignore_index=True)
    expected = glp_rapids.label_propagation(frame, initial=again, renumber=renumber, device="cpu")
    assert_same(label_propagation(edges, initial=found, **how), expected)


@pytest.mark.exhaustive
def test_layers_and_programs_that_go_on(client):
    frame = large_frame(3_000)
    edges = dd.from_pandas(frame, npartitions=3)
    before = glp_rapids.layered_label_propagation(frame[:2_500], gammas=[1, 0.25], device="cpu")
    of_one = before[before["gamma"] == 1]
    expected = glp_rapids.propagate(frame, Loud(), initial=of_one, device="cpu")
    assert_same(glp_rapids.dask.propagate(edges, Loud(), initial=of_one), expected)
    expected = glp_rapids.layered_label_propagation(
        frame, gammas=[0.25], initial=before, device="cpu"
    )
    found = glp_rapids.dask.layered_label_propagation(
        edges, gammas=[0.25], initial=dd.from_pandas(before, npartitions=4)
    )
    parts = [part.compute() for part in found.to_delayed()]
    together = pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(together, expected, check_dtype=False)


def test_what_no_result_is(client):
    edges = dd.from_pandas(large_frame(100), npartitions=2)
    with pytest.raises(TypeError, match="initial must be a frame of dask or pandas"):
        label_propagation(edges, initial=[1, 2])
    with pytest.raises(ValueError, match="initial has no column 'partition'"):
        label_propagation(edges, initial=pd.DataFrame({"vertex": [1]}))
    with pytest.raises(TypeError, match="touched"):
        label_propagation(edges, initial=pd.DataFrame({"vertex": [1], "partition": 1}), touched=[1])
