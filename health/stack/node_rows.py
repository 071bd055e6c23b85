"""The rows that the stack of one node is told from."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from fleet.models import Bookmark, ClusterEvent, DriverObject, Node, Operand, OperandRevision, Pod, ResourceSlice
from health.models import CrashLog
from health.stack.driver_versions import DriverVersions, driver_versions
from health.stack.node_operands import OperandOnNode, operands_on
from health.stack.rows import StackRows
from kube.resources import DAEMON_SETS, PODS, RESOURCE_SLICES

RECENT = timedelta(minutes=15)  # a DaemonSet that may not make a pod tries again every 15 minutes at the latest
ENOUGH = 200  # events and unscheduled pods that one page looks at


@dataclass(frozen=True)
class NodeStack:
    operands: Sequence[OperandOnNode]
    driver: DriverVersions
    runtime_classes: frozenset[str] = frozenset()  # of the stack's pods that run on the node


def read_stack(node: Node, *, now: datetime) -> NodeStack:
    """Eight queries."""
    listed = Bookmark.objects.filter(cluster=node.cluster_id, listed_at__isnull=False)
    seen = set(listed.values_list("kind", flat=True))
    daemon_sets = list(Operand.objects.filter(cluster=node.cluster_id))
    pods = list(_pods(node))
    uids = [each.uid for each in daemon_sets]
    slices = list(ResourceSlice.objects.filter(cluster=node.cluster_id, node_name=node.name))
    rows = StackRows(
        operands=daemon_sets,
        revisions=OperandRevision.objects.filter(cluster=node.cluster_id, owner_uid__in=uids),
        driver_objects=list(DriverObject.objects.filter(cluster=node.cluster_id)),
        pods=pods,
        now=now,
        events=_events(node, [*uids, *(pod.uid for pod in pods)], now=now),
        slices=slices,
        sees_pods=PODS.name in seen,
        sees_daemon_sets=DAEMON_SETS.name in seen,
        sees_slices=RESOURCE_SLICES.name in seen,
        crash_logs=CrashLog.objects.filter(cluster=node.cluster_id, pod_uid__in=[pod.uid for pod in pods]),
    )
    operands = operands_on(node, rows)
    running = (pod for pod in pods if pod.node_name == node.name and pod.phase == "Running")
    runtime_classes = frozenset(pod.runtime_class for pod in running if pod.runtime_class)
    return NodeStack(operands, driver_versions(node, operands, slices), runtime_classes)


def _pods(node: Node):
    mine = Pod.objects.filter(cluster=node.cluster_id).exclude(operand="")
    return mine.filter(Q(node_name=node.name) | Q(node_name="")).order_by("-node_name", "pk")[:ENOUGH]


def _events(node: Node, uids: Sequence[str], *, now: datetime):
    recent = Q(last_at__gte=now - RECENT) | Q(last_at=None, changed_at__gte=now - RECENT)
    about = ClusterEvent.objects.filter(recent, cluster=node.cluster_id, about_uid__in=uids, is_warning=True)
    return about.order_by("-last_at", "-pk")[:ENOUGH]
