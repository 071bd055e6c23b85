"""Defaults of what a cluster is made of."""

import base64
from typing import Any

from simulator.defaults.pod import amounts

Obj = dict[str, Any]


def filled_namespace(obj: Obj) -> Obj:
    metadata = obj["metadata"]
    labels = {**(metadata.get("labels") or {}), "kubernetes.io/metadata.name": metadata["name"]}
    spec = obj.get("spec") or {}
    if "deletionTimestamp" not in metadata:
        spec = {**spec, "finalizers": spec.get("finalizers") or ["kubernetes"]}
    status = {"phase": "Active", **(obj.get("status") or {})}
    return {**obj, "metadata": {**metadata, "labels": labels}, "spec": spec, "status": status}


def filled_node(obj: Obj) -> Obj:
    spec = {key: value for key, value in (obj.get("spec") or {}).items() if value not in (False, None, [], "")}
    status = obj.get("status") or {}
    # Allocatable is capacity until a kubelet says less.
    if "capacity" in status:
        held = status.get("allocatable", status["capacity"])
        status = {**status, "capacity": amounts(status["capacity"]), "allocatable": amounts(held)}
    return {**obj, "spec": spec, "status": status}


def filled_budget(obj: Obj) -> Obj:
    return {**obj, "spec": obj.get("spec") or {}}


def filled_secret(obj: Obj) -> Obj:
    plain = {key: base64.b64encode(str(value).encode()).decode() for key, value in obj.get("stringData", {}).items()}
    kept = {key: value for key, value in obj.items() if key != "stringData"}
    members = {**(obj.get("data") or {}), **plain}
    return {**kept, "type": obj.get("type") or "Opaque", **({"data": members} if members else {})}
