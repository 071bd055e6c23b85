"""Queries about driver objects and their nodes, for engine, commands and pages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, QuerySet

from fleet.models import Bookmark, DriverObject, Node, Observer, Operand, OperandRevision, Pod
from fleet.segments.label_conditions import labelled
from gpu.operands import DRIVER
from gpu.resources.terms import layout_in_words
from kube.resources import DAEMON_SETS, DRIVER_OBJECTS, NODES, PODS
from kube.selectors import exactly
from operations.tenants.disruption_cost import UNHARMED, Harm
from rollouts.components.driver import NO_AUTO_UPGRADE, SANDBOXED
from rollouts.components.throttle import ControllerOff
from rollouts.models import Rollout
from rollouts.models.plan import MARK
from rollouts.node_order.node_selection import FACTORS, Candidate
from wording.instants import moment

TOLD_BY_A_DATE_S = 2.0  # the Date of an answer has no parts of a second, and the answer took a while
# kinds that a plan depends on, in addition to its object
JUDGED_KINDS = tuple(kind.name for kind in (NODES, PODS, DAEMON_SETS))


def nodes_of(driver_object: DriverObject | Rollout) -> QuerySet[Node]:
    """Returns every node that has or should have a driver pod of the object. One query now, one when read."""
    cluster_id, uid = driver_object.cluster_id, object_uid(driver_object)
    operand = DRIVER if isinstance(driver_object, DriverObject) else driver_object.its_component.operand
    daemonsets = list(_daemonsets(cluster_id, uid, operand))
    with_pod = Pod.objects.filter(cluster=cluster_id, owner_uid__in=[d.uid for d in daemonsets]).values("node_name")
    wanted = Q(name__in=with_pod)
    for daemonset in daemonsets:
        if daemonset.node_selector:
            wanted |= labelled(exactly(daemonset.node_selector))
    return Node.objects.filter(wanted, cluster=cluster_id, is_gpu_node=True)


def changeable() -> Q:
    """Returns the condition of driver objects that a plan can change: they name a version for some node."""
    runs_drivers = Q(kind="ClusterPolicy", uses_driver_crd=False, is_driver_off=False)
    return Q(kind="NVIDIADriver") | (runs_drivers & ~Q(state="ignored"))


def object_uid(driver_object: DriverObject | Rollout) -> str:
    return driver_object.uid if isinstance(driver_object, DriverObject) else driver_object.object_uid


def is_held_by_others(node: Node) -> bool:
    """Returns whether the node has a hold that is not of our plans and that we must not remove."""
    return node.is_held and not node.held_by.startswith(MARK)


def candidate(node: Node, harm: Harm = UNHARMED) -> Candidate:
    """Returns the node as a candidate. Its pools are prefetched."""
    pools = " and ".join(sorted(pool.name for pool in node.pools.all()))
    found = {"gpu_layout": layout_in_words(node.layout, node.capacity), "pool": pools}
    facts = {factor: found[factor] if factor in found else str(getattr(node, factor)) for factor in FACTORS}
    is_fit = node.is_ready is True and not node.is_unschedulable
    return Candidate(node.uid, node.name, facts, is_fit=is_fit, harm=harm)


def driver_daemonsets(plan: Rollout) -> list[Operand]:
    return list(_daemonsets(plan.cluster_id, plan.object_uid, plan.its_component.operand))


def _daemonsets(cluster_id: int, owner_uid: str, operand: str) -> QuerySet[Operand]:
    """Returns the DaemonSets of one operand; a ClusterPolicy owns those of all operands."""
    return daemonsets_of(cluster_id, operand).filter(owner_uid=owner_uid)


def daemonsets_of(cluster_id: int, operand: str) -> QuerySet[Operand]:
    return Operand.objects.filter(cluster=cluster_id, operand=operand).order_by("name")


def newest_hashes(cluster_id: int, daemonset_uids: Iterable[str]) -> dict[str, str]:
    """Returns the hash of each DaemonSet's newest template by UID, from rows."""
    rows = OperandRevision.objects.filter(cluster=cluster_id, owner_uid__in=list(daemonset_uids)).order_by("revision")
    return {row.owner_uid: row.revision_hash for row in rows}


def cluster_policy(cluster_id: int) -> DriverObject | None:
    """Returns the ClusterPolicy in force; the operator ignores others (`status.state: ignored`)."""
    policies = DriverObject.objects.filter(cluster=cluster_id, kind="ClusterPolicy").exclude(state="ignored")
    return policies.order_by("pk").first()


def upgrade_policy(driver_object: DriverObject) -> dict:
    """Returns the throttle in force: the object's own from operator 26.7 on, before that the ClusterPolicy's."""
    if driver_object.upgrade_policy:
        return driver_object.upgrade_policy
    policy = cluster_policy(driver_object.cluster_id)
    return policy.upgrade_policy if policy else {}


def controller_off(driver_object: DriverObject) -> ControllerOff | None:
    """Returns what switches the upgrade controller off; None if it is on. At most two queries."""
    policy = cluster_policy(driver_object.cluster_id)
    if policy and policy.sandbox_workloads:
        return SANDBOXED
    return None if upgrade_policy(driver_object).get("autoUpgrade") is True else NO_AUTO_UPGRADE


def required_kinds(plan: Rollout) -> tuple[str, ...]:
    """Returns the kinds whose rows matter. NVIDIADrivers may be absent where the ClusterPolicy sets the version."""
    return (*JUDGED_KINDS, DRIVER_OBJECTS[plan.object_kind].name)


@dataclass(frozen=True)
class RowAge:
    stale_reason: str  # why they may not be acted on; blank: they may
    oldest: datetime


def row_age(plan: Rollout, *, now: datetime) -> RowAge:
    """Returns the age of the rows. One query."""
    found = Bookmark.objects.filter(cluster=plan.cluster_id, kind__in=required_kinds(plan)).order_by()
    marks = {mark.kind: mark for mark in found}
    oldest = min((mark.last_seen_at for mark in marks.values() if mark.last_seen_at is not None), default=now)
    return RowAge(_stale_reason(plan, marks, now=now), oldest)


def _stale_reason(plan: Rollout, marks: Mapping[str, Bookmark], *, now: datetime) -> str:
    cluster = plan.cluster
    for kind in required_kinds(plan):
        mark = marks.get(kind)
        if mark is None or mark.last_seen_at is None:
            return f"{kind.partition('.')[0]} of {cluster.name} were not read yet."
        if not mark.is_fresh(now=now):
            since = moment(mark.last_seen_at, now=now)
            return f"{cluster.name} was last observed at {since} ({kind.partition('.')[0]})."
    return ""


def clock_ahead(cluster_id: int) -> timedelta:
    """Returns how far the cluster's clock is ahead of ours; zero if unknown or too small to measure."""
    skew_s = next(
        iter(Observer.objects.filter(cluster=cluster_id).order_by().values_list("clock_skew_s", flat=True)), 0
    )
    return timedelta(seconds=skew_s) if skew_s and abs(skew_s) > TOLD_BY_A_DATE_S else timedelta(0)
