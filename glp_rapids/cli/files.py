"""Tables in and out of files: CSV and Parquet, ids kept as they are written."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

PARQUET = (".parquet", ".pq")
SEPARATORS = {".csv": ",", ".tsv": "\t", ".txt": r"\s+"}
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst", ".zip")
INTEGER = r"0|-?[1-9][0-9]*"
HEADERS = ("vertex", "id", "account", "source", "destination")
FORMATS = "a file named *.csv, *.tsv, *.txt (columns apart by blanks) or *.parquet"


def read_table(path: Path, ids: Iterable[str], *, header: list[str] | None = None) -> pd.DataFrame:
    """Read a table whose columns ``ids`` hold ids: integers if all are, else text as it stands.

    ``header`` names the first columns of a text file that has no line of names.
    """
    import pandas as pd

    ending = checked_ending(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    if ending in PARQUET:
        _need_pyarrow(f"{path} cannot be read")
        return pd.read_parquet(path)
    ids = list(ids)
    try:
        frame = pd.read_csv(
            path,
            sep=SEPARATORS[ending],
            dtype=dict.fromkeys(ids, str),
            keep_default_na=False,  # an account may well be called NA
            na_values=[""],
            comment="#" if header else None,
            header=None if header else "infer",
            names=header,
            usecols=range(len(header)) if header else None,
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as a table: {error}") from None
    for name in ids:
        if name in frame.columns:
            frame[name] = as_ids(frame[name])
    return frame


def as_ids(text: pd.Series) -> pd.Series:
    """Give ids as int64 if each is written as an integer is: 7, not 007 or 7.0."""
    if len(text) and text.str.fullmatch(INTEGER).eq(True).all():
        try:
            return text.astype("int64")
        except (ValueError, OverflowError):  # longer than 64 bits
            return text
    return text


def check_columns(frame: pd.DataFrame, path: Path, **columns: str | None) -> None:
    """See that the columns named by options are there."""
    for option, name in columns.items():
        if name is not None and name not in frame.columns:
            there = ", ".join(map(str, frame.columns))
            raise ValueError(
                f"{path} has no column {name!r} (--{option}); its columns are: {there}"
            )


def read_seeds(path: Path, column: str | None, like: pd.Series) -> pd.Series:
    """Read a blacklist, a table with a column of ids or one id a line, in the type of ``like``."""
    import pandas as pd

    integers = pd.api.types.is_integer_dtype(like)
    if path.suffix in PARQUET or column is not None:
        frame = read_table(path, [column] if column else [])
        check_columns(frame, path, **{"seed-column": column})
        seeds = frame[column or frame.columns[0]].dropna().astype(str)
    elif not path.is_file():
        raise FileNotFoundError(f"{path}: there is no such file")
    else:
        lines = path.read_text().splitlines()
        ids = [line.split(",")[0].strip().strip('"') for line in lines if line.strip()]
        if ids and (not re.fullmatch(INTEGER, ids[0]) if integers else ids[0] in HEADERS):
            ids = ids[1:]
        seeds = pd.Series(ids, dtype=str)
    seeds = seeds.drop_duplicates(ignore_index=True)
    if seeds.empty:
        raise ValueError(f"{path} holds no ids; write one a line, or a table with --seed-column")
    if integers:
        if odd := [seed for seed in seeds if not re.fullmatch(INTEGER, seed)]:
            raise ValueError(
                f"{path}: the ids of the transactions are integers, but {odd[0]!r} is none"
            )
        return seeds.astype("int64")
    return seeds


def write_table(frame: Any, path: Path) -> None:
    """Write a frame as the ending of the path says."""
    ending = checked_ending(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if ending in PARQUET:
        _need_pyarrow(f"{path} cannot be written")
        frame.to_parquet(path, index=False)
    else:
        separator = SEPARATORS[ending]
        frame.to_csv(path, index=False, sep=" " if separator == r"\s+" else separator)


def checked_ending(path: Path) -> str:
    """Give the ending that says the format, before any work is begun."""
    endings = [ending for ending in path.suffixes[-2:] if ending not in COMPRESSIONS]
    ending = endings[-1].lower() if endings else ""
    if ending not in (*PARQUET, *SEPARATORS):
        raise ValueError(f"{path}: the format is not clear from the name; use {FORMATS}")
    return ending


def has_pyarrow() -> bool:
    """Tell whether Parquet files can be read and written."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        return False
    return True


def _need_pyarrow(what: str) -> None:
    if not has_pyarrow():
        raise ImportError(f"{what} without pyarrow: pip install pyarrow, or use CSV")
