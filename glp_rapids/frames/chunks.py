"""Tables that are read chunk by chunk: Parquet files, pyarrow datasets, dask frames of pandas.

A chunk is a pandas frame of the columns asked for, with the place of its rows for messages. A table
may be read any number of times; only a chunk, and what Arrow keeps to decode it, is in memory.
A Parquet file is read through small buffers, so a row group may be of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from glp_rapids.frames import files, foreign
from glp_rapids.frames.foreign import instance_of
from glp_rapids.frames.outputs import is_read_of

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

# Rows. With four times as many, a run from files to labels took 1.30 to 1.37 times the memory of
# the graph, not 1.24 to 1.25; and 9.2 s, not 10.4 (57.9 M edges, two cores).
CHUNK = 1 << 18
BUFFER = 1 << 20  # bytes of a column that Arrow reads at a time
WORTH_THREADS = 1 << 16  # rows of a file
PARTITIONS = 64  # that dask computes at a time


@dataclass(frozen=True)
class Chunk:
    """Some rows of a table, and where they are."""

    frame: pd.DataFrame
    place: str
    first_row: int

    def label(self, column: str) -> str:
        """Say for a message which rows of a column these are."""
        last = self.first_row + len(self.frame) - 1
        return f"{self.place}, rows {self.first_row:,} to {last:,}: {column}"


class Table:
    """What can be read in chunks, again and again; each time it should be the same.

    ``names``: its columns. ``rows``: their number where that is known without reading. ``place``:
    what messages call it.
    """

    names: list[Any]
    rows: int | None = None
    place: str

    def check(self, names: list[Any]) -> None:
        """See that every part has the columns, with types that go together."""

    def chunks(self, names: list[Any]) -> Iterator[Chunk]:
        """Yield the rows, of the columns named, in the same order each time."""
        raise NotImplementedError

    def empty(self, names: list[Any]) -> pd.DataFrame:
        """Return a frame with these columns and no row."""
        raise NotImplementedError

    def small(self, names: list[Any]) -> pd.DataFrame | None:
        """Return all of it as one frame if it is of one part and no more than a chunk."""


@dataclass(frozen=True)
class _Part:
    """A Parquet file, or some row groups of one."""

    place: str
    open: Callable[[], pq.ParquetFile]
    schema: pa.Schema
    rows: int
    row_groups: list[int] | None = None
    keys: dict[str, pa.Scalar] = field(default_factory=dict)  # from the names of its folders

    def type_of(self, name: str) -> pa.DataType:
        return self.keys[name].type if name in self.keys else self.schema.field(name).type


class ParquetTable(Table):
    """Parquet files with the same columns; ``schema`` says what their types are made, if given."""

    def __init__(self, place: str, parts: list[_Part], schema: pa.Schema | None = None) -> None:
        self.place = place if len(parts) > 1 else parts[0].place
        self._parts, self._schema = parts, schema
        self.rows = sum(part.rows for part in parts)
        first = parts[0]
        if schema is not None:
            self.names = schema.names
        else:
            self.names = list(dict.fromkeys([*first.schema.names, *first.keys]))

    def check(self, names: list[str]) -> None:
        """See that every file has the columns, with types that go together as ids."""
        known: dict[str, tuple[str, _Part]] = {}
        for part in self._parts:
            for name in names:
                if name not in part.schema.names and name not in part.keys:
                    there = ", ".join([*part.schema.names, *part.keys])
                    raise ValueError(
                        f"{part.place}: has no column {name!r}, which the files of a graph must "
                        f"all have; its columns are: {there}"
                    )
                if not part.rows or self._schema is not None:
                    continue  # without rows the types say little
                family = _family(part.type_of(name))
                other, before = known.setdefault(name, (family, part))
                if family != other:
                    raise TypeError(
                        f"{part.place}: its column {name!r} holds {part.type_of(name)}, and that "
                        f"of {before.place} {before.type_of(name)}; cast one of them, so that all "
                        "files have the same columns"
                    )

    def chunks(self, names: list[str]) -> Iterator[Chunk]:
        """Yield the rows file after file."""
        for part in self._parts:
            first_row = 0
            for rows in self._read(part, names):
                yield Chunk(foreign.native(rows), part.place, first_row)
                first_row += rows.num_rows

    def small(self, names: list[str]) -> pd.DataFrame | None:
        """Return all of it as one frame if it is one file and no more than a chunk."""
        import pyarrow as pa

        if len(self._parts) > 1 or self.rows > CHUNK:
            return None
        self.check(names)
        read = list(self._read(self._parts[0], names))
        return foreign.native(pa.concat_tables(read)) if read else self.empty(names)

    def _read(self, part, names):
        """Yield the rows of a file as tables of Arrow."""
        stored = [name for name in names if name not in part.keys]
        with files.readable(Path(part.place)):
            file = part.open()
            groups = range(file.num_row_groups) if part.row_groups is None else part.row_groups
            batches = file.iter_batches(
                CHUNK, row_groups=groups, columns=stored, use_threads=part.rows > WORTH_THREADS
            )
        while True:
            with files.readable(Path(part.place)):
                batch = next(batches, None)
            if batch is None:
                return
            yield self._table(batch, part, names)

    def empty(self, names: list[str]) -> pd.DataFrame:
        """Return a frame with these columns and no row."""
        first = self._parts[0]
        return foreign.native(self._table(first.schema.empty_table(), first, names))

    def _table(self, batch, part, names):
        import pyarrow as pa

        columns = []
        for name in names:
            if name in part.keys:
                column = pa.repeat(part.keys[name], batch.num_rows)
            else:
                column = batch.column(name)
            if self._schema is not None:
                wanted = self._schema.field(name).type
                try:
                    column = column.cast(wanted)
                except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                    raise ValueError(
                        f"{part.place}: its column {name!r} holds {column.type}, which cannot be "
                        f"made the {wanted} of the dataset's schema ({error})"
                    ) from error
            columns.append(column)
        return pa.table(columns, names=names)


class _Scanned(Table):
    """A pyarrow dataset that is filtered, or of other files than Parquet: scanned by Arrow.

    That holds whole row groups.
    """

    def __init__(self, dataset: Any) -> None:
        self._dataset, self.names = dataset, dataset.schema.names
        self.place = "the dataset"

    def chunks(self, names: list[str]) -> Iterator[Chunk]:
        """Yield the rows in the order of the files; rows that are filtered out do not count."""
        import pyarrow.dataset as ds

        little = {"batch_readahead": 0, "fragment_readahead": 0}
        if isinstance(getattr(self._dataset, "format", None), ds.ParquetFileFormat):
            little["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
                use_buffered_stream=True, buffer_size=BUFFER, pre_buffer=False
            )
        scanner = self._dataset.scanner(columns=names, batch_size=CHUNK, **little)
        place, first_row = None, 0
        for tagged in scanner.scan_batches():
            here = getattr(tagged.fragment, "path", self.place)
            place, first_row = here, first_row if here == place else 0
            for begin in range(0, tagged.record_batch.num_rows, CHUNK):
                batch = tagged.record_batch.slice(begin, CHUNK)
                yield Chunk(foreign.native(batch), place, first_row)
                first_row += batch.num_rows

    def empty(self, names: list[str]) -> pd.DataFrame:
        """Return a frame with these columns and no row."""
        return foreign.native(self._dataset.schema.empty_table().select(names))


class _Partitions(Table):
    """A dask frame of pandas: a partition is computed when it is read, and each time anew.

    Small ones are computed several at a time, as many as make a chunk if all are of the size of
    the largest so far: what dask does for each call takes milliseconds.
    """

    def __init__(self, frame: Any) -> None:
        self._frame, self.names = frame, list(frame.columns)
        self.place = "the dask frame"

    def chunks(self, names: list[Any]) -> Iterator[Chunk]:
        """Yield the rows partition after partition."""
        import dask

        frame = self._frame[names]
        number = largest = 0
        at_once = 1
        while number < frame.npartitions:
            last = min(number + at_once, frame.npartitions)
            for computed in dask.compute(*(frame.partitions[i] for i in range(number, last))):
                largest = max(largest, len(computed))
                for begin in range(0, len(computed), CHUNK):
                    rows = computed.iloc[begin : begin + CHUNK]
                    yield Chunk(rows, f"partition {number}", begin)
                number += 1
            at_once = min(max(CHUNK // max(largest, 1), 1), 2 * at_once, PARTITIONS)

    def empty(self, names: list[Any]) -> pd.DataFrame:
        """Return a frame with these columns and no row."""
        return self._frame._meta[names]


def parquet_of_path(path: Path) -> ParquetTable:
    """Open a Parquet file, or all those in a folder and the folders in it."""
    files.need_pyarrow(f"{path} cannot be read")
    if not path.is_dir():
        return ParquetTable(str(path), [_part(str(path), partial(_opened, str(path)))])
    found = parquet_files(path)
    if not found:
        raise ValueError(
            f"{path}: is a folder without a Parquet file; name one with files *.parquet"
        )
    keys = _keys_of_folders(path, found)
    parts = []
    for file in found:
        part = _part(str(file), partial(_opened, str(file)), keys=keys.get(file, {}))
        parts.append(part)
    return ParquetTable(str(path), parts)


def parquet_files(folder: Path) -> list[Path]:
    """List the Parquet files in a folder and the folders in it; what begins with . or _ is left."""
    return sorted(
        path for path in folder.rglob("*") if is_read_of(folder, path) and path.is_file()
    )


def table_of(data: Any) -> Table | None:
    """Return what data of another library is read through in chunks; None: it is not."""
    return next((make(data) for recognized, make in _TABLES if recognized(data)), None)


def _opened(path):
    import pyarrow.parquet as pq

    return pq.ParquetFile(path, buffer_size=BUFFER, pre_buffer=False)


def _part(place, open, *, row_groups=None, keys=None):
    with files.readable(Path(place)):
        file = open()
        rows = file.metadata.num_rows
        if row_groups is not None:
            rows = sum(file.metadata.row_group(group).num_rows for group in row_groups)
        return _Part(place, open, file.schema_arrow, rows, row_groups, keys or {})


def _keys_of_folders(folder, found):
    """Read columns off the names of folders, such as year=2024, as pyarrow's datasets do."""
    import pyarrow.dataset as ds
    from pyarrow import fs

    if not any("=" in part for path in found for part in path.relative_to(folder).parts[:-1]):
        return {}
    with files.readable(folder):
        dataset = ds.dataset(
            [str(path.relative_to(folder)) for path in found],
            filesystem=fs.SubTreeFileSystem(str(folder.absolute()), fs.LocalFileSystem()),
            format="parquet",
            partitioning="hive",
        )
    return {
        folder / fragment.path: _keys_of(fragment, dataset.schema)
        for fragment in dataset.get_fragments()
    }


def _keys_of(fragment, schema):
    import pyarrow as pa
    import pyarrow.dataset as ds

    keys = ds.get_partition_keys(fragment.partition_expression)
    return {name: pa.scalar(value, schema.field(name).type) for name, value in keys.items()}


def _family(kind):
    """Say what a type of Arrow is as a column of ids or of weights: types of one go together."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _family(kind.value_type)
    for family, belongs in (
        ("number", pa.types.is_integer),
        ("number", pa.types.is_floating),
        ("string", pa.types.is_string),
        ("string", pa.types.is_large_string),
    ):
        if belongs(kind):
            return family
    if pa.types.is_timestamp(kind):
        return f"timestamp ({kind.tz})"
    return "string" if str(kind) == "string_view" else str(kind)


def _of_dataset(dataset):
    import pyarrow.dataset as ds

    try:
        fragments = list(dataset.get_fragments())
    except ValueError:  # it is filtered
        return _Scanned(dataset)
    if not fragments or not all(isinstance(one, ds.ParquetFileFragment) for one in fragments):
        return _Scanned(dataset)
    parts = [
        _part(
            one.path,
            partial(_opened_fragment, one),
            row_groups=None if one.row_groups is None else [group.id for group in one.row_groups],
            keys=_keys_of(one, dataset.schema),
        )
        for one in fragments
    ]
    return ParquetTable("the dataset", parts, dataset.schema)


def _opened_fragment(fragment):
    import pyarrow.parquet as pq

    return pq.ParquetFile(fragment.open(), buffer_size=BUFFER, pre_buffer=False)


def _of_parquet_file(file):
    return ParquetTable("the ParquetFile", [_part("the ParquetFile", lambda: file)])


def _is_dask_of_pandas(data):
    frame = instance_of("dask.dataframe", "DataFrame")(data)
    # one partition is all there is to compute
    return frame and isinstance(data._meta, pd.DataFrame) and data.npartitions > 1


_TABLES: list[tuple[Callable[[Any], bool], Callable[[Any], Table]]] = [
    (instance_of("pyarrow.dataset", "Dataset"), _of_dataset),
    (instance_of("pyarrow.parquet", "ParquetFile"), _of_parquet_file),
    (_is_dask_of_pandas, _Partitions),
]
