"""What calls on plain lists take, for `estimate_memory`: functions of other rooms, by figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from glp_rapids.common.checks import shown
from glp_rapids.graph.call_memory import MOST, bytes_of_lists, lists_there
from glp_rapids.graph.graph import BaseGraph

if TYPE_CHECKING:
    from glp_rapids.device import DeviceName

FUNCTIONS = (*MOST,)


class Call(NamedTuple):
    """A call of a function that knows one way, and works on the host where a GPU is too small."""

    function: str

    @classmethod
    def of(cls, function: str, options: dict[str, Any]) -> Call:
        """Return the call; raise if an option is given that says how labels are propagated."""
        for name, value in options.items():
            raise TypeError(
                f"{name}={shown(value)} is for label propagation, not for algorithm={function!r}"
            )
        return cls(function)

    def row(self, subject: Any, device: DeviceName, limit: int | None, mapped: bool) -> tuple:
        """Return what it takes on a device, of a graph or of what is known of one.

        Raises
        ------
        ValueError
            The graph is directed.
        """
        if subject.directed:
            raise ValueError(
                f"graph is directed, and {self.function} is of undirected graphs; leave directed "
                "out, or read its edges with directed=False"
            )
        if isinstance(subject, BaseGraph):
            lists = lists_there(subject, device)
        else:
            lists = 0 if mapped and device == "cpu" else bytes_of_lists(subject)
        size = MOST[self.function][device](subject) + lists
        sizes = (0, size) if device == "cpu" else (size, 0)
        return "plain", device, *sizes, None if limit is None else size <= limit
