"""Where the bits of a compressed graph go: by part, by degree, and against a plain CSR."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.common.fixed_point import sums_by_group
from glp_rapids.common.segments import occurrences
from glp_rapids.compressed.file import verify, vertex_ids
from glp_rapids.device import array_module, to_host

if TYPE_CHECKING:
    from glp_rapids.compressed.graph import CompressedGraph
    from glp_rapids.graph.vertex_ids import VertexIds

CLASSES = 64  # of degrees: 0, 1, 2 to 3, 4 to 7, ...


def statistics(graph: CompressedGraph) -> dict[str, Any]:
    """Measure what `CompressedGraph.stats` says; all lists are walked through once."""
    lists, entries = graph.lists, graph.number_of_edges
    bits = np.zeros(len(verify.PARTS), np.int64)
    histogram = np.zeros((3, CLASSES), np.int64)
    for found in verify.walk(lists):
        bits += found.tally[: len(verify.PARTS)]
        histogram += _by_degree(found.degrees, found.sizes)
    parts = dict(zip(verify.PARTS, bits.tolist(), strict=True))
    parts["blocks"] += 8 * lists.block_bytes.nbytes
    parts["tables"] = 8 * lists.tables.nbytes if lists.tables.size > 1 else 0
    beside = {"weights": graph.weights, "order": graph.order}
    beside = {name: 0 if part is None else 8 * part.nbytes for name, part in beside.items()}
    beside["ids"] = 8 * _bytes(graph.vertices)
    total = sum(parts.values())
    plain = entries * graph.index_dtype.itemsize + 8 * (graph.number_of_vertices + 1)

    def per_entry(number: int) -> float:
        return number / max(entries, 1)

    return {
        "scheme": graph.layout.scheme,
        "vertices": graph.number_of_vertices,
        "edges": entries,
        "bytes": -(-total // 8),
        "csr_bytes": plain,
        "ratio": 8 * plain / max(total, 1),
        "bits_per_edge": per_entry(total + sum(beside.values())),
        "bits_of_lists": per_entry(total),
        "parts": {name: per_entry(number) for name, number in parts.items()},
        "beside": {name: per_entry(number) for name, number in beside.items()},
        "histogram": [
            {
                "degree": (1 << i >> 1, max((1 << i) - 1, 0)),
                "lists": count,
                "entries": held,
                "bits_per_entry": size / held if held else 0.0,
            }
            for i, (count, held, size) in enumerate(histogram.T.tolist())
            if count
        ],
    }


def table(found: dict[str, Any]) -> str:
    """Write statistics as a text of aligned columns."""
    lines = [f"{'part':<18}{'bits/entry':>12}{'share':>8}"]
    total = found["bits_of_lists"]
    for name, bits in found["parts"].items():
        if bits:
            lines.append(f"{name:<18}{bits:>12.4f}{bits / total:>8.1%}")
    lines.append(f"{'all lists':<18}{total:>12.4f}{1:>8.0%}")
    lines += [f"  + {name:<14}{bits:>12.4f}" for name, bits in found["beside"].items() if bits]
    lines += ["", f"{'degree':<22}{'lists':>12}{'entries':>14}{'bits/entry':>12}"]
    for row in found["histogram"]:
        low, high = row["degree"]
        degree = f"{low:,}" if low == high else f"{low:,} to {high:,}"
        bits = f"{row['bits_per_entry']:.4f}" if row["entries"] else ""
        lines.append(f"{degree:<22}{row['lists']:>12,}{row['entries']:>14,}{bits:>12}")
    ratio = found["ratio"]
    times = f"{ratio:.1f} times smaller" if ratio >= 1 else f"{1 / ratio:.1f} times larger"
    lines += ["", f"{found['bytes']:,} bytes, {times} than the CSR of {found['csr_bytes']:,}"]
    return "\n".join(lines)


def _by_degree(degrees: Any, sizes: Any) -> np.ndarray:
    """Add up lists, entries and bits for every class of degrees."""
    xp = array_module(degrees)
    classes = xp.searchsorted(1 << xp.arange(CLASSES - 1, dtype=np.int64), degrees, side="right")
    rows = [occurrences(classes, CLASSES)]
    rows += [sums_by_group(classes, values, CLASSES) for values in (degrees, sizes)]
    return np.stack([to_host(row) for row in rows])


def _bytes(vertices: VertexIds) -> int:
    """Count the bytes of ids as a file holds them, which do not depend on how memory does."""
    try:
        _, sections = vertex_ids.saved_ids(vertices)
    except TypeError:  # there is no form for them
        return sum(column.values.nbytes for column in vertices.columns)
    return sum(array.nbytes for array in sections.values())
