"""Pods of a cluster that crash, cannot start, or failed for good and deserve a finding, by node."""

from collections import defaultdict
from datetime import datetime, timedelta

from django.db.models import Q

from fleet.models import Cluster, Pod
from fleet.pod_reasons import reasons_of
from fleet.states.pod import SETTLED_AFTER, PodState
from health.evaluation.pod_causes import causes_of_operands, explained_by_cause
from health.rules.base import FailingPod
from health.rules.pods_failing import BARE_FOR, deserves_finding, failed_of

COLUMNS = (
    "namespace", "name", "owner_kind", "operand", "node_name", "phase", "status", "is_ready", "deleted_at",
    "stuck_container", "waiting_reason", "restarts", "crashed_at", "ready_since", "started_at", "created_at",
    "node__is_ready", "node_id", "uid", "cluster", "last_words", "more_words", "image",
    "container_settings", "resources",
)  # fmt: skip
EXPLAINED_AT_MOST = 500
RUNNING, BETWEEN = "Running", "it crashed and is running again"


def failing_pods(cluster: Cluster, *, now: datetime) -> dict[str, list[FailingPod]]:
    """Returns failing pods by node with one query, and a few more for the causes.

    The query may find a few pods that the rule then leaves out.
    """
    may_fail = (~Q(stuck_container="") & ~Q(waiting_reason="")) | Q(crashed_at__gt=now - SETTLED_AFTER)
    maybe = (~Q(phase="Failed") & may_fail) | (Q(phase="Failed") & _may_have_finding(now))
    concern = Q(is_tenant=True) | ~Q(operand="")
    found: dict[str, list[FailingPod]] = defaultdict(list)
    pods = Pod.objects.filter(maybe, concern, cluster=cluster).exclude(node_name="")
    failing = [
        (pod, said) for pod in pods.select_related("node").only(*COLUMNS) if (said := _failing_pod(pod, now=now))
    ]
    reasons = reasons_of([pod for pod, _ in failing if not pod.operand][:EXPLAINED_AT_MOST], now=now)
    causes = causes_of_operands([pod for pod, _ in failing if pod.operand], now=now)
    for pod, said in failing:
        known = causes.get(str(pod)) if pod.operand else reasons.get(pod.uid)
        found[pod.node_name].append(explained_by_cause(said, known) if known else said)
    return found


def _failing_pod(pod: Pod, *, now: datetime) -> FailingPod | None:
    state = pod.state(now=now)
    if state is PodState.FAILING:
        status = pod.status or pod.phase
        return FailingPod(str(pod), BETWEEN if status == RUNNING else status, pod.restarts, pod.operand)
    reason = failed_of(pod.waiting_reason)
    is_over = state in {PodState.FAILED, PodState.REJECTED}
    if not is_over or pod.deleted_at or not deserves_finding(pod.owner_kind, reason, _time_since_end(pod, now)):
        return None
    return FailingPod(str(pod), reason or pod.status or pod.phase, pod.restarts, pod.operand, is_over=True)


def _may_have_finding(now: datetime) -> Q:
    """Returns the filter that matches `deserves_finding`.

    A cluster may have thousands of failed Job pods, and few are reported.
    """
    since = now - BARE_FOR
    is_new = Q(crashed_at__gt=since) | Q(ready_since__gt=since) | Q(started_at__gt=since) | Q(created_at__gt=since)
    return is_new & (Q(owner_kind="") | ~Q(waiting_reason=""))


def _time_since_end(pod: Pod, now: datetime) -> timedelta:
    """Returns the time since the pod ended, from its Ready condition. A refused pod ended when it began."""
    ends = (pod.crashed_at, pod.ready_since, pod.started_at, pod.created_at)
    return now - max(end for end in ends if end is not None)
