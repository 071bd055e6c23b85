"""Schemas of the built-in kinds, read from the official client's models: the same fields the real API documents."""

import re
from functools import cache
from typing import Any

from simulator.kinds import Kind

Schema = dict[str, Any]
PLAIN: dict[str, Schema] = {
    "str": {"type": "string"},
    "int": {"type": "integer"},
    "float": {"type": "number"},
    "bool": {"type": "boolean"},
    "datetime": {"type": "string", "format": "date-time"},
    "bytes": {"type": "string", "format": "byte"},
    "bytearray": {"type": "string", "format": "byte"},
    "date": {"type": "string"},
    "object": {},
}
MODEL_NAMES = {("v1", "Event"): "CoreV1Event", ("v1", "ResourceClaim"): "ResourceV1ResourceClaim"}
PREFIX = "#/components/schemas/"


def model_name(kind: Kind) -> str:
    return MODEL_NAMES.get((kind.version, kind.name), f"{kind.version.capitalize()}{kind.name}")


@cache
def schemas_of(kind: Kind) -> dict[str, Schema]:
    """The kind's schema and all it refers to, by name; empty where the client has no model of it."""
    found: dict[str, Schema] = {}
    waiting = [model_name(kind)]
    while waiting:
        name = waiting.pop()
        model = _model(name)
        if name in found or model is None:
            continue
        found[name] = _schema(model)
        waiting += [word for text in model.openapi_types.values() for word in re.findall(r"\w+", text)]
    return found


def _model(name: str) -> Any:
    # A second's worth of imports that only those who ask for schemas should pay for.
    from kubernetes.client import models

    found = getattr(models, name, None)
    return found if hasattr(found, "openapi_types") else None


def _schema(model: Any) -> Schema:
    members = {model.attribute_map[name]: _typed(text) for name, text in model.openapi_types.items()}
    schema: Schema = {"type": "object", "properties": members}
    said = (model.__doc__ or "").strip().partition("\n")[0]
    return {**schema, "description": said} if said and not said.startswith("NOTE:") else schema


def _typed(text: str) -> Schema:
    inner = re.fullmatch(r"[Ll]ist\[(.+)\]", text)
    if inner:
        return {"type": "array", "items": _typed(inner.group(1))}
    inner = re.fullmatch(r"[Dd]ict(?:\[|\()str, (.+)[\])]", text)
    if inner:
        return {"type": "object", "additionalProperties": _typed(inner.group(1))}
    return PLAIN[text] if text in PLAIN else {"allOf": [{"$ref": PREFIX + text}], "default": {}}
