"""The PriorityClass with which a waiting pod would get room by preemption, and the pods that would end for it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from capacity.compared_nodes import index_of
from capacity.pods.victims import Victim, victims_on
from capacity.rule_rows import preemptible_pods
from capacity.wait_reasons.answers import Actor, Change
from capacity.wait_reasons.neighbours import Neighbours
from capacity.wait_reasons.node_index import ComparedNode
from capacity.wait_reasons.obstacles import find_obstacles
from capacity.wait_reasons.preemption import preemption_of
from capacity.wait_reasons.requirements import NEVER_PREEMPTS
from capacity.waiting_pods import comparable_facts
from fleet.models import Pod, PriorityClass
from wording.lists import names
from wording.numbers import count

# Higher values are of critical system pods (scheduling.HighestUserDefinablePriority, pkg/apis/scheduling/types.go).
HIGHEST_OF_USERS = 1_000_000_000
CLASSES_AT_MOST = 10  # that are tried, the lowest first


@dataclass(frozen=True)
class HigherPriority:
    name: str  # of the PriorityClass
    value: int
    nodes: int  # on which preemption would make room
    best: ComparedNode  # where it ends the fewest pods
    victims: Sequence[Victim]

    @property
    def change(self) -> Change:
        whose = names(sorted({victim.pod.namespace for victim in self.victims}))
        ended = f"{count(len(self.victims), 'pod')} of {whose} on {self.best.name}"
        where = f", or others on one of {count(self.nodes - 1, 'more node')}" if self.nodes > 1 else ""
        text = f"Set priorityClassName to {self.name}: the scheduler then ends {ended}{where}."
        return Change(text, Actor.OWNER, 0, self.nodes)


def higher_priority_for(pod: Pod) -> HigherPriority | None:
    """Returns the lowest class of users that makes room. None: none does, or priorities are not read.

    A class whose pods never preempt is left out. Two queries, those of the nodes, and three of the pods to end.
    """
    facts = comparable_facts(pod.cluster_id, [pod])[pod.uid]
    classes = PriorityClass.objects.filter(
        cluster=pod.cluster_id, value__gt=facts.priority, value__lte=HIGHEST_OF_USERS
    ).exclude(preemption_policy=NEVER_PREEMPTS)
    tried = list(classes.order_by("value", "name")[:CLASSES_AT_MOST])
    if not tried:
        return None
    index = index_of(pod.cluster_id, [facts])
    lower = preemptible_pods(pod.cluster_id, tried[-1].value)
    index = index.beside(replace(index.neighbours or Neighbours({}), preemptible=lower))
    for each in tried:
        raised = replace(facts, priority=each.value, never_preempts=False)
        outlook = preemption_of(find_obstacles(raised, index))
        victims = victims_on(outlook.best, raised, pod.cluster_id) if outlook and outlook.best else []
        if victims and outlook and outlook.best and not any(_is_sibling(pod, each.pod) for each in victims):
            return HigherPriority(each.name, each.value, outlook.nodes, outlook.best, victims)
    return None


def _is_sibling(pod: Pod, other: Pod) -> bool:
    """Tells whether both are of one workload, which gains nothing."""
    return bool(pod.owner_uid) and pod.owner_uid == other.owner_uid
