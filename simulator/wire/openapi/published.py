"""One kind's schemas as both versions of OpenAPI publish them, by name."""

from typing import Any

from simulator import definitions
from simulator.kinds import DEFINITION, Kind
from simulator.patches import merge_keys
from simulator.store import Store
from simulator.wire.openapi.models import PREFIX, model_name, schemas_of

Obj = dict[str, Any]
META_MODEL = "V1ObjectMeta"


def schemas(store: Store, kind: Kind) -> Obj:
    found = {name: _with_merge_keys(name, schema) for name, schema in _schemas(store, kind).items()}
    name = schema_name(kind)
    own = found.get(name, {"type": "object"})
    return {**found, name: {**own, "x-kubernetes-group-version-kind": [gvk(kind)]}}


def schema_name(kind: Kind) -> str:
    if kind.is_custom:
        return ".".join((*reversed(kind.group.split(".")), kind.version, kind.name))
    return model_name(kind)


def gvk(kind: Kind) -> Obj:
    return {"group": kind.group, "version": kind.version, "kind": kind.name}


def _schemas(store: Store, kind: Kind) -> Obj:
    if not kind.is_custom:
        return schemas_of(kind)
    record = store.shelf(DEFINITION).records.get(f"{kind.plural}.{kind.group}")
    schema = definitions.schema_of(record.obj, kind.version) if record else {}
    every = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}, "metadata": {"$ref": PREFIX + META_MODEL}}
    members = {**(schema.get("properties") or {}), **every}
    return {META_MODEL: schemas_of(DEFINITION)[META_MODEL], schema_name(kind): {**schema, "properties": members}}


def _with_merge_keys(name: str, schema: Obj) -> Obj:
    """`x-kubernetes-patch-merge-key`, by which kubectl computes what `apply` sends."""
    members = {field: _merging(name, field, member) for field, member in (schema.get("properties") or {}).items()}
    return {**schema, "properties": members} if members else schema


def _merging(model: str, field: str, member: Obj) -> Obj:
    if member.get("type") != "array" or "." in model:
        return member
    if field in merge_keys.SETS:
        return {**member, "x-kubernetes-patch-strategy": "merge"}
    key = merge_keys.merge_key("Service" if model == "V1ServiceSpec" else "", field)
    if key is None:
        return member
    strategy = "merge,retainKeys" if field in merge_keys.RETAIN_KEYS else "merge"
    return {**member, "x-kubernetes-patch-merge-key": key, "x-kubernetes-patch-strategy": strategy}
