"""A mend of numba-cuda: a library that several GPUs have loaded is unloaded once."""

from __future__ import annotations

import contextlib
import functools
import weakref
from types import ModuleType
from typing import Any


def unload_once(driver: ModuleType) -> None:
    """Unload a library that several GPUs have loaded only once.

    GPUs of one compute capability share a kernel's cubin in numba-cuda 0.30, and so the handle of
    its library; but each has a module with a finalizer that unloads the handle. At its exit a
    process that ran more than ten kernels on two GPUs died of that (fewer are never unloaded). So
    only the first module of a handle keeps its finalizer.
    """
    load = getattr(driver, "load_module_image", None)
    if load is None:  # a version that loads otherwise
        return
    loaded: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    @functools.wraps(load)
    def load_module_image(*arguments: Any, **options: Any) -> Any:
        module = load(*arguments, **options)
        with contextlib.suppress(AttributeError, TypeError):  # likewise
            if loaded.setdefault(int(module.handle), module) is not module:
                module._finalizer.detach()
        return module

    driver.load_module_image = load_module_image
