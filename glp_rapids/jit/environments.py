"""Reads back what Numba pickled, without what of Numba only compiling needs."""

from __future__ import annotations

import importlib
import pickle
import sys
from typing import Any

from numba.core import environment


def _environment(module: str, constants: list, name: str) -> environment.Environment:
    """Return a function's environment as Numba does, but leave a module of Numba's unimported.

    Its names are for code that calls Python, which nothing here does; SciPy would come with it.
    """
    known = environment.lookup_environment(name)
    if known is None:
        own = module.partition(".")[0] == "numba" and module not in sys.modules
        names = {"__name__": module} if own else vars(importlib.import_module(module))
        known = environment.Environment(names)
        known.consts[:] = constants
        known.env_name = name
        environment.Environment._memo[name] = known
    return known


class Unpickler(pickle.Unpickler):
    """Reads a pickle of Numba's."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == (environment.__name__, environment._rebuild_env.__name__):
            return _environment
        return super().find_class(module, name)
