"""The disruption ledger: unavailable nodes of a cluster, who made them so, and the free places of failure domains.

All plans of a cluster take places in the transaction of their intent, one after another; so does anything else that
makes nodes unavailable, under a name.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any, NamedTuple

from django.db.models import Q

from fleet.models import Cluster, Node, Pool
from gpu.upgrade_controller import UPGRADE_DONE, UPGRADE_REQUIRED
from operations.failure_domains import Allowance, Budgets, Domain, DomainKind
from operations.ledger.services import ready_only_on, services_of
from operations.lifecycle import NodeProgress
from operations.models import Disruption, DomainBudget, OperationNode, Quarantine

FEW = 500  # names that a query names; of more, every GPU node of the cluster is read
IDLE = ("", UPGRADE_REQUIRED, UPGRADE_DONE)  # in any other state the operator is at work on a node, or has failed


class _Node(NamedTuple):
    """The columns of a node that the ledger reads; model rows of thousands of nodes would be slow."""

    name: str
    uid: str
    zone: str
    nvlink_domain: str
    is_ready: bool | None
    is_unschedulable: bool
    upgrade_state: str
    labels: Mapping[str, Any] = MappingProxyType({})  # read where racks have a budget


COLUMNS = tuple(name for name in _Node._fields if name != "labels")


class NoPlace(Exception):
    """A failure domain has no free place, or somebody else has made the node unavailable."""


def record_disruptions(
    cluster_id: int,
    taking: Mapping[str, str],
    *,
    by: str,
    is_rollback: bool = False,
    binds_rollbacks: bool = False,
    is_budgeted: bool = True,
    was_in_service: bool = True,
    now: datetime,
) -> None:
    """Records that these nodes (uid → name) are unavailable from now on.

    Call it inside the transaction of the intent, as its last lock: the lock on the cluster makes takers wait for each
    other. `by` is the mark of the owner. Rollbacks wait only for entries that bind them. Without
    budgets (`is_budgeted`) only the owner of a node is checked: a broken node is unavailable anyway. A node that was
    never in service takes no place of a budget.

    :raises NoPlace: with a sentence about the full domain or the node
    """
    Cluster.objects.select_for_update(no_key=True).get(pk=cluster_id)
    reading = _Reading(cluster_id, list(taking.values()), is_rollback=is_rollback)
    there = {one.node_uid: one for one in reading.disruptions}
    taken = [uid for uid in taking if uid in there]
    if reason := _not_free([there[uid] for uid in taken], by, is_rollback=is_rollback):
        raise NoPlace(reason)
    if is_budgeted and (reason := reading.budgets().why_not(list(taking.values()))):
        raise NoPlace(reason)
    if is_budgeted and was_in_service:  # somebody drains a new node: it counts from now on
        count_in_service(taken)
    Disruption.objects.bulk_create(
        Disruption(
            cluster_id=cluster_id, node_uid=uid, node_name=name, taken_at=now, taken_by=by,
            binds_rollbacks=binds_rollbacks, was_in_service=was_in_service,
            domains=[[domain.kind.value, domain.key] for domain in reading.kept_of(name)],
        )
        for uid, name in taking.items()
        if uid not in there
    )  # fmt: skip


def count_in_service(node_uids: Sequence[str]) -> None:
    """Makes nodes that count as new take a place of their budgets: pods may have started there. One query."""
    Disruption.objects.in_force().filter(node_uid__in=node_uids, was_in_service=False).update(was_in_service=True)


def _not_free(there: Sequence[Disruption], by: str, *, is_rollback: bool) -> str:
    """Returns why the node is not free."""
    others = (one for one in there if one.taken_by != by and (one.binds_rollbacks or not is_rollback))
    return next((one.not_free for one in others), "")


def read_budgets(cluster_id: int, asked: Sequence[str], *, is_rollback: bool) -> Budgets:
    """Returns the budgets that bind these nodes now. At most nine queries.

    `is_rollback` limits a rollback by entries that bind rollbacks: broken nodes and failed services do not block it.
    """
    return _Reading(cluster_id, asked, is_rollback=is_rollback).budgets()


def services_only_on(cluster_id: int, node_name: str) -> list[str]:
    """Returns the services whose last Ready node this is, those of one replica among them. At most eight queries."""
    return _Reading(cluster_id, [node_name], is_rollback=False).services_only_on(node_name)


class _Reading:
    def __init__(self, cluster_id: int, asked: Sequence[str], *, is_rollback: bool) -> None:
        self.cluster_id, self.asked, self.is_rollback = cluster_id, asked, is_rollback
        self.limits = {DomainKind(row.kind): row for row in DomainBudget.objects.filter(cluster=cluster_id).order_by()}
        pools = Pool.objects.filter(cluster=cluster_id).select_related("cluster").order_by()
        self.pools = {str(pool.pk): pool for pool in pools}
        self.disruptions = list(Disruption.objects.in_force().filter(cluster=cluster_id).order_by("pk"))
        self.nodes = self._nodes()
        self.in_pools = self._in_pools()

    def budgets(self) -> Budgets:
        out = self._out()
        of = {domain: self._budget(domain, inside) for domain, inside in self._by_domain(out).items()}
        domains = {name: self.domains_of(name) for name in self.asked}
        for domain in {domain for those in domains.values() for domain in those} - set(of):
            of[domain] = self._budget(domain, {})
        if not self.is_rollback:
            for domain, (budget, hosts) in services_of(self.cluster_id, self._emptied(), self.asked).items():
                for name in hosts & set(self.asked):
                    domains[name] = (*domains[name], domain)
                    of[domain] = budget
        return Budgets(of, domains)

    def domains_of(self, name: str) -> tuple[Domain, ...]:
        return tuple(domain for domain in self.kept_of(name) if self._has_budget(domain))

    def kept_of(self, name: str) -> tuple[Domain, ...]:
        """Returns all domains of the node, with or without a budget."""
        node = self.nodes.get(name)
        if node is None:
            return ()
        found = {DomainKind.ZONE: node.zone, DomainKind.RACK: self._rack(node), DomainKind.NVLINK: node.nvlink_domain}
        pools = tuple(Domain(DomainKind.POOL, key) for key in sorted(self.in_pools.get(name, ())))
        return (*pools, *(Domain(kind, value) for kind, value in found.items() if value))

    def _rack(self, node: _Node) -> str:
        limit = self.limits.get(DomainKind.RACK)
        return str(node.labels.get(limit.label, "")) if limit else ""

    def _has_budget(self, domain: Domain) -> bool:
        return domain.key in self.pools if domain.kind is DomainKind.POOL else domain.kind in self.limits

    def _budget(self, domain: Domain, out: Mapping[str, str]) -> Allowance:
        if domain.kind is DomainKind.POOL:
            pool = self.pools[domain.key]
            return Allowance(f"pool {pool.cluster.name}/{pool.name}", pool.max_unavailable, out)
        words = "NVLink domain" if domain.kind is DomainKind.NVLINK else domain.kind.value
        return Allowance(f"{words} {domain.key}", self.limits[domain.kind].max_unavailable, out)

    def services_only_on(self, name: str) -> list[str]:
        return ready_only_on(self.cluster_id, self._emptied() - {name}, name)

    def _out(self) -> dict[str, str]:
        if self.is_rollback:
            return {one.node_name: one.words for one in self.disruptions if one.binds_rollbacks}
        found = {one.node_name: one.words for one in self.disruptions if one.was_in_service}
        new = {one.node_uid for one in self.disruptions if not one.was_in_service}
        others = {name: node for name, node in self.nodes.items() if node.uid not in new}
        return {name: f"{name} ({why})" for name, node in others.items() if (why := _why_out(node))} | found

    def _emptied(self) -> set[str]:
        """Returns the unavailable nodes without pods, now or soon. A cordoned node still serves."""
        broken = (node for node in self.nodes.values() if node.is_ready is not True or node.upgrade_state not in IDLE)
        return {node.name for node in broken} | {one.node_name for one in self.disruptions}

    def _by_domain(self, out: Mapping[str, str]) -> dict[Domain, dict[str, str]]:
        """Returns the unavailable nodes by domain with a budget. A taken node stays in its domains of that time.

        Labels added since count as well.
        """
        taken_from = {
            one.node_name: [Domain(DomainKind(kind), key) for kind, key in one.domains] for one in self.disruptions
        }
        found: dict[Domain, dict[str, str]] = defaultdict(dict)
        for name, words in out.items():
            kinds = {domain.kind for domain in taken_from.get(name, ()) if domain.kind is not DomainKind.POOL}
            new = (one for one in self.kept_of(name) if one.kind not in kinds)
            for domain in {*taken_from.get(name, ()), *new}:
                if self._has_budget(domain):
                    found[domain][name] = words
        return found

    def _nodes(self) -> dict[str, _Node]:
        columns = (*COLUMNS, "labels") if DomainKind.RACK in self.limits else COLUMNS
        nodes = Node.objects.filter(cluster=self.cluster_id, is_gpu_node=True).order_by()
        if len(self.asked) <= FEW:
            names = {*self.asked, *(one.node_name for one in self.disruptions)}
            broken = Q(is_unschedulable=True) | Q(is_ready=False) | Q(is_ready=None) | ~Q(upgrade_state__in=IDLE)
            nodes = nodes.filter(Q(name__in=names) | broken)
        return {name: _Node(name, *seen) for name, *seen in nodes.values_list(*columns)}

    def _in_pools(self) -> dict[str, set[str]]:
        if not self.pools:
            return {}
        members = Pool.nodes.through.objects.filter(node__cluster=self.cluster_id)
        if len(self.nodes) <= FEW:
            members = members.filter(node__name__in=list(self.nodes))
        found: dict[str, set[str]] = defaultdict(set)
        for name, pool in members.values_list("node__name", "pool_id"):
            found[name].add(str(pool))
        return found


def _why_out(node: _Node) -> str:
    if node.is_ready is not True:
        return "not Ready"
    if node.is_unschedulable:
        return "cordoned"
    return "" if node.upgrade_state in IDLE else node.upgrade_state


def nodes_in_change(cluster_id: int) -> set[str]:
    """Returns the names of nodes that a plan or an operation changes now. A quarantine alone changes nothing."""
    quarantined = Quarantine.objects.in_force().filter(cluster=cluster_id)
    taken = Disruption.objects.in_force().filter(cluster=cluster_id)
    running = OperationNode.objects.filter(operation__cluster=cluster_id, state=NodeProgress.RUNNING)
    changed = set(taken.exclude(node_uid__in=quarantined.values("node_uid")).values_list("node_name", flat=True))
    return changed | set(running.values_list("node_name", flat=True))
