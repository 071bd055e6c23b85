"""The pods that the scheduler would preempt on a node for a waiting pod."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from capacity.rule_rows import Priorities
from capacity.wait_reasons.node_index import ComparedNode
from capacity.wait_reasons.obstacles import CPU, MEMORY
from capacity.wait_reasons.requirements import WaitingPod
from fleet.models import DisruptionBudget, Pod
from kube.selectors import readable


@dataclass(frozen=True)
class Victim:
    pod: Pod
    priority: int
    budget: str  # a PodDisruptionBudget that allows no eviction now; blank: none. The scheduler may ignore it


def victims_on(node: ComparedNode, waiting: WaitingPod, cluster_id: int) -> list[Victim]:
    """Returns the pods that have to end, the lowest priority first. Three queries.

    As the scheduler does it: all pods of lower priority end, then those stay that still fit. Pods under a budget that
    allows no eviction stay first, then those of higher priority, then the older ones.
    """
    priorities = Priorities.read(cluster_id)
    lower = priorities.classes_below(waiting.priority)
    pods = Pod.objects.filter(node=node.key, deleted_at=None, priority_class__in=lower).not_done()
    budgets = _exhausted_budgets(cluster_id, {pod.namespace for pod in pods})
    found = [Victim(pod, priorities.of(pod.priority_class), _budget_of(pod, budgets)) for pod in pods]
    free = {name: node.free(name) for name in waiting.requests}
    for victim in found:
        free = {name: amount + _held(victim.pod).get(name, 0) for name, amount in free.items()}
    victims = list[Victim]()
    for victim in sorted(found, key=lambda each: (not each.budget, -each.priority, each.pod.created_at)):
        left = {name: amount - _held(victim.pod).get(name, 0) for name, amount in free.items()}
        if all(left[name] >= amount for name, amount in waiting.requests.items()):
            free = left
        else:
            victims.append(victim)
    return sorted(victims, key=lambda each: (each.priority, each.pod.created_at, each.pod.pk))


def _held(pod: Pod) -> Mapping[str, int]:
    return {**pod.resources, CPU: pod.cpu_m, MEMORY: pod.memory_bytes}


def _exhausted_budgets(cluster_id: int, namespaces: set[str]) -> Sequence[DisruptionBudget]:
    rows = DisruptionBudget.objects.filter(cluster=cluster_id, namespace__in=namespaces, disruptions_allowed=0)
    return list(rows)


def _budget_of(pod: Pod, budgets: Sequence[DisruptionBudget]) -> str:
    for budget in budgets:
        selector = readable(budget.selector)
        if budget.namespace == pod.namespace and selector is not None and selector.matches(pod.labels):
            return budget.name
    return ""
