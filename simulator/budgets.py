"""The arithmetic of a PodDisruptionBudget: what is healthy, what must be, what may go."""

import math
from datetime import datetime, timedelta
from typing import Any

from simulator.clock import stamp
from simulator.eviction import is_ready

Obj = dict[str, Any]
DISRUPTED_FOR = timedelta(minutes=2)
"""How long an eviction that has not shown itself on its pod still counts (DeletionTimeout of the controller)."""


def counted(budget: Obj, pods: list[Obj], expected: int, now: datetime) -> Obj:
    """The status that a budget should have."""
    old, spec = budget.get("status") or {}, budget["spec"]
    disrupted = _still_disrupted(old.get("disruptedPods") or {}, pods, now)
    healthy = sum(_counts(pod, disrupted) for pod in pods)
    desired = _desired(spec, expected)
    allowed = max(healthy - desired, 0) if expected > 0 else 0
    status = {
        **{key: value for key, value in old.items() if key != "disruptedPods"},
        "observedGeneration": budget["metadata"].get("generation", 1),
        "disruptionsAllowed": allowed,
        "currentHealthy": healthy,
        "desiredHealthy": desired,
        "expectedPods": expected,
        "conditions": _conditions(old.get("conditions") or [], budget, now, is_allowed=allowed > 0),
    }
    return {**status, "disruptedPods": disrupted} if disrupted else status


def _still_disrupted(held: dict[str, str], pods: list[Obj], now: datetime) -> dict[str, str]:
    present = {pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]}
    oldest = stamp(now - DISRUPTED_FOR)
    return {name: since for name, since in held.items() if name in present and since >= oldest}


def _counts(pod: Obj, disrupted: dict[str, str]) -> bool:
    metadata = pod["metadata"]
    return is_ready(pod) and "deletionTimestamp" not in metadata and metadata["name"] not in disrupted


def _desired(spec: Obj, expected: int) -> int:
    if "maxUnavailable" in spec:
        return max(expected - _scaled(spec["maxUnavailable"], expected), 0)
    return _scaled(spec.get("minAvailable", 1), expected)


def _scaled(amount: int | str, whole: int) -> int:
    """Percentages round up, for both members of the spec."""
    if isinstance(amount, int):
        return amount
    return math.ceil(whole * int(amount.rstrip("%")) / 100)


def _conditions(held: list[Obj], budget: Obj, now: datetime, *, is_allowed: bool) -> list[Obj]:
    status = "True" if is_allowed else "False"
    was = next((condition for condition in held if condition["type"] == "DisruptionAllowed"), None)
    condition = {
        "type": "DisruptionAllowed",
        "status": status,
        "reason": "SufficientPods" if is_allowed else "InsufficientPods",
        "message": "",
        "observedGeneration": budget["metadata"].get("generation", 1),
        "lastTransitionTime": was["lastTransitionTime"] if was and was["status"] == status else stamp(now),
    }
    return [*(other for other in held if other["type"] != "DisruptionAllowed"), condition]
