"""The services of a cluster: whose last Ready replica is on which node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from fleet.models import DisruptionBudget, Pod, Workload
from fleet.models.pod import PodQuerySet
from kube.selectors import Selector, readable
from rollouts.domains import Allowance, Domain, DomainKind

REPLICAS = ("ReplicaSet", "ReplicationController", "StatefulSet")  # owners whose pods stand for each other
OWNER = ("owner_kind", "namespace", "owner_name")
Owner = tuple[str, str, str]


@dataclass
class _Service:
    namespace: str
    owners: set[Owner] = field(default_factory=set)  # what controls its pods
    pods: int = 0
    ready: int = 0  # pods of it that are Ready on a node that is not out
    hosts: set[str] = field(default_factory=set)  # those nodes

    @property
    def is_all_on_one(self) -> bool:
        """Waiting spreads it no further: none of its pods is elsewhere, or on its way."""
        return len(self.hosts) == 1 and self.ready == self.pods


def services_of(
    cluster_id: int, out: Collection[str], asked: Collection[str]
) -> dict[Domain, tuple[Allowance, set[str]]]:
    """Each service of several replicas: on how many of the nodes where it is Ready it may lose them. Four queries.

    Two kinds bind nobody, for else their node could never be changed: one that has a single pod, and one that has all
    its pods on one of the nodes that were asked for and a PodDisruptionBudget by which they are evicted one after
    another.
    """
    found = {name: one for name, one in _read(cluster_id, out).items() if one.pods > 1 and one.hosts & set(asked)}
    together = {name: one for name, one in found.items() if one.is_all_on_one}
    kept = _kept_by_budget(cluster_id, together) if together else set()
    return {
        Domain(DomainKind.SERVICE, name): (
            Allowance(name, len(one.hosts) - 1, is_last_replica=True, pods=one.pods if name in together else 0),
            one.hosts,
        )
        for name, one in found.items()
        if name not in kept
    }


def _read(cluster_id: int, out: Collection[str]) -> dict[str, _Service]:
    deployments = _deployments(cluster_id)
    services: dict[str, _Service] = {}
    rows = _replicas(cluster_id).values_list(*OWNER, "node_name", "is_ready")
    for kind, namespace, owner, node_name, is_ready in rows:
        name = deployments.get((kind, namespace, owner), f"{kind} {namespace}/{owner}")
        if not name:
            continue
        service = services.setdefault(name, _Service(namespace))
        service.owners.add((kind, namespace, owner))
        service.pods += 1
        if is_ready and node_name and node_name not in out:
            service.ready += 1
            service.hosts.add(node_name)
    return services


def _kept_by_budget(cluster_id: int, services: Mapping[str, _Service]) -> set[str]:
    """Names of those of whose pods a budget lets fewer go than there are."""
    spaces = {one.namespace for one in services.values()}
    budgets: dict[str, list[tuple[Selector, int]]] = defaultdict(list)
    for row in DisruptionBudget.objects.filter(cluster=cluster_id, namespace__in=spaces):
        if selector := readable(row.selector):
            budgets[row.namespace].append((selector, row.expected_pods - row.desired_healthy))
    labels = _labels(cluster_id, {owner for one in services.values() for owner in one.owners})
    return {
        name
        for name, one in services.items()
        if any(
            most_gone < one.pods and all(selector.matches(each) for owner in one.owners for each in labels[owner])
            for selector, most_gone in budgets[one.namespace]
        )
    }


def _labels(cluster_id: int, owners: Collection[Owner]) -> dict[Owner, list[dict[str, str]]]:
    """Those of each pod of these."""
    pods = _replicas(cluster_id).filter(
        namespace__in={namespace for _, namespace, _ in owners}, owner_name__in={name for *_, name in owners}
    )
    found: dict[Owner, list[dict[str, str]]] = defaultdict(list)
    for kind, namespace, owner, labels in pods.values_list(*OWNER, "labels"):
        found[kind, namespace, owner].append(labels)
    return found


def _replicas(cluster_id: int) -> PodQuerySet:
    return Pod.objects.filter(cluster=cluster_id, owner_kind__in=REPLICAS, deleted_at=None).tenants().not_done()


def _deployments(cluster_id: int) -> dict[Owner, str]:
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
