"""Tenants' pods of a cluster that do not run: which, what they ask for, and why not."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q

from fleet.models import Pod
from fleet.pod_reasons import PodReason, reasons_of
from fleet.web.node_gpus import allocated_to
from fleet.web.states import PodWord, word_of
from gpu.resources import Layout
from people.models import User

READ = 200  # pods that are looked at
SHOWN = 25
FAILED_WITHIN = timedelta(hours=1)  # one that failed for good is news for a while
BY_NAME = Layout()  # a pod without a node: how GPUs will be shared there, nobody knows


@dataclass(frozen=True)
class TroubledPod:
    pod: Pod
    seen: PodWord
    asks: str  # in words
    reason: PodReason


@dataclass(frozen=True)
class TroubledPods:
    lines: Sequence[TroubledPod]  # those where something is wrong first, then the longest waiting
    left: int  # further ones that have no line
    is_cut: bool  # True: more than were looked at, so that `left` is a minimum

    def __bool__(self) -> bool:
        return bool(self.lines)


def troubled_pods(user: User, cluster_id: int, *, as_of: datetime | None, now: datetime) -> TroubledPods:
    """One query where all run. `as_of`: when pods were last seen, where that is not now."""
    waits = Q(phase="Pending") | Q(phase="Running", is_ready=False)
    failed = Q(phase="Failed", created_at__gt=now - FAILED_WITHIN)
    pods = Pod.objects.visible_to(user).tenants().filter(waits | failed, cluster=cluster_id, deleted_at=None)
    read = list(pods.select_related("node", "cluster").order_by("created_at", "pk")[: READ + 1])
    reasons = reasons_of(read[:READ], now=now)
    lines = [
        TroubledPod(pod, word_of(pod, now=now, as_of=as_of), _asks(pod), reasons[pod.uid])
        for pod in read[:READ]
        if pod.uid in reasons
    ]
    lines.sort(key=lambda line: not line.reason.is_wrong)
    return TroubledPods(lines[:SHOWN], left=len(lines[SHOWN:]), is_cut=len(read) > READ)


def _asks(pod: Pod) -> str:
    return allocated_to(pod, Layout.read(pod.node.layout) if pod.node else BY_NAME)
