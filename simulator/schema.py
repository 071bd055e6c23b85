"""Structural schemas of custom resources: what they prune, what they fill in, what they refuse."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from simulator.refusals import Cause

Schema = Mapping[str, Any]
TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
META = frozenset({"apiVersion", "kind", "metadata"})


def pruned(schema: Schema, value: Any, *, is_root: bool = True) -> Any:
    """Without the members the schema does not name, and with its defaults."""
    if isinstance(value, dict) and schema.get("type") == "object":
        return _pruned_object(schema, value, is_root=is_root)
    if isinstance(value, list) and "items" in schema:
        return [pruned(schema["items"], item, is_root=False) for item in value]
    return value


def _pruned_object(schema: Schema, value: dict[str, Any], *, is_root: bool) -> dict[str, Any]:
    members: Schema = schema.get("properties") or {}
    others = schema.get("additionalProperties")
    keeps = schema.get("x-kubernetes-preserve-unknown-fields") or others is True
    kept: dict[str, Any] = {}
    for key, held in value.items():
        if is_root and key in META:
            kept[key] = held
        elif key in members:
            kept[key] = pruned(members[key], held, is_root=False)
        elif isinstance(others, Mapping):
            kept[key] = pruned(others, held, is_root=False)
        elif keeps:
            kept[key] = held
    for key, member in members.items():
        if key not in kept and "default" in member:
            kept[key] = pruned(member, member["default"], is_root=False)
    return kept


def causes(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    if value is None and schema.get("nullable"):
        return
    wrong = _type_words(schema, value)
    if wrong:
        yield Cause(path, f'Invalid value: "{_type_name(value)}": {path} in body must be of type {wrong}')
        return
    yield from _value_causes(schema, value, path)
    if isinstance(value, dict):
        yield from _member_causes(schema, value, path)
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from causes(schema.get("items") or {}, item, f"{path}[{index}]")


def _type_words(schema: Schema, value: Any) -> str:
    if schema.get("x-kubernetes-int-or-string"):
        return "" if isinstance(value, int | str) and not isinstance(value, bool) else "integer,string"
    wanted = schema.get("type", "")
    if wanted not in TYPES:
        return ""
    is_bool = isinstance(value, bool)
    fits = isinstance(value, TYPES[wanted]) and (wanted == "boolean" or not is_bool)
    return "" if fits else f'{wanted}: "{_type_name(value)}"'


def _type_name(value: Any) -> str:
    if value is None:
        return "null"
    return next((name for name, types in TYPES.items() if type(value) in types), type(value).__name__)


def _value_causes(schema: Schema, value: Any, path: str) -> Iterator[Cause]:
    allowed = schema.get("enum")
    if allowed and value not in allowed:
        listed = ", ".join(f'"{option}"' for option in allowed)
        yield Cause(path, f'Unsupported value: "{value}": supported values: {listed}', "FieldValueNotSupported")
    pattern = schema.get("pattern")
    if pattern and isinstance(value, str) and not re.search(pattern, value):
        yield Cause(path, f"Invalid value: \"{value}\": {path} in body should match '{pattern}'")
    if "minimum" in schema and isinstance(value, int | float) and value < schema["minimum"]:
        minimum = schema["minimum"]
        yield Cause(path, f"Invalid value: {value}: {path} in body should be greater than or equal to {minimum}")


def _member_causes(schema: Schema, value: dict[str, Any], path: str) -> Iterator[Cause]:
    members: Schema = schema.get("properties") or {}
    for key in schema.get("required") or ():
        if key not in value:
            yield Cause(f"{path}.{key}".lstrip("."), "Required value", "FieldValueRequired")
    others = schema.get("additionalProperties")
    for key, held in value.items():
        member = members.get(key, others if isinstance(others, Mapping) else {})
        if path or key not in META:
            yield from causes(member, held, f"{path}.{key}".lstrip("."))
