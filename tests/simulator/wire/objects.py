"""Small but whole Kubernetes objects; a test names only what it is about."""

from typing import Any

Obj = dict[str, Any]
CRD_NAME = "widgets.example.com"


def a_node(name: str, *, labels: dict[str, str] | None = None, is_ready: bool = True, **spec: Any) -> Obj:
    condition = {
        "type": "Ready",
        "status": "True" if is_ready else "False",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": "2026-01-01T00:00:00Z",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    info = {
        "kubeletVersion": "v1.33.5",
        "kernelVersion": "5.15.0-119-generic",
        "osImage": "Ubuntu 22.04.5 LTS",
        "containerRuntimeVersion": "containerd://1.7.27",
        "architecture": "amd64",
        "operatingSystem": "linux",
        "bootID": "b",
        "machineID": "m",
        "systemUUID": "s",
        "kubeProxyVersion": "v1.33.5",
    }
    capacity = {"cpu": "96", "memory": "1056Gi", "pods": "110", "nvidia.com/gpu": "8"}
    status = {"conditions": [condition], "nodeInfo": info, "capacity": capacity, "allocatable": capacity}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels or {}},
        "spec": spec,
        "status": status,
    }


def a_pod(
    name: str,
    *,
    node: str = "",
    labels: dict[str, str] | None = None,
    is_ready: bool = True,
    phase: str = "Running",
    owner: Obj | None = None,
    **spec: Any,
) -> Obj:
    conditions = [{"type": "Ready", "status": "True" if is_ready else "False"}]
    metadata: Obj = {"name": name, "labels": labels or {}}
    if owner:
        metadata["ownerReferences"] = [owner]
    placed = {"nodeName": node} if node else {}
    container = {"name": "main", "image": "registry.example/app:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": [container], **placed, **spec},
        "status": {"phase": phase, "conditions": conditions} if node else {},
    }


def a_replica_set(name: str, *, replicas: int, labels: dict[str, str]) -> Obj:
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "main", "image": "app:1"}]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": spec}


def owner_of(obj: Obj) -> Obj:
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": obj["metadata"]["name"],
        "uid": obj["metadata"]["uid"],
        "controller": True,
    }


def a_budget(name: str, labels: dict[str, str], **spec: Any) -> Obj:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, **spec},
    }


def a_definition() -> Obj:
    """Cluster-scoped widgets with a status subresource and a small schema."""
    spec_schema = {
        "type": "object",
        "required": ["version"],
        "properties": {
            "version": {"type": "string"},
            "replicas": {"type": "integer", "minimum": 0, "default": 1},
            "mode": {"type": "string", "enum": ["fast", "safe"]},
        },
    }
    free = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec_schema, "status": free}}}
    columns = [
        {"name": "Version", "type": "string", "jsonPath": ".spec.version"},
        {"name": "State", "type": "string", "jsonPath": ".status.state"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": schema,
        "subresources": {"status": {}},
        "additionalPrinterColumns": columns,
    }
    names = {
        "kind": "Widget",
        "plural": "widgets",
        "singular": "widget",
        "shortNames": ["wd"],
        "listKind": "WidgetList",
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": CRD_NAME},
        "spec": {"group": "example.com", "scope": "Cluster", "names": names, "versions": [version]},
    }


def a_widget(name: str, **spec: Any) -> Obj:
    return {
        "apiVersion": "example.com/v1alpha1",
        "kind": "Widget",
        "metadata": {"name": name},
        "spec": {"version": "1", **spec},
    }
