from typing import Any

from fleet.observer.mirror.rows.nested_json import fitted_json
from fleet.observer.mirror.rows.text import fitted, fitted_count
from kube.structs.cluster_objects import BudgetSeen, BudgetSpec, BudgetStatus


def budget_row(seen: BudgetSeen) -> dict[str, Any]:
    spec, status = seen.spec or BudgetSpec(), seen.status or BudgetStatus()
    return {
        "namespace": fitted(seen.metadata.namespace, 63),
        "name": fitted(seen.name, 253),
        "selector": fitted_json(spec.selector),
        "min_available": _amount_text(spec.min_available),
        "max_unavailable": _amount_text(spec.max_unavailable),
        "unhealthy_pod_eviction_policy": fitted(spec.unhealthy_pod_eviction_policy, 32),
        "disruptions_allowed": fitted_count(status.disruptions_allowed) if seen.is_counted else None,
        "current_healthy": fitted_count(status.current_healthy),
        "desired_healthy": fitted_count(status.desired_healthy),
        "expected_pods": fitted_count(status.expected_pods),
    }


def _amount_text(amount: int | str | None) -> str:
    """Returns the amount as text; 0 is an amount, blank is none."""
    return "" if amount is None else fitted(str(amount), 16)
