"""Runs on a Dask cluster that fail, are cancelled, or lose a worker: a clear end, and no rest."""

import asyncio
import os
import signal
import threading
import time
from concurrent.futures import CancelledError
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from dask_runs import assert_same, large_frame

pytest.importorskip("distributed", reason="dask.distributed is not installed")

import dask.dataframe as dd
from distributed import Client, Future, futures_of, wait

import glp_rapids.dask
from glp_rapids.dask import WorkerLost, cluster, label_propagation, partitions
from glp_rapids.multigpu import dask_exchange
from glp_rapids.multigpu.dask_exchange import NAME, REMEMBERED, DaskExchange, ExchangePlugin
from glp_rapids.multigpu.exchange import RankFailed

# dask's own: of ports in use, of large frames in a graph of tasks, of loops that close
pytestmark = pytest.mark.filterwarnings("ignore")


def worker_of_a_rank(client):
    """Wait until ranks run; return the process of a worker."""
    processes = client.run(os.getpid)
    while "rank_of_run" not in str(client.processing()):
        time.sleep(0.02)
    return next(iter(processes.values()))


def test_who_cancels_a_run_ends_it_on_all_workers(client):
    def cancel():
        worker_of_a_rank(client)
        ranks = [key for key in list(client.futures) if "rank_of_run" in str(key)]
        client.cancel([Future(key, client) for key in ranks])

    canceller = threading.Thread(target=cancel)
    canceller.start()
    edges = dd.from_pandas(large_frame(40_000), npartitions=2)
    with pytest.raises(RuntimeError, match="the run was cancelled"):
        label_propagation(edges, max_iter=1 << 30, tol=0.0, retain=False, way="auto")
    canceller.join()


def test_a_client_that_is_none_or_closed_is_refused(client):
    edges = dd.from_pandas(large_frame(400), npartitions=2)
    with pytest.raises(TypeError, match=r"must be a distributed.Client, not 'tcp://x'; .* makes"):
        label_propagation(edges, client="tcp://x")
    with Client(client.scheduler.address, set_as_default=False) as other:
        pass
    with pytest.raises(ValueError, match=r"client is closed; make another distributed\.Client"):
        label_propagation(edges, client=other)


def test_an_asynchronous_client_is_refused(client):
    edges = dd.from_pandas(large_frame(400), npartitions=2)

    async def call(**chosen):
        async with Client(client.scheduler.address, asynchronous=True, **chosen) as other:
            label_propagation(edges, client=other if chosen else None)

    for chosen in ({"set_as_default": False}, {}):
        with pytest.raises(ValueError, match=r"client is asynchronous.*asyncio\.to_thread"):
            asyncio.run(call(**chosen))


def test_a_client_that_is_closed_in_a_run_ends_it(client):
    other = Client(client.scheduler.address, set_as_default=False)

    def close():
        worker_of_a_rank(other)
        other.close()

    closer = threading.Thread(target=close)
    closer.start()
    edges = dd.from_pandas(large_frame(40_000), npartitions=2)
    with pytest.raises((RuntimeError, CancelledError), match=r"client was closed|cancelled"):
        label_propagation(
            edges, max_iter=1 << 30, tol=0.0, retain=False, way="auto", client=other
        )  # fmt: skip
    closer.join()


def test_who_asks_a_client_that_closes_meanwhile_does_not_wait_for_ever(monkeypatch):
    """As `Client.cancel` does: it once waited for a loop that had stopped."""
    client, ever = SimpleNamespace(status="running"), threading.Event()

    def ask():
        client.status = "closing"
        ever.wait()

    monkeypatch.setattr(cluster, "GRACE", 0.1)
    assert cluster._asked(client, lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        cluster._asked(client, lambda: 1 / 0)
    for _ in range(2):  # and one that is closed is not asked
        with pytest.raises(RuntimeError, match="the client was closed during the run"):
            cluster._asked(client, ask)
    ever.set()


def late_frame(client, frame):
    """A frame in two partitions; that of the second rank is computed late, by the first's worker.

    A thread that the first rank has by then is one that what makes it waits for.
    """
    first, second = sorted(cluster._workers(client))
    half = len(frame) // 2
    begun = client.submit(time.sleep, 1, workers=[second], pure=False)
    late = client.submit(
        lambda frame, begun: frame, frame.iloc[half:], begun, workers=[first], pure=False
    )
    parts = [client.submit(frame.iloc[:half].copy, pure=False), late]
    return dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)


def in_time(client, call):
    """Call in a thread; fail if that hangs, and free the cluster of what hangs there."""
    done = []
    calling = threading.Thread(target=lambda: done.append(call()), daemon=True)
    calling.start()
    calling.join(60)
    if calling.is_alive():
        client.restart()
    assert done
    return done[0]


@pytest.mark.parametrize("late", ["edges", "vertices", "initial"])
def test_workers_of_one_thread_compute_partitions_before_ranks_wait(client, late):
    frame, alone = large_frame(300), pd.DataFrame({"vertex": [1_000, 1_001, 2]})
    given = {"vertices": alone} if late == "vertices" else {}
    if late == "initial":
        given = {"initial": glp_rapids.label_propagation(frame, max_iter=1, device="cpu")}
    expected = glp_rapids.label_propagation(frame, **given, device="cpu")
    if late == "edges":
        edges = late_frame(client, frame)
    else:
        edges = dd.from_pandas(frame, npartitions=2)
        given = {late: late_frame(client, given[late])}
    found = in_time(client, lambda: label_propagation(edges, **given, client=client))
    pd.testing.assert_frame_equal(
        found.compute().reset_index(drop=True), expected, check_dtype=False
    )


def test_diversity_waits_for_partitions_too(client):
    frame = large_frame(300)
    expected = glp_rapids.structural_diversity(frame, 2, device="cpu")
    edges = late_frame(client, frame)
    found = in_time(client, lambda: glp_rapids.dask.structural_diversity(edges, 2, client=client))
    pd.testing.assert_frame_equal(
        found.compute().reset_index(drop=True), expected, check_dtype=False
    )


def test_a_partition_that_fails_ends_the_run_with_its_own_error(client):
    def fail():
        raise ZeroDivisionError("of the partition")

    frame = large_frame(9)
    parts = [client.submit(frame.copy), client.submit(fail)]
    edges = dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)
    with pytest.raises(ZeroDivisionError, match="of the partition"):
        label_propagation(edges, client=client)
    expected = glp_rapids.label_propagation(frame, device="cpu")
    assert_same(label_propagation(dd.from_pandas(frame, npartitions=2), client=client), expected)


def test_who_cancels_partitions_ends_the_run(client, tmp_path):
    over = tmp_path / "over"

    def wait_for_the_end():  # a thread of a worker goes on with what was cancelled
        while not over.exists():
            time.sleep(0.02)

    waiting = client.submit(wait_for_the_end, pure=False)
    frame = large_frame(9)
    late = client.submit(lambda begun: frame, waiting, pure=False)
    edges = dd.from_delayed([late], meta=frame.iloc[:0], verify_meta=False)

    def cancel():
        while not any("_itself" in str(key) for key in list(client.futures)):
            time.sleep(0.02)
        client.cancel([waiting], force=True)

    canceller = threading.Thread(target=cancel)
    canceller.start()
    with pytest.raises((RuntimeError, CancelledError), match="cancel"):
        label_propagation(edges, client=client)
    canceller.join()
    over.touch()


def test_a_worker_keeps_nothing_of_a_run_that_failed():
    plugin = ExchangePlugin()
    plugin.setup(SimpleNamespace(handlers={}))
    asyncio.run(plugin.take("run", 1, 0, "early"))
    plugin.fail("run", "why")
    asyncio.run(plugin.take("run", 2, 0, "late"))
    assert not plugin._taken
    with pytest.raises(RankFailed, match="why"):
        plugin.wait_for("run", 1, 0, patience=0.1)
    for number in range(300):
        plugin.fail(str(number), "why")
    assert len(plugin._failed) == REMEMBERED


@pytest.mark.parametrize("early", [False, True])
def test_a_rank_that_still_connects_to_a_dead_worker_ends_with_its_run(client, monkeypatch, early):
    plugin, ended = ExchangePlugin(), []
    worker = SimpleNamespace(
        handlers={}, plugins={NAME: plugin}, loop=client.loop, rpc=client.rpc
    )  # fmt: skip
    monkeypatch.setattr(dask_exchange, "get_worker", lambda: worker)
    plugin.setup(worker)
    rank = DaskExchange("run", 0, ["tcp://127.0.0.1:2", "tcp://127.0.0.1:1"])  # nobody listens

    def tell():
        with pytest.raises(RankFailed, match="why"):
            rank.tell("value")
        ended.append(time.monotonic())

    if early:
        plugin.fail("run", "why")
    telling, begin = threading.Thread(target=tell, daemon=True), time.monotonic()
    telling.start()
    while not early and not client.rpc._connecting:
        time.sleep(0.01)
    plugin.fail("run", "why")
    telling.join(5)
    assert ended
    assert ended[0] - begin < 5
    assert not plugin._sending


def test_a_worker_where_a_rank_does_not_end_is_restarted(client, monkeypatch):
    label_propagation(dd.from_pandas(large_frame(300), npartitions=2))
    before, error = client.run(os.getpid), ValueError("the real one")
    hanging, other = sorted(before)

    def begin(dask_worker):
        dask_worker.plugins[NAME].begin("hanging")

    client.run(begin, workers=[hanging])
    monkeypatch.setattr(cluster, "GRACE_OF_GPUS", 3.0)
    cluster._stop(client, [], "hanging", sorted(before), error, "gpu")
    client.wait_for_workers(2)
    after = client.run(os.getpid)
    assert after[other] == before[other]
    assert before[hanging] not in after.values()
    assert len(after) == 2
    assert hanging in error.__notes__[0]


def test_what_went_wrong_is_said_though_no_worker_can_be_reached(client, monkeypatch):
    def unreachable(*_, **__):
        raise OSError("unreachable")

    monkeypatch.setattr(client, "run", unreachable)
    error = ValueError("the real one")
    cluster._stop(client, [], "run", sorted(cluster._workers(client)), error)
    assert "unreachable" in error.__notes__[0]


def test_no_worker_is_missed_while_the_client_looks_at_the_scheduler(client):
    there, over = set(client.run(os.getpid)), threading.Event()

    def look():
        while not over.is_set():
            client.scheduler_info(n_workers=0)

    looking = threading.Thread(target=look)
    looking.start()
    try:
        assert all(cluster._workers(client) == there for _ in range(300))
    finally:
        over.set()
        looking.join()


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        ([None] * 5, [0, 1, 0, 1, 0]),
        (["b", "a", "b", "a"], [1, 0, 1, 0]),
        (["b", "b", "b", "b"], [1, 1, 0, 0]),
        (["b", "gone", None, "b", "a"], [1, 0, 0, 1, 0]),
        (["b", "b", "b", "a", "a"], [1, 1, 1, 0, 0]),
        ([], []),
    ],
)
def test_partitions_go_where_they_lie(places, expected):
    assert partitions.shares(places, ["a", "b"]) == expected


def test_no_worker_gets_many_partitions():
    draw = np.random.default_rng(0)
    for _ in range(300):
        workers = [*"abcdefghi"][: draw.integers(1, 9)]
        places = [None if draw.random() < 0.3 else workers[place] for place in
                  draw.integers(0, len(workers), draw.integers(0, 20))]  # fmt: skip
        ranks = partitions.shares(places, workers)
        numbers = np.bincount(ranks, minlength=len(workers))
        assert numbers.max() - numbers.min() <= 1
        assert partitions.shares(places, workers) == ranks


def test_partitions_that_are_there_stay_where_they_are(client):
    edges = client.persist(dd.from_pandas(large_frame(2_000), npartitions=4))
    wait(edges)
    there = {key[-1]: lies for key, (lies,) in client.who_has(futures_of(edges)).items()}
    workers = sorted(cluster._workers(client))
    given = partitions.dealt(edges, workers, client)
    wait([future for of_worker in given for future in of_worker])
    assert [len(of_worker) for of_worker in given] == [2, 2]
    assert partitions.places_of(edges, client) == there
    assert partitions.places_of(dd.from_pandas(large_frame(9), npartitions=2), client) == {}
    found = label_propagation(edges, client=client)
    assert_same(found, glp_rapids.label_propagation(large_frame(2_000), device="cpu"))


def test_workers_whose_plugin_has_gone_get_another(client):
    edges = dd.from_pandas(large_frame(300), npartitions=2)
    label_propagation(edges, client=client)
    client.unregister_worker_plugin(NAME)  # as after a restart of the scheduler
    expected = glp_rapids.label_propagation(large_frame(300), device="cpu")
    assert_same(label_propagation(edges, client=client), expected)


def test_two_runs_at_once_take_turns(client):
    edges = dd.from_pandas(large_frame(2_000), npartitions=3)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(label_propagation(edges, client=client)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = glp_rapids.label_propagation(large_frame(2_000), device="cpu")
    for one in found:
        assert_same(one, expected)
    assert len(found) == 2


@pytest.mark.exhaustive
def test_a_worker_that_dies_ends_the_run(client):
    edges = dd.from_pandas(large_frame(400_000), npartitions=4)
    killed = []

    def kill():
        os.kill(worker_of_a_rank(client), signal.SIGKILL)
        killed.append(time.monotonic())

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(WorkerLost, match="of 2 workers died"):
        label_propagation(edges, max_iter=3_000, tol=0.0, retain=False)
    killer.join()
    assert time.monotonic() - killed[0] < 30
    client.wait_for_workers(2)
    frame = large_frame(2_000)
    expected = glp_rapids.label_propagation(frame, device="cpu")
    found = label_propagation(dd.from_pandas(frame, npartitions=2))
    assert_same(found, expected)
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    client.wait_for_workers(2)
    with pytest.raises(Exception, match=r"[lL]ost|[cC]ancelled"):  # and nobody waits for ever
        client.compute(found).result(timeout=30)
