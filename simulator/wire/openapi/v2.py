"""/openapi/v2, for older clients: what a patch of each kind takes, and the schemas they validate and explain by."""

from typing import Any

from simulator.store import Store
from simulator.versions import KUBERNETES
from simulator.wire.openapi.models import PREFIX
from simulator.wire.openapi.published import gvk, schemas
from simulator.wire.openapi.v3 import PATCH_PARAMETERS, object_path

Obj = dict[str, Any]
DEFINITIONS = "#/definitions/"
CONSUMES = ("application/json-patch+json", "application/merge-patch+json", "application/strategic-merge-patch+json")
KEPT = ("type", "format", "description", "properties", "items", "additionalProperties", "required", "enum")


def document(store: Store) -> Obj:
    kinds = tuple(store.kinds.values())
    found: Obj = {}
    for kind in kinds:
        found |= {name: plain(schema) for name, schema in schemas(store, kind).items()}
    return {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": KUBERNETES},
        "paths": {object_path(kind): {"patch": _patch(gvk(kind), is_custom=kind.is_custom)} for kind in kinds},
        "definitions": found,
    }


def _patch(tag: Obj, *, is_custom: bool) -> Obj:
    parameters = [{"name": name, "in": "query", "type": "string", "uniqueItems": True} for name in PATCH_PARAMETERS]
    return {
        "consumes": list(CONSUMES[: 2 if is_custom else 3]),
        "parameters": parameters,
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": tag,
    }


def plain(schema: Obj) -> Obj:
    """The part of a schema that OpenAPI 2 can say."""
    reference = schema.get("$ref") or next((part["$ref"] for part in schema.get("allOf", ()) if "$ref" in part), "")
    if reference:
        return {"$ref": reference.replace(PREFIX, DEFINITIONS)}
    said = {key: schema[key] for key in KEPT if key in schema}
    said |= {key: value for key, value in schema.items() if key.startswith("x-kubernetes-")}
    if "properties" in said:
        said["properties"] = {name: plain(member) for name, member in said["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(said.get(key), dict):
            said[key] = plain(said[key])
    return said
