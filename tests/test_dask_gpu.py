"""Label propagation of dask frames of cuDF: by the workers' GPUs, the labels of one process."""

import os
import signal
import threading
import time

import graphs
import pandas as pd
import pytest
from cases import exhaustive
from dask_runs import VARIANTS, case_of, large_frame

pytest.importorskip("dask_cuda", reason="dask-cuda is not installed")
pytest.importorskip("dask_cudf", reason="dask-cuDF is not installed")

import cudf
import dask.dataframe as dd
from dask_cuda import LocalCUDACluster
from distributed import Client, LocalCluster

import glp_rapids.dask
from glp_rapids.dask import WorkerLost, label_propagation

pytestmark = [
    pytest.mark.gpu, pytest.mark.xdist_group("dask"), pytest.mark.filterwarnings("ignore"),
]  # fmt: skip


@pytest.fixture(scope="module", params=[1, 2])
def client(request):
    """A client of a cluster with a GPU for each of its workers."""
    import cupy

    there = cupy.cuda.runtime.getDeviceCount()
    if there < request.param:
        pytest.skip(f"{request.param} GPUs are needed, and there is {there}")
    with (
        LocalCUDACluster(n_workers=request.param, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield client


def on_gpus(frame, partitions=3):
    return dd.from_pandas(cudf.DataFrame(frame), npartitions=partitions)


def assert_same(found, expected, device="gpu"):
    parts = [part.compute() for part in found.to_delayed()]
    assert all(isinstance(part, cudf.DataFrame) for part in parts)
    together = pd.concat([part.to_pandas() for part in parts], ignore_index=True)
    pd.testing.assert_frame_equal(together, expected, check_dtype=False)
    for report in found.attrs["glp"]["ranks"]:
        assert report["device"] == device
        assert report["changed"] == expected.attrs["glp"]["changed"]


@pytest.mark.parametrize("device", [None, "cpu"])
def test_the_labels_of_one_process(client, device):
    frame = large_frame()
    expected = glp_rapids.label_propagation(frame, device="cpu")
    found = label_propagation(on_gpus(frame), client=client, device=device)
    assert_same(found, expected, device or "gpu")


@pytest.mark.parametrize("name", ["strings", "several columns", "directed weighted", "empty"])
def test_ids_of_any_kind(client, name):
    given = graphs.GRAPHS[name]()
    frame = given.pop("graph")
    expected = glp_rapids.label_propagation(frame, **given, device="cpu")
    assert_same(label_propagation(on_gpus(frame, 2), client=client, **given), expected)


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("direction", ["in", *exhaustive("out", "both")])
def test_every_variant(client, name, direction):
    frame, how = case_of(name, direction)
    if name == "label_propagation":
        how["renumber"] = False
    if name == "layered_label_propagation":
        how["gammas"] = [1]
    expected = getattr(glp_rapids, name)(frame, **how, device="cpu")
    found = getattr(glp_rapids.dask, name)(on_gpus(frame), client=client, **how)
    if name == "layered_label_propagation":
        parts = [part.compute() for part in found.to_delayed()]
        together = pd.concat([part.to_pandas() for part in parts], ignore_index=True)
        return pd.testing.assert_frame_equal(together, expected, check_dtype=False)
    return assert_same(found, expected)


def test_isolated_vertices_and_an_earlier_result(client):
    frame, isolated = large_frame(), pd.Series([-7, 10**10])
    how = {"client": client, "vertices": isolated}
    before = label_propagation(on_gpus(frame[:15_000]), **how)
    expected = glp_rapids.label_propagation(frame[:15_000], vertices=isolated, device="cpu")
    assert_same(before, expected)
    again = glp_rapids.label_propagation(
        frame, vertices=isolated, initial=expected, device="cpu"
    )
    assert_same(label_propagation(on_gpus(frame), initial=before, **how), again)


def test_connected_pieces(client):
    frame, how = large_frame(6_000), {"connected": True, "max_iter": 1}
    expected = glp_rapids.label_propagation(frame, **how, device="cpu")
    assert_same(label_propagation(on_gpus(frame), client=client, **how), expected)


@pytest.mark.parametrize("k", [3, None])
@pytest.mark.parametrize("model", ["component", "core", "truss"])
def test_structural_diversity(client, model, k):
    frame = large_frame(8_000)
    expected = glp_rapids.structural_diversity(frame, k, model, device="cpu")
    found = glp_rapids.dask.structural_diversity(on_gpus(frame), k, model, client=client)
    together = pd.concat(
        [part.compute().to_pandas() for part in found.to_delayed()], ignore_index=True
    )
    pd.testing.assert_frame_equal(together, expected, check_dtype=False)
    assert all(report["device"] == "gpu" for report in found.attrs["glp"]["ranks"])


@pytest.mark.parametrize("name", ["strings", "several columns", "empty", "star", "isolated"])
@pytest.mark.parametrize("k", [1, None])
def test_structural_diversity_with_ids_of_any_kind(client, name, k):
    given = graphs.GRAPHS[name]()
    frame = given.pop("graph")
    expected = glp_rapids.structural_diversity(frame, k, "core", device="cpu", **given)
    found = glp_rapids.dask.structural_diversity(
        on_gpus(frame, 2), k, "core", client=client, **given
    )
    together = pd.concat(
        [part.compute().to_pandas() for part in found.to_delayed()], ignore_index=True
    )
    pd.testing.assert_frame_equal(together, expected, check_dtype=False)


@pytest.mark.parametrize(("t", "k"), [(1, 2), (90, 2), (90, 100)])  # none has one of 100
@pytest.mark.parametrize("model", ["component", "core", "truss"])
def test_the_best_of_structural_diversity(client, model, t, k):
    frame = "v" + large_frame(8_000).astype(str)
    expected = glp_rapids.top_structural_diversity(frame, t, k, model, device="cpu")
    found = glp_rapids.dask.top_structural_diversity(on_gpus(frame), t, k, model, client=client)
    for one, other in zip(found, expected, strict=True):
        parts = [part.compute() for part in one.to_delayed()]
        assert all(isinstance(part, cudf.DataFrame) for part in parts)
        together = pd.concat([part.to_pandas() for part in parts], ignore_index=True)
        pd.testing.assert_frame_equal(together, other, check_dtype=False)
        assert all(report["device"] == "gpu" for report in one.attrs["glp"]["ranks"])


def test_a_rank_that_fails_leaves_the_gpus_usable(client):
    frame = large_frame(2_000)
    wrong = frame.astype({"src": "Int64"})
    wrong.loc[3, "src"] = None
    with pytest.raises(ValueError, match="holds 1 null"):
        label_propagation(on_gpus(wrong), client=client)
    found = label_propagation(on_gpus(frame), client=client)
    assert_same(found, glp_rapids.label_propagation(frame, device="cpu"))


def test_a_worker_that_dies_ends_the_run(client):
    frame, endless = large_frame(400_000), glp_rapids.dask.speaker_listener
    endless(on_gpus(frame), client=client, max_iter=2)  # kernels are compiled
    killed = []

    def kill():
        time.sleep(1.0)
        os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
        killed.append(time.monotonic())

    killer = threading.Thread(target=kill)
    number = len(client.nthreads())
    killer.start()
    with pytest.raises(WorkerLost, match=f"of {number} workers died"):
        endless(on_gpus(frame), client=client, max_iter=20_000)
    killer.join()
    assert time.monotonic() - killed[0] < 30
    client.wait_for_workers(number)
    frame = large_frame(2_000)
    found = label_propagation(on_gpus(frame), client=client)
    assert_same(found, glp_rapids.label_propagation(frame, device="cpu"))


def test_workers_that_share_a_gpu_run_on_their_cpus():
    frame = large_frame(2_000)
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        with pytest.raises(ValueError, match="several workers have the same one"):
            label_propagation(on_gpus(frame), client=client, device="gpu")
        found = label_propagation(on_gpus(frame), client=client)
        assert_same(found, glp_rapids.label_propagation(frame, device="cpu"), "cpu")
