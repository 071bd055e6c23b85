"""The places of waiting pods in queues in front of the scheduler, from the mirror."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from django.db.models import Q

from capacity.wait_reasons.queue_place import STRICT, QueuePlace, QueueQuota
from capacity.wait_reasons.requirements import USUAL_SCHEDULER
from fleet.freshness.kinds import name_of
from fleet.gpu_pods import owner_chains
from fleet.models import Bookmark, BookmarkState, Pod, QueuedWorkload, QueueSystem, Workload, WorkloadQueue
from fleet.owner_chains import chains_above
from kube.quantity import whole_quantity
from kube.resources import CLUSTER_QUEUES, KAI_GROUPS, KUEUE_WORKLOADS, VOLCANO_GROUPS

KUEUE = "kueue.x-k8s.io/"
POD_GROUP = "kueue.x-k8s.io/pod-group-name"  # label of pods that are one Workload with this name
WAITING_AT_MOST = 20_000  # workloads of a cluster that are ranked; with more, positions are unknown
NEVER = datetime(9000, 1, 1, tzinfo=UTC)
# By scheduler name: volcano-sh/volcano, installer/helm; NVIDIA/KAI-Scheduler, README.
SCHEDULERS: Mapping[str, QueueSystem] = {"volcano": QueueSystem.VOLCANO, "kai-scheduler": QueueSystem.KAI}
WORDS_OF_STATE = {BookmarkState.ABSENT.value: "not installed", BookmarkState.FORBIDDEN.value: "not permitted"}
READ_FROM = {
    QueueSystem.KUEUE: (KUEUE_WORKLOADS.name, CLUSTER_QUEUES.name),
    QueueSystem.VOLCANO: (VOLCANO_GROUPS.name,),
    QueueSystem.KAI: (KAI_GROUPS.name,),
}


def system_of(pod: Pod) -> QueueSystem | None:
    """Returns the system whose queue the pod may wait in. None: none that is read here."""
    if any(gate.startswith(KUEUE) for gate in pod.placement.get("gates", ())):
        return QueueSystem.KUEUE
    return SCHEDULERS.get(pod.placement.get("scheduler", USUAL_SCHEDULER))


def queue_places(cluster_id: int, pods: Sequence[Pod]) -> tuple[Mapping[str, QueuePlace], Mapping[str, str]]:
    """Returns the places, and reasons for unread data, by UID of the pod.

    No query without pods of such a system; five at most.
    """
    systems = {pod.uid: system for pod in pods if (system := system_of(pod))}
    if not systems:
        return {}, {}
    kinds = {kind for system in systems.values() for kind in READ_FROM[system]}
    marks = {mark.kind: mark for mark in Bookmark.objects.filter(cluster=cluster_id, kind__in=kinds)}
    unread = {system: why for system in set(systems.values()) if (why := _why_unread(system, marks))}
    asked = [pod for pod in pods if pod.uid in systems and systems[pod.uid] not in unread]
    rows = _rows_of(cluster_id, asked) if asked else {}
    queues = _Queues(cluster_id) if any(row.system == QueueSystem.KUEUE for row in rows.values()) else None
    places = {uid: _place(row, queues) for uid, row in rows.items()}
    return places, {uid: unread[system] for uid, system in systems.items() if system in unread}


def places_of_jobs(cluster_id: int, jobs: Sequence[Workload]) -> Mapping[str, QueuePlace]:
    """Returns the places of Jobs in Kueue's queues by UID: their own, or that of any owner above.

    One query, those of the owners, and two more if any waits.
    """
    chains = chains_above({job.uid for job in jobs}, clusters=[cluster_id])
    names = {owner.name for chain in chains.values() for owner in chain}
    uids = {uid for job in jobs for uid in (job.uid, job.owner_uid) if uid}
    rows = QueuedWorkload.objects.filter(
        Q(owner_uid__in=uids) | Q(owner_name__in=names), cluster=cluster_id, system=QueueSystem.KUEUE
    )
    by_uid, by_owner = dict[str, QueuedWorkload](), dict[tuple[str, ...], QueuedWorkload]()
    for row in rows.order_by("created_at", "pk"):
        by_uid[row.owner_uid] = by_owner[row.namespace, row.owner_kind, row.owner_name] = row
    queues = _Queues(cluster_id) if by_uid else None
    found: dict[str, QueuePlace] = {}
    for job in jobs:
        above = reversed(chains.get((cluster_id, job.uid), ()))
        candidates = (
            by_uid.get(job.uid),
            by_uid.get(job.owner_uid) if job.owner_uid else None,
            *(by_owner.get((job.namespace, *owner)) for owner in above),
        )
        if its := next(filter(None, candidates), None):
            found[job.uid] = _place(its, queues)
    return found


def place_of_group(row: QueuedWorkload) -> QueuePlace:
    """Returns the place of a PodGroup, whose queue tells no order. No query."""
    return _place(row, None)


def _why_unread(system: QueueSystem, marks: Mapping[str, Bookmark]) -> str:
    """Returns which data of a queue system is not read, and why. Blank: all is read."""
    for kind in READ_FROM[system]:
        mark = marks.get(kind)
        if mark is None or not mark.is_known:
            state = WORDS_OF_STATE.get(mark.state if mark else "", "not read yet")
            return f"queues and quotas of {system.label} ({name_of(kind)}: {state})"
    return ""


def _rows_of(cluster_id: int, pods: Sequence[Pod]) -> dict[str, QueuedWorkload]:
    """Returns the rows by UID of the pod: by its own UID, its owner's, its group's name, or any owner above."""
    owners = owner_chains(list(pods))
    uids = {uid for pod in pods for uid in (pod.uid, pod.owner_uid) if uid}
    groups = {pod.labels[POD_GROUP] for pod in pods if POD_GROUP in pod.labels}
    named = {owner.name for chain in owners.values() for owner in chain if owner.name}
    where = Q(owner_uid__in=uids) | Q(system=QueueSystem.KUEUE, name__in=groups) | Q(owner_name__in=named)
    rows = QueuedWorkload.objects.filter(where, cluster=cluster_id, namespace__in={pod.namespace for pod in pods})
    by_uid: dict[str, QueuedWorkload] = {}
    by_name: dict[tuple[str, str], QueuedWorkload] = {}
    by_owner: dict[tuple[str, str, str], QueuedWorkload] = {}
    for row in rows.order_by("created_at", "pk"):
        by_uid[row.owner_uid] = row
        by_name[row.namespace, row.name] = row
        by_owner[row.namespace, row.owner_kind, row.owner_name] = row
    found: dict[str, QueuedWorkload] = {}
    for pod in pods:
        candidates = (
            by_uid.get(pod.uid),
            by_name.get((pod.namespace, pod.labels.get(POD_GROUP, ""))),
            by_uid.get(pod.owner_uid) if pod.owner_uid else None,
            *(by_owner.get((pod.namespace, *owner)) for owner in reversed(owners[pod.pk]) if owner.name),
        )
        system = system_of(pod)
        if its := [each for each in candidates if each is not None and each.system == system]:
            found[pod.uid] = its[0]
    return found


class _Queues:
    """The queues of Kueue in a cluster, and the order of what waits in them. Two queries."""

    def __init__(self, cluster_id: int) -> None:
        self.rows = {
            (row.kind, row.namespace, row.name): row for row in WorkloadQueue.objects.filter(cluster=cluster_id)
        }
        waiting = QueuedWorkload.objects.filter(
            cluster=cluster_id, system=QueueSystem.KUEUE, is_waiting=True, is_active=True, admitted_to=""
        ).order_by()
        rows = list(waiting.values_list("namespace", "name", "queue", "priority", "created_at")[: WAITING_AT_MOST + 1])
        self.order: dict[str, list[tuple[int, datetime, str]]] = defaultdict(list)
        if len(rows) > WAITING_AT_MOST:
            return
        for namespace, name, queue, priority, created_at in rows:
            place = (-priority, created_at or NEVER, f"{namespace}/{name}")
            self.order[self.cluster_queue_of(namespace, queue)].append(place)
        for places in self.order.values():
            places.sort()

    def cluster_queue_of(self, namespace: str, queue: str) -> str:
        row = self.rows.get(("LocalQueue", namespace, queue))
        return row.cluster_queue if row else ""

    def trouble_of(self, namespace: str, queue: str) -> str:
        local = self.rows.get(("LocalQueue", namespace, queue))
        if local is None:
            return ""
        above = self.rows.get(("ClusterQueue", "", local.cluster_queue))
        return local.trouble or (above.trouble if above else "")


def _place(row: QueuedWorkload, queues: _Queues | None) -> QueuePlace:
    name = f"{row.namespace}/{row.name}"
    place = QueuePlace(
        system=QueueSystem(row.system).label,
        workload=name,
        queue=row.queue,
        cluster_queue=row.admitted_to,
        is_active=row.is_active,
        is_waiting=row.is_waiting,
        is_reserved=bool(row.admitted_to),
        members=row.members,
        reason=row.reason,
        message=row.message,
    )
    if row.system != QueueSystem.KUEUE or queues is None:
        return place
    cluster_queue = row.admitted_to or queues.cluster_queue_of(row.namespace, row.queue)
    above = queues.rows.get(("ClusterQueue", "", cluster_queue))
    order = [workload for _, _, workload in queues.order.get(cluster_queue, ())] if cluster_queue else []
    position = order.index(name) + 1 if name in order else None
    is_strict = above is not None and above.strategy == STRICT
    return replace(
        place,
        cluster_queue=cluster_queue,
        position=position,
        length=len(order),
        head=order[0] if is_strict and position and position > 1 else "",
        trouble=queues.trouble_of(row.namespace, row.queue),
        quotas=_quotas(above, row.requests) if above else (),
    )


def _quotas(queue: WorkloadQueue, requests: Mapping[str, str]) -> list[QueueQuota]:
    """Returns the quotas for what the workload requests, those without free amounts first."""
    found = [
        QueueQuota(
            each["flavor"],
            each["resource"],
            whole_quantity(each["nominal"]) or 0,
            whole_quantity(each["reserved"]) or 0,
            whole_quantity(each["borrowed"]) or 0,
        )
        for each in queue.quotas
        if "/" in each["resource"] and (each["resource"] in requests or not requests)
    ]
    return sorted(found, key=lambda quota: (quota.free > 0, quota.flavor, quota.resource))
