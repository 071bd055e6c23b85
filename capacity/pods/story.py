"""One pod with its whole story: owner, GPUs, claims, conditions, Events and why it does not run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.urls import reverse

from capacity.pods.addresses import namespace_page, workload_page
from capacity.pods.higher_priority import HigherPriority, higher_priority_for
from capacity.pods.image_pulls import PendingPull, pending_pull_of
from capacity.pods.rows import GpuPodLine
from capacity.pods.victims import Victim, victims_on
from capacity.wait_reasons.answers import DecidingKind, NearMiss, PendingExplanation
from capacity.wait_reasons.requirements import USUAL_SCHEDULER
from capacity.waiting_pods import GpuHolder, explanations_of, facts_of, holders_on, reason_of
from fleet.allocation.allocations import GpuAllocation, Unplaced
from fleet.allocation.gpu_holders import allocations_on
from fleet.freshness.cluster import ClusterFreshness, load_cluster_freshness
from fleet.freshness.kinds import NODES, PODS
from fleet.gpu_pods import top_owners
from fleet.models import ClusterEvent, Node, Pod, ResourceClaim, Workload
from fleet.pod_reasons import reasons_of
from fleet.queries import PodRow, seen_pools_of
from fleet.states.node import NodeState, state_key
from fleet.states.pod import ENDED
from fleet.web.filters import NodeFilter
from people.models import User

EVENTS_AT_MOST = 100
HOLDERS_AT_MOST = 3  # that are named for each near node


@dataclass(frozen=True)
class HeldGpu:
    index: int | None  # None: only its UUID is known
    uuid: str
    product: str
    allocation: GpuAllocation


@dataclass(frozen=True)
class NearNode:
    miss: NearMiss
    holders: Sequence[GpuHolder]  # pods that hold the missing GPUs, the largest first
    more: int  # holders that are not listed


@dataclass(frozen=True)
class DecidingObject:
    """The node, queue, label or other object that decides that a pod waits."""

    kind: DecidingKind
    name: str
    page: str  # address of the page that shows it; blank: none does


@dataclass(frozen=True)
class WaitingStory:
    """The reason why a pod waits for a node, with the pods that hold what it misses."""

    found: PendingExplanation
    near: Sequence[NearNode]
    scheduler_message: str
    scheduler_at: datetime | None  # when the condition last turned; its message may be newer
    nodes_seen_at: datetime | None
    is_usual_scheduler: bool
    deciding: DecidingObject | None  # None: nothing decides
    victims: Sequence[Victim]  # on the node where preemption ends the fewest pods
    higher: HigherPriority | None  # a class with which preemption makes room; None: none does, or no class is needed


@dataclass(frozen=True)
class PodStory:
    line: GpuPodLine
    freshness: ClusterFreshness
    gpus: Sequence[HeldGpu]
    unplaced: Sequence[Unplaced]  # amounts whose GPUs are unknown
    claims: Sequence[ResourceClaim]  # that are mirrored
    missing_claims: Sequence[str]  # names of claims that do not exist, or are not mirrored
    conditions: Sequence[Mapping[str, Any]]  # of a pod without a node: type, status, reason, message, at
    waiting: WaitingStory | None  # why it waits for a node; None: it does not
    image_pull: PendingPull | None  # the pull that the pod waits for; None: no pull
    events: Sequence[ClusterEvent]  # of the pod and of its owner, newest first
    is_cut: bool  # there are more Events

    @property
    def pod(self) -> Pod:
        return self.line.pod

    @property
    def row(self) -> PodRow:
        return self.line.row


def story_of(pod: Pod, *, user: User, now: datetime) -> PodStory:
    """Returns the story of a pod with loaded cluster, observer and node. Eight queries, one more while it starts, and
    those of its reason and image."""
    freshness = load_cluster_freshness(pod.cluster, now=now)
    pools = [pool.name for pool in seen_pools_of(pod.node, user=user)] if pod.node else []
    owner = " ".join(filter(None, top_owners([pod])[pod.pk]))
    waiting = waiting_story(pod, freshness, now=now)
    # A cause explains more than a claim, unless the claim was compared with the devices of every node.
    is_explained = waiting is not None and (not pod.claims or bool(waiting.found.funnel))
    reason = reason_of(pod, waiting.found) if waiting and is_explained else reasons_of([pod], now=now).get(pod.uid)
    row = PodRow(freshness.by_kind[PODS], pod, reason)
    gpus, unplaced = _gpus(pod, now=now)
    claims = list(ResourceClaim.objects.filter(cluster=pod.cluster_id, namespace=pod.namespace, name__in=pod.claims))
    there = {claim.name for claim in claims}
    events = list(_events(pod, user)[: EVENTS_AT_MOST + 1])
    return PodStory(
        line=GpuPodLine(row, owner, pools, now),
        freshness=freshness,
        gpus=gpus,
        unplaced=unplaced,
        claims=claims,
        missing_claims=[name for name in pod.claims if name not in there],
        conditions=[{**each, "at": _instant(each.get("at"))} for each in pod.placement.get("conditions", ())],
        waiting=waiting,
        image_pull=pending_pull_of(pod),
        events=events[:EVENTS_AT_MOST],
        is_cut=len(events) > EVENTS_AT_MOST,
    )


def waiting_story(pod: Pod, freshness: ClusterFreshness, *, now: datetime) -> WaitingStory | None:
    """Returns why the pod waits for a node. None: it has one."""
    found = explanations_of([pod], now=now).get(pod.uid)
    if found is None:
        return None
    facts, resource = facts_of(pod), next(iter(pod.resources), "")
    nodes = [miss.node.key for miss in found.near_misses]
    holders = holders_on(nodes, resource) if nodes and resource else {}
    near = [
        NearNode(miss, there[:HOLDERS_AT_MOST], len(there[HOLDERS_AT_MOST:]))
        for miss in found.near_misses
        for there in (holders.get(miss.node.key, []),)
    ]
    best = found.preemption.best if found.preemption else None
    higher = higher_priority_for(pod) if found.preemption and not best and found.is_waiting else None
    if higher:
        rest = [change for change in found.changes if not change.fits_later]
        helpful = [change for change in found.changes if change.fits_later]
        found = replace(found, changes=[*helpful, higher.change, *rest])
    return WaitingStory(
        found,
        near,
        facts.message or pod.waiting_reason,
        facts.message_at,
        freshness.by_kind[NODES].last_seen_at,
        facts.scheduler == USUAL_SCHEDULER,
        _deciding_object(pod, found),
        victims_on(best, facts, pod.cluster_id) if best else (),
        higher,
    )


def _deciding_object(pod: Pod, found: PendingExplanation) -> DecidingObject | None:
    """Returns what decides, with its page. One query for a pod or a node."""
    kind, name = found.decided_kind, found.decided_by
    if kind is None or not name:
        return None
    cluster = reverse("cluster", args=[pod.cluster_id])
    page = ""
    if kind is DecidingKind.NODE:
        node = Node.objects.filter(cluster=pod.cluster_id, name=name).values_list("pk", flat=True).first()
        page = reverse("node", args=[node]) if node else _nodes_page(pod, state=state_key(NodeState.CORDONED))
    elif kind is DecidingKind.POD:
        namespace, _, its_name = name.partition("/")
        rows = Pod.objects.filter(cluster=pod.cluster_id, namespace=namespace, name=its_name)
        other = rows.values_list("pk", flat=True).first()
        page = reverse("pod", args=[other]) if other else ""
    elif kind is DecidingKind.LABEL:
        key = name.partition("=")[0]
        page = _nodes_page(pod, q=key if "/" in key else "")  # a key with a prefix is a selector
    elif kind is DecidingKind.NAMESPACE:
        page = namespace_page(pod.cluster_id, name)
    elif kind is DecidingKind.DEPLOYMENT:
        page = workload_page(pod.cluster_id, pod.namespace, f"{pod.owner_kind}/{pod.owner_name}")
    elif kind is DecidingKind.RESOURCE:
        page = f"{cluster}#free-gpus-title"
    elif kind in (DecidingKind.RESOURCE_CLAIM, DecidingKind.DEVICE_CLASS):
        page = f"{cluster}#dra-title"
    return DecidingObject(kind, name, page)


def _nodes_page(pod: Pod, **given: str) -> str:
    return f"{reverse('fleet')}?{NodeFilter(**given, choice={'cluster': (pod.cluster.name,)}).query()}"


def _instant(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _gpus(pod: Pod, *, now: datetime) -> tuple[list[HeldGpu], list[Unplaced]]:
    if pod.node is None or pod.phase in ENDED:
        return [], []
    there = allocations_on([pod.node], now=now)[pod.node.pk]
    held = [
        HeldGpu(board.index, board.uuid, board.product, allocation)
        for board in there.boards
        for allocation in board.allocations
        if allocation.pod.pk == pod.pk
    ]
    return held, [each for each in there.unplaced if each.pod.pk == pod.pk]


def _events(pod: Pod, user: User) -> QuerySet[ClusterEvent]:
    """Returns Events of the pod, and those of its visible direct owner in the pod's lifetime."""
    own = Q(about_uid=pod.uid)
    if pod.owner_uid and Workload.objects.visible_to(user).filter(cluster=pod.cluster_id, uid=pod.owner_uid).exists():
        own |= Q(about_uid=pod.owner_uid, last_at__gte=pod.created_at)
    return ClusterEvent.objects.filter(own, cluster=pod.cluster_id).order_by("-last_at", "-pk")
