"""Gangs: the pods of a job that end with one of them. Pods of a service restart alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from fleet.owner_chains import POD, chains_above
from gpu.evictions import REPLICAS

# Controllers of services: each of their pods restarts alone, and the time since it started is no lost work.
SERVICES = frozenset({*REPLICAS, "DaemonSet"})
# Owners of several jobs or services, each of which ends alone.
MAKES_SEVERAL = ("CronJob", "RayService")
OF_POD = ("owner_uid", "node_name", "owner_kind", "namespace", "owner_name", "name")
WorkloadKey = tuple[str, str, str]  # kind, namespace, name


@dataclass(frozen=True)
class GangOwners:
    """The owners of a cluster's GPU pods, as far as a move of one pod ends the others."""

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


def gang_owners_of(cluster_id: int, rows: Iterable[Sequence[Any]]) -> GangOwners:
    """Reads the owners of pods: rows of owner UID, node, owner kind, namespace, owner name and pod name.

    Jobs of a JobSet, MPIJob, RayJob or TrainJob are one job; those of a CronJob are not.

    Workers of a LeaderWorkerSet group are a StatefulSet owned by the leader pod. As many queries as `chains_above`.
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
    return GangOwners(of_jobs, leaders)
