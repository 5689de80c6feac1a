"""What a monitor keeps in a file: facts, arrays and ids; checksums, a version, nothing executed.

The file is laid out as that of a compressed graph (`compressed.file.graph_file`), with other first
bytes; a damaged or truncated one is told by the part that is wrong.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from glp_rapids.compressed.file import container, vertex_ids
from glp_rapids.device import DeviceName, to_host
from glp_rapids.graph.vertex_ids import VertexIds

Array = Any

CONTENT = container.Content(
    "state of a monitor", "Monitor.save", "start a new Monitor", b"\x89GLPFM\r\n", 2, (2,)
)


def write(
    path: Path, facts: dict[str, Any], arrays: dict[str, Array], ids: dict[str, VertexIds]
) -> None:
    """Write a file, which takes the place of an older one only when it is complete.

    ``facts`` are plain Python values; ``arrays`` of one dimension, of numbers or bools.
    """
    tables, sections = {}, {}
    for name, vertices in ids.items():
        entry, parts = vertex_ids.saved_ids(vertices)
        tables[name] = {"size": len(vertices), **entry}
        sections |= {f"{name}/{part}": array for part, array in parts.items()}
    for name, array in arrays.items():
        host = to_host(array)
        sections[f"/{name}"] = host.view(np.uint8) if host.dtype == bool else host
    bools = [name for name, array in arrays.items() if array.dtype == bool]
    header = {"facts": facts, "ids": tables, "bools": bools}
    container.write(path, header, sections, CONTENT)


def read(
    path: Path, device: DeviceName = "cpu", on_device: tuple[str, ...] = ()
) -> tuple[dict[str, Any], dict[str, np.ndarray], dict[str, VertexIds]]:
    """Read facts, arrays and ids of a file, every byte of which is checked.

    All are on the host but the ids that are to be ``on_device``.
    """
    header, sections = container.read(path, mapped=False, verify=True, content=CONTENT)
    arrays = {name[1:]: array for name, array in sections.items() if name.startswith("/")}
    ids = {}
    try:
        for name in header["bools"]:
            arrays[name] = arrays[name].view(bool)
        for name, entry in header["ids"].items():
            start = f"{name}/"
            parts = {
                key[len(start) :]: array
                for key, array in sections.items() if key.startswith(start)
            }  # fmt: skip
            place: DeviceName = device if name in on_device else "cpu"
            ids[name] = vertex_ids.restored_ids(entry, parts, entry["size"], place, True)
        return dict(header["facts"]), arrays, ids
    except (LookupError, TypeError, ValueError) as error:
        container.damaged(path, f"its header ({error})")
