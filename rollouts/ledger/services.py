"""The services of a cluster: whose last Ready replica is on which node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from fleet.models import Pod, Workload
from rollouts.domains import Allowance, Domain, DomainKind

REPLICAS = ("ReplicaSet", "ReplicationController", "StatefulSet")  # owners whose pods stand for each other


@dataclass
class _Service:
    pods: int = 0
    hosts: set[str] = field(default_factory=set)  # nodes with a Ready replica that are not out


def services_of(cluster_id: int, out: Collection[str]) -> dict[Domain, tuple[Allowance, set[str]]]:
    """Each service of several replicas: on how many of the nodes where it is Ready it may lose them. Two queries.

    One that has a single pod binds nobody: its node could never be changed.
    """
    deployments = _deployments(cluster_id)
    services: dict[str, _Service] = defaultdict(_Service)
    pods = Pod.objects.filter(cluster=cluster_id, owner_kind__in=REPLICAS, deleted_at=None).tenants().not_done()
    rows = pods.values_list("owner_kind", "namespace", "owner_name", "node_name", "is_ready")
    for kind, namespace, owner, node_name, is_ready in rows:
        name = deployments.get((kind, namespace, owner), f"{kind} {namespace}/{owner}")
        if not name:
            continue
        service = services[name]
        service.pods += 1
        if is_ready and node_name and node_name not in out:
            service.hosts.add(node_name)
    return {
        Domain(DomainKind.SERVICE, name): (Allowance(name, len(one.hosts) - 1, is_last_replica=True), one.hosts)
        for name, one in services.items()
        if one.pods > 1 and one.hosts
    }


def _deployments(cluster_id: int) -> dict[tuple[str, str, str], str]:
    """A ReplicaSet's key → its Deployment. Blank: no service, but part of a gang.

    The workers of a LeaderWorkerSet are StatefulSets, each owned by the Pod that leads them: they fall together.
    """
    owned = Workload.objects.filter(cluster=cluster_id, kind__in=REPLICAS).exclude(owner_kind="")
    rows: Iterable[tuple[str, str, str, str, str]] = owned.values_list(
        "kind", "namespace", "name", "owner_kind", "owner_name"
    )
    return {
        (kind, namespace, name): "" if owner_kind == "Pod" else f"{owner_kind} {namespace}/{owner_name}"
        for kind, namespace, name, owner_kind, owner_name in rows
    }
