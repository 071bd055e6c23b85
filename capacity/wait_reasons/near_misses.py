"""The nodes that a pod misses by least, and the funnel from all nodes to none. Pure."""

from collections.abc import Iterator, Sequence

from capacity.wait_reasons.amounts import amount_text, by_weight, main_resource
from capacity.wait_reasons.answers import FunnelStep, NearMiss
from capacity.wait_reasons.node_index import ComparedNode, NodeSet
from capacity.wait_reasons.obstacles import CPU, Obstacle, ObstacleKind, Obstacles, union
from wording.numbers import count, either


def funnel_of(obstacles: Obstacles) -> list[FunnelStep]:
    """Returns how many nodes are left after each requirement that removes some, the most relevant first."""
    index, left = obstacles.index, obstacles.index.every
    steps = [FunnelStep("Nodes in the cluster", left.bit_count(), 0)]

    def narrow(title: str, nodes: NodeSet) -> None:
        nonlocal left
        if removed := (left & nodes).bit_count():
            left &= ~nodes
            steps.append(FunnelStep(title, left.bit_count(), removed))

    resource = main_resource(obstacles)
    if resource:
        narrow(f"Offer {resource}", index.every & ~index.offering(resource))
    for each in obstacles.fixed:
        if each.kind is ObstacleKind.SELECTOR:
            narrow(f"Have the label {each.name}", each.nodes)
        if each.kind is ObstacleKind.AFFINITY:
            narrow("Match the node affinity", each.nodes)
    narrow("Have no taint that the pod does not tolerate", _nodes_of_kind(obstacles.fixed, ObstacleKind.TAINT))
    narrow("Are not cordoned", _nodes_of_kind(obstacles.fixed, ObstacleKind.CORDON))
    for name, amount in by_weight(obstacles.pod.requests):
        narrow(f"Have {amount_text(name, amount)} in total", index.every & ~index.offering(name, amount))
    for name, amount in by_weight(obstacles.pod.requests):
        narrow(f"Have {amount_text(name, amount)} free", index.every & ~index.with_free(name, amount))
    return steps


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


def _nearest_nodes(obstacles: Obstacles) -> NodeSet:
    """Returns the nodes with the fewest obstacles, of those that offer the GPUs if any does."""
    resource = main_resource(obstacles)
    relevant = obstacles.index.offering(resource) if resource else obstacles.index.every
    left = relevant or obstacles.index.every
    levels = [left]  # by number of obstacles, the nodes with at most so many
    for each in (*obstacles.fixed, *obstacles.room):
        kept = [level & ~each.nodes for level in levels]
        moved = [level & each.nodes for level in levels]
        levels = [
            (kept[place] if place < len(kept) else 0) | (moved[place - 1] if place else 0)
            for place in range(len(levels) + 1)
        ]
    return next((level for level in levels[1:] if level), 0)


def _missing_requirements(obstacles: Obstacles, node: ComparedNode) -> Iterator[str]:
    for each in (*obstacles.fixed, *obstacles.room):
        if not obstacles.index.has(each.nodes, node):
            continue
        match each.kind:
            case ObstacleKind.CORDON:
                yield "it is cordoned"
            case ObstacleKind.TAINT:
                yield f"taint {each.name}"
            case ObstacleKind.SELECTOR:
                yield f"label {each.name}"
            case ObstacleKind.AFFINITY:
                yield "the node affinity"
            case ObstacleKind.SIZE:
                has, wanted = node.allocatable.get(each.name, 0), obstacles.pod.requests[each.name]
                yield f"{amount_text(each.name, has)} in total of {amount_text(each.name, wanted)}"
            case ObstacleKind.ROOM:
                wanted = obstacles.pod.requests[each.name]
                yield f"{amount_text(each.name, max(0, node.free(each.name)))} free of {amount_text(each.name, wanted)}"


def _nodes_of_kind(obstacles: Sequence[Obstacle], kind: ObstacleKind) -> NodeSet:
    return union([each for each in obstacles if each.kind is kind])
