"""The work that ended with the pods of released nodes, by the record of placements."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Q

from fleet.gangs import SERVICES
from fleet.models import Node, PodPlacement
from fleet.models.pod import COMPLETED
from gpu.resources import Layout, whole_gpus
from operations.tenants.jobs import HOUR_S


@dataclass(frozen=True)
class ChangeSpan:
    """The time in which the pods of a node ended for its change."""

    begin: datetime
    end: datetime


@dataclass(frozen=True)
class EndedWork:
    jobs: int
    gpu_hours: float | None  # of whole GPUs, since each pod's start on its node; None: no pod of a job has whole GPUs


def ended_work(cluster_id: int, changes: Mapping[str, ChangeSpan]) -> EndedWork:
    """Returns the jobs with a pod that ended in the change of its node, by UID. Pods that completed are not counted.

    All pods of such a job count that ended in that time, wherever they ran. Three queries.
    """
    if not changes:
        return EndedWork(0, 0.0)
    begin, end = min(one.begin for one in changes.values()), max(one.end for one in changes.values())
    ended = PodPlacement.objects.filter(cluster=cluster_id, since__lt=end, until__gte=begin, until__lte=end)
    ended = ended.exclude(ended__in=COMPLETED).exclude(owner_kind__in=SERVICES).order_by()
    begins: dict[tuple[str, str, str], datetime] = {}
    columns = ("owner_kind", "namespace", "owner_name", "name")
    for *job, uid, since, until in ended.filter(node_uid__in=changes).values_list(
        *columns, "node_uid", "since", "until"
    ):
        change = changes[uid]
        if since < change.begin <= until <= change.end:
            begins.setdefault(_job(*job), change.begin)
    if not begins:
        return EndedWork(0, 0.0)
    layouts = dict(Node.objects.filter(cluster=cluster_id).values_list("uid", "layout"))
    gpu_hours, counted = 0.0, 0
    its = Q(owner_name__in={name for kind, _, name in begins if kind}) | Q(owner_kind="")
    for *job, uid, since, until, resources in ended.filter(its).values_list(
        *columns, "node_uid", "since", "until", "resources"
    ):
        begun = begins.get(_job(*job))
        if begun is None or not since < begun <= until:
            continue
        gpus = whole_gpus(resources, Layout.read(layouts.get(uid) or ""))
        counted += bool(gpus)
        gpu_hours += gpus * (until - since).total_seconds() / HOUR_S
    return EndedWork(len(begins), gpu_hours if counted else None)


def _job(kind: str, namespace: str, owner: str, pod: str) -> tuple[str, str, str]:
    return kind, namespace, owner or pod
