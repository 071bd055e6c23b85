"""What is given out: quotas, and the devices of Dynamic Resource Allocation."""

from datetime import datetime
from typing import Any

from simulator.wire.columns.column import AGE, NAME, Column, reading

Obj = dict[str, Any]


def _usage(obj: Obj, *, limits: bool) -> str:
    status = obj.get("status") or {}
    hard, used = status.get("hard") or {}, status.get("used") or {}
    keys = [key for key in sorted(hard) if key.startswith("limits.") is limits]
    return ", ".join(f"{key}: {used.get(key, '0')}/{hard[key]}" for key in keys)


def claim_state(claim: Obj, _now: datetime) -> str:
    """In the order in which a claim goes through them."""
    status = claim.get("status") or {}
    parts = ["deleted"] if claim["metadata"].get("deletionTimestamp") else []
    if not status.get("allocation"):
        return ",".join([*parts, "pending"])
    parts.append("allocated")
    return ",".join([*parts, "reserved"] if status.get("reservedFor") else parts)


QUOTA_COLUMNS = (
    NAME,
    Column("Request", lambda quota, _now: _usage(quota, limits=False)),
    Column("Limit", lambda quota, _now: _usage(quota, limits=True)),
    AGE,
)
SLICE_COLUMNS = (
    NAME,
    Column("Node", reading("spec.nodeName", "<unset>")),
    Column("Driver", reading("spec.driver")),
    Column("Pool", reading("spec.pool.name")),
    AGE,
)
CLAIM_COLUMNS = (NAME, Column("State", claim_state), AGE)
