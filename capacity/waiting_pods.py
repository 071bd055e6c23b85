"""Reasons of pods that wait for a node: reads what is around them, and compares them with the nodes."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from django.db.models import F

from capacity.compared_nodes import index_of
from capacity.device_rows import with_devices
from capacity.namespace_rows import deleted_namespaces, labels_of_namespaces
from capacity.older_pods import older_pods
from capacity.queue_places import queue_places
from capacity.scaling_rows import scaling_facts
from capacity.volume_rows import with_volumes
from capacity.wait_reasons.amounts import amount_text
from capacity.wait_reasons.answers import PendingExplanation, ScalingReport
from capacity.wait_reasons.autoscaler_message import BY_THE_SCHEDULER, SCALING, read_report
from capacity.wait_reasons.early_reasons import SILENT_AFTER, ClaimFacts, WaitFacts
from capacity.wait_reasons.explanation import explain
from capacity.wait_reasons.obstacles import CPU, MEMORY, PODS
from capacity.wait_reasons.pod_rules import NamespaceLabels, selects_namespaces
from capacity.wait_reasons.requirements import USUAL_SCHEDULER, WaitingPod, read_pod
from capacity.wait_reasons.scaling_verdict import scaling_verdict
from fleet.models import Bookmark, ClusterEvent, DeviceClass, Pod, ResourceClaim
from fleet.pod_reasons import PodReason
from kube.resources import DEVICE_CLASSES, RESOURCE_CLAIMS
from wording.instants import to_the_minute
from wording.lists import names
from wording.reports import EvidenceItem

SCHEDULED = (BY_THE_SCHEDULER, "Scheduled", "Unschedulable")
# Causes that tell no more than the scheduler's sentence and the free room.
GENERAL = frozenset(
    {"matches_no_node", "offered_by_no_node", "larger_than_any_node", "no_room", "fragmented", "fits_no_node"}
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def is_waiting(pod: Pod) -> bool:
    """Tells whether a GPU pod waits for a node."""
    return pod.is_tenant and pod.phase == "Pending" and not pod.node_name and pod.deleted_at is None


def explanations_of(pods: Iterable[Pod], *, now: datetime) -> Mapping[str, PendingExplanation]:
    """Returns the explanations by UID, of pods that wait for a node. Thirty-six queries for each cluster at most."""
    by_cluster: dict[int, list[Pod]] = defaultdict(list)
    for pod in pods:
        if is_waiting(pod):
            by_cluster[pod.cluster_id].append(pod)
    found: dict[str, PendingExplanation] = {}
    for cluster_id, waiting in by_cluster.items():
        found |= _explain_in_cluster(cluster_id, waiting, now=now)
    return found


def refined_reasons(pods: Sequence[Pod], known: Mapping[str, PodReason], now: datetime) -> Mapping[str, PodReason]:
    """Returns the reasons of pods that wait for a node, where no cause knows more than the scheduler's sentence."""
    waiting = [pod for pod in pods if pod.uid not in known or known[pod.uid].key in GENERAL]
    found = explanations_of(waiting, now=now)
    by_uid = {pod.uid: pod for pod in waiting}
    return {uid: reason_of(by_uid[uid], each) for uid, each in found.items()}


def reason_of(pod: Pod, found: PendingExplanation) -> PodReason:
    steps = tuple(change.text for change in found.changes)
    return PodReason(
        found.key,
        f"{found.title}. {found.summary}".strip(),
        " ".join(steps),
        pod.waiting_reason,
        is_wrong=not found.is_waiting,
        title=found.title,
        summary=found.summary,
        steps=steps,
        decided_by=found.decided_by,
        evidence=tuple(_evidence(pod, found)),
    )


def _evidence(pod: Pod, found: PendingExplanation) -> Iterator[EvidenceItem]:
    """Yields what decides, the nearest miss and the scheduler's words, as they were when the pod was compared."""
    if found.decided_by:
        yield EvidenceItem("Decided by", found.decided_by)
    if found.near_misses:
        nearest = found.near_misses[0]
        yield EvidenceItem("Nearest node", f"{nearest.node.name}: lacks {names(nearest.lacks)}")
    if pod.waiting_reason:
        yield EvidenceItem("Message of the scheduler", pod.waiting_reason)
    if found.scaling:
        at = f" at {to_the_minute(found.scaling.at)}" if found.scaling.at else ""
        yield EvidenceItem(f"{found.scaling.autoscaler}{at}", f"It {found.scaling.verdict}. {found.scaling.summary}")
    if found.differences:
        yield EvidenceItem("Differs from the scheduler", names(found.differences))


def facts_of(pod: Pod, namespaces: NamespaceLabels | None = None) -> WaitingPod:
    requests = {**pod.resources, CPU: pod.cpu_m, MEMORY: pod.memory_bytes, PODS: 1}
    return read_pod(
        pod.placement, name=str(pod), requests=requests, claims=pod.claims, created_at=pod.created_at,
        labels=pod.labels, namespaces=namespaces,
    )  # fmt: skip


def _explain_in_cluster(cluster_id: int, pods: Sequence[Pod], *, now: datetime) -> dict[str, PendingExplanation]:
    facts = comparable_facts(cluster_id, pods)
    index = index_of(cluster_id, list(facts.values()))
    others = index.neighbours.label_keys if index.neighbours else frozenset[str]()
    facts = {uid: _with_labels(pod, pod.rules.label_keys | others) for uid, pod in facts.items()}
    around = _surroundings(cluster_id, pods, now=now)
    keys = {uid: _likeness(pod, around[uid], now=now) for uid, pod in facts.items()}
    found = {key: explain(facts[uid], index, around[uid], now=now) for key, uid in _first_of(keys).items()}
    return {uid: replace(found[key], scaling=_scaling_of(found[key], around[uid])) for uid, key in keys.items()}


def comparable_facts(cluster_id: int, pods: Sequence[Pod]) -> dict[str, WaitingPod]:
    """Returns the requirements of pods by UID, with their volumes and devices."""
    namespaces = labels_of_namespaces(cluster_id) if any(map(_selects_namespaces, pods)) else None
    facts = with_volumes(cluster_id, {pod.uid: facts_of(pod, namespaces) for pod in pods})
    return dict(with_devices(cluster_id, pods, facts))


def _scaling_of(found: PendingExplanation, around: WaitFacts) -> ScalingReport | None:
    """Returns the report. Without an Event it tells only why a pod that no node has room for gets no new node."""
    report = around.scaling
    is_relevant = report is not None and (report.message or (found.funnel and found.key != "fits"))
    return report if is_relevant else None


def _selects_namespaces(pod: Pod) -> bool:
    return selects_namespaces([*pod.placement.get("pod_affinity", ()), *pod.placement.get("pod_anti_affinity", ())])


def _first_of(keys: Mapping[str, str]) -> dict[str, str]:
    """Returns one UID for each key."""
    return {key: uid for uid, key in keys.items()}


def _likeness(pod: WaitingPod, around: WaitFacts, *, now: datetime) -> str:
    """Returns the fields that pods with the same explanation share."""
    is_old = now - pod.created_at >= SILENT_AFTER
    likeness = replace(pod, name=f"{pod.namespace}/", created_at=EPOCH, message_at=None)
    scaling = replace(around.scaling, at=None) if around.scaling else None
    return repr((likeness, replace(around, scaling=scaling), is_old))


def _with_labels(pod: WaitingPod, keys: Collection[str]) -> WaitingPod:
    """Returns the pod with the labels that rules read: others, such as its index, would tell its siblings apart."""
    return replace(pod, labels={key: pod.labels[key] for key in sorted(keys) if key in pod.labels})


def _surroundings(cluster_id: int, pods: Sequence[Pod], *, now: datetime) -> dict[str, WaitFacts]:
    reports, reported = _event_reports(cluster_id, pods)
    claims = _claims(cluster_id, pods)
    places, unread = queue_places(cluster_id, pods)
    classes = _device_classes(cluster_id) if claims is not None else None
    deleted = deleted_namespaces(cluster_id, {pod.namespace for pod in pods}, now=now)
    seen = _schedulers_seen(cluster_id, pods)
    older = older_pods(cluster_id, pods)
    facts = scaling_facts(cluster_id, [report.message for report in reports.values()], now=now)
    return {
        pod.uid: WaitFacts(
            None if claims is None else [claims[key] for key in _claim_keys(pod) if key in claims],
            classes,
            has_events=pod.uid in reported,
            is_scheduler_seen=pod.placement.get("scheduler") in seen,
            queue=places.get(pod.uid),
            queue_unread=unread.get(pod.uid, ""),
            scaling=scaling_verdict(reports.get(pod.uid), facts),
            scaling_unread=facts.unread,
            namespace_held_by=deleted.get(pod.namespace),
            older=older.get(pod.uid),
        )
        for pod in pods
    }


def _event_reports(cluster_id: int, pods: Sequence[Pod]) -> tuple[dict[str, ScalingReport], set[str]]:
    """Returns the newest report of an autoscaler by pod, and the pods of which a scheduler has written an Event."""
    events = ClusterEvent.objects.filter(
        cluster=cluster_id, about_uid__in=[pod.uid for pod in pods], reason__in=(*SCHEDULED, *SCALING)
    )
    found, reported = dict[str, ScalingReport](), set[str]()
    rows = events.order_by(F("last_at").asc(nulls_first=True), "pk")
    for uid, reason, source, message, at in rows.values_list("about_uid", "reason", "source", "message", "last_at"):
        if report := read_report(reason, source, message):
            found[uid] = replace(report, at=at)
        elif reason in SCHEDULED:
            reported.add(uid)
    return found, reported


def _schedulers_seen(cluster_id: int, pods: Iterable[Pod]) -> Collection[str]:
    """Returns those of the pods' own schedulers that have written an Event. No query for the usual scheduler."""
    own = {pod.placement.get("scheduler", USUAL_SCHEDULER) for pod in pods} - {USUAL_SCHEDULER}
    if not own:
        return set()
    events = ClusterEvent.objects.filter(cluster=cluster_id, source__in=own, reason__in=SCHEDULED)
    return set(events.values_list("source", flat=True).distinct())


def _claim_keys(pod: Pod) -> list[tuple[str, str]]:
    return [(pod.namespace, name) for name in pod.claims]


def _claims(cluster_id: int, pods: Sequence[Pod]) -> dict[tuple[str, str], ClaimFacts] | None:
    """Returns the claims of these pods. None: no pod has claims, or claims were never read."""
    names = {name for pod in pods for name in pod.claims}
    if not names or not Bookmark.objects.knows_all(cluster_id, RESOURCE_CLAIMS.name):
        return None
    rows = ResourceClaim.objects.filter(cluster=cluster_id, name__in=names)
    return {
        (row.namespace, row.name): ClaimFacts(
            row.name, bool(row.allocated), next((wish["device_class"] for wish in row.requests), "")
        )
        for row in rows
    }


def _device_classes(cluster_id: int) -> Collection[str] | None:
    """Returns the names of device classes. None: they were never read."""
    if not Bookmark.objects.knows_all(cluster_id, DEVICE_CLASSES.name):
        return None
    return set(DeviceClass.objects.filter(cluster=cluster_id).values_list("name", flat=True))


@dataclass(frozen=True)
class GpuHolder:
    """A pod that holds GPUs of a node that another pod misses by little."""

    pod: Pod
    gpus: str  # as text


def holders_on(nodes: Collection[int], resource: str) -> Mapping[int, list[GpuHolder]]:
    """Returns by node the pods that hold a resource there, the largest first. One query."""
    found: dict[int, list[GpuHolder]] = defaultdict(list)
    holders = Pod.objects.filter(node__in=nodes, resources__has_key=resource).not_done()
    for pod in holders.order_by("-gpus", "created_at", "pk").defer("placement", "labels", "devices"):
        found[pod.node_id or 0].append(GpuHolder(pod, amount_text(resource, pod.resources[resource])))
    return found
