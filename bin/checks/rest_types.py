# ruff: noqa: INP001 - the folder holds scripts
"""Types of the answers that the command line reads, as Python's TypedDicts, from the OpenAPI schema."""

import ast
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

HEAD = '''"""Types of the answers of REST. `bin/tables` writes them from the schema, and `bin/check` compares them."""

from __future__ import annotations

from typing import Any, Literal, TypedDict
'''
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
LONGEST_ENUM = 40  # values; a longer one, as that of time zones, is plain text


def rest_types(schema: dict[str, Any], roots: Iterable[str]) -> str:
    """Returns the module: a TypedDict for each root and for each object in it, in the order of names.

    :raises KeyError: for a root that the schema does not have
    """
    components, needed = schema["components"]["schemas"], {}
    waiting = [*roots]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = components[name]
            waiting += _names_in(components[name])
    return HEAD + "".join(f"\n\n{_definition(name, needed[name])}\n" for name in _ordered(needed))


def imported_types(folder: Path) -> list[str]:
    """Returns the names that the modules of a folder import from `rest_types`."""
    return [
        alias.name
        for path in sorted(folder.glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "cli.rest_types"
        for alias in node.names
    ]


def _names_in(part: Any) -> Iterator[str]:
    """Yields the components that a part of the schema refers to."""
    if isinstance(part, dict):
        if "$ref" in part:
            yield part["$ref"].rpartition("/")[2]
        for value in part.values():
            yield from _names_in(value)
    elif isinstance(part, list):
        for value in part:
            yield from _names_in(value)


def _ordered(needed: dict[str, Any]) -> list[str]:
    """Enums first: Python reads them at once, and objects as text."""
    return sorted(needed, key=lambda name: ("properties" in needed[name], name))


def _definition(name: str, part: dict[str, Any]) -> str:
    fields = part.get("properties")
    if not fields:
        return f"{name} = {_type_of(part)}"
    return "\n".join(
        [f"class {name}(TypedDict):", *(f"    {field}: {_type_of(kind)}" for field, kind in fields.items())]
    )


def _type_of(part: dict[str, Any]) -> str:
    kind = _type_of_value(part)
    return f"{kind} | None" if part.get("nullable") and kind != "Any" else kind


def _type_of_value(part: dict[str, Any]) -> str:
    if "$ref" in part:
        return str(part["$ref"].rpartition("/")[2])
    for key in ("oneOf", "allOf", "anyOf"):
        if key in part:
            return " | ".join(dict.fromkeys(_type_of(each) for each in part[key]))
    if "enum" in part and len(part["enum"]) <= LONGEST_ENUM:
        return f"Literal[{', '.join(json.dumps(value) for value in part['enum'])}]"
    if part.get("type") == "array":
        return f"list[{_type_of(part.get('items', {}))}]"
    if part.get("type") == "object":
        more = part.get("additionalProperties")
        return f"dict[str, {_type_of(more) if isinstance(more, dict) else 'Any'}]"
    return SCALARS.get(part.get("type", ""), "Any")
