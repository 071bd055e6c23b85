"""The services of a cluster, and the nodes with their last Ready replica."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from fleet.models import DisruptionBudget, Pod, Workload
from fleet.models.pod import PodQuerySet
from gpu.evictions import REPLICAS
from kube.selectors import Selector, readable
from operations.failure_domains import Allowance, Domain, DomainKind
from wording.lists import names
from wording.numbers import count, either

OWNER = ("owner_kind", "namespace", "owner_name")
ControllerKey = tuple[str, str, str]  # as OWNER
LEAVE = "remove one of the budgets, spread the pods, or exclude the node"


@dataclass
class _Service:
    namespace: str
    desired: int | None  # replicas; None: unknown
    owners: set[ControllerKey] = field(default_factory=set)  # controllers of its pods
    pods: int = 0
    without_node: int = 0
    ready: int = 0  # pods of it that are Ready on a node that is not out
    hosts: set[str] = field(default_factory=set)  # nodes with its pods
    not_ready_on: set[str] = field(default_factory=set)  # other nodes that are not out, where it has a pod

    @property
    def is_of_several(self) -> bool:
        """Returns whether the service has several replicas, by its spec; a rolling update has more pods for a while."""
        return (self.pods if self.desired is None else self.desired) > 1

    @property
    def is_all_on_one(self) -> bool:
        """Returns whether all its pods are on one node, with none elsewhere or to be created."""
        return len(self.hosts) == 1 and self.ready == self.pods >= (self.desired or 0)


def services_of(
    cluster_id: int, out: Collection[str], asked: Collection[str]
) -> dict[Domain, tuple[Allowance, set[str]]]:
    """Returns per service how many of its Ready nodes may be unavailable. Four queries.

    Two kinds have no limit, since their node could never change: a single replica, and a service whose pods are all on
    one requested node under a PodDisruptionBudget that evicts them one by one.
    """
    found = {name: one for name, one in _read(cluster_id, out).items() if one.is_of_several and one.hosts & set(asked)}
    together = {name: one for name, one in found.items() if one.is_all_on_one}
    budgets = _budgets_of(cluster_id, together) if together else {}
    return {
        Domain(DomainKind.SERVICE, name): (
            Allowance(name, len(one.hosts) - 1, is_last_replica=True, way_out=_way_out(one, budgets.get(name, {}))),
            one.hosts,
        )
        for name, one in found.items()
        if not _is_kept(one, budgets.get(name, {}))
    }


def ready_only_on(cluster_id: int, out: Collection[str], node_name: str) -> list[str]:
    """Returns the services that are Ready on this node alone, those of one replica among them. Two queries."""
    return sorted(name for name, one in _read(cluster_id, out).items() if one.hosts == {node_name})


def _is_kept(one: _Service, budgets: Mapping[str, int]) -> bool:
    """Returns whether a pod stays Ready during the evictions. Pods with several budgets are not evicted (Z30)."""
    return len(budgets) == 1 and all(0 < most < one.pods for most in budgets.values())


def _way_out(one: _Service, budgets: Mapping[str, int]) -> str:
    if one.is_all_on_one:
        there = f"All its {one.pods} pods are on this node, and"
        if len(budgets) > 1:
            named = names(sorted(budgets))
            return (
                f"{there} several PodDisruptionBudgets cover them ({named}), so the API server evicts no pod: {LEAVE}."
            )
        if barring := sorted(name for name, most in budgets.items() if most <= 0):
            lets = "let the budget allow an eviction, spread the pods, or exclude the node"
            return f"{there} PodDisruptionBudget {barring[0]} allows no eviction: {lets}."
        keeps = "no PodDisruptionBudget keeps a pod Ready during the evictions"
        return f"{there} {keeps}: add such a budget, spread the pods, or exclude the node."
    if one.without_node:
        have = either(one.without_node, "Another of its pods has", f"{one.without_node} others of its pods have")
        return f"{have} no node: free GPUs for {either(one.without_node, 'it', 'one')}, or exclude the node."
    if one.not_ready_on:
        there = names(sorted(one.not_ready_on))
        return f"Another of its pods on {there} is not Ready, so the node waits. Repair the pod, or exclude the node."
    if one.desired is not None and one.pods < one.desired:
        return (
            f"It has {one.pods} of its {count(one.desired, 'pod')}, so the node waits. Wait for the other "
            "pods, or exclude the node."
        )
    return ""


def _read(cluster_id: int, out: Collection[str]) -> dict[str, _Service]:
    controllers, desired = _workloads(cluster_id)
    services: dict[str, _Service] = {}
    rows = _replicas(cluster_id).values_list(*OWNER, "node_name", "is_ready")
    for kind, namespace, owner, node_name, is_ready in rows:
        name = controllers.get((kind, namespace, owner), f"{kind} {namespace}/{owner}")
        if not name:
            continue
        service = services.setdefault(name, _Service(namespace, desired.get(name)))
        service.owners.add((kind, namespace, owner))
        service.pods += 1
        service.without_node += not node_name
        if not node_name or node_name in out:
            continue
        if is_ready:
            service.ready += 1
            service.hosts.add(node_name)
        else:
            service.not_ready_on.add(node_name)
    return services


def _budgets_of(cluster_id: int, services: Mapping[str, _Service]) -> dict[str, dict[str, int]]:
    """Returns the PodDisruptionBudgets of each service, and how many pods each allows to be away; 0 or less is none."""
    spaces = {one.namespace for one in services.values()}
    counted = DisruptionBudget.objects.filter(cluster=cluster_id, namespace__in=spaces, expected_pods__gt=0)
    budgets: dict[str, list[tuple[DisruptionBudget, Selector]]] = defaultdict(list)
    for row in counted:
        if selector := readable(row.selector):
            budgets[row.namespace].append((row, selector))
    labels = _labels(cluster_id, {owner for one in services.values() for owner in one.owners})
    return {
        name: {
            f"{row.namespace}/{row.name}": row.expected_pods - row.desired_healthy
            for row, selector in budgets[one.namespace]
            if all(selector.matches(each) for owner in one.owners for each in labels[owner])
        }
        for name, one in services.items()
    }


def _labels(cluster_id: int, owners: Collection[ControllerKey]) -> dict[ControllerKey, list[dict[str, str]]]:
    pods = _replicas(cluster_id).filter(
        namespace__in={namespace for _, namespace, _ in owners}, owner_name__in={name for *_, name in owners}
    )
    found: dict[ControllerKey, list[dict[str, str]]] = defaultdict(list)
    for kind, namespace, owner, labels in pods.values_list(*OWNER, "labels"):
        found[kind, namespace, owner].append(labels)
    return found


def _replicas(cluster_id: int) -> PodQuerySet:
    return (
        Pod.objects.filter(cluster=cluster_id, owner_kind__in=REPLICAS, deleted_at=None).tenants().not_done().order_by()
    )


def _workloads(cluster_id: int) -> tuple[dict[ControllerKey, str], dict[str, int | None]]:
    """Returns the workload of each controller, and the wanted replicas by workload.

    An empty owner is part of a gang: LeaderWorkerSet workers are StatefulSets owned by their leader pod and end
    together.
    """
    rows = Workload.objects.filter(cluster=cluster_id, kind__in=(*REPLICAS, "Deployment")).order_by()
    controllers: dict[ControllerKey, str] = {}
    desired: dict[str, int | None] = {}
    for kind, namespace, name, owner_kind, owner_name, wanted in rows.values_list(
        "kind", "namespace", "name", "owner_kind", "owner_name", "desired"
    ):
        desired[f"{kind} {namespace}/{name}"] = wanted
        if owner_kind:
            controllers[kind, namespace, name] = "" if owner_kind == "Pod" else f"{owner_kind} {namespace}/{owner_name}"
    return controllers, desired
