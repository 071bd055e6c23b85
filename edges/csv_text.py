"""Rows as CSV text."""

import csv
from collections.abc import Iterable
from io import StringIO
from typing import Any

FORMULA = frozenset("=+-@\t\r\n")  # what a spreadsheet takes for the beginning of one


def as_csv(rows: Iterable[Iterable[Any]]) -> str:
    """Returns CSV text. A cell that would begin a formula is prefixed with an apostrophe."""
    out = StringIO()
    csv.writer(out).writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in FORMULA and value else value
