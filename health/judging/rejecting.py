"""Owners of GPU pods whose new ones are rejected at creation, as their Events say (hazard Z31)."""

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db.models import Count

from fleet.models import Cluster, ClusterEvent, Pod, Workload
from health.rules.base import RejectedOwner
from health.subjects import LONGEST

FAILED_CREATE = "FailedCreate"  # kubernetes, pkg/controller: the reason of the Event on the owner
# A controller tries again after 1000 s at most: client-go, util/workqueue, DefaultControllerRateLimiter.
SAID_WITHIN = timedelta(minutes=20)
MAKERS = ("Job", "ReplicaSet", "StatefulSet")  # what makes pods of those that are watched
EVENTS_AT_MOST = 500  # the newest: where more are rejected, it is one trouble
OWNERS_AT_MOST = 50


def rejected_owners(cluster: Cluster, *, now: datetime) -> Iterator[RejectedOwner]:
    """Those that lack pods, of whom it was said lately; by what stands above them. One query, two more where any was.

    What made all pods that it wants is not told, whatever was said before.
    """
    told = ClusterEvent.objects.filter(
        cluster=cluster, reason=FAILED_CREATE, is_warning=True, about_kind__in=MAKERS, last_at__gte=now - SAID_WITHIN
    )
    last = dict(told.order_by("-last_at", "-pk").values_list("about_uid", "message")[:EVENTS_AT_MOST][::-1])
    if not last:
        return
    workloads = Workload.objects.filter(cluster=cluster, uid__in=list(last), desired__gt=0, operator_version="")
    there = Pod.objects.filter(cluster=cluster, owner_uid__in=list(last), deleted_at=None).not_done().order_by()
    made: Counter[str] = Counter(dict(there.values_list("owner_uid").annotate(number=Count("pk"))))
    found: dict[str, RejectedOwner] = {}
    for row in workloads.order_by("namespace", "name"):
        lacking = (row.desired or 0) - made[row.uid]
        name = f"{row.owner_kind or row.kind} {row.namespace}/{row.owner_name or row.name}"[:LONGEST]
        if lacking > 0 and name not in found:
            found[name] = RejectedOwner(name, row.namespace, last[row.uid], lacking, row.resources)
    yield from list(found.values())[:OWNERS_AT_MOST]
