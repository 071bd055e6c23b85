"""The owners above the direct owner of a pod: a JobSet above a Job, a RayJob above a RayCluster.

A chain ends where an owner is not mirrored, so that a kind that a cluster lacks, or that may not be read, shortens it.
Workers of a LeaderWorkerSet belong to a StatefulSet of their leader pod; a label of the pods names the set.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
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

STEPS_AT_MOST = 4  # TrainJob, JobSet, Job, pod
GROUPED = frozenset(
    each.struct.kind for each in (JOB_SETS, LEADER_WORKER_SETS, RAY_CLUSTERS, RAY_JOBS, PYTORCH_JOBS, MPI_JOBS)
)
POD = "Pod"
AT_ONCE = 5000  # owners in one query; SQLite takes 32766 parameters
SETS_AT_MOST = 100  # LeaderWorkerSets of one owner
LEADER_WORKER_SET = LEADER_WORKER_SETS.struct.kind
SET_LABEL = "leaderworkerset.sigs.k8s.io/name"  # of pods: kubernetes-sigs/lws@47a6181f, leaderworkerset_types.go


class PodOwner(NamedTuple):
    kind: str
    name: str


OwnerKey = tuple[int, str]  # of a cluster, and an owner's UID


def top_owners_of(cluster_id: int, uids: Iterable[str]) -> Mapping[str, str]:
    """Returns the topmost owners above these owners by UID, as `JobSet/train`. As many queries as `chains_above`."""
    chains = chains_above({*uids} - {""}, clusters=[cluster_id])
    return {uid: f"{chain[-1].kind}/{chain[-1].name}" for (_, uid), chain in chains.items()}


def owners_of_pods(cluster_id: int, uids: Any) -> Mapping[str, Sequence[str]]:
    """Returns the owners above the direct owner by pod UID, the topmost last, as `JobSet/train`. `uids` may be a query.

    One query, and those of `chains_above`.
    """
    pods = Pod.objects.filter(cluster=cluster_id, uid__in=uids).exclude(owner_uid="").order_by()
    owner_of = dict(pods.values_list("uid", "owner_uid"))
    chains = chains_above(set(owner_of.values()), clusters=[cluster_id])
    names = {uid: [f"{owner.kind}/{owner.name}" for owner in chain] for (_, uid), chain in chains.items()}
    return {pod: names[uid] for pod, uid in owner_of.items() if uid in names}


def topmost(recorded: str, above: Sequence[str]) -> str:
    """Returns the topmost owner of a pod: the recorded one, unless owners above it were read since.

    An owner whose row is gone shortens the chain, but is still the owner.
    """
    return above[-1] if above and (not recorded or recorded in above) else recorded


def chains_above(uids: Any, *, clusters: Any) -> Mapping[OwnerKey, Sequence[PodOwner]]:
    """Returns the owners of these owners, the topmost last, by cluster and UID; none for an owner without an owner.

    A circle of owners ends before it repeats one. One query; one more for each further step, and two if there are
    workers of LeaderWorkerSets; as many again for each further 5000 owners. `uids` may be a query.
    """
    chains: dict[OwnerKey, list[PodOwner]] = {}
    ends: dict[OwnerKey, tuple[PodOwner, str]] = {}
    passed: dict[OwnerKey, set[str]] = {}  # UIDs of the chain, that of the direct owner too
    for key, owner, uid in _owners_of(uids, clusters):
        if uid != key[1]:
            chains[key], passed[key] = [owner], {key[1], uid}
            ends[key] = owner, uid
    for _ in range(STEPS_AT_MOST - 2):
        further = {key: (key[0], uid) for key, (owner, uid) in ends.items() if owner.kind in GROUPED}
        above = {key: (owner, uid) for key, owner, uid in _owners_of({uid for _, uid in further.values()}, clusters)}
        ends = {key: above[its] for key, its in further.items() if its in above and above[its][1] not in passed[key]}
        for key, (owner, uid) in ends.items():
            chains[key].append(owner)
            passed[key].add(uid)
        if not ends:
            break
    of_leaders = {key for key, chain in chains.items() if chain[-1].kind == POD}
    for some in _slices(of_leaders):
        for key, name, owner in _sets_of_workers(some):
            chains[key].append(PodOwner(LEADER_WORKER_SET, name))
            if owner.kind:
                chains[key].append(owner)
    return chains


def belongs_to(kind: str, name: str, **where: str) -> Q:
    """Filters pods by an owner at any height of their chain. `where` narrows the owners to a cluster or namespace."""
    below = Workload.objects.filter(owner_kind=kind, owner_name=name, **where).values("uid")
    found = Q(owner_kind=kind, owner_name=name) | Q(owner_uid__in=below)
    if kind == LEADER_WORKER_SET:
        found |= Q(**{f"labels__{SET_LABEL}": name})
    elif below.filter(kind__in=GROUPED).exists():
        found |= Q(owner_uid__in=Workload.objects.filter(owner_uid__in=below, **where).values("uid"))
        sets = list(below.filter(kind=LEADER_WORKER_SET).values_list("namespace", "name")[:SETS_AT_MOST])
        for namespace, its in sets:
            found |= Q(**{"namespace": namespace, f"labels__{SET_LABEL}": its})
    return found


def _owners_of(uids: Any, clusters: Any) -> Iterable[tuple[OwnerKey, PodOwner, str]]:
    for some in _slices(uids) if isinstance(uids, set) else (uids,):
        rows = Workload.objects.filter(cluster__in=clusters, uid__in=some).exclude(owner_kind="").order_by()
        for cluster, uid, kind, name, above in rows.values_list(
            "cluster_id", "uid", "owner_kind", "owner_name", "owner_uid"
        ):
            yield (cluster, uid), PodOwner(kind, name), above


def _slices(rows: set[Any]) -> Iterator[set[Any]]:
    left = iter(rows)
    while some := set(islice(left, AT_ONCE)):
        yield some


def _sets_of_workers(wanted: Collection[OwnerKey]) -> Iterable[tuple[OwnerKey, str, PodOwner]]:
    """Yields the LeaderWorkerSets by the StatefulSets of their workers, each with its own owner; blank: none."""
    clusters = {cluster for cluster, _ in wanted}
    pods = Pod.objects.filter(
        cluster__in=clusters, owner_uid__in={uid for _, uid in wanted}, labels__has_key=SET_LABEL
    ).order_by()
    columns = ("cluster_id", "owner_uid", "namespace", "name_of_set")
    named = pods.annotate(name_of_set=KeyTextTransform(SET_LABEL, "labels")).values_list(*columns).distinct()
    found = {(cluster, uid): (namespace, name[:253]) for cluster, uid, namespace, name in named if name}
    rows = Workload.objects.filter(
        cluster__in=clusters, kind=LEADER_WORKER_SET, name__in={name for _, name in found.values()}
    ).order_by()
    owners = {
        (cluster, namespace, name): PodOwner(kind, above)
        for cluster, namespace, name, kind, above in rows.values_list(
            "cluster_id", "namespace", "name", "owner_kind", "owner_name"
        )
    }
    for key, (namespace, name) in found.items():
        if key in wanted:
            yield key, name, owners.get((key[0], namespace, name), PodOwner("", ""))
