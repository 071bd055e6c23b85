"""Owners of GPU pods whose new pods are rejected at creation, from their Events (hazard Z31).

For watched kinds the wanted number of pods is known. For owners of other kinds only the Event is read, so that no right
to unknown kinds is needed.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta

from django.db.models import Count, Max

from fleet.models import Cluster, ClusterEvent, Pod, Workload
from gpu.rejections import FAILED_CREATE, POD_REJECTED
from gpu.resources.names import is_gpu_resource
from health.rules.base import RejectedOwner
from health.subjects import LONGEST

# A controller tries again after 1000 s at most: client-go, util/workqueue, DefaultControllerRateLimiter.
RECENT = timedelta(minutes=20)
MAKERS = ("Job", "ReplicaSet", "StatefulSet")  # watched kinds that create pods
NO_MAKERS = ("DaemonSet", "Pod", "Node")  # a DaemonSet's status has the missing pods
NAME = re.compile(r"(?:requests\.|limits\.)?([a-z0-9.-]+/[A-Za-z0-9_.-]+)")  # a resource in the message
EVENTS_AT_MOST = 500  # the newest: where more are rejected, it is one trouble
OWNERS_AT_MOST = 50


def rejected_owners(cluster: Cluster, *, now: datetime) -> Iterator[RejectedOwner]:
    """Yields owners that lack pods and had a recent rejection, by the owner above the direct one.

    One query; two more if any has a watched kind, one more if any has another kind. A watched owner that has all its
    pods is left out, and so is another owner that has created a pod since.
    """
    told = ClusterEvent.objects.filter(
        cluster=cluster, reason__in=(FAILED_CREATE, *POD_REJECTED), is_warning=True, last_at__gte=now - RECENT
    ).exclude(about_kind__in=NO_MAKERS)
    watched, others = dict[str, str](), dict[tuple[str, ...], ClusterEvent]()
    for row in reversed(told.order_by("-last_at", "-pk")[:EVENTS_AT_MOST]):
        if row.about_kind not in MAKERS:
            others[row.about_kind, row.about_namespace, row.about_name] = row
        elif row.reason == FAILED_CREATE:
            watched[row.about_uid] = row.message
    found = {one.name: one for one in (*_watched(cluster, watched), *_owners_from_events(cluster, others.values()))}
    yield from list(found.values())[:OWNERS_AT_MOST]


def _watched(cluster: Cluster, last: Mapping[str, str]) -> Iterator[RejectedOwner]:
    """Yields owners of watched kinds. `last` holds the last Event by the UID of the pods' direct owner."""
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
    yield from found.values()


def _owners_from_events(cluster: Cluster, last: Collection[ClusterEvent]) -> Iterator[RejectedOwner]:
    """Yields owners of other kinds from their last Event. The Event or earlier GPU pods show that they use GPUs."""
    if not last:
        return
    pods = Pod.objects.filter(cluster=cluster, owner_uid__in=[row.about_uid for row in last if row.about_uid])
    made = dict(pods.order_by().values_list("owner_uid").annotate(newest=Max("created_at")))
    for row in sorted(last, key=lambda each: (each.about_namespace, each.about_kind, each.about_name)):
        newest = made.get(row.about_uid)
        if newest is None or row.last_at is None or newest <= row.last_at:
            name = f"{row.about_kind} {row.about_namespace}/{row.about_name}"[:LONGEST]
            is_of_gpus = newest is not None or any(map(is_gpu_resource, NAME.findall(row.message)))
            yield RejectedOwner(name, row.about_namespace, row.message, None, is_of_gpus=is_of_gpus)
