"""`fieldValidation`: members that no schema names, as the API server's strict decoder reports them."""

from collections.abc import Iterator, Mapping
from typing import Any

from simulator import definitions
from simulator.kinds import DEFINITION, Kind
from simulator.refusals import bad_request
from simulator.store import Store
from simulator.wire.openapi.models import PREFIX, Schema, model_name, schemas_of

OPEN_SHAPES = frozenset({"V1JSONSchemaProps"})
"""Models whose members have other names on the wire ($ref, x-kubernetes-...) than in any client."""


def check(store: Store, kind: Kind, obj: Any) -> None:
    """:raises Refused: 400 that names each unknown field."""
    unknown = list(_custom(store, kind, obj) if kind.is_custom else _built_in(kind, obj))
    if not unknown:
        return
    said = ", ".join(f'unknown field "{path}"' for path in unknown)
    if kind.is_custom:
        raise bad_request(f"strict decoding error: {said}")
    where = f"{kind.name} in version {kind.version!r} cannot be handled as a {kind.name}".replace("'", '"')
    raise bad_request(f"{where}: strict decoding error: {said}")


def _built_in(kind: Kind, obj: Any) -> Iterator[str]:
    schemas = schemas_of(kind)
    if schemas:
        yield from _unknown(schemas, {"$ref": PREFIX + model_name(kind)}, obj, "")


def _unknown(schemas: Mapping[str, Schema], schema: Schema, value: Any, path: str) -> Iterator[str]:
    reference = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf", ())), "")
    name = reference.removeprefix(PREFIX)
    if name in OPEN_SHAPES:
        return
    schema = schemas.get(name, {}) if name else schema
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unknown(schemas, schema.get("items", {}), item, f"{path}[{index}]")
    elif isinstance(value, dict):
        members, others = schema.get("properties"), schema.get("additionalProperties")
        for key, held in value.items():
            below = f"{path}.{key}".lstrip(".")
            if key.startswith("$"):  # a directive of a strategic merge patch
                continue
            if members is not None and key not in members:
                yield below
            else:
                yield from _unknown(schemas, (members or {}).get(key) or others or {}, held, below)


def _custom(store: Store, kind: Kind, obj: Any) -> Iterator[str]:
    record = store.shelf(DEFINITION).records.get(f"{kind.plural}.{kind.group}")
    schema = definitions.schema_of(record.obj, kind.version) if record else {}
    if schema:
        rest = {key: value for key, value in obj.items() if key not in {"apiVersion", "kind", "metadata"}}
        yield from _unnamed(schema, rest, "")


def _unnamed(schema: Schema, value: Any, path: str) -> Iterator[str]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _unnamed(schema.get("items") or {}, item, f"{path}[{index}]")
    elif isinstance(value, dict):
        members, others = schema.get("properties"), schema.get("additionalProperties")
        is_open = members is None or others or schema.get("x-kubernetes-preserve-unknown-fields")
        for key, held in value.items():
            below = f"{path}.{key}".lstrip(".")
            if key in (members or {}):
                yield from _unnamed((members or {})[key], held, below)
            elif isinstance(others, Mapping):
                yield from _unnamed(dict(others), held, below)
            elif not is_open:
                yield below
