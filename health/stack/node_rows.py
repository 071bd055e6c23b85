"""The rows from which the stacks of nodes are told."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from django.db.models import Q

from fleet.models import Bookmark, ClusterEvent, DriverObject, Node, Operand, OperandRevision, Pod, ResourceSlice
from health.models import CrashLog, Finding
from health.stack.driver_versions import DriverVersions, driver_versions
from health.stack.missed_work import MISSED
from health.stack.node_operands import OperandOnNode, operands_on
from health.stack.rows import StackRows
from kube.resources import DAEMON_SETS, PODS, RESOURCE_SLICES

RECENT = timedelta(minutes=15)  # a DaemonSet that may not make a pod tries again every 15 minutes at the latest
ENOUGH = 200  # events and unscheduled pods that are read for a node


@dataclass(frozen=True)
class NodeStack:
    operands: Sequence[OperandOnNode]
    driver: DriverVersions
    runtime_classes: frozenset[str] = frozenset()  # of the stack's pods that run on the node


def read_stack(node: Node, *, now: datetime) -> NodeStack:
    """Eight queries, and one where logs are stored."""
    return read_stacks([node], now=now)[node.pk]


def read_stacks(nodes: Sequence[Node], *, now: datetime) -> Mapping[int, NodeStack]:
    """Returns the stacks of nodes of one cluster, by key. Eight queries, and one where logs are stored."""
    cluster_id = nodes[0].cluster_id
    listed = Bookmark.objects.filter(cluster=cluster_id, listed_at__isnull=False)
    seen = set(listed.values_list("kind", flat=True))
    daemon_sets = list(Operand.objects.filter(cluster=cluster_id))
    names = [node.name for node in nodes]
    pods = list(_pods(cluster_id, names))
    uids = [each.uid for each in daemon_sets]
    slices = list(ResourceSlice.objects.filter(cluster=cluster_id, node_name__in=names))
    logs = list(CrashLog.objects.filter(cluster=cluster_id, pod_uid__in=[pod.uid for pod in pods]))
    of_all = StackRows(
        operands=daemon_sets,
        revisions=list(OperandRevision.objects.filter(cluster=cluster_id, owner_uid__in=uids)),
        driver_objects=list(DriverObject.objects.filter(cluster=cluster_id)),
        pods=pods,
        now=now,
        events=list(_events(cluster_id, [*uids, *(pod.uid for pod in pods)], len(nodes), now=now)),
        sees_pods=PODS.name in seen,
        sees_daemon_sets=DAEMON_SETS.name in seen,
        sees_slices=RESOURCE_SLICES.name in seen,
        crash_logs=logs,
    )
    missed = _missed(nodes) if logs else {}
    return {node.pk: _stack(node, replace(of_all, missed=missed.get(node.pk, ())), slices) for node in nodes}


def _missed(nodes: Sequence[Node]) -> Mapping[int, Collection[str]]:
    """Returns by node the operands whose work is missing by an open finding. One query."""
    missed: dict[int, set[str]] = {}
    found = Finding.objects.open().filter(node__in=nodes, rule__in=MISSED)
    for node, rule in found.order_by().values_list("node_id", "rule"):
        if node is not None:
            missed.setdefault(node, set()).update(MISSED[rule])
    return missed


def _stack(node: Node, of_all: StackRows, slices: Sequence[ResourceSlice]) -> NodeStack:
    here = [pod for pod in of_all.pods if pod.node_name in (node.name, "")]
    rows = replace(of_all, pods=here, slices=[each for each in slices if each.node_name == node.name])
    operands = operands_on(node, rows)
    running = (pod for pod in here if pod.node_name and pod.phase == "Running")
    runtime_classes = frozenset(pod.runtime_class for pod in running if pod.runtime_class)
    return NodeStack(operands, driver_versions(node, operands, rows.slices), runtime_classes)


def _pods(cluster_id: int, names: Sequence[str]):
    concerned = Q(node_name__in=names) | Q(node_name="")
    found = Pod.objects.filter(concerned, cluster=cluster_id).exclude(operand="")
    return found.order_by("-node_name", "pk")[: ENOUGH * len(names)]


def _events(cluster_id: int, uids: Sequence[str], nodes: int, *, now: datetime):
    recent = Q(last_at__gte=now - RECENT) | Q(last_at=None, changed_at__gte=now - RECENT)
    about = ClusterEvent.objects.filter(recent, cluster=cluster_id, about_uid__in=uids, is_warning=True)
    return about.order_by("-last_at", "-pk")[: ENOUGH * nodes]
