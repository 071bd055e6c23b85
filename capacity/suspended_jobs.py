"""Suspended Jobs and PodGroups that request GPUs: demand without pods, so the scheduler does not see it."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q, Sum

from capacity.podless_groups import PodlessGroup, podless_groups
from capacity.queue_places import places_of_jobs
from capacity.wait_reasons.amounts import amount_text, by_weight
from capacity.wait_reasons.queue_place import QueuePlace
from capacity.wait_reasons.queue_reasons import queued_reason
from fleet.models import Bookmark, BookmarkState, Cluster, Workload
from gpu.resources import Layout, count
from kube.resources import JOBS, MPI_JOBS, PYTORCH_JOBS, RAY_CLUSTERS, RAY_JOBS
from people.models import User
from wording.lists import names

SHOWN_AT_MOST = 100  # the oldest
OTHERS = [each.name for each in (RAY_JOBS, RAY_CLUSTERS, PYTORCH_JOBS, MPI_JOBS)]
BY_NAME = Layout()
SUSPENDED = "Its spec.suspend is true. Whoever set it resumes the Job."


@dataclass(frozen=True)
class SuspendedJob:
    job: Workload
    requests: str  # of each pod
    gpus: int | None  # whole GPUs of all its pods; None: it requests none
    reason: str
    queue: QueuePlace | None  # None: it waits in no queue that is read


@dataclass(frozen=True)
class SuspendedDemand:
    jobs: int
    pods: int
    gpus: int  # whole GPUs of all pods
    shown: Sequence[SuspendedJob]
    unread: Sequence[str]  # clusters where one of the kinds is not read
    groups: int  # PodGroups of Volcano that wait without pods
    shown_groups: Sequence[PodlessGroup]


def suspended_demand(user: User) -> SuspendedDemand:
    """Returns the demand of the suspended Jobs that the user sees. Seven queries, and six for each cluster."""
    rows = Workload.objects.visible_to(user).filter(suspended_pods__gt=0).order_by()
    sums: Counter[str] = Counter()
    groups: Any = rows.values_list("resources").annotate(jobs=Count("pk"), pods=Sum("suspended_pods"))
    for resources, jobs, pods in groups:
        sums.update({"jobs": jobs, "pods": pods, "gpus": (count(resources, BY_NAME).whole or 0) * pods})
    oldest = list(rows.select_related("cluster").order_by("created_at", "pk")[:SHOWN_AT_MOST])
    places = _places(oldest)
    hidden = Bookmark.objects.filter(kind__in=OTHERS).filter(
        Q(state=BookmarkState.FORBIDDEN) | Q(listed_at__isnull=True) & ~Q(state=BookmarkState.ABSENT)
    )
    is_unread = ~Q(pk__in=Bookmark.objects.known(JOBS.name).values("cluster")) | Q(pk__in=hidden.values("cluster"))
    unread = Cluster.objects.visible_to(user).filter(is_unread)
    return SuspendedDemand(
        sums["jobs"],
        sums["pods"],
        sums["gpus"],
        [_suspended_job(row, places.get(row.uid)) for row in oldest],
        sorted(unread.values_list("name", flat=True)),
        *podless_groups(user),
    )


def _places(jobs: Sequence[Workload]) -> Mapping[str, QueuePlace]:
    """Returns the places of Jobs, by UID. A Job of a JobSet waits in the queue with it, or with its TrainJob."""
    by_cluster: dict[int, list[Workload]] = defaultdict(list)
    for job in jobs:
        by_cluster[job.cluster_id].append(job)
    found: dict[str, QueuePlace] = {}
    for cluster_id, some in by_cluster.items():
        found |= places_of_jobs(cluster_id, some)
    return found


def _suspended_job(job: Workload, place: QueuePlace | None) -> SuspendedJob:
    pods = job.suspended_pods or 0
    whole = count(job.resources, BY_NAME).whole if job.resources else None
    requests = [amount_text(name, amount) for name, amount in by_weight(job.resources)]
    requests += [f"ResourceClaim {name}" for name in job.claims]
    return SuspendedJob(job, names(requests), whole * pods if whole else None, _reason(place), place)


def _reason(place: QueuePlace | None) -> str:
    if place is None:
        return SUSPENDED
    if not place.is_waiting:
        return f"{place.system} has admitted it, and has not resumed it yet."
    reason = queued_reason(place)
    return f"{reason.title}. {reason.summary}"
