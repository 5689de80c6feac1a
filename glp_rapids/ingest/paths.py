"""Files that hold a graph: the formats there are, how each is told, and how it is opened.

`FORMATS` is the one table of them, for `as_graph` and for the command line. The first that
recognizes a path opens it, as something else that `as_graph` takes: a frame, a table that is read
in chunks, or a graph.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from glp_rapids.common.checks import shown
from glp_rapids.device import DeviceName
from glp_rapids.frames import files
from glp_rapids.ingest.columns import PAIRS, Columns, ends_of, names_of, refuse_repeated


@dataclass(frozen=True)
class Asked:
    """What a caller says about a file.

    ``source``, ``destination``, ``weight``: as `as_graph` takes them. ``header``: the names of the
    columns of a text file that has no line of names. ``named``: the columns that options of the
    command line name, by option.
    """

    source: Any
    destination: Any
    directed: bool
    device: DeviceName | None
    header: list[str] | None = None
    named: dict[str, str | None] = field(default_factory=dict)
    weight: Any = None

    def columns(self, there: list[Any], path: Path) -> tuple[list[Any], dict[str, str | None]]:
        """Return the columns with ids, and those that options name or leave to be found."""
        with files.naming(path):
            sources, destinations = ends_of(there, self.source, self.destination)
        found = {"source": sources[0], "destination": destinations[0]} if self.named else {}
        return [*sources, *destinations], {**self.named, **found}


@dataclass(frozen=True)
class Format:
    """A format of files.

    ``words``: what it is, for a message or a help. ``is_of``: tells whether a path is of it.
    ``open``: returns what `as_graph` takes. ``inputs``: the files that are read, by what messages
    call them.
    """

    words: str
    is_of: Callable[[Path], bool]
    open: Callable[[Path, Asked], Any]
    inputs: Callable[[Path], dict[str, Path]] = lambda path: {"EDGES": path}


def checked(given: str | os.PathLike) -> Path:
    """Return the path that a caller passes as a graph; there must be something."""
    try:
        path = Path(os.fsdecode(given))
        os.stat(os.fspath(given))
    except (FileNotFoundError, NotADirectoryError):
        elsewhere = "; for what is not on a disk, pass a pyarrow.dataset.dataset of it"
        several = "; for several files, pass their folder, or a pyarrow.dataset.dataset of them"
        hint = elsewhere if "://" in str(given) else several if set("*?[") & set(str(given)) else ""
        raise FileNotFoundError(
            f"graph: {shown(given)}: there is no such file or folder{hint}"
        ) from None
    except OSError as error:
        raise OSError(f"graph: {shown(given)}: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"graph: {shown(given)} cannot be a path ({error})") from error
    if not path.is_dir():
        files.check_input(path)
    return path


def opened(path: Path, asked: Asked) -> Any:
    """Return what `as_graph` takes in the place of a path."""
    return _format_of(path).open(path, asked)


def inputs(path: Path) -> dict[str, Path]:
    """Return the files that are read for a path, by what messages call them."""
    there = path.is_dir() or path.is_file()  # a pipe would wait for whoever writes to it
    return _format_of(path).inputs(path) if there else {"EDGES": path}


def _format_of(path):
    return next(format for format in FORMATS if format.is_of(path))


def _is_compressed(path):
    from glp_rapids.compressed.file.container import is_container

    return path.suffix == ".glp" or is_container(path)  # the name that README gives it


def _open_compressed(path, asked):
    from glp_rapids.compressed.graph import CompressedGraph

    return CompressedGraph.open(path, device=asked.device)


def _open_webgraph(path, asked):
    from glp_rapids.ingest.webgraph.read import read_webgraph

    return read_webgraph(path, directed=asked.directed, device=asked.device)


def _open_npz(path, asked):
    from glp_rapids.ingest.npz import open_npz

    return open_npz(path)


def _open_parquet(path, asked):
    from glp_rapids.frames.chunks import parquet_of_path

    table = parquet_of_path(path)
    _, named = asked.columns(table.names, path)
    files.check_different(path, named)
    files.check_columns(table.names, path, named)
    return table


def _files_in(folder):
    from glp_rapids.frames.chunks import parquet_files

    found = {f"EDGES ({file.name})": file for file in parquet_files(folder)}
    return {"EDGES": folder, **found}


def _open_text(path, asked):
    there = files.names_in(path) if asked.header is None else asked.header
    ends, named = asked.columns(there, path)
    if not named:  # else a message speaks of options; pandas would number columns of one name
        with files.naming(path):
            sources, destinations = ends_of(there, asked.source, asked.destination)
            weights = [] if asked.weight is None else names_of(asked.weight, "weight")
            refuse_repeated(there, Columns(sources, destinations, weights))
    return files.read_table(path, ends, header=asked.header, usual_names=PAIRS, **named)


FORMATS = (
    Format("a folder of *.parquet", Path.is_dir, _open_parquet, _files_in),
    Format("what `glp-rapids compress` wrote", _is_compressed, _open_compressed),
    Format(
        "*.graph, of WebGraph",
        lambda path: path.suffix == ".graph",
        _open_webgraph,
        lambda path: {
            "EDGES": path, "the properties of EDGES": path.with_suffix(".properties")
        },
    ),
    Format("*.npz, of scipy.sparse.save_npz", lambda path: path.suffix == ".npz", _open_npz),
    Format("*.parquet", lambda path: path.suffix.lower() in files.PARQUET, _open_parquet),
    Format("*.csv, *.tsv or *.txt (columns apart by blanks), also *.gz", lambda path: True,
           _open_text),
)  # fmt: skip
