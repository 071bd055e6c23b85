"""Columns that a CustomResourceDefinition asks for, by a small part of JSONPath."""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any

from simulator.wire.ages import age
from simulator.wire.columns.column import AGE, NAME, Column

Obj = dict[str, Any]
STEP = re.compile(r"\.?([^.\[\]]+)|\[\?\(@\.(\w+)==[\"'](.+?)[\"']\)\]|\[(\d+|\*)\]|\[['\"](.+?)['\"]\]")


def columns_of(definition: Obj, version: str) -> tuple[Column, ...]:
    served = next(held for held in definition["spec"]["versions"] if held["name"] == version)
    asked = served.get("additionalPrinterColumns")
    return (NAME, *(_column(column) for column in asked)) if asked else (NAME, AGE)


def _column(asked: Obj) -> Column:
    return Column(
        asked["name"],
        _cell(asked["jsonPath"], asked["type"]),
        type="string" if asked["type"] == "date" else asked["type"],
        priority=asked.get("priority", 0),
        format=asked.get("format", ""),
        description=asked.get("description", ""),
    )


def _cell(path: str, kind: str) -> Callable[[Obj, datetime], Any]:
    def cell(obj: Obj, now: datetime) -> Any:
        found = look_up(obj, path)
        if found is None:
            return "<unknown>" if kind == "date" else ""
        return age(found, now) if kind == "date" else found

    return cell


def look_up(value: Any, path: str) -> Any:
    for key, member, wanted, index, quoted in STEP.findall(path.strip("{}").replace(r"\.", "\0")):
        if member:
            value = next((item for item in value or () if item.get(member) == wanted), None)
        elif index:
            items = value or []
            value = items[int(index)] if index.isdigit() and int(index) < len(items) else None
        else:
            name = (key or quoted).replace("\0", ".")
            value = value.get(name) if isinstance(value, dict) else None
    return value
