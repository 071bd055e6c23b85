"""The work that tenants lose with a node: whole jobs, and restarts of service pods."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from itertools import takewhile
from typing import Any

from capacity.warm_up import Started, quickest, workload_of
from fleet.models import Bookmark, Node, Pod
from fleet.owner_chains import POD, chains_above
from gpu.evictions import REPLICAS
from gpu.resources import Layout, whole_gpus
from health.models import Finding
from health.rules.idle_gpus import IdleGpus, reported_hours_of
from kube.resources import PODS
from operations.tenants.disruption_cost import UNKNOWN, Harm, Job

# Controllers of services: each of their pods restarts alone, and the time since it started is no lost work.
SERVICES = frozenset({*REPLICAS, "DaemonSet"})
# Owners of several jobs or services, each of which ends alone.
MAKES_SEVERAL = ("CronJob", "RayService")
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
    owners = _owners(cluster_id, read_rows)
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


WorkloadKey = tuple[str, str, str]  # kind, namespace, name


@dataclass(frozen=True)
class _Owners:
    # A Job → its owner; a StatefulSet of workers → the group of the Pod that leads them.
    of_jobs: Mapping[WorkloadKey, str]
    leaders: Mapping[tuple[str, str], str]  # a Pod's namespace and name → the group that it leads

    def gang_of(self, kind: str, namespace: str, owner: str, pod: str) -> str:
        """Returns the job that ends with this pod; empty for a pod that restarts alone."""
        if group := self.leaders.get((namespace, pod)) or self.of_jobs.get((kind, namespace, owner)):
            return group
        if not kind:
            return f"Pod {namespace}/{pod}"
        return "" if kind in SERVICES else f"{kind} {namespace}/{owner}"


def jobs_by_node(cluster_id: int, node_names: Iterable[str]) -> dict[str, dict[tuple[str, str], str]]:
    """Returns the jobs of tenants' GPU pods: {"gpu-1": {("team-a", "rank-0"): "Job team-a/llama"}}, without services.

    One query, and those of `chains_above`.
    """
    pods = Pod.objects.filter(cluster=cluster_id, deleted_at=None, node_name__in=node_names).tenants().not_done()
    rows = list(pods.values_list("owner_uid", "node_name", "owner_kind", "namespace", "owner_name", "name"))
    owners = _owners(cluster_id, rows)
    found: dict[str, dict[tuple[str, str], str]] = defaultdict(dict)
    for _, on, kind, namespace, owner, pod in rows:
        if job := owners.gang_of(kind, namespace, owner, pod):
            found[on][namespace, pod] = job
    return found


def _owners(cluster_id: int, rows: Iterable[Sequence[Any]]) -> _Owners:
    """Reads owners. Jobs of a JobSet, MPIJob, RayJob or TrainJob are one job; those of a CronJob are not.

    Workers of a LeaderWorkerSet group are a StatefulSet owned by the leader pod.
    """
    by_uid = {uid: (kind, namespace, name) for uid, _, kind, namespace, name, *_ in rows if uid}
    of_jobs: dict[WorkloadKey, str] = {}
    leaders: dict[tuple[str, str], str] = {}
    for (_, uid), chain in chains_above(set(by_uid), clusters=[cluster_id]).items():
        kind, namespace, name = by_uid[uid]
        above = list(takewhile(lambda owner: owner.kind not in MAKES_SEVERAL, chain))
        if leader := next((owner.name for owner in above if owner.kind == POD), ""):
            of_jobs[kind, namespace, name] = leaders[namespace, leader] = f"group of Pod {namespace}/{leader}"
        elif above and kind not in SERVICES:
            of_jobs[kind, namespace, name] = f"{above[-1].kind} {namespace}/{above[-1].name}"
    return _Owners(of_jobs, leaders)
