"""PodDisruptionBudgets. From kubernetes/api, policy/v1/types.go."""

from typing import Any

from kube.structs.meta import Seen, Struct


class BudgetSpec(Struct, frozen=True):
    selector: dict[str, Any] | None = None  # none selects nothing, {} every pod of the namespace
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    unhealthy_pod_eviction_policy: str | None = ""


class BudgetStatus(Struct, frozen=True):
    observed_generation: int | None = 0
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0


class BudgetSeen(Seen, frozen=True):
    spec: BudgetSpec | None = None
    status: BudgetStatus | None = None

    @property
    def is_counted(self) -> bool:
        """Whether its numbers are of the budget it has now; until they are, the API server allows no eviction.

        As in kubernetes, pkg/registry/core/pod/storage/eviction.go (checkAndDecrement).
        """
        return self.status is not None and (self.status.observed_generation or 0) >= max(1, self.metadata.generation)
