"""The changes after which a pod fits, found by leaving out one obstacle, or two. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import combinations

from capacity.wait_reasons.amounts import amount_text, main_resource
from capacity.wait_reasons.answers import Actor, Change
from capacity.wait_reasons.node_index import NodeSet
from capacity.wait_reasons.obstacles import (
    CPU,
    MEMORY,
    PODS,
    RULES_OF_OTHERS,
    Obstacle,
    ObstacleKind,
    Obstacles,
    find_obstacles,
    union,
)
from capacity.wait_reasons.requirements import PodToleration
from gpu.labels import AUTOSCALER_GOING, KARPENTER_GOING

CHANGES_AT_MOST = 6
SET_BY_KUBERNETES = "node.kubernetes.io/"
LEAST_PART = {CPU: 16, MEMORY: 16}  # of the request: with less the pod would hardly run. Ours
PAIRS_AT_MOST = 40  # obstacles that are compared in pairs

RELAX_SPREAD = "Set whenUnsatisfiable of the spread over {} to ScheduleAnyway."
RULE_CHANGES: Mapping[ObstacleKind, tuple[str, Actor]] = {
    ObstacleKind.PORT: ("Remove the host port {} from the pod template.", Actor.OWNER),
    ObstacleKind.VOLUME: ("Use a claim whose volume these nodes reach, in place of {}.", Actor.OWNER),
    ObstacleKind.VOLUME_LIMIT: ("Use fewer volumes of {} in the pod template.", Actor.OWNER),
    ObstacleKind.SPREAD: (RELAX_SPREAD, Actor.OWNER),
    ObstacleKind.SPREAD_LABEL: (RELAX_SPREAD, Actor.OWNER),
    ObstacleKind.POD_AFFINITY: ("Make the pod affinity ({}) preferred, not required.", Actor.OWNER),
    ObstacleKind.ANTI_AFFINITY: ("Make the pod anti-affinity ({}) preferred, not required.", Actor.OWNER),
    ObstacleKind.EXCLUSION: (
        "Make the anti-affinity of {} preferred, not required: it excludes this pod.", Actor.ADMIN
    ),
}  # fmt: skip


# By the key of a taint that a controller sets and removes: a pod that tolerates it starts too early, or on a node that
# goes. karpenter.sh/docs/concepts/nodepools and …/disruption; kubernetes.io/docs/reference/labels-annotations-taints.
TAINTS_OF_CONTROLLERS: Mapping[str, str] = {
    "karpenter.sh/unregistered": "Wait: Karpenter removes its taint once {} has registered.",
    "node.cloudprovider.kubernetes.io/uninitialized": "Wait: the cloud controller removes its taint from {}.",
    **dict.fromkeys(KARPENTER_GOING, "Wait for other nodes: Karpenter removes {}."),
    **dict.fromkeys(AUTOSCALER_GOING, "Wait for other nodes: the cluster autoscaler removes {}."),
}


def helpful_changes(obstacles: Obstacles) -> list[Change]:
    """Returns the single changes after which the pod fits, the most helpful first; else pairs of changes."""
    now, later = obstacles.sole([*obstacles.fixed, *obstacles.room]), obstacles.sole(obstacles.fixed)
    candidates = obstacles.candidates
    found = [
        change
        if change.fits_later
        else _counted(change, _without(obstacles, each, now.get(each, 0)), nodes | candidates)
        for each, nodes in later.items()
        if not _are_only_parts(obstacles, nodes) and (change := _change(obstacles, each, nodes))
    ]
    found += [
        _counted(change, _without(obstacles, each, nodes), candidates)
        for each, nodes in now.items()
        if (each.kind in RULES_OF_OTHERS or each.name == PODS) and (change := _change(obstacles, each, nodes))
    ]
    found.sort(key=lambda change: (-change.fits_now, -change.fits_later, change.actor is not Actor.OWNER))
    waiting = candidates.bit_count()
    wait = [Change("Wait until other pods end.", Actor.NOBODY, 0, waiting)] if waiting else []
    more = [Change("Add nodes like these.", Actor.ADMIN)] if waiting else []
    slight, drastic = _smaller_requests(obstacles)
    corrections = list(_corrections(obstacles))
    helpful = [*slight, *found, *drastic]
    at_once = sorted([each for each in helpful if each.fits_now], key=lambda change: change.actor is not Actor.OWNER)
    counted = dict.fromkeys([*corrections, *at_once, *wait, *_moves(obstacles), *helpful])
    return [*list(counted)[: CHANGES_AT_MOST - len(more)], *more] or _two_changes(obstacles)


def _are_only_parts(obstacles: Obstacles, nodes: NodeSet) -> bool:
    """Tells whether these nodes have only shares or slices for a pod that requests several GPUs.

    Several shares are no more than one: they may be of one GPU (NVIDIA/k8s-device-plugin, README, "With CUDA
    Time-Slicing").
    """
    resource = main_resource(obstacles)
    if not resource or obstacles.pod.requests[resource] < 2:
        return False
    parts = obstacles.index.in_parts(resource)
    return not nodes & ~parts and not obstacles.candidates & parts


def _counted(change: Change, now: NodeSet, later: NodeSet) -> Change:
    return replace(change, fits_now=now.bit_count(), fits_later=later.bit_count())


def _without(obstacles: Obstacles, obstacle: Obstacle, now: NodeSet) -> NodeSet:
    """Returns the nodes that fit without an obstacle. Which nodes a spread counts depends on the other requirements."""
    pod = obstacles.pod
    if not (now and pod.rules.spread):
        return now
    match obstacle.kind:
        case ObstacleKind.SELECTOR:
            changed = replace(pod, selector=tuple(each for each in pod.selector if each.text != obstacle.name))
        case ObstacleKind.AFFINITY:
            changed = replace(pod, terms=())
        case ObstacleKind.TAINT:
            (taint,) = (each for each in obstacles.index.tainted if each.text == obstacle.name)
            tolerated = PodToleration(taint.key, "Equal", taint.value, taint.effect)
            changed = replace(pod, tolerations=(*pod.tolerations, tolerated))
        case ObstacleKind.SPREAD | ObstacleKind.SPREAD_LABEL:
            spread = tuple(each for each in pod.rules.spread if each.key != obstacle.name)
            changed = replace(pod, rules=replace(pod.rules, spread=spread))
        case _:
            return now
    return now & find_obstacles(changed, obstacles.index).fitting


def _change(obstacles: Obstacles, obstacle: Obstacle, nodes: NodeSet) -> Change | None:
    """Returns the change that removes an obstacle from these nodes. None: there is none."""
    named = obstacles.index.named(nodes)
    match obstacle.kind:
        case ObstacleKind.CORDON:
            return Change(f"Uncordon {named}.", Actor.ADMIN)
        case ObstacleKind.TAINT if its_controller := _controller_of(obstacle.name):
            return Change(its_controller.format(named), Actor.NOBODY)
        case ObstacleKind.TAINT if obstacle.name.startswith(SET_BY_KUBERNETES):
            return Change(f"Repair {named}. Kubernetes sets the taint {obstacle.name}.", Actor.ADMIN)
        case ObstacleKind.TAINT:
            return Change(f"Tolerate the taint {obstacle.name} in the pod template.", Actor.OWNER)
        case ObstacleKind.SELECTOR:
            return Change(f"Remove {obstacle.name} from the node selector.", Actor.OWNER)
        case ObstacleKind.AFFINITY:
            return Change(f"Change the node affinity ({obstacle.name}).", Actor.OWNER)
        case ObstacleKind.ROOM if obstacle.name == PODS:
            return Change(f"Raise maxPods of the kubelet on {named}.", Actor.ADMIN)
        case ObstacleKind.SIZE:
            return _smaller(obstacles, obstacle, nodes)
        case kind if kind in RULE_CHANGES:
            text, actor = RULE_CHANGES[kind]
            return Change(text.format(obstacle.name), actor)
    return None


def _controller_of(taint: str) -> str:
    """Returns the advice on a taint that a controller removes. Blank: no controller is known to."""
    return TAINTS_OF_CONTROLLERS.get(taint.partition(":")[0].partition("=")[0], "")


def _smaller(obstacles: Obstacles, obstacle: Obstacle, nodes: NodeSet) -> Change | None:
    """Returns the request that the largest of these nodes can hold. None: they have none of it."""
    index, name = obstacles.index, obstacle.name
    most = index.largest(name, nodes)
    if most <= 0:
        return None
    return _request(obstacles, name, most)


def _request(obstacles: Obstacles, name: str, most: int) -> Change:
    """Returns the change to a smaller amount, with every node that then fits."""
    index = obstacles.index
    others = union([each for each in obstacles.fixed if (each.kind, each.name) != (ObstacleKind.SIZE, name)])
    later = index.offering(name, most) & ~others
    now = later & index.with_free(name, most) & ~union([each for each in obstacles.room if each.name != name])
    text = f"Request at most {amount_text(name, most)} per pod."
    return Change(text, Actor.OWNER, now.bit_count(), later.bit_count())


def _largest(obstacles: Obstacles, obstacle: Obstacle, nodes: NodeSet) -> NodeSet:
    """Returns the nodes that a smaller request opens; every node for an obstacle of another kind."""
    if obstacle.kind is not ObstacleKind.SIZE:
        return obstacles.index.every
    return obstacles.index.offering(obstacle.name, obstacles.index.largest(obstacle.name, nodes))


def _corrections(obstacles: Obstacles) -> Iterator[Change]:
    """Yields misspelt labels of the node selector, where nodes with the nearest spelling qualify."""
    index = obstacles.index
    for label in obstacles.pod.selector:
        near = index.nearest_value(label.key, label.values[0])
        others = union([each for each in obstacles.fixed if each.name != label.text])
        later = index.values_of(label.key)[near] & ~others if near else 0
        if later:
            now = later & ~union(obstacles.room)
            if now and obstacles.pod.rules.spread:
                corrected = replace(label, values=(near,))
                selector = tuple(corrected if each is label else each for each in obstacles.pod.selector)
                now &= find_obstacles(replace(obstacles.pod, selector=selector), index).fitting
            yield _counted(Change(f"Correct the label to {label.key}={near}.", Actor.OWNER), now, later)


def _moves(obstacles: Obstacles) -> list[Change]:
    """Returns the node that needs the fewest GPUs freed, where enough GPUs are free on other nodes."""
    resource, nodes = _nodes_lacking_only_gpus(obstacles)
    if not nodes:
        return []
    room = obstacles.index.room(resource, nodes)
    lacks, elsewhere = obstacles.pod.requests[resource] - room.most, room.total - max(0, room.most)
    if not 0 < lacks <= elsewhere:
        return []
    name = room.best[0].name
    text = f"Move pods with {amount_text(resource, lacks)} from {name} to other nodes: {elsewhere} are free there."
    return [Change(text, Actor.ADMIN, 0, 1)]


def _smaller_requests(obstacles: Obstacles) -> tuple[list[Change], list[Change]]:
    """Returns the largest requests that fit now, one for each amount that alone is too large: those of at least half
    of the pod's request, and the others."""
    slight, drastic = list[Change](), list[Change]()
    every = (*obstacles.fixed, *obstacles.room)
    sized = {each.name for each in every if each.kind in (ObstacleKind.SIZE, ObstacleKind.ROOM)}
    for name, asked in obstacles.pod.requests.items():
        nodes = obstacles.index.every & ~union([each for each in every if each.name != name])
        if name == PODS or name not in sized or not nodes:
            continue
        most = obstacles.index.largest(name, nodes, is_free=True)
        if 0 < most < asked and (name not in LEAST_PART or LEAST_PART[name] * most >= asked):
            (slight if 2 * most >= asked else drastic).append(_request(obstacles, name, most))
    return slight, drastic


def _nodes_lacking_only_gpus(obstacles: Obstacles) -> tuple[str, NodeSet]:
    """Returns the GPU resource, and the nodes that have everything else free."""
    resource = main_resource(obstacles)
    others = union([each for each in obstacles.room if each.name != resource])
    return resource, obstacles.candidates & ~others if resource else 0


def _two_changes(obstacles: Obstacles) -> list[Change]:
    fixed = obstacles.fixed[:PAIRS_AT_MOST]
    rest = union(obstacles.fixed[PAIRS_AT_MOST:])
    best: tuple[int, NodeSet, Obstacle, Obstacle] | None = None
    for a, b in combinations(fixed, 2):
        others = union([each for each in fixed if each is not a and each is not b]) | rest
        nodes = a.nodes & b.nodes & ~others
        if (number := nodes.bit_count()) and (best is None or number > best[0]):
            best = (number, nodes, a, b)
    if best is None:
        return []
    _, nodes, a, b = best
    found = list[Change]()
    for each in (a, b):
        if change := _change(obstacles, each, nodes):
            found.append(change)
            nodes &= _largest(obstacles, each, nodes)
    if len(found) < 2:
        return []
    is_admins = Actor.ADMIN in {change.actor for change in found}
    text = f"Two changes are needed. {found[0].text} {found[1].text}"
    return [Change(text, Actor.ADMIN if is_admins else Actor.OWNER, 0, nodes.bit_count())]
