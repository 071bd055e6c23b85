"""Whole jobs in a drain: the pods of a job leave all nodes of an operation together, once (lifecycle R24).

A job that lost one pod starts again, also on a node that is drained next. So its pods stay on a node until the other
nodes of the operation that run it are ready to end it: cordoned, and with no service left to evict.
"""

from collections.abc import Mapping, Sequence

from fleet.models import Node
from operations.lifecycle import NodeProgress
from operations.models import OperationNode
from operations.steps.base import NodeWork
from operations.steps.evictions import JOBS, PodOnNode
from operations.tenants.jobs import jobs_by_node
from wording.lists import names


def nodes_behind(work: NodeWork, pods: Sequence[PodOnNode]) -> dict[str, str]:
    """Returns why pods of jobs wait for another node, by pod UID. One query if no other node is behind, else a few."""
    others = OperationNode.objects.filter(operation=work.operation, state=NodeProgress.RUNNING).exclude(pk=work.node.pk)
    behind = [other.node_name for other in others if not _is_ready(other)]
    if not behind or all(pod.turn < JOBS for pod in pods):
        return {}
    jobs = jobs_by_node(work.operation.cluster_id, [work.node.node_name, *behind])
    own = jobs.get(work.node.node_name, {})
    found: dict[str, str] = {}
    for pod in pods:
        job = own.get((pod.namespace, pod.name))
        if job and (waits_for := [node for node in behind if job in jobs.get(node, {}).values()]):
            found[pod.uid] = f"its job ends on all nodes together, and {names(sorted(waits_for))} cannot end it yet"
    return found


def _is_ready(node: OperationNode) -> bool:
    return bool(node.progress.get("empty_since")) or node.progress.get("turn") == JOBS


def side_by_side(nodes: Sequence[Node], jobs_on: Mapping[str, frozenset[str]]) -> list[Node]:
    """Orders nodes so that those of one job follow each other, and start together. `jobs_on`: by node name."""
    ordered: list[Node] = []
    left = list(nodes)
    while left:
        ordered.append(left.pop(0))
        jobs = set(jobs_on.get(ordered[-1].name, ()))
        while jobs and (more := [node for node in left if jobs & jobs_on.get(node.name, frozenset())]):
            ordered += more
            left = [node for node in left if node not in more]
            jobs.update(*(jobs_on[node.name] for node in more))
    return ordered
