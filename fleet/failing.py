"""The pods of a cluster that crash or cannot start, by their node."""

from collections import defaultdict
from datetime import datetime

from django.db.models import Q

from fleet.models import Cluster, Pod
from fleet.pod_state import CALM_AFTER, PodState
from fleet.rules.base import FailingPod


def failing_pods(cluster: Cluster, *, now: datetime) -> dict[str, list[FailingPod]]:
    """One query, that finds a few more than there are. One that failed for good is its owner's past."""
    may_fail = (~Q(stuck_container="") & ~Q(waiting_because="")) | Q(crashed_at__gt=now - CALM_AFTER)
    concern = Q(is_tenant=True) | ~Q(operand="")
    found: dict[str, list[FailingPod]] = defaultdict(list)
    for pod in Pod.objects.filter(may_fail, concern, cluster=cluster).exclude(node_name="").select_related("node"):
        if pod.state(now=now) is PodState.FAILING:
            said = FailingPod(str(pod), pod.status or pod.phase, pod.restarts, pod.operand)
            found[pod.node_name].append(said)
    return found
