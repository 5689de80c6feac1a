"""Values derived from something immutable, kept with it: a transpose, an engine, a copy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from glp_rapids.device import settle


class Keeper:
    """Keeps values by name; copies and unpickled objects begin without any.

    They can be made again, and some cannot travel: kernels, arrays on a device.
    """

    _derived: dict[Any, Any]

    def keep(self, name: Any, make: Callable[[], Any]) -> Any:
        """Return what is kept under a name; make it the first time, for any thread and stream."""
        if name not in self._derived:
            made = make()
            settle()
            self._derived.setdefault(name, made)
        return self._derived[name]

    def has(self, name: Any) -> bool:
        """Tell whether a value is kept under a name."""
        return name in self._derived

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_derived": {}}
