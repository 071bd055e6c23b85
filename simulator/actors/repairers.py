"""The kinds of controllers that repair or replace nodes, as their CRDs define them: NVSentinel's janitor and
lifecycle-manager, Metal3, medik8s and Cluster API.

NVIDIA/NVSentinel, charts/janitor/crds and charts/lifecycle-manager/crds; metal3-io/baremetal-operator, docs/api.md;
config/crd/bases of medik8s/node-healthcheck-operator, medik8s/self-node-remediation, medik8s/fence-agents-remediation
and kubernetes-sigs/cluster-api.
"""

from typing import Any

from simulator.kinds import Kind

Obj = dict[str, Any]
JANITOR, LIFECYCLE, METAL3 = "janitor.dgxc.nvidia.com", "nvsentinel.dgxc.nvidia.com", "metal3.io"
ANYTHING: Obj = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def _kind(group: str, plural: str, name: str, *, version: str = "v1alpha1", namespaced: bool = False) -> Kind:
    return Kind(
        group, version, plural, name, namespaced=namespaced, has_status=True, has_generation=True, is_custom=True
    )


REBOOT_NODE = _kind(JANITOR, "rebootnodes", "RebootNode")
GPU_RESET = _kind(JANITOR, "gpuresets", "GPUReset")
MAINTENANCE_REQUEST = _kind(LIFECYCLE, "maintenancerequests", "MaintenanceRequest", version="v1")
BARE_METAL_HOST = _kind(METAL3, "baremetalhosts", "BareMetalHost", namespaced=True)
NODE_HEALTH_CHECK = _kind("remediation.medik8s.io", "nodehealthchecks", "NodeHealthCheck")
SELF_NODE_REMEDIATION = _kind(
    "self-node-remediation.medik8s.io", "selfnoderemediations", "SelfNodeRemediation", namespaced=True
)
FENCE_AGENTS_REMEDIATION = _kind(
    "fence-agents-remediation.medik8s.io", "fenceagentsremediations", "FenceAgentsRemediation", namespaced=True
)
MACHINE = _kind("cluster.x-k8s.io", "machines", "Machine", version="v1beta2", namespaced=True)
_REBOOT_SPEC: Obj = {
    "type": "object",
    "properties": {"force": {"type": "boolean", "default": False}, "nodeName": {"type": "string"}},
    "required": ["force", "nodeName"],
}
_UUIDS: Obj = {"type": "array", "items": {"type": "string"}}
_SELECTOR: Obj = {"type": "object", "properties": {"uuids": _UUIDS, "pciBusIDs": _UUIDS}}
_RESET_SPEC: Obj = {
    "type": "object",
    "properties": {"nodeName": {"type": "string", "minLength": 1}, "selector": _SELECTOR},
    "required": ["nodeName"],
}


def janitor_definitions() -> list[Obj]:
    return [_definition(REBOOT_NODE, _REBOOT_SPEC), _definition(GPU_RESET, _RESET_SPEC)]


def lifecycle_definitions() -> list[Obj]:
    return [_definition(MAINTENANCE_REQUEST, ANYTHING)]


def metal3_definitions() -> list[Obj]:
    return [_definition(BARE_METAL_HOST, ANYTHING)]


def remediation_definitions() -> list[Obj]:
    kinds = (NODE_HEALTH_CHECK, SELF_NODE_REMEDIATION, FENCE_AGENTS_REMEDIATION, MACHINE)
    return [_definition(kind, ANYTHING) for kind in kinds]


def _definition(kind: Kind, spec: Obj) -> Obj:
    names = {"kind": kind.name, "listKind": f"{kind.name}List", "plural": kind.plural, "singular": kind.singular}
    schema = {"type": "object", "properties": {"spec": spec, "status": ANYTHING}}
    version = {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": kind.resource},
        "spec": {
            "group": kind.group,
            "names": names,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "versions": [version | {"subresources": {"status": {}}}],
        },
    }
