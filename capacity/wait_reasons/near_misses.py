"""The nodes that a pod misses by least, and the funnel from all nodes to none. Pure."""

from collections.abc import Iterator, Mapping, Sequence

from capacity.wait_reasons.amounts import BY_NAME, amount_text, by_weight, main_resource
from capacity.wait_reasons.answers import FunnelStep, NearMiss
from capacity.wait_reasons.node_index import ComparedNode, NodeSet
from capacity.wait_reasons.obstacles import CPU, PODS, Obstacle, ObstacleKind, Obstacles, union
from gpu.resources import ResourceKind
from wording.numbers import count, either

BEFORE_AMOUNTS = (
    (ObstacleKind.TAINT, "Have no taint that the pod does not tolerate"),
    (ObstacleKind.CORDON, "Are not cordoned"),
    (ObstacleKind.PORT, "Have the host ports free"),
)
WITH_EMPTY_NODES = (
    (ObstacleKind.VOLUME_LIMIT, "May have as many volumes"),
    (ObstacleKind.VOLUME, "Reach its volumes"),
    (ObstacleKind.SPREAD_LABEL, "Have the labels of the topology spread"),
    (ObstacleKind.POD_AFFINITY, "Are near the GPU pods of its affinity"),
)
AFTER_AMOUNTS = (
    (ObstacleKind.VOLUME_LIMIT, "Have room for more volumes"),
    (ObstacleKind.SPREAD, "Are in a domain with few enough of these GPU pods"),
    (ObstacleKind.ANTI_AFFINITY, "Are apart from the pods of its anti-affinity"),
    (ObstacleKind.EXCLUSION, "No pod's anti-affinity excludes it"),
)

PARTS = ", as shares or slices"
LACKS: Mapping[ObstacleKind, str] = {
    ObstacleKind.CORDON: "it is cordoned",
    ObstacleKind.TAINT: "taint {}",
    ObstacleKind.SELECTOR: "label {}",
    ObstacleKind.AFFINITY: "the node affinity",
    ObstacleKind.PORT: "host port {}, in use",
    ObstacleKind.VOLUME: "the volume of claim {}",
    ObstacleKind.SPREAD_LABEL: "label {}",
    ObstacleKind.SPREAD: "room by its spread over {}",
    ObstacleKind.POD_AFFINITY: "pods of its affinity ({})",
    ObstacleKind.ANTI_AFFINITY: "distance from pods ({})",
    ObstacleKind.EXCLUSION: "distance from {}, by its anti-affinity",
}


def funnel_of(obstacles: Obstacles) -> list[FunnelStep]:
    """Returns how many nodes are left after each requirement that removes some, the most relevant first."""
    left = obstacles.index.every
    steps = [FunnelStep("Nodes in the cluster", left.bit_count(), 0)]

    def narrow(title: str, nodes: NodeSet) -> None:
        nonlocal left
        if removed := (left & nodes).bit_count():
            left &= ~nodes
            steps.append(FunnelStep(title, left.bit_count(), removed))

    for title, nodes in _requirements_on_nodes(obstacles):
        narrow(title, nodes)
    return steps


def _requirements_on_nodes(obstacles: Obstacles) -> Iterator[tuple[str, NodeSet]]:
    """Yields each requirement, and the nodes that do not satisfy it."""
    index, resource = obstacles.index, main_resource(obstacles)
    if resource:
        yield f"Offer {resource}", index.every & ~index.offering(resource)
    for each in obstacles.fixed:
        if each.kind is ObstacleKind.SELECTOR:
            yield f"Have the label {each.name}", each.nodes
        if each.kind is ObstacleKind.AFFINITY:
            yield "Match the node affinity", each.nodes
    every = (*obstacles.fixed, *obstacles.room)
    for kind, title in BEFORE_AMOUNTS:
        yield title, _nodes_of_kind(every, kind)
    amounts = [(name, amount) for name, amount in by_weight(obstacles.pod.requests) if name != PODS]
    for name, amount in amounts:
        yield f"Have {amount_text(name, amount)} in total", index.every & ~index.offering(name, amount)
    yield from ((title, _nodes_of_kind(obstacles.fixed, kind)) for kind, title in WITH_EMPTY_NODES)
    for name, amount in amounts:
        yield f"Have {amount_text(name, amount)} free", index.every & ~index.with_free(name, amount)
    if PODS in obstacles.pod.requests:
        yield f"Have {amount_text(PODS, 1)}", index.every & ~index.with_free(PODS, 1)
    yield from ((title, _nodes_of_kind(obstacles.room, kind)) for kind, title in AFTER_AMOUNTS)


def near_misses_of(obstacles: Obstacles) -> list[NearMiss]:
    """Returns the nodes with the fewest obstacles, those with the most free GPUs first."""
    nearest = obstacles.index.room(main_resource(obstacles) or CPU, _nearest_nodes(obstacles)).best
    return [NearMiss(node, list(_missing_requirements(obstacles, node))) for node in nearest]


def near_summary(obstacles: Obstacles) -> str:
    """Returns how many nodes lack only a little of the GPUs. Blank: none, or something else is missing, too."""
    resource = main_resource(obstacles)
    if not resource or not obstacles.candidates or obstacles.fitting:
        return ""
    others = union([each for each in obstacles.room if each.name != resource])
    nodes = obstacles.candidates & ~others
    if not nodes:
        return ""
    room = obstacles.index.room(resource, nodes)
    least, number = obstacles.pod.requests[resource] - room.most, room.with_most
    if not 0 < least < obstacles.pod.requests[resource]:
        return ""
    return f"{count(number, 'node')} {either(number, 'lacks', 'lack')} only {amount_text(resource, least)}."


def shares_summary(obstacles: Obstacles) -> str:
    """Returns how many nodes with enough GPUs offer only parts of GPUs, which Kubernetes counts alike. Blank: none."""
    resource, index = main_resource(obstacles), obstacles.index
    if not resource or BY_NAME.way(resource).kind is not ResourceKind.WHOLE:
        return ""
    amount = obstacles.pod.requests[resource]
    nodes = index.offering(resource, amount)
    number = (nodes & index.in_parts(resource)).bit_count()
    offer = either(number, "offers", "offer")
    total = f"{count(nodes.bit_count(), 'node')} with {amount_text(resource, amount)}"
    return f"{number} of {total} {offer} them as shares or slices of GPUs." if number else ""


def _nearest_nodes(obstacles: Obstacles) -> NodeSet:
    """Returns the nodes with the fewest obstacles, of those that offer the GPUs."""
    resource = main_resource(obstacles)
    left = obstacles.index.offering(resource) if resource else obstacles.index.every
    levels = [left]  # by number of obstacles: the nodes with that many
    for each in (*obstacles.fixed, *obstacles.room):
        kept = [level & ~each.nodes for level in levels]
        moved = [level & each.nodes for level in levels]
        levels = [
            (kept[place] if place < len(kept) else 0) | (moved[place - 1] if place else 0)
            for place in range(len(levels) + 1)
        ]
    return next((level for level in levels[1:] if level), 0)


def _missing_requirements(obstacles: Obstacles, node: ComparedNode) -> Iterator[str]:
    around = obstacles.index.neighbours
    for each in (*obstacles.fixed, *obstacles.room):
        if not obstacles.index.has(each.nodes, node):
            continue
        match each.kind:
            case ObstacleKind.SIZE | ObstacleKind.ROOM if each.name == PODS:
                yield f"room for one more pod: it has {node.requested.get(PODS, 0)} of {node.allocatable.get(PODS, 0)}"
            case ObstacleKind.SIZE:
                has, wanted = node.allocatable.get(each.name, 0), obstacles.pod.requests[each.name]
                yield f"{amount_text(each.name, has)} in total of {amount_text(each.name, wanted)}"
            case ObstacleKind.ROOM:
                wanted = obstacles.pod.requests[each.name]
                free = f"{amount_text(each.name, max(0, node.free(each.name)))} free of"
                yield f"{free} {amount_text(each.name, wanted)}{PARTS if each.name in node.parts else ''}"
            case ObstacleKind.VOLUME_LIMIT if around and around.volumes:
                used = around.volumes[each.name].text(node.name)
                yield f"room for more volumes of {each.name}: it has {used}"
            case kind:
                yield LACKS[kind].format(each.name)


def _nodes_of_kind(obstacles: Sequence[Obstacle], kind: ObstacleKind) -> NodeSet:
    return union([each for each in obstacles if each.kind is kind])
