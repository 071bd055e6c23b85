"""Pods of one template that fail on some nodes and run on others: failures that follow a node or one of its GPUs.

A Job's retries are new pods; retries of the same work on one node count as one failure.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any, NamedTuple

from django.db.models import Q, TextField
from django.db.models.functions import Cast

from fleet.allocation.allocations import AllocationSource
from fleet.allocation.gpu_holders import allocations_on
from fleet.models import Cluster, Node, Pod
from fleet.states.pod import SETTLED_AFTER, PodState, pod_state
from gpu.images import cuda_of
from health.evaluation.node_properties import properties_of
from health.rules.base import WorkloadHere
from health.suspects import NodeOutcome, Suspects, suspects_of

FAILED_WITHIN = timedelta(hours=1)  # earlier final failures do not count against a node
TEMPLATES = 200  # templates that are compared; more failures at once are no problem of a node
PODS = 5_000  # of them, the newest
ASKED_WHICH = 10  # nodes that are asked which GPU it was: seven queries for all
FAILS, RUNS = frozenset({PodState.FAILING, PodState.FAILED}), frozenset({PodState.READY, PodState.DONE})
SEVERAL = 2  # nodes that fail, and nodes that run it: of fewer nothing can be compared
JOB = "Job"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"  # a label since Kubernetes 1.28
# Which template of the object that owns it a pod is of: ray-project/kuberay, RayNodeGroupLabelKey; kubeflow/trainer
# 1.x and mpi-operator 2, ReplicaTypeLabel: master, worker, launcher.
GROUPS = ("ray.io/group", "training.kubeflow.org/replica-type")
# Owner and template of a pod: a ReplicaSet has one template, a StatefulSet one at a time, a RayCluster one for each
# group of workers. For kinds without these labels, only the image separates two templates.
TemplateKey = tuple[str, ...]
COLUMNS = (
    "pk", "namespace", "name", "owner_kind", "owner_name", "owner_uid", "revision_hash", "image", "required_cuda",
    "node_name", "phase", "status", "is_ready", "deleted_at", "stuck_container", "waiting_reason", "restarts",
    "crashed_at", "node", "node__is_ready",
)  # fmt: skip


class TemplatePod(NamedTuple):
    pk: int
    node_name: str
    owner: str  # owner such as "team-a/infer-7f9c", or the pod itself
    owner_kind: str
    completion: str  # its index in a Job that has any
    template: TemplateKey
    fails: bool
    image: str
    cuda: str  # of the image; blank: unknown


def workloads_by_node(cluster: Cluster, *, now: datetime) -> dict[str, tuple[WorkloadHere, ...]]:
    """Returns by node name the templates whose pods fail there. One query; three more if any fails, and seven.

    Pods of a node that is being drained, and pods refused by the kubelet, do not count.
    """
    where: dict[TemplateKey, dict[str, list[TemplatePod]]] = defaultdict(lambda: defaultdict(list))
    for pod in _pods(cluster, _failing_templates(cluster, now=now), now=now):
        where[pod.template][pod.node_name].append(pod)
    suspects = [
        (node, there, nodes)
        for nodes in where.values()
        for node, there in nodes.items()
        if any(pod.fails for pod in there) and any(not pod.fails for each in nodes.values() for pod in each)
    ]
    boards = _boards(cluster, {node for node, _, _ in suspects}, now=now)
    shared = _suspects_by_template(cluster, where)
    cuda = _running_cuda(cluster, {node for node, _, _ in suspects})
    found: dict[str, list[WorkloadHere]] = defaultdict(list)
    for node, there, nodes in suspects:
        workload = _workload_on_node(node, there, nodes, boards, shared.get(there[0].template))
        found[node].append(replace(workload, running_cuda=cuda.get(node, ())))
    return {node: tuple(workloads) for node, workloads in found.items()}


def _suspects_by_template(
    cluster: Cluster, where: Mapping[TemplateKey, Mapping[str, Sequence[TemplatePod]]]
) -> dict[TemplateKey, Suspects]:
    """Returns what the failing nodes of a template share, where several fail and several run it. At most three queries.

    A node that runs some of its pods and fails others is in neither group.
    """
    failed: dict[TemplateKey, set[str]] = {}
    good: dict[TemplateKey, set[str]] = {}
    for template, nodes in where.items():
        failed[template] = {node for node, there in nodes.items() if all(pod.fails for pod in there)}
        good[template] = {node for node, there in nodes.items() if not any(pod.fails for pod in there)}
    several = [key for key in where if len(failed[key]) >= SEVERAL and len(good[key]) >= SEVERAL]
    if not several:
        return {}
    compared = {name for key in several for name in failed[key] | good[key]}
    properties = properties_of(Node.objects.filter(cluster=cluster, name__in=compared), cluster.pk)
    return {
        key: suspects_of(
            NodeOutcome(name, name in failed[key], properties[name])
            for name in sorted(failed[key] | good[key])
            if name in properties
        )
        for key in several
    }


def _running_cuda(cluster: Cluster, names: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Returns by node name the CUDA versions of the images that run there, if they are known. At most one query."""
    if not names:
        return {}
    rows = Pod.objects.filter(cluster=cluster, node_name__in=sorted(names), is_tenant=True, is_ready=True).order_by()
    found: dict[str, set[str]] = defaultdict(set)
    for node, image, required in rows.values_list("node_name", "image", "required_cuda").distinct():
        if version := cuda_of(image, required):
            found[node].add(version)
    return {node: tuple(sorted(versions)) for node, versions in found.items()}


def _failing_templates(cluster: Cluster, *, now: datetime) -> Collection[str]:
    """Returns the UIDs of owners whose pods may fail now."""
    crashed = Q(crashed_at__gt=now - SETTLED_AFTER)
    at_it = ~Q(phase="Failed") & (crashed | (~Q(stuck_container="") & ~Q(waiting_reason="")))
    over = Q(phase="Failed", waiting_reason="", crashed_at__gt=now - FAILED_WITHIN)
    rows = Pod.objects.filter(at_it | over, cluster=cluster, is_tenant=True).exclude(owner_uid="")
    owners = rows.exclude(node_name="").order_by("owner_uid").values_list("owner_uid", flat=True)
    return list(owners.distinct()[:TEMPLATES])


def _pods(cluster: Cluster, owners: Collection[str], *, now: datetime) -> Iterator[TemplatePod]:
    """Yields their relevant pods. Identical labels, which are common, are decoded once."""
    if not owners:
        return
    rows = Pod.objects.filter(cluster=cluster, owner_uid__in=owners, is_tenant=True).exclude(node_name="")
    written: Any = rows.annotate(labelled=Cast("labels", TextField())).order_by("-pk").values(*COLUMNS, "labelled")
    labels = cache(json.loads)
    for row in written[:PODS]:
        state = _pod_state(row, now=now)
        if state is PodState.FAILED and not _is_news(row, now=now):
            continue
        if state in FAILS or state in RUNS:
            yield _template_pod(row, labels(row["labelled"]), fails=state in FAILS)


def _pod_state(row: Mapping[str, Any], *, now: datetime) -> PodState:
    """Returns the same as `Pod.state`. Thousands of running pods need no model instance here."""
    return pod_state(
        phase=row["phase"],
        status=row["status"],
        is_bound=bool(row["node_name"]),
        is_ready=row["is_ready"],
        is_leaving=row["deleted_at"] is not None,
        is_stuck=bool(row["stuck_container"] and row["waiting_reason"]),
        restarts=row["restarts"],
        crashed_at=row["crashed_at"],
        is_node_silent=row["node"] is not None and row["node__is_ready"] is None,
        now=now,
    )


def _is_news(row: Mapping[str, Any], *, now: datetime) -> bool:
    """Returns whether the pod recently failed for good by itself."""
    crashed_at: datetime | None = row["crashed_at"]
    return not row["waiting_reason"] and crashed_at is not None and now - crashed_at <= FAILED_WITHIN


def _template_pod(row: Mapping[str, Any], labels: Mapping[str, str], *, fails: bool) -> TemplatePod:
    groups = (labels.get(label, "") for label in GROUPS)
    return TemplatePod(
        row["pk"],
        row["node_name"],
        f"{row['namespace']}/{row['owner_name'] or row['name']}",
        row["owner_kind"],
        labels.get(COMPLETION_INDEX, ""),
        (row["owner_uid"], row["revision_hash"], row["image"], *groups),
        fails,
        row["image"],
        cuda_of(row["image"], row["required_cuda"]),
    )


def _workload_on_node(
    node: str,
    there: Sequence[TemplatePod],
    nodes: Mapping[str, Sequence[TemplatePod]],
    boards: Mapping[int, frozenset[int]],
    suspects: Suspects | None,
) -> WorkloadHere:
    elsewhere = [each for other, each in nodes.items() if other != node]
    failing = [pod for pod in there if pod.fails]
    running = [pod for pod in there if not pod.fails]
    return WorkloadHere(
        name=failing[0].owner,
        failing=_failures(failing),
        tries=len(failing),
        running=len(running),
        failing_elsewhere=sum(_failures([pod for pod in each if pod.fails]) for each in elsewhere),
        running_elsewhere=sum(not pod.fails for each in elsewhere for pod in each),
        nodes_elsewhere=sum(any(not pod.fails for pod in each) for each in elsewhere),
        gpu=_gpu(failing, running, boards),
        suspects=suspects,
        image=failing[0].image,
        cuda=failing[0].cuda,
    )


def _failures(failing: Sequence[TemplatePod]) -> int:
    """Returns the failures of one template's pods on one node. A Job has one per index, or one without indices."""
    if not failing or failing[0].owner_kind != JOB:
        return len(failing)
    return len({pod.completion for pod in failing})


def _gpu(
    failing: Iterable[TemplatePod], running: Iterable[TemplatePod], boards: Mapping[int, frozenset[int]]
) -> int | None:
    had = Counter(index for pod in failing for index in boards.get(pod.pk, (-1,)))
    if len(had) != 1 or -1 in had:
        return None
    index = next(iter(had))
    return index if all(pod.pk in boards and index not in boards[pod.pk] for pod in running) else None


def _boards(cluster: Cluster, names: Collection[str], *, now: datetime) -> dict[int, frozenset[int]]:
    """Returns the GPU indices of each pod by key, where they are known. Finished pods have none.

    A pod with all GPUs of its node is left out, since it cannot distinguish a GPU from the node.
    """
    if not names:
        return {}
    nodes = list(Node.objects.filter(cluster=cluster, name__in=sorted(names)[:ASKED_WHICH]))
    found: dict[int, set[int]] = defaultdict(set)
    for allocated in allocations_on(nodes, now=now).values():
        for board in allocated.boards:
            for allocation in board.allocations:
                if (
                    board.index is not None
                    and not allocation.only_looks
                    and allocation.source is not AllocationSource.COUNT
                ):
                    found[allocation.pod.pk].add(board.index)
    return {pod: frozenset(indices) for pod, indices in found.items()}
