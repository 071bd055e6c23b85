"""The numbers that a test Job prints: by paths in the last JSON value that begins a line of its log. Pure."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

PATH = re.compile(r"[\w-]+(=[\w-]+)?(\.[\w-]+(=[\w-]+)?)*", re.ASCII)


def is_path(text: str) -> bool:
    return PATH.fullmatch(text) is not None


def numbers_at(lines: Sequence[str], paths: Iterable[str]) -> Mapping[str, float]:
    """Returns the number at each path such as `testcases.0.sum` or `testcases.name=read.sum`, if there is one."""
    value = _last_json(lines)
    found = {path: _number_at(value, path) for path in paths}
    return {path: number for path, number in found.items() if number is not None}


def _number_at(value: Any, path: str) -> float | None:
    for key in path.split("."):
        name, is_name, wanted = key.partition("=")
        if isinstance(value, dict):
            value = value.get(key)
        elif isinstance(value, list) and is_name:
            value = next((each for each in value if isinstance(each, dict) and each.get(name) == wanted), None)
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number beyond floats
        return None


def _last_json(lines: Sequence[str]) -> Any:
    for first in reversed(range(len(lines))):
        if lines[first][:1] in ("{", "["):
            try:
                value, _ = json.JSONDecoder().raw_decode("\n".join(lines[first:]))
            except (ValueError, RecursionError):
                continue
            return value
    return None
