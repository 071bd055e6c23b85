"""Reasons of pods that wait for a node: reads the nodes and claims of their cluster, and explains each pod."""

import json
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from threading import Lock
from typing import Any, NamedTuple

from django.db.models import TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from capacity.queue_places import queue_places
from capacity.wait_reasons.amounts import amount_text
from capacity.wait_reasons.answers import PendingExplanation
from capacity.wait_reasons.early_reasons import SILENT_AFTER, ClaimFacts, WaitFacts
from capacity.wait_reasons.explanation import explain
from capacity.wait_reasons.node_index import ComparedNode, NodeIndex
from capacity.wait_reasons.obstacles import CPU, MEMORY
from capacity.wait_reasons.requirements import LabelRequirement, WaitingPod, read_pod, read_taint
from fleet.allocation.cpu_memory import WHOSE
from fleet.models import Bookmark, ClusterEvent, DeviceClass, Node, Observer, Pod, ResourceClaim
from fleet.pod_reasons import PodReason
from kube.resources import DEVICE_CLASSES, RESOURCE_CLAIMS
from wording.lists import names
from wording.reports import EvidenceItem, clip

NOT_SCALED = "NotTriggerScaleUp"  # of the cluster autoscaler
SCHEDULED = ("FailedScheduling", "Scheduled", "Unschedulable", NOT_SCALED)
MOST_OF_SCALING = 80  # characters
# Causes that tell no more than the scheduler's sentence and the free room.
GENERAL = frozenset(
    {"matches_no_node", "offered_by_no_node", "larger_than_any_node", "no_room", "fragmented", "fits_no_node"}
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
KEPT_S, SHARED_S = 30, 3
INDEXES_AT_MOST = 4  # that a process remembers: 5 MB each with 5,000 nodes
LABELS_AT_MOST = 12  # labels that are read one by one; with more, whole sets of labels are read
COLUMNS = (
    "pk", "name", "is_unschedulable", "cpu_allocatable_m", "memory_allocatable_bytes",
    *(f"cpu_{whose}_m" for whose in WHOSE), *(f"memory_{whose}_bytes" for whose in WHOSE),
)  # fmt: skip

AS_TEXT = {f"{column}_text": column for column in ("taints", "allocatable", "requested", "expected")}


class KeptIndex(NamedTuple):
    mark: tuple[int, int] | None  # epoch and number of the observer's flush before it was read
    at: float  # monotonic
    nodes: NodeIndex


_lock = Lock()
_kept: dict[tuple[int, frozenset[str] | None], KeptIndex] = {}


def is_waiting(pod: Pod) -> bool:
    """Tells whether a GPU pod waits for a node."""
    return pod.is_tenant and pod.phase == "Pending" and not pod.node_name and pod.deleted_at is None


def explanations_of(pods: Iterable[Pod], *, now: datetime) -> Mapping[str, PendingExplanation]:
    """Returns the explanations by UID, of pods that wait for a node. Nine queries for each cluster at most."""
    by_cluster: dict[int, list[Pod]] = defaultdict(list)
    for pod in pods:
        if is_waiting(pod):
            by_cluster[pod.cluster_id].append(pod)
    found: dict[str, PendingExplanation] = {}
    for cluster_id, waiting in by_cluster.items():
        found |= _of_cluster(cluster_id, waiting, now=now)
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
    if found.differences:
        yield EvidenceItem("Differs from the scheduler", names(found.differences))


def facts_of(pod: Pod) -> WaitingPod:
    requests = {**pod.resources, CPU: pod.cpu_m, MEMORY: pod.memory_bytes}
    return read_pod(pod.placement, name=str(pod), requests=requests, claims=pod.claims, created_at=pod.created_at)


def index_of(cluster_id: int, pods: Sequence[WaitingPod]) -> NodeIndex:
    """Returns the nodes of a cluster with the labels that these pods mention. One or two queries.

    It is remembered until the next flush of the observer, which writes all that is read here, and `SHARED_S` beyond:
    on a busy cluster every flush makes every open page ask.
    """
    every = frozenset(each.key for pod in pods for each in _requirements(pod) if not each.is_field)
    keys = every if len(every) <= LABELS_AT_MOST else None
    mark = Observer.objects.filter(cluster=cluster_id).values_list("epoch", "batch").first()
    with _lock:
        kept = _kept.get((cluster_id, keys))
    if kept and time.monotonic() - kept.at < (KEPT_S if kept.mark == mark else SHARED_S):
        return kept.nodes
    read = KeptIndex(mark, time.monotonic(), _read_index(cluster_id, keys))
    with _lock:
        _kept[cluster_id, keys] = read
        while len(_kept) > INDEXES_AT_MOST:
            _kept.pop(min(_kept, key=lambda key: _kept[key].at))
    return read.nodes


def forget_indexes() -> None:
    with _lock:
        _kept.clear()


def _read_index(cluster_id: int, keys: frozenset[str] | None) -> NodeIndex:
    """Reads the nodes of a cluster with these labels; None: with all. One query."""
    # Most nodes have equal values, which are decoded once.
    written: Any = Node.objects.filter(cluster=cluster_id).order_by("name")
    rows = written.annotate(**{name: Cast(column, TextField()) for name, column in AS_TEXT.items()})
    decoded = cache(json.loads)
    if keys is None:
        return NodeIndex(_node(row, row["labels"], decoded) for row in rows.values(*COLUMNS, *AS_TEXT, "labels"))
    names = {f"label_{number}": key for number, key in enumerate(sorted(keys))}
    read = rows.annotate(**{name: KeyTextTransform(key, "labels") for name, key in names.items()})
    return NodeIndex(
        _node(row, {key: value for name, key in names.items() if (value := row[name]) is not None}, decoded)
        for row in read.values(*COLUMNS, *AS_TEXT, *names)
    )


def _of_cluster(cluster_id: int, pods: Sequence[Pod], *, now: datetime) -> dict[str, PendingExplanation]:
    facts = {pod.uid: facts_of(pod) for pod in pods}
    index = index_of(cluster_id, list(facts.values()))
    around = _surroundings(cluster_id, pods)
    keys = {uid: _likeness(pod, around[uid], now=now) for uid, pod in facts.items()}
    found = {key: explain(facts[uid], index, around[uid], now=now) for key, uid in _first_of(keys).items()}
    return {uid: found[key] for uid, key in keys.items()}


def _first_of(keys: Mapping[str, str]) -> dict[str, str]:
    """Returns one UID for each key."""
    return {key: uid for uid, key in keys.items()}


def _likeness(pod: WaitingPod, around: WaitFacts, *, now: datetime) -> str:
    """Returns what is equal in pods with equal explanations."""
    is_old = now - pod.created_at >= SILENT_AFTER
    return repr((replace(pod, name="", created_at=EPOCH, message_at=None), around, is_old))


def _surroundings(cluster_id: int, pods: Sequence[Pod]) -> dict[str, WaitFacts]:
    events = ClusterEvent.objects.filter(
        cluster=cluster_id, about_uid__in=[pod.uid for pod in pods], reason__in=SCHEDULED
    )
    messages = {(uid, reason): said for uid, reason, said in events.values_list("about_uid", "reason", "message")}
    reported = {uid for uid, _ in messages}
    claims = _claims(cluster_id, pods)
    places, unread = queue_places(cluster_id, pods)
    classes = _device_classes(cluster_id) if claims is not None else None
    return {
        pod.uid: WaitFacts(
            None if claims is None else [claims[key] for key in _claim_keys(pod) if key in claims],
            classes,
            has_events=pod.uid in reported,
            queue=places.get(pod.uid),
            queue_unread=unread.get(pod.uid, ""),
            not_scaled=_why_not_scaled(messages.get((pod.uid, NOT_SCALED), "")),
        )
        for pod in pods
    }


def _why_not_scaled(message: str) -> str:
    """Returns the reasons in "pod didn't trigger scale-up (it wouldn't fit if a new node is added): 1 max size"."""
    return clip(message.partition("scale-up")[2].partition(": ")[2].strip(" ."), MOST_OF_SCALING)


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


def _requirements(pod: WaitingPod) -> list[LabelRequirement]:
    return [*pod.selector, *(each for term in pod.terms for each in term)]


def _node(row: Mapping[str, Any], labels: Mapping[str, str], decoded: Callable[[str], Any]) -> ComparedNode:
    cpu = {CPU: row["cpu_allocatable_m"] or 0, MEMORY: row["memory_allocatable_bytes"] or 0}
    used = {
        CPU: sum(row[f"cpu_{whose}_m"] for whose in WHOSE),
        MEMORY: sum(row[f"memory_{whose}_bytes"] for whose in WHOSE),
    }
    return ComparedNode(
        key=row["pk"],
        name=row["name"],
        labels=labels,
        taints=tuple(map(read_taint, decoded(row["taints_text"]))),
        is_cordoned=row["is_unschedulable"],
        allocatable={**decoded(row["allocatable_text"]), **cpu},
        requested={**decoded(row["requested_text"]), **used},
        expected=decoded(row["expected_text"]),
    )


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
