"""Ids of a text file that look like mistakes: all are read as texts, and nothing is refused.

Columns are strings of Arrow, if there is any, which to turn into Python's takes a hundred times as
long as to compare: so few of them are, and only what is odd is looked for.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from glp_rapids.common.calls import warn_caller

if TYPE_CHECKING:
    import pandas as pd

INTEGER = r"(?:0|-?[1-9][0-9]*) *"  # blanks behind it are none of it
POINT = r"-?[0-9]+\.0+"
FIRST = 1000  # ids that tell, as a rule, what most are like
FEW, MANY = 2, 10  # so many different ones are odd where there are so many times as many others
BLANKS = " ", "\t"
# What programs write where there is nothing: nobody's name, as NA and None may be.
NOTHING = (
    "NULL", "null", "(null)", r"\N", "<NA>", "NaN", "nan", "-nan", "NaT", "N/A", "n/a", "#N/A",
)  # fmt: skip


def warn(
    path: Path, columns: dict[str, pd.Series], usual_names: Collection[Sequence[str]] | None = None
) -> None:  # fmt: skip
    """Warn of ids that stand for nothing, of few that are no integers, and of blanks behind ids.

    ``usual_names``: of columns, if the file has no line of them: its first row may be one after
    all. None: it has one.
    """
    if any(text.isna().any() for text in columns.values()):
        return  # which is refused, and said in a way of its own
    if _stand_for_nothing(path, columns):
        return
    if usual_names is not None and _first_row_is_of_names(path, columns, usual_names):
        return
    if not _all_but_few_are_integers(path, columns):
        _warn_of_blanks(path, columns)


def _stand_for_nothing(path: Path, columns: dict[str, pd.Series]) -> bool:
    """Warn of ids that stand for nothing, of all columns at once; tell so."""
    odd = {name: text.isin(NOTHING) for name, text in columns.items()}
    rows = int(sum(odd.values()).gt(0).sum())
    if rows:
        where = " and ".join(
            place.removeprefix(f"{path}: ") for name, text in columns.items()
            if (place := _where(path, name, text, odd[name]))
        )  # fmt: skip
        warn_caller(
            f"{path}: {where}, which is an id as any other here, and joins all that are in such "
            f"rows ({rows:,} of {len(next(iter(odd.values()))):,}); leave these rows out if it "
            "stands for none"
        )
    return bool(rows)


def _first_row_is_of_names(
    path: Path, columns: dict[str, pd.Series], usual_names: Collection[Sequence[str]]
) -> bool:
    """Warn if the first row looks like names: usual ones, or texts above integers; tell so."""
    first = [text.head(1).tolist() for text in columns.values()]
    integers = [text.head(FIRST).str.fullmatch(INTEGER).eq(True) for text in columns.values()]
    above = len(integers[0]) > 1 and not any(one.iloc[0] for one in integers)
    above = above and all(one.iloc[1:].all() for one in integers)
    words = [word for one in first for word in one]
    if above or tuple(word.lower() for word in words) in usual_names:
        warn_caller(
            f"{path}: its first row has {' and '.join(map(repr, words))}, which look like names of "
            "columns, and are ids as any others here: all ids are texts; leave --no-header out if "
            "that is a line of names"
        )
        return True
    return False


def _where(path: Path, name: str, text: pd.Series, odd: pd.Series) -> str:
    """Say where the first of some ids is; nothing if there is none."""
    if not odd.any():
        return ""
    row = int(odd.to_numpy().argmax())
    return f"{path}: column {name!r} has {text.iloc[row]!r} at row {row}"


def _warn_of_blanks(path: Path, columns: dict[str, pd.Series]) -> None:
    """Warn of ids with a blank behind them that are there without it, too."""
    behind = {name: text.str.endswith(BLANKS).eq(True) for name, text in columns.items()}
    odd = [text[behind[name]].str.rstrip().unique().tolist() for name, text in columns.items()]
    if not any(odd):
        return
    bare = {one for column in odd for one in column}
    known = {
        one for text in columns.values() for one in text[text.isin(list(bare))].unique().tolist()
    }
    for name, text in columns.items():
        with_blank = text[behind[name]]
        twice = with_blank.str.rstrip().isin(list(known))
        if twice.any():
            row = int(behind[name].to_numpy().nonzero()[0][twice.to_numpy().argmax()])
            warn_caller(
                f"{path}: column {name!r} has {text.iloc[row]!r} at row {row}, and the same id "
                "without the blank behind it: two vertices; write it one way"
            )
            return


def _all_but_few_are_integers(path: Path, columns: dict[str, pd.Series]) -> bool:
    """Warn if all ids but a few different ones are integers, as of a line of names; tell so."""
    first = [text.head(FIRST).str.fullmatch(INTEGER).eq(True) for text in columns.values()]
    if 2 * sum(one.sum() for one in first) < sum(map(len, first)):
        return False
    odd = {name: ~text.str.fullmatch(INTEGER).eq(True) for name, text in columns.items()}
    others = {name: text[odd[name]] for name, text in columns.items()}
    with_points = all(text.str.fullmatch(POINT).eq(True).all() for text in others.values())
    if not with_points:
        rows, integers = (sum(map(len, each.values())) for each in (others, columns))
        if MANY * rows > integers - rows:
            return False
        different = {one for text in others.values() for one in text.unique().tolist()}
        several = max(text[~odd[name]].nunique() for name, text in columns.items())
        if len(different) > FEW or several < MANY * len(different):
            return False
    for name, text in columns.items():
        where = _where(path, name, text, odd[name])
        if where and with_points:
            warn_caller(
                f"{where}, where other ids are written as 7 is: all are texts, of which 7 and 7.0 "
                "are two; write none with a point if they are integers"
            )
            return True
        if where:
            warn_caller(
                f"{where}, where other ids are integers: all are texts now, in what comes out, "
                "too; leave that row out if it is no edge (a line of names?), or write it as the "
                "others are, as 7, not as 007 or +7"
            )
            return True
    return True
