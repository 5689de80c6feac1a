"""Tables in and out of files: CSV and Parquet, ids kept as they are written."""

from __future__ import annotations

import contextlib
import csv
import io
import itertools
import os
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from glp_rapids.common import atomic_file
from glp_rapids.frames import odd_ids, streams
from glp_rapids.frames.odd_ids import INTEGER

if TYPE_CHECKING:
    import pandas as pd

PARQUET = (".parquet", ".pq")
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": r"\s+"}
STDOUT = ("-", "/dev/stdout")
FORMATS = "a file named *.csv, *.tsv, *.txt (columns apart by blanks) or *.parquet"


def read_table(
    path: Path, ids: Iterable[str], *, header: list[str] | None = None, names: Iterable[str] = (),
    usual_names: Collection[Sequence[str]] = (), **columns: str | None,
) -> pd.DataFrame:  # fmt: skip
    """Read a table whose columns ``ids`` hold ids: integers if all are, else text as it stands.

    ``header`` names the first columns of a text file that has no line of names, and
    ``usual_names`` are what its ids are often called in one. ``names`` are columns of names of
    something else, each read as ids are. ``columns`` are the columns that
    options name, which must be there, once, and different.
    """
    import pandas as pd

    ids, apart, ending = list(ids), list(names), checked_ending(path)
    check_input(path)
    check_different(path, columns)
    if ending in PARQUET:
        frame = read_parquet(path)
        # what pandas kept as an index is a column of the file
        named = [one for one in frame.index.names if one is not None and one not in frame.columns]
        frame = frame.reset_index(named) if named else frame
        check_columns(list(frame.columns), path, columns)
        return frame
    text = {"sep": SEPARATORS[ending], "dtype": dict.fromkeys((*ids, *apart), str)}
    if header is not None:
        given = {"header": None, "names": header, "usecols": range(len(header))}
        try:
            frame = _parsed(path, comments=True, **text, **given)
        except ValueError as error:
            if "Too many columns specified" not in str(error):
                raise
            apart = {",": "commas", "\t": "tabs"}.get(SEPARATORS[ending], "blanks")
            raise ValueError(
                f"{path}: its rows have fewer fields than are needed, {', '.join(header)}; by its "
                f"name they are apart by {apart}: name it *.csv, *.tsv or *.txt as they are, or "
                "save it with commas"
            ) from error
    else:
        there = names_in(path)
        check_columns(there, path, columns)
        for name in (*ids, *apart):
            _refuse_repeated(there, name, path)
        try:
            frame = _parsed(path, index_col=False, **text)
        except pd.errors.ParserWarning:
            named = ", ".join(map(str, there))
            raise ValueError(
                f"{path}: its rows have more fields than its header, which names {named}; "
                "name every column"
            ) from None
    ids = [name for name in ids if name in frame.columns]
    given = {name: frame[name] for name in ids}
    found = as_ids(list(given.values()))
    if found and found[0] is next(iter(given.values())):
        odd_ids.warn(path, given, None if header is None else usual_names)
    for name, column in zip(ids, found, strict=True):
        frame[name] = column
    for name in apart:
        if name in frame.columns:
            frame[name] = as_ids([frame[name]])[0]
    return frame


def tables_in(path: Path) -> list[Path]:
    """Return the files of a table: of a folder those in it by name, but for hidden ones."""
    if not path.is_dir():
        return [path]
    endings = [one.lower() for one in (*PARQUET, *SEPARATORS)]
    found = sorted(
        one for one in path.iterdir()
        if one.is_file() and not one.name.startswith((".", "_"))
        and not {*map(str.lower, one.suffixes[-2:])}.isdisjoint(endings)
    )  # fmt: skip
    if not found:
        raise ValueError(f"{path}: the folder holds no {FORMATS.removeprefix('a ')}")
    return found


def read_tables(path: Path, ids: Iterable[str], **columns: str | None) -> pd.DataFrame:
    """Read the files of a table one below the other, each as `read_table` does.

    Ids that are integers in some of them and text in others are text in all.
    """
    import pandas as pd

    ids, there = list(dict.fromkeys(ids)), tables_in(path)
    frames = [read_table(one, ids, **columns) for one in there]
    if len(frames) == 1:
        return frames[0]
    first = list(map(str, frames[0].columns))
    for one, frame in zip(there, frames, strict=True):
        if {*map(str, frame.columns)} != {*first}:
            raise ValueError(
                f"{one}: its columns are {', '.join(map(str, frame.columns))}, but those of "
                f"{there[0].name} are {', '.join(first)}; give all files of {path} the same"
            )
    text = any(checked_ending(one) not in PARQUET for one in there)
    if text and len({frame[name].dtype for frame in frames for name in ids if len(frame)}) > 1:
        frames = [frame.astype(dict.fromkeys(ids, str)) for frame in frames]
        joined = pd.concat(frames, ignore_index=True)
        for name, column in zip(ids, as_ids([joined[name] for name in ids]), strict=True):
            joined[name] = column
        return joined
    return pd.concat(frames, ignore_index=True)


def names_in(path: Path) -> list[str]:
    """Read the names of the columns of a text file, which stand on its first line."""
    separator = SEPARATORS[checked_ending(path)]
    check_input(path)
    return _parsed(path, sep=separator, dtype=str, header=None, nrows=1).iloc[0].tolist()


def read_parquet(path: Path, **how: Any) -> pd.DataFrame:
    """Read a Parquet file."""
    import pandas as pd

    check_input(path)
    need_pyarrow(f"{path} cannot be read")
    with readable(path):
        return pd.read_parquet(path, **how)


def read_lines(path: Path, separator: str) -> pd.Series:
    """Read what stands first on each line, as it stands."""
    import pandas as pd

    check_input(path)
    try:
        return _parsed(path, sep=separator, dtype=str, header=None, usecols=[0])[0]
    except pd.errors.EmptyDataError:
        return pd.Series(dtype=str)


def further_fields(path: Path, separator: str) -> tuple[list[str], list[str]]:
    """Read the fields of the first line, and what stands behind the first on any, each once."""
    with readable(path), streams.reading(path) as text:
        lines = io.StringIO(b"".join(text).decode(), newline="")
        rows = csv.reader(lines, delimiter=separator, skipinitialspace=separator == ",")
        first = next(filter(None, rows), [])
        rest = {field for row in itertools.chain([first], rows) for field in row[1:] if field}
    return first, sorted(rest)


def as_ids(columns: list[pd.Series]) -> list[pd.Series]:
    """Turn ids into integers if each of all columns is written as one is: 7, not 007 or 7.0."""
    written = [text.str.fullmatch(INTEGER).eq(True).all() for text in columns if len(text)]
    if written and all(written):
        for dtype in ("int64", "uint64"):
            with contextlib.suppress(ValueError, OverflowError):  # there are longer ones
                return [text.astype(dtype) for text in columns]
    return columns


def check_input(path: Path) -> None:
    """See that there is a file: a pipe can be read only once, and may wait for ever."""
    try:
        mode = os.stat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        if str(path) == "-":  # as other programs have it; what it held could be read only once
            raise FileNotFoundError(
                "-: stdin is not read; name a file, into which what comes there is written first, "
                "such as edges.csv"
            ) from None
        pattern = "; name one file, not a pattern" if set("*?[") & set(str(path)) else ""
        raise FileNotFoundError(f"{path}: there is no such file{pattern}") from None
    if kind := atomic_file.kind_of(mode):
        raise ValueError(f"{path}: is {kind}; name a file")


def write_table(frame: Any, path: Path) -> None:
    """Write a frame as the ending of the path says; all of it, or the file stays as it is."""
    ending = checked_ending(path)
    if ending in PARQUET:
        need_pyarrow(f"{path} cannot be written")
    frame = _of_pandas(frame)
    with streams.replacing(path) as file:
        if ending in PARQUET:
            frame.to_parquet(file, index=False)
        else:
            separator = SEPARATORS[ending]
            how: dict[str, Any] = {"sep": separator}
            if separator == ",":
                how["quoting"] = _quoting(frame)
            if separator == r"\s+":
                # between blanks nothing but quotes says that a field is empty
                empty = bool((frame.isna() | (frame == "")).to_numpy().any())
                how = {"sep": " ", "quoting": csv.QUOTE_NONNUMERIC if empty else csv.QUOTE_MINIMAL}
            frame.to_csv(file, index=False, **how)


def write_stdout(frame: Any) -> None:
    """Write all of a frame to stdout as CSV."""
    frame = _of_pandas(frame)
    try:
        frame.to_csv(sys.stdout, index=False, quoting=_quoting(frame))
        sys.stdout.flush()
    except OSError as error:
        raise OSError(error.errno, error.strerror, "stdout") from error
    except UnicodeEncodeError as error:
        raise ValueError(
            f"stdout: it has no {error.object[error.start]!a} in its encoding, {error.encoding}; "
            "name a file with --output, or set PYTHONIOENCODING=utf-8"
        ) from error


def _of_pandas(frame: Any) -> pd.DataFrame:
    return frame.to_pandas() if hasattr(frame, "to_pandas") else frame


def _quoting(frame: pd.DataFrame) -> int:
    """Have the texts of a CSV quoted if one of them begins with a blank, which is skipped else."""
    blank = any(_begins_with_blank(column) for _, column in frame.items())
    return csv.QUOTE_NONNUMERIC if blank else csv.QUOTE_MINIMAL


def _begins_with_blank(column: pd.Series) -> bool:
    import pandas as pd

    values = column
    if isinstance(column.dtype, pd.CategoricalDtype):
        values = pd.Series(column.cat.categories)
    if not pd.api.types.is_string_dtype(values.dtype) and values.dtype != object:
        return False
    return bool(values.astype(str).str.startswith(" ", na=False).any())


@contextlib.contextmanager
def naming(path: Path | str) -> Iterator[None]:
    """Say of which file it is that what was read cannot be worked with."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if str(path) in str(error):
            raise
        known = ValueError if isinstance(error, ValueError) else TypeError
        # errors of our own keep their kind, for who mends them
        kind = type(error) if type(error).__module__.startswith("glp_rapids") else known
        raise kind(f"{path}: {error}") from error


def checked_ending(path: Path) -> str:
    """Check the ending that says the format, before any work is begun."""
    endings = [ending.lower() for ending in path.suffixes[-2:]]
    packed = endings.pop() if endings and endings[-1] in streams.COMPRESSIONS else ""
    ending = endings[-1] if endings else ""
    if str(path) in STDOUT:
        raise ValueError(f"{path}: this has to be a file; name {FORMATS}")
    if path.is_dir():
        raise ValueError(f"{path}: is a folder; name a file")
    if ending not in (*PARQUET, *SEPARATORS):
        raise ValueError(f"{path}: the format is not clear from the name; use {FORMATS}")
    if packed and ending in PARQUET:
        raise ValueError(f"{path}: Parquet is compressed in itself; leave {packed} out")
    return ending


def has_pyarrow() -> bool:
    """Tell whether Parquet files can be read and written."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        return False
    return True


def _parsed(path: Path, *, comments: bool = False, **how: Any) -> pd.DataFrame:
    """Parse a text file in the one way in which all of them are read."""
    import pandas as pd

    how["keep_default_na"], how["na_values"] = False, [""]  # an account may well be called NA
    how["skipinitialspace"] = how["sep"] == ","
    with warnings.catch_warnings(), readable(path):
        warnings.simplefilter("error", pd.errors.ParserWarning)  # fields would be lost
        warnings.simplefilter("error", pd.errors.DtypeWarning)
        try:
            with streams.reading(path, comments=comments) as text:
                return pd.read_csv(text, **how)
        except pd.errors.DtypeWarning:  # parts of a column differ in type: look at it as a whole
            with streams.reading(path, comments=comments) as text:
                return pd.read_csv(text, low_memory=False, **how)


@contextlib.contextmanager
def readable(path: Path) -> Iterator[None]:
    """Say of which file it is, whatever a library of its format raises on one that is not right."""
    try:
        yield
    except (Warning, MemoryError, ImportError):
        raise
    except UnicodeDecodeError as error:
        place = streams.first_odd_byte(path)
        where = "" if place is None else f" (line {place[0]} has the byte {place[1]:#04x})"
        raise ValueError(f"{path}: is no text in UTF-8{where}; save it as UTF-8") from error
    except Exception as error:  # every library has kinds of its own
        if isinstance(error, OSError) and error.errno is not None:
            raise OSError(error.errno, error.strerror, str(path)) from error
        said = f"{error}".removeprefix("Error tokenizing data. C error: ")
        said = f"{path}: cannot be read as a table ({said or type(error).__name__})"
        if type(error).__name__ == "EmptyDataError":
            raise type(error)(said) from error
        raise ValueError(said) from error


def separated_otherwise(line: str) -> str:
    """Say how to have a file read whose fields are not apart by what its name says."""
    for mark, mend in {"\t": "name it *.tsv", ";": "save it with commas, or with tabs as *.tsv",
                       "|": "save it with commas, or with tabs as *.tsv", ",": "name it *.csv",
                       " ": "name it *.txt"}.items():  # fmt: skip
        if mark in line.strip():
            return mend
    return ""


def check_different(path: Path, columns: Mapping[str, str | None]) -> None:
    """See that no two options name one column."""
    named: dict[str, str] = {}
    for option, name in columns.items():
        if name in named:
            raise ValueError(
                f"{path}: --{named[name]} and --{option} both name {name!r}; name two columns"
            )
        if name is not None:
            named[name] = option


def check_columns(there: list[Any], path: Path, columns: Mapping[str, str | None]) -> None:
    """See that the columns named by options are there, each once."""
    for option, name in columns.items():
        if name is None:
            continue
        if name not in there:
            mend = ""
            if len(there) == 1 and (how := separated_otherwise(str(there[0]))):
                mend = f"; if that is several, {how}"
            named = ", ".join(repr(one) if str(one) != str(one).strip() or mend else str(one)
                              for one in there)  # fmt: skip
            raise ValueError(
                f"{path}: has no column {name!r} (--{option}); its columns are: {named}{mend}"
            )
        _refuse_repeated(there, name, path)


def _refuse_repeated(there: list[Any], name: str, path: Path) -> None:
    if (times := there.count(name)) > 1:
        raise ValueError(f"{path}: has {times} columns named {name!r}; rename all but one")


def need_pyarrow(what: str) -> None:
    """Raise if there is no pyarrow; ``what`` cannot be done without."""
    if not has_pyarrow():
        raise ImportError(f"{what} without pyarrow: pip install pyarrow, or use CSV")
