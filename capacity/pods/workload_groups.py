"""GPU pods by the workload that they belong to: the topmost watched owner, with its pods by state."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.db.models import Count, Min, Sum

from capacity.pods.addresses import workload_page
from capacity.pods.pod_filter import NO_OWNER, WORST_FIRST, PodFilter
from capacity.pods.rows import PodTable
from fleet.models import Workload
from fleet.states.pod import CODES, PodState

STATES = {code: state for state, code in CODES.items()}
WITHOUT_GPUS = frozenset({PodState.PENDING, PodState.REJECTED, PodState.FAILED, PodState.DONE})
COLUMNS = ("cluster_id", "cluster__name", "namespace", "owner_kind", "owner_name", "owner_uid", "shown_state")


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
    """Returns the workloads of the pods of a table, in its order. Two queries, however many pods there are."""
    pods = table.pods.order_by()
    above = _owners_above(pods)
    sums: Any = pods.values_list(*COLUMNS).annotate(Count("pk"), Sum("gpus"), Min("created_at"))
    found: dict[tuple[Any, ...], WorkloadGroup] = {}
    for cluster_id, cluster, namespace, kind, name, uid, code, number, gpus, oldest in sums:
        kind, name = above.get((cluster_id, uid), (kind, name))
        key = cluster_id, namespace, kind, name
        group = found.setdefault(key, WorkloadGroup(cluster_id, cluster, namespace, kind, name, oldest))
        state = STATES[code]
        group.states[state] += number
        group.oldest = min(group.oldest, oldest)
        group.gpus += 0 if state in WITHOUT_GPUS else gpus
        group.waiting_gpus += gpus if state is PodState.PENDING else 0
    by_name = sorted(found.values(), key=lambda each: (each.namespace, each.name, each.kind, each.cluster))
    return sorted(by_name, key=_ORDERS[table.wanted.ordering])


def _owners_above(pods: Any) -> Mapping[tuple[int, str], tuple[str, str]]:
    """Returns kind and name of the owners of the pods' owners, one step up, so that no circle has an effect."""
    rows = Workload.objects.filter(uid__in=pods.exclude(owner_uid="").values("owner_uid")).exclude(owner_kind="")
    return {(cluster, uid): (kind, name) for cluster, uid, kind, name in
            rows.order_by().values_list("cluster_id", "uid", "owner_kind", "owner_name")}  # fmt: skip


_ORDERS: Mapping[str, Callable[[WorkloadGroup], Any]] = {
    WORST_FIRST: lambda each: (min(CODES[state] for state in each.states), -each.states[each.worst_first[0][0]]),
    "created_at": lambda each: each.oldest,
    "-created_at": lambda each: -each.oldest.timestamp(),
    "-gpus": lambda each: -(each.gpus + each.waiting_gpus),
    "name": lambda each: each.namespace,
}
