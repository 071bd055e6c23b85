"""The owners above the direct owner of a pod: a JobSet above a Job, a RayJob above a RayCluster.

A chain ends where an owner is not mirrored, so that a kind that a cluster lacks, or that may not be read, shortens it.
Workers of a LeaderWorkerSet belong to a StatefulSet of their leader pod; a label of the pods names the set.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db.models import Q
from django.db.models.fields.json import KeyTextTransform

from fleet.models import Pod, Workload
from kube.resources import (
    JOB_SETS,
    LEADER_WORKER_SETS,
    MPI_JOBS,
    PYTORCH_JOBS,
    RAY_CLUSTERS,
    RAY_JOBS,
)

STEPS_AT_MOST = 4  # TrainJob, JobSet, Job, pod; a circle ends there
GROUPED = frozenset(
    each.struct.kind for each in (JOB_SETS, LEADER_WORKER_SETS, RAY_CLUSTERS, RAY_JOBS, PYTORCH_JOBS, MPI_JOBS)
)
POD = "Pod"
LEADER_WORKER_SET = LEADER_WORKER_SETS.struct.kind
SET_LABEL = "leaderworkerset.sigs.k8s.io/name"  # of pods: kubernetes-sigs/lws@47a6181f, leaderworkerset_types.go


class PodOwner(NamedTuple):
    kind: str
    name: str


OwnerKey = tuple[int, str]  # of a cluster, and an owner's UID


def chains_above(uids: Any) -> Mapping[OwnerKey, Sequence[PodOwner]]:
    """Returns the owners of these owners, the topmost last, by cluster and UID; none for an owner without an owner.

    One query; one more for each further step, and one if there are workers of LeaderWorkerSets.
    """
    chains: dict[OwnerKey, list[PodOwner]] = {}
    ends: dict[OwnerKey, tuple[PodOwner, str]] = {}
    for key, owner, uid in _owners_of(uids):
        chains[key] = [owner]
        ends[key] = owner, uid
    for _ in range(STEPS_AT_MOST - 2):
        further = {key: (key[0], uid) for key, (owner, uid) in ends.items() if owner.kind in GROUPED}
        above = {key: (owner, uid) for key, owner, uid in _owners_of({uid for _, uid in further.values()})}
        ends = {key: above[its] for key, its in further.items() if its in above}
        for key, (owner, _) in ends.items():
            chains[key].append(owner)
        if not ends:
            break
    of_leaders = {key for key, chain in chains.items() if chain[-1].kind == POD}
    for key, name in _sets_of_workers(uid for _, uid in of_leaders):
        if key in of_leaders:
            chains[key].append(PodOwner(LEADER_WORKER_SET, name))
    return chains


def belongs_to(kind: str, name: str) -> Q:
    """Filters pods by an owner at any height of their chain."""
    below = Workload.objects.filter(owner_kind=kind, owner_name=name).values("uid")
    found = Q(owner_kind=kind, owner_name=name) | Q(owner_uid__in=below)
    if kind == LEADER_WORKER_SET:
        found |= Q(**{f"labels__{SET_LABEL}": name})
    elif below.filter(kind__in=GROUPED).exists():
        found |= Q(owner_uid__in=Workload.objects.filter(owner_uid__in=below).values("uid"))
    return found


def _owners_of(uids: Any) -> Iterable[tuple[OwnerKey, PodOwner, str]]:
    if isinstance(uids, set) and not uids:
        return
    rows = Workload.objects.filter(uid__in=uids).exclude(owner_kind="").order_by()
    for cluster, uid, kind, name, above in rows.values_list(
        "cluster_id", "uid", "owner_kind", "owner_name", "owner_uid"
    ):
        yield (cluster, uid), PodOwner(kind, name), above


def _sets_of_workers(uids: Iterable[str]) -> Iterable[tuple[OwnerKey, str]]:
    """Yields the names of LeaderWorkerSets by the StatefulSets of their workers."""
    wanted = list(uids)
    if not wanted:
        return
    pods = Pod.objects.filter(owner_uid__in=wanted, labels__has_key=SET_LABEL).order_by()
    named = pods.annotate(name_of_set=KeyTextTransform(SET_LABEL, "labels"))
    for cluster, uid, name in named.values_list("cluster_id", "owner_uid", "name_of_set").distinct():
        if name:
            yield (cluster, uid), name[:253]
