"""Call a scalar function for every item: on all cores, or with a GPU thread an item.

A function takes the number of an item and a named tuple of all it works on.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from glp_rapids.device import DeviceName
from glp_rapids.jit.cache import keep_on_disk
from glp_rapids.jit.cpu import compiled
from glp_rapids.jit.parallel import threads_available
from glp_rapids.jit.target import DigestCache, Target, cpu_target

Functions = Callable[[str, Target], dict[str, Any]]

CHUNK = 64  # items; two that work on one word are fewer apart
THREADS = 256  # of a block on a GPU
FEW = 1 << 10  # items that are done before another thread has begun


def each(
    functions: Functions, scheme: str, name: str, items: int, work: Any, device: DeviceName
) -> None:
    """Call a function with the numbers 0 to ``items`` - 1, all at once.

    ``functions`` returns the compiled functions by name, for a scheme and a target. ``work`` is a
    named tuple of arrays on ``device``, which the function gets beside an item's number. On a CPU
    only items fewer than 64 apart may write into one word: others may run at the same time.
    """
    if items < 1:
        return
    if device == "gpu":
        from glp_rapids.jit.launch import launch

        kernel = _kernel(functions, scheme, name)
        launch(kernel, -(-items // THREADS), THREADS, np.int64(items), work)
        return
    span = _span(functions, scheme, name)
    threads = threads_available() if items >= FEW else 1
    stop = np.zeros(1, np.uint8)
    with ThreadPoolExecutor(threads) as pool:
        # Neighbouring chunks may write into one word: first the even ones, then the odd ones.
        for turn in range(2):
            starts = [np.int64(turn + 2 * thread) for thread in range(threads)]
            step = np.int64(2 * threads)
            run = [pool.submit(span, start, step, items, work, stop) for start in starts]
            try:
                for future in run:
                    future.result()
            except BaseException:  # a Ctrl-C too, after which nobody wants the rest
                stop[0] = 1
                raise


@functools.cache
def _span(functions: Functions, scheme: str, name: str) -> Any:
    function = functions(scheme, cpu_target())[name]

    def span(first, step, items, work, stop):
        for chunk in range(first, (items + CHUNK - 1) // CHUNK, step):
            if stop[0] != 0:
                return
            for item in range(chunk * CHUNK, min(items, (chunk + 1) * CHUNK)):
                function(item, work)

    whole = compiled(span, error_model="numpy")
    key = f"{functions.__module__} {functions.__name__} {scheme} {name}"
    return keep_on_disk(whole, DigestCache.of, span, key)


@functools.cache
def _kernel(functions: Functions, scheme: str, name: str) -> Any:
    from glp_rapids.jit.cuda import gpu_target, kernel_of

    function = functions(scheme, gpu_target())[name]
    return kernel_of(function, f"{functions.__module__} {functions.__name__} {scheme} {name}")
