"""Rows of quotas, limits and priorities. Quantities stay as written."""

from typing import Any

from fleet.observer.mirror.rows.text import INTEGER_MOST, fitted
from kube.structs.cluster_objects import Limit, LimitRangeSeen, PriorityClassSeen, QuotaPart, QuotaSeen
from kube.structs.meta import ResourceList

MOST = 256  # names of one quota, limits of one range


def quota_row(seen: QuotaSeen) -> dict[str, Any]:
    """Returns the row. `hard` is the enforced value from the status, else the requested one."""
    spec, status = seen.spec or QuotaPart(), seen.status or QuotaPart()
    return {
        "namespace": fitted(seen.metadata.namespace, 63),
        "name": fitted(seen.name, 253),
        "hard": _amounts(status.hard or spec.hard),
        "used": _amounts(status.used),
    }


def limit_range_row(seen: LimitRangeSeen) -> dict[str, Any]:
    limits = (seen.spec.limits if seen.spec else None) or []
    return {
        "namespace": fitted(seen.metadata.namespace, 63),
        "name": fitted(seen.name, 253),
        "limits": [_limit(limit) for limit in limits[:MOST]],
    }


def _limit(limit: Limit) -> dict[str, Any]:
    """Returns only specified parts; an empty part limits nothing."""
    said = {
        "max": _amounts(limit.max),
        "min": _amounts(limit.min),
        "default": _amounts(limit.default),
        "defaultRequest": _amounts(limit.default_request),
    }
    return {"type": fitted(limit.type, 63)} | {name: amounts for name, amounts in said.items() if amounts}


def priority_class_row(seen: PriorityClassSeen) -> dict[str, Any]:
    return {
        "name": fitted(seen.name, 253),
        "value": max(-INTEGER_MOST, min(seen.value, INTEGER_MOST)),
        "is_default": bool(seen.global_default),
        "preemption_policy": fitted(seen.preemption_policy, 32),
    }


def _amounts(amounts: ResourceList | None) -> dict[str, str]:
    named = list((amounts or {}).items())[:MOST]
    return {fitted(name, 317): fitted(str(amount), 64) for name, amount in named}
