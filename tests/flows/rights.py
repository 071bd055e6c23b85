"""The rights in deploy/rbac, and those that a promotion used."""

from pathlib import Path

import yaml

from tests.flows.asked import Asked
from tests.flows.cluster import Cluster
from tests.flows.plans import Plan
from tests.flows.recorded import QUARTERDECK

MANIFESTS = Path(__file__).parents[2] / "deploy" / "rbac"
VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
POD_PROXY = "/proxy/"
BY_POLICY = ("patch", "nvidia.com", "clusterpolicies")  # test_promote_by_policy uses it
BY_PULLS = {(verb, "batch", "jobs") for verb in ("create", "delete")}  # test_promote_image_pull uses them
BY_LEAVING = ("delete", "coordination.k8s.io", "leases")  # test_takeover uses it
BY_DRAINS = ("create", "", "pods/eviction")  # tests/operations uses it
# tests/maintenance/actors uses them.
BY_REPAIRS = {
    ("patch", "metal3.io", "baremetalhosts"),
    *(
        (verb, "janitor.dgxc.nvidia.com", kind)
        for verb in ("create", "delete")
        for kind in ("rebootnodes", "gpuresets")
    ),
    *((verb, "nvsentinel.dgxc.nvidia.com", "maintenancerequests") for verb in ("create", "delete")),
}
BY_OTHERS = {*BY_PULLS, *BY_REPAIRS, BY_LEAVING, BY_DRAINS}
Right = tuple[str, str, str]  # verb, API group, resource


def is_authorized_by_roles(cluster: Cluster) -> bool:
    """Returns False for an API server that lets everybody do everything: no manifest can be too narrow there."""
    return not cluster.may(QUARTERDECK, "delete", "nodes")


def refused_requests(plan: Plan) -> list[Asked]:
    """Returns what the API server refused in the course of a plan, for want of a right."""
    refused = [asked for asked in plan.requests() if asked.code == 403 and asked.is_forwarded]
    return [asked for asked in refused if not asks_a_pod(asked)]


def used_rights(plan: Plan) -> set[Right]:
    """Returns the rights to write that a promotion used. Other flows of the stack may have used others before."""
    return {right_of(asked) for asked in plan.proxy.requests() if asked.is_write and asked.is_forwarded} - BY_OTHERS


def rights_of_promotion() -> set[Right]:
    """Returns the rights to write of the manifest that a promotion of an NVIDIADriver needs."""
    return writes_in("quarterdeck.yaml") - {BY_POLICY} - BY_OTHERS


def asks_a_pod(asked: Asked) -> bool:
    """What comes through a pod's proxy may be what refuses on the way; test_observe_allocations asks there."""
    return POD_PROXY in asked.path


def right_of(asked: Asked) -> Right:
    parts = asked.path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1], parts[3:])
    resource = rest[2] if rest[0] == "namespaces" else rest[0]
    return VERBS[asked.method], group, resource


def writes_in(manifest: str) -> set[Right]:
    documents = yaml.safe_load_all((MANIFESTS / manifest).read_text())
    rules = [rule for document in documents for rule in document.get("rules", [])]
    return {
        (verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        if verb not in {"get", "list", "watch"}
    }
