"""Pods on nodes that somebody may drain: what a move costs them, and which of them must stay."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from capacity.free_gpus.defragmentation import MovablePod
from capacity.warm_up import Started, quickest, workload_of
from fleet.gangs import OF_POD, GangOwners, gang_owners_of
from fleet.models import DisruptionBudget, Pod, Pool
from fleet.models.node import members_of
from gpu.evictions import PASSED_OVER
from kube.selectors import readable
from people.models import User

HOUR_S = 3600
NO_TIME = timedelta(0)
COLUMNS = (
    "pk", "node_id", "namespace", "name", "owner_kind", "owner_name", "gpus", "cpu_m", "memory_bytes", "started_at",
    "has_empty_dir", "is_tenant", "resources", "claims", "labels", "deleted_at", "is_ready", "restarts", "ready_since",
)  # fmt: skip
ColumnValues = Mapping[str, Any]


@dataclass(frozen=True)
class PodsOnNodes:
    by_node: Mapping[int, Sequence[ColumnValues]]
    owners: GangOwners
    wide: Collection[str]  # gangs with pods on several nodes of the cluster: a pod that moves ends them all
    warm_up: Mapping[str, timedelta]  # by workload
    budgets: Mapping[str, Sequence[tuple[int, Any]]] = field(default_factory=dict)  # by namespace: key and selector

    @classmethod
    def load(cls, pool: Pool, user: User, budgets: Sequence[DisruptionBudget] = ()) -> "PodsOnNodes":
        """Loads the visible pods that a drain evicts from the pool. Two queries, and those of `chains_above`."""
        rows: dict[int, list[ColumnValues]] = defaultdict(list)
        started: list[tuple[str, Started]] = []
        here = Pod.objects.visible_to(user).filter(node__in=members_of([pool.pk]))
        visible = here.not_done().exclude(owner_kind__in=PASSED_OVER)
        for row in visible.order_by("pk").values(*COLUMNS).iterator():
            rows[row["node_id"]].append(row)
            times = Started(row["is_ready"], row["restarts"], row["started_at"], row["ready_since"])
            started.append((_workload(row), times))
        by_namespace: dict[str, list[tuple[int, Any]]] = defaultdict(list)
        for budget in budgets:
            by_namespace[budget.namespace].append((budget.pk, readable(budget.selector)))
        return cls(rows, *_gangs_of(pool.cluster_id), quickest(started), by_namespace)

    def can_start_again(self, row: ColumnValues) -> bool:
        """Tells whether a controller starts the pod again on another node, without the end of other pods."""
        is_free = bool(row["owner_kind"]) and row["is_tenant"] and not row["claims"]
        return is_free and row["deleted_at"] is None and self.gang_of(row) not in self.wide

    def gang_of(self, row: ColumnValues) -> str:
        """Returns the job that ends with the pod. Blank: it restarts alone."""
        return self.owners.gang_of(row["owner_kind"], row["namespace"], row["owner_name"], row["name"])

    def movable(self, row: ColumnValues, gpus: float, *, units: int | None = None, now: datetime) -> MovablePod:
        """Returns the pod. `gpus` are its physical GPUs, also as parts; `units` its slices of one profile, if any."""
        gang, is_job = self.gang_of(row), bool(self.gang_of(row))
        ran = (now - row["started_at"]).total_seconds() if row["started_at"] and is_job else 0.0
        budgets = self.budgets.get(row["namespace"], ())
        return MovablePod(
            key=row["pk"],
            name=f"{row['namespace']}/{row['name']}",
            owner=gang or f"{row['owner_kind']} {row['namespace']}/{row['owner_name']}",
            gpus=row["gpus"] if units is None else units,
            cpu_m=row["cpu_m"],
            memory_bytes=row["memory_bytes"],
            gpu_hours=gpus * max(0.0, ran) / HOUR_S,
            loading_gpu_hours=gpus * self.warm_up.get(_workload(row), NO_TIME).total_seconds() / HOUR_S,
            is_job=is_job,
            has_empty_dir=row["has_empty_dir"],
            budgets=tuple(key for key, selector in budgets if selector is not None and selector.matches(row["labels"])),
        )


def _gangs_of(cluster_id: int) -> tuple[GangOwners, set[str]]:
    """Returns the owners of the cluster's GPU pods, and the gangs on several nodes, also beyond what the user sees."""
    pods = Pod.objects.filter(cluster=cluster_id).tenants().not_done().exclude(node_name="").order_by()
    rows = list(pods.values_list(*OF_POD))
    owners, nodes = gang_owners_of(cluster_id, rows), defaultdict[str, set[str]](set)
    for _, node, kind, namespace, owner, pod in rows:
        nodes[owners.gang_of(kind, namespace, owner, pod)].add(node)
    return owners, {gang for gang, at in nodes.items() if gang and len(at) > 1}


def _workload(row: ColumnValues) -> str:
    return workload_of(row["owner_kind"], row["namespace"], row["owner_name"], row["name"])
