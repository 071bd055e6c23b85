"""Tenant pods of a cluster that do not run, with requests and reasons."""

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

READ = 200  # maximum number of pods read
SHOWN = 10  # the page of pods has all
FAILED_WITHIN = timedelta(hours=1)  # period for failed pods
BY_NAME = Layout()  # sharing on its future node is unknown


@dataclass(frozen=True)
class TroubledPod:
    pod: Pod
    seen: PodWord
    asks: str  # as text
    reason: PodReason


@dataclass(frozen=True)
class TroubledPods:
    lines: Sequence[TroubledPod]  # problems first, then the longest waiting
    left: int  # pods without a line
    is_cut: bool  # True: more than the maximum, so `left` is a lower bound

    def __bool__(self) -> bool:
        return bool(self.lines)


def troubled_pods(user: User, cluster_id: int, *, as_of: datetime | None, now: datetime) -> TroubledPods:
    """Returns the pods; one query if all run. `as_of` is the last update of pods unless live."""
    waits = Q(phase="Pending") | Q(phase="Running", is_ready=False)
    failed = Q(phase="Failed", created_at__gt=now - FAILED_WITHIN)
    pods = Pod.objects.visible_to(user).tenants().filter(waits | failed, cluster=cluster_id, deleted_at=None)
    read = list(pods.select_related("node", "cluster").order_by("created_at", "pk")[: READ + 1])
    reasons = reasons_of(read[:READ], now=now)
    lines = [
        TroubledPod(pod, word_of(pod, now=now, as_of=as_of), _requested_gpus(pod), reasons[pod.uid])
        for pod in read[:READ]
        if pod.uid in reasons
    ]
    lines.sort(key=lambda line: not line.reason.is_wrong)
    return TroubledPods(lines[:SHOWN], left=len(lines[SHOWN:]), is_cut=len(read) > READ)


def _requested_gpus(pod: Pod) -> str:
    return allocated_to(pod, Layout.read(pod.node.layout) if pod.node else BY_NAME)
