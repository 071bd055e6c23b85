# ruff: noqa: INP001 - the folder holds scripts
"""Types of the answers that the command line reads, as Python's TypedDicts, from the OpenAPI schema.

A type has only the fields that some module reads: another one is unknown to mypy until `bin/tables` runs again.
"""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HEAD = '''"""Types of the answers of REST. `bin/tables` writes them from the schema, and `bin/check` compares them."""

from __future__ import annotations

from typing import Any, Literal, TypedDict
'''
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
LONGEST_ENUM = 40  # values; a longer one, as that of time zones, is plain text


def rest_types(schema: dict[str, Any], folder: Path) -> str:
    """Returns the module: a TypedDict for each type that a module of the folder imports, and for each object in it.

    :raises KeyError: for a type that the schema does not have
    """
    readers = (path for path in sorted(folder.glob("*.py")) if path.stem != "rest_types")
    nodes = [node for path in readers for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    keys = {key for node in nodes for key in _keys_in(node)}
    components, needed = schema["components"]["schemas"], {}
    waiting = [name for node in nodes for name in _imports_in(node)]
    while waiting:
        name = waiting.pop()
        if name not in needed:
            part = dict(components[name])
            if "properties" in part:
                part["properties"] = {field: kind for field, kind in part["properties"].items() if field in keys}
            needed[name] = part
            waiting += _names_in(part)
    return HEAD + "".join(f"\n\n{_definition(name, needed[name])}\n" for name in _ordered(needed))


def _imports_in(node: ast.AST) -> list[str]:
    is_of_types = isinstance(node, ast.ImportFrom) and node.module == "cli.rest_types"
    return [alias.name for alias in node.names] if is_of_types else []  # type: ignore[attr-defined]


def _keys_in(node: ast.AST) -> list[str]:
    """Returns the key of `row["key"]` and of `row.get("key", …)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        places = node.args[:1]
    else:
        places = [node.slice] if isinstance(node, ast.Subscript) else []
    return [place.value for place in places if isinstance(place, ast.Constant) and isinstance(place.value, str)]


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
    if fields is None:
        return f"{name} = {_type_of(part)}"
    lines = [f"    {field}: {_type_of(kind)}" for field, kind in fields.items()] or ["    pass"]
    return "\n".join([f"class {name}(TypedDict):", *lines])


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
