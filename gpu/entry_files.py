"""Data files in TOML: entries are read into dataclasses, and every error names the file and the entry."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

E = TypeVar("E")


class BadEntry(ValueError):
    """An entry of a data file that does not fit its schema. Names file, table, entry and error."""


def read_file(path: Path) -> dict[str, Any]:
    """:raises BadEntry: for a file that is no TOML."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadEntry(f"{path.name}: {error}") from error


def make_entries(
    path: Path, table: str, rows: Sequence[Mapping[str, Any]], make: Callable[[Mapping[str, Any]], E]
) -> tuple[E, ...]:
    """:raises BadEntry: for the first row that `make` refuses."""
    made = []
    for number, row in enumerate(rows, 1):
        try:
            made.append(make(row))
        except (KeyError, TypeError, ValueError) as error:
            name = row.get("key") or row.get("name") or ""
            raise BadEntry(f"{path.name}: [[{table}]] {number} {name}: {error}") from error
    return tuple(made)


def entry_of(row: Mapping[str, Any], kind: type[E]) -> E:
    """A dataclass from a row of TOML; arrays become tuples or sets, and strings members of an enum.

    :raises TypeError: for a key that is unknown or lacking, or a value of another type.
    :raises ValueError: for no member of the enum.
    """
    hints = _hints_of(cast("Any", kind))
    if unknown := row.keys() - hints.keys():
        raise TypeError(f"unknown {', '.join(sorted(unknown))}")
    return kind(**{name: _convert_value(name, value, hints[name]) for name, value in row.items()})


@cache  # typing evaluates every annotation, for each of 570 causes at the start of a process
def _hints_of(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)


def _convert_value(name: str, value: Any, hint: Any) -> Any:
    for kind in get_args(hint) or (hint,):
        if isinstance(kind, type) and issubclass(kind, StrEnum):
            return kind(value)
    container = get_origin(hint)
    if container in (tuple, frozenset):
        return container(_checked(name, each, get_args(hint)[0]) for each in _checked(name, value, list))
    if container is Mapping:
        kinds = (float, int) if get_args(hint)[1] is float else (str,)
        return {key: _checked(name, each, *kinds) for key, each in _checked(name, value, dict).items()}
    kinds = tuple(kind for kind in get_args(hint) or (hint,) if kind in (str, bool, int, date))
    return _checked(name, value, *kinds)


def _checked(name: str, value: Any, *kinds: type) -> Any:
    if type(value) not in kinds:
        raise TypeError(f"{name} is {value!r} and not of the type {' or '.join(kind.__name__ for kind in kinds)}")
    return value
