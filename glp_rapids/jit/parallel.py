"""Parallel kernels on CPU cores, also in forked processes and under any threading layer.

GNU's OpenMP, which Numba uses on Linux, kills a forked process that enters a region after its
parent did; so in such a process a kernel runs in its serial form, in one thread. Numba's own work
queue, where there is no OpenMP, kills a process whose threads enter regions at the same time; so
they do it one after another.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numba

from glp_rapids.jit import forks
from glp_rapids.jit.cache import SourceCache, keep_on_disk

_in_turn = forks.Lock()


def threads_available() -> int:
    """Return how many threads a kernel may use: those of ``numba.set_num_threads``, or one."""
    if forks.forked():
        return 1
    if forks.threads_started():
        return numba.get_num_threads()
    with forks.starting_threads:
        return numba.get_num_threads()


class ParallelKernel:
    """A function with ``prange``, in a parallel and a serial form; its first argument is threads.

    Parameters
    ----------
    function : callable
        Plain Python. Whatever ``threads`` is, one thread alone must be able to do it.
    cache : callable
        Makes the cache of a form, of the function and ``form=``, its name.
    serial_for_one : bool
        Whether the serial form is worth compiling for calls that want one thread, beside the other.
    """

    def __init__(
        self,
        function: Callable,
        cache: Callable[..., Any] = SourceCache,
        serial_for_one: bool = False,
    ) -> None:
        self._function, self._cache, self._serial_for_one = function, cache, serial_for_one
        self._forms: dict[bool, Any] = {}

    def __call__(self, threads: int, *arguments: Any) -> Any:
        """Call the parallel form, or the serial one where only one thread may run."""
        if (threads == 1 and self._serial_for_one) or threads_available() == 1:
            return self.form(False)(threads, *arguments)
        parallel = self.form(True)
        if numba.threading_layer() != "workqueue":
            return parallel(threads, *arguments)
        with _in_turn:
            return parallel(threads, *arguments)

    def form(self, parallel: bool) -> Any:
        """Return the compiled function of one form, made at its first call."""
        if parallel not in self._forms:
            options = {"nogil": True, "error_model": "numpy", "parallel": parallel}
            cache = partial(self._cache, form="parallel" if parallel else "serial")
            self._forms[parallel] = keep_on_disk(
                numba.njit(**options)(self._function), cache, self._function
            )
        return self._forms[parallel]
