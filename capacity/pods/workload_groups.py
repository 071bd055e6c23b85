"""GPU pods by the workload that they belong to: the topmost watched owner, with its pods by state."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from capacity.pods.addresses import workload_page
from capacity.pods.pod_filter import NO_OWNER, WORST_FIRST, PodFilter
from capacity.pods.rows import PodTable
from fleet.gpu_pods import sums_by_state
from fleet.models import Cluster, Workload
from fleet.models.pod import PodQuerySet
from fleet.owner_chains import GROUPED, chains_above
from fleet.states.pod import CODES, PodState
from kube.resources import RAY_JOBS

STATES = {code: state for state, code in CODES.items()}
RAY_JOB = RAY_JOBS.struct.kind
WITHOUT_GPUS = frozenset({PodState.PENDING, PodState.REJECTED, PodState.FAILED, PodState.DONE})
GroupKey = tuple[int, str, str, str]  # cluster, namespace, kind, name
COLUMNS = ("cluster_id", "namespace", "owner_kind", "owner_name", "owner_uid")


@dataclass
class WorkloadGroup:
    """A workload with its GPU pods that match a filter. Without kind and name: pods that nothing controls."""

    cluster_id: int
    cluster: str
    namespace: str
    kind: str
    name: str
    oldest: datetime
    states: Counter[PodState] = field(default_factory=Counter)
    gpus: int = 0  # that pods with a node have; on shared GPUs a unit is a share
    waiting_gpus: int = 0  # that pods without a node request
    desired: int | None = None  # GPU pods that a JobSet, Ray or Kubeflow owner wants; None: unknown

    @property
    def owner(self) -> str:
        return f"{self.kind}/{self.name}" if self.name else NO_OWNER

    @property
    def pods(self) -> int:
        return self.states.total()

    @property
    def worst_first(self) -> list[tuple[PodState, int]]:
        return sorted(self.states.items(), key=lambda each: CODES[each[0]])

    @property
    def page(self) -> str:
        """Returns the address of its page. Blank: it has none."""
        return workload_page(self.cluster_id, self.namespace, self.owner) if self.name else ""

    def filter_of(self, state: str = "") -> PodFilter:
        return PodFilter(cluster=self.cluster, namespace=self.namespace, owner=self.owner, state=state)


def groups_of(table: PodTable) -> list[WorkloadGroup]:
    """Returns the workloads of the pods of a table, in its order. Seven queries at most up to 5000 owners."""
    sums = list(group_sums(table.pods))
    clusters = dict(Cluster.objects.filter(pk__in={row[0] for row in sums}).values_list("pk", "name"))
    above = chains_above({uid for *_, uid, _, _, _, _ in sums if uid}, clusters=clusters)
    desired = _desired_pods(clusters, {row[1] for row in sums})
    found: dict[GroupKey, WorkloadGroup] = {}
    for cluster_id, namespace, kind, name, uid, code, number, gpus, oldest in sums:
        if cluster_id not in clusters:  # deleted since the sums were read
            continue
        chain = above.get((cluster_id, uid))
        kind, name = chain[-1] if chain else (kind, name)
        key = cluster_id, namespace, kind, name
        group = found.setdefault(key, WorkloadGroup(cluster_id, clusters[cluster_id], namespace, kind, name, oldest))
        group.desired = desired.get(key)
        state = STATES[code]
        group.states[state] += number
        group.oldest = min(group.oldest, oldest)
        group.gpus += 0 if state in WITHOUT_GPUS else gpus
        group.waiting_gpus += gpus if state is PodState.PENDING else 0
    for group in found.values():
        group.states = +group.states  # without those that no pod is left in
    by_name = sorted(found.values(), key=lambda each: (each.namespace, each.name, each.kind, each.cluster))
    return sorted(by_name, key=_ORDERS[table.wanted.ordering])


def group_sums(pods: PodQuerySet) -> QuerySet[Any, Any]:
    """Returns number, GPUs and oldest creation by owner and state. The columns are those of the index for it."""
    return sums_by_state(pods, *COLUMNS)


def _desired_pods(clusters: Iterable[int], namespaces: Collection[str]) -> Mapping[GroupKey, int]:
    """Returns how many GPU pods the owners with several templates want, and the owners above those."""
    own, parts = dict[GroupKey, int](), Counter[GroupKey]()
    around = {"cluster__in": clusters, "namespace__in": namespaces}
    rows = Workload.objects.filter(kind__in=GROUPED, desired__isnull=False, **around)
    for cluster, namespace, kind, name, above_kind, above_name, number in rows.order_by().values_list(
        "cluster_id", "namespace", "kind", "name", "owner_kind", "owner_name", "desired"
    ):
        own[cluster, namespace, kind, name] = number or 0
        if above_kind:
            parts[cluster, namespace, above_kind, above_name] += number or 0
    # Ray's autoscaler changes a RayCluster, not the RayJob above it.
    return {**parts, **own, **{key: number for key, number in parts.items() if key[2] == RAY_JOB}}


_ORDERS: Mapping[str, Callable[[WorkloadGroup], Any]] = {
    WORST_FIRST: lambda each: (min(CODES[state] for state in each.states), -each.states[each.worst_first[0][0]]),
    "created_at": lambda each: each.oldest,
    "-created_at": lambda each: -each.oldest.timestamp(),
    "-gpus": lambda each: -(each.gpus + each.waiting_gpus),
    "name": lambda each: each.namespace,
}
