"""The preemption of pods with lower priority for a waiting pod: where it would make room, or why it does not. Pure.

kubernetes, pkg/scheduler/framework/plugins/defaultpreemption at 1.34: nodes that fail by what can be removed are tried
without their pods of lower priority. Budgets are preferred, not guaranteed.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from capacity.wait_reasons.node_index import ComparedNode
from capacity.wait_reasons.obstacles import ObstacleKind, Obstacles, union
from wording.numbers import count


@dataclass(frozen=True)
class PreemptionOutlook:
    text: str  # one sentence
    nodes: int = 0  # on which it would make room
    best: ComparedNode | None = None  # with the fewest pods of lower priority


def preemption_of(obstacles: Obstacles) -> PreemptionOutlook | None:
    """Returns the outlook of a pod that no node fits. None: priorities were not read, or a node fits."""
    pod, index = obstacles.pod, obstacles.index
    if index.preemptible is None or obstacles.fitting:
        return None
    if pod.never_preempts:
        return PreemptionOutlook("The pod never preempts others: its preemptionPolicy is Never.")
    if not obstacles.candidates:
        return PreemptionOutlook("Preemption does not help: no node would fit the pod if it were empty.")
    others = union([each for each in obstacles.room if each.kind is not ObstacleKind.ROOM])
    nodes = obstacles.candidates & ~others
    held: dict[int, tuple[int, dict[str, int]]] = {}  # by place: pods of lower priority, and their amounts
    for each in index.preemptible:
        place = index.place_of(each.node)
        if each.priority >= pod.priority or place is None or not nodes >> place & 1:
            continue
        if any(each.amounts.get(name) and index.nodes[place].free(name) < pod.requests[name] for name in pod.requests):
            number, amounts = held.get(place, (0, {}))
            held[place] = (number + each.pods, _sum(amounts, each.amounts))
    if not held:
        return PreemptionOutlook("No pod of lower priority holds what the pod lacks.")
    enough = {place: number for place, (number, amounts) in held.items() if _fits(obstacles, place, amounts)}
    if not enough:
        text = f"Pods of lower priority use too few resources on each of {count(len(held), 'node')} with such pods."
        return PreemptionOutlook(text)
    best = index.nodes[min(enough, key=lambda place: (enough[place], place))]
    text = f"Pods of lower priority could be preempted on {count(len(enough), 'node')}, with fewest on {best.name}."
    return PreemptionOutlook(text, len(enough), best)


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {*one, *other}}


def _fits(obstacles: Obstacles, place: int, freed: Mapping[str, int]) -> bool:
    node = obstacles.index.nodes[place]
    return all(node.free(name) + freed.get(name, 0) >= amount for name, amount in obstacles.pod.requests.items())
