"""The obstacles between a pod and the nodes of its cluster, in the order in which kube-scheduler filters. Pure.

An obstacle is one label of the node selector, the node affinity, one taint, the cordon, one resource, or one rule about
other pods. Each has the set of nodes that it keeps from the pod, whatever the others do.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, reduce
from operator import or_

from capacity.wait_reasons import scheduler_message
from capacity.wait_reasons.device_requests import PREFIX as DEVICES
from capacity.wait_reasons.node_index import CORDON_KEY, NodeIndex, NodeSet, union_of
from capacity.wait_reasons.pod_volumes import ZONE_LABELS
from capacity.wait_reasons.requirements import NodeTaint, WaitingPod
from capacity.wait_reasons.rule_nodes import (
    RuleNodes,
    beyond_volume_limits,
    excluded_by_pods,
    far_from_pods,
    is_far_from_unknown_pods,
    near_pods,
    with_ports_in_use,
    with_too_many_pods,
    without_topology_labels,
)

CORDON_TAINT = NodeTaint(CORDON_KEY, "", "NoSchedule")
CPU, MEMORY, PODS = "cpu", "memory", "pods"


class ObstacleKind(StrEnum):
    CORDON = "cordon"
    TAINT = "taint"
    SELECTOR = "selector"
    AFFINITY = "affinity"
    SIZE = "size"  # the node never has as much
    ROOM = "room"  # others have it now
    PORT = "port"  # a pod there has the host port
    VOLUME = "volume"  # the node does not reach it
    VOLUME_LIMIT = "volume limit"  # its CSI driver permits no more volumes on the node
    SPREAD_LABEL = "spread label"  # the node has no domain
    SPREAD = "spread"  # its domain has too many of the pods
    POD_AFFINITY = "pod affinity"  # the pods that the pod must be near are elsewhere
    ANTI_AFFINITY = "anti-affinity"  # pods that the pod must be apart from are near
    EXCLUSION = "exclusion"  # the anti-affinity of a pod there


# Obstacles made by other pods: they may end with these pods.
RULES_OF_OTHERS = (
    ObstacleKind.PORT, ObstacleKind.VOLUME_LIMIT, ObstacleKind.SPREAD, ObstacleKind.ANTI_AFFINITY,
    ObstacleKind.EXCLUSION,
)  # fmt: skip


@dataclass(frozen=True)
class Obstacle:
    kind: ObstacleKind
    name: str  # the label, taint, resource, port, topology or pod
    nodes: NodeSet  # nodes that the obstacle excludes
    detail: str = ""


@dataclass(frozen=True)
class Obstacles:
    pod: WaitingPod
    index: NodeIndex
    fixed: Sequence[Obstacle]  # that stay until somebody changes the pod or a node
    room: Sequence[Obstacle]  # that go when other pods end

    @cached_property
    def candidates(self) -> NodeSet:
        """Returns the nodes on which the pod fits once they are empty."""
        return self.index.every & ~union(self.fixed)

    @cached_property
    def fitting(self) -> NodeSet:
        """Returns the nodes on which the pod fits now."""
        return self.candidates & ~union(self.room)

    @cached_property
    def with_room(self) -> NodeSet:
        """Returns the candidates that have all resources free."""
        return self.candidates & ~union([each for each in self.room if each.kind is ObstacleKind.ROOM])

    def sole(self, obstacles: Sequence[Obstacle]) -> Mapping[Obstacle, NodeSet]:
        """Returns the nodes that only one of these obstacles keeps from the pod."""
        once = twice = 0
        for each in obstacles:
            twice |= once & each.nodes
            once |= each.nodes
        return {each: found for each in obstacles if (found := each.nodes & once & ~twice)}

    def counted_as_scheduler(self) -> dict[str, int]:
        """Returns the nodes by their first failing filter, as kube-scheduler counts them."""
        left, counts = self.index.every, dict[str, int]()
        by_kind = (
            (scheduler_message.CORDON, (ObstacleKind.CORDON,)),
            (scheduler_message.TAINT, (ObstacleKind.TAINT,)),
            (scheduler_message.AFFINITY, (ObstacleKind.SELECTOR, ObstacleKind.AFFINITY)),
            (scheduler_message.PORTS, (ObstacleKind.PORT,)),
        )
        after = (
            (scheduler_message.VOLUMES_PER_NODE, (ObstacleKind.VOLUME_LIMIT,)),
            (scheduler_message.VOLUME, (ObstacleKind.VOLUME,)),
            (scheduler_message.SPREAD, (ObstacleKind.SPREAD_LABEL, ObstacleKind.SPREAD)),
            (
                scheduler_message.POD_AFFINITY,
                (ObstacleKind.POD_AFFINITY, ObstacleKind.ANTI_AFFINITY, ObstacleKind.EXCLUSION),
            ),
        )
        obstacles = (*self.fixed, *self.room)

        def reject(by_kind: Iterable[tuple[str, tuple[ObstacleKind, ...]]]) -> None:
            nonlocal left
            for name, kinds in by_kind:
                rejected = left & union([each for each in obstacles if each.kind in kinds])
                left &= ~rejected
                counts[name] = rejected.bit_count()

        reject(by_kind)
        sized = [each for each in obstacles if each.kind in (ObstacleKind.SIZE, ObstacleKind.ROOM)]
        amounts = [each for each in sized if not each.name.startswith(DEVICES)]
        for each in amounts:
            kind = f"resource:{each.name}"
            counts[kind] = counts.get(kind, 0) + (left & each.nodes).bit_count()
        left &= ~union(amounts)
        reject(after)
        if rejected := left & union([each for each in sized if each.name.startswith(DEVICES)]):
            counts[scheduler_message.CLAIM] = rejected.bit_count()
        return {name: number for name, number in counts.items() if number}


def union(obstacles: Sequence[Obstacle]) -> NodeSet:
    return reduce(or_, (each.nodes for each in obstacles), 0)


def find_obstacles(pod: WaitingPod, index: NodeIndex) -> Obstacles:
    """Returns the obstacles of a pod. Those that keep no node from it are left out."""
    size = [
        Obstacle(ObstacleKind.SIZE, name, index.every & ~index.offering(name, n)) for name, n in pod.requests.items()
    ]
    room = [
        Obstacle(ObstacleKind.ROOM, name, index.offering(name, n) & ~index.with_free(name, n))
        for name, n in pod.requests.items()
    ]
    taints, labels = _taints(pod, index), [*_labels(pod, index), _affinity(pod, index)]
    fixed = [_cordon(pod, index), *taints, *labels, *size]
    fixed += _volumes(pod, index)
    if index.neighbours is not None:
        around = index.neighbours
        fixed += _obstacles_of_kind(ObstacleKind.SPREAD_LABEL, without_topology_labels(pod, index))
        if not is_far_from_unknown_pods(pod, around):
            fixed += _obstacles_of_kind(ObstacleKind.POD_AFFINITY, far_from_pods(pod, index, around))
        allowed, untainted = index.every & ~union(labels), index.every & ~union(taints)
        full = with_too_many_pods(pod, index, around, allowed=allowed, untainted=untainted)
        room += _obstacles_of_kind(ObstacleKind.PORT, with_ports_in_use(pod, index, around))
        for too_low, full_nodes in beyond_volume_limits(pod, index, around):
            fixed += _obstacles_of_kind(ObstacleKind.VOLUME_LIMIT, [too_low])
            room += _obstacles_of_kind(ObstacleKind.VOLUME_LIMIT, [full_nodes])
        room += _obstacles_of_kind(ObstacleKind.SPREAD, full)
        room += _obstacles_of_kind(ObstacleKind.ANTI_AFFINITY, near_pods(pod, index, around))
        room += _obstacles_of_kind(ObstacleKind.EXCLUSION, excluded_by_pods(pod, index, around))
    return Obstacles(pod, index, [each for each in fixed if each.nodes], [each for each in room if each.nodes])


def _volumes(pod: WaitingPod, index: NodeIndex) -> list[Obstacle]:
    found = []
    for each in pod.volumes or ():
        reached = index.matching_any(each.terms) if each.terms else index.every
        if each.zones:
            reached &= index.matching_any([each.zones]) | (index.every & ~union_of(map(index.having, ZONE_LABELS)))
        found.append(Obstacle(ObstacleKind.VOLUME, each.claim, index.every & ~reached, each.text))
    return found


def _obstacles_of_kind(kind: ObstacleKind, found: Iterable[RuleNodes]) -> list[Obstacle]:
    return [Obstacle(kind, each.name, each.nodes, each.detail) for each in found]


def _cordon(pod: WaitingPod, index: NodeIndex) -> Obstacle:
    is_tolerated = any(each.tolerates(CORDON_TAINT) for each in pod.tolerations)
    return Obstacle(ObstacleKind.CORDON, "", 0 if is_tolerated else index.cordoned)


def _taints(pod: WaitingPod, index: NodeIndex) -> list[Obstacle]:
    return [
        Obstacle(ObstacleKind.TAINT, taint.text, nodes)
        for taint, nodes in index.tainted.items()
        if not any(each.tolerates(taint) for each in pod.tolerations)
    ]


def _labels(pod: WaitingPod, index: NodeIndex) -> list[Obstacle]:
    return [Obstacle(ObstacleKind.SELECTOR, each.text, index.every & ~index.matching(each)) for each in pod.selector]


def _affinity(pod: WaitingPod, index: NodeIndex) -> Obstacle:
    if not pod.terms:
        return Obstacle(ObstacleKind.AFFINITY, "", 0)
    only = ", ".join(each.text for each in pod.terms[0]) or "an empty term"
    name = only if len(pod.terms) == 1 else f"{len(pod.terms)} terms"
    return Obstacle(ObstacleKind.AFFINITY, name, index.every & ~index.matching_any(pod.terms))
