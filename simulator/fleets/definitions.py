"""The operator's CustomResourceDefinitions: what its fields default to, and room for the rest."""

from typing import Any

Obj = dict[str, Any]
ANYTHING: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
INT_OR_PERCENT: Obj = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
    "default": "25%",
}
STATUS: Obj = {
    "type": "object",
    "properties": {
        "state": {"type": "string", "enum": ["ignored", "ready", "notReady", "disabled"]},
        "namespace": {"type": "string"},
        "conditions": {"type": "array", "items": ANYTHING},
    },
}


def _eviction(**more: Any) -> Obj:
    return {
        "type": "object",
        "properties": {
            "force": {"type": "boolean", "default": False},
            "timeoutSeconds": {"type": "integer", "default": 300, "minimum": 0},
            "deleteEmptyDir": {"type": "boolean", "default": False},
            **more,
        },
    }


def _upgrade_policy(*, is_auto: bool) -> Obj:
    waiting = {"podSelector": {"type": "string"}, "timeoutSeconds": {"type": "integer", "default": 0, "minimum": 0}}
    drain = {"enable": {"type": "boolean", "default": False}, "podSelector": {"type": "string"}}
    return {
        "type": "object",
        "properties": {
            "autoUpgrade": {"type": "boolean", "default": is_auto},
            "maxParallelUpgrades": {"type": "integer", "default": 1, "minimum": 0},
            "maxUnavailable": INT_OR_PERCENT,
            "waitForCompletion": {"type": "object", "properties": waiting},
            "podDeletion": _eviction(),
            "drain": _eviction(**drain),
        },
    }


def _nvidia_driver_spec(*, has_policy: bool) -> Obj:
    properties: Obj = {
        "default": {"type": "boolean"},
        "driverType": {"type": "string", "enum": ["gpu", "vgpu", "vgpu-host-manager"], "default": "gpu"},
        "usePrecompiled": {"type": "boolean"},
        "kernelModuleType": {"type": "string", "enum": ["auto", "open", "proprietary"], "default": "auto"},
        "repository": {"type": "string"},
        "image": {"type": "string", "default": "nvcr.io/nvidia/driver"},
        "version": {"type": "string"},
        "nodeSelector": {"type": "object", "additionalProperties": {"type": "string"}},
    }
    if has_policy:
        properties["upgradePolicy"] = _upgrade_policy(is_auto=True)
    return {**ANYTHING, "properties": properties, "required": ["driverType", "image"]}


def _cluster_policy_spec() -> Obj:
    driver = {**ANYTHING, "properties": {"upgradePolicy": _upgrade_policy(is_auto=False)}}
    return {**ANYTHING, "properties": {"driver": driver}}


def _definition(kind: str, plural: str, version: str, spec: Obj, columns: list[Obj], short: list[str]) -> Obj:
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    schema = {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": STATUS,
        },
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.nvidia.com"},
        "spec": {
            "group": "nvidia.com",
            "names": names | ({"shortNames": short} if short else {}),
            "scope": "Cluster",
            "versions": [
                {
                    "name": version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                    "additionalPrinterColumns": columns,
                }
            ],
        },
    }


def _column(name: str, path: str, type_: str = "string") -> Obj:
    return {"name": name, "jsonPath": path, "type": type_}


def definitions(*, is_26_7: bool) -> list[Obj]:
    status, age = _column("Status", ".status.state"), _column("Age", ".metadata.creationTimestamp", "date")
    shown = [status, *([_column("Default", ".spec.default", "boolean")] if is_26_7 else []), age]
    driver_spec = _nvidia_driver_spec(has_policy=is_26_7)
    short = ["nvd", "nvdriver", "nvdrivers"]
    drivers = _definition("NVIDIADriver", "nvidiadrivers", "v1alpha1", driver_spec, shown, short)
    policies = _definition("ClusterPolicy", "clusterpolicies", "v1", _cluster_policy_spec(), [status, age], [])
    if not is_26_7:
        return [policies, drivers]
    return [policies, drivers, _definition("GPUCluster", "gpuclusters", "v1alpha1", ANYTHING, [status, age], [])]
