"""Rows as CSV text, and as a file."""

import csv
from collections.abc import Iterable, Sequence
from io import StringIO
from typing import Any

from django.http import HttpResponse

FORMULA = frozenset("=+-@\t\r\n")  # first characters that a spreadsheet reads as a formula


def as_csv(rows: Iterable[Iterable[Any]]) -> str:
    """Returns CSV text. A cell that would begin a formula is prefixed with an apostrophe."""
    out = StringIO()
    csv.writer(out).writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def download_of(rows: Iterable[Sequence[object]], name: str) -> HttpResponse:
    """Returns rows as a CSV file with this name."""
    response = HttpResponse(as_csv(rows), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "private, no-store"
    return response


def _cell(value: Any) -> Any:
    return f"'{value}" if isinstance(value, str) and value[:1] in FORMULA and value else value
