"""Any stream, any thread, any GPU: work is ordered on the caller's stream, and the answer right."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

# One thread under a stream that is busy when each call begins: what runs on another stream would
# read arrays before they are written.
BEHIND = """
import cupy
import families

wait = cupy.RawKernel('''
extern "C" __global__ void wait(long long ticks) {
    long long begin = clock64();
    while (clock64() - begin < ticks) {}
}''', "wait")
owner = cupy.cuda.Stream(non_blocking=True)
stream = eval(stream)
differing = []
for name in names:
    expected = families.result(name, 1, "cpu")
    families.result(name, 2, "gpu")  # compiled by now
    with stream:
        wait((1,), (1,), (100_000_000,))
        if families.result(name, 1, "gpu") != expected:
            differing.append(name)
print("differing:", *differing)
"""

# Threads, each under a stream of its own on any of the GPUs there are, all kinds of work.
SIDE_BY_SIDE = """
import random, threading
import cupy
import families

expected = {(name, seed): families.result(name, seed, "cpu") for name in names for seed in (1, 2)}
differing, done = [], []

def work(number):
    draw = random.Random(number)
    gpu = cupy.cuda.Device(number % cupy.cuda.runtime.getDeviceCount())
    with gpu, cupy.cuda.Stream(non_blocking=True):
        for _ in range(calls):
            name, seed = draw.choice(names), draw.choice((1, 2))
            if families.result(name, seed, "gpu") != expected[name, seed]:
                differing.append(name)
    done.append(number)

every = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(threads)]
for thread in every:
    thread.start()
for thread in every:
    thread.join()
print(len(done), "done, differing:", *sorted(set(differing)))
"""

STREAMS = {
    "non-blocking": ("cupy.cuda.Stream(non_blocking=True)", {}),
    "blocking": ("cupy.cuda.Stream()", {}),
    "per thread": ("cupy.cuda.Stream.ptds", {"CUPY_CUDA_PER_THREAD_DEFAULT_STREAM": "1"}),
    # as a stream of torch is taken over
    "another library's": ("cupy.cuda.ExternalStream(owner.ptr)", {}),
}  # fmt: skip


def run(script, timeout, environment=None, **values):
    """Run a script, which finds these values under their names."""
    path = [str(HERE.parent), str(HERE), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), **(environment or {})}
    script = "".join(f"{name} = {value!r}\n" for name, value in values.items()) + script
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment, capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip()


def every_family():
    from families import FAMILIES

    return list(FAMILIES)


@pytest.mark.gpu
@pytest.mark.parametrize("stream", STREAMS)
def test_calls_wait_for_what_the_stream_still_does(stream):
    made, environment = STREAMS[stream]
    names = every_family() if stream == "non-blocking" else ["classic", "compressed", "truss"]
    assert run(BEHIND, 400, environment, stream=made, names=names) == "differing:"


@pytest.mark.gpu
def test_four_threads_on_four_streams():
    found = run(SIDE_BY_SIDE, 200, names=["classic", "one graph"], threads=4, calls=5)
    assert found == "4 done, differing:"


@pytest.mark.gpu
def test_sixteen_threads_with_mixed_calls():
    """Also the first calls of the process, so that kernels are compiled and loaded by threads."""
    calls = int(os.environ.get("GLP_RAPIDS_CALLS", "4"))
    found = run(SIDE_BY_SIDE, 580, names=every_family(), threads=16, calls=calls)
    assert found == "16 done, differing:"
