"""Tables of results as Markdown or JSON."""

from __future__ import annotations

import json
import math
from typing import Any

Rows = list[dict[str, Any]]
Tables = dict[str, Rows]


def as_json(tables: Tables) -> str:
    """Write tables as one JSON object, title by title."""
    return json.dumps(tables, indent=2, default=str)


def as_markdown(tables: Tables) -> str:
    """Write tables as Markdown, numbers to the right and padded so that the source reads well."""
    return "\n\n".join(f"### {title}\n\n{_table(rows)}" for title, rows in tables.items())


def _table(rows: Rows) -> str:
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    numeric = [all(_is_number(row.get(column)) for row in rows) for column in columns]
    widths = [
        max(3, len(column), *(len(line[i]) for line in cells)) for i, column in enumerate(columns)
    ]
    rule = ["-" * (width - 1) + (":" if right else "-") for width, right in
            zip(widths, numeric, strict=True)]  # fmt: skip

    def line(values: list[str]) -> str:
        padded = (
            value.rjust(width) if right else value.ljust(width)
            for value, width, right in zip(values, widths, numeric, strict=True)
        )
        return f"| {' | '.join(padded)} |"

    return "\n".join([line(columns), line(rule), *map(line, cells)])


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "NO"
    if isinstance(value, float):
        return f"{value:.3f}" if abs(value) >= 0.1 or value == 0 else f"{value:.2g}"
    return str(value)
