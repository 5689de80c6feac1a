"""What the metrics ask of two frames beside each other: one library, ids that compare."""

from __future__ import annotations

from typing import Any

from glp_rapids.graph import id_types


def same_kind(a: Any, b: Any) -> tuple[Any, Any]:
    """Bring a cuDF frame to the host when the other is a pandas one."""
    if hasattr(a, "to_pandas") != hasattr(b, "to_pandas"):
        return tuple(x.to_pandas() if hasattr(x, "to_pandas") else x for x in (a, b))
    return a, b


def refuse_ids_apart(a: Any, b: Any, keys: list[str]) -> None:
    """Refuse two frames whose vertices are no ids, or of types that never compare equal."""
    for name in keys:
        families = {}
        for argument, frame in (("a", a), ("b", b)):
            family = id_types.id_family(frame[name], f"{argument}: the column {name!r}")
            if family is not None:
                families[family] = argument
        if len(families) > 1:
            (one, first), (other, second) = families.items()
            raise TypeError(
                f"{first} and {second} name their vertices differently: column {name!r} holds "
                f"{one} ids in {first} and {other} ids in {second}; cast one of them"
            )
