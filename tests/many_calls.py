"""Mixed calls by threads, forks and fresh processes, each held against what one call alone gave.

A script: ``python many_calls.py KIND [WORKERS] [CALLS]``; it prints "as expected" at the end. Of
the kind "ctrl_c", the names of what is interrupted come after it. It is run in a process of its
own, with a time limit, since what it looks for hangs or kills. At a SIGUSR1 it and what it forked
tell what their threads are doing.
"""

import concurrent.futures
import faulthandler
import hashlib
import multiprocessing
import os
import signal
import sys
import threading
import time

import numpy as np
import pandas as pd

import glp_rapids

ENTRIES = 1 << 16  # of a graph from where on kernels use all threads


def graph():
    ends = np.random.default_rng(1).integers(0, 4000, (ENTRIES, 2))
    return glp_rapids.as_graph(pd.DataFrame(ends // [1, 2], columns=["src", "dst"]), device="cpu")


def ingest(whole):
    source, destination = np.divmod(np.arange(50_000) * 7919 % 90_000, 300)
    return glp_rapids.as_graph(pd.DataFrame({"src": source, "dst": destination}), device="cpu")


def propagated(whole):
    return glp_rapids.label_propagation(whole, max_iter=4, explore=2)


CALLS = {
    "propagation": lambda whole: propagated(whole),
    "speakers": lambda whole: glp_rapids.speaker_listener(whole, max_labels=2, max_iter=5),
    "compressed": lambda whole: propagated(glp_rapids.compress(whole)),
    "diversity": lambda whole: glp_rapids.structural_diversity(whole, 2, "core"),
    "ingest": lambda whole: glp_rapids.label_propagation(ingest(whole), explore=0),
}


def digest(name, whole):
    """A call's result, as a digest that is the same in every process."""
    values = CALLS[name](whole).to_numpy(np.float64)
    return hashlib.sha256(np.ascontiguousarray(values).tobytes()).hexdigest()


def some(first, calls, whole=None):
    """Do some calls, one after another; give the digests by name."""
    whole = graph() if whole is None else whole
    names = list(CALLS)
    found = {}
    for number in range(first, first + calls):
        name = names[number % len(names)]
        this = digest(name, whole)
        assert found.setdefault(name, this) == this, name
    return found


def agree(outcomes):
    """All calls of a name gave the same."""
    together = {}
    for outcome in outcomes:
        for name, this in outcome.items():
            assert together.setdefault(name, this) == this, name
    return together


def in_processes(method, workers, calls):
    pool = multiprocessing.get_context(method).Pool(workers)
    with pool:
        return pool.starmap(some, [(worker, calls) for worker in range(workers)])


def in_threads(workers, calls):
    whole = graph()
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        jobs = [pool.submit(some, worker, calls, whole) for worker in range(workers)]
        return [job.result() for job in jobs]


def threads(workers, calls):
    return in_threads(workers, calls)


def fork(workers, calls):
    """Forked after the same calls in the parent, and once more from a forked process."""
    expected = some(0, len(CALLS))
    return [expected, *in_processes("fork", workers, calls)]


def cold_fork(workers, calls):
    """Forked before any call: nobody has compiled anything."""
    return in_processes("fork", workers, calls)


def spawn(workers, calls):
    return in_processes("spawn", workers, calls)


def fork_of_a_fork(workers, calls):
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()

    def nested():
        results.put(in_processes("fork", workers, calls))

    expected = some(0, len(CALLS))
    child = context.Process(target=nested)
    child.start()
    found = results.get()
    child.join()
    return [expected, *found]


def fork_amid_threads(workers, calls):
    """Forked again and again while other threads compile, run kernels and hold locks."""
    over = threading.Event()
    whole = graph()

    def busy(first):
        while not over.is_set():
            # fresh graphs, so that what is kept on one is made anew
            some(first, 2, graph())

    helpers = [threading.Thread(target=busy, args=(first,)) for first in (0, 2)]
    for helper in helpers:
        helper.start()
    outcomes = []
    try:
        for worker in range(workers):
            context = multiprocessing.get_context("fork")
            with concurrent.futures.ProcessPoolExecutor(1, context) as pool:
                outcomes.append(pool.submit(some, worker, calls).result())
    finally:
        over.set()
        for helper in helpers:
            helper.join()
    return [*outcomes, some(0, len(CALLS), whole)]


def everything(workers, calls):
    """Threads, fresh processes and forks at the same time, on one cache."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        spawned = pool.submit(in_processes, "spawn", workers, calls)
        forked = pool.submit(in_processes, "fork", workers, calls)
        return [*in_threads(workers, calls), *spawned.result(), *forked.result()]


def slow_items(scheme, target):
    """A function for `each` that takes its time."""

    @target.device_function
    def slow(item, work):
        total = np.uint64(item)
        for i in range(100_000):
            total = total * np.uint64(31) + np.uint64(i)
        work[item] = total

    return {"slow": slow}


def each(graph):
    from glp_rapids.jit.parallel_for import each

    items = graph.number_of_edges
    each(slow_items, "none", "slow", items, np.zeros(items, np.uint64), "cpu")


INTERRUPTED = {
    "trussness": lambda graph: glp_rapids.trussness(graph),
    "every truss": lambda graph: glp_rapids.structural_diversity(graph, None, "truss"),
    "best": lambda graph: glp_rapids.top_structural_diversity(graph, 3, 4, "truss"),
    "egos": lambda graph: glp_rapids.ego_networks(graph),
    "sweeps": lambda graph: glp_rapids.propagate(graph, Slow(), max_iter=1000, explore=1000),
    "items": each,
}


def clique_of(n):
    pairs = np.argwhere(np.triu(np.ones((n, n), bool), 1))
    return glp_rapids.as_graph(pd.DataFrame(pairs, columns=["src", "dst"]), device="cpu")


def ctrl_c(*names):
    """Interrupt calls that would take long; say how long each went on."""
    small = clique_of(30)
    if "sweeps" in names:
        glp_rapids.propagate(graph(), Slow(), max_iter=1)  # compiles the form for many entries
    for name in names:
        call = INTERRUPTED[name]
        n = 3000 if name == "trussness" else 1000  # some ten seconds, or minutes
        whole = clique_of(n)
        call(small)
        interrupted, over = [], threading.Event()

        def interrupt(interrupted=interrupted, over=over):
            delay = 0.3
            while not over.wait(delay):
                interrupted.append(time.perf_counter())
                os.kill(os.getpid(), signal.SIGINT)
                delay = 8  # one that comes while LLVM calls Python back is lost there

        threading.Thread(target=interrupt, daemon=True).start()
        try:
            call(whole)
        except KeyboardInterrupt:
            over.set()
            print(name, time.perf_counter() - interrupted[-1])
        else:
            raise AssertionError(f"{name} was not interrupted")
        for thread in threading.enumerate():  # nobody goes on with it
            if thread is not threading.main_thread():
                thread.join(5)
                assert not thread.is_alive(), name
        # the graph is as good as before
        assert glp_rapids.core_number(whole)["core_number"].eq(n - 1).all()


class Slow(glp_rapids.Program):
    """Takes its time."""

    @staticmethod
    def load_neighbor(v, u, weight, state):
        heard = state.labels[u]
        for i in range(500):
            heard = (heard * 31 + i) % 1000003
        return (state.labels[u] if heard >= 0 else 0), weight


if __name__ == "__main__":
    kind, *others = sys.argv[1:]
    if hasattr(signal, "SIGUSR1"):
        faulthandler.register(signal.SIGUSR1)
    if kind == "ctrl_c":
        ctrl_c(*others)
    else:
        print(len(agree(globals()[kind](*map(int, others)))), "as expected")
