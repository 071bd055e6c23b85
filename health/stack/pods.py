"""The reasons why tenants' pods do not run, from rows: their status, Events, claims, and the room on nodes."""

import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property, lru_cache
from threading import Lock
from typing import Any, NamedTuple, Self

from django.db.models import Count, IntegerField, Max
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce

from fleet.models import (
    Bookmark,
    ClusterEvent,
    DeviceClass,
    DriverObject,
    Node,
    Operand,
    Pod,
    ResourceClaim,
    ResourceSlice,
)
from fleet.pod_reasons import PodReason
from gpu.labels import DEPLOY_PREFIX
from gpu.operands import COMPUTE_DOMAIN
from gpu.resources import is_gpu_resource
from health.stack.causes import Cause, ClaimSigns, Event, FreeRoom, PodSigns, Signs, Weight, cause_in_log, waiting_rule
from health.stack.causes.base import DRIVERS, CauseRule
from health.stack.causes.entries import entry
from health.stack.node_rows import read_stack
from health.stack.rows import StackRows
from health.stack.signs import pod_signs, signs_of
from kube.log_lines import decisive_line, other_lines
from kube.resources import RESOURCE_SLICES

RECENT = timedelta(minutes=30)  # age limit of Events: kubelet and scheduler repeat an Event while the problem persists
ENOUGH = 1000  # Events that are read at once
NODES_AT_MOST = 5  # nodes whose GPU stack is read to explain waiting pods
AT_ONCE = 500  # keys in one query
LOG_LINES = 20  # lines about failures of a log, the heaviest first
PLACED_SINCE = frozenset({"FailedScheduling", "NotTriggerScaleUp", "Unschedulable"})  # over once a pod has a node
WHOLE = "/gpu"
# Nodes with room are read once for all pages that ask together, and the rules of pods that are alike are remembered.
KEPT_S, OFFERS_AT_MOST, RULES_AT_MOST = 3, 64, 256
_lock = Lock()
_kept: dict[tuple[int, str], tuple[float, Sequence["NodesWithRoom"]]] = {}  # with the time, monotonic
DOMAIN_NOT_READY = entry("compute_domain_not_ready")


def reasons(pods: Sequence[Pod], now: datetime) -> Mapping[str, PodReason]:
    """Returns why tenants' pods do not run. No query if all run; else three, and more for some waits."""
    by_cluster: dict[int, list[Pod]] = defaultdict(list)
    for pod in pods:
        if is_troubled(pod):
            by_cluster[pod.cluster_id].append(pod)
    found = (
        (pod.uid, cause)
        for cluster_id, mine in by_cluster.items()
        for pod, cause in causes_of(cluster_id, mine, now=now)
    )
    return {uid: _reason(cause) for uid, cause in found}


def reason_in_log(pod: Pod, container: str, lines: Sequence[str], *, now: datetime) -> PodReason | None:
    """Returns the cause that the lines of a tenant's log name. None: they name no known one.

    A program that runs may have failed long ago, or have survived the error: the pod's own reason is another matter.
    """
    telling = [*filter(None, [decisive_line(lines)]), *other_lines(lines, LOG_LINES)]
    if pod.operand or not telling:
        return None
    signs = _PodSurroundings(pod.cluster_id, [pod], now).signs_of(pod)
    read = PodSigns(str(pod), phase=pod.phase, container=container, log=telling[::-1], restarts=pod.restarts)
    cause = cause_in_log(replace(signs, pod=read, asks=_asked_by_container(pod, container)))
    return _reason(cause) if cause else None


def _asked_by_container(pod: Pod, container: str) -> tuple[str, ...]:
    """Returns what a container of the pod asks for: nothing if the devices are of its other containers."""
    return () if container in pod.container_settings.get("without_gpus", []) else tuple(pod.resources)


def is_troubled(pod: Pod) -> bool:
    """Returns whether something may explain why the pod does not run."""
    return not pod.operand and pod.phase != "Succeeded" and not (pod.is_ready and not pod.deleted_at)


def causes_of(cluster_id: int, pods: Sequence[Pod], *, now: datetime) -> Iterator[tuple[Pod, Cause]]:
    around = _PodSurroundings(cluster_id, pods, now)
    for pod in pods:
        signs = around.signs_of(pod)
        rule = _rule_of(_AlikeSigns.of(signs))
        if cause := rule(signs) if rule else None:
            yield pod, cause


@dataclass(frozen=True)
class _AlikeSigns:
    """The signs of pods that differ in their names alone, as most pods of one owner do."""

    text: str
    signs: Signs = field(compare=False)

    @classmethod
    def of(cls, signs: Signs) -> Self:
        nameless = replace(signs, pod=replace(signs.pod, name="")) if signs.pod else signs
        return cls(repr(nameless), signs)


@lru_cache(maxsize=RULES_AT_MOST)
def _rule_of(alike: _AlikeSigns) -> CauseRule | None:
    return waiting_rule(alike.signs)


def _reason(cause: Cause) -> PodReason:
    is_wrong = cause.weight is Weight.WRONG
    return PodReason(
        cause.key, cause.sentence, cause.action, cause.quote, is_wrong, cause.title, cause.summary, cause.steps,
        cause.said,
    )  # fmt: skip


@dataclass
class _PodSurroundings:
    """The rows around these pods; each kind is read when the first pod needs it."""

    cluster_id: int
    pods: Sequence[Pod]
    now: datetime
    _rooms: dict[tuple[str, int], FreeRoom] = field(default_factory=dict)  # pods of one owner ask for the same
    _stacks: dict[int, Mapping[str, Cause]] = field(default_factory=dict)

    def signs_of(self, pod: Pod) -> Signs:
        given = replace(pod_signs(pod, None, self.rows), events=self._events_of(pod))
        node = self._nodes.get(pod.node_id or 0)
        signs = signs_of(node, "", None) if node else Signs("", "", pod.node_name, {}, is_gpu_node=False)
        signs = replace(signs, has_operator=self.has_operator, is_placed=bool(pod.node_name), pod=given)
        if signs.is_placed:
            return replace(
                signs, behind=self._domain_of(node, signs), asks=_asked_by_container(pod, pod.stuck_container)
            )
        claims = self._claims_of(pod)
        room = self._room_for(pod) if pod.resources and not claims else None
        behind = next((found for claim in claims if (found := self._behind(claim))), None)
        asks = (*pod.resources, *(claim.driver for claim in claims if claim.driver))
        return replace(signs, claims=claims, room=room, behind=behind, asks=asks)

    @cached_property
    def _nodes(self) -> Mapping[int, Node]:
        ids = sorted({pod.node_id for pod in self.pods if pod.node_id})
        starts = range(0, len(ids), AT_ONCE)
        return {row.pk: row for start in starts for row in Node.objects.filter(pk__in=ids[start : start + AT_ONCE])}

    @cached_property
    def rows(self) -> StackRows:
        return StackRows([], [], [], [], self.now)

    @cached_property
    def has_operator(self) -> bool:
        if DriverObject.objects.filter(cluster=self.cluster_id).exists():
            return True
        selectors = Operand.objects.filter(cluster=self.cluster_id).values_list("node_selector", flat=True)
        return any(key.startswith(DEPLOY_PREFIX) for selector in selectors for key in selector)

    def _events_of(self, pod: Pod) -> list[Event]:
        events = self._events.get(pod.uid, [])
        return [event for event in events if not (pod.node_name and event.reason in PLACED_SINCE)]

    @cached_property
    def _events(self) -> Mapping[str, list[Event]]:
        """Returns the Events by UID, the newest first."""
        found: dict[str, list[Event]] = defaultdict(list)
        uids = [pod.uid for pod in self.pods]
        for start in range(0, len(uids), AT_ONCE):
            about = ClusterEvent.objects.filter(
                cluster=self.cluster_id, about_uid__in=uids[start : start + AT_ONCE], is_warning=True,
                last_at__gte=self.now - RECENT,
            )  # fmt: skip
            for event in about.order_by("-last_at", "-pk")[:ENOUGH]:
                found[event.about_uid].append(Event(event.reason, event.message, event.last_at))
        return found

    def _room_for(self, pod: Pod) -> FreeRoom | None:
        """Returns the room for the resource that is hardest to place."""
        rooms = [self._room(name, asks) for name, asks in pod.resources.items() if asks and is_gpu_resource(name)]
        return min(rooms, key=lambda room: room.most - room.asks, default=None)

    def _room(self, name: str, asks: int) -> FreeRoom:
        if (name, asks) not in self._rooms:
            self._rooms[name, asks] = self._free_room(name, asks)
        return self._rooms[name, asks]

    def _free_room(self, name: str, asks: int) -> FreeRoom:
        nodes = offers_of(self.cluster_id, name)
        most, node = max(((each.free, each.node) for each in nodes), default=(0, ""))
        return FreeRoom(
            noun="GPU" if name.endswith(WHOLE) else name,
            asks=asks,
            free=sum(each.free * each.number for each in nodes),
            most=most,
            node=node if most else "",
            largest=max((each.has for each in nodes), default=0),
        )

    def _claims_of(self, pod: Pod) -> tuple[ClaimSigns, ...]:
        rows = [self._claims[pod.namespace, name] for name in pod.claims if (pod.namespace, name) in self._claims]
        return tuple(self._claim(row) for row in rows)

    def _claim(self, row: ResourceClaim) -> ClaimSigns:
        asked = next((wish["device_class"] for wish in row.requests if wish.get("device_class")), "")
        driver = self._driver_of(asked)
        is_published = driver in self._publishers if self._sees_slices else True
        return ClaimSigns(row.name, driver, bool(row.allocated), is_published)

    def _driver_of(self, device_class: str) -> str:
        """Returns the driver from the class's selectors, else from its name, which known drivers share."""
        written = " ".join(self._classes.get(device_class, ()))
        names = (driver for driver in DRIVERS if f"'{driver}'" in written or f'"{driver}"' in written)
        return next(names, device_class if device_class in DRIVERS else "")

    @cached_property
    def _claims(self) -> Mapping[tuple[str, str], ResourceClaim]:
        names = sorted({name for pod in self.pods if not pod.node_name for name in pod.claims})
        rows = (
            row
            for start in range(0, len(names), AT_ONCE)
            for row in ResourceClaim.objects.filter(cluster=self.cluster_id, name__in=names[start : start + AT_ONCE])
        )
        return {(row.namespace, row.name): row for row in rows}

    @cached_property
    def _classes(self) -> Mapping[str, Collection[str]]:
        return dict(DeviceClass.objects.filter(cluster=self.cluster_id).values_list("name", "selectors"))

    @cached_property
    def _publishers(self) -> frozenset[str]:
        slices = ResourceSlice.objects.filter(cluster=self.cluster_id).exclude(devices=[])
        return frozenset(slices.order_by().values_list("driver", flat=True).distinct())

    @cached_property
    def _sees_slices(self) -> bool:
        marks = Bookmark.objects.filter(cluster=self.cluster_id, kind=RESOURCE_SLICES.name, listed_at__isnull=False)
        return marks.exists()

    def _behind(self, claim: ClaimSigns) -> Cause | None:
        """Returns why a claim's DRA driver publishes nothing, if one of its pods says so."""
        if claim.is_allocated or claim.is_published or not claim.driver:
            return None
        pods = Pod.objects.filter(cluster=self.cluster_id, operand=DRIVERS[claim.driver], node__isnull=False)
        nodes = (pod.node for pod in pods.select_related("node").order_by("pk")[:NODES_AT_MOST])
        stacks = (self._stack(node).get(DRIVERS[claim.driver]) for node in nodes if node)
        return next((cause for cause in stacks if cause), None)

    def _domain_of(self, node: Node | None, signs: Signs) -> Cause | None:
        """Returns why a ComputeDomain's daemon is not ready on the node of a waiting pod."""
        if node is None or DOMAIN_NOT_READY.match(signs.all_lines()) is None:
            return None
        return self._stack(node).get(COMPUTE_DOMAIN)

    def _stack(self, node: Node) -> Mapping[str, Cause]:
        """Returns by operand why it fails; empty if the node is no longer read."""
        if node.pk not in self._stacks and len(self._stacks) >= NODES_AT_MOST:
            return {}
        if node.pk not in self._stacks:
            self._stacks[node.pk] = {
                row.operand: row.cause for row in read_stack(node, now=self.now).operands if row.cause
            }
        return self._stacks[node.pk]


class NodesWithRoom(NamedTuple):
    """Nodes that offer as much of a resource as each other, and have as much of it left."""

    has: int
    free: int
    number: int
    node: str  # one of them


def offers_of(cluster_id: int, name: str) -> Sequence[NodesWithRoom]:
    """Returns the nodes that accept pods and offer a resource, as they were at most `KEPT_S` before. One query."""
    with _lock:
        at, kept = _kept.get((cluster_id, name), (0.0, ()))
    if at and time.monotonic() - at < KEPT_S:
        return kept
    at, read = time.monotonic(), _read_offers(cluster_id, name)
    with _lock:
        _kept[cluster_id, name] = at, read
        while len(_kept) > OFFERS_AT_MOST:
            _kept.pop(min(_kept, key=lambda key: _kept[key][0]))
    return read


def forget_kept() -> None:
    _rule_of.cache_clear()
    with _lock:
        _kept.clear()


def _read_offers(cluster_id: int, name: str) -> Sequence[NodesWithRoom]:
    nodes = Node.objects.filter(cluster=cluster_id, is_ready=True, is_unschedulable=False).with_gpus()
    amounts: Any = (
        nodes.filter(allocatable__has_key=name)
        .annotate(has=_amount_column(name, "allocatable"), taken=Coalesce(_amount_column(name, "requested"), 0))
        .order_by()
        .values_list("has", "taken")
    )
    groups = amounts.annotate(Count("pk"), Max("name"))
    return [NodesWithRoom(has, max(0, has - taken), number, node) for has, taken, number, node in groups]


def _amount_column(name: str, column: str) -> Cast:
    return Cast(KeyTextTransform(name, column), IntegerField())
