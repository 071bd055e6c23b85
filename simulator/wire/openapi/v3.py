"""/openapi/v3: an index of documents, one for each group and version."""

import hashlib
from collections.abc import Iterable
from typing import Any

from simulator.kinds import Kind
from simulator.store import Store
from simulator.versions import KUBERNETES
from simulator.wire.openapi.published import gvk, schemas

Obj = dict[str, Any]
PATCH_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "force")


def index(store: Store) -> Obj:
    paths = sorted({base_path(kind) for kind in store.kinds.values()})
    names = ",".join(sorted(kind.resource for kind in store.kinds.values()))
    digest = hashlib.sha256(names.encode()).hexdigest().upper()
    return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={digest}"} for path in paths}}


def base_path(kind: Kind) -> str:
    return f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"


def document(store: Store, base: str) -> Obj | None:
    kinds = [kind for kind in store.kinds.values() if base_path(kind) == base]
    if not kinds:
        return None
    found: Obj = {}
    for kind in kinds:
        found |= schemas(store, kind)
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": KUBERNETES},
        "paths": dict(paths(kinds)),
        "components": {"schemas": found},
    }


def paths(kinds: Iterable[Kind]) -> Iterable[tuple[str, Obj]]:
    for kind in kinds:
        parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in PATCH_PARAMETERS]
        tagged = {"x-kubernetes-group-version-kind": gvk(kind), "responses": {"200": {"description": "OK"}}}
        get = {**tagged, "x-kubernetes-action": "get"}
        patch = {**tagged, "x-kubernetes-action": "patch", "parameters": parameters}
        yield object_path(kind), {"get": get, "patch": patch}


def object_path(kind: Kind) -> str:
    middle = "namespaces/{namespace}/" if kind.namespaced else ""
    return f"/{base_path(kind)}/{middle}{kind.plural}/{{name}}"
