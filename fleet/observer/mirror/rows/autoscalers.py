"""Rows of Karpenter's NodePools and NodeClaims, and of the status that the cluster autoscaler writes.

Karpenter: kubernetes-sigs/karpenter@v1.14.1, pkg/apis/v1. Cluster autoscaler: kubernetes/autoscaler@
cluster-autoscaler-1.35.0, cluster-autoscaler/clusterstate/api/types.go: YAML since 1.30, before that a text for people.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import yaml

from fleet.observer.mirror.rows.text import INTEGER_MOST, fitted, fitted_instant
from kube.structs import ConfigMapSeen
from kube.structs.autoscalers import NodeClaimSeen, NodePoolSeen
from kube.structs.meta import Condition, ResourceList, find

POOL_LABEL = "karpenter.sh/nodepool"
STEPS = ("Launched", "Registered", "Initialized")  # conditions of a NodeClaim, in their order
GROUPS_AT_MOST = 256
RESOURCES_AT_MOST = 32
LARGEST_STATUS = 512 * 1024  # characters; a status has about 500 for each node group. It takes 0.3 s of CPU
STEP_S = 300  # the status is written every ten seconds; a coarser time avoids a changed row each time


def node_pool_row(seen: NodePoolSeen) -> dict[str, Any]:
    conditions = seen.status.conditions if seen.status else None
    ready = find(conditions, "Ready")
    is_ready = ready is None or ready.status == "True"
    return {
        **_row("NodePool", seen.name, fitted_instant(seen.metadata.creation_timestamp)),
        "is_ready": is_ready,
        **_reason(None if is_ready else ready),
        "facts": {
            "limits": _written(seen.spec.limits if seen.spec else None),
            "used": _written(seen.status.resources if seen.status else None),
        },
    }


def node_claim_row(seen: NodeClaimSeen) -> dict[str, Any]:
    conditions = seen.status.conditions if seen.status else None
    steps = [find(conditions, name) for name in STEPS]
    late = next((each for each in steps if each is None or each.status != "True"), None)
    return {
        **_row("NodeClaim", seen.name, fitted_instant(seen.metadata.creation_timestamp)),
        "pool": fitted(seen.labels.get(POOL_LABEL), 253),
        "node_name": fitted(seen.status.node_name, 253) if seen.status else "",
        "is_ready": all(each is not None and each.status == "True" for each in steps),
        **_reason(late),
    }


def autoscaler_row(seen: ConfigMapSeen) -> dict[str, Any]:
    """Returns the row. Its time is rounded down, since each write would change it."""
    read = _parsed(seen.values.get("status", ""))
    groups = read.get("nodeGroups", []) if isinstance(read, dict) else None
    row = _row("ClusterAutoscaler", seen.name, fitted_instant(seen.metadata.creation_timestamp))
    if isinstance(read, str) or not isinstance(groups, list):
        return {**row, "facts": {"unread": read if isinstance(read, str) else "its groups are no list"}}
    return {
        **row,
        "reason_at": _at(read.get("time")),
        "facts": {"groups": [_group(each) for each in groups[:GROUPS_AT_MOST] if isinstance(each, dict)]},
    }


def _row(kind: str, name: str, created_at: datetime | None) -> dict[str, Any]:
    return {
        "kind": kind, "name": fitted(name, 253), "created_at": created_at, "pool": "", "node_name": "",
        "is_ready": False, "reason": "", "message": "", "reason_at": None, "facts": {},
    }  # fmt: skip


def _reason(condition: Condition | None) -> dict[str, Any]:
    if condition is None:
        return {}
    return {
        "reason": fitted(condition.reason or condition.type, 256),
        "message": fitted(condition.message, 1000),
        "reason_at": fitted_instant(condition.last_transition_time),
    }


def _written(amounts: ResourceList | None) -> dict[str, str]:
    return {
        fitted(name, 317): fitted(str(amount), 64) for name, amount in list((amounts or {}).items())[:RESOURCES_AT_MOST]
    }


def _parsed(text: str) -> dict[str, Any] | str:
    """Returns the status, or why it is not read."""
    if not text:
        return "empty"
    if len(text) > LARGEST_STATUS:
        return f"larger than {LARGEST_STATUS // 1024} KiB"
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        if "&" in text and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=loader)):
            return "YAML with aliases"  # a few of them make a huge value
        read = yaml.load(text, Loader=loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError):
        return "no YAML: the cluster autoscaler writes YAML since 1.30"
    if not isinstance(read, dict) or "autoscalerStatus" not in read:
        return "no YAML of the cluster autoscaler since 1.30"
    return read


def _group(group: Mapping[str, Any]) -> dict[str, Any]:
    health, scale_up = _part(group, "health"), _part(group, "scaleUp")
    unready = _part(_part(_part(health, "nodeCounts"), "registered"), "unready")
    why = _part(scale_up, "backoffInfo")
    return {
        "name": fitted(str(group.get("name") or ""), 253).rpartition("/")[2],
        "target": _number(health.get("cloudProviderTarget")),
        "largest": _number(health.get("maxSize")),
        "unready": _number(unready.get("resourceUnready")) or 0,
        "scale_up": _text(scale_up.get("status"), 32),
        "error_code": _text(why.get("errorCode"), 128),
        "error_message": _text(why.get("errorMessage"), 500),
    }


def _part(of: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = of.get(name)
    return part if isinstance(part, dict) else {}


def _text(value: object, most: int) -> str:
    return fitted(str(value), most) if isinstance(value, str | int | float) else ""


def _number(value: object) -> int | None:
    return max(0, min(value, INTEGER_MOST)) if isinstance(value, int) and not isinstance(value, bool) else None


def _at(value: object) -> datetime | None:
    """Reads `2026-07-26 10:00:00.123 +0000 UTC`, as Go prints a time."""
    words: Sequence[str] = str(value or "").split()
    if isinstance(value, datetime):
        found = value if value.tzinfo else value.replace(tzinfo=UTC)
    elif len(words) >= 2:
        try:
            found = datetime.fromisoformat(f"{words[0]}T{words[1].partition('.')[0]}+00:00")
        except ValueError:
            return None
    else:
        return None
    at = fitted_instant(found)
    return at and datetime.fromtimestamp(at.timestamp() // STEP_S * STEP_S, tz=UTC)
