"""The work of remediators and machine controllers on nodes, by their own objects (lifecycle R18). Pure.

Sources: medik8s/node-healthcheck-operator, api/v1alpha1/nodehealthcheck_types.go and docs/workflow.md;
medik8s/self-node-remediation and medik8s/fence-agents-remediation, api/v1alpha1; medik8s/common, pkg/annotations;
kubernetes-sigs/cluster-api, api/core/v1beta2/machine_types.go and common_types.go.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field

from gpu.external_owners import ExternalOwner
from gpu.labels import CAPI_REMEDIATE, REMEDIATED_NODE

# The machine controller reports deletions, remediations and updates in place by these; other conditions judge health.
REMEDIATED, UPDATING = "OwnerRemediated", "Updating"
EXTERNALLY_REMEDIATED = "ExternallyRemediated"


@dataclass(frozen=True)
class RemediationObject:
    """An object that a remediator or a machine controller works by."""

    title: str  # kind and name
    name: str
    annotations: Mapping[str, str] = field(default_factory=dict)
    conditions: Mapping[str, str] = field(default_factory=dict)  # status by type
    is_deleted: bool = False  # its deletion has begun
    node: str = ""  # of a Machine; blank: it has none yet
    nodes: Collection[str] = ()  # that a NodeHealthCheck has remediations for


def health_checks(seen: RemediationObject) -> Iterator[tuple[str, ExternalOwner]]:
    """Yields the nodes that a NodeHealthCheck follows until their remediations are gone."""
    yield from ((node, ExternalOwner("Node Health Check", "remediates the node", seen.title)) for node in seen.nodes)


def remediations(name: str, does: str) -> Callable[[RemediationObject], Iterator[tuple[str, ExternalOwner]]]:
    """Returns the reader of a remediator's objects. One is in flight until its condition Processing is False."""

    def read(seen: RemediationObject) -> Iterator[tuple[str, ExternalOwner]]:
        if seen.conditions.get("Processing") != "False":
            yield seen.annotations.get(REMEDIATED_NODE) or seen.name, ExternalOwner(name, does, seen.title)

    return read


def machines(seen: RemediationObject) -> Iterator[tuple[str, ExternalOwner]]:
    if not seen.node:
        return
    if seen.is_deleted:
        does = "deletes the machine of the node"
    elif CAPI_REMEDIATE in seen.annotations or "False" in (
        seen.conditions.get(REMEDIATED), seen.conditions.get(EXTERNALLY_REMEDIATED)
    ):  # fmt: skip
        does = "remediates the machine of the node"
    elif seen.conditions.get(UPDATING) == "True":
        does = "updates the machine of the node"
    else:
        return
    yield seen.node, ExternalOwner("Cluster API", does, seen.title)


@dataclass(frozen=True)
class RemediationKind:
    group: str  # suffix of its API group
    read: Callable[[RemediationObject], Iterator[tuple[str, ExternalOwner]]]


KINDS: Mapping[str, RemediationKind] = {
    "NodeHealthCheck": RemediationKind("remediation.medik8s.io", health_checks),
    "SelfNodeRemediation": RemediationKind(
        "self-node-remediation.medik8s.io", remediations("Self Node Remediation", "reboots the node")
    ),
    "FenceAgentsRemediation": RemediationKind(
        "fence-agents-remediation.medik8s.io", remediations("Fence Agents Remediation", "fences the node")
    ),
    "Machine": RemediationKind("cluster.x-k8s.io", machines),
}
