"""A graph of a table that is read in chunks, several times, since it does not fit twice in memory.

The passes over the table: the distinct ids are collected (`distinct`; for ids of several columns
one pass more, for the tuples), then the entries of every row are counted, then each is put into its
place (`graph.in_place`). At its peak that takes, beside the ids and a chunk of some 100 bytes a
row: 8 bytes a vertex for ``indptr``, 1 to 2 a vertex to look up integer ids, and 4 an entry (8
from 2^31 vertices on), with weights 8 to 12, for at most 1.25 times the entries that the graph will
have; before, while ids are collected, up to 24 a vertex. So with integer ids and two entries a
vertex or more it is at most 1.3 times the finished CSR. Other ids are held twice while they are
collected.

A table that changes between two passes is refused. Noticed are another number of rows, an id that
is new or null or of another type, weights of a type that those before cannot hold, and, by the sum
of the hashes of all edges, other edges. That sum does not reach the pass that collects ids unless
they are integers: where it was other edges of strings among the same vertices that were collected,
the graph is that of the passes after. Weights whose numbers alone change are not noticed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import numpy as np

from glp_rapids.common.progress import Report
from glp_rapids.frames import kinds
from glp_rapids.frames.chunks import Chunk, Table
from glp_rapids.frames.kinds import Column
from glp_rapids.graph import id_types
from glp_rapids.graph.build import Multigraph
from glp_rapids.graph.graph import Graph
from glp_rapids.graph.in_place import Changed, Filling, Pairs
from glp_rapids.graph.vertex_ids import VertexIds
from glp_rapids.ingest import rank
from glp_rapids.ingest.columns import Columns
from glp_rapids.ingest.distinct import DistinctIds, DistinctIntegers, words_of
from glp_rapids.ingest.edges import Options
from glp_rapids.ingest.further import cast_to_one_of, is_without_dtype
from glp_rapids.ingest.lookup import IntegerLookup, Lookup, TupleLookup, lookup_of
from glp_rapids.ingest.weights import checked_weights


def graph_of(
    table: Table, columns: Columns, options: Options, multigraph: Multigraph, report: Report | None
) -> Graph | None:
    """Build the graph of a table in host memory; None: it has no rows."""
    table.check(columns.names)
    reading = _Reading(table, columns, report)
    further = None
    if options.vertices is not None:
        width = len(columns.sources)
        given = id_types.split_columns(options.vertices, width, "vertices", *options.ends)
        further = [kinds.on_host(column) for column in given]
    found = reading.ids(further, is_without_dtype(options.vertices))
    if found is None:
        return None
    vertices, find, weights = found
    return _filled(reading, vertices, find, weights, options.directed, multigraph)


class _Reading:
    """Reads a table pass after pass, and says how far it has come."""

    def __init__(self, table: Table, columns: Columns, report: Report | None) -> None:
        self.table, self.columns = table, columns
        self._report, self._rows = report, table.rows
        self._pass = 0
        self._families: list[str] = []  # of the ids of each column, once they are collected
        self._seen: list[Pairs] = []  # of each column of integers, the two ends of edges

    def chunks(self, step: str, names: list[Any]) -> Iterator[Chunk]:
        """Yield the chunks that hold rows; raise after the last if there were more or fewer."""
        rows = 0
        self._pass += 1
        for chunk in self.table.chunks(list(dict.fromkeys(names))):
            if not len(chunk.frame):
                continue
            rows += len(chunk.frame)
            yield chunk
            if self._report is not None:
                facts = {"step": step, "pass": self._pass, "rows": rows, "of": self._rows}
                self._report(facts)
        if self._pass > 1 and rows != self._rows:
            raise self.changed(f"{rows:,} rows where there were {self._rows:,}")
        self._rows = rows

    def ids(self, further: list[Column] | None, listed: bool) -> Any:
        """Read and check all ids and weights: the ids, what ranks them, the dtype of weights.

        ``listed``: those of ``further`` vertices are of a list, which takes the dtype of the rest.
        """
        ends, weight_types, rows = self.columns, set(), 0
        expected = None if self._rows is None else 2 * self._rows
        distinct = [DistinctIds(expected) for _ in ends.sources]
        seen = [Pairs() for _ in ends.sources]
        for chunk in self.chunks("ids", ends.names):
            rows += len(chunk.frame)
            both = []
            for end, names in (("source", ends.sources), ("destination", ends.destinations)):
                columns, labels = _of_end(chunk, end, names)
                for ids, column, label in zip(distinct, columns, labels, strict=True):
                    ids.add(column, label, end, chunk.first_row)
                both.append((columns, labels))
            self._note([ids.family for ids in distinct], both, seen)
            for name in ends.weights:
                weight_types.add(_weights(chunk, name).dtype)
        if not rows:
            return None
        if further and listed:
            known = [ids.dtypes for ids in distinct]
            further = list(map(cast_to_one_of, known, further))
        for ids, column in zip(distinct, further or [], strict=bool(further)):
            ids.add(column, "vertices", "vertices")
        self._families, self._seen = [ids.family for ids in distinct], seen
        columns = []
        while distinct:
            columns.append(distinct.pop(0).column())
        dtype = np.result_type(*weight_types) if weight_types else None
        if len(columns) == 1:
            vertices, find = columns, _first_of(lookup_of(columns[0]))
        else:
            vertices, find = self._tuples(columns, further)
        return VertexIds(tuple(vertices), "pandas"), find, dtype

    def _tuples(self, columns, further):
        """Read the ids of several columns again: which tuples of them there are."""
        distinct = DistinctIntegers()
        find = TupleLookup([lookup_of(column) for column in columns], rank.sizes_of_tuples(columns))
        for chunk, *both in self.again("ids", hashed=True):
            for end, of_end in zip(("source", "destination"), both, strict=True):
                keys = find.keys_of(*of_end)
                self.refuse_absent(keys, chunk)
                distinct.add(keys, end)
        if further is not None and len(further[0]):
            distinct.add(find.keys_of(further, ["vertices"] * len(further)), "vertices")
        keys = distinct.sorted()
        vertices = rank.columns_of_keys(keys, columns)
        find.keys = IntegerLookup(keys)
        return vertices, find

    def ranks(
        self, step: str, find: Lookup, weights: Any = None, *, hashed: bool = False
    ) -> Iterator[tuple]:
        """Yield the ranks of both ends of the edges, and the weights if there is a dtype."""
        names = self.columns.weights if weights else []
        for chunk, *both in self.again(step, names, hashed=hashed):
            found = []
            for of_end in both:
                found.append(find(*of_end))
                self.refuse_absent(found[-1], chunk)
            yield *found, self._weights_again(chunk, names[0], weights) if weights else None

    def again(self, step: str, names: list[Any] = (), *, hashed: bool) -> Iterator[tuple]:
        """Yield the chunks of a later pass, and the columns and labels of the ids of both ends.

        ``names``: of further columns. ``hashed``: compare the edges with those of the first pass.
        """
        ends, seen = self.columns, [Pairs() for _ in self._families]
        for chunk in self.chunks(step, [*ends.sources, *ends.destinations, *names]):
            both = [
                self._of_end_again(chunk, "source", ends.sources),
                self._of_end_again(chunk, "destination", ends.destinations),
            ]
            if hashed:
                self._note(self._families, both, seen)
            yield chunk, *both
        for now, before in zip(seen, self._seen, strict=True) if hashed else ():
            with self.refusing_changes():
                now.compare(before)

    def _note(self, families, both, seen):
        """See the edges as each column of integers has them."""
        (sources, labels), (destinations, others) = both
        for place, (family, pairs) in enumerate(zip(families, seen, strict=True)):
            if family == "integer":
                source = id_types.integers(sources[place], labels[place])
                destination = id_types.integers(destinations[place], others[place])
                words = words_of(source).view(np.int64), words_of(destination).view(np.int64)
                pairs.note(*words, symmetric=False)

    def _of_end_again(self, chunk, end, names):
        """Return the columns of an end and their labels; raise if they hold other sorts of ids."""
        columns, labels = _of_end(chunk, end, names)
        for column, label, family in zip(columns, labels, self._families, strict=True):
            with self.refusing_changes(TypeError, ValueError):
                now = id_types.id_family(column, label, chunk.first_row)
                if now != family:
                    raise Changed(f"{label} holds {now} ids where there were {family} ids")
        return columns, labels

    def _weights_again(self, chunk, name, dtype):
        with self.refusing_changes(TypeError, ValueError):
            weights = _weights(chunk, name)
            if not np.can_cast(weights.dtype, dtype):
                label = chunk.label(f"weight column {name!r}")
                raise Changed(f"{label} holds {weights.dtype} where there was {dtype}")
        return weights.astype(dtype, copy=False)

    @contextlib.contextmanager
    def refusing_changes(self, *others: type[Exception]) -> Iterator[None]:
        """Say of what is wrong in a pass, and was not in the first, that the table changed.

        ``others``: errors, besides `Changed`, of what the first pass has checked, too.
        """
        try:
            yield
        except (Changed, *others) as error:
            raise self.changed(str(error).partition("; ")[0]) from None

    def refuse_absent(self, ranks: np.ndarray, chunk: Chunk) -> None:
        """Raise if an id was not there when the ids were collected."""
        if (ranks < 0).any():
            row = chunk.first_row + int((ranks < 0).argmax())
            raise self.changed(f"{chunk.place} has another id at row {row}")

    def changed(self, how: str) -> ValueError:
        """Return the error that the table is not the same in each reading."""
        return ValueError(
            f"graph: {self.table.place} changed while it was read, which takes several passes "
            f"({how}); write the edges to Parquet files that nobody changes, or pass one frame"
        )


def _filled(reading, vertices, find, weights, directed, multigraph):
    filling = Filling(len(vertices), symmetric=not directed, weights=weights, multigraph=multigraph)
    for source, destination, _ in reading.ranks("degrees", find, hashed=True):
        filling.count(source, destination)
    for strip in filling.strips():
        filling.begin(*strip)
        for pairs in reading.ranks("rows", find, weights):
            filling.place(*pairs)
        with reading.refusing_changes():
            filling.close()
    return Graph(*filling.arrays(), directed, vertices)


def _column(chunk, end, name):
    label = chunk.label(f"{end} column {name!r}")
    # where cudf.pandas stands in for pandas, the chunks of a file are its proxies
    return kinds.on_host(kinds.as_column(chunk.frame[name], label)), label


def _of_end(chunk, end, names):
    return zip(*(_column(chunk, end, name) for name in names), strict=True)


def _weights(chunk, name):
    return checked_weights(*_column(chunk, "weight", name), chunk.first_row)


def _first_of(lookup):
    """Look up ids of one column as `TupleLookup` does those of several."""
    return lambda columns, labels: lookup(*columns, *labels)
