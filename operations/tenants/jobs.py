"""The work that tenants lose with a node: whole jobs, and restarts of service pods."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache

from capacity.warm_up import Started, quickest, workload_of
from fleet.gangs import OF_POD, gang_owners_of
from fleet.models import Bookmark, Node, Pod
from gpu.resources import Layout, whole_gpus
from health.models import Finding
from health.rules.idle_gpus import IdleGpus, reported_hours_of
from kube.resources import PODS
from operations.tenants.disruption_cost import UNKNOWN, Harm, Job

HOUR_S = 3600
NO_TIME = timedelta(0)


@dataclass
class _Gang:
    gpus: int = 0
    gpu_hours: float = 0.0
    uncounted: int = 0
    loading_gpu_hours: float = 0.0
    works: bool = False  # a pod of it does, or nobody knows
    nodes: set[str] = field(default_factory=set)


@dataclass
class _OnNode:
    gangs: set[str] = field(default_factory=set)
    restarts: int = 0
    services_loading_gpu_hours: float = 0.0
    pods: int = 0
    pods_idle: int = 0


def harm_of(cluster_id: int, nodes: Iterable[Node], *, now: datetime) -> dict[str, Harm]:
    """Returns the disruption cost by node name, of all GPU pods of the cluster, since jobs span nodes.

    Three queries, and those of `chains_above`.
    Only whole GPUs count as GPU-hours; the share of a slice is unknown.
    """
    if not Bookmark.objects.knows_all(cluster_id, PODS.name):
        return {node.name: UNKNOWN for node in nodes}
    idle = idle_gpus_of(cluster_id)
    gangs: dict[str, _Gang] = defaultdict(_Gang)
    found: dict[str, _OnNode] = defaultdict(_OnNode)
    pods = Pod.objects.filter(cluster=cluster_id, deleted_at=None).tenants().not_done().exclude(node_name="")
    read = cache(Layout.read)
    told = ("is_ready", "restarts", "started_at", "ready_since")
    of_pod = ("owner_kind", "namespace", "owner_name", "name", "resources", "node__layout")
    columns = ("owner_uid", "node_name", *of_pod, *told)
    read_rows = list(pods.values_list(*columns))
    owners = gang_owners_of(cluster_id, read_rows)
    rows = [(*row[1:8], Started(*row[8:])) for row in read_rows]
    load = quickest((workload_of(*row[1:5]), row[7]) for row in rows)
    for on, kind, namespace, owner, pod, resources, layout, started in rows:
        gpus, started_at = whole_gpus(resources, read(layout or "")), started.started_at
        loads_h = load.get(workload_of(kind, namespace, owner, pod), NO_TIME).total_seconds() / HOUR_S
        is_idle = 0 < gpus <= idle.get(f"{namespace}/{pod}", 0)
        ran_h = max(0.0, (now - started_at).total_seconds() / HOUR_S) if started_at else 0.0
        uncounted = int(not gpus and started_at is not None)  # a job that has not started has done no work yet
        there, name = found[on], owners.gang_of(kind, namespace, owner, pod)
        there.pods += 1
        there.pods_idle += is_idle
        if not name:
            there.restarts += 1
            there.services_loading_gpu_hours += gpus * loads_h
            continue
        there.gangs.add(name)
        gangs[name].gpus += gpus
        gangs[name].gpu_hours += gpus * ran_h
        gangs[name].uncounted += uncounted
        gangs[name].loading_gpu_hours += gpus * loads_h
        gangs[name].works |= not is_idle
        gangs[name].nodes.add(on)
    jobs = {name: _job(name, gang) for name, gang in gangs.items()}
    return {node.name: _harm(node, found[node.name], jobs) for node in nodes}


def _job(name: str, gang: _Gang) -> Job:
    return Job(
        name,
        gang.gpus,
        gang.gpu_hours,
        len(gang.nodes),
        gang.uncounted,
        gang.loading_gpu_hours,
        does_nothing=not gang.works,
    )


def idle_gpus_of(cluster_id: int) -> dict[str, int]:
    """Returns the number of idle GPUs by pod (namespace/name), from open findings. One query.

    Unknown GPUs and GPUs without telemetry do not count as idle.
    """
    rows = Finding.objects.open().filter(cluster=cluster_id, rule=IdleGpus.key).values_list("facts", flat=True)
    return Counter(pod for facts in rows for pod, board in reported_hours_of(facts) if board)


def _harm(node: Node, there: _OnNode, jobs: Mapping[str, Job]) -> Harm:
    dearest = sorted((jobs[name] for name in there.gangs), key=lambda job: (-job.gpu_hours, job.name))
    free = max(0, (node.gpu_allocatable or 0) - node.gpu_allocated)
    return Harm(
        tuple(dearest),
        there.restarts,
        there.pods,
        free,
        there.services_loading_gpu_hours,
        there.pods_idle,
    )


def jobs_by_node(cluster_id: int, node_names: Iterable[str]) -> dict[str, dict[tuple[str, str], str]]:
    """Returns the jobs of tenants' GPU pods: {"gpu-1": {("team-a", "rank-0"): "Job team-a/llama"}}, without services.

    One query, and those of `chains_above`.
    """
    pods = Pod.objects.filter(cluster=cluster_id, deleted_at=None, node_name__in=node_names).tenants().not_done()
    rows = list(pods.values_list(*OF_POD))
    owners = gang_owners_of(cluster_id, rows)
    found: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    for _, on, kind, namespace, owner, pod in rows:
        if job := owners.gang_of(kind, namespace, owner, pod):
            found[on][namespace, pod] = job
    return found
