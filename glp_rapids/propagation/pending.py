"""Who was still to be evaluated when a run ended: what a result carries for a run that goes on.

A vertex is settled if its label is among the best of those around it. All are that whose slack (see
`slack`) is not used up; the others are pending. The result of a run names them in its ``attrs``, as
a text: copies of a frame share it, it is written to Parquet and pickled like any other, and its
words are those of the ids (`graph.id_words`), so it holds on a graph where vertices have other
indices. It begins with a digest of the rule by which vertices were settled.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

import numpy as np

from glp_rapids.device import array_module, device_of, to_device, to_host
from glp_rapids.graph.id_words import id_words
from glp_rapids.graph.vertex_ids import IdColumn, VertexIds
from glp_rapids.jit.fingerprint import digest_of, fingerprint
from glp_rapids.propagation.program import Program, Traits, functions_of

if TYPE_CHECKING:
    from glp_rapids.propagation.options import Options
    from glp_rapids.propagation.workload import Workload

# Where more are pending, the next run evaluates everybody, which takes little longer then.
OF_ALL, MOST = 8, 1 << 16
_WORD = 8  # bytes


class Pending(str):
    """The vertices that are pending, as a text for ``attrs``."""

    __slots__ = ()

    @classmethod
    def of(cls, rule: str, words: np.ndarray) -> Pending:
        """Write down the words of the pending vertices."""
        raw = np.sort(words.view(np.uint64)).astype("<u8").tobytes()
        return cls(f"{rule}:{base64.b64encode(raw).decode()}")

    def __repr__(self) -> str:
        words = self.words()
        return "<not readable>" if words is None else f"<{words.size:,} vertices>"

    def __copy__(self) -> Pending:
        return self

    def __deepcopy__(self, memo: Any) -> Pending:
        return self

    @property
    def rule(self) -> str:
        """The digest of the rule by which all others are settled."""
        return self.partition(":")[0]

    def words(self) -> np.ndarray | None:
        """Return the words of the vertices, ascending; None if this is no such text."""
        try:
            raw = base64.b64decode(self.partition(":")[2], validate=True)
        except (binascii.Error, ValueError):
            return None
        return None if len(raw) % _WORD else np.frombuffer(raw, "<u8").astype(np.uint64)


def pending_of(frame: Any) -> Pending | None:
    """Return what a result says of pending vertices; None if it says nothing."""
    attributes = getattr(frame, "attrs", None)
    report = attributes.get("glp") if isinstance(attributes, dict) else None
    text = report.get("pending") if isinstance(report, dict) else None
    return Pending(text) if isinstance(text, str) else None


def rule_of(
    program: Program, traits: Traits, workload: Workload, options: Options, state: dict[str, Any]
) -> str | None:
    """Digest all that decides whether a vertex is settled, but for the labels around it.

    None: more than these labels does. What a program keeps in arrays changes with the graph, and
    what it writes down beside labels is there only for vertices that were evaluated.
    """
    arrays = any(getattr(value, "ndim", 0) for value in state.values())
    if not (traits.plain and traits.skip_inactive) or traits.count_volumes or arrays:
        return None
    graph, weights = workload.graph, workload.rows.weights
    parts = [
        options.direction if graph.directed else "undirected",
        "unweighted" if weights is None else str(weights.dtype),
        # votes that are rounded otherwise may tie where they did not
        repr(float(workload.usual_scale)),
    ]
    if not (traits.default_load and traits.default_score):
        functions = functions_of(program)
        parts += [fingerprint(functions[name]) for name in ("load_neighbor", "label_score")]
        parts += [f"{name}={value!r}" for name, value in sorted(state.items())]
    return digest_of(parts)[:16]


def most_pending(number_of_vertices: int) -> int:
    """Return how many pending vertices a result names at the most."""
    return min(number_of_vertices // OF_ALL, MOST)


def pending_text(rule: str, workload: Workload, vertices: Any) -> Pending | None:
    """Write down which vertices are pending; None if it may be all, or they are very many."""
    ids = workload.graph.vertices
    if vertices is None or vertices.size > most_pending(len(ids)):
        return None
    if not vertices.size:
        return Pending.of(rule, np.empty(0, np.uint64))
    made = workload.graph._derived.get("id words")
    if made is None:
        return Pending.of(rule, words_of(ids, vertices))
    if made.words.size > 1:  # else a word is the index and a number
        vertices = to_device(vertices, device_of(made.words))
    return Pending.of(rule, to_host(made.of(vertices)))


def words_of(ids: VertexIds, vertices: Any) -> np.ndarray:
    """Return the words of some vertices, without making those of all."""
    columns = (
        IdColumn(one.at(to_device(vertices, one.device)), one.family, one.dtype)
        for one in ids.columns
    )
    return id_words(VertexIds(tuple(columns), ids.kind), "cpu").of_first(vertices.size)


def vertices_of(ids: VertexIds, words: np.ndarray, all_words: Any) -> Any:
    """Return the vertices that have one of the words; ``all_words`` makes all of them.

    Two ids may have one word: both are returned. -1 is for a word that no vertex has.
    """
    if not words.size:
        return np.empty(0, np.int64)
    if len(ids.columns) == 1 and ids.columns[0].family == "integer" and len(ids):
        asked = words.astype(ids.columns[0].id_dtype)
        return ids.columns[0].search(asked)
    made = all_words()
    xp, words = array_module(made.words), to_device(words, device_of(made.words))
    known = made.of_first(len(ids)).view(np.uint64)
    place = xp.minimum(xp.searchsorted(words, known), words.size - 1)
    return xp.flatnonzero(words[place] == known)
