"""Pods that do not start or become ready on their node, and pods whose claims no driver serves."""

from collections import defaultdict
from datetime import datetime, timedelta

from django.db.models import Q

from fleet.models import Cluster, Pod
from fleet.pod_reasons import PodReason, reasons_of
from gpu.operands import COMPUTE_DOMAIN
from health.evaluation.pod_causes import causes_of_operands, explained
from health.rules.base import FailingPod
from health.stack.causes import Cause

STARTS_WITHIN = timedelta(minutes=10)
PULLS_WITHIN = timedelta(minutes=30)  # without an Event: a large image may still be on its way
READY_WITHIN = timedelta(hours=1)  # a large model takes half an hour to load
READ_AT_MOST = 200
UNSERVED = ("claim_unpublished", "device_class_missing")


def starting_pods(cluster: Cluster, *, now: datetime) -> dict[str, list[FailingPod]]:
    """Returns by node pods that stay in ContainerCreating, or run without being ready.

    Pods of the GPU stack count only if somebody has to mend something. One query, a few if there are any.
    """
    created = Q(phase="Pending", started_at__lt=now - STARTS_WITHIN)
    unready = Q(phase="Running", is_ready=False, ready_since__lt=now - READY_WITHIN, started_at__lt=now - READY_WITHIN)
    concern = Q(is_tenant=True) | (~Q(operand="") & ~Q(operand=COMPUTE_DOMAIN))  # that one has a rule of its own
    late = Pod.objects.filter(concern, created | unready, cluster=cluster, deleted_at=None, waiting_reason="")
    pods = list(late.exclude(node_name="").order_by("started_at", "pk")[:READ_AT_MOST])
    reasons = reasons_of([pod for pod in pods if not pod.operand], now=now)
    causes = causes_of_operands([pod for pod in pods if pod.operand], now=now)
    found: dict[str, list[FailingPod]] = defaultdict(list)
    for pod in pods:
        if cause := causes.get(str(pod)):
            found[pod.node_name].append(_failing(pod, cause))
        reason = reasons.get(pod.uid)
        if reason is None or not (reason.is_wrong or (pod.started_at and now - pod.started_at >= PULLS_WITHIN)):
            continue
        found[pod.node_name].append(_failing(pod, reason))
    return found


def claims_waiting(cluster: Cluster, *, now: datetime) -> tuple[FailingPod, ...]:
    """Returns pods that wait for claims. One query, and a few if there are any."""
    without = Pod.objects.tenants().filter(cluster=cluster, node_name="", phase="Pending", deleted_at=None)
    pods = list(without.exclude(claims=[]).order_by("created_at", "pk")[:READ_AT_MOST])
    reasons = reasons_of(pods, now=now)
    waiting = ((pod, reasons[pod.uid]) for pod in pods if pod.uid in reasons)
    return tuple(_failing(pod, reason) for pod, reason in waiting if reason.key in UNSERVED)


def _failing(pod: Pod, reason: Cause | PodReason) -> FailingPod:
    return explained(FailingPod(str(pod), pod.status or pod.phase, pod.restarts, pod.operand), reason)
