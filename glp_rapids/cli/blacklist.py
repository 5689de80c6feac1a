"""The blacklist of ``glp-rapids fraud``: read as the transactions are, so that its ids match."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from glp_rapids.frames import files

if TYPE_CHECKING:
    import pandas as pd

HEADERS = ("vertex", "id", "account", "source", "destination")
LIKE_A_NUMBER = re.compile(r"[+-]?\.?\d")
LONGEST = 20  # digits of 64 bits, and a sign


class Blacklist(NamedTuple):
    """The ids of a file, as text, and its first line if that holds a name instead of an id."""

    ids: pd.Series
    header: str | None


def read(path: Path, column: str | None, ends: list[pd.Series]) -> Blacklist:
    """Read a table with a column of ids, or one id a line, for transactions between ``ends``."""
    import pandas as pd

    integers = all(pd.api.types.is_integer_dtype(end) for end in ends)
    table = column is not None or path.suffix.lower() in files.PARQUET
    ids, header = _column(path, column) if table else files.read_lines(path, _separator(path)), None
    ids, notes = ids.dropna().astype(str), set()
    if not table and ".txt" in path.suffixes and not any(map(_holds_blanks, ends)):
        words = ids.str.split()  # notes stand behind blanks, as columns do there
        ids, notes = words.str[0].fillna(""), set(words.str[1].dropna())
    elif integers:
        ids = ids.str.strip()
    ids = ids[ids.ne("")].reset_index(drop=True)
    if not table:
        if len(ids) and _is_header(ids[0], ends, integers):
            header, ids = ids[0], ids[1:]
        if (header or "").strip().lower() not in HEADERS:
            _refuse_other_columns(path, header, ends, notes)
        elif header is not None:
            first, _ = files.further_fields(path, _separator(path))
            _refuse_labels(path, first)
    ids = ids.drop_duplicates(ignore_index=True)
    if ids.empty:
        why = "" if header is None else f": its only line, {header!r}, was taken for a header"
        why += ", as the ids of the transactions are integers" if why and integers else ""
        mend = "write one a line, or a table with --seed-column"
        raise ValueError(f"{path}: holds no ids{why}; {mend}")
    if integers and not (fits := ids.str.fullmatch(files.INTEGER)).all():
        raise ValueError(
            f"{path}: the ids of the transactions are integers, but {ids[~fits].iloc[0]!r} is none"
        )
    return Blacklist(ids, header)


def known(ids: pd.Series, vertices: pd.Series) -> pd.Series:
    """Return those of the ids that are vertices, as values of the vertices' type."""
    import pandas as pd

    if pd.api.types.is_integer_dtype(vertices):
        there = set(vertices.tolist())
        numbers = (int(text) for text in ids if len(text) <= LONGEST)
        return pd.Series([each for each in numbers if each in there], dtype=vertices.dtype)
    # blanks around an id are part of it only if they are in the transactions too
    found = ids.where(ids.isin(vertices), ids.str.strip())
    return found[found.isin(vertices)].drop_duplicates()


def _column(path: Path, column: str | None) -> pd.Series:
    """Read a column of a table; of Parquet, the only one, or one that is called as ids are."""
    if path.suffix.lower() not in files.PARQUET:
        return files.read_table(path, [column], **{"seed-column": column})[column]
    frame = files.read_parquet(path, dtype_backend="numpy_nullable")  # integers beside nulls
    if column is None and frame.columns.empty:
        raise ValueError(f"{path}: has no column")
    if column is None and frame.shape[1] > 1 and str(frame.columns[0]).lower() not in HEADERS:
        named = ", ".join(map(str, frame.columns))
        raise ValueError(f"{path}: has the columns {named}; name that of the ids by --seed-column")
    files.check_columns(list(frame.columns), path, {"seed-column": column})
    if column is None:
        _refuse_labels(path, frame.columns)
    return frame[frame.columns[0] if column is None else column]


def _refuse_labels(path: Path, names: Iterable[object]) -> None:
    """Raise if a table says of each id whether it is fraud: all would be taken for fraud."""
    if "fraud" in (str(name).strip().lower() for name in names):
        raise ValueError(
            f"{path}: has a column 'fraud', as if not all of its ids were; write a file of those "
            "that are, without it"
        )


def _refuse_other_columns(
    path: Path, header: str | None, ends: list[pd.Series], notes: set[str]
) -> None:
    """Raise if the ids may be in another column than the first: notes behind them are no ids."""
    import pandas as pd

    first, further = files.further_fields(path, _separator(path))
    # an index without a name begins with an empty field
    names_several = any(first[1:]) and (header is not None or not first[0])
    others = pd.Series(sorted({*further, *notes}), dtype=str)
    if all(pd.api.types.is_integer_dtype(end) for end in ends):
        others = others[others.str.fullmatch(files.INTEGER)]
    if names_several or any(len(known(others, end)) for end in ends):
        raise ValueError(
            f"{path}: its lines have several fields, of which not only the first may be ids; write "
            "one id a line, or name the column of the ids in its header with --seed-column"
        )


def _holds_blanks(end: pd.Series) -> bool:
    """Tell whether an id of the transactions has blanks, which then end no id."""
    import pandas as pd

    return not pd.api.types.is_numeric_dtype(end) and bool(
        end.drop_duplicates().astype(str).str.contains(r"\s").any()
    )


def _separator(path: Path) -> str:
    return "\t" if ".tsv" in path.suffixes else ","


def _is_header(first: str, ends: list[pd.Series], integers: bool) -> bool:
    """Tell whether the first line names the column; it does not if an account may have that id."""
    if integers:
        return LIKE_A_NUMBER.match(first) is None
    return first.strip().lower() in HEADERS and not any((end == first).any() for end in ends)
