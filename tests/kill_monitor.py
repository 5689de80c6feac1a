"""Kill a monitor at random moments, open its folder, compare, and let the next one go on there.

Run by `test_monitor_folder`: arguments are a folder, how many kills and a seed. The children are
forked, so that each is at work at once; the parent has used one thread only.
"""

import os
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
from monitors import batches, monitor

from glp_rapids.fraud import Monitor


def main(folder, kills, seed):
    folder.mkdir()
    parts, seeds = batches(3)
    watch, states = monitor(seeds, half_life="4D", hubs=100), []
    for part in parts:
        watch.update(part)
        states.append(contents(watch))
    rng, begun = np.random.default_rng(seed), time.monotonic()
    wrong = ticks = 0
    for attempt in range(kills):
        path = folder / str(attempt)
        before = folder / str(attempt - 1)
        if attempt % 8 and before.exists():
            before.rename(path)
        child = os.fork()
        if not child:
            go_on(path, parts, seeds)
        time.sleep(rng.random() * 0.25)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        try:
            there = Monitor.open(path, device="cpu")
        except FileNotFoundError:
            continue
        ticks += 1
        wrong += contents(there) != states[there._state.tick - 1]
        there.close()
        if there._state.tick == len(parts):
            shutil.rmtree(path)
    print(f"{kills} kills, {ticks} compared, {wrong} wrong")
    print(f"{time.monotonic() - begun:.0f} s", file=sys.stderr)


def go_on(path, parts, seeds):
    try:
        watch = Monitor.open(path, device="cpu")
    except FileNotFoundError:
        watch = monitor(seeds, half_life="4D", hubs=100)
    for part in parts[watch._state.tick :]:
        watch.update(part)
        watch.save(path)
    time.sleep(60)


def contents(watch):
    names = watch._state.register.names
    graph = [array.tobytes() for array in watch.window._graph("faded").arrays()]
    return watch.scores["score"].tolist(), names, len(watch.window), watch.window.newest, graph


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
