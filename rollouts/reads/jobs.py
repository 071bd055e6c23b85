"""What of the tenants' work falls with a node: whole jobs by what controls their pods, and pods that end alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache

from fleet.models import Bookmark, Node, Pod, Workload
from gpu.resources import Layout, whole_gpus
from kube.resources import PODS
from rollouts.ordering.harm import UNKNOWN, Harm, Job

# Controllers whose pods stand for each other, and a pod that nothing controls: each ends alone.
ALONE = frozenset({"", "ReplicaSet", "ReplicationController", "StatefulSet", "DaemonSet"})
HOUR_S = 3600


@dataclass
class _Gang:
    gpus: int = 0
    gpu_hours: float = 0.0
    uncounted: int = 0
    nodes: set[str] = field(default_factory=set)


@dataclass
class _OnNode:
    gangs: set[str] = field(default_factory=set)
    alone_gpu_hours: float = 0.0
    alone_uncounted: int = 0
    pods: int = 0


def harm_of(cluster_id: int, nodes: Iterable[Node], *, now: datetime) -> dict[str, Harm]:
    """Node's name → what it takes with it now. Three queries, over all of the cluster's GPU pods: jobs span nodes.

    Only whole GPUs make GPU-hours: how much of one a slice or a share is, nothing here says.
    """
    if not Bookmark.objects.known(PODS.name).filter(cluster=cluster_id).exists():
        return {node.name: UNKNOWN for node in nodes}
    owners = _owners(cluster_id)
    gangs: dict[str, _Gang] = defaultdict(_Gang)
    found: dict[str, _OnNode] = defaultdict(_OnNode)
    pods = Pod.objects.filter(cluster=cluster_id, deleted_at=None).tenants().not_done().exclude(node_name="")
    read = cache(Layout.read)
    columns = ("node_name", "owner_kind", "namespace", "owner_name", "name", "resources", "node__layout", "started_at")
    for on, kind, namespace, owner, pod, resources, layout, started_at in pods.values_list(*columns):
        gpus = whole_gpus(resources, read(layout or ""))
        ran_h = max(0.0, (now - started_at).total_seconds() / HOUR_S) if started_at else 0.0
        uncounted = int(not gpus and started_at is not None)  # what has not started has done nothing yet
        there, name = found[on], owners.gang_of(kind, namespace, owner, pod)
        there.pods += 1
        if not name:
            there.alone_gpu_hours += gpus * ran_h
            there.alone_uncounted += uncounted
            continue
        there.gangs.add(name)
        gangs[name].gpus += gpus
        gangs[name].gpu_hours += gpus * ran_h
        gangs[name].uncounted += uncounted
        gangs[name].nodes.add(on)
    jobs = {name: Job(name, gang.gpus, gang.gpu_hours, len(gang.nodes), gang.uncounted) for name, gang in gangs.items()}
    return {node.name: _harm(node, found[node.name], jobs) for node in nodes}


def _harm(node: Node, there: _OnNode, jobs: Mapping[str, Job]) -> Harm:
    dearest = sorted((jobs[name] for name in there.gangs), key=lambda job: (-job.gpu_hours, job.name))
    free = max(0, (node.gpu_allocatable or 0) - node.gpu_allocated)
    return Harm(tuple(dearest), there.alone_gpu_hours, there.alone_uncounted, there.pods, free)


WorkloadKey = tuple[str, str, str]  # kind, namespace, name


@dataclass(frozen=True)
class _Owners:
    # A Job → what made it; a StatefulSet of workers → the group of the Pod that leads them.
    of_jobs: Mapping[WorkloadKey, str]
    leaders: Mapping[tuple[str, str], str]  # a Pod's namespace and name → the group that it leads

    def gang_of(self, kind: str, namespace: str, owner: str, pod: str) -> str:
        """What all of its pods fall with. Blank: it ends alone."""
        if group := self.leaders.get((namespace, pod)) or self.of_jobs.get((kind, namespace, owner)):
            return group
        return "" if kind in ALONE else f"{kind} {namespace}/{owner}"


def _owners(cluster_id: int) -> _Owners:
    """A JobSet, an MPIJob or a RayJob makes Jobs, and all of them are one. What a CronJob makes is not.

    Of a LeaderWorkerSet the workers of each group are a StatefulSet, owned by the Pod that leads them.
    """
    rows = Workload.objects.filter(cluster=cluster_id, kind__in=("Job", "StatefulSet")).exclude(owner_kind="")
    of_jobs: dict[WorkloadKey, str] = {}
    leaders: dict[tuple[str, str], str] = {}
    columns = ("kind", "namespace", "name", "owner_kind", "owner_name")
    for kind, namespace, name, owner_kind, owner_name in rows.values_list(*columns):
        if kind == "StatefulSet" and owner_kind == "Pod":
            group = f"group of Pod {namespace}/{owner_name}"
            of_jobs[kind, namespace, name] = leaders[namespace, owner_name] = group
        elif kind == "Job" and owner_kind != "CronJob":
            of_jobs[kind, namespace, name] = f"{owner_kind} {namespace}/{owner_name}"
    return _Owners(of_jobs, leaders)
