"""Whole jobs in a drain: the pods of a job leave all nodes of an operation together, once (lifecycle R24).

A job that lost one pod starts again, also on a node that is drained next. So its pods stay on a node until the other
nodes of the operation that run it are ready to end it: cordoned, without a service left to evict, and past the time
for the owners of jobs. They wait for others for half of what is left of the drain's deadline, so that a node that
cannot be drained does not make the others fail, too.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from fleet.models import Node
from operations.models import OperationNode
from operations.steps.base import NodeWork
from operations.steps.evictions import JOBS, PodOnNode
from wording.lists import names

WAIT_SHARE = 0.5  # of the time between the eviction of jobs and the deadline


def held_jobs(work: NodeWork, pods: Sequence[PodOnNode], *, deadline: timedelta) -> dict[str, str]:
    """Returns why pods of jobs are not evicted yet, by pod UID: the time for their owners, or another node."""
    now, since = work.clock(), work.node.step_since or work.clock()
    at = jobs_at(work)
    if now < at:
        why = f"its owner may suspend or end it until {at:%H:%M} UTC"
        return {pod.uid: why for pod in pods if pod.turn == JOBS}
    if now >= at + WAIT_SHARE * (since + deadline - at) or all(pod.turn < JOBS for pod in pods):
        return {}
    return _nodes_behind(work, pods)


def _nodes_behind(work: NodeWork, pods: Sequence[PodOnNode]) -> dict[str, str]:
    """Returns the nodes that pods wait for. Its queries are made once for all nodes of a round.

    Jobs link nodes. If more nodes are linked than drain at once, the pods wait for those in progress alone: the others
    begin only after them.
    """
    beside = work.beside
    own = beside.jobs.get(work.node.node_name)
    if not own:
        return {}
    running = [node for node in beside.running if node.pk != work.node.pk]
    behind = {node.node_name for node in running if not _is_ready(node, work)} | beside.pending
    all_names = {work.node.node_name, *(node.node_name for node in running), *beside.pending}
    jobs_on = {name: frozenset(beside.jobs.get(name, {}).values()) for name in all_names}
    if len(linked_nodes(jobs_on)[work.node.node_name]) > beside.at_once:
        behind -= beside.pending
    found: dict[str, str] = {}
    for pod in pods:
        job = own.get((pod.namespace, pod.name))
        if job and (nodes := sorted(name for name in behind if job in jobs_on[name])):
            found[pod.uid] = f"its job ends on all nodes together, and {names(nodes)} cannot end it yet"
    return found


def jobs_at(work: NodeWork) -> datetime:
    """Returns when jobs of the node are evicted."""
    return _jobs_at(work.node.step_since or work.clock(), work)


def _jobs_at(since: datetime, work: NodeWork) -> datetime:
    """Returns when a node whose drain began then may end jobs."""
    return since + timedelta(seconds=work.operation.options.get("jobs_wait_s") or 0)


def _is_ready(node: OperationNode, work: NodeWork) -> bool:
    if node.progress.get("empty_since"):
        return True
    is_past = node.step_since is not None and work.clock() >= _jobs_at(node.step_since, work)
    return is_past and node.progress.get("turn") == JOBS


def side_by_side(nodes: Sequence[Node], jobs_on: Mapping[str, frozenset[str]]) -> list[Node]:
    """Orders nodes so that those of one job follow each other, and start together. `jobs_on`: by node name."""
    linked = linked_nodes({node.name: jobs_on.get(node.name, frozenset()) for node in nodes})
    first = {name: position for position, name in reversed([*enumerate(node.name for node in nodes)])}
    return sorted(nodes, key=lambda node: min(first[name] for name in linked[node.name]))


def linked_nodes(jobs_on: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """Returns for each node the nodes that run a job of it, or a job of such a node, and so on; itself among them."""
    nodes_of: dict[str, set[str]] = defaultdict(set)
    for name, jobs in jobs_on.items():
        for job in jobs:
            nodes_of[job].add(name)
    found: dict[str, frozenset[str]] = {}
    for name in jobs_on:
        if name in found:
            continue
        group, left = {name}, [name]
        while left:
            more = set[str]().union(*(nodes_of[job] for job in jobs_on[left.pop()])) - group
            group |= more
            left += more
        found |= dict.fromkeys(group, frozenset(group))
    return found
