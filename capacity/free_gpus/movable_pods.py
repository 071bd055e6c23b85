"""Pods on nodes that somebody may drain: what a move costs them, and which of them must stay."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from capacity.free_gpus.defragmentation import MovablePod
from capacity.warm_up import Started, quickest, workload_of
from fleet.models import DisruptionBudget, Pod
from gpu.evictions import PASSED_OVER, REPLICAS
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
    gangs: set[
        tuple[str, str, str]
    ]  # jobs (kind, namespace, name) with pods on several nodes: one that moves ends them all
    warm_up: Mapping[str, timedelta]  # by workload
    budgets: Mapping[str, Sequence[tuple[int, Any]]] = field(default_factory=dict)  # by namespace: key and selector

    @classmethod
    def load(cls, nodes: Any, user: User, budgets: Sequence[DisruptionBudget] = ()) -> "PodsOnNodes":
        """Loads the visible pods that a drain evicts. One query."""
        rows: dict[int, list[ColumnValues]] = defaultdict(list)
        places: dict[tuple[str, str, str], set[int]] = defaultdict(set)
        started: list[tuple[str, Started]] = []
        visible = Pod.objects.visible_to(user).filter(node__in=nodes).not_done().exclude(owner_kind__in=PASSED_OVER)
        for row in visible.order_by("pk").values(*COLUMNS).iterator():
            rows[row["node_id"]].append(row)
            if row["owner_kind"] not in REPLICAS:
                places[_owner(row)].add(row["node_id"])
            times = Started(row["is_ready"], row["restarts"], row["started_at"], row["ready_since"])
            started.append((_workload(row), times))
        by_namespace: dict[str, list[tuple[int, Any]]] = defaultdict(list)
        for budget in budgets:
            by_namespace[budget.namespace].append((budget.pk, readable(budget.selector)))
        gangs = {owner for owner, at in places.items() if len(at) > 1}
        return cls(rows, gangs, quickest(started), by_namespace)

    def can_start_again(self, row: ColumnValues) -> bool:
        """Tells whether a controller starts the pod again on another node, without the end of other pods."""
        is_free = bool(row["owner_kind"]) and row["is_tenant"] and not row["claims"]
        return is_free and row["deleted_at"] is None and _owner(row) not in self.gangs

    def movable(self, row: ColumnValues, gpus: float, *, now: datetime) -> MovablePod:
        """Returns the pod. `gpus` are its physical GPUs, also as parts."""
        is_job = row["owner_kind"] not in REPLICAS
        ran = (now - row["started_at"]).total_seconds() if row["started_at"] and is_job else 0.0
        budgets = self.budgets.get(row["namespace"], ())
        return MovablePod(
            key=row["pk"],
            name=f"{row['namespace']}/{row['name']}",
            owner=f"{row['owner_kind']} {row['namespace']}/{row['owner_name']}",
            gpus=row["gpus"],
            cpu_m=row["cpu_m"],
            memory_bytes=row["memory_bytes"],
            gpu_hours=gpus * max(0.0, ran) / HOUR_S,
            loading_gpu_hours=gpus * self.warm_up.get(_workload(row), NO_TIME).total_seconds() / HOUR_S,
            is_job=is_job,
            has_empty_dir=row["has_empty_dir"],
            budgets=tuple(key for key, selector in budgets if selector is not None and selector.matches(row["labels"])),
        )


def _owner(row: ColumnValues) -> tuple[str, str, str]:
    return row["owner_kind"], row["namespace"], row["owner_name"]


def _workload(row: ColumnValues) -> str:
    return workload_of(row["owner_kind"], row["namespace"], row["owner_name"], row["name"])
