"""Validation of rows before the write, equal for every database.

PostgreSQL refuses NUL, overlong text and integers out of range; SQLite stores them and fails later. An API server
sends none of these, so such data is broken or malicious.
"""

from collections.abc import Callable
from datetime import datetime
from functools import cache, partial
from typing import Any

from django.db import models

from fleet.observer.mirror.rows import Columns

FIRST_YEAR, LAST_YEAR = 1, 9999
MOST_JSON_CHARS = 512 * 1024  # an API object has 1.5 MiB at most, and a part of it is stored
MOST = {
    models.PositiveIntegerField: 2**31 - 1,
    models.IntegerField: 2**31 - 1,
    models.PositiveBigIntegerField: 2**63 - 1,
    models.BigIntegerField: 2**63 - 1,
}
ColumnCheck = Callable[[Any], str]


def why_invalid(model: type[models.Model], row: Columns) -> str:
    """Returns why a row is invalid. Blank: valid."""
    for name, check in _checks_of(model):
        # Empty values are valid in any column, and most are empty.
        if (value := row.get(name)) and (reason := check(value)):
            return f"{name.replace('_', ' ')} {reason}"
    return ""


@cache
def _checks_of(model: type[models.Model]) -> tuple[tuple[str, ColumnCheck], ...]:
    every = model._meta.concrete_fields  # noqa: SLF001 - documented, in spite of its name
    found = ((field.name, _check_for(field)) for field in every if not field.is_relation and not field.primary_key)
    return tuple((name, check) for name, check in found if check is not None)


def _check_for(field: Any) -> ColumnCheck | None:
    if isinstance(field, models.JSONField):
        return _json
    if isinstance(field, models.DateTimeField):
        return _moment
    if isinstance(field, models.CharField | models.TextField):
        longest = field.max_length or MOST_JSON_CHARS
        return partial(_text_problem, longest)
    if type(field) in MOST:
        most = MOST[type(field)]
        least = 0 if "Positive" in type(field).__name__ else -most
        return lambda value: "" if least <= value <= most else f"is out of range: {value:.3g}."
    return None


def _moment(value: datetime) -> str:
    """Checks the year: PostgreSQL stores the year 10000, but Python cannot read it."""
    return "" if FIRST_YEAR < value.year < LAST_YEAR else f"is in the year {value.year}."


def _text_problem(longest: int, value: str) -> str:
    if len(value) > longest:
        return f"has {len(value):,} characters, {longest} at most are allowed."
    return "has a NUL character." if "\0" in value else ""


def _text_of(value: dict[Any, Any]) -> str | None:
    """Returns all text of a mapping of text to text. None: not such a mapping."""
    try:
        return "".join(value) + "".join(value.values())
    except TypeError:
        return None


def _json(value: Any) -> str:
    if isinstance(value, dict) and (text := _text_of(value)) is not None and len(text) <= MOST_JSON_CHARS:
        return "have a NUL character." if "\0" in text else ""
    size = 0
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            if "\0" in one:
                return "have a NUL character."
            size += len(one)
        elif isinstance(one, dict):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one
        elif isinstance(one, int) and not -(2**63) <= one < 2**63:
            return "have a number that is out of range."
        if size > MOST_JSON_CHARS:
            return f"are longer than {MOST_JSON_CHARS // 1024} KiB."
    return ""
